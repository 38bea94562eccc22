"""Gradient descent on least squares in closed form, against plain iteration and linear algebra."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm

from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.theory.bias import least_squares

X, Y = jnp.array([[1.0, 2, 0, 1], [0, 1, 1, 3]]), jnp.array([1.0, 2])


def test_reference_values():
    zero, first = jnp.zeros(4), jnp.eye(4)[0]
    np.testing.assert_allclose(least_squares.closest_minimizer(X, Y, zero), np.array([1, 9, 7, 22]) / 41, rtol=1e-14)
    np.testing.assert_allclose(
        least_squares.closest_minimizer(X, Y, first), np.array([31, -8, 12, 26]) / 41, rtol=1e-13
    )
    assert float(least_squares.critical_step(X)) == pytest.approx(0.14194292957, rel=1e-10)
    ten = least_squares.gradient_descent(X, Y, zero, 0.1, 10)
    np.testing.assert_allclose(ten, [0.02626404, 0.22207737, 0.16954929, 0.53491191], atol=5e-9)


@pytest.mark.parametrize("shape", [(3, 7), (7, 3), (5, 5), (6, 8)])
@pytest.mark.parametrize("fraction", [1e-9, 0.3, 0.5, 0.97])
def test_against_iteration(shape, fraction):
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape)
    if shape == (6, 8):
        x[3:] = x[:3] + 1e-30  # rank three
    y, start = rng.standard_normal(shape[0]), rng.standard_normal(shape[1])
    step = fraction * float(least_squares.critical_step(jnp.asarray(x)))
    times = [0, 1, 2, 7, 60]
    found = least_squares.gradient_descent(jnp.asarray(x), jnp.asarray(y), jnp.asarray(start), step, jnp.asarray(times))
    theta, path = start.copy(), {}
    for t in range(max(times) + 1):
        path[t] = theta.copy()
        theta = theta - step * 2 / shape[0] * x.T @ (x @ theta - y)
    np.testing.assert_allclose(found, [path[t] for t in times], rtol=1e-12, atol=1e-13)


def test_gradient_flow_against_the_matrix_exponential():
    start = jnp.array([0.3, -1.0, 2.0, 0.5])
    for loss_scale in (None, 0.5):
        scale = 0.5 if loss_scale is None else loss_scale
        matrix = 2 * scale * np.asarray(X.T @ X)
        best = np.asarray(least_squares.closest_minimizer(X, Y, start))
        exact = best + expm(-0.7 * matrix) @ (np.asarray(start) - best)
        np.testing.assert_allclose(
            least_squares.gradient_flow(X, Y, start, 0.7, loss_scale=loss_scale), exact, rtol=1e-12
        )


def test_long_times_reach_the_closest_minimizer():
    start = jnp.ones(4)
    step = float(least_squares.optimal_step(X))
    late = least_squares.gradient_descent(X, Y, start, step, 10**6)
    np.testing.assert_allclose(late, least_squares.closest_minimizer(X, Y, start), rtol=1e-12)
    projected = least_squares.in_row_space(X, late - start)
    np.testing.assert_allclose(projected, late - start, atol=1e-13)


@pytest.mark.parametrize("step", [0.1419430, 1.0])
def test_divergent_steps_are_refused(step):
    with pytest.raises(OutsideValidity, match=r"critical 0\.141943"):
        least_squares.gradient_descent(X, Y, jnp.zeros(4), step, 5)


@pytest.mark.parametrize("step", [0.0, -0.1, float("nan")])
def test_impossible_steps_are_refused(step):
    with pytest.raises(ParameterError, match=r"step = .* positive"):
        least_squares.gradient_descent(X, Y, jnp.zeros(4), step, 5)
