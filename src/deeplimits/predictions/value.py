"""`Value`: a number."""

import dataclasses
from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from deeplimits import statistics
from deeplimits.predictions.base import Report, Trial, as_floats, beside_mean, gap_law, number, option, standardized
from deeplimits.predictions.composing import alone, over_sizes, size_axis, wide, with_errors
from deeplimits.predictions.means import Averaged, carried, fit
from deeplimits.predictions.picture import SIMULATION, Axis, Line, Picture


class Record(NamedTuple):
    """The means by size."""

    sizes: list[int]
    means: list[float]
    standard_errors: list[float]
    gaps: list[float]
    rate: float | None
    measured_rate: tuple[float, float] | None


class Value(Averaged):
    """A number that the mean over simulations must approach.

    `rate` is the power of 1/size with which the gap closes; None states that the theory is exact at every size.
    Gaps below `resolution` are rounding errors. Stated about single draws, each measurement is compared with the
    statement about its own draw, by their ratio or their difference (`per_draw`).

    With `about` the number is a variance: simulations return x, and the mean of size**power (x − about)² is compared.
    """

    returns = "a number"
    compared = "standardized difference, extrapolated in size; with `about`, the variance about a path"
    drawn = "point with error bar"
    states = "value"

    value: Float[Array, "..."] = eqx.field(converter=as_floats)
    _: KW_ONLY
    rate: float | None = option(default=None)
    resolution: float = option(default=1e-12)
    per_draw: str = option(default="ratio")
    about: Float[Array, "..."] | None = eqx.field(converter=as_floats, default=None)
    power: float = option(default=0.0)

    def seen(self, size: int, measured: np.ndarray) -> np.ndarray:
        if self.about is None:
            return measured
        return float(size) ** self.power * (measured - np.asarray(self.about)) ** 2

    def of_draws(self, measured: np.ndarray) -> tuple["Value", np.ndarray]:
        middle, beside = beside_mean(self.value, measured, self.per_draw)
        return dataclasses.replace(self, value=middle), beside

    @staticmethod
    def report(trials, reduced, deviation) -> Report:
        stated = trials[-1].stated
        sizes = [trial.size for trial in trials]
        found = fit(sizes, [trial.stated for trial in trials], reduced)
        gaps = [float(mean.value - np.asarray(trial.stated.value)) for mean, trial in zip(reduced, trials, strict=True)]
        errors = [float(np.sqrt(mean.variance)) for mean in reduced]
        law = gap_law(float(found.coefficient), float(found.coefficient_error), stated.rate, float(found.gap))
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

    def picture(self, trials: Sequence[Trial] = ()) -> Picture:
        if not trials:
            return alone(self.axis_of_values, float(self.value))
        sizes = [trial.size for trial in trials]
        stated = np.array([float(trial.stated.value) for trial in trials])
        means = [trial.reduced for trial in trials]
        found = with_errors(sizes, means)
        if wide(stated) and wide(stated, [mean.value for mean in means]):
            heights = dataclasses.replace(self.axis_of_values, log=True)
        else:
            heights = _not_rounding_alone(self.axis_of_values, (*stated, *found.low, *found.high), self.resolution)
        return Picture(size_axis(sizes), heights, (over_sizes(sizes, stated), *self._fitted(trials, stated), found))

    def _fitted(self, trials: Sequence[Trial], stated: np.ndarray) -> list[Line]:
        """The fit to infinite size, where the verdict rests on it and the theory is one line."""
        fitted = carried(trials, size_axis([trial.size for trial in trials]).high or 1.0)
        if fitted is None or np.ptp(stated) > 1e-3 * np.max(np.abs(stated)):
            return []
        left = number(stated[-1] + float(fitted.gap), float(fitted.error))
        label = f"fit: {left} as n → ∞"
        return [Line(fitted.sizes, stated[-1] + fitted.gaps, label=label, role=SIMULATION)]

    @classmethod
    def example(cls, rng: np.random.Generator) -> list[Trial]:
        stated = cls(2.0, label="level", symbol="v", rate=0.5)
        return [Trial(n, stated, 2 + n**-0.5 + 0.1 * rng.standard_normal(400)) for n in (50, 100, 200)]

    def arrays(self) -> dict[str, tuple[tuple[str, ...], Any]]:
        return {"": ((), self.value)}

    def summary(self) -> str:
        return number(float(self.value))


def _not_rounding_alone(axis: Axis, shown: Sequence[float | None], resolution: float) -> Axis:
    """Rounding errors must not fill a panel: at least ten times the resolution is shown."""
    values = np.array(shown, dtype=float)
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    centre, least = (low + high) / 2, 10 * resolution * max(1.0, abs(low), abs(high))
    if high - low >= 2 * least:
        return axis
    return dataclasses.replace(axis, low=centre - least, high=centre + least)
