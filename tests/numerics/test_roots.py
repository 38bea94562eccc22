"""Zeros against SciPy and mpmath, gradients against implicit differentiation, failures that are heard everywhere."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar

from deeplimits.errors import NotConverged
from deeplimits.numerics import roots
from deeplimits.numerics.checks import aloud


def cubic(x, a, b):
    return x**3 + a * x - b


def kepler(x, mean, eccentricity):
    return x - eccentricity * jnp.sin(x) - mean


def falls_from_infinity(u, gain):
    # ±∞ is a sign too.
    return gain / u - u


EPS = np.finfo(float).eps


def test_many_zeros_at_once_agree_with_brentq():
    a, b = np.meshgrid(np.linspace(0.1, 4.0, 7), np.linspace(-3.0, 5.0, 6))
    found = roots.bracketed(cubic, -10.0, 10.0, jnp.asarray(a), jnp.asarray(b))
    wanted = [brentq(cubic, -10, 10, args=pair, xtol=1e-300, rtol=4 * EPS) for pair in zip(a.flat, b.flat, strict=True)]
    assert np.max(np.abs(np.asarray(found).ravel() / wanted - 1)) < 20 * EPS
    on_host = roots.on_host(lambda x: cubic(x, a, b), np.full(a.shape, -10.0), np.full(a.shape, 10.0))
    np.testing.assert_allclose(on_host, found, rtol=20 * EPS)


@pytest.mark.parametrize("eccentricity", [0.0, 0.3, 0.99, 0.9999])
@pytest.mark.parametrize("mean", [1e-9, 0.5, 3.0])
def test_kepler_agrees_with_mpmath(mean, eccentricity):
    with mpmath.workdps(40):
        wanted = mpmath.findroot(
            lambda x: x - mpmath.mpf(eccentricity) * mpmath.sin(x) - mpmath.mpf(mean),
            (0, 4),
            solver="anderson",
            tol=1e-60,
        )
        # What the rounding of the equation itself allows.
        slope = float(1 - mpmath.mpf(eccentricity) * mpmath.cos(wanted))
    found = float(roots.bracketed(kepler, 0.0, 4.0, mean, eccentricity))
    assert abs(found - float(wanted)) <= 8 * EPS * (float(wanted) + mean) / slope


def test_ends_that_are_zeros_infinite_values_and_zeros_at_zero():
    assert float(roots.bracketed(cubic, 0.0, 1.0, 1.0, 0.0)) == 0.0
    assert float(roots.bracketed(cubic, -1.0, 0.0, 1.0, 0.0)) == 0.0
    assert abs(float(roots.bracketed(cubic, -1.0, 2.0, 1.0, 0.0))) < EPS**1.5
    assert float(roots.bracketed(falls_from_infinity, 0.0, 100.0, 9.0)) == 3.0
    assert roots.on_host(lambda x: x, np.zeros(0), np.zeros(0)).shape == (0,)


def test_high_order_zeros_and_steep_functions_need_few_steps():
    calls = []

    def counted(x):
        calls.append(1)
        return np.expm1(40 * (x - 0.3))

    assert abs(roots.on_host(counted, np.array([0.0]), np.array([1.0]))[0] - 0.3) < 4 * EPS
    assert len(calls) < 20
    found = roots.on_host(lambda x: (x - 0.3) ** 9, np.array([0.0]), np.array([1.0]))
    assert abs(found[0] - 0.3) < 4 * EPS


def test_gradients_are_those_of_the_implicit_function():
    def solve(a, b):
        return roots.bracketed(cubic, -10.0, 10.0, a, b)

    a, b = 1.3, 2.1
    x = float(solve(a, b))
    slope = 3 * x**2 + a
    da, db = -x / slope, 1 / slope
    np.testing.assert_allclose(jax.grad(solve, (0, 1))(a, b), (da, db), rtol=1e-14)
    np.testing.assert_allclose(jax.jacfwd(solve, (0, 1))(a, b), (da, db), rtol=1e-14)
    np.testing.assert_allclose(jax.jit(jax.grad(solve))(a, b), da, rtol=1e-14)
    # x'' = −6x x'²/(3x² + a) in b
    np.testing.assert_allclose(jax.grad(jax.grad(solve, 1), 1)(a, b), -6 * x * db**2 / slope, rtol=1e-13)
    jacobian = jax.jacrev(solve, 1)(jnp.array([a, 2.0]), jnp.array([b, 0.5]))
    np.testing.assert_allclose(jacobian[0], [db, 0.0], rtol=1e-14)


def test_entries_not_asked_for_are_left_alone():
    asked = jnp.array([True, False])

    def solve(b):
        return roots.bracketed(cubic, 0.0, 10.0, 1.0, b, where=asked)

    assert solve(jnp.array([2.0, -5.0])).tolist() == [1.0, 0.0]
    np.testing.assert_allclose(jax.jacrev(solve)(jnp.array([2.0, -5.0])), [[0.25, 0.0], [0.0, 0.0]], rtol=1e-14)


def test_optional_zeros():
    def solve(b):
        return roots.bracketed(cubic, 0.0, 10.0, 1.0, b, optional=True)

    b = jnp.array([2.0, -5.0])
    assert solve(b).tolist() == jax.jit(solve)(b).tolist() == [1.0, 0.0]
    np.testing.assert_allclose(jax.jacrev(solve)(b), [[0.25, 0.0], [0.0, 0.0]], rtol=1e-14)


def solve_in_unit_interval(b):
    return roots.bracketed(cubic, 0.0, 1.0, 1.0, b, sentence="the cubic has no zero there")


@pytest.mark.parametrize(
    "call",
    [
        lambda: solve_in_unit_interval(5.0),
        lambda: jax.jit(solve_in_unit_interval)(5.0),
        lambda: jax.grad(solve_in_unit_interval)(5.0),
        lambda: jax.jit(jax.grad(solve_in_unit_interval))(5.0),
        lambda: jax.vmap(solve_in_unit_interval)(jnp.array([1.0, 5.0])),
        lambda: jax.jit(jax.vmap(solve_in_unit_interval))(jnp.array([1.0, 5.0])),
        lambda: roots.on_host(lambda x: cubic(x, 1.0, 5.0), np.zeros(1), np.ones(1), "the cubic has no zero there"),
    ],
)
def test_no_zero_is_an_error_traced_or_not(call):
    with pytest.raises(NotConverged, match="the cubic has no zero there"), aloud("test"):
        jax.block_until_ready(call())


def test_poles_jumps_and_nan_are_no_zeros():
    for function in (lambda x: 1 / (x - 0.3), lambda x: np.sign(x - 0.3), lambda x: np.where(x < 0.3, np.nan, 1.0)):
        with pytest.raises(NotConverged, match="does not change its sign"):
            roots.on_host(function, np.zeros(1), np.ones(1))


def test_newton_in_a_bracket_agrees_with_brentq_and_on_host():
    levels = np.linspace(-0.999, 0.999, 31)

    def rising(x):
        return np.tanh(5 * x) - levels, 5 / np.cosh(5 * x) ** 2

    ends = np.full(31, -2.0), np.full(31, 2.0)
    found = roots.newton(rising, *ends)
    wanted = [brentq(lambda x, level=level: np.tanh(5 * x) - level, -2, 2, xtol=1e-300) for level in levels]
    # What the rounding of tanh allows
    allowed = 4 * EPS / rising(found)[1] + 4 * EPS
    assert np.all(abs(found - wanted) <= allowed)
    assert np.all(abs(found - roots.on_host(lambda x: rising(x)[0], *ends)) <= allowed)
    # From a good start few calls are needed, and values within their noise end the search.
    calls = []

    def counted(x):
        calls.append(1)
        return rising(x)

    roots.newton(counted, *ends, start=found + 1e-6, rest=1e-13, noise=1e-16)
    assert len(calls) <= 5
    with pytest.raises(NotConverged, match="no such level"):
        roots.newton(
            lambda x: (np.where(x < 0.3, np.nan, 1.0), np.ones(1)), np.zeros(1), np.ones(1), sentence="no such level"
        )


def test_where_a_condition_switches():
    edges = np.array([0.1, 0.5, 0.9])
    off, on = roots.switch(lambda x: x >= edges, np.zeros(3), np.ones(3))
    assert np.all((off < edges) & (edges <= on))
    assert np.all(on - off <= 2 * EPS * on)
    # From the other side, and only roughly
    off, on = roots.switch(lambda x: x < edges, np.ones(3), np.zeros(3), halvings=10)
    assert np.all((on < edges) & (edges <= off))
    np.testing.assert_allclose(off - on, 2.0**-10)
    assert roots.switch(lambda x: x > 0, np.zeros(0), np.zeros(0))[0].shape == (0,)


def test_peaks_agree_with_scipy():
    shifts = np.array([0.2, 1.0, 3.0])

    def concave(x, shift):
        with np.errstate(divide="ignore"):
            return np.log(x) + shift * np.log(5 - x)

    found = roots.peak(lambda x: concave(x, shifts), np.zeros(3), np.full(3, 5.0))
    # Also at the ends, where the function is −∞: 1/x = s/(5 − x)
    np.testing.assert_allclose(found, 5 / (1 + shifts), rtol=1e-7)
    for value, shift in zip(found, shifts, strict=True):
        wanted = minimize_scalar(lambda x, shift=shift: -concave(x, shift), bounds=(0, 5), method="bounded").x
        assert value == pytest.approx(wanted, rel=1e-5)
