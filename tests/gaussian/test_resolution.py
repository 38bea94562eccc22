"""Quadratures where functions oscillate, or are narrow in a wide field."""

import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest

from deeplimits.theory.gaussian import expect_pair
from deeplimits.theory.two_layer.overlaps import activation_integrals


def test_squares_of_sine_over_the_range_of_the_empirical_kernel():
    """E sin²u sin²v = ¼(1 − E cos 2u − E cos 2v + E cos 2u cos 2v); 1e-8 off by ten nodes, and then refused."""
    a = np.array([1.0, 4.5923632616454557, 5.0, 5.0])
    c = np.array([0.95, 4.4997902314, 4.95, -0.95])
    found = expect_pair(lambda u: jnp.sin(u) ** 2, lambda u: jnp.sin(u) ** 2, a, a, c)
    exact = (1 - 2 * np.exp(-2 * a) + np.exp(-4 * a) * np.cosh(4 * c)) / 4
    np.testing.assert_allclose(found.value, exact, rtol=1e-12)
    assert np.all(np.asarray(found.error) < 1e-10)


@pytest.mark.parametrize("variance", [25.0, 100.0])
def test_slopes_of_wide_fields(variance):
    """J₂ = E σ'(x)² of tanh in one field, and of two with correlation ½, against mpmath; 8e-6 off at 100 once."""
    integrals, c = activation_integrals("tanh"), variance * np.array([[1.0, 0.5], [0.5, 1.0]])

    def weighted(x):
        return mp.sech(x) ** 4 * mp.exp(-x * x / (2 * variance)) / mp.sqrt(2 * mp.pi * variance)

    exact = float(mp.quad(weighted, [-40, -10, -3, 0, 3, 10, 40]))
    assert float(integrals.j2(c, 0, 0)) == pytest.approx(exact, rel=1e-12)
    # The plane in units of the fields, by a trapezoid rule of its own: both factors fall off like e^{−2|x|}.
    x = np.arange(-22, 22, 0.05)
    inverse = np.linalg.inv(c)
    quadratic = inverse[0, 0] * x[:, None] ** 2 + 2 * inverse[0, 1] * np.outer(x, x) + inverse[1, 1] * x[None] ** 2
    slope = np.cosh(x) ** -2.0
    density = np.exp(-quadratic / 2) / (2 * np.pi * np.sqrt(np.linalg.det(c)))
    assert float(integrals.j2(c, 0, 1)) == pytest.approx(float(slope @ density @ slope) * 0.05**2, rel=1e-11)
