"""Solving Silverstein's equation ψ(α) = z at given points, on the host.

See `silverstein` for ψ. Every point is worked on only until it has converged, in pieces of bounded memory.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deeplimits.numerics import roots
from deeplimits.theory.spectra.atomic import Atomic
from deeplimits.theory.spectra.half_plane import FixedPoints
from deeplimits.theory.spectra.spectral_measure import SpectralMeasure

PIECE = 2**16
MOST_STEPS = 500


class Sums(NamedTuple):
    """∫ dH/(t − α), ∫ dH/(α − t)², ∫ t dH/(α − t), ∫ t dH/(α − t)² and ∫ t² dH/(α − t)²."""

    transform: NDArray
    slope: NDArray
    first: NDArray
    mixed: NDArray
    second: NDArray


def sums(population: SpectralMeasure, alpha: NDArray) -> Sums:
    """The five integrals at complex α above the real line or at real α outside the support."""
    if isinstance(population, Atomic):
        return Sums(*_in_pieces(lambda part: _atomic_sums(population, part), alpha, population.law.values.size))
    value, slope = population.above(alpha) if np.iscomplexobj(alpha) else population.outside(alpha)
    return Sums(value, slope, -1 - alpha * value, value + alpha * slope, 1 + 2 * alpha * value + alpha**2 * slope)


def _atomic_sums(population, alpha):
    t, w = population.law
    inverse = 1 / (alpha[:, None] - t)
    square = inverse * inverse
    return -(inverse @ w), square @ w, inverse @ (w * t), square @ (w * t), square @ (w * t**2)


class FirstAndSecond(NamedTuple):
    """S₁ and S₂."""

    first: NDArray
    second: NDArray


def first_and_second(population: SpectralMeasure, alpha: NDArray) -> FirstAndSecond:
    """S₁ and S₂ alone: all that Newton's method needs."""
    if not isinstance(population, Atomic):
        found = sums(population, alpha)
        return FirstAndSecond(found.first, found.second)
    # An atom at zero adds nothing, and α = 0 must not divide by it.
    t, w = (np.asarray(part)[np.asarray(population.law.values) > 0] for part in population.law)
    first, second = _in_pieces(lambda part: _two_atomic_sums(t, w, part), alpha, t.size)
    return FirstAndSecond(first, second)


def _two_atomic_sums(t, w, alpha):
    if not np.iscomplexobj(alpha):
        inverse = 1 / (alpha[:, None] - t)
        return inverse @ (w * t), (inverse * inverse) @ (w * t**2)
    # 1/(α − t) = (u − iv), u = (a − t)/|α − t|², v = b/|α − t|²: real arrays are half the work.
    b = alpha.imag[:, None]
    offset = alpha.real[:, None] - t
    v = b / (offset * offset + b * b)
    u = offset * v / b
    strength = w * t
    first = u @ strength - 1j * (v @ strength)
    uv = u * v
    u *= u
    v *= v
    u -= v
    strength = w * t**2
    return first, u @ strength - 2j * (uv @ strength)


def _in_pieces(function, alpha, atoms):
    flat = np.atleast_1d(alpha).ravel()
    length = max(1, PIECE // atoms)
    parts = [function(flat[begin : begin + length]) for begin in range(0, max(1, flat.size), length)]
    return [np.concatenate(column).reshape(np.shape(alpha)) for column in zip(*parts, strict=True)]


def preimage(population: SpectralMeasure, gamma: float, z: NDArray, start: NDArray) -> FixedPoints:
    """The α in the upper half plane with ψ(α) = z, for Im z > 0 or real z inside a bulk, and the relative residual.

    There is exactly one, so that a search that stays in the half plane cannot find a wrong one. Newton's steps, and
    where they do not lead on a step of α ← z − γ α S₁(α), which maps the half plane into itself.
    """

    def evaluate(alpha, target):
        first, second = first_and_second(population, alpha)
        pull = gamma * alpha * first
        return alpha + pull - target, 1 - gamma * second, pull

    alpha, error = start.copy(), np.full(z.shape, np.inf)
    active, target, here = np.arange(z.size), z, start
    value, slope, pull = evaluate(here, target)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for count in range(MOST_STEPS):
            scale = np.abs(target) + np.abs(here) + np.abs(pull)
            size = np.abs(value) / scale
            improved = size < error[active]
            alpha[active[improved]], error[active[improved]] = here[improved], size[improved]
            # At the level of rounding the first step that is no improvement ends the search.
            going = ~((size <= 1e-16) | (~improved & (error[active] < 1e-13)))
            if not going.any():
                break
            active, target, here, scale = active[going], target[going], here[going], scale[going]
            value, slope, pull, size = value[going], slope[going], pull[going], size[going]
            newton = here - value / slope
            # For real z the mirror image of a root is a root: a step across the axis is reflected.
            newton = newton.real + 1j * np.abs(newton.imag)
            plain = target - pull
            blocked = ~np.isfinite(newton) | (newton.imag == 0) | ((count % 5 == 4) & (size > 1e-6))
            trial = np.where(blocked, (plain + here) / 2, newton)
            new_value, new_slope, new_pull = evaluate(trial, target)
            refused = ~blocked & ~(np.abs(new_value) <= 4 * np.abs(value))
            if refused.any():
                trial[refused] = plain[refused]
                new = evaluate(trial[refused], target[refused])
                new_value[refused], new_slope[refused], new_pull[refused] = new
            here, value, slope, pull = trial, new_value, new_slope, new_pull
    return FixedPoints(alpha, error)


def monotone_preimage(function: Callable, x: NDArray, left: NDArray, right: NDArray) -> NDArray:
    """The real α in [left, right] with f(α) = x for an increasing f, given with its slope: Newton in a bracket."""

    def missed(alpha):
        value, slope = function(alpha)
        return value - x, slope

    sentence = f"Silverstein's equation outside the support, between {x.min():.6g} and {x.max():.6g}, was not solved"
    return roots.newton(missed, left, right, sentence=sentence)


class Table(NamedTuple):
    """The curve a ↦ α = a + ib(a) in every bulk, for starting points: x, a and b²/((a − left)(right − a))."""

    x: NDArray
    a: NDArray
    shape: NDArray


def table(population: SpectralMeasure, gamma: float, ends: NDArray, points: int) -> Table:
    """Tabulate the curve at `points` places of each bulk, denser towards its ends."""
    left, right = ends[:, :1], ends[:, 1:]
    a = (left + right) / 2 - (right - left) / 2 * np.cos((np.arange(points) + 0.5) * np.pi / points)
    flat = a.ravel()
    b = heights(population, gamma, flat)
    alpha = flat + 1j * b
    x = (alpha * (1 + gamma * first_and_second(population, alpha)[0])).real.reshape(a.shape)
    return Table(x, a, b.reshape(a.shape) ** 2 / ((a - left) * (right - a)))


def heights(population: SpectralMeasure, gamma: float, a: NDArray) -> NDArray:
    """b(a) with Im ψ(a + ib) = 0, inside a bulk, to half a per cent: Im ψ/b increases with b; bisection in log b."""
    top = np.log(1.1 * np.sqrt(gamma) * population.support[1])

    def rises(log_b):
        alpha = a + 1j * np.exp(log_b)
        return (alpha * (1 + gamma * first_and_second(population, alpha)[0])).imag >= 0

    low, high = roots.switch(rises, np.full(a.shape, top - 60.0), np.full(a.shape, top), halvings=14)
    return np.exp((low + high) / 2)
