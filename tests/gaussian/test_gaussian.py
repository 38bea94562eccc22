"""Gaussian expectations and dual activations, against sixty digits and against a rule of another kind."""

import math

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from deeplimits.errors import NotConverged, OutsideValidity, ParameterError
from deeplimits.models.activations import Activation, activation, from_function
from deeplimits.theory.gaussian import dual, dual_derivative, expect, expect_pair, hermite_coefficients
from deeplimits.theory.gaussian.angles import angles
from deeplimits.theory.gaussian.dual_activations import dual_of
from deeplimits.theory.gaussian.pairs import coincident, pair

mp = mpmath.mp.clone()
mp.dps = 60

CORRELATIONS = (1 - 1e-12, 1.0, -1.0, 0.3, 0.0, -0.99)
VARIANCES = (0.0, 1e-6, 1.0, 1e6)
MIXED = ((2.0, 3.0), (1e6, 1.7e6), (3e-6, 0.5))


def grid():
    pairs = [(a, b) for a in VARIANCES for b in VARIANCES] + list(MIXED)
    return np.array([(a, b, rho * math.sqrt(a * b)) for a, b in pairs for rho in CORRELATIONS]).T


# The activation table of the theory, in sixty digits. s = √(ab), t = arccos ρ.


def _angle(a, b, c):
    scale = mp.sqrt(a * b)
    rho = min(max(c / scale, -1), 1) if scale else mp.mpf(0)
    return scale, rho, mp.acos(rho)


def _linear(positive, negative):
    p, q = mp.mpf(positive), mp.mpf(negative)

    def value(a, b, c):
        s, rho, t = _angle(a, b, c)
        return s * (p * q * rho + (p - q) ** 2 * (mp.sin(t) + (mp.pi - t) * rho) / (2 * mp.pi))

    def slope(a, b, c):
        return p * q + (p - q) ** 2 * (mp.pi - _angle(a, b, c)[2]) / (2 * mp.pi)

    return value, slope


def _jump(low):
    def value(a, b, c):
        if a == 0 or b == 0:
            return mp.mpf(0)
        both = (mp.pi - _angle(a, b, c)[2]) / (2 * mp.pi)
        return both if low == 0 else 4 * both - 1

    def slope(a, b, c):
        return (1 - low) ** 2 / (2 * mp.pi * mp.sqrt(a * b - c * c)) if a * b > c * c else mp.inf

    return value, slope


def _square_part():
    def j1(t):
        return mp.sin(t) + (mp.pi - t) * mp.cos(t)

    def j2(t):
        return 3 * mp.sin(t) * mp.cos(t) + (mp.pi - t) * (1 + 2 * mp.cos(t) ** 2)

    def value(a, b, c):
        s, _, t = _angle(a, b, c)
        return s**2 * j2(t) / (2 * mp.pi)

    def slope(a, b, c):
        s, _, t = _angle(a, b, c)
        return 4 * s * j1(t) / (2 * mp.pi)

    return value, slope


def _erf_slope(a, b, c):
    return 4 / mp.pi / mp.sqrt((1 + 2 * a) * (1 + 2 * b) - 4 * c * c)


def _lifted(a, b, c):
    return mp.asin(c / mp.sqrt((1 + a) * (1 + b))), (1 + a) * (1 + b) - c * c


def _gelu(a, b, c):
    arc, d = _lifted(a, b, c)
    bracket = a * b + c * c * (1 / (1 + a) + 1 / (1 + b) - 1)
    return c / 4 + c * arc / (2 * mp.pi) + bracket / (2 * mp.pi * mp.sqrt(d))


def _gelu_slope(a, b, c):
    arc, d = _lifted(a, b, c)
    return mp.mpf(1) / 4 + (arc + c / mp.sqrt(d) * (1 / (1 + a) + 1 / (1 + b) + 1 / d)) / (2 * mp.pi)


