"""Quantiles of one bulk: the distribution function inverted by a table, and by Newton's method where that is too coarse."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]
COARSE, FINE = 257, 4097
MANY = 20_000
"""Quantiles from which the fine table pays."""
BINS = 8192
GOOD = 2e-14


def invert(cdf: Callable, density: Callable, bulk: Floats, start: float, top: float, probability: Floats) -> Floats:
    """The x in a bulk with cdf(x) = probability, between its levels `start` and `top` at the two edges.

    In the angle θ of x = centre − radius cos θ the level F is smooth. Between the nodes of a table θ(F) is interpolated by
    cubics; cells in the middle of which these miss the level are left to Newton's method.
    """
    low, high = bulk
    centre, radius = (low + high) / 2, (high - low) / 2
    angles = np.linspace(0, np.pi, FINE if probability.size > MANY else COARSE)
    places = centre - radius * np.cos(angles)
    levels = np.maximum.accumulate(np.clip(np.asarray(cdf(places)), start, top))
    levels[0], levels[-1] = start, top
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes = 1 / (np.asarray(density(places)) * radius * np.sin(angles))
    cells = _cells(levels, probability, start, top)

    def cubic(level, cell):
        left, gap = levels[cell], levels[cell + 1] - levels[cell]
        u = (level - left) / gap
        bump = u * (1 - u) * gap
        line = angles[cell] + (angles[cell + 1] - angles[cell]) * (u * u * (3 - 2 * u))
        return line + bump * (slopes[cell] * (1 - u) - slopes[cell + 1] * u)

    every = np.arange(len(angles) - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        middles = (levels[1:] + levels[:-1]) / 2
        trial = cubic(middles, every)
        missed = np.abs(np.asarray(cdf(centre - radius * np.cos(np.nan_to_num(trial)))) - middles)
        coarse = ~(np.isfinite(trial) & (missed < GOOD))
        angle = cubic(probability, cells)
    rough = np.flatnonzero(coarse[cells])
    if rough.size:
        angle[rough] = _newton(cdf, density, centre, radius, probability[rough], angles, levels, cells[rough])
    return np.clip(centre - radius * np.cos(angle), low, high)


def _cells(levels, probability, start, top):
    """The cell of the table that holds each probability: a coarse lookup, corrected by a step or two."""
    last = len(levels) - 2
    if probability.size <= MANY:
        return np.clip(np.searchsorted(levels, probability) - 1, 0, last)
    share = (probability - start) * (BINS / (top - start))
    bins = np.clip(share.astype(np.int64), 0, BINS - 1)
    lookup = np.clip(np.searchsorted(levels, start + np.arange(BINS) * ((top - start) / BINS), side="right") - 1, 0, last)
    cells = lookup[bins]
    wide = np.flatnonzero(np.diff(np.append(lookup, last)) > 2)
    crowded = np.flatnonzero(np.isin(bins, wide)) if wide.size else wide
    cells[crowded] = np.clip(np.searchsorted(levels, probability[crowded]) - 1, 0, last)
    for _ in range(2):
        cells += (levels[cells + 1] < probability) & (cells < last)
    return cells


def _newton(cdf, density, centre, radius, probability, angles, levels, cells):
    """Newton's method in the angle, inside a shrinking bracket."""
    left, right = angles[cells], angles[cells + 1]
    gap = levels[cells + 1] - levels[cells]
    share = np.clip((probability - levels[cells]) / np.where(gap > 0, gap, 1.0), 0.05, 0.95)
    angle = left + (right - left) * share
    active = np.arange(len(probability))
    for _ in range(100):
        here = angle[active]
        x = centre - radius * np.cos(here)
        error = np.asarray(cdf(x)) - probability[active]
        left[active] = np.where(error < 0, here, left[active])
        right[active] = np.where(error > 0, here, right[active])
        with np.errstate(divide="ignore", invalid="ignore"):
            new = here - error / (np.asarray(density(x)) * radius * np.sin(here))
        inside = np.isfinite(new) & (new >= left[active]) & (new <= right[active])
        new = np.where(np.abs(error) <= 1e-16, here, np.where(inside, new, (left[active] + right[active]) / 2))
        angle[active] = new
        active = active[(np.abs(new - here) > 1e-13) & (np.abs(error) > 1e-16)]
        if not len(active):
            break
    return angle
