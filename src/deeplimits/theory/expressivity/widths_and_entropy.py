r"""Entropy and widths: how well a set can be described by bits, and by as many numbers; maps that keep distances."""

import math
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammainc, gammaincc
from jax.typing import ArrayLike

from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.numerics.arguments import (
    NOT_NEGATIVE,
    POSITIVE,
    Allowed,
    argument,
    array,
    choice,
    inside,
    known,
    number,
    whole,
)
from deeplimits.numerics.shapes import Floats

BITS = Allowed(lambda x: (x >= 0) & (x == np.round(x)) & (x <= 1e15), "a whole number from 0 to 1e15")


class EntropyNumber(NamedTuple):
    """ε_n, between these two; equal where it is known."""

    lower: Floats
    upper: Floats


def entropy_numbers(
    bits: ArrayLike, body: str, *, dimension: int = 1, slope: float = 1.0, length: float = 1.0
) -> EntropyNumber:
    r"""ε_n(K), the smallest radius at which 2^n balls cover K, for sets for which it is known.

    Setting     n = `bits`; K is `body`: the 'cube' [0, 1]^d in the sup norm, the Euclidean unit 'ball' of R^d, or the
                'lipschitz' functions on an interval of this `length` with |f'| ≤ `slope` and f(0) = 0, in the sup norm
    Result      1/(2⌊2^{n/d}⌋) for the cube; between 2^{−n/d} and min(1, 3·2^{−n/d}) for the ball; LT/(n+1) for the
                Lipschitz functions
    Validity    centres may lie outside K; n = 0 is one ball
    References  cohen2022

    >>> float(entropy_numbers(3, "cube").upper), float(entropy_numbers(3, "cube", dimension=2).upper)
    (0.0625, 0.25)
    >>> float(entropy_numbers(4, "lipschitz").upper)
    0.2
    """
    n = argument("bits", bits, BITS)
    d, kind = whole("dimension", dimension, 1), choice("body", body, ("cube", "ball", "lipschitz"))
    if kind == "lipschitz":
        total = number("slope", slope, POSITIVE) * number("length", length, POSITIVE)
        found = total / (n + 1)
        return EntropyNumber(found, found)
    share = n / d
    if kind == "cube":
        # Whole powers of two are themselves, whatever rounding does to 2^{n/d}.
        cells = jnp.where(share < 52, jnp.floor(jnp.exp2(jnp.minimum(share, 52.0)) * (1 + 1e-14)), 1.0)
        found = jnp.where(share < 52, 0.5 / cells, 0.5 * jnp.exp2(-share))
        return EntropyNumber(found, found)
    lower = jnp.exp2(-share)
    return EntropyNumber(lower, jnp.minimum(1.0, 3 * lower))


def entropy_of_points(x: ArrayLike, most_bits: int) -> EntropyNumber:
    r"""Bounds on ε_0, ε_1, …, ε_n of a finite set of points, from one walk to the farthest point.

    Setting     K the rows of `x`, Euclidean distance, n = `most_bits`; centres may be any points
    Result      after k centres, each the point farthest from those before, the farthest distance r_k covers K with k
                balls, and k + 1 points are r_k apart: r_k/2 ≤ ε ≤ r_k for 2^n = k
    Validity    a finite set; from 2^n points on ε = 0
    References  gonzalez1985

    >>> found = entropy_of_points([[0.0], [1.0], [0.25], [0.75]], 2)
    >>> found.lower.tolist(), found.upper.tolist()
    ([0.5, 0.125, 0.0], [1.0, 0.25, 0.0])
    """
    rows = np.asarray(array("x", x, ("n", "d"), why="one point in each row"))
    bits = whole("most_bits", most_bits, 0)
    count = min(len(rows), 1 << min(bits, 40))
    radii, distance = [], np.full(len(rows), np.inf)
    place = 0
    for _ in range(count):
        distance = np.minimum(distance, np.linalg.norm(rows - rows[place], axis=1))
        place = int(np.argmax(distance))
        radii.append(float(distance[place]))
    upper = np.array([radii[(1 << n) - 1] if (1 << n) <= count else 0.0 for n in range(min(bits, 60) + 1)])
    return EntropyNumber(jnp.asarray(upper / 2), jnp.asarray(upper))


