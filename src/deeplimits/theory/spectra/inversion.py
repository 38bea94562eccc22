"""Quantiles of one bulk: the distribution function inverted by a table, or by Newton's method where that is coarse."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from deeplimits.numerics import roots

Floats = NDArray[np.floating]
COARSE, FINE = 257, 4097
MANY, VERY_MANY = 20_000, 200_000
"""Quantiles from which the fine table pays, and even steps of the level beside it."""
STEPS = 16_384
GOOD = 2e-14


class Looked(NamedTuple):
    """Values of a table, and which of them are not to be trusted."""

    values: Floats
    coarse: NDArray[np.bool_]


class Cubics(NamedTuple):
    """A function interpolated by cubics in u = (t − t_j)/(t_{j+1} − t_j), and the cells where these are too rough."""

    nodes: Floats
    coefficients: Floats
    """Of u⁰ to u³ in each row: (cells, 4)."""
    coarse: NDArray[np.bool_]

    def at(self, x: Floats) -> Looked:
        """The values, and which of them are not to be trusted."""
        cells = np.clip(np.searchsorted(self.nodes, x) - 1, 0, len(self.nodes) - 2)
        gaps = np.diff(self.nodes)
        u = (x - self.nodes[cells]) / np.where(gaps > 0, gaps, 1.0)[cells]
        c = self.coefficients[cells].T
        return Looked(c[0] + u * (c[1] + u * (c[2] + u * c[3])), self.coarse[cells])


def invert(cdf: Callable, density: Callable, bulk: Floats, start: float, top: float, probability: Floats) -> Floats:
    """The x in a bulk with cdf(x) = probability, between its levels `start` and `top` at the two edges.

    With p the share of the bulk's mass below x, the angle θ of x = low + 2 radius sin²(θ/2) is a smooth function of v =
    p^{1/3} − (1 − p)^{1/3} up to both edges, where the density vanishes like a root. It is interpolated by cubics in v;
    many quantiles come from even steps of p, away from the edges. Cells in the middle of which cubics miss the level
    are left to the slower way: those of p to those of v, and those of v to Newton's method.
    """
    low, high = bulk
    radius = (high - low) / 2
    mass = top - start

    def place(angle):
        return low + 2 * radius * np.sin(angle / 2) ** 2  # to rounding also next to a lower edge of zero

    many = probability.size > MANY
    angles = np.linspace(0, np.pi, FINE if many else COARSE)
    places = place(angles)
    levels = np.maximum.accumulate(np.clip(np.asarray(cdf(places)), start, top))
    levels[0], levels[-1] = start, top
    shares = (levels - start) / mass

    def checked(nodes, values, slopes, place, level) -> Cubics:
        cubics = _hermite(nodes, values, slopes)
        middle = cubics[:, 0] + cubics[:, 1] / 2 + cubics[:, 2] / 4 + cubics[:, 3] / 8
        with np.errstate(invalid="ignore"):
            missed = np.asarray(cdf(np.clip(np.nan_to_num(place(middle)), low, high))) - level
            good = np.isfinite(middle) & (np.abs(missed) < GOOD) & (np.diff(nodes) > 0)
        return Cubics(nodes, np.nan_to_num(cubics), ~good)

    v = _smooth(shares)
    with np.errstate(divide="ignore", invalid="ignore"):
        # dθ/dv = mass/(ρ dx/dθ dv/dp)
        slopes = mass / (np.asarray(density(places)) * radius * np.sin(angles) * _smooth_slope(shares))
    by_v = checked(v, angles, slopes, place, start + mass * _share((v[1:] + v[:-1]) / 2))

    def carefully(p, level):
        """By the cubics in v, and by Newton's method where these are too rough."""
        angle, rough = by_v.at(_smooth(p))
        rough = np.flatnonzero(rough)
        if rough.size:
            left = level[rough]
            cells = np.clip(np.searchsorted(levels, left) - 1, 0, len(levels) - 2)
            angle[rough] = _newton(cdf, density, low, radius, left, angles, levels, cells)
        return place(angle)

    share = (probability - start) / mass
    if probability.size <= VERY_MANY:
        return np.clip(carefully(share, probability), low, high)
    even = np.linspace(0, 1, STEPS + 1)
    found = carefully(even, start + mass * even)
    with np.errstate(divide="ignore", invalid="ignore"):
        rises = mass / np.asarray(density(found))
    by_p = checked(even, found, rises, lambda x: x, start + mass * (even[1:] + even[:-1]) / 2)
    x, rough = _evenly(share, by_p.coefficients, by_p.coarse)
    x, rough = np.array(x), np.flatnonzero(rough)
    if rough.size:
        x[rough] = carefully(share[rough], probability[rough])
    return np.clip(x, low, high)


def _smooth(p):
    """v = p^{1/3} − (1 − p)^{1/3}: from −1 to 1."""
    p = np.clip(p, 0.0, 1.0)
    return np.cbrt(p) - np.cbrt(1 - p)


def _smooth_slope(p):
    """dv/dp."""
    return (np.cbrt(p) ** -2 + np.cbrt(1 - p) ** -2) / 3


def _share(v):
    """p of v: with a = p^{1/3} and b = (1 − p)^{1/3}, a − b = v and a³ + b³ = 1; s = a + b solves s³ + 3sv² = 4."""
    s = np.full(np.shape(v), 4.0 ** (1 / 3))
    for _ in range(6):  # Newton's method from above, of a convex function
        s -= (s**3 + 3 * s * v**2 - 4) / (3 * s**2 + 3 * v**2)
    return np.where(v < 0, ((s + v) / 2) ** 3, 1 - ((s - v) / 2) ** 3)


def _hermite(nodes, values, slopes):
    gaps, rise = np.diff(nodes), np.diff(values)
    with np.errstate(invalid="ignore"):
        first, last = slopes[:-1] * gaps, slopes[1:] * gaps
        return np.stack([values[:-1], first, 3 * rise - 2 * first - last, first + last - 2 * rise], axis=1)


@jax.jit
def _evenly(share, coefficients, coarse):
    """Cubics on even steps, and whether a value is too rough: one compiled pass, without a search."""
    steps = coarse.shape[0]
    t = share * steps
    cell = jnp.clip(t.astype(jnp.int32), 0, steps - 1)
    u = t - cell.astype(t.dtype)
    c = [coefficients[:, k][cell] for k in range(4)]
    return c[0] + u * (c[1] + u * (c[2] + u * c[3])), coarse[cell]


def _newton(cdf, density, low, radius, probability, angles, levels, cells):
    """Newton's method in the angle, inside a shrinking bracket."""
    # Padded to a power of two: compiled functions then meet few different lengths.
    count = len(probability)
    pad = np.arange(1 << (count - 1).bit_length()) % count
    probability, cells = probability[pad], cells[pad]
    left, right = angles[cells], angles[cells + 1]
    gap = levels[cells + 1] - levels[cells]
    share = np.clip((probability - levels[cells]) / np.where(gap > 0, gap, 1.0), 0.05, 0.95)

    def missed(angle):
        x = low + 2 * radius * np.sin(angle / 2) ** 2
        return np.asarray(cdf(x)) - probability, np.asarray(density(x)) * radius * np.sin(angle)

    # Levels near one are known to 1e-16, those near zero better.
    angle = roots.newton(
        missed,
        left,
        right,
        left + (right - left) * share,
        rest=1e-13,
        noise=1e-16 + 4e-16 * probability,
        sentence="the quantiles were not found: the distribution function does not rise from level to level",
    )
    return angle[:count]
