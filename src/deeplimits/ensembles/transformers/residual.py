"""Residual networks, layer by layer."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from deeplimits.errors import NotConverged, ParameterError
from deeplimits.numerics import arguments
from deeplimits.numerics.arguments import Allowed, Given, known

SOME = Allowed(lambda x: (x >= 1) & (x == jnp.round(x)), "a whole number, at least 1")
BLOWN_UP = "the states of the network grow without bound; take more layers, less time or a block of bounded slope"


def residual_network(
    block: Callable[[Array, Array], Array], start: Float[Array, "*d"], time: Given, layers: Given
) -> Float[Array, "*d"]:
    """x ← x + h f(kh, x) for k = 0 … L − 1, h = `time`/L; the number of layers may be traced.

    >>> round(float(residual_network(lambda t, x: jnp.tanh(x), jnp.array(0.5), 1.0, 10) - 1.147525913662), 9)
    -0.02283516
    """
    count = arguments.number("layers", layers, SOME)
    h = arguments.number("time", time, arguments.FINITE) / count
    x = jnp.asarray(start, float)
    shape = jax.eval_shape(block, jnp.zeros(()), x).shape
    if shape != x.shape:
        raise ParameterError(
            f"block gives shape {shape} from shape {x.shape}; what is added must have the state's shape"
        )
    end = jax.lax.fori_loop(0, count.astype(int), lambda k, x: x + h * block(h * k, x), x)
    if known(end) and not bool(jnp.all(jnp.isfinite(end))):
        raise NotConverged(BLOWN_UP)
    return end
