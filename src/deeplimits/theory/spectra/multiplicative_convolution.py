"""The law of a product of free positive matrices: free multiplicative convolution of any number of factors."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from scipy import special

from deeplimits.errors import NotConverged
from deeplimits.numerics.shapes import Scalar
from deeplimits.theory.spectra import series
from deeplimits.theory.spectra.combined import Combined
from deeplimits.theory.spectra.half_plane import fixed_point
from deeplimits.theory.spectra.spectral_measure import SpectralMeasure, Transform

RESIDUAL = 1e-9
NEWTON_STEPS = 60
# Steps of the path from infinity: factors of the modulus on the imaginary axis, then angles down to the real line.
SHRINK = 0.35
ANGLES = np.array([0.85, 0.7, 0.55, 0.42, 0.3, 0.2, 0.12, 0.06, 0.02, 0.005, 5e-4, 0.0])
TABLE = 161
"""Points of a bulk at which the y_j are kept, to start from between them."""


@dataclass(frozen=True)
class FreeProduct(Combined):
    """The law of A₁^{1/2} U₂A₂U₂' … A₁^{1/2}, factor j appearing n_j times. Made by `spectra.free_product`.

    With M(z) = zG(z) − 1 the factors share one value M = M_j(y_j), and z ((1 + M)/M)^{N−1} = Π y_j^{n_j}, N = Σ n_j.
    With 1 + M = −y_j m_j(y_j) this is z = (−M)^{N−1} y₁/Π' m_j(y_j), the product over all factors but one copy of the
    first: every logarithm is that of a point of the upper half plane, so that there are no turns to choose from.
    """

    factors: tuple[SpectralMeasure, ...]
    counts: tuple[int, ...]

    def solve(self, z: NDArray) -> Transform:
        flat = np.asarray(z, complex).ravel()
        value, slope = np.empty(flat.shape, complex), np.empty(flat.shape, complex)
        rows = flat != 0
        value[rows], slope[rows] = transform(self.factors, self.counts, flat[rows], self._found(flat[rows]))
        if not rows.all():
            value[~rows], slope[~rows] = self._at_zero()
        return Transform(value.reshape(np.shape(z)), slope.reshape(np.shape(z)))

    def potential(self, z: NDArray) -> NDArray:
        flat = np.asarray(z, complex).ravel()
        y = self._found(flat)
        m, _ = self.factors[0].moment_transform(y[0])
        # U(z) = (N − 1) log M + Σ n_j U_j(y_j)
        total = (sum(self.counts) - 1) * np.log(m)
        for law, n, part in zip(self.factors, self.counts, y, strict=True):
            total = total + n * law.potential(part)
        return total.reshape(np.shape(z))

    def moment_transform(self, z: NDArray) -> Transform:
        flat = np.asarray(z, complex).ravel()
        y = self._found(flat)
        value, slopes = _shared(self.factors, y)
        turned = _turned(self.counts, flat, value[0], y, slopes, self.factors)
        found = Transform(value[0].reshape(np.shape(z)), turned.reshape(np.shape(z)))
        return found if np.iscomplexobj(z) else Transform(np.real(found.value), np.real(found.slope))

    def moment(self, order: int) -> Scalar:
        """From the S-transforms, which multiply: power series up to this order."""
        if order < 1:
            return super().moment(order)
        return jnp.asarray(series.product_moments(self.factors, self.counts, order)[-1])

    def mean(self) -> Scalar:
        """The product of the means."""
        return self.moment(1)

    def _at_zero(self) -> tuple[float, float]:
        """m and m' at zero, off the support: there every y_j is zero, and inverse moments multiply."""
        inside = [law.outside(np.zeros(1)) for law in self.factors]
        value = float(np.prod([part[0][0] ** n for part, n in zip(inside, self.counts, strict=True)]))
        step = 1e-5 * float(self.bulks[0, 0])
        left, right = (np.real(self.solve(np.array([x + 0j]))[0][0]) for x in (-step, step))
        return value, (right - left) / (2 * step)

    def _found(self, z: NDArray) -> list[NDArray]:
        """The y_j: inside bulks from the nearest points of a table, otherwise continued from infinity."""
        y = [np.empty(z.shape, complex) for _ in self.factors]
        close = (np.imag(z) == 0) & self._in_bulk(np.real(z))
        rows = np.flatnonzero(close)
        if rows.size:
            start = self._nearby(np.real(z[rows]))
            found, residual = _correct(self.factors, self.counts, np.log(z[rows]), start)
            good = residual < 1e-12
            for kept, part in zip(y, found, strict=True):
                kept[rows[good]] = part[good]
            close[rows[~good]] = False
        rows = np.flatnonzero(~close)
        if rows.size:
            for kept, part in zip(y, solution(self.factors, self.counts, z[rows], self._top), strict=True):
                kept[rows] = part
        return y

    @property
    def _top(self) -> float:
        return float(max([*self.bulks.ravel(), *np.asarray(self.places.values)]))

    def _nearby(self, x: NDArray) -> list[NDArray]:
        starts = [np.empty(x.shape, complex) for _ in self.factors]
        index = np.searchsorted(self.bulks[:, 1], x)
        for bulk in np.unique(index):
            rows = index == bulk
            low, high = self.bulks[bulk]
            share = (x[rows] - low) / (high - low)
            t = np.arcsinh((np.log(share) - np.log1p(-share)) / np.pi)
            nodes, logs = self._tables[bulk]
            for start, log in zip(starts, logs, strict=True):
                start[rows] = np.exp(np.interp(t, nodes, log.real) + 1j * np.interp(t, nodes, log.imag))
        return starts

    @cached_property
    def _tables(self) -> list[tuple[NDArray, list[NDArray]]]:
        tables = []
        for low, high in self.bulks:
            # As dense towards the ends as the nodes of a quadrature; a lower end at zero is approached much closer.
            nodes = np.linspace(-4.6 if low == 0 else -2.6, 2.6, TABLE)
            x = low + (high - low) * special.expit(np.pi * np.sinh(nodes))
            y, residual = follow(self.factors, self.counts, x.astype(complex), self._top)
            kept = residual < RESIDUAL
            tables.append((nodes[kept], [np.log(part[kept]) for part in y]))
        return tables


