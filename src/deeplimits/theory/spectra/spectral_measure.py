"""`SpectralMeasure`: a law of eigenvalues, atoms plus a density on known intervals."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Complex, Float
from numpy.typing import ArrayLike, NDArray
from scipy import special

from deeplimits.errors import NotConverged, OutsideValidity, ParameterError
from deeplimits.models.atoms import Atoms
from deeplimits.numerics import roots
from deeplimits.numerics.arguments import A_NUMBER, argument, point
from deeplimits.numerics.shapes import Scalar
from deeplimits.theory.spectra.cumulants import cumulants_of_moments
from deeplimits.theory.spectra.inversion import invert
from deeplimits.theory.spectra.rule import NODES, Rule, quadrature_rule

Floats = NDArray[np.floating]
# Below this product of argument and scale a transform is summed from its first cumulants.
SMALL = 1e-5


def on_the_line(x: ArrayLike) -> Floats:
    """Points of the real line at which something of a law is asked for; ±∞ are among them.

    >>> on_the_line([0.0, 1.0]).tolist()
    [0.0, 1.0]
    """
    return np.asarray(argument("x", x, A_NUMBER))


class Transform(NamedTuple):
    """m and m' at the same points."""

    value: NDArray
    slope: NDArray


class Interval(NamedTuple):
    """From low to high."""

    low: float
    high: float