class JohnsonLindenstrauss(NamedTuple):
    """Constants c for which c log k dimensions keep the distances of k points."""

    simple: Floats
    """8/ε²"""
    dasgupta_gupta: Floats
    """4/(h²/2 − h³/3) with (1−h)/(1+h) = (1−ε)²"""
    sharpest: Floats
    """4/I, the best constant that Gaussian matrices and the union bound over pairs give"""


def johnson_lindenstrauss(distortion: ArrayLike) -> JohnsonLindenstrauss:
    r"""How many dimensions are enough to keep all distances of k points within a factor.

    Setting     a linear A with (1−ε)|x_i − x_j| ≤ |A(x_i − x_j)| ≤ |x_i − x_j| for all pairs of k points, ε =
                `distortion`
    Result      exists in dimension m > c log k (natural logarithm) with each of three constants; I = a − 1 − log a,
                a = −ρ log ρ/(1−ρ), ρ = (1−ε)²
    Validity    0 < ε < 1. A shortens distances between these points, not all vectors
    References  dasgupta2003

    >>> [round(float(c), 10) for c in johnson_lindenstrauss(0.5)]
    [32.0, 37.037037037, 17.0884561114]
    """
    eps = argument("distortion", distortion, inside(0, 1), "a share of the distances")
    rho = (1 - eps) ** 2
    h = (1 - rho) / (1 + rho)
    return JohnsonLindenstrauss(8 / eps**2, 4 / (h**2 / 2 - h**3 / 3), 4 / _exponent(rho, _threshold(rho)))


def _threshold(rho: Floats) -> Floats:
    """a = −ρ log ρ/(1−ρ): below aρ^0 = a and above a/ρ the deviations of χ²_m/m have the same exponent."""
    return -rho * jnp.log(rho) / (1 - rho)


def _exponent(rho: Floats, a: Floats) -> Floats:
    # a − 1 − log a, by its series about a = 1, where ρ is near 1
    d = a - 1
    small = jnp.abs(d) < 1e-2
    x = jnp.where(small, d, 0.0)
    series = x**2 * (1 / 2 - x * (1 / 3 - x * (1 / 4 - x * (1 / 5 - x * (1 / 6 - x / 7)))))
    return jnp.where(small, series, d - jnp.log(jnp.where(small, 1.0, a)))


class ProjectionFailure(NamedTuple):
    """How likely a Gaussian matrix does not keep distances."""

    pair: Floats
    """of one pair, exactly"""
    short: Floats
    """of one pair, because its distance shrinks too much"""
    long: Floats
    """of one pair, because its distance grows"""
    union: Floats
    """of some pair among k points, at most"""


def projection_failure(distortion: ArrayLike, points: ArrayLike, dimension: ArrayLike) -> ProjectionFailure:
    r"""The probability that a Gaussian matrix of m rows does not keep the distances of k points within a factor.

    Setting     A = √(ρ/(a m)) G with independent standard entries, ρ = (1−ε)² and a as in `johnson_lindenstrauss`; ε =
                `distortion`, k = `points`, m = `dimension`
    Result      a pair fails with P(χ²_m < a m) + P(χ²_m > a m/ρ); some pair fails with at most k(k−1)/2 times this
    Validity    every k and m
    References  dasgupta2003

    >>> found = projection_failure(0.5, 100, 148)
    >>> bool(found.union < 0.05), bool(found.pair < 1e-5)
    (True, True)
    """
    eps = argument("distortion", distortion, inside(0, 1), "a share of the distances")
    k = argument("points", points, Allowed(lambda x: (x >= 2) & np.isfinite(x) & (x <= 1e12), "between 2 and 1e12"))
    m = argument("dimension", dimension, Allowed(lambda x: (x >= 1) & (x <= 1e9), "between 1 and 1e9"))
    rho = (1 - eps) ** 2
    a = _threshold(rho)
    short, long = gammainc(m / 2, a * m / 2), gammaincc(m / 2, a * m / rho / 2)
    pair = short + long
    return ProjectionFailure(pair, short, long, jnp.minimum(1.0, k * (k - 1) / 2 * pair))


class StableWidth(NamedTuple):
    """How many numbers do as well as `bits` bits, up to a factor 3, with each constant of `johnson_lindenstrauss`."""

    simple: Floats
    dasgupta_gupta: Floats
    sharpest: Floats
    error_factor: float = 3.0


