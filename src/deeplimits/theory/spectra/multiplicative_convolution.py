"""The law of a product of free positive matrices: free multiplicative convolution of any number of factors."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray

from deeplimits.errors import NotConverged, ParameterError
from deeplimits.models.atoms import Atoms
from deeplimits.theory.spectra import supports
from deeplimits.theory.spectra.combined import Combined
from deeplimits.theory.spectra.half_plane import fixed_point
from deeplimits.theory.spectra.spectral_measure import SpectralMeasure, Transform

RESIDUAL = 1e-9
NEWTON_STEPS = 40
# Steps of the path from infinity: factors of the modulus on the imaginary axis, then angles down to the real line.
SHRINK = 0.35
ANGLES = np.pi / 2 * np.array([0.85, 0.7, 0.55, 0.42, 0.3, 0.2, 0.12, 0.06, 0.02, 0.005, 5e-4, 0.0])


@dataclass(frozen=True)
class FreeProduct(Combined):
    """The law of A₁^{1/2} U₂A₂U₂' … A₁^{1/2}, factor j appearing n_j times. Made by `spectra.free_product`.

    With M(z) = zG(z) − 1 the factors share one value M = M_j(y_j), and z ((1 + M)/M)^{N−1} = Π y_j^{n_j}, N = Σ n_j.
    The branch is the one that continues M ≈ mean/z from infinity.
    """

    factors: tuple[SpectralMeasure, ...]
    counts: tuple[int, ...]

    def solve(self, z: NDArray) -> Transform:
        return transform(self.factors, self.counts, z)

    def mean(self) -> Float[Array, ""]:
        """The product of the means."""
        means = [float(law.mean()) ** count for law, count in zip(self.factors, self.counts, strict=True)]
        return jnp.asarray(np.prod(means))


def transform(factors: Sequence[SpectralMeasure], counts: Sequence[int], z: NDArray) -> Transform:
    """m and m' of the product at points of the closed upper half plane other than zero."""
    flat = np.asarray(z, complex).ravel()
    y, residual = follow(factors, counts, flat)
    lost = ~(residual < RESIDUAL)
    if lost.any() and list(counts) == [1, 1]:
        # In a gap a y_j may pass through zero, where logarithms fail; two factors have another equation.
        again, left = subordinate(factors[0], factors[1], flat[lost])
        better = left < residual[lost]
        index = np.flatnonzero(lost)[better]
        residual[index] = left[better]
        for part, found in zip(y, again, strict=True):
            part[index] = found[better]
    m, slopes = _shared(factors, y)
    # Beside an atom M is large and known only to the rounding of the distance.
    if not np.all(residual < RESIDUAL + 1e-14 * np.abs(m[0])):
        worst = int(np.argmax(np.where(np.isfinite(residual), residual, np.inf)))
        raise NotConverged(
            f"the equation of the free product at z = {flat[worst]:.6g} left a relative residual of "
            f"{residual[worst]:.1e} (tolerance {RESIDUAL:g})"
        )
    # m = −(1 + M)/z; dM/dz from the logarithmic derivative of z((1 + M)/M)^{N−1} = Π y_j^{n_j}
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = sum(n / (slope * part) for n, slope, part in zip(counts, slopes, y, strict=True))
        turned = 1 / (flat * (rate + (sum(counts) - 1) / (m[0] * (1 + m[0]))))
        value, slope = -(1 + m[0]) / flat, (1 + m[0]) / flat**2 - turned / flat
        return Transform(value.reshape(np.shape(z)), slope.reshape(np.shape(z)))


class Subordination(NamedTuple):
    """y_j of every factor at every z, and the relative residual."""

    points: list[NDArray]
    residual: NDArray


