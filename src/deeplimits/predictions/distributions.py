"""What `Law` and `Spectrum` share: a density and a distribution function on a grid, beside draws from it."""

from typing import NamedTuple

import numpy as np

from deeplimits.predictions.picture import SIMULATION, Histogram

MOST_POINTS = 33


class Record(NamedTuple):
    """The distances by size."""

    sizes: list[int]
    kolmogorov_distances: list[float]
    rate: float | None


def judged_points(cdf: np.ndarray, low: float = 0.0, high: float = 1.0) -> np.ndarray:
    """Grid points between the 2 % and 98 % quantiles of what lies between two levels, evenly spread in probability."""
    wanted = np.linspace(low + 0.02 * (high - low), low + 0.98 * (high - low), MOST_POINTS)
    return np.unique(np.clip(np.searchsorted(cdf, wanted), 0, len(cdf) - 1))


def histogram(draws: np.ndarray, share: float, bins: int, size: int) -> Histogram:
    """The density of draws that are a share of all draws at this size."""
    counts, edges = np.histogram(draws, bins=bins, density=True)
    return Histogram(edges, counts * share, label=f"simulation, n = {size}", role=SIMULATION)
