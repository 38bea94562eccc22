"""The Marchenko-Pastur law against quadrature in high precision, and against its own equations."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from deeplimits.theory.spectra import marchenko_pastur
from deeplimits.theory.spectra import marchenko_pastur_formulas as mp

GAMMAS = [0.01, 0.25, 0.5, 0.999, 1.0, 2.0, 50.0]


def quadrature(function, gamma, variance=1.0):
    """∫ f dμ over the continuous part, in the angle, where the density is smooth."""
    with mpmath.workdps(30):
        gamma, variance = mpmath.mpf(gamma), mpmath.mpf(variance)
        low, radius = variance * (1 - mpmath.sqrt(gamma)) ** 2, 2 * variance * mpmath.sqrt(gamma)

        def integrand(angle):
            x = low + 2 * radius * mpmath.cos(angle / 2) ** 2
            return function(x) * radius**2 * mpmath.sin(angle) ** 2 / (2 * mpmath.pi * variance * gamma * x)

        return mpmath.quad(integrand, mpmath.linspace(0, mpmath.pi, 33))


@pytest.mark.parametrize("gamma", GAMMAS)
def test_total_mass_and_moments(gamma):
    atom = float(mp.marchenko_pastur_atom(gamma))
    assert float(quadrature(lambda x: 1, gamma)) + atom == pytest.approx(1, abs=1e-12)
    for order in (1, 2, 3, 4):
        exact = float(quadrature(lambda x, k=order: x**k, gamma, 1.5))
        assert float(mp.marchenko_pastur_moment(order, gamma, 1.5)) == pytest.approx(exact, rel=1e-12)
    assert float(mp.marchenko_pastur_moment(0, gamma)) == 1


@pytest.mark.parametrize("gamma", GAMMAS)
def test_distribution_function_is_the_integral_of_the_density(gamma):
    low, high = (float(edge) for edge in mp.marchenko_pastur_edges(gamma))
    for share in (0.02, 0.3, 0.7, 0.98):
        x = low + share * (high - low)
        with mpmath.workdps(30):
            end = mpmath.acos((mpmath.mpf(x) - 1 - gamma) / (2 * mpmath.sqrt(gamma)))
            centre, radius = 1 + mpmath.mpf(gamma), 2 * mpmath.sqrt(gamma)

            def integrand(angle, centre=centre, radius=radius):
                place = centre + radius * mpmath.cos(angle)
                return radius**2 * mpmath.sin(angle) ** 2 / (2 * mpmath.pi * gamma * place)

            above = mpmath.quad(integrand, mpmath.linspace(0, end, 5))
        assert float(mp.marchenko_pastur_cdf(x, gamma)) == pytest.approx(1 - float(above), abs=2e-14)


def test_reference_values():
    assert float(mp.marchenko_pastur_density(1.0, 0.5)) == pytest.approx(0.42108439934779, rel=1e-13)
    assert float(mp.marchenko_pastur_density(1.0, 2.0)) == pytest.approx(0.1591549430919, rel=1e-12)
    assert float(mp.marchenko_pastur_density(2.0, 0.25, 2.0)) == pytest.approx(0.30820222203075, rel=1e-13)
    assert float(mp.marchenko_pastur_cdf(1.0, 0.5)) == pytest.approx(0.57600421510387, rel=1e-13)
    assert float(mp.marchenko_pastur_cdf(1.0, 2.0)) == pytest.approx(0.6591549430919, rel=1e-12)
    np.testing.assert_allclose(mp.marchenko_pastur_edges(0.25), [0.25, 2.25])
    np.testing.assert_allclose(mp.marchenko_pastur_edges(4.0), [1.0, 9.0])


def test_outside_the_support():
    assert float(mp.marchenko_pastur_density(-1.0, 0.5)) == float(mp.marchenko_pastur_density(10.0, 0.5)) == 0
    assert float(mp.marchenko_pastur_cdf(-1.0, 2.0)) == 0
    assert float(mp.marchenko_pastur_cdf(0.0, 2.0)) == float(mp.marchenko_pastur_cdf(0.05, 2.0)) == 0.5
    assert float(mp.marchenko_pastur_cdf(100.0, 2.0)) == 1


def test_stieltjes_reference_values():
    assert complex(mp.marchenko_pastur_stieltjes(1 + 0.5j, 0.5)) == pytest.approx(
        -0.17032439547546 + 1.0102153218017j, rel=1e-13
    )
    assert complex(mp.marchenko_pastur_stieltjes(-1.0, 2.0)) == pytest.approx(0.70710678118655, rel=1e-13)
    assert complex(mp.marchenko_pastur_stieltjes(0.2 + 0.01j, 2.0, 1.5)) == pytest.approx(
        -1.9950449790272 + 0.14242001917496j, rel=1e-12
    )
    assert complex(mp.marchenko_pastur_stieltjes(-1.0, 1.0)) == pytest.approx((np.sqrt(5) - 1) / 2, rel=1e-14)
    assert complex(mp.marchenko_pastur_stieltjes(1 + 0.5j, 0.5)).imag / np.pi == pytest.approx(
        0.32156152410382, rel=1e-12
    )


@pytest.mark.parametrize("gamma", [0.25, 1.0, 2.0])
@pytest.mark.parametrize("z", [-1e-6, -0.3, 20.0, 1 + 0.5j, 0.2 - 0.01j, -2 + 1e-3j, 1e3 + 1j])
def test_stieltjes_solves_its_equation_and_is_the_integral(gamma, z):
    s = complex(mp.marchenko_pastur_stieltjes(z, gamma))
    residual = gamma * z * s**2 + (z - (1 - gamma)) * s + 1
    assert abs(residual) < 1e-14 * max(1, abs(gamma * z * s**2), abs(s) * max(1, abs(z)))
    if gamma != 1.0 or abs(z) > 1e-3:
        with mpmath.workdps(30):
            exact = (
                complex(quadrature(lambda x: 1 / (x - mpmath.mpmathify(z)), gamma))
                - float(mp.marchenko_pastur_atom(gamma)) / z
            )
        assert s == pytest.approx(exact, rel=1e-10)
    if isinstance(z, complex):
        assert s.imag * z.imag > 0


def test_gradients_are_finite_up_to_the_edges():
    low, high = mp.marchenko_pastur_edges(0.5)
    for x in (float(low) + 1e-9, 1.0, float(high) - 1e-9, 0.0, 5.0):
        assert np.isfinite(float(jax.grad(lambda g, x=x: mp.marchenko_pastur_cdf(x, g))(0.5)))
        assert np.isfinite(float(jax.grad(lambda x: mp.marchenko_pastur_cdf(x, 0.5))(jnp.asarray(x))))


@pytest.mark.parametrize("gamma", [1e-8, 1e-12, 1e-16])
def test_the_law_is_its_formula_at_small_ratios(gamma):
    """(1 − x) + γ with γ a constant was compiled as (1 + γ) − x: 3e-11 off at 1e-12, 3e-9 at 1e-16."""
    law = marchenko_pastur(gamma)
    for x in (1.0, 1 + 0.6 * np.sqrt(gamma)):
        assert float(law.cdf(x)) == pytest.approx(float(mp.marchenko_pastur_cdf(x, gamma)), rel=1e-15)
        assert float(law.density(x)) == pytest.approx(float(mp.marchenko_pastur_density(x, gamma)), rel=1e-14)
    with mpmath.workdps(40):
        # mass of the density left of 1, x = 1 + γ − 2√γ cos θ
        g, root = mpmath.mpf(gamma), mpmath.sqrt(mpmath.mpf(gamma))
        exact = mpmath.quad(
            lambda t: 2 * mpmath.sin(t) ** 2 / (mpmath.pi * (1 + g - 2 * root * mpmath.cos(t))),
            [0, mpmath.acos(root / 2)],
        )
    assert float(law.cdf(1.0)) == pytest.approx(float(exact), rel=1e-14)
