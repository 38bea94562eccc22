"""Norms of products of Gaussian matrices."""

from typing import NamedTuple

import jax.numpy as jnp
from jax.scipy.special import digamma, polygamma
from jax.typing import ArrayLike
from jaxtyping import Array, Float


class LogNorm(NamedTuple):
    """Mean and variance of a logarithm."""

    mean: Float[Array, "..."]
    variance: Float[Array, "..."]


def log_norm(width: ArrayLike, factors: ArrayLike) -> LogNorm:
    """Mean and variance of ½ Σ log(χ²_n/n) over independent factors, the log norm of a deep linear network.

    >>> [round(float(part), 12) for part in log_norm(100.0, 50.0)]
    [-0.250833300006, 0.252516665334]
    """
    n, count = jnp.asarray(width, float), jnp.asarray(factors, float)
    # E log(χ²_n/n) = digamma(n/2) − log(n/2), Var log χ²_n = trigamma(n/2)
    mean = count / 2 * (digamma(n / 2) - jnp.log(n / 2))
    return LogNorm(mean, count / 4 * polygamma(1, n / 2))