TABLE = {
    "identity": (lambda a, b, c: c, lambda a, b, c: mp.mpf(1)),
    "relu": _linear(1, 0),
    "leaky_relu(0.2)": _linear(1, 0.2),
    "abs": _linear(1, -1),
    "step": _jump(0),
    "sign": _jump(-1),
    "relu_power(2)": _square_part(),
    "erf": (lambda a, b, c: 2 / mp.pi * mp.asin(2 * c / mp.sqrt((1 + 2 * a) * (1 + 2 * b))), _erf_slope),
    "normal_cdf": (
        lambda a, b, c: mp.mpf(1) / 4 + _lifted(a, b, c)[0] / (2 * mp.pi),
        lambda a, b, c: 1 / (2 * mp.pi * mp.sqrt(_lifted(a, b, c)[1])),
    ),
    "gelu": (_gelu, _gelu_slope),
    "sin": (
        lambda a, b, c: mp.exp(-(a + b) / 2) * mp.sinh(c),
        lambda a, b, c: mp.exp(-(a + b) / 2) * mp.cosh(c),
    ),
    "cos": (
        lambda a, b, c: mp.exp(-(a + b) / 2) * mp.cosh(c),
        lambda a, b, c: mp.exp(-(a + b) / 2) * mp.sinh(c),
    ),
    "exp": (lambda a, b, c: mp.exp((a + b) / 2 + c),) * 2,
    "gaussian": (
        lambda a, b, c: 1 / mp.sqrt(_lifted(a, b, c)[1]),
        lambda a, b, c: c / _lifted(a, b, c)[1] ** mp.mpf("1.5"),
    ),
    "polynomial(0.5,1,0,2)": (
        lambda a, b, c: mp.mpf(1) / 4 + c + 2 * 3 * (a + b) * c + 4 * (6 * c**3 + 9 * a * b * c),
        lambda a, b, c: 1 + 6 * (a + b) + 36 * (a * b + 2 * c * c),
    ),
}
BOUNDED = {"step", "sign", "erf", "normal_cdf", "sin", "cos", "gaussian"}
BOUNDED_SLOPE = BOUNDED - {"step", "sign"} | {"identity", "relu", "leaky_relu(0.2)", "abs", "gelu"}


@pytest.mark.parametrize("name", TABLE)
def test_closed_forms_hold_to_thirteen_digits(name):
    a, b, c = grid()
    if name == "exp":
        a, b, c = (part[(a < 10) & (b < 10)] for part in (a, b, c))
    for function, exact, bounded in zip(
        (dual, dual_derivative), TABLE[name], (name in BOUNDED, name in BOUNDED_SLOPE), strict=True
    ):
        keep = np.ones(len(a), bool)
        if name in ("step", "sign") and function is dual_derivative:
            keep = (np.abs(c) < np.sqrt(a) * np.sqrt(b)) & (a * b > 0)
        found = np.asarray(function(name, a[keep], b[keep], c[keep]))
        assert np.all(np.isfinite(found))
        for value, *at in zip(found, a[keep], b[keep], c[keep], strict=True):
            u, v, w = (mp.mpf(x) for x in at)
            # A covariance that rounding put outside is as good as the one on the boundary.
            w = min(max(w, -mp.sqrt(u * v)), mp.sqrt(u * v))
            right = exact(u, v, w)
            scale = mp.mpf(1)
            if name in ("step", "sign") and function is dual_derivative:
                scale = right
            elif not bounded:
                scale = mp.sqrt(exact(u, u, u) * exact(v, v, v)) or mp.mpf(1)
            assert abs(mp.mpf(float(value)) - right) <= 1e-13 * scale, (name, function.__name__, at)


