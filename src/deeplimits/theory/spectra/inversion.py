"""Quantiles of one bulk: the distribution function inverted by a table, or by Newton's method where that is coarse."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from deeplimits.numerics import roots

Floats = NDArray[np.floating]
COARSE, FINE = 257, 4097
MANY = 20_000
"""Quantiles from which the fine table pays."""
BINS = 8192
GOOD = 2e-14


def invert(cdf: Callable, density: Callable, bulk: Floats, start: float, top: float, probability: Floats) -> Floats:
    """The x in a bulk with cdf(x) = probability, between its levels `start` and `top` at the two edges.

    In the angle θ of x = centre − radius cos θ the level F is smooth. Between the nodes of a table θ(F) is interpolated
    by cubics; cells in the middle of which these miss the level are left to Newton's method.
    """
    low, high = bulk
    centre, radius = (low + high) / 2, (high - low) / 2
    angles = np.linspace(0, np.pi, FINE if probability.size > MANY else COARSE)
    places = centre - radius * np.cos(angles)
    levels = np.maximum.accumulate(np.clip(np.asarray(cdf(places)), start, top))
    levels[0], levels[-1] = start, top
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes = 1 / (np.asarray(density(places)) * radius * np.sin(angles))
    gaps = np.diff(levels)
    with np.errstate(divide="ignore", invalid="ignore"):
        # Hermite's cubic in u = (F − F_j)/(F_{j+1} − F_j)
        first, last, rise = slopes[:-1] * gaps, slopes[1:] * gaps, angles[1] - angles[0]
        cubics = np.stack([angles[:-1], first, 3 * rise - 2 * first - last, first + last - 2 * rise])
        middle = cubics[0] + cubics[1] / 2 + cubics[2] / 4 + cubics[3] / 8
        missed = np.asarray(cdf(centre - radius * np.cos(np.nan_to_num(middle)))) - (levels[1:] + levels[:-1]) / 2
    coarse = ~(np.isfinite(middle) & (np.abs(missed) < GOOD) & (gaps > 0))
    if probability.size > MANY:
        x, rough = _interpolate(probability, levels, np.nan_to_num(cubics), coarse, *_lookup(levels), centre, radius)
        x, rough = np.array(x), np.flatnonzero(rough)
    else:
        cells = _cell(levels, probability)
        u = (probability - levels[cells]) / np.where(coarse[cells], 1.0, gaps[cells])
        c = np.nan_to_num(cubics[:, cells])
        x = centre - radius * np.cos(c[0] + u * (c[1] + u * (c[2] + u * c[3])))
        rough = np.flatnonzero(coarse[cells])
    if rough.size:
        left = probability[rough]
        angle = _newton(cdf, density, centre, radius, left, angles, levels, _cell(levels, left))
        x[rough] = centre - radius * np.cos(angle)
    return np.clip(x, low, high)


def _cell(levels, probability):
    return np.clip(np.searchsorted(levels, probability) - 1, 0, len(levels) - 2)


def _lookup(levels):
    """For even steps of the level the first cell, and whether more than two follow before the next step."""
    steps = levels[0] + np.arange(BINS + 1) * ((levels[-1] - levels[0]) / BINS)
    cells = np.clip(np.searchsorted(levels, steps, side="right") - 1, 0, len(levels) - 2)
    return cells[:-1], np.diff(cells) > 2


@jax.jit
def _interpolate(probability, levels, cubics, coarse, lookup, crowded, centre, radius):
    """x by the cubic of the cell that holds each probability, and whether that is too rough: one compiled pass."""
    bins = ((probability - levels[0]) * (BINS / (levels[-1] - levels[0]))).astype(int)
    bins = jnp.clip(bins, 0, BINS - 1)
    cell = lookup[bins]
    for _ in range(2):
        cell = jnp.where((levels[cell + 1] < probability) & (cell < levels.shape[0] - 2), cell + 1, cell)
    gap = levels[cell + 1] - levels[cell]
    u = (probability - levels[cell]) / jnp.where(gap > 0, gap, 1.0)
    angle = cubics[0, cell] + u * (cubics[1, cell] + u * (cubics[2, cell] + u * cubics[3, cell]))
    return centre - radius * jnp.cos(angle), coarse[cell] | crowded[bins]


def _newton(cdf, density, centre, radius, probability, angles, levels, cells):
    """Newton's method in the angle, inside a shrinking bracket."""
    # Padded to a power of two: compiled functions then meet few different lengths.
    count = len(probability)
    pad = np.arange(1 << (count - 1).bit_length()) % count
    probability, cells = probability[pad], cells[pad]
    left, right = angles[cells], angles[cells + 1]
    gap = levels[cells + 1] - levels[cells]
    share = np.clip((probability - levels[cells]) / np.where(gap > 0, gap, 1.0), 0.05, 0.95)

    def missed(angle):
        x = centre - radius * np.cos(angle)
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
