"""The law of a deep network's conjugate kernel: all layers are one explicit map of a point."""

import itertools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deeplimits.errors import NotConverged
from deeplimits.models.atoms import Atoms
from deeplimits.theory.spectra import laws
from deeplimits.theory.spectra.combined import Combined
from deeplimits.theory.spectra.spectral_measure import Floats, Interval, Transform

RESIDUAL = 1e-10
HEIGHTS = (*np.geomspace(3.0, 1e-6, 24), 0.0)
GRID = 4000


@dataclass(frozen=True)
class DeepKernel(Combined):
    """μ_l = MP(c_l) ⊠ law of b²λ + 1 − b², λ ~ μ_{l−1}, μ₀ = MP(c₀). Made by `spectra.conjugate_kernel_spectrum`.

    With α = b²z_{l−1} + 1 − b² and g = m_{l−1}/b²: z_l = α(1 − c_l − c_l α g), m_l = g/(1 − c_l − c_l α g). So z_L is
    an explicit function of z₀, one-to-one where every z_l lies in the upper half plane, and one equation is solved at
    any depth.
    """

    share: float
    data_ratio: float
    width_ratios: tuple[float, ...]

    def solve(self, z: NDArray) -> Transform:
        inner = self._inner(np.asarray(z, complex).ravel())
        _, rise, value, slope, _ = through(inner, self.share, self.data_ratio, self.width_ratios)
        with np.errstate(divide="ignore", invalid="ignore"):
            return Transform(value.reshape(np.shape(z)), (slope / rise).reshape(np.shape(z)))

    def potential(self, z: NDArray) -> NDArray:
        inner = self._inner(np.asarray(z, complex).ravel())
        return through(inner, self.share, self.data_ratio, self.width_ratios).potential.reshape(np.shape(z))

    def _inner(self, z: NDArray) -> NDArray:
        return preimage(z, self.share, self.data_ratio, self.width_ratios)


class Through(NamedTuple):
    """What the layers make of z₀: z_L, dz_L/dz₀, m_L, dm_L/dz₀ and the potential ∫log(z − t)dμ_L."""

    point: NDArray
    rise: NDArray
    value: NDArray
    slope: NDArray
    potential: NDArray


def through(inner: NDArray, share: float, data_ratio: float, width_ratios: tuple[float, ...]) -> Through:
    """z_L, dz_L/dz₀, m_L, dm_L/dz₀ and the potential ∫log(z − t)dμ_L at z₀ = `inner`."""
    base = laws.marchenko_pastur(data_ratio)
    m, slope = base.above(inner)
    z, rise, potential = inner, np.ones_like(inner), base.potential(inner)
    for ratio in width_ratios:
        alpha, lift = share * z + 1 - share, share * rise
        hidden, change = m / share, slope / share
        # 1 + cM_H, M_H = −1 − αg
        moments, turn = -1 - alpha * hidden, -lift * hidden - alpha * change
        stretch = 1 + ratio * moments
        # U = U_H(α) + M_H + (1 − 1/c) log(1 + cM_H)
        potential = np.log(share) + potential + moments + (1 - 1 / ratio) * np.log(stretch)
        z, rise = alpha * stretch, lift * stretch + alpha * ratio * turn
        m, slope = hidden / stretch, change / stretch - hidden * ratio * turn / stretch**2
    return Through(z, rise, m, slope, potential)


def preimage(z: NDArray, share: float, data_ratio: float, width_ratios: tuple[float, ...]) -> NDArray:
    """z₀ with z_L(z₀) = z for points of the closed upper half plane: Newton's method, from far above down to z."""
    scale = (1 + np.sqrt(data_ratio)) ** 2 * np.prod([(1 + np.sqrt(ratio)) ** 2 for ratio in width_ratios])
    inner = z + 1j * 10 * scale
    error = np.full(z.shape, np.inf)
    with np.errstate(all="ignore"):
        for height in (10.0, *HEIGHTS):
            target = z + 1j * scale * height
            inner, error = _newton(inner, target, share, data_ratio, width_ratios)
    if not np.all(error < RESIDUAL):
        worst = int(np.argmax(np.where(np.isfinite(error), error, np.inf)))
        raise NotConverged(
            f"the layers of the conjugate kernel at z = {z[worst]:.6g} left a relative residual of {error[worst]:.1e}"
        )
    return inner


