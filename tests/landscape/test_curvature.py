"""Hessians of two-layer networks and of two clusters, against autodiff, finite values of the sheets and mpmath."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from deeplimits.errors import ParameterError
from deeplimits.theory import landscape


def test_reference_values_of_the_parts():
    parts = landscape.two_layer_curvature("tanh", [[0.5]], [[2.0]], [[1.0]], [[1.0]], loss="squared")
    g, e = np.asarray(parts.gauss_newton), np.asarray(parts.rest)
    found = [g[0, 0], g[0, 1], g[1, 1], e[0, 0], e[0, 1], e[1, 1]]
    wanted = [2.474000146749, 0.72686198138359, 0.21355226703407, 0.11014239253773, -0.05958575158234, 0]
    np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-15)


def test_ranks_of_the_sheet():
    """tanh 2-5-3 with biases, 33 parameters, 12 data: rank G = 24, rank H = 27; here without biases, by autodiff."""
    random = np.random.default_rng(1)
    w, v = random.normal(size=(5, 3)), random.normal(size=(3, 5))
    x, y = np.append(random.normal(size=(12, 2)), np.ones((12, 1)), axis=1), np.arange(12) % 3
    parts = landscape.two_layer_curvature("tanh", w, v, x, y)
    assert np.linalg.matrix_rank(parts.gauss_newton) == landscape.gauss_newton_rank(30, 12, 3) == 24
    # The shift of all logits: one direction for each neuron of the second layer
    assert np.linalg.matrix_rank(parts.hessian) == 30 - 5

    def loss(theta):
        logits = jnp.tanh(jnp.asarray(x) @ theta[:15].reshape(5, 3).T) @ theta[15:].reshape(3, 5).T
        return -jnp.mean(jax.nn.log_softmax(logits, axis=1)[jnp.arange(12), jnp.asarray(y)])

    hessian = jax.hessian(loss)(jnp.asarray(np.concatenate([w.ravel(), v.ravel()])))
    np.testing.assert_allclose(parts.hessian, hessian, atol=1e-14)


@pytest.mark.parametrize(
    ("noise", "weight", "wanted"),
    [(0.5, 2 * 2**0.5 / 0.25, (9.1112005255982e-05, 0.00044851607613481)),
     (1.0, 2 * 2**0.5, (0.026020745188016, 0.057754555482324)), (1.0, 0.0, (0.75, 0.25))],
)  # fmt: skip
def test_reference_values_of_two_clusters(noise, weight, wanted):
    np.testing.assert_allclose(landscape.two_cluster_curvature(weight, noise), wanted, rtol=1e-12)


@pytest.mark.parametrize(("noise", "weight"), [(0.05, 3.0), (4.0, 50.0), (0.3, 30.0)])
def test_two_clusters_in_thirty_digits(noise, weight):
    mpmath.mp.dps = 30
    root = mpmath.sqrt(2)

    def integrand(power):
        def value(t):
            u = weight * t
            return mpmath.npdf(t, root, noise) * t**power / (4 * mpmath.cosh(u / 2) ** 2)

        return value

    ends = sorted({root + noise * k for k in range(-40, 11, 2)} | {mpmath.mpf(k) / weight for k in range(-60, 61, 4)})
    along, across = (mpmath.quad(integrand(power), ends) for power in (2, 0))
    found = landscape.two_cluster_curvature(weight, noise)
    np.testing.assert_allclose(found, [float(along), noise**2 * float(across)], rtol=1e-9)


def test_top_gradient_share():
    np.testing.assert_allclose(
        landscape.top_gradient_share([10, 1, 0.1], [1, 1, 1], 0.05, [20], 1), [6.6534424867787e-10], rtol=1e-12
    )
    # Near the edge the first direction stays: |1 − 10·0.199| = 0.99 beats 0.801
    assert landscape.top_gradient_share([10, 1, 0.1], [1, 1, 1], 0.199, [30], 1)[0] > 0.999
    # Extreme: a share far below what doubles can hold is 0 and not NaN
    assert landscape.top_gradient_share([10.0, 1.0], [1.0, 1.0], 0.1, [3], 1)[0] == 0
    with pytest.raises(ParameterError, match="top"):
        landscape.top_gradient_share([1.0], [1.0], 0.1, [1], 2)
    with pytest.raises(ParameterError, match="a class, 0 to 1"):
        landscape.two_layer_curvature("tanh", np.eye(2), np.eye(2), np.eye(2), [0, 2])
