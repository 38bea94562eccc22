"""Laws that are nothing but atoms: population covariances, eigenvalues of one matrix."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from deeplimits.errors import ParameterError
from deeplimits.models.atoms import Atoms
from deeplimits.numerics.shapes import Floats, Scalar
from deeplimits.theory.spectra.spectral_measure import SpectralMeasure, Transform, on_the_line


@dataclass(frozen=True)
class Atomic(SpectralMeasure):
    """Σ_k w_k δ(t_k), the t_k increasing and distinct. Made by `spectra.from_atoms` and `spectra.from_eigenvalues`."""

    law: Atoms
    nodes: bool = False
    """Whether they stand for a law with a density, as the nodes of a quadrature: their moments are its moments."""

    @property
    def edges(self):
        return jnp.zeros((0, 2))

    @property
    def atoms(self):
        return Atoms(*map(jnp.asarray, self.law))

    def above(self, z: NDArray) -> Transform:
        with np.errstate(divide="ignore", invalid="ignore"):
            inverse = 1 / (np.asarray(self.law.values) - z[..., None])
        weights = np.asarray(self.law.weights)
        return Transform(inverse @ weights, (inverse**2) @ weights)

    def outside(self, x: NDArray) -> Transform:
        return self.above(x)

    def moment_transform(self, z: NDArray) -> Transform:
        places, weights = (np.asarray(part) for part in self.law)
        with np.errstate(divide="ignore", invalid="ignore"):
            inverse = 1 / (z[..., None] - places[places != 0])
        strength = (weights * places)[places != 0]
        return Transform(inverse @ strength, -(inverse**2) @ strength)

    def potential(self, z: NDArray) -> NDArray:
        return np.log(np.asarray(z, complex)[..., None] - np.asarray(self.law.values)) @ np.asarray(self.law.weights)

    def cdf(self, x: ArrayLike) -> Floats:
        """Σ_{t_k ≤ x} w_k."""
        levels = np.append(0.0, np.minimum(np.cumsum(self.law.weights), 1.0))
        levels[-1] = 1.0
        return jnp.asarray(levels[np.searchsorted(self.law.values, on_the_line(x), side="right")])

    def quantile(self, q: ArrayLike) -> Floats:
        """The smallest t_k with cdf(t_k) ≥ q."""
        q = np.asarray(q, float)
        if not np.all((q >= 0) & (q <= 1)):
            raise ParameterError("q contains a value outside [0, 1]; a quantile needs a probability")
        levels = np.cumsum(self.law.weights)
        # A cumulated sum may miss a level by rounding.
        index = np.searchsorted(levels, q - 1e-15)
        return jnp.asarray(self.law.values[np.minimum(index, len(levels) - 1)])

    def moment(self, order: int) -> Scalar:
        """Σ_k w_k t_k^order."""
        return jnp.asarray(np.sum(self.law.weights * self.law.values**order))
