"""The law of A^{1/2} B A^{1/2} where A is positive and B, free from it, has eigenvalues of both signs."""

from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from deeplimits.errors import NotConverged
from deeplimits.models.atoms import Atoms
from deeplimits.numerics.shapes import Scalar
from deeplimits.theory.spectra import gaps, series, supports
from deeplimits.theory.spectra.combined import Combined
from deeplimits.theory.spectra.half_plane import fixed_point
from deeplimits.theory.spectra.spectral_measure import SpectralMeasure, Transform

RESIDUAL = 1e-9
# Heights above the real line, relative to z and to the width, from which the boundary is approached.
DESCENT = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 1e-3, 1e-4, 1e-6, 0.0)
AT_ZERO = 1e-13
"""Zero is approached to this share of the width: z itself divides."""


@dataclass(frozen=True)
class SignedProduct(Combined):
    """The law of A^{1/2} U B U' A^{1/2}, A positive, B of both signs. Made by `spectra.free_product`.

    With k(y) = y + 1/m(y) the subordination functions solve y_B = z/k_A(y_A), y_A = z/k_B(y_B). The imaginary part of
    k is negative for Im y > 0: so 1/k_B(y_B) lies in the upper half plane, y_A = z/k_B(y_B) anywhere but on the
    positive line, and y_B ↦ z/k_A(z/k_B(y_B)) sends the upper half plane into itself.
    """

    positive: SpectralMeasure
    signed: SpectralMeasure

    def solve(self, z: NDArray) -> Transform:
        flat = self._off_zero(z)
        found = subordinate(self.positive, self.signed, flat)
        value, change = self.signed.above(found.signed)
        _, slope_b = _inverse(self.signed, found.signed)
        inverse_a, slope_a = _inverse_everywhere(self.positive, found.positive)
        inverse_b, _ = _inverse(self.signed, found.signed)
        # y_B = z r_A(z r_B(y_B)) with r = 1/k: y_B' = (r_A + z r_A' r_B)/(1 − z² r_A' r_B')
        turned = (inverse_a + flat * slope_a * inverse_b) / (1 - flat**2 * slope_a * slope_b)
        # z m = y_B m_B(y_B)
        m = found.signed * value / flat
        slope = (turned * (value + found.signed * change) - m) / flat
        return Transform(m.reshape(np.shape(z)), slope.reshape(np.shape(z)))

    def potential(self, z: NDArray) -> NDArray:
        flat = self._off_zero(z)
        found = subordinate(self.positive, self.signed, flat)
        m, _ = self.signed.moment_transform(found.signed)
        # U(z) = log M + U_A(y_A) + U_B(y_B) up to whole turns; log(y_A − t) has arguments from 0 to 2π.
        below = np.imag(found.positive) < 0
        part = self.positive.potential(np.where(below, np.conj(found.positive), found.positive))
        part = np.where(below, np.conj(part) + 2j * np.pi, part)
        total = np.log(m) + part + self.signed.potential(found.signed)
        # π times the mass above: between 0 and π.
        turns = np.floor((np.imag(total) + np.pi / 2) / (2 * np.pi))
        return (total - 2j * np.pi * turns).reshape(np.shape(z))

    def moment(self, order: int) -> Scalar:
        """From power series, which need no quadrature."""
        if order < 1:
            return super().moment(order)
        return jnp.asarray(series.signed_product_moments(self.positive, self.signed, order)[-1])

    def mean(self) -> Scalar:
        """The product of the means."""
        return self.moment(1)

    def _off_zero(self, z: NDArray) -> NDArray:
        flat = np.asarray(z, complex).ravel()
        return np.where(flat == 0, AT_ZERO * _width(self.positive, self.signed), flat)


class Subordinated(NamedTuple):
    """y_A and y_B at every z."""

    positive: NDArray
    signed: NDArray


