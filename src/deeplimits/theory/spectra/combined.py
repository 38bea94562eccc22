"""What the laws of free sums and products have in common: a support found beforehand, one transform everywhere."""

from abc import abstractmethod
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from deeplimits.models.atoms import Atoms
from deeplimits.theory.spectra.spectral_measure import Floats, SpectralMeasure, Transform


@dataclass(frozen=True)
class Combined(SpectralMeasure):
    """A law with known bulks and atoms, whose transform is solved for at each point of the closed upper half plane."""

    bulks: Floats
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

    def above(self, z: NDArray) -> Transform:
        return self.solve(z)

    def outside(self, x: NDArray) -> Transform:
        value, slope = self.solve(x.astype(complex))
        return Transform(np.real(value), np.real(slope))
