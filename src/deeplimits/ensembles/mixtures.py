"""Labelled points of two Gaussian classes."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from deeplimits.ensembles import data


def class_mean(key: PRNGKeyArray, dimension: int, strength: Float[Array, ""]) -> Float[Array, " p"]:
    """A vector of squared norm `strength` in a uniform direction."""
    return jnp.sqrt(strength) * data.on_sphere(key, dimension)


def two_classes(
    key: PRNGKeyArray, samples: int, mean: Float[Array, " p"]
) -> tuple[Float[Array, "n p"], Float[Array, " n"]]:
    """Points x = yμ + z with standard Gaussian z, as rows, and their labels y = ±1 with even odds."""
    label_key, noise_key = jax.random.split(key)
    y = jax.random.rademacher(label_key, (samples,), dtype=float)
    return y[:, None] * mean + jax.random.normal(noise_key, (samples, mean.shape[0])), y
