"""What `Law` and `Spectrum` share: a density and a distribution function on a grid, beside draws from it."""

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from deeplimits.predictions.base import Kind, Report, Trial, as_floats, standardized
from deeplimits.predictions.picture import SIMULATION, Histogram
from deeplimits.statistics import Deviation

MOST_POINTS = 33


class Distribution(Kind):
    """A probability law on the line, on a grid."""

    drawn = "histogram under the density"

    x: Float[Array, "... points"] = eqx.field(converter=as_floats)
    density: Float[Array, "... points"] = eqx.field(converter=as_floats)
    cdf: Float[Array, "... points"] = eqx.field(converter=as_floats)


class Record(NamedTuple):
    """The distances by size."""

    sizes: list[int]
    kolmogorov_distances: list[float]
    rate: float | None


def distance_report(
    trials: Sequence[Trial], distances: list[float], deviation: Deviation, remark: str, measured: str
) -> Report:
    """What is said of Kolmogorov distances by size, with a remark on the last of them."""
    sizes, stated = [trial.size for trial in trials], trials[-1].stated
    distance = f"Kolmogorov distance {distances[-1]:.2g} at n = {sizes[-1]} {remark}"
    return Report(
        f"{standardized(deviation)}, {distance}", stated.summary(), measured, Record(sizes, distances, stated.rate)
    )


def judged_points(cdf: np.ndarray, low: float = 0.0, high: float = 1.0) -> np.ndarray:
    """Grid points between the 2 % and 98 % quantiles of what lies between two levels, evenly spread in probability."""
    wanted = np.linspace(low + 0.02 * (high - low), low + 0.98 * (high - low), MOST_POINTS)
    return np.unique(np.clip(np.searchsorted(cdf, wanted), 0, len(cdf) - 1))


def histogram(draws: np.ndarray, share: float, bins: int, size: int) -> Histogram:
    """The density of draws that are a share of all draws at this size."""
    counts, edges = np.histogram(draws, bins=bins, density=True)
    return Histogram(edges, counts * share, label=f"simulation, n = {size}", role=SIMULATION)
