"""The overlap of a random direction with a fixed one: where training starts.

m is the inner product of a uniform point of the unit sphere of R^N with a fixed unit vector; m² is Beta(1/2, (N−1)/2).
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
from jax.scipy.special import betainc
from jax.scipy.stats import norm
from jax.typing import ArrayLike

from deeplimits.numerics import panels
from deeplimits.numerics.arguments import A_NUMBER, FINITE, argument, whole
from deeplimits.numerics.ranks import same_rank
from deeplimits.numerics.shapes import Floats

LARGE = 200
"""From this dimension on the density is integrated: the incomplete beta function loses digits like N."""
_PANELS = panels.even(0.0, 12.0, 32, 12)


def _check(dimension: int) -> int:
    return whole("dimension", dimension, 2, "a sphere to walk on")


def _log_constant(dimension: int) -> float:
    """log Γ(N/2) − log Γ((N−1)/2) − ½ log π"""
    if dimension < LARGE:
        return math.lgamma(dimension / 2) - math.lgamma((dimension - 1) / 2) - math.log(math.pi) / 2
    # Γ(w + 3/4)/Γ(w + 1/4) = √w (1 + 1/64w² − 19/8192w⁴ + …), w = N/2 − 3/4: no large logarithms cancel
    w = dimension / 2 - 0.75
    series = math.log1p(1 / (64 * w**2) - 19 / (8192 * w**4))
    return math.log(w) / 2 + series - math.log(math.pi) / 2


def equator_exceedance(threshold: ArrayLike, dimension: int) -> Floats:
    """P(√N |m| > u), exact: the regularized incomplete beta function I_{1−u²/N}((N−1)/2, 1/2).

    >>> round(float(equator_exceedance(2.0, 100)), 10)
    0.0449347252
    """
    n = _check(dimension)
    u = jnp.maximum(argument("threshold", threshold, FINITE), 0.0)
    if n < LARGE:
        return betainc((n - 1) / 2, 0.5, jnp.clip(1 - u**2 / n, 0.0, 1.0))
    # 2 ∫_u^∞ f, f the density of √N m, relative to f(u): on the scale on which that falls
    place, nodes, weights = same_rank(u[..., None], _PANELS.nodes, _PANELS.weights)
    scale = 1 / jnp.maximum(1.0, place)
    x = place + 4 * scale * nodes
    share = jnp.minimum(x**2 / n, 1 - 1e-16)
    values = jnp.where(x**2 < n, jnp.exp(_log_constant(n) + (n - 3) / 2 * jnp.log1p(-share)), 0.0)
    found = 2 / math.sqrt(n) * jnp.sum(4 * scale * weights * values, axis=-1)
    return jnp.where(u > 0, found, 1.0)


def equator_density(overlap: ArrayLike, dimension: int) -> Floats:
    """Density of m on (−1, 1), proportional to (1 − m²)^{(N−3)/2}.

    >>> round(float(equator_density(0.3, 3)), 12)  # uniform on the sphere in three dimensions
    0.5
    """
    log_constant = _log_constant(_check(dimension))
    m = jnp.asarray(overlap, float)
    inside = jnp.abs(m) < 1
    safe = jnp.where(inside, m, 0.0)
    return jnp.where(inside, jnp.exp(log_constant + (dimension - 3) / 2 * jnp.log1p(-(safe**2))), 0.0)


def fourth_moment(dimension: int) -> float:
    """E (√N m)⁴ = 3N/(N+2), exact; the Gaussian value is 3."""
    _check(dimension)
    return 3 * dimension / (dimension + 2)


class Distribution(NamedTuple):
    """Density and distribution function of a law, at the same points."""

    density: Floats
    cdf: Floats


def half_sphere_law(x: ArrayLike, dimension: int) -> "Distribution":
    """Density and distribution function of √N m for a uniform start on the upper half-sphere, m ≥ 0, exact at every N.

    It is the law of √N|m|, and tends to that of |G|, G standard Gaussian.

    >>> [round(float(part), 10) for part in half_sphere_law(2.0, 100)]
    [0.1093492419, 0.9550652748]
    """
    n, u = _check(dimension), argument("x", x, FINITE)
    density = 2 * equator_density(u / math.sqrt(n), n) / math.sqrt(n)
    above = u >= 0
    return Distribution(jnp.where(above, density, 0.0), jnp.where(above, 1 - equator_exceedance(u, n), 0.0))


def half_sphere_mean(dimension: int) -> float:
    """E √N m on the upper half-sphere, √N Γ(N/2)/(√π Γ((N+1)/2)): exact; √(2/π) as N → ∞.

    >>> round(half_sphere_mean(3) / 3**0.5, 12)  # m is uniform there in three dimensions
    0.5
    """
    n = _check(dimension)
    # (N−1)/N of Γ(N/2)/Γ((N−1)/2)·2/(N−1)
    return 2 * math.sqrt(n) / (n - 1) * math.exp(_log_constant(n))


def gaussian_law(x: ArrayLike) -> Distribution:
    """Density and distribution function of the limit of √N m: the standard normal law."""
    x = argument("x", x, A_NUMBER)
    return Distribution(norm.pdf(x), norm.cdf(x))


def tail_bound(threshold: ArrayLike) -> Floats:
    """The bound P(√N |m| > u) ≤ 2 exp(−u²/2), at every N."""
    u = jnp.maximum(argument("threshold", threshold, A_NUMBER), 0.0)
    return 2 * jnp.exp(-(u**2) / 2)