def subordinate(positive: SpectralMeasure, signed: SpectralMeasure, z: NDArray) -> Subordinated:
    """y_A and y_B at points of the closed upper half plane other than zero, or `NotConverged`."""

    def image(y, z):
        inverse_b, slope_b = _inverse(signed, y)
        inverse_a, slope_a = _inverse_everywhere(positive, z * inverse_b)
        return z * inverse_a, z**2 * slope_a * slope_b

    scale = _width(positive, signed)
    y, error = (z + 1j * scale) / float(positive.mean()), np.zeros(z.shape)
    for height in DESCENT:
        lifted = z + 1j * height * scale
        y, error = fixed_point(image, lifted, y, np.zeros(z.shape))
    # Near zero the height in units of the width passes by what is to be seen: down again in units of |z|.
    lost = ~(error < RESIDUAL)
    if lost.any():
        near, again, left = z[lost], y[lost], error[lost]
        for height in DESCENT:
            again, left = fixed_point(image, near + 1j * height * np.abs(near), again, np.zeros(near.shape))
        y[lost], error[lost] = again, left
    if not np.all(error < RESIDUAL):
        worst = int(np.argmax(np.where(np.isfinite(error), error, np.inf)))
        raise NotConverged(
            f"the subordination equation of the free product at z = {z[worst]:.6g} left a relative residual of "
            f"{error[worst]:.1e} (tolerance {RESIDUAL:g})"
        )
    return Subordinated(z * _inverse(signed, y)[0], y)


def _inverse(law: SpectralMeasure, y: NDArray) -> Transform:
    """1/k(y) = m/(1 + ym), regular where m vanishes, and its slope."""
    m, slope = law.above(y)
    return Transform(m / (1 + y * m), (slope - m**2) / (1 + y * m) ** 2)


def _inverse_everywhere(law: SpectralMeasure, y: NDArray) -> Transform:
    """The same in both half planes."""
    below = np.imag(y) < 0
    value, slope = _inverse(law, np.where(below, np.conj(y), y))
    return Transform(np.where(below, np.conj(value), value), np.where(below, np.conj(slope), slope))


def _width(positive: SpectralMeasure, signed: SpectralMeasure) -> float:
    return float(positive.support[1] * np.abs(signed.support).max())


def signed_product(positive: SpectralMeasure, signed: SpectralMeasure) -> SignedProduct:
    """Build the law, its edges and its atoms."""
    pair = (positive, signed)
    places, masses = (np.asarray(part) for part in supports.atoms_of_combination(pair, (1, 1), np.prod))
    zero = max(float(np.sum(np.asarray(law.atoms.weights)[np.asarray(law.atoms.values) == 0])) for law in pair)
    kept = places != 0
    places, masses = np.append(places[kept], [0.0] * (zero > 0)), np.append(masses[kept], [zero] * (zero > 0))
    order = np.argsort(places)
    found = Atoms(places[order], masses[order])

    def place(m, y):
        return y[0] * y[1] * m / (1 + m)

    def outward(m, y, slopes):
        # A real fixed point is the right one where the map's slope k_A'k_B' z²/(k_A k_B)² is below one.
        rates = [1 + part * slope / (m * (1 + m)) for part, slope in zip(y, slopes, strict=True)]
        return 1 - rates[0] * rates[1]

    def above(m, y, masses):
        # As in the potential: y_A on the positive line is seen from below where z is negative.
        part = 2 - masses[0] if y[0] > 0 > place(m, y) else masses[0]
        total = (part + masses[1] + (m < 0)) % 2
        return total if total < 1.5 else 0.0

    equation = gaps.multiplied(place, outward, above)
    # Where B has both signs, M_B may turn within a gap.
    sheets = [gaps.gaps_of(positive), gaps.monotone(signed, lambda x: signed.moment_transform(x).slope)]
    split = gaps.supported(pair, equation, sheets=sheets)
    bulks, shares = gaps.bulks_without_atoms(split.ends, split.masses, found)
    return SignedProduct(bulks, shares, found, positive, signed)