def _newton(inner, target, share, data_ratio, width_ratios):
    best, error = inner.copy(), np.full(target.shape, np.inf)
    here = inner
    for count in range(80):
        z, rise, *_ = through(here, share, data_ratio, width_ratios)
        size = np.abs(z - target) / (np.abs(target) + np.abs(z))
        better = size < error
        best, error = np.where(better, here, best), np.where(better, size, error)
        if count > 3 and not np.any(better & (error > 1e-15)):
            break
        step = (target - z) / rise
        # A step stays in the half plane and goes no further than the point lies above it, four times.
        room = np.minimum(1.0, 4 * np.abs(np.imag(here)) / np.maximum(np.abs(step), 1e-300))
        room = np.where(size < 1e-6, 1.0, room)
        moved = best + room * np.where(better, step, 0.3 * (target - z) / rise)
        moved = np.real(moved) + 1j * np.abs(np.imag(moved))
        here = np.where(error <= 1e-16, best, moved)
    return best, error


def support(share: float, data_ratio: float, width_ratios: tuple[float, ...]) -> list[Interval]:
    """The images of those z₀ on the real line, off the law of the data, at which every layer rises."""
    base = laws.marchenko_pastur(data_ratio)
    low, high = (float(end) for end in base.edges[0])
    far = 1e6 * (1 + high)
    blocks = [0.0, low] if data_ratio > 1 else [low]
    gaps = [(-far, blocks[0]), *([(0.0, low)] if data_ratio > 1 else []), (high, far)]
    found = []
    for left, right in gaps:
        t = np.linspace(-36, 36, GRID)
        points = np.unique(left + (right - left) / (1 + np.exp(-t)))
        points = points[(points > left) & (points < right)]
        good = _rises(points, share, data_ratio, width_ratios)
        change = np.flatnonzero(good[1:] != good[:-1])
        marks = np.concatenate([[0] if good[0] else [], change + 1, [len(points)] if good[-1] else []]).astype(int)
        for begin, stop in marks.reshape(-1, 2):
            ends = []
            for inside, beyond in ((begin, begin - 1), (stop - 1, stop)):
                if not 0 <= beyond < len(points):
                    ends.append(-np.inf if beyond < 0 else np.inf)
                    continue
                a, b = points[inside], points[beyond]
                for _ in range(60):
                    middle = (a + b) / 2
                    a, b = (
                        (middle, b) if _rises(np.array([middle]), share, data_ratio, width_ratios)[0] else (a, middle)
                    )
                ends.append(float(np.real(through(np.array([a + 0j]), share, data_ratio, width_ratios).point)[0]))
            found.append(Interval(ends[0], ends[1]))
    return sorted(found)


def _rises(points: Floats, share, data_ratio, width_ratios) -> NDArray:
    """Whether dz_l/dz₀ > 0 for every layer l."""
    good = np.ones(points.shape, bool)
    for count in range(1, len(width_ratios) + 1):
        with np.errstate(all="ignore"):
            rise = np.real(through(points + 0j, share, data_ratio, width_ratios[:count]).rise)
        good &= rise > 0
    return good


def deep_kernel(share: float, data_ratio: float, width_ratios: tuple[float, ...]) -> DeepKernel:
    """Build the law, its edges and its atom; see `spectra.conjugate_kernel_spectrum`."""
    gaps = support(share, data_ratio, width_ratios)
    pieces = np.array([(left.high, right.low) for left, right in itertools.pairwise(gaps)])
    zero = max(0.0, 1 - 1 / data_ratio)
    for ratio in width_ratios:
        # b² < 1 lifts what lies at zero.
        zero = max(1 - 1 / ratio, zero if share == 1 else 0.0)
    top = pieces[-1, 1]
    bulks = np.array([(max(low, 0.0), high) for low, high in pieces if high > 1e-12 * top])
    between = [(left + right) / 2 for left, right in zip(bulks[:-1, 1], bulks[1:, 0], strict=True)]
    inner = preimage(np.array([*between]) + 1e-13j * top, share, data_ratio, width_ratios) if between else np.zeros(0)
    upper = np.imag(through(inner, share, data_ratio, width_ratios).potential) / np.pi if between else np.zeros(0)
    levels = np.concatenate([[1 - max(zero, 0.0)], upper, [0.0]])
    return DeepKernel(
        bulks, -np.diff(levels), Atoms(np.zeros(1), np.array([max(zero, 0.0)])), share, data_ratio, width_ratios
    )
