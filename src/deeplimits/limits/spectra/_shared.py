"""What the limits about spectra have in common."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from deeplimits.predictions import Curve


def cosine_grid(low: Array, high: Array, count: int) -> Float[Array, " {count}"]:
    """Points between two edges, dense at the edges, where densities have square roots."""
    angle = jnp.arange(0.5, count) * (jnp.pi / count)
    return (low + high) / 2 - (high - low) / 2 * jnp.cos(angle)


def resolvent_curve(shifts: Array, values: Array, of: str, symbol: str) -> Curve:
    """(1/n) tr y(y + A)^{-1} of a matrix A along shifts y > 0."""
    return Curve(
        shifts,
        values,
        axis="shift",
        axis_symbol="y",
        label=f"resolvent of the {of}",
        symbol=symbol,
        rate=1.0,
        log_x=True,
    )
