"""Symmetric matrices by their triangle, against NumPy, with their derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from deeplimits.numerics import symmetric


@pytest.mark.parametrize("count", [1, 2, 5])
def test_triangles_against_numpy(count):
    root = np.random.default_rng(count).normal(size=(count, count))
    matrix = root + root.T
    values = symmetric.triangle(jnp.asarray(matrix))
    assert np.array_equal(values, matrix[np.triu_indices(count)])
    assert np.array_equal(jax.jit(symmetric.filled, static_argnums=1)(values, count), matrix)
    assert np.array_equal(symmetric.diagonal(jnp.asarray(matrix)), np.diag(matrix))
    rows, columns = symmetric.upper(count)
    assert len(rows) == count * (count + 1) // 2
    assert np.all(rows <= columns)


def test_derivatives_by_value():
    """Of log det of the filled matrix: the inverse, its entries off the diagonal twice."""
    values, count = jnp.array([2.0, 0.3, -0.2, 1.5, 0.4, 1.0]), 3
    found = jax.grad(lambda v: jnp.linalg.slogdet(symmetric.filled(v, count))[1])(values)
    inverse = np.linalg.inv(np.asarray(symmetric.filled(values, count)))
    rows, columns = np.triu_indices(count)
    np.testing.assert_allclose(found, inverse[rows, columns] * np.where(rows == columns, 1, 2), rtol=1e-12)
    push = jax.jacfwd(lambda m: symmetric.triangle(m))(jnp.eye(2))
    assert np.array_equal(push, [[[1, 0], [0, 0]], [[0, 1], [0, 0]], [[0, 0], [0, 1]]])
    assert np.array_equal(jax.grad(lambda m: jnp.sum(symmetric.diagonal(m) ** 2))(2 * jnp.eye(3)), 4 * np.eye(3))
