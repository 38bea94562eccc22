"""Distances, the oracle's error, kernels of distances and their spectral clustering, against other roads to them."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.theory import mixtures

SIGNS = np.array([[1.0], [-1.0]])


def heat(t):
    return jnp.exp(-t / 2)


def rational(t):
    return 1 / (1 + t)


def parabola(t):
    return 2 * (t - 2) ** 2 - (t - 2) + 4


def covariances(p):
    """Two classes whose covariances differ in size and in shape, and do not commute."""
    random = np.random.default_rng(3)
    turn = np.linalg.qr(random.standard_normal((p, p)))[0]
    first, second = np.linspace(0.6, 1.4, p), np.linspace(0.5, 1.7, p)
    return np.stack([np.diag(first), (turn * second) @ turn.T])


def drawn(random, means, matrices, labels):
    roots = np.linalg.cholesky(matrices)
    return means[labels] + np.einsum("nij,nj->ni", roots[labels], random.standard_normal((len(labels), means.shape[1])))


def test_mean_and_variance_of_distances():
    """Wick's formula for a quadratic form of the difference, from its eigenvalues rather than traces."""
    p, matrices = 6, covariances(6)
    means = np.random.default_rng(0).standard_normal((2, p))
    found = mixtures.pair_distances(mixtures.gaussian_mixture(means, matrices))
    for a in range(2):
        for b in range(2):
            values, vectors = np.linalg.eigh(matrices[a] + matrices[b])
            shift = vectors.T @ (means[a] - means[b])
            # (√λ z + δ)²: mean λ + δ², variance 2λ² + 4λδ²
            np.testing.assert_allclose(found.mean[a, b], np.sum(values + shift**2) / p, rtol=1e-12)
            np.testing.assert_allclose(
                found.variance[a, b], np.sum(2 * values**2 + 4 * values * shift**2) / p**2, rtol=1e-12
            )
    isotropic = mixtures.pair_distances(mixtures.gaussian_mixture(np.zeros((2, 40)), 1.0))
    np.testing.assert_allclose(isotropic.variance, 8 / 40, rtol=1e-12)
    assert float(isotropic.common) == 2.0


def test_largest_gap_reference_and_failure_rate():
    found = mixtures.largest_distance_gap(800, 1600)
    assert round(float(found.typical), 3) == 0.356
    # The bound with probability 0.2 of failure is crossed at most so often; the typical size often.
    random, crossed, beyond = np.random.default_rng(1), 0, 0
    n, p, draws = 30, 60, 200
    found = mixtures.largest_distance_gap(n, p, failure=0.2)
    for _ in range(draws):
        x = random.standard_normal((n, p))
        square = np.sum(x**2, axis=1)
        gaps = np.abs((square[:, None] + square - 2 * x @ x.T) / p - 2)[np.triu_indices(n, 1)]
        crossed += gaps.max() > float(found.bound)
        beyond += gaps.max() > 0.7 * float(found.typical)
    assert crossed <= 0.2 * draws
    assert beyond > 0.5 * draws


@pytest.mark.parametrize(("distance", "shape", "stated"), [
    (1.5, 2.0, 0.1513228424), (2.0, 0.0, 0.1586552539), (0.0, 3.0, 0.1444221832),
])  # fmt: skip
def test_oracle_error_references(distance, shape, stated):
    assert abs(float(mixtures.limiting_error(distance, shape)) - stated) < 1e-10


