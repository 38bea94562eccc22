"""The two laws of free probability with closed forms: Marchenko and Pastur's and Wigner's."""

import math
from dataclasses import dataclass

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Complex
from numpy.typing import ArrayLike, NDArray

from deeplimits.errors import ParameterError
from deeplimits.models.atoms import Atoms
from deeplimits.numerics.shapes import Floats, Scalar
from deeplimits.theory.spectra import marchenko_pastur_formulas as formulas
from deeplimits.theory.spectra.spectral_measure import SpectralMeasure, Transform, on_the_line

_density = eqx.filter_jit(formulas.marchenko_pastur_density)
_cdf = eqx.filter_jit(formulas.marchenko_pastur_cdf)


@dataclass(frozen=True)
class MarchenkoPastur(SpectralMeasure):
    """The law of the eigenvalues of X'X/M, entries of variance σ², γ = N/M. Made by `spectra.marchenko_pastur`."""

    gamma: float
    variance: float

    @property
    def edges(self):
        return jnp.stack(formulas.marchenko_pastur_edges(self.gamma, self.variance))[None, :]

    @property
    def atoms(self):
        return Atoms(jnp.zeros(1), formulas.marchenko_pastur_atom(self.gamma)[None])

    def above(self, z: NDArray) -> Transform:
        gamma, variance = self.gamma, self.variance
        value = marchenko_pastur_transform(z, gamma, variance)
        # m' = −(γσ²m² + m)/(2γσ²zm + z − σ²(1−γ))
        slope = -(gamma * variance * value**2 + value) / (2 * gamma * variance * z * value + z - variance * (1 - gamma))
        return Transform(value, slope)

    def outside(self, x: NDArray) -> Transform:
        value, slope = self.above(x.astype(complex))
        return Transform(np.real(value), np.real(slope))

    @property
    def _parameters(self) -> tuple[Array, Array]:
        """As arrays: of constants a compiler makes (1 − x) + γ into (1 + γ) − x, which forgets a small γ."""
        return jnp.asarray(self.gamma, float), jnp.asarray(self.variance, float)

    def density(self, x: ArrayLike) -> Floats:
        return _density(on_the_line(x), *self._parameters)

    def cdf(self, x: ArrayLike) -> Floats:
        return _cdf(on_the_line(x), *self._parameters)

    def moment(self, order: int) -> Scalar:
        return formulas.marchenko_pastur_moment(order, self.gamma, self.variance)

    def moment_transform(self, z: NDArray) -> Transform:
        gamma, variance = self.gamma, self.variance
        low, high = (float(end) for end in formulas.marchenko_pastur_edges(gamma, variance))
        flat = np.asarray(z, complex)
        root = np.sqrt(flat - low) * np.sqrt(flat - high)
        # γσ²M² − (z − σ²(1 + γ))M + σ² = 0, of the two forms of the root the one without cancellation.
        b = flat - variance * (1 + gamma)
        with np.errstate(divide="ignore", invalid="ignore"):
            aligned = np.real(b * root.conj()) >= 0
            value = np.where(aligned, 2 * variance / (b + root), (b - root) / (2 * gamma * variance))
            slope = -value / root
        return Transform(value, slope) if np.iscomplexobj(z) else Transform(np.real(value), np.real(slope))

    def potential(self, z: NDArray) -> NDArray:
        m, _ = self.moment_transform(np.asarray(z, complex))
        # U = log σ² − log M + M + (1 − 1/γ) log(1 + γM)
        return math.log(self.variance) - np.log(m) + m + (1 - 1 / self.gamma) * np.log(1 + self.gamma * m)

    def companion(self, z: ArrayLike) -> Complex[Array, "..."]:
        """s̲(z) = γ m(z) − (1 − γ)/z, the transform of the law of the Gram matrix XX'/M; z off its support."""
        return formulas.marchenko_pastur_companion(np.asarray(z, complex), self.gamma, self.variance)

    def preimage(self, x: ArrayLike) -> Complex[Array, "..."]:
        """α(x + i0) = −1/s̲(x + i0) for real x inside the bulk."""
        x = np.asarray(x, float)
        if not np.all(self._in_bulk(x.ravel())):
            raise ParameterError(f"x contains a point outside the bulk {np.asarray(self.edges)[0].tolist()}")
        gram = marchenko_pastur_transform(x.astype(complex), 1 / self.gamma, self.gamma * self.variance)
        return jnp.asarray(-1 / gram)

    def r_transform(self, w: ArrayLike) -> Floats:
        """R(w) = σ²/(1 − γσ²w)."""
        return jnp.asarray(self.variance / (1 - self.gamma * self.variance * np.asarray(w, float)))

    def s_transform(self, w: ArrayLike) -> Floats:
        """S(w) = 1/(σ²(1 + γw))."""
        return jnp.asarray(1 / (self.variance * (1 + self.gamma * np.asarray(w, float))))


