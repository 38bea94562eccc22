"""The Tracy-Widom laws against Fredholm determinants in high precision, and at the edge of simulated matrices."""

import mpmath
import numpy as np
import pytest

from deeplimits.errors import ParameterError
from deeplimits.theory.spectra import laws, painleve
from deeplimits.theory.spectra import tracy_widom as tw

ORDER = 44


def gauss_legendre(order):
    """Nodes and weights in the working precision of mpmath."""
    found = []
    for guess in np.polynomial.legendre.leggauss(order)[0]:
        x = mpmath.mpf(guess)
        for _ in range(6):
            before, here = mpmath.mpf(1), x
            for k in range(2, order + 1):
                before, here = here, ((2 * k - 1) * x * here - (k - 1) * before) / k
            slope = order * (x * here - before) / (x * x - 1)
            x -= here / slope
        found.append((x, 2 / ((1 - x * x) * slope * slope)))
    return found


def determinants(s):
    """det(1 − B) and det(1 + B) with B of kernel Ai(x + y + s) on (0, ∞), to about 25 digits."""
    length = mpmath.mpf(14 if s > -4 else 11 - s)
    nodes = [(length * (x + 1) / 2, mpmath.sqrt(length * w / 2)) for x, w in gauss_legendre(ORDER)]
    matrix = mpmath.matrix(ORDER, name=ORDER)
    for i, (x, wx) in enumerate(nodes):
        for j, (y, wy) in enumerate(nodes[: i + 1]):
            matrix[i, j] = matrix[j, i] = wx * wy * mpmath.airyai(x + y + s)
    identity = mpmath.eye(ORDER)
    return mpmath.det(identity - matrix), mpmath.det(identity + matrix)


@pytest.mark.parametrize("s", [-8.0, -2.9, 0.5, 7.0])
def test_against_determinants_in_high_precision(s):
    with mpmath.workdps(34):
        minus, plus = determinants(mpmath.mpf(s))
        for beta, exact in ((1, minus), (2, minus * plus), (4, (minus + plus) / 2)):
            assert abs(mpmath.mpf(float(tw.tracy_widom_cdf(s, beta))) - exact) < 1e-12
            assert abs(mpmath.mpf(float(tw.tracy_widom_cdf(s, beta))) / exact - 1) < 1e-8
            assert abs(mpmath.mpf(float(tw.tracy_widom_sf(s, beta))) / (1 - exact) - 1) < 1e-8


@pytest.mark.parametrize("beta", [1, 2, 4])
def test_the_two_representations_agree(beta):
    s = np.linspace(-4.5, 0.0, 10)
    one, two = tw._by_determinant(s, beta), tw._by_painleve(s, beta)
    np.testing.assert_allclose(np.exp(one.log_cdf), np.exp(two.log_cdf), atol=1e-12)
    np.testing.assert_allclose(one.slope, two.slope, rtol=1e-8)


def test_left_tail_has_the_known_asymptotics():
    # log F₂ = −|s|³/12 − log|s|/8 + (log 2)/24 + ζ'(−1) + 3/(64|s|³) + …
    constant = np.log(2) / 24 + float(mpmath.zeta(-1, derivative=1))
    for t in (20.0, 60.0):
        known = -(t**3) / 12 - np.log(t) / 8 + constant + 3 / (64 * t**3)
        assert float(tw.tracy_widom_logcdf(-t, 2)) == pytest.approx(known, abs=1e-8)


def test_hastings_mcleod_solution():
    found = painleve.hastings_mcleod()
    assert float(found.solution(0.0)) == pytest.approx(0.367061551548078, abs=1e-13)
    s = np.linspace(-13.5, 6.0, 40)
    q = found.solution(s)
    np.testing.assert_allclose(found.solution.deriv(2)(s), s * q + 2 * q**3, atol=1e-8)
    # ∫_s^∞ q² = q'² − sq² − q⁴
    np.testing.assert_allclose(found.second_integral(s), found.slope(s) ** 2 - s * q**2 - q**4, atol=1e-10)


def test_densities_are_derivatives_and_moments_known():
    for beta, mean in ((1, -1.2065335745820), (2, -1.7710868074116)):
        s, h = np.array([-15.0, -5.0, -3.0, -1.0, 2.0, 8.0]), 1e-4
        change = np.asarray(tw.tracy_widom_logcdf(s + h, beta)) - np.asarray(tw.tracy_widom_logcdf(s - h, beta))
        np.testing.assert_allclose(
            change / (2 * h), tw.tracy_widom_pdf(s, beta) / tw.tracy_widom_cdf(s, beta), rtol=1e-6
        )
        assert tw.tracy_widom_moment(1, beta) == pytest.approx(mean, abs=1e-10)
        assert tw.tracy_widom_moment(0, beta) == pytest.approx(1, abs=1e-12)
    assert float(tw.tracy_widom_sf(0.0, 1)) == pytest.approx(0.16809, abs=5e-6)
    np.testing.assert_allclose(
        tw.tracy_widom_cdf(tw.tracy_widom_quantile([1e-9, 0.2, 0.999], 4), 4), [1e-9, 0.2, 0.999], rtol=1e-9
    )


def test_largest_eigenvalue_of_noise():
    rng, n, p = np.random.default_rng(0), 120, 60
    largest = []
    for _ in range(400):
        x = rng.standard_normal((n, p))
        largest.append(np.linalg.norm(x, 2) ** 2 / n)
    levels = np.sort(np.asarray(tw.largest_eigenvalue_pvalue(np.array(largest), n, p)))
    # p-values of noise are uniform: Kolmogorov's distance at level 1e-5 is 2.47/√400.
    assert np.max(np.abs(levels - (np.arange(400) + 0.5) / 400)) < 2.47 / 20
    # A population of one eigenvalue gives the same edge up to the halves of the centring.
    general = tw.population_edge(laws.sample_covariance([1.0], p / n), n)
    assert general.scale == pytest.approx(tw.white_edge(n, p).scale, rel=0.02)
    assert general.centre == pytest.approx(tw.white_edge(n, p).centre, abs=0.3 * general.scale)


def test_bad_input_is_refused():
    with pytest.raises(ParameterError, match="beta = 3"):
        tw.tracy_widom_cdf(0.0, 3)
    with pytest.raises(ParameterError, match="outside"):
        tw.tracy_widom_quantile(1.0)
    with pytest.raises(ParameterError, match="samples = 1"):
        tw.largest_eigenvalue_pvalue(3.0, 1, 10)
    with pytest.raises(ParameterError, match="variance = -2"):
        tw.largest_eigenvalue_pvalue(3.0, 100, 10, variance=-2.0)
    with pytest.raises(ParameterError, match="NaN"):
        tw.tracy_widom_sf(np.nan)
