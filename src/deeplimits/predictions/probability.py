"""`Probability`: how often something happens."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from deeplimits import statistics
from deeplimits.predictions.base import Finding, Kind, Trial, as_floats, gap_law, judge, number
from deeplimits.predictions.drawing import THEORY, simulation, size_axis


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

    @staticmethod
    def compare(trials: Sequence[Trial]) -> Finding:
        stated = trials[-1].stated
        sizes = [trial.size for trial in trials]
        if stated.rate is None:
            deviation, gap = _exact_tests(trials)
            law = gap_law(0.0, 0.0, None, gap)
        else:
            probabilities = [np.asarray(trial.stated.value) for trial in trials]
            means = [
                statistics.mean_of_successes(trial.measured.sum(), p, trial.measured.size)
                for trial, p in zip(trials, probabilities, strict=True)
            ]
            fit = statistics.extrapolate(sizes, means, probabilities, stated.rate)
            deviation = statistics.largest_deviation(fit)
            law = gap_law(float(fit.coefficient), float(fit.coefficient_error), stated.rate, float(fit.gap))
        frequencies = [float(trial.measured.mean()) for trial in trials]
        return judge(
            deviation,
            law,
            kind=Probability.kind,
            stated=stated.summary(),
            measured=f"{frequencies[-1]:.4g} of {trials[-1].measured.size}",
            details={
                "sizes": sizes,
                "frequencies": frequencies,
                "intervals": [interval(trial.measured) for trial in trials],
                "rate": stated.rate,
            },
        )

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


def _exact_tests(trials: Sequence[Trial]) -> tuple[statistics.Deviation, float]:
    """The worst of the exact binomial tests at each size, and the gap there."""
    p_values = [
        statistics.binomial_p_value(int(trial.measured.sum()), trial.measured.size, float(trial.stated.value))
        for trial in trials
    ]
    worst = int(np.argmin(p_values))
    deviation = statistics.Deviation(
        statistic=statistics.equivalent_z(p_values[worst]),
        threshold=statistics.equivalent_z(statistics.LEVEL / len(trials)),
        p_value=min(1.0, len(trials) * p_values[worst]),
        worst=worst,
    )
    return deviation, float(trials[worst].measured.mean() - trials[worst].stated.value)
