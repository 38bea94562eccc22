"""`Law`: the distribution of a random quantity."""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from deeplimits import statistics
from deeplimits.predictions.base import Kind, Report, Trial, as_floats, standardized
from deeplimits.predictions.drawing import COLOURS, THEORY

MOST_POINTS = 33


class Record(NamedTuple):
    """The distances by size."""

    sizes: list[int]
    kolmogorov_distances: list[float]
    rate: float | None


class Law(Kind):
    """A probability law on the line: its density and distribution function on a grid.

    A simulation returns one draw, or several independent ones. The frequencies of draws below each of up to 33
    quantiles are compared with the stated probabilities; the largest deviation judges the law.
    """

    kind = "Law"

    x: Float[Array, "... points"] = eqx.field(converter=as_floats)
    density: Float[Array, "... points"] = eqx.field(converter=as_floats)
    cdf: Float[Array, "... points"] = eqx.field(converter=as_floats)
    label: str = eqx.field(static=True, kw_only=True)
    symbol: str = eqx.field(static=True, default="", kw_only=True)
    rate: float | None = eqx.field(static=True, default=None, kw_only=True)

    def reduced(self, measured: np.ndarray) -> np.ndarray:
        return np.sort(measured.ravel())

    @staticmethod
    def deviation(sizes, stated, reduced) -> statistics.Deviation:
        cdf = np.asarray(stated[-1].cdf)
        points = np.unique(np.clip(np.searchsorted(cdf, np.linspace(0.02, 0.98, MOST_POINTS)), 0, len(cdf) - 1))
        probabilities = [np.asarray(one.cdf)[points] for one in stated]
        means = []
        for one, draws, probability in zip(stated, reduced, probabilities, strict=True):
            below = np.searchsorted(draws, np.asarray(one.x)[points], side="right")
            means.append(statistics.mean_of_successes(below, probability, len(draws)))
        return statistics.largest_deviation(statistics.extrapolate(sizes, means, probabilities, stated[-1].rate))

    @staticmethod
    def report(trials, reduced, deviation) -> Report:
        stated = trials[-1].stated
        sizes = [trial.size for trial in trials]
        distances = [kolmogorov_distance(trial) for trial in trials]
        noise = 0.8687 / np.sqrt(trials[-1].measured.size)  # mean of Kolmogorov's law: sqrt(pi/2) log 2
        distance = f"Kolmogorov distance {distances[-1]:.2g} at n = {sizes[-1]} (noise alone {noise:.2g})"
        return Report(
            f"{standardized(deviation)}, {distance}",
            stated.summary(),
            f"median {np.median(trials[-1].measured):.3g}, sd {np.std(trials[-1].measured):.3g}",
            Record(sizes, distances, stated.rate),
        )

    def wrong_by(self, factor: float) -> "Law":
        return dataclasses.replace(self, x=self.x * factor, density=self.density / factor)

    def draw(self, axes: Any, trials: Sequence[Trial] = ()) -> None:
        if trials:
            draws = trials[-1].measured.ravel()
            x = np.asarray(self.x)
            inside = (draws >= x[0]) & (draws <= x[-1])
            counts, bins = np.histogram(
                draws[inside], bins=min(60, max(12, int(np.sqrt(len(draws)) / 2))), density=True
            )
            label = f"simulation, n = {trials[-1].size}"
            axes.stairs(counts * inside.mean(), bins, fill=True, color=COLOURS[0], alpha=0.3, label=label)
            axes.stairs(counts * inside.mean(), bins, color=COLOURS[0], linewidth=0.8)
        axes.plot(self.x, self.density, label="theory", **THEORY)
        axes.set_ylim(bottom=0)
        axes.set_xlabel(self.title)
        axes.set_ylabel("density")

    def arrays(self) -> dict[str, tuple[tuple[str, ...], Any]]:
        return {"": (("x",), self.density), "x": (("x",), self.x), "cdf": (("x",), self.cdf)}

    def summary(self) -> str:
        quartiles = np.interp([0.25, 0.5, 0.75], np.asarray(self.cdf), np.asarray(self.x))
        return "quartiles " + ", ".join(f"{quartile:.4g}" for quartile in quartiles)


def kolmogorov_distance(trial: Trial) -> float:
    """Kolmogorov distance of the draws to the stated law, the latter interpolated on its grid."""
    draws = np.sort(trial.measured.ravel())
    stated = np.interp(draws, np.asarray(trial.stated.x), np.asarray(trial.stated.cdf), left=0.0, right=1.0)
    steps = np.arange(len(draws) + 1) / len(draws)
    return float(max(np.max(steps[1:] - stated), np.max(stated - steps[:-1])))
