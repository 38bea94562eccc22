"""Random data."""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from deeplimits.numerics.shapes import Floats

BLOCK = 4096


def independent_entries(
    key: PRNGKeyArray, samples: int, dimension: int, *, law: str = "gaussian"
) -> Float[Array, "n p"]:
    """A data matrix with independent entries of mean zero and variance one; rows are samples.

    >>> x = independent_entries(jax.random.key(0), 4, 3, law="rademacher")
    >>> x.shape, float(jnp.max(jnp.abs(x)))
    ((4, 3), 1.0)
    """
    shape = (samples, dimension)
    if law == "rademacher":
        return jax.random.rademacher(key, shape, dtype=float)
    if law == "uniform":
        return jax.random.uniform(key, shape, minval=-jnp.sqrt(3.0), maxval=jnp.sqrt(3.0))
    return jax.random.normal(key, shape)


def from_law(key: PRNGKeyArray, quantile: Callable[[Floats], Floats], shape: tuple[int, ...]) -> Floats:
    """Independent draws from a law on the line, by inverting its distribution function.

    `quantile` is the law's, such as `ppf` of a `SpectralMeasure` or of a law of scipy.

    >>> from_law(jax.random.key(0), lambda q: jnp.where(q < 2.0, 3.0, jnp.inf), (2, 2)).tolist()
    [[3.0, 3.0], [3.0, 3.0]]
    """
    return jnp.asarray(quantile(jax.random.uniform(key, shape)))


def gaussian_arrays(key: PRNGKeyArray, *shapes: tuple[int, ...]) -> list[Floats]:
    """Independent arrays of independent standard Gaussian entries, one of each shape.

    Cut from one draw, because every draw by itself would be compiled anew, and that takes longer than the drawing; made
    block by block in a loop, because what is drawn outside one is compiled anew for everything that uses it.
    """
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    total = int(ends[-1])
    # At least two blocks: a loop of one is no loop to the compiler.
    block = min(BLOCK, -(-total // 2))
    keys = jax.random.split(key, max(-(-total // block), 2))
    blocks = jax.lax.map(lambda block_key: jax.random.normal(block_key, (block,)), keys)
    drawn = blocks.reshape(-1)
    parts = jnp.split(drawn, ends)
    return [part.reshape(shape) for part, shape in zip(parts[:-1], shapes, strict=True)]


def on_sphere(key: PRNGKeyArray, dimension: int) -> Float[Array, " dimension"]:
    """A uniform point of the unit sphere: a Gaussian vector, normalized.

    >>> round(float(jnp.linalg.norm(on_sphere(jax.random.key(0), 5))), 12)
    1.0
    """
    vector = jax.random.normal(key, (dimension,))
    return vector / jnp.linalg.norm(vector)


def in_ball(gaussians: Float[Array, "count dimension+2"]) -> Float[Array, "count dimension"]:
    """Independent uniform points of the unit ball of R^d, from d + 2 standard Gaussian numbers each.

    The first d coordinates of a uniform point of the unit sphere of R^(d+2) are uniform in the ball.

    >>> in_ball(jnp.ones((1, 4))).tolist()
    [[0.5, 0.5]]
    """
    return gaussians[:, :-2] / jnp.linalg.norm(gaussians, axis=1, keepdims=True)


def nearest_radii(key: PRNGKeyArray, count: int, nearest: int, dimension: int) -> Float[Array, " nearest"]:
    """The `nearest` smallest of the distances from the centre of `count` uniform points of the unit ball, in order."""
    # Powers d of the radii are uniform. Of m uniform numbers above u the smallest v has ((1 − v)/(1 − u))^m uniform.
    left = jnp.arange(count, count - nearest, -1.0)
    volume = -jnp.expm1(-jnp.cumsum(jax.random.exponential(key, (nearest,)) / left))
    return volume ** (1 / dimension)


def other(key: PRNGKeyArray) -> PRNGKeyArray:
    """A key independent of the given one, for what must not share its draws."""
    return jax.random.fold_in(key, 1)