def test_oracle_error_for_covariances_against_the_likelihood_ratio():
    """At finite p the error of the true likelihood ratio, by SciPy's densities."""
    p, n = 60, 20_000
    random = np.random.default_rng(5)
    base = covariances(p)[1]
    wobble = random.standard_normal((p, p))
    second = base + 0.6 * (wobble + wobble.T) / p  # |C₁ − C₂|_F of order one
    gap = np.zeros(p)
    gap[0] = 1.2
    stated = float(mixtures.oracle_error(gap, base, second))
    errors = []
    for truth, other, mean, away in ((base, second, 0 * gap, gap), (second, base, gap, 0 * gap)):
        x = multivariate_normal(mean, truth).rvs(n, random_state=random)
        errors.append(np.mean(multivariate_normal(mean, truth).logpdf(x) < multivariate_normal(away, other).logpdf(x)))
    found = np.mean(errors)
    spread = np.sqrt(stated * (1 - stated) / (2 * n))
    # The limit is left by 1/√p at most: a hundredth here beside six standard errors.
    assert abs(found - stated) < 0.01 + 6 * spread
    assert stated < float(mixtures.oracle_error(gap, base, base)) - 0.02
    # Variances as a list are the diagonal matrix; equal covariances give the exact error.
    same = mixtures.oracle_error(gap, np.ones(p), np.ones(p))
    np.testing.assert_allclose(same, norm.sf(0.6), rtol=1e-12)
    np.testing.assert_allclose(mixtures.oracle_error(gap, np.eye(p), np.ones(p)), same, rtol=1e-12)


@pytest.mark.parametrize(("f", "stated"), [
    (heat, (0.3678794412, 0.3678794412, 0.0919698603, 0.2642411177)), (rational, (1 / 3, 2 / 9, 2 / 27, 4 / 9)),
])  # fmt: skip
def test_expansion_references(f, stated):
    at = mixtures.distance_expansion(f)
    found = at.value, -2 * at.slope, at.curvature, at.diagonal - at.value + at.place * at.slope
    np.testing.assert_allclose(found, stated, atol=1e-10)


def test_the_linearized_kernel_is_the_matrix_of_the_theorem():
    """The sheet's matrix formula, with P, for balanced ±μ, is what the entries add up to but for smaller terms."""
    random, p = np.random.default_rng(2), 400
    labels = np.arange(p) % 2
    mean = np.zeros((2, p))
    mean[:, 0] = [1.5, -1.5]
    mixture = mixtures.gaussian_mixture(mean, 1.0)
    x = mean[labels] + random.standard_normal((p, p))
    data = mixtures.kernel_data(x, labels, mixture=mixture)
    whole = np.asarray(mixtures.linearized_distance_kernel(heat, data, mixture))
    e = np.exp(-1)
    psi = np.asarray(data.spread)
    stated = e * x @ x.T / p + e / 4 * np.outer(psi, psi) + (1 - 2 * e) * np.eye(p)
    take = np.eye(p) - 1 / p
    gap = np.linalg.norm(take @ (whole - stated) @ take, 2)
    assert gap < 0.15 < np.linalg.norm(take @ whole @ take, 2) / 10


