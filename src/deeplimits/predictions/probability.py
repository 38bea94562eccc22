"""`Probability`: how often something happens."""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from deeplimits import statistics
from deeplimits.predictions.base import Kind, Report, Trial, as_floats, gap_law, number, standardized
from deeplimits.predictions.drawing import THEORY, simulation, size_axis

RARE = 0.25
"""Below this, errors of a probability are counted relative to it."""


class Record(NamedTuple):
    """The frequencies by size."""

    sizes: list[int]
    frequencies: list[float]
    intervals: list[tuple[float, float]]
    rate: float | None


class Probability(Kind):
    """The probability of an event; a simulation returns whether it happened (1 or 0).

    Where the theory is exact at every size (`rate=None`) each size has an exact binomial test; otherwise the
    frequencies are extrapolated in size.
    """

    kind = "Probability"

    value: Float[Array, "..."] = eqx.field(converter=as_floats)
    label: str = eqx.field(static=True, kw_only=True)
    symbol: str = eqx.field(static=True, default="", kw_only=True)
    rate: float | None = eqx.field(static=True, default=None, kw_only=True)

    def reduced(self, measured: np.ndarray) -> tuple[int, int]:
        return int(measured.sum()), measured.size

    @staticmethod
    def deviation(sizes, stated, reduced) -> statistics.Deviation:
        if stated[-1].rate is None:
            return _exact_tests(stated, reduced)
        return statistics.largest_deviation(_fit(sizes, stated, reduced))

    @staticmethod
    def report(trials, reduced, deviation) -> Report:
        stated = trials[-1].stated
        sizes = [trial.size for trial in trials]
        frequencies = [successes / count for successes, count in reduced]
        if stated.rate is None:
            gap = frequencies[deviation.worst] - float(trials[deviation.worst].stated.value)
            law = gap_law(0.0, 0.0, None, gap)
        else:
            fit = _fit(sizes, [trial.stated for trial in trials], reduced)
            law = gap_law(float(fit.coefficient), float(fit.coefficient_error), stated.rate, float(fit.gap))
        return Report(
            f"{standardized(deviation)}, {law}",
            stated.summary(),
            f"{frequencies[-1]:.4g} of {reduced[-1][1]}",
            Record(sizes, frequencies, [interval(trial.measured) for trial in trials], stated.rate),
        )

    def wrong_by(self, factor: float) -> "Probability":
        # An error is relative to the probability, or to a quarter where it is less: nobody asks for a fifth of 10⁻⁶.
        # A probability too near to one to be raised is lowered by as much.
        p = np.asarray(self.value)
        change = (factor - 1) * np.maximum(p, RARE)
        return dataclasses.replace(self, value=_inside(p + change, p - change))

    def draw(self, axes: Any, trials: Sequence[Trial] = ()) -> None:
        if trials:
            sizes = [trial.size for trial in trials]
            axes.plot(sizes, [float(trial.stated.value) for trial in trials], label="theory", **THEORY)
            size_axis(axes, sizes)
            frequencies = np.array([trial.measured.mean() for trial in trials])
            low, high = np.array([interval(trial.measured) for trial in trials]).T
            bars = [frequencies - low, high - frequencies]
            label = "simulation, 95 % interval"
            axes.errorbar(sizes, frequencies, bars, capsize=2.5, label=label, **simulation(0))
        else:
            axes.axhline(float(self.value), label="theory", **THEORY)
            axes.set_xticks([])
        axes.set_ylabel(self.broken_title)

    def arrays(self) -> dict[str, tuple[tuple[str, ...], Any]]:
        return {"": ((), self.value)}

    def summary(self) -> str:
        return number(float(self.value))


def interval(outcomes: np.ndarray) -> tuple[float, float]:
    """The exact (Clopper-Pearson) 95 % interval of a frequency."""
    return statistics.binomial_interval(int(outcomes.sum()), outcomes.size)


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
        statistics.binomial_p_value(successes, count, float(one.value))
        for one, (successes, count) in zip(stated, reduced, strict=True)
    ]
    worst = int(np.argmin(p_values))
    return statistics.Deviation(
        statistic=statistics.equivalent_z(p_values[worst]),
        threshold=statistics.equivalent_z(statistics.LEVEL / len(p_values)),
        p_value=min(1.0, len(p_values) * p_values[worst]),
        worst=worst,
    )


def _inside(wanted, other):
    """The first of two probabilities that is one."""
    return np.where((wanted > 0) & (wanted < 1), wanted, np.clip(other, 0.0, 1.0))
