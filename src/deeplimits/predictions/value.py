"""`Value`: a number."""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from deeplimits import statistics
from deeplimits.predictions.base import (
    Kind,
    Report,
    Trial,
    as_floats,
    beside_mean,
    gap_law,
    number,
    rescaled,
    standardized,
)
from deeplimits.predictions.drawing import THEORY, at_least, error_bars, size_axis


class Record(NamedTuple):
    """The means by size."""

    sizes: list[int]
    means: list[float]
    standard_errors: list[float]
    gaps: list[float]
    rate: float | None
    measured_rate: tuple[float, float] | None


class Value(Kind):
    """A number that the mean over simulations must approach.

    `rate` is the power of 1/size with which the gap closes; None states that the theory is exact at every size.
    Gaps below `resolution` are rounding errors. Stated about single draws, each measurement is compared with the
    statement about its own draw, by their ratio or their difference (`per_draw`).

    With `about` the number is a variance: simulations return x, and the mean of size**power (x − about)² is compared.
    """

    kind = "Value"

    value: Float[Array, "..."] = eqx.field(converter=as_floats)
    label: str = eqx.field(static=True, kw_only=True)
    symbol: str = eqx.field(static=True, default="", kw_only=True)
    rate: float | None = eqx.field(static=True, default=None, kw_only=True)
    resolution: float = eqx.field(static=True, default=1e-12, kw_only=True)
    per_draw: str = eqx.field(static=True, default="ratio", kw_only=True)
    about: Float[Array, "..."] | None = eqx.field(converter=as_floats, default=None, kw_only=True)
    power: float = eqx.field(static=True, default=0.0, kw_only=True)

    def seen(self, size: int, measured: np.ndarray) -> np.ndarray:
        if self.about is None:
            return measured
        return float(size) ** self.power * (measured - np.asarray(self.about)) ** 2

    def of_draws(self, measured: np.ndarray) -> tuple["Value", np.ndarray]:
        middle, beside = beside_mean(self.value, measured, self.per_draw)
        return dataclasses.replace(self, value=middle), beside

    def on_one_scale(self, trials: Sequence[Trial]) -> list[Trial]:
        return rescaled(trials, "value") if self.per_draw == "ratio" else list(trials)

    def reduced(self, measured: np.ndarray) -> statistics.Mean:
        return statistics.mean_of(measured)

    @staticmethod
    def deviation(sizes, stated, reduced) -> statistics.Deviation:
        return statistics.largest_deviation(_fit(sizes, stated, reduced), stated[-1].resolution)

    @staticmethod
    def report(trials, reduced, deviation) -> Report:
        stated = trials[-1].stated
        sizes = [trial.size for trial in trials]
        fit = _fit(sizes, [trial.stated for trial in trials], reduced)
        gaps = [float(mean.value - np.asarray(trial.stated.value)) for mean, trial in zip(reduced, trials, strict=True)]
        errors = [float(np.sqrt(mean.variance)) for mean in reduced]
        law = gap_law(float(fit.coefficient), float(fit.coefficient_error), stated.rate, float(fit.gap))
        return Report(
            f"{standardized(deviation)}, {law}",
            stated.summary(),
            number(float(reduced[-1].value), errors[-1]),
            Record(
                sizes,
                [float(mean.value) for mean in reduced],
                errors,
                gaps,
                stated.rate,
                statistics.measured_rate(sizes, gaps, errors),
            ),
        )

    def wrong_by(self, factor: float) -> "Value | None":
        value = np.asarray(self.value)
        # What is below the resolution everywhere is zero here.
        return dataclasses.replace(self, value=value * factor) if np.any(np.abs(value) > self.resolution) else None

    def draw(self, axes: Any, trials: Sequence[Trial] = ()) -> None:
        if not trials:
            axes.axhline(float(self.value), label="theory", **THEORY)
            axes.set_xticks([])
        if trials:
            sizes = [trial.size for trial in trials]
            means = [statistics.mean_of(trial.measured) for trial in trials]
            error_bars(axes, sizes, [mean.value for mean in means], [np.sqrt(mean.variance) for mean in means])
            stated = [float(trial.stated.value) for trial in trials]
            if len(set(stated)) == 1:
                axes.axhline(stated[0], label="theory", **THEORY)
            else:
                axes.plot(sizes, stated, label="theory", **THEORY)
            size_axis(axes, sizes)
            at_least(axes, stated[-1], 10 * self.resolution * max(1.0, abs(stated[-1])))
        axes.set_ylabel(self.broken_title)

    def arrays(self) -> dict[str, tuple[tuple[str, ...], Any]]:
        return {"": ((), self.value)}

    def summary(self) -> str:
        return number(float(self.value))


def _fit(sizes, stated, reduced) -> statistics.Extrapolation:
    return statistics.extrapolate(sizes, reduced, [one.value for one in stated], stated[-1].rate)
