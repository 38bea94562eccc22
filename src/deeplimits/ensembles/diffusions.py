"""Paths of stochastic differential equations."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, PRNGKeyArray

from deeplimits.numerics import flows
from deeplimits.numerics.checks import valid

NEGATIVE = 1e-8
"""An eigenvalue of a covariance this far below zero is no rounding error."""


def sample_path(
    key: PRNGKeyArray,
    drift: Callable[[Float[Array, " d"]], Float[Array, " d"]],
    covariance: Callable[[Float[Array, " d"]], Float[Array, "d d"]],
    start: ArrayLike,
    times: ArrayLike,
    *,
    steps: int = 1000,
) -> Float[Array, "times d"]:
    """One path of du = b(u) dt + Σ(u)^{1/2} dB at increasing times, by `steps` steps of Euler and Maruyama's method.

    u' = u + b(u)h + √h Σ(u)^{1/2} ξ, ξ standard Gaussian; its law at a time is right up to O(h), a path up to O(√h).
    `drift` is b and `covariance` Σ. Map it over keys for many paths.

    >>> path = sample_path(jax.random.key(0), lambda u: -u, lambda u: jnp.zeros((1, 1)), [1.0], [1.0])
    >>> round(float(path[0, 0]), 3)
    0.368
    """
    nodes, places = flows.grid(times, steps)
    first = jnp.atleast_1d(jnp.asarray(start, float))
    smallest = jnp.linalg.eigvalsh(covariance(first))[0]
    first = valid(
        first,
        smallest >= -NEGATIVE,
        "the covariance of the noise has a negative eigenvalue at the start; it must be ≥ 0",
        lambda: f" and is {float(smallest):.3g}",
    )

    def advance(u, now):
        h, noise = now
        following = u + h * drift(u) + jnp.sqrt(h) * symmetric_root(covariance(u)) @ noise
        return following, following

    noises = jax.random.normal(key, (steps, first.size))
    _, path = jax.lax.scan(advance, first, (jnp.diff(nodes), noises))
    return jnp.concatenate([first[None], path])[places]


def symmetric_root(matrix: Float[Array, "d d"]) -> Float[Array, "d d"]:
    """The positive square root of a positive semidefinite matrix; rounding errors below zero are clipped.

    >>> symmetric_root(jnp.diag(jnp.array([4.0, 9.0]))).tolist()
    [[2.0, 0.0], [0.0, 3.0]]
    """
    values, vectors = jnp.linalg.eigh(matrix)
    return (vectors * jnp.sqrt(jnp.maximum(values, 0.0))[None, :]) @ vectors.T
