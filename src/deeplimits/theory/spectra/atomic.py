"""Laws that are nothing but atoms: population covariances, eigenvalues of one matrix."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike, NDArray

from deeplimits.errors import ParameterError
from deeplimits.numerics.arguments import array, probabilities
from deeplimits.theory.spectra.measure import Floats, SpectralMeasure


@dataclass(frozen=True)
class Atomic(SpectralMeasure):
    """Σ_k w_k δ(t_k), the t_k increasing and distinct. Made by `laws.from_atoms` and `laws.from_eigenvalues`."""

    values: Floats
    weights: Floats

    @property
    def edges(self):
        return jnp.zeros((0, 2))

    @property
    def atoms(self):
        return jnp.asarray(self.values), jnp.asarray(self.weights)

    def above(self, z: NDArray) -> tuple[NDArray, NDArray]:
        with np.errstate(divide="ignore", invalid="ignore"):
            inverse = 1 / (self.values - z[..., None])
        return inverse @ self.weights, (inverse**2) @ self.weights

    def outside(self, x: NDArray) -> tuple[NDArray, NDArray]:
        return self.above(x)

    def moment_transform(self, z: NDArray) -> tuple[NDArray, NDArray]:
        with np.errstate(divide="ignore", invalid="ignore"):
            inverse = 1 / (z[..., None] - self.values[self.values != 0])
        strength = (self.weights * self.values)[self.values != 0]
        return inverse @ strength, -(inverse**2) @ strength

    def potential(self, z: NDArray) -> NDArray:
        return np.log(np.asarray(z, complex)[..., None] - self.values) @ self.weights

    def cdf(self, x: ArrayLike) -> Float[Array, "..."]:
        """Σ_{t_k ≤ x} w_k."""
        levels = np.append(0.0, np.minimum(np.cumsum(self.weights), 1.0))
        levels[-1] = 1.0
        return jnp.asarray(levels[np.searchsorted(self.values, np.asarray(x, float), side="right")])

    def quantile(self, q: ArrayLike) -> Float[Array, "..."]:
        """The smallest t_k with cdf(t_k) ≥ q."""
        q = np.asarray(q, float)
        if not np.all((q >= 0) & (q <= 1)):
            raise ParameterError("q contains a value outside [0, 1]; a quantile needs a probability")
        levels = np.cumsum(self.weights)
        # A cumulated sum may miss a level by rounding.
        index = np.searchsorted(levels, q - 1e-15)
        return jnp.asarray(self.values[np.minimum(index, len(levels) - 1)])

    def moment(self, order: int) -> Float[Array, ""]:
        """Σ_k w_k t_k^order."""
        return jnp.asarray(np.sum(self.weights * self.values**order))


def merged(values: ArrayLike, weights: ArrayLike | None) -> tuple[Floats, Floats]:
    """Values in increasing order without repetition, with their weights summing to one.

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
    return distinct[kept], total[kept]