def entropy_to_width(bits: ArrayLike) -> StableWidth:
    r"""From bits to numbers: a set that 2^n balls of radius ε_n cover has stable widths δ_{cn} ≤ 3 ε_n.

    Setting     K in a Hilbert space, n = `bits`; δ_m the smallest error of encoders to R^m and decoders that are
                2-Lipschitz
    Result      δ_{32n} ≤ 3ε_n, δ_{26n} ≤ 3ε_n, and with the sharpest constant of projections δ_{12n} ≤ 3ε_n
    Validity    Hilbert spaces: maps are extended from the centres by Kirszbraun's theorem
    References  cohen2022

    >>> [float(m) for m in entropy_to_width(1)]
    [32.0, 26.0, 12.0, 3.0]
    """
    n = argument("bits", bits, Allowed(lambda x: (x >= 1) & (x == np.round(x)) & (x <= 1e15), "a whole number from 1"))
    constants = johnson_lindenstrauss(0.5)
    each = [jnp.ceil(n * math.log(2) * c) for c in (constants.dasgupta_gupta, constants.sharpest)]
    return StableWidth(32 * n, each[0], each[1])


class CarlBound(NamedTuple):
    """Bits that are enough, and the radius that they reach."""

    bits: Floats
    radius: Floats


def carl_bits(dimension: ArrayLike, radius: ArrayLike, error: ArrayLike) -> CarlBound:
    r"""From numbers to bits: what 2-Lipschitz maps to R^n and back with error δ say about entropy numbers.

    Setting     a pair of 2-Lipschitz maps with error δ = `error`, a(K) in a ball of `radius` R of R^n, n = `dimension`
    Result      ε_m ≤ 4δ with m = ⌈n log₂(3R/δ)⌉; so δ_n ≤ C n^{−r} gives ε_n ≤ C'(log n/n)^r
    Validity    δ ≤ R
    References  cohen2022

    >>> found = carl_bits(10, 1.0, 0.01)
    >>> round(float(found.bits), 12), float(found.radius)
    (82.288186904959, 0.04)
    """
    n = argument(
        "dimension", dimension, Allowed(lambda x: (x >= 1) & (x == np.round(x)) & (x <= 1e15), "a whole number from 1")
    )
    r, delta = argument("radius", radius, POSITIVE), argument("error", error, POSITIVE)
    if known(radius, error) and np.any(np.asarray(error, float) > np.asarray(radius, float)):
        raise OutsideValidity("error exceeds radius: one ball of that radius is better; take error at most radius")
    return CarlBound(n * (jnp.log2(3.0) + jnp.log2(r) - jnp.log2(delta)), 4 * delta)


def sobolev_width(dimension: ArrayLike) -> Floats:
    r"""The linear width of the unit ball of H¹([0, 1]) in L²: an example in which stable widths are known from above.

    Setting     {f: ∫f² + ∫f'² ≤ 1}, the best error of linear maps to R^n and back, n = `dimension`
    Result      (1 + π²n²)^{−1/2}, attained by the first n cosines, a pair of 1-Lipschitz maps
    Validity    n ≥ 0
    References  cohen2022

    >>> float(sobolev_width(0)), round(float(sobolev_width(1)), 12)
    (1.0, 0.303314471053)
    """
    n = argument("dimension", dimension, NOT_NEGATIVE)
    return 1 / jnp.hypot(1.0, jnp.pi * n)


def no_free_lunch_error(cells: ArrayLike, seen: ArrayLike) -> Floats:
    r"""The expected error of any learner that memorizes its sample, where labels are random.

    Setting     labels ±1 at N = `cells` cells, all 2^N labellings alike, `seen` m of them known
    Result      (N − m)/(2N) over all cells: on those not seen, every learner is right half of the time
    Validity    0 ≤ m ≤ N
    References  wolpert1996

    >>> float(no_free_lunch_error(10, 4))
    0.3
    """
    n = argument(
        "cells", cells, Allowed(lambda x: (x >= 1) & (x == np.round(x)) & (x <= 1e15), "a whole number from 1")
    )
    m = argument("seen", seen, BITS)
    if known(cells, seen) and np.any(np.asarray(seen, float) > np.asarray(cells, float)):
        raise ParameterError("seen exceeds cells; no more cells can be seen than there are")
    return (n - m) / (2 * n)
