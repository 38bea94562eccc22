"""The law of the eigenvalues of a sample covariance matrix, for any population."""

import itertools
from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Complex, Float
from numpy.typing import ArrayLike, NDArray

from deeplimits.errors import NotConverged, OutsideValidity, ParameterError
from deeplimits.models.atoms import Atoms
from deeplimits.numerics import roots
from deeplimits.numerics.arguments import POSITIVE, number, point
from deeplimits.numerics.shapes import Scalar
from deeplimits.theory.spectra import preimages
from deeplimits.theory.spectra.atomic import Atomic
from deeplimits.theory.spectra.cumulants import moments_of_cumulants
from deeplimits.theory.spectra.spectral_measure import Floats, SpectralMeasure, Transform, on_the_line

RESIDUAL = 1e-10
TABLE_POINTS = 32
MOST_TABLE_POINTS = 256
# An interval between two atoms where ψ' stays below zero by less than this leaves a dent in the density.
DENT = 1.0
# Heights above the real line from which a point is approached where the table does not lead to it.
DESCENT = (*np.geomspace(1.0, 1e-5, 18), 0.0)


class Preimage(NamedTuple):
    """α(z) = −1/m̲(z), and z/α."""

    alpha: NDArray
    stretch: NDArray


@dataclass(frozen=True)
class SampleCovariance(SpectralMeasure):
    """The limiting law of (1/n) Σ^{1/2} Z'Z Σ^{1/2}. Made by `spectra.sample_covariance`."""

    population: SpectralMeasure
    gamma: float
    ends: Floats
    """The α that begin and end the bulks; ψ maps them to the edges."""
    bulks: Floats
    dents: Floats
    zero: float
    """Mass at zero."""
    table: preimages.Table
    """Points of the curve α(x), to start from."""

    @property
    def edges(self):
        return jnp.asarray(self.bulks)

    @property
    def atoms(self):
        return Atoms(jnp.zeros(1), jnp.asarray(self.zero)[None])

    @property
    def cuts(self):
        return self.dents

    def above(self, z: NDArray) -> Transform:
        return self._transform(self._preimage(z), z)

    def outside(self, x: NDArray) -> Transform:
        value, slope = self._transform(self._preimage_outside(x.ravel()), x.ravel())
        return Transform(value.reshape(x.shape), slope.reshape(x.shape))

    def _preimage_outside(self, flat: Floats) -> Floats:
        """The real α with ψ(α) = x and ψ'(α) > 0, for x in a gap or beyond the support."""
        below = np.sum(flat[:, None] >= self.bulks[None, :, 1], axis=1)
        # Left of the support ψ(α) − α ∈ (0, γ∫t) for α < 0 and ψ(α) < α for α > 0; right of it ψ(α) > α.
        reach = 1.01 * self.gamma * self.population.support[1]
        first, last = min(flat.min(initial=0.0), 0.0) - reach, max(flat.max(initial=0.0), self.ends[-1, 1])
        left, right = np.append(first, self.ends[:, 1])[below], np.append(self.ends[:, 0], last)[below]

        def image(alpha):
            one, two = preimages.first_and_second(self.population, alpha)
            return alpha * (1 + self.gamma * one), 1 - self.gamma * two

        return preimages.monotone_preimage(image, flat, left, right)

    def moment_transform(self, z: NDArray) -> Transform:
        """M(z) = ∫ t dH/(α − t): that of the population at α."""
        if not np.iscomplexobj(z):
            alpha = self._preimage_outside(np.ravel(z)).reshape(np.shape(z))
        else:
            alpha = self._preimage(z)
        value, slope = self.population.moment_transform(alpha)
        _, second = preimages.first_and_second(self.population, alpha)
        with np.errstate(divide="ignore", invalid="ignore"):
            return Transform(value, slope / (1 - self.gamma * second))

    def potential(self, z: NDArray) -> NDArray:
        z = np.asarray(z, complex)
        alpha = self._preimage(z)
        value, _ = self.population.moment_transform(alpha)
        # U = U_H(α) + M + (1 − 1/γ) log(z/α)
        return self.population.potential(alpha) + value + (1 - 1 / self.gamma) * np.log(1 + self.gamma * value)

    def density(self, x: ArrayLike) -> Float[Array, "..."]:
        x = on_the_line(x)
        flat = x.ravel()
        inside = self._in_bulk(flat)
        value = np.zeros(flat.shape)
        # ρ = Im m̲/(πγ), m̲ = −1/α
        value[inside] = (-1 / self._preimage(flat[inside].astype(complex))).imag / (np.pi * self.gamma)
        return jnp.asarray(value.reshape(x.shape))

    def cdf(self, x: ArrayLike) -> Float[Array, "..."]:
        if not isinstance(self.population, Atomic):
            return super().cdf(x)
        x = on_the_line(x)
        flat = x.ravel()
        inside = self._in_bulk(flat)
        # In a gap, and beyond the support, the value is that of the edge below.
        at_edges = np.append(1 - self.zero, self._upper_mass(self.ends[:, 1].astype(complex)))
        upper = at_edges[np.searchsorted(self.bulks[:, 1], flat, side="right")]
        upper[inside] = self._upper_mass(self._preimage(flat[inside].astype(complex)))
        return jnp.asarray(np.where(flat < 0, 0.0, np.clip(1 - upper, 0.0, 1.0)).reshape(x.shape))

    def moment(self, order: int) -> Scalar:
        """From the free cumulants of the companion law, κ_k = γ∫t^k dH: its moments are γ times those of this law."""
        if order < 1:
            return super().moment(order) if order else jnp.ones(())
        cumulants = [self.gamma * float(self.population.moment(k)) for k in range(1, order + 1)]
        return jnp.asarray(moments_of_cumulants(cumulants)[-1] / self.gamma)

    def companion(self, z: ArrayLike) -> Complex[Array, "..."]:
        """m̲(z) = γ m(z) − (1 − γ)/z = −1/α(z), the transform of the n×n Gram matrix's law; z off its support."""
        alpha, _ = self.preimage_off_support(z)
        if np.any(alpha == 0):
            raise ParameterError("z = 0 is an atom of the Gram matrix's law, a pole of its transform; take another z")
        return jnp.asarray(-1 / alpha)

    def preimage_off_support(self, z: ArrayLike) -> Preimage:
        """α(z) = −1/m̲(z) and z/α(z) = 1 + γS₁(α) for z off the bulks, both without cancellation also at z = 0."""
        z = np.asarray(point("z", z))
        flat = z.ravel()
        x, height = np.real(flat), np.imag(flat)
        upper, real = x + 1j * np.abs(height), height == 0
        if np.any(real & self._in_bulk(x)):
            raise ParameterError("z lies on the support; add an imaginary part, or call preimage(x) for the upper side")
        alpha, stretch = np.empty(flat.shape, complex), np.empty(flat.shape, complex)
        for rows in (real, ~real):
            if rows.any():
                found = self._preimage_outside(x[rows]) if real[rows].all() else self._preimage(upper[rows])
                first, _ = preimages.first_and_second(self.population, found)
                alpha[rows], stretch[rows] = found, self._stretch(first, found, upper[rows])
        turned = height < 0
        alpha, stretch = (np.where(turned, np.conj(part), part).reshape(z.shape) for part in (alpha, stretch))
        return Preimage(alpha, stretch)

    def _stretch(self, first, alpha, z):
        """1 + γS₁(α), or where that cancels the equal z/α."""
        stretch = 1 + self.gamma * first
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where((np.abs(stretch) > 0.5) | (alpha == 0), stretch, z / alpha)

    def preimage(self, x: ArrayLike) -> Complex[Array, "..."]:
        """α(x + i0) = −1/m̲(x + i0) for real x inside a bulk."""
        x = on_the_line(x)
        if not np.all(self._in_bulk(x.ravel())):
            raise ParameterError("x contains a point outside the bulks; the preimage is asked for inside them")
        return jnp.asarray(self._preimage(x.astype(complex)))

    def _transform(self, alpha, z):
        found = preimages.sums(self.population, alpha)
        # m = m_H(α)/(1 + γS₁), dm/dz = (dm/dα)/ψ'(α), S₁' = −∫t dH/(α − t)²
        stretch = self._stretch(found.first, alpha, z)
        value = found.transform / stretch
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            slope = (found.slope + self.gamma * value * found.mixed) / stretch
            return Transform(value, slope / (1 - self.gamma * found.second))

    def _upper_mass(self, alpha):
        """The mass above ψ(α): {arg α + γ Σ w [arg(α − t) − arg α − t Im α/|α − t|²]}/(πγ)."""
        t, w = (np.asarray(part) for part in self.population.atoms)
        total = np.empty(alpha.shape)
        for part in np.array_split(np.arange(alpha.size), 1 + alpha.size * t.size // 2**20):
            offset = alpha[part, None] - t
            lag = np.where(t > 0, np.angle(offset) - np.angle(alpha[part, None]), 0.0)
            drop = t * offset.imag / (offset.real**2 + offset.imag**2)
            total[part] = (np.angle(alpha[part]) + self.gamma * ((lag - drop) @ w)) / (np.pi * self.gamma)
        return total

    def _preimage(self, z):
        flat = z.ravel()
        alpha, error = preimages.preimage(self.population, self.gamma, flat, self._start(flat))
        lost = ~(error < RESIDUAL)
        if lost.any():
            # From far above the real line, where one step suffices, down to the point.
            scale = self.population.support[1] * (1 + self.gamma)
            start, left = flat[lost] + 1j * scale, error[lost]
            for height in DESCENT:
                start, left = preimages.preimage(self.population, self.gamma, flat[lost] + 1j * scale * height, start)
            alpha[lost], error[lost] = start, left
        if not np.all(error < RESIDUAL):
            worst = int(np.argmax(np.where(np.isfinite(error), error, np.inf)))
            raise NotConverged(
                f"Silverstein's equation at z = {flat[worst]:.6g} left a relative residual of {error[worst]:.1e} "
                f"(tolerance {RESIDUAL:g})"
            )
        return alpha.reshape(z.shape)

    def _start(self, z):
        """On the real line a point of the curve; above it as far above the curve."""
        x, table = z.real, self.table
        index = np.clip(np.searchsorted(self.bulks[:, 1], x), 0, len(self.bulks) - 1)
        (low, high), (left, right) = self.bulks[index].T, self.ends[index].T
        inside = (x > low) & (x < high)
        a = np.interp(x, table.x.ravel(), table.a.ravel())
        # The curve leaves an edge linearly in x, so that the first and last piece go through the edge itself.
        with np.errstate(divide="ignore", invalid="ignore"):
            at_left = left + (table.a[index, 0] - left) * (x - low) / (table.x[index, 0] - low)
            at_right = right - (right - table.a[index, -1]) * (high - x) / (high - table.x[index, -1])
        a = np.where(x < table.x[index, 0], at_left, np.where(x > table.x[index, -1], at_right, a))
        a = np.where(inside, a, x)
        square = np.interp(a, table.a.ravel(), table.shape.ravel()) * (a - left) * (right - a)
        b = np.sqrt(np.where(inside, np.maximum(square, 0.0), 0.0))
        return a + 1j * (np.maximum(b, 1e-12 * (right - left)) + z.imag)


def sample_covariance(population: SpectralMeasure, gamma: ArrayLike) -> SampleCovariance:
    """Build the law, its edges and its atom; see `spectra.sample_covariance`."""
    ratio = float(number("gamma", gamma, POSITIVE))
    low, high = population.support
    if low < 0:
        raise ParameterError(
            f"population has an eigenvalue {low:g}; a covariance matrix has none below 0 (clip or correct it first)"
        )
    if high <= 0:
        raise OutsideValidity("population sits at zero; its sample covariance is zero, and has no density")
    places, masses = (np.asarray(part) for part in population.atoms)
    hidden = float(masses[places == 0].sum())
    with np.errstate(divide="ignore"):
        ends, crests = find_ends(population, ratio)

    def image(alpha):
        return alpha * (1 + ratio * preimages.first_and_second(population, alpha)[0])

    bulks = image(ends)
    # γ(1 − H{0}) = 1 puts the lower edge at zero, where rounding must not make it negative.
    bulks[0, 0] = max(bulks[0, 0], 0.0)
    bound = TABLE_POINTS + (min(MOST_TABLE_POINTS, population.law.values.size) if isinstance(population, Atomic) else 0)
    dents = image(crests + 1j * preimages.heights(population, ratio, crests)).real
    return SampleCovariance(
        population,
        ratio,
        ends,
        bulks,
        dents,
        max(hidden, 1 - 1 / ratio, 0.0),
        preimages.table(population, ratio, ends, bound // len(ends) + TABLE_POINTS),
    )


class Ends(NamedTuple):
    """The α that begin and end every bulk, and those above which the density is dented."""

    bulks: Floats
    dents: Floats


def find_ends(population: SpectralMeasure, gamma: float) -> Ends:
    """The α that begin and end every bulk, from the zeros of ψ', and those above which the density is dented.

    ψ' falls from 1 to −∞ left of the population and rises from −∞ to 1 right of it. In every interval between its
    atoms and bulks ψ' is concave and −∞ at both ends: the interval holds a gap of the support exactly where its
    maximum is positive, and dents the density where the maximum is negative but near zero.
    """
    places, masses = (np.asarray(part) for part in population.atoms)
    points = np.concatenate([np.asarray(population.edges).ravel(), places[(masses > 0) & (places > 0)]])
    bottom, top = points.min(), points.max()
    reach = 1.001 * np.sqrt(gamma) * top

    def slope(alpha):
        return 1 - gamma * preimages.first_and_second(population, alpha)[1]

    low = _zero(slope, np.array([bottom]), np.array([bottom - reach]))
    high = _zero(slope, np.array([top]), np.array([top + reach]))
    between = _intervals(population)
    if isinstance(population, Atomic) and len(between):
        # Two atoms beside an interval of length d alone keep ψ' below 1 − γ(A^{1/3} + B^{1/3})³/d², A = w t².
        cubed = np.cbrt(masses * places**2)[places > 0]
        bound = 1 - gamma * (cubed[:-1] + cubed[1:]) ** 3 / (between[:, 1] - between[:, 0]) ** 2
        between = between[bound > -DENT]
    if not len(between):
        return Ends(np.concatenate([low, high])[None, :], np.zeros(0))
    crest = roots.peak(slope, *between.T)
    height = slope(crest)
    dents, opened = crest[(height <= 0) & (height > -DENT)], height > 0
    between, crest = between[opened], crest[opened]
    closing, opening = _zero(slope, between[:, 0], crest), _zero(slope, between[:, 1], crest)
    return Ends(np.stack([np.concatenate([low, opening]), np.concatenate([closing, high])], axis=1), dents)


def _intervals(population: SpectralMeasure) -> Floats:
    """The bounded intervals between atoms and bulks of the population, an atom at zero left out."""
    places, masses = (np.asarray(part) for part in population.atoms)
    blocks = [(place, place) for place, mass in zip(places, masses, strict=True) if mass > 0 and place > 0]
    blocks = sorted([*blocks, *(tuple(bulk) for bulk in np.asarray(population.edges))])
    pairs = itertools.pairwise(blocks)
    return np.array([(left[1], right[0]) for left, right in pairs if right[0] > left[1]]).reshape(-1, 2)


def _zero(function, negative, positive):
    """Zeros of functions that fall to −∞ at one end and are positive at the other, entry by entry."""
    sentence = "an end of the support was not found"
    return roots.on_host(lambda a: np.where(a == negative, -np.inf, function(a)), negative, positive, sentence)
