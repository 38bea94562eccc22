"""Norms of products of Gaussian matrices."""

import jax.numpy as jnp
from jax.scipy.special import digamma, polygamma
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.numerics.arguments import NOT_NEGATIVE, POSITIVE, argument


def log_norm(width: ArrayLike, factors: ArrayLike) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """Mean and variance of ½ Σ log(χ²_n/n) over independent factors, the log norm of a deep linear network.

    >>> [round(float(part), 12) for part in log_norm(100.0, 50.0)]
    [-0.250833300006, 0.252516665334]
    """
    n, count = argument("width", width, POSITIVE), argument("factors", factors, NOT_NEGATIVE)
    # E log(χ²_n/n) = digamma(n/2) − log(n/2), Var log χ²_n = trigamma(n/2)
    # For large n both terms of the mean are large: −1/n − 1/3n² + 2/15n⁴ − 16/63n⁶ is their difference.
    large = n > 100
    square = 1 / jnp.where(large, n, 100.0) ** 2
    series = -jnp.sqrt(square) - square / 3 + 2 * square**2 / 15 - 16 * square**3 / 63
    mean = count / 2 * jnp.where(large, series, digamma(n / 2) - jnp.log(n / 2))
    return mean, count / 4 * polygamma(1, n / 2)