def subordinate(first: SpectralMeasure, second: SpectralMeasure, z: NDArray) -> Subordination:
    """y₁ and y₂ for two factors: y₁ = z/k₂(y₂), y₂ = z/k₁(y₁), k(y) = y + 1/m(y), along an arc down to z.

    Both steps map the upper half plane into itself, also where z lies in a gap and a y passes through zero.
    """

    def one(law, y):
        m, slope = law.above(y)
        # 1/k and its derivative, regular where m vanishes.
        inverse = m / (1 + y * m)
        return inverse, (slope - m**2) / (1 + y * m) ** 2

    def image(y, z):
        inverse1, slope1 = one(first, y)
        inverse2, slope2 = one(second, z * inverse1)
        return z * inverse2, z * slope2 * z * slope1

    modulus, end = np.abs(z), np.angle(z)
    y, error = 1j * modulus, np.zeros(z.shape)
    for share in ANGLES / (np.pi / 2):
        turned = modulus * np.exp(1j * (end + (np.pi / 2 - end) * share))
        turned = z if share == 0 else turned
        y, error = fixed_point(image, turned, y, np.zeros(z.shape))
    return Subordination([y, z * one(first, y)[0]], error)


def follow(factors: Sequence[SpectralMeasure], counts: Sequence[int], z: NDArray) -> Subordination:
    """The y_j at every z, continued from infinity down the imaginary axis and along an arc to z."""
    means = [float(law.mean()) for law in factors]
    tops = [law.support[1] for law in factors]
    far = np.log(50.0) + sum(n * np.log(top) for n, top in zip(counts, tops, strict=True))
    goal = np.log(np.abs(z))
    start = np.maximum(far, goal)
    total = sum(n * np.log(mean) for n, mean in zip(counts, means, strict=True))
    # Far away M ≈ Π mean_j^{n_j}/z and y_j ≈ mean_j/M.
    y = [mean * np.exp(start - total) * 1j for mean in means]
    steps = int(np.ceil(np.max(start - goal) / -np.log(SHRINK))) if z.size else 0
    residual = np.zeros(z.shape)
    quarter = 1j * np.pi / 2
    for step in range(steps + 1):
        height = start + (goal - start) * (step / max(steps, 1))
        y, residual = _correct(factors, counts, height + quarter, y)
    end = np.angle(z)
    for share in ANGLES / (np.pi / 2):
        # From the imaginary axis to the argument of z, whichever side it lies on.
        y, residual = _correct(factors, counts, goal + 1j * (end + (np.pi / 2 - end) * share), y)
    return Subordination(y, residual)


def _shared(factors, y):
    """M_j(y_j) and its slope for every factor: M = −y m − 1."""
    values, slopes = [], []
    for law, part in zip(factors, y, strict=True):
        m, slope = law.above(part)
        values.append(-part * m - 1)
        slopes.append(-m - part * slope)
    return values, slopes


def _correct(factors, counts, log_z, y):
    """Newton's method for M_j(y_j) = M and log z + (N − 1) log((1 + M)/M) = Σ n_j log y_j, from a nearby solution."""
    order = sum(counts) - 1
    y = [part.copy() for part in y]
    best, error = [part.copy() for part in y], np.full(log_z.shape, np.inf)
    active = np.arange(log_z.size)
    with np.errstate(all="ignore"):
        for _ in range(NEWTON_STEPS):
            here = [part[active] for part in y]
            m, slopes = _shared(factors, here)
            first = m[0]
            gap = log_z[active] + order * (np.log(1 + first) - np.log(first))
            gap = gap - sum(n * np.log(part) for n, part in zip(counts, here, strict=True))
            # Logarithms are compared up to turns.
            gap = gap.real + 1j * ((gap.imag + np.pi) % (2 * np.pi) - np.pi)
            lags = [first - other for other in m]
            pull = sum(n * lag / (slope * part) for n, lag, slope, part in zip(counts, lags, slopes, here, strict=True))
            rate = -order / (first * (1 + first))
            rate = rate - sum(n / (slope * part) for n, slope, part in zip(counts, slopes, here, strict=True))
            # δM solves gap + rate δM − pull = 0; δy_j = (lag_j + δM)/M_j'.
            move = (pull - gap) / rate
            # Small in the equation or small in M: beside zero the equation amplifies the rounding of M.
            size = np.minimum(np.abs(gap) / (1 + order), np.abs(move / first))
            size = size + sum(np.abs(lag) for lag in lags) / np.abs(first)
            improved = size < error[active]
            error[active[improved]] = size[improved]
            for kept, part in zip(best, here, strict=True):
                kept[active[improved]] = part[improved]
            going = ~((size < 1e-15) | (~improved & (error[active] < 1e-12)) | ~np.isfinite(size))
            if not going.any():
                break
            for kept, part, lag, slope in zip(y, here, lags, slopes, strict=True):
                step = (lag + move) / slope
                # A step may not leave the upper half plane.
                damp = np.where(
                    part.imag + step.imag > 0, 1.0, -0.9 * part.imag / np.where(step.imag < 0, step.imag, -1.0)
                )
                kept[active[going]] = (part + damp * step)[going]
            active = active[going]
    return Subordination(best, error)


