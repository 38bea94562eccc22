"""What the laws of free sums and products have in common: a support found beforehand, one transform everywhere."""

from abc import abstractmethod
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from deeplimits.theory.spectra.spectral_measure import Floats, SpectralMeasure


@dataclass(frozen=True)
class Combined(SpectralMeasure):
    """A law with known bulks and atoms, whose transform is solved for at each point of the closed upper half plane."""

    bulks: Floats
    places: Floats
    masses: Floats

    @abstractmethod
    def solve(self, z: NDArray) -> tuple[NDArray, NDArray]:
        """m and m' at points of the closed upper half plane."""

    @property
    def edges(self):
        return jnp.asarray(self.bulks)

    @property
    def atoms(self):
        return jnp.asarray(self.places), jnp.asarray(self.masses)

    def above(self, z: NDArray) -> tuple[NDArray, NDArray]:
        return self.solve(z)

    def outside(self, x: NDArray) -> tuple[NDArray, NDArray]:
        value, slope = self.solve(x.astype(complex))
        return np.real(value), np.real(slope)
