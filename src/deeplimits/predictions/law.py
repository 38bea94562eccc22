"""`Law`: the distribution of a random quantity."""

import dataclasses
from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import Any

import numpy as np
from scipy import special

from deeplimits import statistics
from deeplimits.predictions.base import Report, Trial, option
from deeplimits.predictions.distributions import Distribution, distance_report, histogram, judged_points
from deeplimits.predictions.picture import Axis, Line, Mark, Picture


class Law(Distribution):
    """A probability law on the line: its density and distribution function on a grid.

    A simulation returns one draw, or several independent ones. The frequencies of draws below each of up to 33
    quantiles are compared with the stated probabilities; the largest deviation judges the law.
    """

    returns = "draws"
    compared = "frequencies below its quantiles"

    _: KW_ONLY
    rate: float | None = option(default=None)

    def reduced(self, measured: np.ndarray) -> np.ndarray:
        return np.sort(measured.ravel())

    @staticmethod
    def deviation(sizes, stated, reduced) -> statistics.Deviation:
        cdf = np.asarray(stated[-1].cdf)
        points = judged_points(cdf)
        probabilities = [np.asarray(one.cdf)[points] for one in stated]
        means = []
        for one, draws, probability in zip(stated, reduced, probabilities, strict=True):
            below = np.searchsorted(draws, np.asarray(one.x)[points], side="right")
            means.append(statistics.mean_of_successes(below, probability, len(draws)))
        return statistics.largest_deviation(statistics.extrapolate(sizes, means, probabilities, stated[-1].rate))

    @staticmethod
    def report(trials, reduced, deviation) -> Report:
        distances = [kolmogorov_distance(trial.stated, draws) for trial, draws in zip(trials, reduced, strict=True)]
        noise = 0.8687 / np.sqrt(trials[-1].measured.size)  # mean of Kolmogorov's law: sqrt(pi/2) log 2
        measured = f"median {np.median(trials[-1].measured):.3g}, sd {np.std(trials[-1].measured):.3g}"
        return distance_report(trials, distances, deviation, f"(noise alone {noise:.2g})", measured)

    def wrong_by(self, factor: float) -> "Law":
        return dataclasses.replace(self, x=self.x * factor, density=self.density / factor)

    def picture(self, trials: Sequence[Trial] = ()) -> Picture:
        # Beside simulations stands what was stated at their size.
        stated = trials[-1].stated if trials else self
        marks: list[Mark] = [Line(stated.x, stated.density, label="theory")]
        if trials:
            draws, x = trials[-1].reduced, np.asarray(stated.x)
            inside = draws[(draws >= x[0]) & (draws <= x[-1])]
            bins = min(60, max(12, int(np.sqrt(len(draws)) / 2)))
            marks.insert(0, histogram(inside, len(inside) / len(draws), bins, trials[-1].size))
        return Picture(self.axis_of_values, Axis("density", low=0.0), tuple(marks))

    @classmethod
    def example(cls, rng: np.random.Generator) -> list[Trial]:
        x = np.linspace(-4.0, 4.0, 201)
        stated = cls(x, np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi), special.ndtr(x), label="normal number", symbol="g")
        return [Trial(n, stated, rng.standard_normal(80_000)) for n in (50, 100, 200)]

    def arrays(self) -> dict[str, tuple[tuple[str, ...], Any]]:
        return {"": (("x",), self.density), "x": (("x",), self.x), "cdf": (("x",), self.cdf)}

    def summary(self) -> str:
        quartiles = np.interp([0.25, 0.5, 0.75], np.asarray(self.cdf), np.asarray(self.x))
        return "quartiles " + ", ".join(f"{quartile:.4g}" for quartile in quartiles)


def kolmogorov_distance(stated: Law, draws: np.ndarray) -> float:
    """Kolmogorov distance of ordered draws to the stated law, the latter interpolated on its grid."""
    probabilities = np.interp(draws, np.asarray(stated.x), np.asarray(stated.cdf), left=0.0, right=1.0)
    steps = np.arange(len(draws) + 1) / len(draws)
    return float(max(np.max(steps[1:] - probabilities), np.max(probabilities - steps[:-1])))
