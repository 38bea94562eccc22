"""What the laws of free sums and products have in common: a support found beforehand, one transform everywhere."""

from abc import abstractmethod
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike, NDArray

from deeplimits.models.atoms import Atoms
from deeplimits.theory.spectra.spectral_measure import Floats, SpectralMeasure, Transform, on_the_line


@dataclass(frozen=True)
class Combined(SpectralMeasure):
    """A law with known bulks and atoms, whose transform is solved for at each point of the closed upper half plane."""

    bulks: Floats
    shares: Floats
    """Masses of the bulks."""
    places: Atoms

    @abstractmethod
    def solve(self, z: NDArray) -> Transform:
        """m and m' at points of the closed upper half plane."""

    @property
    def edges(self):
        return jnp.asarray(self.bulks)

    @property
    def atoms(self):
        return Atoms(*map(jnp.asarray, self.places))

    def cdf(self, x: ArrayLike) -> Float[Array, "..."]:
        """Distribution function, atoms included, from the imaginary part of the potential: no quadrature."""
        x = on_the_line(x)
        flat = x.ravel()
        # Outside the bulks what lies above is a sum of masses.
        above = np.where(flat[:, None] < np.asarray(self.places.values), np.asarray(self.places.weights), 0.0).sum(
            axis=1
        )
        above += np.where(flat[:, None] <= self.bulks[:, 0], self.shares, 0.0).sum(axis=1)
        inside = self._in_bulk(flat)
        if inside.any():
            above[inside] = np.imag(self.potential(flat[inside].astype(complex))) / np.pi
        return jnp.asarray(np.clip(1 - above, 0.0, 1.0).reshape(x.shape))

    def above(self, z: NDArray) -> Transform:
        return self.solve(z)

    def outside(self, x: NDArray) -> Transform:
        value, slope = self.solve(x.astype(complex))
        return Transform(np.real(value), np.real(slope))
