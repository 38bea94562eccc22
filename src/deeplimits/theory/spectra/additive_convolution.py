"""The law of the sum of two free matrices: free additive convolution by subordination."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deeplimits.errors import NotConverged
from deeplimits.theory.spectra import supports
from deeplimits.theory.spectra.combined import Combined
from deeplimits.theory.spectra.half_plane import fixed_point
from deeplimits.theory.spectra.spectral_measure import SpectralMeasure, Transform

RESIDUAL = 1e-9
# Heights above the real line, in units of the width, from which the boundary is approached.
DESCENT = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 1e-3, 1e-4, 1e-6, 0.0)


@dataclass(frozen=True)
class FreeSum(Combined):
    """The law of A + UBU', U uniform on the orthogonal group. Made by `spectra.free_sum`.

    With F = −1/m and h(w) = F(w) − w the subordination functions solve ω₁ = z + h₂(ω₂), ω₂ = z + h₁(ω₁), and
    m(z) = m₁(ω₁). The map ω₁ ↦ z + h₂(z + h₁(ω₁)) sends the upper half plane into itself and has one fixed point there.
    """

    left: SpectralMeasure
    right: SpectralMeasure

    def solve(self, z: NDArray) -> Transform:
        return transform(self.left, self.right, z)

    def moment(self, order: int):
        """From the free cumulants, which add."""
        if order < 1:
            return super().moment(order)
        return supports.moment_of_sum(self.left, self.right, order)


def transform(left: SpectralMeasure, right: SpectralMeasure, z: NDArray) -> Transform:
    """m and m' of the sum at points of the closed upper half plane."""
    flat = z.ravel()
    scale = max(np.abs(left.support).max() + np.abs(right.support).max(), 1e-300)

    def evaluate(omega, z):
        _, slope1, first = _one_side(left, omega)
        _, slope2, second = _one_side(right, z + first)
        return z + second, slope1 * slope2

    omega = flat + 1j * scale
    error = np.zeros(flat.shape)
    for height in DESCENT:
        lifted = flat + 1j * scale * height
        omega, error = fixed_point(evaluate, lifted, omega, lifted.imag)
    if not np.all(error < RESIDUAL):
        worst = int(np.argmax(np.where(np.isfinite(error), error, np.inf)))
        raise NotConverged(
            f"the subordination equation at z = {flat[worst]:.6g} left a relative residual of {error[worst]:.1e} "
            f"(tolerance {RESIDUAL:g})"
        )
    value, slope1, other = _one_side(left, omega)
    _, slope2, _ = _one_side(right, flat + other)
    # ω₁' = (1 + h₂')/(1 − h₁'h₂'), m' = m₁'(ω₁) ω₁', F' = m'/m² = 1 + h'
    with np.errstate(divide="ignore", invalid="ignore"):
        turned = (1 + slope2) / (1 - slope1 * slope2)
        return Transform(value.reshape(z.shape), ((1 + slope1) * value**2 * turned).reshape(z.shape))


def _one_side(law, w):
    """m, h' and h at w."""
    value, slope = law.above(w)
    return value, slope / value**2 - 1, -1 / value - w


def free_sum(left: SpectralMeasure, right: SpectralMeasure) -> FreeSum:
    """Build the law, its edges and its atoms; see `spectra.free_sum`."""
    found = supports.atoms_of_combination([left, right], [1, 1], lambda points: sum(points))
    span = (left.support[0] + right.support[0], left.support[1] + right.support[1])
    bulks = supports.scan(lambda x: transform(left, right, x.astype(complex)).value, span, np.asarray(found.values))
    return FreeSum(bulks, found, left, right)
