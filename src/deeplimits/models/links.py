"""Links of single-index models: a function of one variable and its derivative."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import jax.numpy as jnp
from jax.scipy.special import erf

from deeplimits.errors import UnknownName


@dataclass(frozen=True)
class Link:
    """A link f of a teacher y = f(⟨a, θ⟩), with its derivative almost everywhere."""

    name: str
    value: Callable
    derivative: Callable


LINKS = {
    link.name: link
    for link in (
        Link("linear", lambda z: z, jnp.ones_like),
        Link("tanh", jnp.tanh, lambda z: 1 - jnp.tanh(z) ** 2),
        Link("relu", lambda z: jnp.maximum(z, 0.0), lambda z: jnp.where(z > 0, 1.0, 0.0)),
        Link("erf", lambda z: erf(z / math.sqrt(2)), lambda z: math.sqrt(2 / math.pi) * jnp.exp(-(z**2) / 2)),
        Link("square", lambda z: z**2, lambda z: 2 * z),
        Link("abs", jnp.abs, jnp.sign),
        Link("cos", jnp.cos, lambda z: -jnp.sin(z)),
        Link("hermite3", lambda z: (z**3 - 3 * z) / math.sqrt(6), lambda z: (z**2 - 1) * math.sqrt(1.5)),
        Link("bump", lambda z: z**2 * jnp.exp(-(z**2)), lambda z: 2 * z * (1 - z**2) * jnp.exp(-(z**2))),
    )
}


def link(name: str) -> Link:
    """The link of that name.

    >>> float(link("square").value(3.0))
    9.0
    """
    try:
        return LINKS[name]
    except KeyError:
        raise UnknownName(f"there is no link {name!r}; there are {', '.join(LINKS)}") from None
