"""Marks that many figures draw."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from deeplimits.predictions.picture import SIMULATION, Histogram, Points


def histogram(values: ArrayLike, bins: Any = 40, *, share: float = 1.0, **rest: Any) -> Histogram:
    """A density of total mass `share`; `bins` is how many, or their edges."""
    values = np.ravel(values)
    counts, edges = np.histogram(values, bins)
    return Histogram(edges, share * counts / len(values) / np.diff(edges), **{"role": SIMULATION, **rest})


def averages(x: ArrayLike, draws: ArrayLike, **rest: Any) -> Points:
    """Means over the first axis of `draws` with bars of two standard errors."""
    draws = np.asarray(draws, float)
    mean, error = mean_and_error(draws)
    return Points(np.asarray(x, float), mean, mean - 2 * error, mean + 2 * error, **{"role": SIMULATION, **rest})


def mean_and_error(draws: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard error over the first axis."""
    draws = np.asarray(draws, float)
    return draws.mean(axis=0), draws.std(axis=0, ddof=1) / np.sqrt(len(draws))
