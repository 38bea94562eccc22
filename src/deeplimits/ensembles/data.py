"""Random data."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

BLOCK = 4096


def independent_entries(key: PRNGKeyArray, samples: int, dimension: int, law: str = "gaussian") -> Float[Array, "n p"]:
    """A data matrix with independent entries of mean zero and variance one; rows are samples."""
    shape = (samples, dimension)
    if law == "rademacher":
        return jax.random.rademacher(key, shape, dtype=float)
    if law == "uniform":
        return jax.random.uniform(key, shape, minval=-jnp.sqrt(3.0), maxval=jnp.sqrt(3.0))
    return jax.random.normal(key, shape)


def gaussian_arrays(key: PRNGKeyArray, *shapes: tuple[int, ...]) -> list[Float[Array, "..."]]:
    """Independent arrays of independent standard Gaussian entries, one of each shape.

    Cut from one draw, because every draw by itself would be compiled anew, and that takes longer than the drawing; made
    block by block in a loop, because what is drawn outside one is compiled anew for everything that uses it.
    """
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    count = -(-int(ends[-1]) // BLOCK)
    blocks = jax.lax.map(lambda block_key: jax.random.normal(block_key, (BLOCK,)), jax.random.split(key, count))
    drawn = blocks.reshape(-1)
    parts = jnp.split(drawn, ends)
    return [part.reshape(shape) for part, shape in zip(parts[:-1], shapes, strict=True)]


def on_sphere(key: PRNGKeyArray, dimension: int) -> Float[Array, " dimension"]:
    """A uniform point of the unit sphere: a Gaussian vector, normalized."""
    vector = jax.random.normal(key, (dimension,))
    return vector / jnp.linalg.norm(vector)


def in_ball(key: PRNGKeyArray, count: int, dimension: int) -> Float[Array, "count dimension"]:
    """Independent uniform points of the unit ball: a uniform direction, and a radius whose power d is uniform."""
    directions_key, radii_key = jax.random.split(key)
    directions = jax.random.normal(directions_key, (count, dimension))
    directions = directions / jnp.linalg.norm(directions, axis=1, keepdims=True)
    return radii_in_ball(radii_key, count, dimension)[:, None] * directions


def radii_in_ball(key: PRNGKeyArray, count: int, dimension: int) -> Float[Array, " count"]:
    """Distances from the centre of independent uniform points of the unit ball."""
    return jax.random.uniform(key, (count,)) ** (1 / dimension)


def other(key: PRNGKeyArray) -> PRNGKeyArray:
    """A key independent of the given one, for what must not share its draws."""
    return jax.random.fold_in(key, 1)
