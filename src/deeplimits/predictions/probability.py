"""`Probability`: how often something happens."""

import dataclasses
from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from deeplimits import statistics, tails
from deeplimits.predictions.base import Kind, Report, Trial, as_floats, gap_law, number, option, standardized
from deeplimits.predictions.composing import alone, over_sizes, size_axis
from deeplimits.predictions.picture import SIMULATION, Picture, Points

RARE = 0.25
"""Below this, errors of a probability are counted relative to it."""


class Record(NamedTuple):
    """The frequencies by size."""

    sizes: list[int]
    frequencies: list[float]
    intervals: list[tuple[float, float]]
    rate: float | None


class Probability(Kind):
    """The probability of an event; a simulation returns whether it happened (1 or 0), or that of several tries.

    Where the theory is exact at every size (`rate=None`) each size has an exact binomial test; otherwise the
    frequencies are extrapolated in size.
    """

    returns = "1 or 0"
    compared = "exact binomial test"
    drawn = "point with interval"

    value: Float[Array, "..."] = eqx.field(converter=as_floats)
    _: KW_ONLY
    rate: float | None = option(default=None)

    def reduced(self, measured: np.ndarray) -> "_Count":
        return _Count(int(measured.sum()), measured.size)

    @staticmethod
    def deviation(sizes, stated, reduced) -> statistics.Deviation:
        if stated[-1].rate is None:
            return _exact_tests(stated, reduced)
        return statistics.largest_deviation(_fit(sizes, stated, reduced))

    @staticmethod
    def report(trials, reduced, deviation) -> Report:
        stated = trials[-1].stated
        sizes = [trial.size for trial in trials]
        frequencies = [found.frequency for found in reduced]
        if stated.rate is None:
            gap = frequencies[deviation.worst] - float(trials[deviation.worst].stated.value)
            law = gap_law(0.0, 0.0, None, gap)
        else:
            fit = _fit(sizes, [trial.stated for trial in trials], reduced)
            law = gap_law(float(fit.coefficient), float(fit.coefficient_error), stated.rate, float(fit.gap))
        return Report(
            f"{standardized(deviation)}, {law}",
            stated.summary(),
            f"{frequencies[-1]:.4g} of {reduced[-1].count}",
            Record(sizes, frequencies, [found.interval for found in reduced], stated.rate),
        )

    def wrong_by(self, factor: float) -> "Probability":
        # An error is relative to the probability, or to a quarter where it is less: nobody asks for a fifth of 10⁻⁶.
        # A probability too near to one to be raised is lowered by as much.
        p = np.asarray(self.value)
        change = (factor - 1) * np.maximum(p, RARE)
        return dataclasses.replace(self, value=_inside(p + change, p - change))

    def picture(self, trials: Sequence[Trial] = ()) -> Picture:
        if not trials:
            return alone(self.axis_of_values, float(self.value))
        sizes = [trial.size for trial in trials]
        low, high = zip(*(trial.reduced.interval for trial in trials), strict=True)
        frequencies = [trial.reduced.frequency for trial in trials]
        stated = over_sizes(sizes, [float(trial.stated.value) for trial in trials])
        found = Points(sizes, frequencies, low, high, label="simulation, 95 % interval", role=SIMULATION)
        return Picture(size_axis(sizes), self.axis_of_values, (stated, found))

    @classmethod
    def example(cls, rng: np.random.Generator) -> list[Trial]:
        stated = cls(0.9, label="chance of success", symbol="P")
        return [Trial(n, stated, rng.random(8000) < 0.9) for n in (50, 100, 200)]

    def arrays(self) -> dict[str, tuple[tuple[str, ...], Any]]:
        return {"": ((), self.value)}

    def summary(self) -> str:
        return number(float(self.value))


class _Count(NamedTuple):
    """How often it happened."""

    successes: int
    count: int

    @property
    def frequency(self) -> float:
        return self.successes / self.count

    @property
    def interval(self) -> tuple[float, float]:
        """The exact (Clopper-Pearson) 95 % interval of the frequency."""
        return tails.binomial_interval(self.successes, self.count)


def _fit(sizes, stated, reduced) -> statistics.Extrapolation:
    probabilities = [np.asarray(one.value) for one in stated]
    means = [
        statistics.mean_of_successes(successes, p, count)
        for (successes, count), p in zip(reduced, probabilities, strict=True)
    ]
    return statistics.extrapolate(sizes, means, probabilities, stated[-1].rate)


def _exact_tests(stated, reduced) -> statistics.Deviation:
    """The worst of the exact binomial tests at each size."""
    p_values = [
        tails.binomial_p_value(successes, count, float(one.value))
        for one, (successes, count) in zip(stated, reduced, strict=True)
    ]
    worst = int(np.argmin(p_values))
    return statistics.Deviation(
        statistic=tails.equivalent_z(p_values[worst]),
        threshold=tails.equivalent_z(statistics.LEVEL / len(p_values)),
        p_value=min(1.0, len(p_values) * p_values[worst]),
        worst=worst,
    )


def _inside(wanted, other):
    """The first of two probabilities that is one."""
    return np.where((wanted > 0) & (wanted < 1), wanted, np.clip(other, 0.0, 1.0))
