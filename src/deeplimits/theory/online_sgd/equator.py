"""The overlap of a random direction with a fixed one: where training starts.

m is the inner product of a uniform point of the unit sphere of R^N with a fixed unit vector; m² is Beta(1/2, (N−1)/2).
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax.scipy.special import betainc, gammaln
from jax.scipy.stats import norm
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.numerics import arguments


def _check(dimension: int) -> None:
    arguments.whole("dimension", dimension, 2, "of a sphere to walk on")


def equator_exceedance(threshold: ArrayLike, dimension: int) -> Float[Array, "..."]:
    """P(√N |m| > u), exact: the regularized incomplete beta function I_{1−u²/N}((N−1)/2, 1/2).

    >>> round(float(equator_exceedance(2.0, 100)), 10)
    0.0449347252
    """
    _check(dimension)
    left = jnp.clip(1 - jnp.asarray(threshold, float) ** 2 / dimension, 0.0, 1.0)
    return betainc((dimension - 1) / 2, 0.5, left)


def equator_density(overlap: ArrayLike, dimension: int) -> Float[Array, "..."]:
    """Density of m on (−1, 1), proportional to (1 − m²)^{(N−3)/2}.

    >>> round(float(equator_density(0.3, 3)), 12)  # uniform on the sphere in three dimensions
    0.5
    """
    _check(dimension)
    m = jnp.asarray(overlap, float)
    log_constant = gammaln(dimension / 2) - gammaln((dimension - 1) / 2) - 0.5 * jnp.log(jnp.pi)
    inside = jnp.abs(m) < 1
    safe = jnp.where(inside, m, 0.0)
    return jnp.where(inside, jnp.exp(log_constant + (dimension - 3) / 2 * jnp.log1p(-(safe**2))), 0.0)


def fourth_moment(dimension: int) -> float:
    """E (√N m)⁴ = 3N/(N+2), exact; the Gaussian value is 3."""
    _check(dimension)
    return 3 * dimension / (dimension + 2)


class Distribution(NamedTuple):
    """Density and distribution function of a law, at the same points."""

    density: Float[Array, "..."]
    cdf: Float[Array, "..."]


def gaussian_law(x: ArrayLike) -> Distribution:
    """Density and distribution function of the limit of √N m: the standard normal law."""
    x = jnp.asarray(x, float)
    return Distribution(norm.pdf(x), norm.cdf(x))


def tail_bound(threshold: ArrayLike) -> Float[Array, "..."]:
    """The bound P(√N |m| > u) ≤ 2 exp(−u²/2), at every N."""
    return 2 * jnp.exp(-(jnp.asarray(threshold, float) ** 2) / 2)