def marchenko_pastur_transform(z: NDArray, gamma: float, variance: float) -> NDArray:
    """`marchenko_pastur.stieltjes` on the host, also at real z as the limit from above."""
    low, high = variance * (1 - math.sqrt(gamma)) ** 2, variance * (1 + math.sqrt(gamma)) ** 2
    b = z - variance * (1 - gamma)
    # A real z is taken as z + i0: √(z − λ) of a negative number is +i√|z − λ|.
    root = np.sqrt(z - low + 0j) * np.sqrt(z - high + 0j)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((b * root.conj()).real >= 0, -2 / (b + root), (root - b) / (2 * gamma * variance * z))


@dataclass(frozen=True)
class Semicircle(SpectralMeasure):
    """Wigner's law of variance s²: density √(4s² − x²)/(2πs²) on [−2s, 2s]. Made by `spectra.semicircle`."""

    variance: float

    @property
    def edges(self):
        radius = 2 * math.sqrt(self.variance)
        return jnp.array([[-radius, radius]])

    @property
    def atoms(self):
        return Atoms(jnp.zeros(0), jnp.zeros(0))

    def above(self, z: NDArray) -> Transform:
        variance = self.variance
        radius = 2 * math.sqrt(variance)
        root = np.sqrt(z - radius + 0j) * np.sqrt(z + radius + 0j)
        # m = (−z + √(z−2s) √(z+2s))/2s² = −2/(z + √…); of the two forms the one without cancellation.
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.where(np.real(z * root.conj()) >= 0, -2 / (z + root), (root - z) / (2 * variance))
        return Transform(value, -value / (z + 2 * variance * value))

    def outside(self, x: NDArray) -> Transform:
        value, slope = self.above(x.astype(complex))
        return Transform(np.real(value), np.real(slope))

    def potential(self, z: NDArray) -> NDArray:
        g = -self.above(np.asarray(z, complex))[0]
        # z = 1/G + s²G: U = ∫G dz = −log G + s²G²/2
        return -np.log(g) + self.variance * g**2 / 2

    def density(self, x: ArrayLike) -> Floats:
        """ρ(x) = √(4s² − x²)/(2πs²)."""
        square = 4 * self.variance - on_the_line(x) ** 2
        inside = square > 0
        return jnp.where(inside, jnp.sqrt(jnp.where(inside, square, 1.0)), 0.0) / (2 * jnp.pi * self.variance)

    def cdf(self, x: ArrayLike) -> Floats:
        """F(x) = 1/2 + (θ + sin θ cos θ)/π, sin θ = x/2s."""
        u = jnp.clip(on_the_line(x) / (2 * math.sqrt(self.variance)), -1.0, 1.0)
        root = jnp.sqrt((1 - u) * (1 + u))
        return 0.5 + (jnp.arctan2(u, root) + u * root) / jnp.pi

    def moment(self, order: int) -> Scalar:
        """Catalan numbers: ∫x^{2k} = s^{2k} C(2k, k)/(k + 1)."""
        if order < 0:
            return super().moment(order)
        half = order // 2
        if order % 2:
            return jnp.zeros(())
        return jnp.asarray(self.variance**half * (math.comb(order, half) // (half + 1)))

    def r_transform(self, w: ArrayLike) -> Floats:
        """R(w) = s²w."""
        return jnp.asarray(self.variance * np.asarray(w, float))
