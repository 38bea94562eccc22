"""Links of single-index models: activations by other names, in the scaling of that subject."""

import math

import jax.numpy as jnp

from deeplimits.errors import UnknownName
from deeplimits.models.activations import NAMED, Activation, polynomial, rescaled

Link = Activation
"""A link f of a teacher y = f(⟨a, θ⟩), with its derivative almost everywhere."""

LINKS: dict[str, Link] = {
    "linear": NAMED["identity"],
    "tanh": NAMED["tanh"],
    "relu": NAMED["relu"],
    "erf": rescaled(NAMED["erf"], 1 / math.sqrt(2)),
    "square": polynomial(0.0, 0.0, 1.0),
    "abs": NAMED["abs"],
    "cos": NAMED["cos"],
    "hermite3": polynomial(0.0, -3 / math.sqrt(6), 0.0, 1 / math.sqrt(6)),
    "bump": Link(
        "bump",
        lambda z: z**2 * jnp.exp(-(z**2)),
        lambda z: 2 * z * (1 - z**2) * jnp.exp(-(z**2)),
        lambda z: (2 - 10 * z**2 + 4 * z**4) * jnp.exp(-(z**2)),
    ),
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