def trapezoid(f, g, a, b, c, step=0.22, reach=9.0):
    """E f(u)g(v) by the trapezoidal rule, which for analytic functions converges like exp(−2π·(width of strip)/h)."""
    root_a, root_b = math.sqrt(a), math.sqrt(b)
    rho = c / (root_a * root_b)
    rest = math.sqrt(max(1 - rho**2, 0.0))
    h = step / max(root_a, abs(rho) * root_b, 1.0)
    x = np.arange(-reach, reach + h, h)
    k = step / max(rest * root_b, 0.6)
    y = np.arange(-reach, reach + k, k) if rest else np.zeros(1)
    k = k if rest else math.sqrt(2 * math.pi)
    total = 0.0
    for block in np.array_split(x, max(1, len(x) * len(y) // 4_000_000)):
        v = root_b * (rho * block[:, None] + rest * y)
        inner = g(v) @ np.exp(-(y**2) / 2) * k
        total += float(np.sum(f(root_a * block) * inner * np.exp(-(block**2) / 2)) * h)
    return total / (2 * math.pi)


def sigmoid(u):
    return 1 / (1 + np.exp(-np.clip(u, -700, 700)))


def softplus(u):
    return np.maximum(u, 0) + np.log1p(np.exp(-np.abs(u)))


SMOOTH = {
    "tanh": (np.tanh, lambda u: 1 / np.cosh(np.clip(u, -350, 350)) ** 2),
    "sigmoid": (sigmoid, lambda u: sigmoid(u) * sigmoid(-u)),
    "swish": (lambda u: u * sigmoid(u), lambda u: sigmoid(u) + u * sigmoid(u) * sigmoid(-u)),
    "softplus": (softplus, sigmoid),
}
HARD = [
    (1.0, 1.0, 0.3),
    (1.3, 0.7, 0.5),
    (1.0, 1.0, 1.0),
    (1.0, 1.0, -1.0),
    (1.0, 1.0, 1 - 1e-12),
    (1e-6, 1.0, -0.99e-3),
    (1e-6, 1e-6, 0.3e-6),
    (400.0, 400.0, 120.0),
    (1e6, 1e6, 1e6),
    (1e6, 1e6, 1e6 * (1 - 1e-12)),
    (1e6, 1.0, 300.0),
]


@pytest.mark.parametrize(
    "name", ["tanh", *(pytest.param(one, marks=pytest.mark.slow) for one in SMOOTH if one != "tanh")]
)
def test_numerical_duals_hold_to_ten_digits(name):
    a, b, c = np.array(HARD).T
    for function, numpy_function in zip((dual, dual_derivative), SMOOTH[name], strict=True):
        found = np.asarray(function(name, a, b, c))
        for value, at in zip(found, HARD, strict=True):
            right = trapezoid(numpy_function, numpy_function, *at)
            scale = 1.0
            if name in ("swish", "softplus") and function is dual:
                ends = (trapezoid(numpy_function, numpy_function, v, v, v) for v in at[:2])
                scale = max(1.0, math.sqrt(math.prod(ends)))
            assert abs(value - right) <= 1e-10 * scale, (name, function.__name__, at, value, right)


REFERENCE = {  # (K, K̇) at (1.3, 0.7, 0.5)
    "relu": (0.29820159977961, 0.33780702556598),
    "leaky_relu(0.2)": (0.29084902385895, 0.41619649636223),
    "abs": (0.69280639911844, 0.35122810226392),
    "step": (0.33780702556598, 0.19590619241912),
    "erf": (0.22099422849465, 0.46064190051222),
    "sin": (0.1917002497821, 0.41483040993053),
    "gelu": (0.22152597254372, 0.34460398039752),
    "normal_cdf": (0.29068574574474, 0.083191621436349),
    "gaussian": (0.52270837348932, 0.071408247744442),
    "relu_power(2)": (0.67025503654296, 1.1928063991184),
    "relu_power(3)": (2.4628898147756, 6.0322953288867),
}


@pytest.mark.parametrize("name", REFERENCE)
def test_reference_values(name):
    value, slope = REFERENCE[name]
    assert abs(dual(name, 1.3, 0.7, 0.5) - value) < 1e-13 * max(1, value)
    assert abs(dual_derivative(name, 1.3, 0.7, 0.5) - slope) < 1e-13 * max(1, slope)


def _gradients(function, name, a, b, c):
    return np.array(jax.jit(jax.vmap(jax.grad(lambda *at: function(name, *at), (0, 1, 2))))(a, b, c))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in ("relu", "step", "erf", "gelu", "sin") else pytest.mark.slow)
        for name in (*TABLE, "tanh")
    ],
)
def test_gradients_are_finite_and_obey_prices_theorem(name):
    a, b, c = grid()
    if name == "tanh":
        a, b, c = np.array([*HARD[:6], (0.0, 1.0, 0.0), (0.0, 0.0, 0.0), (1e6, 1e6, 1e6)]).T
    if name == "exp":
        a, b, c = (part[(a < 10) & (b < 10)] for part in (a, b, c))
    at = np.array([1.3, 0.7, 0.5])
    points = [np.append(part, last) for part, last in zip((a, b, c), at, strict=True)]
    alive = a * b > 0
    inner = points
    if name in ("step", "sign"):
        # Their E σ'σ' is infinite at c² = ab, and refused there.
        alive &= np.abs(c) < np.sqrt(a) * np.sqrt(b) * (1 - 1e-9)
        inner = [part[np.append(alive, True)] for part in points]
    found = {dual: _gradients(dual, name, *points), dual_derivative: _gradients(dual_derivative, name, *inner)}
    assert np.all(np.isfinite(found[dual]))
    if name in ("step", "sign"):
        scale = np.ones(alive.sum())
    else:
        assert np.all(np.isfinite(found[dual_derivative]))
        ends = [np.asarray(dual_derivative(name, part, part, part)) for part in (a, b)]
        scale = np.sqrt(math.prod(ends))[alive]
    price = np.asarray(dual_derivative(name, a[alive], b[alive], c[alive]))
    by_c = found[dual][2][:-1][alive]
    # Of an even function of size one a slope of size 1e-6 keeps the rounding of one.
    assert np.all(np.abs(by_c - price) <= 1e-12 * np.maximum(scale, np.abs(price)) + 1e-15)
    # At a generic point, against differences of fourth order.
    h = 1e-4
    shifts = [at + sign * step * h * e for e in np.eye(3) for step, sign in ((1, 1), (1, -1), (2, 1), (2, -1))]
    for function, gradients in found.items():
        values = np.asarray(function(name, *np.array(shifts).T)).reshape(3, 4)
        differences = (8 * (values[:, 0] - values[:, 1]) - (values[:, 2] - values[:, 3])) / (12 * h)
        np.testing.assert_allclose(gradients[:, -1], differences, rtol=1e-8, atol=1e-9)


