"""The law of the Gram matrix beside a sample covariance matrix."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from deeplimits.errors import ParameterError
from deeplimits.models.atoms import Atoms
from deeplimits.numerics.shapes import Floats, Scalar
from deeplimits.theory.spectra import preimages
from deeplimits.theory.spectra.sample_covariance_law import SampleCovariance
from deeplimits.theory.spectra.spectral_measure import SpectralMeasure, Transform, on_the_line


@dataclass(frozen=True)
class Companion(SpectralMeasure):
    """The law γμ + (1 − γ)δ₀ of (1/n)ZΣZ', n×n, beside the law μ of (1/n)Σ^{1/2}Z'ZΣ^{1/2}. Made by `companion_law`."""

    law: SampleCovariance

    @property
    def edges(self):
        return self.law.edges

    @property
    def atoms(self):
        # γ(1 − 1/γ) + 1 − γ is zero, up to rounding.
        zero = 1 - self.law.gamma * (1 - self.law.zero)
        return Atoms(jnp.zeros(1), jnp.asarray([zero if zero > 1e-14 * (1 + self.law.gamma) else 0.0]))

    @property
    def cuts(self):
        return self.law.cuts

    def above(self, z: NDArray) -> Transform:
        return self._transform(self.law._preimage(z))

    def outside(self, x: NDArray) -> Transform:
        value, slope = self._transform(self.law._preimage_outside(x.ravel()))
        return Transform(value.reshape(x.shape), slope.reshape(x.shape))

    def _transform(self, alpha: NDArray) -> Transform:
        # m̲ = −1/α, dα/dz = 1/ψ'(α)
        second = preimages.first_and_second(self.law.population, alpha)[1]
        with np.errstate(divide="ignore", invalid="ignore"):
            return Transform(-1 / alpha, 1 / (alpha**2 * (1 - self.law.gamma * second)))

    def potential(self, z: NDArray) -> NDArray:
        z = np.asarray(z, complex)
        return self.law.gamma * self.law.potential(z) + (1 - self.law.gamma) * np.log(z)

    def density(self, x: ArrayLike) -> Floats:
        return self.law.gamma * self.law.density(x)

    def cdf(self, x: ArrayLike) -> Floats:
        x = on_the_line(x)
        # From above, so that no two large masses at zero cancel.
        found = 1 - self.law.gamma * (1 - np.asarray(self.law.cdf(x)))
        return jnp.asarray(np.where(x < 0, 0.0, np.clip(found, 0.0, 1.0)))

    def moment(self, order: int) -> Scalar:
        if order < 1:
            return super().moment(order) if order else jnp.ones(())
        return self.law.gamma * self.law.moment(order)


def companion_law(law: SpectralMeasure) -> Companion:
    """The law of the n×n Gram matrix (1/n)ZΣZ', from that of the p×p sample covariance matrix; γ = p/n.

    >>> from deeplimits.theory.spectra import laws
    >>> gram = companion_law(laws.sample_covariance([1.0, 3.0], 0.25))
    >>> float(gram.atoms.weights[0]), float(gram.mean())
    (0.75, 0.5)
    """
    if not isinstance(law, SampleCovariance):
        raise ParameterError(
            f"law is a {type(law).__name__}; the companion is that of a sample covariance law, as made by "
            "sample_covariance(population, gamma)"
        )
    return Companion(law)
