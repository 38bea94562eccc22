"""Parts of pictures that several kinds have in common."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from deeplimits.predictions.picture import SIMULATION, Axis, Line, Mark, Number, Picture, Points, Rule
from deeplimits.statistics import Mean

MOST_DOTS = 200
"""So many single simulations are shown at one size."""
MARGIN = 1.4
"""The factor by which an axis of sizes exceeds them."""
LOG_FROM = 3.0
"""Positive numbers whose ratio is larger are drawn on a logarithmic axis."""


def size_axis(sizes: Sequence[int]) -> Axis:
    """A logarithmic axis of sizes, ticked at the sizes themselves."""
    low, high = min(sizes) / MARGIN, max(sizes) * MARGIN
    return Axis("size", "n", log=True, low=low, high=high, ticks=tuple(map(float, sizes)))


def over_sizes(sizes: Sequence[int], values: Any, label: str = "theory") -> Mark:
    """What is stated at each size: a line, straight across the panel if it is the same at all of them."""
    values = np.asarray(values, dtype=float)
    return Rule(float(values[0]), label=label) if np.all(values == values[0]) else Line(sizes, values, label=label)


def with_errors(x: Any, means: Sequence[Mean], label: str = "simulation ± 2 s.e.", series: int | None = None) -> Points:
    """Means, one after the other, with bars of two standard errors, about a 95 % interval."""
    values = np.concatenate([np.ravel(mean.value) for mean in means])
    reach = 2 * np.sqrt(np.concatenate([np.ravel(mean.variance) for mean in means]))
    return Points(x, values, values - reach, values + reach, label=label, role=SIMULATION, series=series)


def dots(sizes: Sequence[int], found: Sequence[np.ndarray], label: str = "simulations") -> Points:
    """Single simulations at each size, as many as can be seen, evenly spread by rank and with the extreme ones."""
    places, heights = [], []
    for size, values in zip(sizes, found, strict=True):
        ranked = np.sort(values)
        shown = np.unique(np.linspace(0, len(ranked) - 1, min(len(ranked), MOST_DOTS)).round().astype(int))
        places += [size] * len(shown)
        heights += ranked[shown].tolist()
    return Points(places, heights, label=label, role=SIMULATION)


def alone(values: Axis, value: float, label: str = "theory") -> Picture:
    """A number with nothing beside it."""
    return Picture(Axis(), values, (Number(value, label=label),))


def wide(*values: Any) -> bool:
    """Whether numbers are positive and so far apart that only a logarithmic axis shows them."""
    everything = np.concatenate([np.ravel(np.asarray(one, dtype=float)) for one in values])
    return bool(np.all(everything > 0) and everything.max() > LOG_FROM * everything.min())
