"""What the limits about classes have in common: a network of two layers, mean paths, and the four parts, by loops."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from deeplimits.predictions import Curve


class Layers(NamedTuple):
    """The weights of K neurons, and of C outputs."""

    first: Float[Array, "K d"]
    second: Float[Array, "C K"]


def over_time(
    times: Float[Array, " times"], values: Float[Array, " times"], records: int, label: str, symbol: str
) -> Curve:
    """A mean path drawn at many times and compared at so many, approached like the inverse of the dimension."""
    every = len(times) // records
    x, y = (row[every - 1 :: every] for row in (times, values))
    return Curve(
        x, y, dense_x=times, dense_y=values, label=label, symbol=symbol, axis="time", axis_symbol="t", rate=1.0
    )


def parts_by_loops(
    vectors: Float[Array, "N C P"], weights: Float[Array, "N C"], per_class: int
) -> tuple[Array, Array, Array, Array]:
    """Class, cross-class, within and same-label parts of Σ w g g', the examples sorted by class."""
    classes = vectors.shape[1]
    between, cross, within, same = (jnp.zeros((vectors.shape[2],) * 2) for _ in range(4))
    for c in range(classes):
        own = slice(c * per_class, (c + 1) * per_class)
        others = [label for label in range(classes) if label != c]
        sums = {label: weights[own, label] @ vectors[own, label] for label in others}
        masses = {label: jnp.sum(weights[own, label]) for label in others}
        mass = jnp.sum(jnp.stack(list(masses.values())))
        mean = jnp.sum(jnp.stack(list(sums.values())), axis=0) / mass
        between = between + mass * jnp.outer(mean, mean)
        for label in others:
            centre = sums[label] / masses[label]
            cross = cross + masses[label] * jnp.outer(centre - mean, centre - mean)
            inner = vectors[own, label] - centre[None, :]
            within = within + (inner * weights[own, label][:, None]).T @ inner
        same = same + (vectors[own, c] * weights[own, c][:, None]).T @ vectors[own, c]
    return between, cross, within, same