def transform(factors: Sequence[SpectralMeasure], counts: Sequence[int], z: NDArray, y: list[NDArray]) -> Transform:
    """m and m' of the product at points of the closed upper half plane other than zero, from the y_j there."""
    m, slopes = _shared(factors, y)
    order = sum(counts) - 1
    with np.errstate(all="ignore"):
        # m = Π m_j^{n_j}/(−M)^{N−1}: as −(1 + M)/z it would cancel near zero.
        total = -order * np.log(-m[0])
        for law, n, part in zip(factors, counts, y, strict=True):
            total = total + n * np.log(law.above(part)[0])
        # Beside an atom at zero nothing cancels, and the product would lose its small imaginary part.
        value = np.where(np.abs(1 + m[0]) > 0.1, -(1 + m[0]) / z, np.exp(total))
        turned = _turned(counts, z, m[0], y, slopes, factors)
        return Transform(value, -(value + turned) / z)


def _turned(counts, z, m, y, slopes, factors):
    """dM/dz, from the logarithmic derivative of the equation."""
    with np.errstate(all="ignore"):
        return 1 / (z * _rate(factors, counts, m, y, slopes))


def _rate(factors, counts, m, y, slopes):
    """d log z/dM = (N − 1)/M + 1/(M₁'y₁) − Σ' m_j'/(m_j M_j')."""
    total = (sum(counts) - 1) / m + 1 / (slopes[0] * y[0])
    for index, (law, n, part, slope) in enumerate(zip(factors, counts, y, slopes, strict=True)):
        value, change = law.above(part)
        total = total - (n - (index == 0)) * change / (value * slope)
    return total


