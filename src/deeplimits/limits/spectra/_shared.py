"""What the limits about spectra have in common."""

import jax.numpy as jnp
from jaxtyping import Array, Float


def cosine_grid(low: Array, high: Array, count: int) -> Float[Array, " {count}"]:
    """Points between two edges, dense at the edges, where densities have square roots."""
    angle = jnp.arange(0.5, count) * (jnp.pi / count)
    return (low + high) / 2 - (high - low) / 2 * jnp.cos(angle)
