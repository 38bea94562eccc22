"""Labelled points of two Gaussian classes."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from deeplimits.numerics.shapes import Scalar


class Classes(NamedTuple):
    """Points, as rows, and their labels ±1."""

    x: Float[Array, "n p"]
    y: Float[Array, " n"]


def class_mean(direction: Float[Array, " p"], strength: Scalar) -> Float[Array, " p"]:
    """A vector of squared norm `strength` in the given direction, uniform for standard Gaussian numbers."""
    return jnp.sqrt(strength) * direction / jnp.linalg.norm(direction)


def two_classes(signs: Float[Array, " n"], deviations: Float[Array, "n p"], mean: Float[Array, " p"]) -> Classes:
    """Points x = yμ + z, as rows, and their labels y = ±1, from standard Gaussian `signs` and `deviations`.

    >>> two_classes(jnp.array([0.3, -2.0]), jnp.zeros((2, 1)), jnp.array([3.0])).x.tolist()
    [[3.0], [-3.0]]
    """
    y = jnp.where(signs > 0, 1.0, -1.0)
    return Classes(y[:, None] * mean[None, :] + deviations, y)
