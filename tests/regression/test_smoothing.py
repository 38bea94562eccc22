"""Local averages: reference values, high-precision integrals, and limits of limits."""

import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from deeplimits.errors import ParameterError
from deeplimits.theory.regression import smoothing


@pytest.mark.parametrize(
    ("n", "k", "d", "linear", "cone"),
    [
        (50, 5, 2, 1 / 170, 0.21732097779687),
        (100, 10, 3, 0.0045205543556973, 0.34842111350355),
        (1000, 1, 5, 0.011193378798232, 0.2306058926761),
    ],
)
def test_nearest_neighbours_reference_values(n, k, d, linear, cone):
    assert float(smoothing.nearest_neighbours_bias_linear(1.0, k, n, d)) == pytest.approx(linear, rel=1e-12)
    assert float(smoothing.nearest_neighbours_bias_cone(1.0, 0.5, k, n, d)) == pytest.approx(cone, rel=1e-12)


def test_distance_moments_are_beta_integrals():
    n, k, d, power = 12, 3, 2, 1.3
    density = mpmath.beta(k + 1, n - k)
    exact = mpmath.quad(lambda t: t ** (k + power / d) * (1 - t) ** (n - k - 1), [0, 1]) / density
    assert float(smoothing.order_statistic_moment(power, k, n, d)) == pytest.approx(float(exact), rel=1e-12)
    assert float(smoothing.order_statistic_moment(power, n, n, d)) == 1
    for bad in (0, n + 1):
        with pytest.raises(ParameterError, match=f"k = {bad}"):
            smoothing.order_statistic_moment(power, bad, n, d)


@pytest.mark.parametrize("order", [1.01, 1.5, 2.0, 4.0, 40.0, 400.0])
def test_exponential_integral(order):
    s = np.array([1e-14, 1e-9, 1e-4, 0.1, 1.0, 7.0, 50.0, 300.0])
    with mpmath.workdps(60 if order < 100 else 500):  # large orders cancel
        exact = [float(mpmath.expint(order, mpmath.mpf(value))) for value in s]
    np.testing.assert_allclose(smoothing.exponential_integral(order, jnp.asarray(s)), exact, rtol=1e-13)


def test_singular_kernel_reference_values():
    risk = smoothing.singular_kernel_risk(100, 2, 0.5, 1.0, 1.0, 1.0, 10**-0.5)
    assert float(risk.variance) == pytest.approx(0.12041821743665, rel=1e-12)
    assert float(risk.bias) == pytest.approx(0.03834072887751, rel=1e-12)
    assert float(smoothing.empty_window_probability(100, 2, 10**-0.5)) == pytest.approx(2.6561398887588e-05, rel=1e-12)
    risk = smoothing.singular_kernel_risk(400, 1, 0.25, 0.5, 2.0, 0.25, 0.05)
    assert float(risk.variance) == pytest.approx(0.0144697583905187, rel=1e-12)
    assert float(risk.bias) == pytest.approx(0.0743542193916525, rel=1e-12)


def test_singular_kernel_risk_against_high_precision_integrals():
    n, d, a, beta, h = 25, 3, mpmath.mpf("0.7"), mpmath.mpf("0.6"), mpmath.mpf("0.5")
    with mpmath.workdps(25):
        q, inside = d / a, h**d

        def power(s, exponent):
            return (1 - inside + inside * q * mpmath.expint(q + 1, s)) ** exponent

        def integral(f):
            return mpmath.quad(f, [0, 0.01, 0.1, 0.5, 2, 8, 40])

        variance = n * inside * integral(lambda s: s * q * mpmath.expint(q - 1, s) * power(s, n - 1))
        same = n * inside * integral(lambda s: s * q * mpmath.expint(q - 1 + 2 * beta / a, s) * power(s, n - 1))
        cross = integral(lambda s: s * (q * mpmath.expint(q + beta / a, s)) ** 2 * power(s, n - 2))
        bias = h ** (2 * beta) * (same + n * (n - 1) * inside**2 * cross)
    found = smoothing.singular_kernel_risk(n, d, float(a), float(beta), 1.0, 1.0, float(h))
    assert float(found.variance) == pytest.approx(float(variance), rel=1e-11)
    assert float(found.bias) == pytest.approx(float(bias), rel=1e-11)


def test_a_vanishing_singularity_gives_the_plain_window_average():
    """For a → 0 the weights are equal: variance E[1/N; N ≥ 1] with N binomial."""
    n, inside = 40, 0.3
    counts = np.arange(1, n + 1)
    from scipy.stats import binom

    exact = np.sum(binom.pmf(counts, n, inside) / counts)
    gaps = []
    for a in (0.04, 0.02):
        risk = smoothing.singular_kernel_risk(n, 1, a, 1.0, 1.0, 1.0, inside)
        gaps.append(float(risk.variance) / exact - 1)
    assert 0 < gaps[1] < gaps[0] < 5e-3
    assert gaps[0] / gaps[1] == pytest.approx(4, rel=0.1)  # quadratic in a


def test_large_samples_reach_the_asymptotic_constants():
    limit = smoothing.singular_kernel_constants(2, 0.5, 1.0, 1.0, 1.0)
    gaps = []
    for n in (10**5, 10**7):
        risk = smoothing.singular_kernel_risk(n, 2, 0.5, 1.0, 1.0, 1.0, n**-0.25)
        gaps.append([float(n**0.5 * found / end) - 1 for found, end in zip(risk[:2], limit[:2], strict=True)])
    gaps = np.abs(gaps)
    assert np.all(gaps[1] < 2e-3)
    np.testing.assert_allclose(gaps[0] / gaps[1], 10, rtol=0.2)  # corrections in 1/(n h^d) = n^{-1/2}