def free_product(factors: Sequence[SpectralMeasure], counts: Sequence[int]) -> FreeProduct:
    """Build the law, its edges and its atoms; see `spectra.free_product`."""
    if not factors:
        raise ParameterError("a free product needs at least one factor")
    for index, law in enumerate(factors):
        supports.require_positive(law, f"factor {index + 1}")

    def combine(points):
        return float(np.prod([point**n for point, n in zip(points, counts, strict=True)]))

    places, masses = (np.asarray(part) for part in supports.atoms_of_combination(factors, counts, combine))
    zero = max(float(np.sum(np.asarray(law.atoms.weights)[np.asarray(law.atoms.values) == 0])) for law in factors)
    kept = places != 0
    places, masses = places[kept], masses[kept]
    if zero > 0:
        places, masses = np.append(0.0, places), np.append(zero, masses)
    low = combine([law.support[0] for law in factors])
    high = upper_edge(factors, counts)

    bulks = supports.scan(lambda x: transform(factors, counts, x.astype(complex))[0], (low, high), places)
    return FreeProduct(bulks, Atoms(places, masses), tuple(factors), tuple(counts))


def upper_edge(factors: Sequence[SpectralMeasure], counts: Sequence[int]) -> float:
    """The top of the support: the smallest z(M) over the M > 0 that every factor attains above its own support.

    z = (M/(1 + M))^{N−1} Π y_j^{n_j}, and y_j = (1 + M)/(M S_j(M)) by the S-transform of the factor.
    """
    order = sum(counts) - 1

    def log_z(log_m):
        m = np.exp(log_m)
        total = order * (log_m - np.log1p(m))
        for law, n in zip(factors, counts, strict=True):
            total = total + n * (np.log1p(m) - log_m - np.log(np.asarray(law.s_transform(m))))
        return total

    reach = min(_largest_shared_value(law) for law in factors)
    left, right = -12.0, min(np.log(reach), 14.0)
    for _ in range(14):
        grid = np.linspace(left, right, 41)
        best = int(np.argmin(log_z(grid)))
        left, right = grid[max(best - 1, 0)], grid[min(best + 1, 40)]
    least = np.min(log_z(np.array([left, (left + right) / 2, right])))
    # Where every factor carries an atom on its top, M may grow without bound, and z falls to the product of the tops.
    limit = (
        sum(n * np.log(law.support[1]) for law, n in zip(factors, counts, strict=True)) if reach == np.inf else np.inf
    )
    return float(np.exp(min(least, limit)))


def _largest_shared_value(law: SpectralMeasure) -> float:
    """M just above the support; infinite where an atom is on top."""
    top = law.support[1]
    if np.any(np.asarray(law.atoms.values)[np.asarray(law.atoms.weights) > 0] == top):
        return np.inf
    m = law.outside(np.array([top * (1 + 1e-13)]))[0][0]
    return float(-top * m - 1) * (1 - 1e-9)
