"""Residual networks, layer by layer."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from deeplimits.numerics.arguments import Given


def residual_network(
    block: Callable[[Array, Array], Array], start: Float[Array, "*d"], time: Given, layers: Given
) -> Float[Array, "*d"]:
    """x ← x + h f(kh, x) for k = 0 … L − 1, h = `time`/L; the number of layers may be traced.

    >>> round(float(residual_network(lambda t, x: jnp.tanh(x), jnp.array(0.5), 1.0, 10) - 1.147525913662), 9)
    -0.02283516
    """
    count = jnp.asarray(layers, float)
    h = jnp.asarray(time, float) / count
    return jax.lax.fori_loop(0, count.astype(int), lambda k, x: x + h * block(h * k, x), start)