class SpectralMeasure(ABC):
    """A probability measure on the line: atoms, and a density on a known union of intervals, its bulks.

    A concrete measure says where its bulks and atoms are and what its Stieltjes transform is, on the upper half plane
    and at its boundary; everything else follows. Transforms are m(z) = ∫ dμ(t)/(t − z), so that the density is
    Im m(x + i0)/π.

    >>> from deeplimits.theory.spectra import laws
    >>> law = laws.marchenko_pastur(0.5)
    >>> [round(float(edge), 6) for edge in law.edges.ravel()], round(float(law.cdf(1.0)), 6), float(law.moment(2))
    ([0.085786, 2.914214], 0.576004, 1.5)
    """

    @property
    @abstractmethod
    def edges(self) -> Float[Array, "bulks 2"]:
        """The ends of the bulks, in increasing order."""

    @property
    @abstractmethod
    def atoms(self) -> Atoms:
        """Places and masses of the atoms, in increasing order."""

    @abstractmethod
    def above(self, z: NDArray) -> Transform:
        """m and m' for Im z > 0, and their limits from above for real z inside a bulk."""

    @abstractmethod
    def outside(self, x: NDArray) -> Transform:
        """m and m' at real points outside bulks and atoms."""

    def moment_transform(self, z: NDArray) -> Transform:
        """M(z) = ∫ t dμ/(z − t) = zG(z) − 1 and its slope, where `above` (complex z) or `outside` (real z) gives m."""
        m, slope = self.above(z) if np.iscomplexobj(z) else self.outside(z)
        return Transform(-z * m - 1, -m - z * slope)

    def potential(self, z: NDArray) -> NDArray:
        """∫ log(z − t) dμ(t) for Im z > 0, or above real z: its imaginary part is π times the mass above a real z."""
        points, masses = self.quadrature()
        return np.log(np.asarray(z, complex)[..., None] - points) @ masses

    @property
    def cuts(self) -> Floats:
        """Points inside bulks where the density nearly vanishes, at which quadrature is cut into pieces."""
        return np.zeros(0)

    def stieltjes(self, z: ArrayLike) -> Complex[Array, "..."]:
        """The Stieltjes transform m(z) = ∫ dμ(t)/(t − z), z off the support.

        On the support the value depends on the side: `boundary` gives the limit from above.
        """
        z = np.asarray(point("z", z))
        flat = z.ravel()
        real = np.imag(flat) == 0
        if np.any(real & self.contains(np.real(flat))):
            raise ParameterError(
                "z lies on the support, where the transform differs from side to side; add an imaginary part, or call "
                "boundary(x) for the limit from above"
            )
        value = np.empty(flat.shape, complex)
        if real.any():
            value[real] = self.outside(np.real(flat[real]))[0]
        if not real.all():
            half = flat[~real]
            found = self.above(np.real(half) + 1j * np.abs(np.imag(half)))[0]
            value[~real] = np.where(np.imag(half) < 0, np.conj(found), found)
        return jnp.asarray(value.reshape(z.shape))

    def cauchy(self, z: ArrayLike) -> Complex[Array, "..."]:
        """The Cauchy transform G(z) = ∫ dμ(t)/(z − t) = −m(z)."""
        return -self.stieltjes(z)

    def boundary(self, x: ArrayLike) -> Complex[Array, "..."]:
        """m(x + i0): the Hilbert transform and π times the density."""
        x = on_the_line(x)
        flat = x.ravel()
        inside = self._in_bulk(flat)
        value = np.empty(flat.shape, complex)
        if inside.any():
            value[inside] = self.above(flat[inside].astype(complex))[0]
        if not inside.all():
            value[~inside] = self.outside(flat[~inside])[0]
        return jnp.asarray(value.reshape(x.shape))

    def density(self, x: ArrayLike) -> Float[Array, "..."]:
        """Density of the continuous part at x; zero outside the bulks, atoms left out."""
        x = on_the_line(x)
        flat = x.ravel()
        inside = self._in_bulk(flat)
        value = np.zeros(flat.shape)
        if inside.any():
            # ρ(x) = Im m(x + i0)/π
            value[inside] = np.maximum(np.imag(self.above(flat[inside].astype(complex))[0]), 0.0) / np.pi
        return jnp.asarray(value.reshape(x.shape))

    def cdf(self, x: ArrayLike) -> Float[Array, "..."]:
        """Distribution function at x, atoms included: the density integrated in a variable that smooths its edges.

        Indefinite integration by sinc functions after x = low + width/(1 + exp(−π sinh t)), whatever the power with
        which the density vanishes or grows at an edge.
        """
        x = on_the_line(x)
        flat = x.ravel()
        places, masses = (np.asarray(part) for part in self.atoms)
        total = np.where(flat[:, None] >= places[None, :], masses[None, :], 0.0).sum(axis=1)
        rule = self._rule
        if len(rule.pieces):
            passed = np.searchsorted(rule.pieces[:, 1], flat, side="right")
            total += np.append(0.0, np.cumsum(rule.weights.sum(axis=1)))[passed]
        piece = np.clip(np.searchsorted(rule.pieces[:, 1], flat), 0, max(len(rule.pieces) - 1, 0))
        for index in np.unique(piece) if len(rule.pieces) else ():
            low, high = rule.pieces[index]
            rows = np.flatnonzero((piece == index) & (flat > low) & (flat < high))
            for part in np.array_split(rows, 1 + rows.size * NODES // 2**20):
                share = (flat[part] - low) / (high - low)
                t = np.arcsinh((np.log(share) - np.log1p(-share)) / np.pi)
                lag = (t[:, None] - rule.nodes) / (rule.nodes[1] - rule.nodes[0])
                # ∫_{−∞}^t f ≈ h Σ_j f(t_j) (1/2 + Si(π(t − t_j)/h)/π)
                total[part] += (0.5 + special.sici(np.pi * lag)[0] / np.pi) @ rule.weights[index]
        return jnp.asarray(np.clip(total, 0.0, 1.0).reshape(x.shape))

    def quantile(self, q: ArrayLike) -> Float[Array, "..."]:
        """The smallest x with cdf(x) ≥ q, 0 ≤ q ≤ 1."""
        q = np.asarray(q, float)
        if not np.all((q >= 0) & (q <= 1)):
            raise ParameterError("q contains a value outside [0, 1]; a quantile needs a probability")
        answer = np.full(q.size, np.nan)
        probability = q.ravel()
        edges, (places, masses) = np.asarray(self.edges), (np.asarray(part) for part in self.atoms)
        # Atoms and bulks in increasing order cut [0, 1] into pieces; an atom at the foot of a bulk comes first.
        pieces: list[tuple] = [(place, 0, mass, None) for place, mass in zip(places, masses, strict=True) if mass > 0]
        starts = np.asarray(self.cdf(edges[:, 0])) if len(edges) else np.zeros(0)
        pieces += [(low, 1, None, index) for index, (low, _) in enumerate(edges)]
        reached = 0.0
        for place, _, mass, index in sorted(pieces, key=lambda piece: piece[:2]):
            if index is None:
                top = reached + mass
                here = (probability > reached) & (probability <= top) | (probability == 0) & (reached == 0)
                answer[here & np.isnan(answer)] = place
            else:
                top = min(float(self.cdf(edges[index, 1])), 1.0)
                # What rounding puts between two pieces is the next one's foot.
                here, start = np.isnan(answer) & (probability <= top), float(starts[index])
                level = np.maximum(probability[here], start)
                answer[here] = invert(self.cdf, self.density, edges[index], start, top, level)
            reached = top
        # Masses add up to one but for rounding; more than that is no place for the last point.
        if np.any(np.isnan(answer) & (probability < 1 - 1e-6)):
            raise NotConverged(f"the distribution function ends at {reached:.6g} and not at one; there is no quantile")
        last = max([*edges[:, 1:].ravel(), *places[masses > 0]])
        return jnp.asarray(np.where(np.isnan(answer), last, answer).reshape(q.shape))

    def moment(self, order: int) -> Scalar:
        """The moment ∫ x^order dμ; infinite where a negative power is not integrable at zero."""
        if order < 0:
            places, masses = (np.asarray(part) for part in self.atoms)
            if np.any((places == 0) & (masses > 0)):
                return jnp.asarray(jnp.inf)
            points, masses = self.quadrature()
            terms = np.abs(masses * np.abs(points) ** float(order))
            # Nodes crowd towards the edges: those next to zero must not count.
            if np.any(np.abs(terms[np.argmin(np.abs(points))]) > 1e-9 * terms.sum()) and self.contains(np.zeros(1))[0]:
                return jnp.asarray(jnp.inf)
        return self.expect(lambda x: x ** float(order))

    def expect(self, function: Callable[[Floats], Floats]) -> Scalar:
        """∫ f dμ for a function of an array."""
        points, masses = (np.asarray(part) for part in self.quadrature())
        return jnp.asarray(float(np.sum(function(points) * masses)))

    def quadrature(self) -> Atoms:
        """Points and masses with Σ mass · f(point) = ∫ f dμ for smooth f, atoms included; adaptive in their number."""
        places, masses = (np.asarray(part) for part in self.atoms)
        rule = self._rule
        used = rule.weights > 0
        return Atoms(
            np.concatenate([places[masses > 0], rule.points[used]]),
            np.concatenate([masses[masses > 0], rule.weights[used]]),
        )

    def r_transform(self, w: ArrayLike) -> Float[Array, "..."]:
        """R(w) with G(R(w) + 1/w) = w, for real w between G below and G above the support; R(0) is the mean.

        Raises OutsideValidity where w is beyond that range: there R is not defined by the measure's Cauchy transform.
        """
        shape, w = np.shape(w), np.atleast_1d(np.asarray(w, float))
        low, high = self.support
        scale = max(abs(low), abs(high), high - low, 1e-300)
        small = np.abs(w) * scale < SMALL
        k1, k2, k3 = self.free_cumulants(3)
        answer = k1 + k2 * w + k3 * w**2
        rows = ~small
        if np.any(rows):
            # Above the support z lies in (high, high + 1/w], below it in [low + 1/w, low): G is monotone there.
            begin, reach = np.where(w[rows] > 0, high, low), 1 / w[rows]
            z = self._solve_outside(lambda m, x: -m - w[rows], begin, reach, "w", w[rows])
            answer[rows] = z - 1 / w[rows]
        return jnp.asarray(answer.reshape(shape))

    def s_transform(self, w: ArrayLike) -> Float[Array, "..."]:
        """S(w) = (1 + w)/(w z) with z G(z) − 1 = w, for a measure on [0, ∞) and −(1 − μ{0}) < w; S(0) = 1/mean."""
        shape, w = np.shape(w), np.atleast_1d(np.asarray(w, float))
        low, high = self.support
        if low < 0:
            raise OutsideValidity(f"the measure reaches down to {low:g}; an S-transform needs a measure on [0, ∞)")
        mean = float(self.mean())
        if mean <= 0:
            raise OutsideValidity("the measure sits at zero; its S-transform does not exist")
        k1, k2, _ = self.free_cumulants(3)
        # S(w) = 1/κ₁ − κ₂/κ₁³ w + …
        answer = 1 / k1 - k2 / k1**3 * w
        rows = np.abs(w) > SMALL * min(1.0, k1**2 / max(k2, 1e-300))
        if np.any(rows):
            # w > 0 belongs to z > high, w < 0 to z < 0; |zG − 1| = |∫ t/(z − t)| ≤ mean/(distance to the support).
            begin = np.where(w[rows] > 0, high, 0.0)
            z = self._solve_outside(lambda m, x: -x * m - 1 - w[rows], begin, mean / w[rows], "w", w[rows])
            answer[rows] = (1 + w[rows]) / (w[rows] * z)
        return jnp.asarray(answer.reshape(shape))

    def free_cumulants(self, count: int) -> list[float]:
        """The first free cumulants κ_1, κ_2, …, from the moments."""
        return cumulants_of_moments([1.0, *(float(self.moment(order)) for order in range(1, count + 1))])

    def pdf(self, x: ArrayLike) -> Float[Array, "..."]:
        """`density`, in scipy's words."""
        return self.density(x)

    def ppf(self, q: ArrayLike) -> Float[Array, "..."]:
        """`quantile`, in scipy's words."""
        return self.quantile(q)

    def mean(self) -> Scalar:
        """∫ x dμ."""
        return self.moment(1)

    def var(self) -> Scalar:
        """∫ (x − mean)² dμ."""
        return self.moment(2) - self.mean() ** 2

    def affine(self, scale: float, shift: float = 0.0) -> "SpectralMeasure":
        """The law of scale·λ + shift, scale > 0."""
        from deeplimits.theory.spectra.affine import Affine

        return Affine(self, float(scale), float(shift))

    @property
    def support(self) -> Interval:
        """The smallest interval that carries the measure."""
        places, masses = (np.asarray(part) for part in self.atoms)
        points = [*np.asarray(self.edges).ravel(), *places[masses > 0]]
        return Interval(float(min(points)), float(max(points)))

    def contains(self, x: Floats) -> NDArray[np.bool_]:
        """Whether real points lie in the support."""
        edges, (places, masses) = np.asarray(self.edges), (np.asarray(part) for part in self.atoms)
        closed = np.any((x[..., None] >= edges[:, 0]) & (x[..., None] <= edges[:, 1]), axis=-1)
        return closed | np.isin(x, places[masses > 0])

    def _in_bulk(self, x: Floats) -> NDArray[np.bool_]:
        starts, ends = np.asarray(self.edges).T
        index = np.clip(np.searchsorted(ends, x), 0, max(len(ends) - 1, 0))
        return (x > starts[index]) & (x < ends[index]) if len(ends) else np.zeros(x.shape, bool)

    @cached_property
    def _rule(self) -> Rule:
        return quadrature_rule(
            self.density, np.asarray(self.edges), self.cuts, float(np.sum(np.asarray(self.atoms.weights)))
        )

    def _solve_outside(self, residual, begin, reach, name, asked):
        """Where a monotone residual vanishes outside the support, between `begin` and a little beyond begin + reach."""
        # In the logarithm of the distance from the support.
        near = np.log(np.maximum(1e-15, 4e-16 * np.abs(begin / reach)))
        far = np.full(begin.shape, np.log(1.5))

        def at(depth):
            x = begin + reach * np.exp(depth)
            return x, residual(self.outside(x)[0], x)

        first, last = at(near)[1], at(far)[1]
        bad = np.sign(first) == np.sign(last)
        if np.any(bad & (np.abs(last) > 1e-12 * np.abs(asked))):
            raise OutsideValidity(
                f"{name} = {np.asarray(asked)[bad][0]:g} is outside the range of the transform on the real line; "
                "take a value nearer to zero"
            )
        # Where the last value is as good as zero the last point is the answer.
        depth = roots.on_host(lambda depth: np.where(bad, depth - far, at(depth)[1]), near, far)
        return at(depth)[0]