@pytest.mark.parametrize("f", [heat, pytest.param(rational, marks=pytest.mark.slow)])
def test_linearized_kernels_approach_the_kernel_in_operator_norm(f):
    """Two classes that differ in mean, size and shape: the distance falls like p^(−1/2)."""
    gaps = []
    sizes = (60, 240)
    for p in sizes:
        random = np.random.default_rng(p)
        n, labels = p, np.arange(p) % 2
        means = np.zeros((2, p))
        means[:, 0] = [1.5, -1.5]
        matrices = np.stack([np.eye(p), (1 + 1 / p**0.5) * np.diag(np.where(np.arange(p) < p // 2, 1.3, 0.7))])
        mixture = mixtures.gaussian_mixture(means, matrices)
        found = []
        for _ in range(4):
            x = means[labels] + np.sqrt(np.einsum("aii->ai", matrices))[labels] * random.standard_normal((n, p))
            data = mixtures.kernel_data(x, labels, mixture=mixture)
            apart = np.sum((x[:, None, :] - x[None, :, :]) ** 2, axis=2) / p
            kernel = np.asarray(f(jnp.asarray(apart)))
            found.append(np.linalg.norm(kernel - np.asarray(mixtures.linearized_distance_kernel(f, data, mixture)), 2))
        gaps.append(np.mean(found))
    slope = np.log(gaps[1] / gaps[0]) / np.log(sizes[1] / sizes[0])
    assert -0.8 < slope < -0.3, gaps


def test_linearized_inner_products():
    """Covariances that do not commute, and a polynomial with all three terms."""

    def f(t):
        return 1 + 0.7 * t + 0.5 * t**2

    gaps = []
    for p in (60, 240):
        random, labels = np.random.default_rng(p), np.arange(p) % 2
        matrices, means = covariances(p), np.zeros((2, p))
        matrices[1] *= np.trace(matrices[0]) / np.trace(matrices[1])
        mixture = mixtures.gaussian_mixture(means, matrices)
        x = drawn(random, means, matrices, labels)
        data = mixtures.kernel_data(x, labels, mixture=mixture)
        exact = f(x @ x.T / p)
        gaps.append(np.linalg.norm(exact - np.asarray(mixtures.linearized_inner_kernel(f, data)), 2))
    assert gaps[1] < 0.7 * gaps[0] < 0.7 * 0.5


@pytest.mark.parametrize(("f", "gamma", "rho", "stated"), [
    (heat, 0.5, 2.0, (3.0233369264, 0.5833333333, 0.1183617853)),
    (heat, 0.5, 4.0, (4.4028848308, 0.775, 0.0317323772)),
    (heat, 0.5, 1.0, (2.4715177647, 0.25, 0.2818514308)),
])  # fmt: skip
def test_clustering_references(f, gamma, rho, stated):
    found = mixtures.kernel_clustering(f, gamma, rho)
    np.testing.assert_allclose((found.informative, found.overlap, found.error), stated, atol=1e-10)
    np.testing.assert_allclose(found.edges, (0.3273592511, 2.4083996312), atol=1e-10)
    assert float(found.rank) == 1
    assert float(mixtures.kernel_clustering(f, gamma, rho, centred=False).rank) == 2


def test_more_clustering_references():
    assert abs(float(mixtures.kernel_clustering(rational, 0.5, 2.0).informative) - 2.1111111111) < 1e-10
    # Norms make an eigenvalue of their own, before the informative one.
    for centred, stated in ((True, 26.6666666667), (False, 25.7272727273)):
        found = mixtures.kernel_clustering(parabola, 0.5, 2.0, centred=centred)
        assert abs(float(found.norm) - stated) < 1e-9
        assert float(found.rank) == (2 if centred else 3)
    below = mixtures.kernel_clustering(heat, 0.5, 0.7)
    assert (float(below.overlap), float(below.error), float(below.rank)) == (0, 0.5, 0)
    assert float(below.informative) == float(below.edges[1])


def clustered(f, p, n, rho, place, seeds):
    """Eigenvalue, overlap with the classes and share of wrong signs of an eigenvector; what the first has of norms."""
    found = []
    for seed in seeds:
        random = np.random.default_rng([seed, p])
        y, z = 1.0 - 2 * (np.arange(n) % 2), random.standard_normal((n, p))
        x = y[:, None] * np.eye(p)[0] * rho**0.5 + z
        square = np.sum(x**2, axis=1)
        kernel = np.asarray(f(jnp.asarray((square[:, None] + square - 2 * x @ x.T) / p * (1 - np.eye(n)))))
        kernel = kernel - kernel.mean(axis=0)
        values, vectors = np.linalg.eigh(kernel - kernel.mean(axis=1)[:, None])
        vector, wrong = vectors[:, -place], np.mean(vectors[:, -place] * y < 0)
        psi = np.sum(z**2, axis=1) / p - 1
        known = (vectors[:, -1] @ psi) ** 2 / (psi @ psi)
        found.append((values[-place], (vector @ y) ** 2 / n, min(wrong, 1 - wrong), known))
    return np.array(found)


@pytest.mark.parametrize("f", [heat, parabola])
def test_eigenvectors_of_simulated_kernels(f):
    """Kernels as they are defined, extrapolated from two dimensions as 1/p, as the limit is approached."""
    stated = mixtures.kernel_clustering(f, 0.5, 2.0)
    small, large = (clustered(f, p, 2 * p, 2.0, int(stated.rank), range(10)) for p in (80, 160))
    mean = 2 * large.mean(axis=0) - small.mean(axis=0)
    error = np.sqrt(4 * large.var(axis=0, ddof=1) + small.var(axis=0, ddof=1)) / np.sqrt(10)
    wanted = [float(stated.informative), float(stated.overlap), float(stated.error)]
    assert np.all(np.abs(mean[:3] - wanted) < 5 * error[:3]), (mean, error, wanted)
    assert np.all(error[:3] < 0.1 * np.array(wanted) + 0.02)
    if f is parabola:
        assert abs(mean[3] - float(stated.norm_overlap)) < 5 * error[3] + 0.02


def test_no_eigenvector_knows_the_classes_below_the_transition():
    """At ρ = 0.3, far below √c, the best of three eigenvectors has an overlap that falls with the dimension."""
    below = [
        max(clustered(heat, p, 2 * p, 0.2, place, range(6))[:, 1].mean() for place in (1, 2, 3)) for p in (40, 160)
    ]
    assert below[1] < 0.06, below


@pytest.mark.parametrize(("call", "error", "sentence"), [
    (
        lambda: mixtures.gaussian_mixture(np.zeros((1, 2)), [[1.0, 2.0], [2.0, 1.0]]),
        ParameterError, "not positive semidefinite: class 0 has the eigenvalue -1",
    ),
    (
        lambda: mixtures.gaussian_mixture(np.zeros((2, 2)), [np.eye(2), [[1.0, 0.5], [0.0, 1.0]]]),
        ParameterError, "not symmetric: entries of class 1",
    ),
    (lambda: mixtures.gaussian_mixture(SIGNS, 1.0, proportions=[0.5, 0.6]), ParameterError, "proportions"),
    (lambda: mixtures.gaussian_mixture(SIGNS, 1.0, proportions=[-0.5, 1.5]), ParameterError, "proportions"),
    (lambda: mixtures.gaussian_mixture(SIGNS, -1.0), ParameterError, "covariances = -1"),
    (lambda: mixtures.gaussian_mixture([[np.nan, 1.0]], 1.0), ParameterError, "means"),
    (lambda: mixtures.kernel_data(np.ones((3, 2)), [0, 0, 2]), ParameterError, "labels leave classes out"),
    (lambda: mixtures.kernel_data(np.ones((3, 2)), [0, 0, 1]), ParameterError, "class 1 has 1 points"),
    (
        lambda: mixtures.kernel_data(np.ones((2, 2)), [0, 3], mixture=mixtures.gaussian_mixture(np.zeros((1, 2)), 1.0)),
        ParameterError, "labels go up to 3",
    ),
    (lambda: mixtures.standardized(np.ones((3, 2))), ParameterError, "only constant columns"),
    (lambda: mixtures.largest_distance_gap(1, 10), ParameterError, "samples = 1"),
    (
        lambda: mixtures.oracle_error([1.0, 0.0], np.eye(2), np.diag([1.0, 0.0])),
        ParameterError, "no invertible covariance",
    ),
    (lambda: mixtures.kernel_clustering(lambda t: t, 0.5, 2.0), OutsideValidity, "it must fall there"),
    (lambda: mixtures.kernel_clustering(heat, 0.0, 2.0), ParameterError, "gamma = 0"),
    (lambda: mixtures.kernel_clustering(heat, 0.5, -2.0), ParameterError, "strength = -2"),
    (
        lambda: mixtures.kernel_clustering(lambda t: 2 - t, 0.5, 2.0, centred=False),
        OutsideValidity, "take centred=True",
    ),
    (lambda: mixtures.distance_expansion(lambda t: jnp.log(t)), (OutsideValidity, ParameterError), "not finite"),
])  # fmt: skip
def test_bad_input_is_said(call, error, sentence):
    with pytest.raises(error) as raised:
        call()
    assert sentence in str(raised.value), str(raised.value)
