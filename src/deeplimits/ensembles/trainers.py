"""Optimizers, run step by step."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


def gradient_descent(
    loss: Callable[[Float[Array, " d"]], Float[Array, ""]],
    start: Float[Array, " d"],
    step: Float[Array, ""],
    steps: int,
) -> Float[Array, "steps+1 d"]:
    """Every iterate of plain gradient descent, the start included."""
    gradient = jax.grad(loss)

    def advance(theta, _):
        following = theta - step * gradient(theta)
        return following, following

    _, path = jax.lax.scan(advance, start, length=steps)
    return jnp.concatenate([start[None], path])
