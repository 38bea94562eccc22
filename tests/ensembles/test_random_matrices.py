"""The classical ensembles of random matrices: tridiagonal models against dense ones, exact moments, limiting laws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from deeplimits.ensembles import random_matrices
from deeplimits.errors import ParameterError
from deeplimits.theory import spectra

DRAWS = 1000


def many(function, *arguments, draws=DRAWS, seed=0):
    return np.asarray(jax.vmap(lambda key: function(key, *arguments))(jax.random.split(jax.random.key(seed), draws)))


def same_means(one, other):
    """Whether two sets of draws have the same means, and the same second moments, to 4.5 of their errors."""
    for power in (1, 2):
        left, right = one**power, other**power
        spread = np.sqrt(left.var(axis=0) / len(left) + right.var(axis=0) / len(right))
        assert np.all(np.abs(left.mean(axis=0) - right.mean(axis=0)) < 4.5 * spread)


@pytest.mark.parametrize("beta", [1, 2, 4])
def test_gaussian_matrices_and_their_tridiagonal_forms_have_the_same_eigenvalues(beta):
    n = 5
    dense = np.linalg.eigvalsh(many(random_matrices.gaussian_matrix, n, beta))
    if beta == 4:
        np.testing.assert_allclose(dense[:, ::2], dense[:, 1::2], atol=1e-12)
        dense = dense[:, ::2]
    same_means(dense, many(random_matrices.gaussian_eigenvalues, n, float(beta), seed=1))


@pytest.mark.parametrize("beta", [0.5, 7.0])
def test_the_second_moment_is_exact(beta):
    """E Σ λ² = n − 1 + 2/β."""
    n = 6
    squares = np.sum(many(random_matrices.gaussian_eigenvalues, n, beta) ** 2, axis=1)
    assert abs(squares.mean() - (n - 1 + 2 / beta)) < 4.5 * squares.std() / DRAWS**0.5


@pytest.mark.parametrize(("samples", "dimension", "beta"), [(7, 4, 1), (4, 7, 2), (1, 3, 1)])
def test_wishart_eigenvalues_are_those_of_sample_covariances(samples, dimension, beta):
    key = jax.random.key(5)
    x = np.asarray(jax.random.normal(key, (DRAWS, samples, dimension), dtype=complex if beta == 2 else float))
    dense = np.linalg.eigvalsh(np.swapaxes(x.conj(), 1, 2) @ x / samples)
    found = many(random_matrices.wishart_eigenvalues, samples, dimension, float(beta))
    zeros = max(0, dimension - samples)
    assert found.shape == (DRAWS, dimension)
    assert np.all(found[:, :zeros] == 0)
    same_means(dense[:, zeros:], found[:, zeros:])


def test_large_ones_have_the_limiting_laws():
    key = jax.random.key(2)
    places = (np.arange(500) + 0.5) / 500
    found = random_matrices.gaussian_eigenvalues(key, 500, 1.0)
    assert np.max(np.abs(spectra.semicircle(1.0).cdf(found) - places)) < 1e-2
    found = random_matrices.wishart_eigenvalues(key, 1000, 500, 2.0)
    assert np.max(np.abs(spectra.marchenko_pastur(0.5).cdf(found) - places)) < 1e-2


def test_the_largest_eigenvalue_is_of_tracy_and_widom():
    """The mean of the law for β = 2 is −1.7711 (Bornemann); the gap closes like n^(−2/3)."""
    n, draws = 100, 200
    top = many(random_matrices.gaussian_eigenvalues, n, 2.0, draws=draws)[:, -1]
    scaled = n ** (2 / 3) * (top - 2)
    assert abs(scaled.mean() + 1.7710868) < 4.5 * scaled.std() / draws**0.5 + n ** (-2 / 3)


def test_what_is_not_there_is_refused():
    key = jax.random.key(0)
    for call, words in (
        (lambda: random_matrices.gaussian_matrix(key, 3, 3), "beta = 3 is not allowed; it must be 1, 2 or 4"),
        (lambda: random_matrices.gaussian_matrix(key, 0), "size = 0"),
        (lambda: random_matrices.gaussian_eigenvalues(key, 2.5), "size = 2.5"),
        (lambda: random_matrices.gaussian_eigenvalues(key, 3, 0.0), "beta = 0"),
        (lambda: random_matrices.wishart_eigenvalues(key, 0, 3), "samples = 0"),
        (lambda: random_matrices.wishart_eigenvalues(key, 3, -1), "dimension = -1"),
        (lambda: random_matrices.wishart_eigenvalues(key, 3, 3, float("nan")), "beta = nan"),
    ):
        with pytest.raises(ParameterError, match=words):
            call()
    assert random_matrices.gaussian_eigenvalues(key, 1).shape == (1,)
    assert jnp.all(random_matrices.wishart_eigenvalues(key, 1, 1) > 0)
