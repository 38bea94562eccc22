"""Labelled points of two Gaussian classes."""

import jax.numpy as jnp
from jaxtyping import Array, Float


def class_mean(direction: Float[Array, " p"], strength: Float[Array, ""]) -> Float[Array, " p"]:
    """A vector of squared norm `strength` in the given direction, uniform for standard Gaussian numbers."""
    return jnp.sqrt(strength) * direction / jnp.linalg.norm(direction)


def two_classes(
    signs: Float[Array, " n"], deviations: Float[Array, "n p"], mean: Float[Array, " p"]
) -> tuple[Float[Array, "n p"], Float[Array, " n"]]:
    """Points x = yμ + z, as rows, and their labels y = ±1, from standard Gaussian `signs` and `deviations`."""
    y = jnp.where(signs > 0, 1.0, -1.0)
    return y[:, None] * mean + deviations, y
