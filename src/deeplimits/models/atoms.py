"""Discrete laws: a list of places and what weighs on each. Populations, spectra and quadratures are such lists."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from deeplimits.models.shown import shown
from deeplimits.numerics.arguments import array, probabilities
from deeplimits.numerics.shapes import Scalar

Numbers = Float[Array, " atoms"] | Float[np.ndarray, " atoms"]


class Atoms(NamedTuple):
    """Σ_k w_k δ(t_k), traced by JAX like any pair of arrays.

    >>> law = Atoms(jnp.array([1.0, 3.0]), jnp.array([0.25, 0.75]))
    >>> float(law.mean)
    2.5
    """

    values: Numbers
    weights: Numbers

    def __repr__(self) -> str:
        return f"Atoms(values={shown(self.values)}, weights={shown(self.weights)})"

    @property
    def mean(self) -> Scalar:
        return jnp.sum(jnp.asarray(self.weights) * jnp.asarray(self.values))


def atoms(values: ArrayLike, weights: ArrayLike | None = None) -> Atoms:
    """The law of these values, of equal weights unless given; weights are probabilities.

    >>> atoms([1.0, 3.0]).weights.tolist()
    [0.5, 0.5]
    """
    places = array("values", jnp.atleast_1d(jnp.asarray(values, float)), ("atoms",), why="at least one value")
    if weights is None:
        return Atoms(places, jnp.full(places.size, 1 / places.size))
    return Atoms(places, probabilities("weights", weights, places.size))


def as_atoms(name: str, law: "Atoms | ArrayLike") -> Atoms:
    """`Atoms` as they are, and a list of values as the law that gives them equal weights.

    >>> as_atoms("population", [1.0, 3.0]).weights.tolist()
    [0.5, 0.5]
    """
    if isinstance(law, Atoms):
        return law
    places = array(name, jnp.atleast_1d(jnp.asarray(law, float)), ("atoms",), why="at least one value, or Atoms")
    return Atoms(places, jnp.full(places.size, 1 / places.size))


def merged(values: ArrayLike, weights: ArrayLike | None = None) -> Atoms:
    """The same law with its values in increasing order and without repetition; host arrays.

    >>> [part.tolist() for part in merged([3.0, 1.0, 3.0, 2.0], [0.25, 0.5, 0.25, 0.0])]
    [[1.0, 3.0], [0.5, 0.5]]
    """
    places = np.asarray(array("values", np.atleast_1d(values), ("atoms",), why="at least one eigenvalue"))
    masses = np.full(places.size, 1 / places.size)
    if weights is not None:
        masses = np.asarray(probabilities("weights", np.atleast_1d(weights), places.size))
    distinct, index = np.unique(places, return_inverse=True)
    total = np.bincount(index, weights=masses, minlength=distinct.size) / masses.sum()
    kept = total > 0
    return Atoms(distinct[kept], total[kept])