@pytest.mark.slow
def test_kinks_of_ones_own():
    """max(u − κ, 0) has no closed form here; its jump at κ is seen by value, slope and their derivatives."""
    sigma = from_function(lambda u: jnp.maximum(u - 0.4, 0.0), kinks=(0.4,), name="shifted relu")
    at, h = np.array([1.3, 0.7, 0.5]), 1e-4
    conditional = math.sqrt(0.7 - 0.25 / 1.3)

    def inner(u):
        t = (0.5 / 1.3 * u - 0.4) / conditional
        return conditional * (t * mpmath.ncdf(t) + mpmath.npdf(t))

    exact = mpmath.quad(lambda u: (u - 0.4) * inner(u) * mpmath.npdf(u, 0, mpmath.sqrt(1.3)), [0.4, 2, 5, 14])
    assert abs(float(dual(sigma, *at)) - exact) < 1e-13
    shifts = [at + sign * h * e for e in np.eye(3) for sign in (1, -1)]
    values = np.asarray(dual_derivative(sigma, *np.array(shifts).T)).reshape(3, 2)
    found = _gradients(dual_derivative, sigma, *at[:, None])[:, 0]
    np.testing.assert_allclose(found, (values[:, 0] - values[:, 1]) / (2 * h), rtol=1e-6)
    jumping = Activation("my step", lambda u: jnp.where(u > 0, 1.0, 0.0), jnp.zeros_like, jnp.zeros_like, (0.0,), False)
    slope = _gradients(dual, jumping, *at[:, None])[2, 0]
    assert abs(slope - dual_derivative("step", *at)) < 1e-12


def test_zero_variance():
    """A variable of variance 0 is the constant 0: E σ(u)σ(v) = σ(0) E σ(v)."""
    for name in ("cos", "normal_cdf", "softplus"):
        sigma = activation(name)
        mean = expect(sigma.value, 2.0, kinks=sigma.kinks).value
        assert abs(dual(name, 0.0, 2.0, 0.0) - sigma.value(jnp.zeros(())) * mean) < 1e-14


@pytest.mark.parametrize("gap", [1e-300, 1e-20, 1e-8, 0.1, 0.4999, 0.5001, 1.0, 1.4999, 1.5001, 1.9, 2 - 1e-9])
def test_angles(gap):
    found = angles(jnp.asarray(gap), jnp.asarray(2 - gap))
    theta = 2 * mp.asin(mp.sqrt(mp.mpf(gap) / 2))
    assert abs(float(found[0]) - theta) <= 1e-15 * min(1.0, float(theta)) + 1e-15 * (gap > 0.5)
    assert abs(float(found[1]) - (mp.pi - theta)) <= 1e-15


