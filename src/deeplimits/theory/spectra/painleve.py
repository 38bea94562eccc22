"""The Hastings-McLeod solution of Painlevé II, q'' = sq + 2q³, q(s) ~ Ai(s) at +∞ and √(−s/2) at −∞.

Initial value problems for q are unstable in both directions; a boundary value problem is not. It is solved by Chebyshev
collocation and Newton's method, with the asymptotic series as left and the Airy function as right boundary value.
"""

import functools
from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray
from scipy.special import airy

from deeplimits.errors import NotConverged
from deeplimits.numerics import panels

LEFT, RIGHT, DEGREE = -14.0, 10.0, 180
TERMS = 12


class HastingsMcLeod(NamedTuple):
    """Chebyshev series on [LEFT, RIGHT] of q, and of its integrals from s to infinity."""

    solution: chebyshev.Chebyshev
    slope: chebyshev.Chebyshev
    first_integral: chebyshev.Chebyshev
    """∫_s^∞ q."""
    second_integral: chebyshev.Chebyshev
    """∫_s^∞ q² = (log F₂)'."""
    log_f2: chebyshev.Chebyshev
    """−∫_s^∞ (x − s) q²."""


@functools.cache
def left_series() -> NDArray:
    """Coefficients a_k of q = √(−s/2) Σ a_k (−s)^{−3k}, from the equation itself."""
    # With t = −s, q = √(t/2) f, f = Σ a_k t^{−3k}: q'' = −tq + 2q³ becomes t^{-1/2}(t^{1/2}f)'' = −t f + t f³.
    a = np.zeros(TERMS)
    a[0] = 1.0
    for k in range(1, TERMS):
        # Left side at order t^{1−3k}: power p = 1/2 − 3(k−1) of t^{1/2}f has second derivative p(p − 1).
        power = 0.5 - 3 * (k - 1)
        left = power * (power - 1) * a[k - 1]
        # Right side: −a_k + [f³]_k, in which a_k itself occurs three times.
        cube = np.convolve(np.convolve(a[: k + 1], a[: k + 1])[: k + 1], a[: k + 1])[k]
        a[k] = (left - cube) / 2
    return a


def left_solution(s: NDArray) -> NDArray:
    """q(s) for s ≤ LEFT, by the series cut at its smallest term."""
    t = -np.asarray(s, float)
    terms = left_series() * t[..., None] ** (-3.0 * np.arange(TERMS))
    return np.sqrt(t / 2) * np.sum(terms, axis=-1)


@functools.cache
def hastings_mcleod() -> HastingsMcLeod:
    """Solve once; the residual of the equation is checked."""
    nodes = -np.cos(np.pi * np.arange(DEGREE + 1) / DEGREE)
    s = LEFT + (RIGHT - LEFT) * (nodes + 1) / 2
    # Differentiation in the values at the Chebyshev points.
    signs = (-1.0) ** np.arange(DEGREE + 1) * np.where((np.arange(DEGREE + 1) % DEGREE) == 0, 2.0, 1.0)
    difference = nodes[:, None] - nodes[None, :] + np.eye(DEGREE + 1)
    derivative = signs[:, None] / signs[None, :] / difference
    derivative -= np.diag(derivative.sum(axis=1))
    derivative *= 2 / (RIGHT - LEFT)
    second = derivative @ derivative
    q = np.sqrt(np.log1p(np.exp(-2 * np.clip(s, -50, 50))) / 4)
    ends = left_solution(np.array([LEFT]))[0], airy(RIGHT)[0]
    residual = np.inf
    for _ in range(60):
        defect = second @ q - s * q - 2 * q**3
        defect[[0, -1]] = q[0] - ends[0], q[-1] - ends[1]
        matrix = second - np.diag(s + 6 * q**2)
        matrix[[0, -1]] = np.eye(DEGREE + 1)[[0, -1]]
        step = np.linalg.solve(matrix, defect)
        q = q - step
        residual = float(np.max(np.abs(step)))
        if residual < 1e-12:
            break
    else:
        raise NotConverged(f"Painlevé II: the last Newton step was {residual:.1e} (tolerance 1e-12)")
    series = chebyshev.Chebyshev(chebyshev.chebfit(nodes, q, DEGREE), domain=[LEFT, RIGHT])
    beyond = _beyond_right()
    first = _integral_to_infinity(series, beyond[0])
    square = chebyshev.Chebyshev.interpolate(lambda x: series(x) ** 2, 2 * DEGREE, domain=[LEFT, RIGHT])
    energy = _integral_to_infinity(square, beyond[1])
    log_f2 = -_integral_to_infinity(energy, beyond[2])
    return HastingsMcLeod(series, series.deriv(), first, energy, log_f2)


def _integral_to_infinity(function, beyond):
    """The series of s ↦ ∫_s^RIGHT f + what lies beyond."""
    primitive = function.integ()
    return float(primitive(RIGHT)) + beyond - primitive


def _beyond_right():
    """∫q, ∫q² and ∫∫q² beyond RIGHT, where q is the Airy function to double precision."""
    x, w = panels.gauss(60, RIGHT, RIGHT + 12.0)
    ai = airy(x)[0]
    return float(w @ ai), float(w @ ai**2), float(w @ ((x - RIGHT) * ai**2))


class Left(NamedTuple):
    """∫_s^∞ q, ∫_s^∞ q² and log F₂ left of LEFT."""

    first_integral: NDArray
    second_integral: NDArray
    log_f2: NDArray


def beyond_left(s: NDArray) -> Left:
    """The integrals for s ≤ LEFT: those at LEFT, continued by the asymptotic series integrated term by term."""
    a, k = left_series(), np.arange(TERMS)
    solved = hastings_mcleod()
    t, start = -np.asarray(s, float)[..., None], -LEFT
    square = np.convolve(a, a)[:TERMS] / 2

    def primitive(power, x):
        return np.where(power == -1, np.log(x), x ** (power + 1) / np.where(power == -1, 1.0, power + 1))

    # ∫ √(t/2) Σ a_k t^{−3k} and ∫ (1/2) Σ (a∗a)_k t^{1−3k}
    first = np.sum(a / np.sqrt(2) * (primitive(0.5 - 3 * k, t) - primitive(0.5 - 3 * k, start)), axis=-1)
    second = np.sum(square * (primitive(1.0 - 3 * k, t) - primitive(1.0 - 3 * k, start)), axis=-1)
    # The primitive of t^{1−3k} is t^{2−3k}/(2 − 3k); integrated once more it gives −log t for k = 1.
    twice = primitive(2.0 - 3 * k, t) - primitive(2.0 - 3 * k, start)
    area = np.sum(square * (twice / (2 - 3 * k) - primitive(1.0 - 3 * k, start) * (t - start)), axis=-1)
    energy = float(solved.second_integral(LEFT))
    log_f2 = float(solved.log_f2(LEFT)) - energy * (t[..., 0] - start) - area
    return Left(float(solved.first_integral(LEFT)) + first, energy + second, log_f2)