def solution(factors: Sequence[SpectralMeasure], counts: Sequence[int], z: NDArray, top: float) -> list[NDArray]:
    """The y_j at points of the closed upper half plane other than zero, or `NotConverged`."""
    y, residual = follow(factors, counts, z, top)
    lost = ~(residual < RESIDUAL)
    if lost.any() and list(counts) == [1, 1]:
        # In a gap a y_j may pass through zero; two factors have another equation.
        again, left = subordinate(factors[0], factors[1], z[lost])
        better = left < residual[lost]
        index = np.flatnonzero(lost)[better]
        residual[index] = left[better]
        for part, found in zip(y, again, strict=True):
            part[index] = found[better]
    m, _ = _shared(factors, y)
    # Beside an atom M is large and known only to the rounding of the distance.
    if not np.all(residual < RESIDUAL + 1e-14 * np.abs(m[0])):
        worst = int(np.argmax(np.where(np.isfinite(residual), residual, np.inf)))
        raise NotConverged(
            f"the equation of the free product at z = {z[worst]:.6g} left a relative residual of "
            f"{residual[worst]:.1e} (tolerance {RESIDUAL:g})"
        )
    return y


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
    for share in ANGLES:
        turned = modulus * np.exp(1j * (end + (np.pi / 2 - end) * share))
        turned = z if share == 0 else turned
        y, error = fixed_point(image, turned, y, np.zeros(z.shape))
    return Subordination([y, z * one(first, y)[0]], error)


def follow(factors: Sequence[SpectralMeasure], counts: Sequence[int], z: NDArray, top: float) -> Subordination:
    """The y_j at every z, continued from far beyond `top` down the imaginary axis and along an arc to z."""
    means = [float(law.mean()) for law in factors]
    total = sum(n * np.log(mean) for n, mean in zip(counts, means, strict=True))
    goal = np.log(np.abs(z))
    start = np.maximum(np.log(50.0) + np.log(top), goal)
    # Far away M ≈ Π mean_j^{n_j}/z and y_j ≈ mean_j/M.
    y = [mean * np.exp(start - total) * 1j for mean in means]
    steps = int(np.ceil(np.max(start - goal) / -np.log(SHRINK))) if z.size else 0
    residual = np.zeros(z.shape)
    quarter = 1j * np.pi / 2
    for step in range(steps + 1):
        height = start + (goal - start) * (step / max(steps, 1))
        y, residual = _correct(factors, counts, height + quarter, y)
    end = np.angle(z)
    for share in ANGLES:
        # From the imaginary axis to the argument of z, whichever side it lies on.
        y, residual = _correct(factors, counts, goal + 1j * (end + (np.pi / 2 - end) * share), y)
    return Subordination(y, residual)


def _shared(factors, y):
    """M_j(y_j) and its slope for every factor."""
    pairs = [law.moment_transform(part) for law, part in zip(factors, y, strict=True)]
    return [value for value, _ in pairs], [slope for _, slope in pairs]


def _correct(factors, counts, log_z, y):
    """Newton's method for M_j(y_j) = M and log z = (N − 1) log(−M) + log y₁ − Σ' log m_j(y_j), from nearby."""
    order = sum(counts) - 1
    y = [part.copy() for part in y]
    best, error = [part.copy() for part in y], np.full(log_z.shape, np.inf)
    active = np.arange(log_z.size)
    with np.errstate(all="ignore"):
        for _ in range(NEWTON_STEPS):
            here = [part[active] for part in y]
            m, slopes = _shared(factors, here)
            first = m[0]
            gap = log_z[active] - order * np.log(-first) - np.log(here[0])
            for index, (law, n, part) in enumerate(zip(factors, counts, here, strict=True)):
                if n - (index == 0):
                    gap = gap + (n - (index == 0)) * np.log(law.above(part)[0])
            lags = [first - other for other in m]
            rate = _rate(factors, counts, first, here, slopes)
            # y_j also moves by its lag: what that does to the equation.
            pull = 0.0
            for index, (law, n, part, lag, slope) in enumerate(zip(factors, counts, here, lags, slopes, strict=True)):
                if index:
                    value, change = law.above(part)
                    pull = pull - n * change / value * lag / slope
            move = (gap - pull) / rate
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
                # A step may not leave the upper half plane, nor move by more than the distance from zero.
                damp = np.where(
                    part.imag + step.imag > 0, 1.0, -0.9 * part.imag / np.where(step.imag < 0, step.imag, -1.0)
                )
                damp = np.minimum(damp, 2 * np.abs(part) / np.maximum(np.abs(step), 1e-300))
                kept[active[going]] = (part + damp * step)[going]
            active = active[going]
    return Subordination(best, error)