def test_pairs_keep_the_determinant():
    where = pair(1.0, 1.0, 1 - 1e-12)
    exact = 1 - mp.mpf(1 - 1e-12)
    assert abs(float(where.gap) - exact) < 2e-16 * exact
    assert float(coincident(3.0).gap) == 0.0
    assert abs(float(pair(2.0, 3.0, 1.0).determinant) - 5) < 1e-14


def test_expectations_report_their_error():
    exact = expect(lambda u: u**4, np.array([0.0, 1e-6, 1.0, 1e6]))
    np.testing.assert_allclose(exact.value, [0.0, 3e-12, 3.0, 3e12], rtol=1e-13)
    assert np.all(np.asarray(exact.error) <= 1e-12 * np.maximum(np.asarray(exact.value), 1e-300))
    named = expect(lambda u: jnp.abs(u - 0.3), kinks=(0.3,))
    right = 2 * float(mpmath.npdf(0.3)) + 0.3 * (2 * float(mpmath.ncdf(0.3)) - 1)
    assert abs(named.value - right) < 1e-14
    with pytest.raises(NotConverged, match="kinks"):
        expect(lambda u: jnp.abs(u - 0.3))
    with pytest.raises(NotConverged, match="kinks"):
        expect_pair(lambda u: jnp.abs(u - 0.3), jnp.tanh, 1.0, 1.0, 0.5)
    with pytest.raises(NotConverged, match="kinks"):
        dual(lambda u: jnp.abs(u - 0.3), 1.0, 1.0, 0.5)  # before the costly rule is compiled
    mixed = expect_pair(lambda u: u, jnp.exp, 1.3, 0.7, np.array([0.0, 0.5]))
    np.testing.assert_allclose(mixed.value, [0.0, 0.5 * math.exp(0.35)], atol=1e-13)


@pytest.mark.parametrize(
    "attempt",
    [
        lambda: expect(lambda u: jnp.exp(u**2)),
        lambda: expect(lambda u: jnp.exp(u**2 / 2)),
        lambda: expect(jnp.exp, 400.0),
        lambda: expect(jnp.log),
        lambda: expect_pair(lambda u: jnp.exp(u**2 / 3), lambda v: jnp.exp(v**2 / 3), 1.0, 1.0, 0.5),
        lambda: dual(lambda u: jnp.exp(u**2), 1.0, 1.0, 0.5),
        lambda: dual("exp", 1e6, 1e6, 0.0),
        lambda: dual_derivative("step", 1.0, 1.0, 1.0),
    ],
)
def test_what_does_not_exist_is_refused(attempt):
    with pytest.raises(OutsideValidity, match="finite"):
        attempt()


@pytest.mark.parametrize("at", [(-1.0, 1.0, 0.0), (1.0, 1.0, 1.1), (1.0, math.nan, 0.0), (1.0, 1.0, math.inf)])
def test_impossible_covariances_are_refused(at):
    for attempt in (lambda: dual("relu", *at), lambda: expect_pair(jnp.sin, jnp.sin, *at)):
        with pytest.raises(ParameterError, match="is not allowed"):
            attempt()


def test_tolerance_must_be_positive():
    with pytest.raises(ParameterError, match="tolerance"):
        expect(jnp.sin, tolerance=0.0)


def test_hermite_coefficients_of_activations():
    found = hermite_coefficients(activation("relu").value, 4)
    exact = [1 / math.sqrt(2 * math.pi), 0.5, 1 / math.sqrt(4 * math.pi), 0.0, -1 / math.sqrt(48 * math.pi)]
    np.testing.assert_allclose(found.coefficients, exact, atol=1e-14)
    assert found.vanishes().tolist() == [False, False, False, True, False]
    # Mehler: the dual of unit variances is the power series with squared coefficients.
    series = hermite_coefficients(activation("gelu").value, 60).coefficients ** 2
    assert abs(np.polyval(series[::-1], 0.6) - dual("gelu", 1.0, 1.0, 0.6)) < 1e-13


def test_duals_are_found_once():
    assert dual_of("tanh") == dual_of("tanh")
