"""Laws scaled and shifted."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deeplimits.models.atoms import Atoms
from deeplimits.numerics.arguments import POSITIVE, number
from deeplimits.numerics.shapes import Floats, Scalar
from deeplimits.theory.spectra.spectral_measure import SpectralMeasure, Transform, on_the_line


@dataclass(frozen=True)
class Affine(SpectralMeasure):
    """The law of sλ + b where λ has a given law and s > 0."""

    law: SpectralMeasure
    scale: float
    shift: float

    def __post_init__(self):
        number("scale", self.scale, POSITIVE)

    @property
    def edges(self):
        return self.scale * self.law.edges + self.shift

    @property
    def atoms(self):
        places, masses = self.law.atoms
        return Atoms(self.scale * places + self.shift, masses)

    @property
    def cuts(self):
        return self.scale * self.law.cuts + self.shift

    def above(self, z: NDArray) -> Transform:
        # m(z) = m_λ((z − b)/s)/s
        value, slope = self.law.above((z - self.shift) / self.scale)
        return Transform(value / self.scale, slope / self.scale**2)

    def outside(self, x: NDArray) -> Transform:
        value, slope = self.law.outside((x - self.shift) / self.scale)
        return Transform(value / self.scale, slope / self.scale**2)

    def moment_transform(self, z: NDArray) -> Transform:
        w, ratio = (z - self.shift) / self.scale, self.shift / self.scale
        value, slope = self.law.moment_transform(w)
        if ratio == 0:
            return Transform(value, slope / self.scale)
        # ∫ (sλ + b)/(z − sλ − b) = M(w) + (b/s) G(w)
        m, m_slope = self.law.above(w) if np.iscomplexobj(w) else self.law.outside(w)
        return Transform(value - ratio * m, (slope - ratio * m_slope) / self.scale)

    def potential(self, z: NDArray) -> NDArray:
        return np.log(self.scale) + self.law.potential((np.asarray(z, complex) - self.shift) / self.scale)

    def moment(self, order: int) -> Scalar:
        if order < 0 or self.shift:
            return super().moment(order)
        return self.scale**order * self.law.moment(order)

    def density(self, x: ArrayLike) -> Floats:
        return self.law.density((on_the_line(x) - self.shift) / self.scale) / self.scale

    def cdf(self, x: ArrayLike) -> Floats:
        return self.law.cdf((on_the_line(x) - self.shift) / self.scale)

    def quantile(self, q: ArrayLike) -> Floats:
        return self.scale * self.law.quantile(q) + self.shift
