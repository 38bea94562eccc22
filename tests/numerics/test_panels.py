"""Rules against mpmath and SciPy."""

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad

from deeplimits.errors import ParameterError
from deeplimits.numerics import panels

EPS = np.finfo(float).eps


@pytest.mark.parametrize("count", [1, 2, 7, 40])
def test_gauss_is_exact_for_polynomials(count):
    rule = panels.gauss(count, -0.5, 2.0)
    for degree in (0, 1, 2 * count - 1):
        with mpmath.workdps(30):
            wanted = float((mpmath.mpf(2) ** (degree + 1) - mpmath.mpf(-0.5) ** (degree + 1)) / (degree + 1))
        # The rounding of a node counts as often as its power.
        assert abs(rule.integrate(rule.nodes**degree) - wanted) < 8 * EPS * (degree + count) * abs(wanted)


@pytest.mark.skipif(np.finfo(np.longdouble).eps == EPS, reason="no longer numbers on this machine")
@pytest.mark.parametrize("count", [3, 40, 200])
def test_nodes_and_weights_have_all_their_digits(count):
    nodes, weights = panels.gauss(count)
    with mpmath.workdps(40):
        for index in (0, 1, count // 2, count - 1):
            x = mpmath.mpf(nodes[index])
            for _ in range(3):
                value, slope = legendre(count, x)
                x -= value / slope
            weight = 2 / ((1 - x**2) * legendre(count, x)[1] ** 2)
            assert abs(nodes[index] - x) <= EPS / 2
            assert abs(weights[index] / weight - 1) <= 2 * EPS


def legendre(degree, x):
    """P_n(x) and its derivative by the recurrence."""
    before, value = mpmath.mpf(1), x
    for k in range(2, degree + 1):
        before, value = value, ((2 * k - 1) * x * value - (k - 1) * before) / k
    return value, degree * (before - x * value) / (1 - x**2)


def test_panels_agree_with_quad_across_a_kink():
    rule = panels.composite([-1.0, 0.3, 2.0], 20)
    wanted, error = quad(lambda x: abs(x - 0.3) * np.exp(x), -1, 2, points=[0.3], epsabs=1e-14)
    assert abs(rule.integrate(abs(rule.nodes - 0.3) * np.exp(rule.nodes)) - wanted) <= error
    many = panels.even(0.0, 100.0, 40, 16)
    with mpmath.workdps(30):
        wanted = float(mpmath.quad(lambda x: mpmath.cos(x) / (1 + x), np.linspace(0, 100, 65)))
    assert abs(many.integrate(np.cos(many.nodes) / (1 + many.nodes)) - wanted) < 1e-14


def test_half_line_agrees_with_mpmath():
    rule = panels.half_line(60, scale=2.0, start=1.0)
    with mpmath.workdps(30):
        wanted = float(mpmath.quad(lambda x: 1 / (x**2 + 4), [1, 10, mpmath.inf]))
    assert abs(rule.integrate(1 / (rule.nodes**2 + 4)) - wanted) < 1e-14


@pytest.mark.parametrize("count", [1, 5, 64, 300])
def test_hermite_agrees_with_mpmath_and_numpy(count):
    rule = panels.normal(count)
    assert abs(np.sum(rule.weights) - 1) < 4 * EPS
    # E z^{2k} = (2k − 1)!! up to degree 2n − 1, and E cos(sz) = e^{−s²/2}
    for k in range(min(count, 12)):
        wanted = float(mpmath.fac2(2 * k - 1)) if k else 1.0
        assert abs(rule.integrate(rule.nodes ** (2 * k)) - wanted) < 400 * EPS * wanted
    if count >= 64:
        # The rounding of a node counts three times.
        assert abs(rule.integrate(np.cos(3 * rule.nodes)) - np.exp(-4.5)) < 16 * EPS
    if count <= 64:
        nodes, weights = np.polynomial.hermite_e.hermegauss(count)
        np.testing.assert_allclose(rule.nodes, nodes, atol=1e-13)
        np.testing.assert_allclose(rule.weights, weights / np.sqrt(2 * np.pi), atol=1e-15)


def test_panels_that_shrink_towards_the_ends():
    rule = panels.towards_both_ends(0.0, np.pi, 8, 24, levels=45)
    # ∫ log sin = −π log 2
    assert abs(rule.integrate(np.log(np.sin(rule.nodes))) + np.pi * np.log(2)) < 1e-13
    rule = panels.towards_both_ends(-1.0, 1.0, 8, 24)
    with mpmath.workdps(30):
        wanted = float(mpmath.pi / 2)
    assert abs(rule.integrate(np.sqrt((1 - rule.nodes) * (1 + rule.nodes))) - wanted) < 1e-9


def test_rules_are_shared_and_safe():
    first = panels.gauss(8)
    first.nodes[0] = 5.0
    assert panels.gauss(8).nodes[0] != 5.0


def test_what_is_no_rule_is_refused():
    for count in (0, True, 2.5):
        with pytest.raises(ParameterError, match="count = "):
            panels.gauss(count)
    for ends in ([1.0], [0.0, 0.0], [[0.0, 1.0]]):
        with pytest.raises(ParameterError, match="increasing"):
            panels.composite(ends, 4)
