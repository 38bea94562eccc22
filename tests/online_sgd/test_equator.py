"""Where a random start lies: the law of the equator, by quadrature."""

import mpmath
import numpy as np
import pytest
from scipy import stats

from deeplimits.errors import ParameterError
from deeplimits.theory.online_sgd import equator


@pytest.mark.parametrize("dimension", [2, 3, 4, 17, 1000])
def test_equator_law(dimension):
    n = dimension
    with mpmath.workdps(30):
        edge = mpmath.sqrt(n)
        # In the angle, m = sin φ, the density is cos^{n−2} φ: smooth for every n.
        total = mpmath.quad(lambda a: mpmath.cos(a) ** (n - 2), [-mpmath.pi / 2, 0, mpmath.pi / 2])

        def mean(f):
            inside = mpmath.quad(
                lambda a: f(edge * mpmath.sin(a)) * mpmath.cos(a) ** (n - 2), [-mpmath.pi / 2, 0, mpmath.pi / 2]
            )
            return float(inside / total)

        fourth = mean(lambda u: u**4)
        start = mpmath.asin(1 / edge)
        tail = float(2 * mpmath.quad(lambda a: mpmath.cos(a) ** (n - 2), [start, mpmath.pi / 2]) / total)
        height = float(mpmath.cos(0.3) ** (n - 3) / total)
    assert equator.fourth_moment(n) == pytest.approx(fourth, rel=1e-10)
    assert float(equator.equator_exceedance(1.0, n)) == pytest.approx(tail, rel=1e-10)
    assert float(equator.equator_density(float(mpmath.sin(0.3)), n)) == pytest.approx(height, rel=1e-10)


def test_equator_reference_values():
    assert float(equator.equator_exceedance(2.0, 100)) == pytest.approx(0.04493472521, rel=1e-9)
    assert float(equator.equator_exceedance(0.1 * 1000**0.5, 1000)) == pytest.approx(0.001535713842, rel=1e-9)
    assert float(equator.equator_exceedance(3.0, 4)) == 0
    for bad in (
        equator.fourth_moment,
        lambda n: equator.equator_density(0.1, n),
        lambda n: equator.equator_exceedance(1.0, n),
    ):
        with pytest.raises(ParameterError, match="dimension = 1"):
            bad(1)


def test_the_equator_approaches_the_gaussian_like_one_over_n():
    u = np.linspace(0.05, 3, 60)
    gaussian = 2 * (1 - equator.gaussian_law(u)[1])
    # log of (1 − u²/n)^((n−3)/2), expanded and integrated: the first order in 1/n is u(3 − u²)φ(u)/2
    first = u * (3 - u**2) * stats.norm.pdf(u) / 2
    left = [np.max(np.abs(n * (equator.equator_exceedance(u, n) - gaussian) - first)) for n in (100, 1000, 10000)]
    assert left[0] < 0.02
    np.testing.assert_allclose(np.divide(left[:-1], left[1:]), 10, rtol=3 / 100)  # the next order, 3/n
    assert np.all(np.asarray(equator.equator_exceedance(u, 50)) <= np.asarray(equator.tail_bound(u)))
