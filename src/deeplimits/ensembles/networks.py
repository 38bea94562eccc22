"""Finite networks."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from deeplimits.models.activations import ActivationLike
from deeplimits.models.activations import activation as named


def two_layer(
    weights: Float[Array, "m d"], output: Float[Array, " m"], x: Float[Array, " d"], activation: ActivationLike
) -> Float[Array, ""]:
    """f(x; W) = m^{−1/2} Σ_j a_j σ(⟨w_j, x⟩)."""
    return output @ named(activation).value(weights @ x) / jnp.sqrt(1.0 * weights.shape[0])
