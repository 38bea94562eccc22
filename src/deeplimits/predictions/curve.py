"""`Curve`: a function on a grid."""

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
from deeplimits.predictions.drawing import COLOURS, THEORY, error_bars, log_axis


class Record(NamedTuple):
    """The mean curves by size."""

    sizes: list[int]
    x: list[list[float]]
    means: list[list[float]]
    standard_errors: list[list[float]]
    rate: float | None


class Curve(Kind):
    """Values on a grid with a named axis, that the mean over simulations must approach at every point.

    One statistic judges the whole curve, because its points share seeds. `rate` and `resolution` as in `Value`.
    `dense_x` and `dense_y` hold the curve on a finer grid, for drawing only. `per_draw` as in `Value`.
    """

    kind = "Curve"

    x: Float[Array, "... points"] = eqx.field(converter=as_floats)
    y: Float[Array, "... points"] = eqx.field(converter=as_floats)
    axis: str = eqx.field(static=True, kw_only=True)
    label: str = eqx.field(static=True, kw_only=True)
    symbol: str = eqx.field(static=True, default="", kw_only=True)
    axis_symbol: str = eqx.field(static=True, default="", kw_only=True)
    rate: float | None = eqx.field(static=True, default=None, kw_only=True)
    resolution: float = eqx.field(static=True, default=1e-12, kw_only=True)
    per_draw: str = eqx.field(static=True, default="ratio", kw_only=True)
    dense_x: Float[Array, "... fine"] | None = eqx.field(converter=as_floats, default=None, kw_only=True)
    dense_y: Float[Array, "... fine"] | None = eqx.field(converter=as_floats, default=None, kw_only=True)
    log_x: bool = eqx.field(static=True, default=False, kw_only=True)
    log_y: bool = eqx.field(static=True, default=False, kw_only=True)

    def of_draws(self, measured: np.ndarray) -> tuple["Curve", np.ndarray]:
        middle, beside = beside_mean(self.y, measured, self.per_draw)
        # The grid may be given once for all draws or once for each; it is the same.
        x = np.asarray(self.x)
        return dataclasses.replace(self, x=x if x.ndim == 1 else x[0], y=middle, dense_x=None, dense_y=None), beside

    def on_one_scale(self, trials: Sequence[Trial]) -> list[Trial]:
        return rescaled(trials, "y") if self.per_draw == "ratio" else list(trials)

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
        at = deviation.worst
        law = gap_law(float(fit.coefficient[at]), float(fit.coefficient_error[at]), stated.rate, float(fit.gap[at]))
        place = f"at {stated.axis} = {float(stated.x[at]):.4g}"
        return Report(
            f"{standardized(deviation)}, {law} {place}, the worst of {len(stated.x)} points",
            f"{number(float(stated.y[at]))} {place}",
            number(float(reduced[-1].value[at]), float(np.sqrt(reduced[-1].variance[at]))),
            Record(
                sizes,
                [np.asarray(trial.stated.x).tolist() for trial in trials],
                [mean.value.tolist() for mean in reduced],
                [np.sqrt(mean.variance).tolist() for mean in reduced],
                stated.rate,
            ),
        )

    def wrong_by(self, factor: float) -> "Curve | None":
        y = np.asarray(self.y)
        # What is below the resolution everywhere is zero here.
        return dataclasses.replace(self, y=y * factor) if np.any(np.abs(y) > self.resolution) else None

    def draw(self, axes: Any, trials: Sequence[Trial] = ()) -> None:
        stated = [trial.stated for trial in trials] or [self]
        # Where the prediction itself depends on the size, each size has its own line, in the colour of its markers.
        heights = [np.log(np.maximum(one.y, 1e-300)) if self.log_y else np.asarray(one.y) for one in stated]
        several = any(np.max(np.abs(one - heights[-1])) > 0.03 * np.ptp(heights[-1]) for one in heights)
        for index, one in enumerate(stated if several else [self]):
            plain = one.dense_x is None or one.dense_y is None
            x, y = (one.x, one.y) if plain else (one.dense_x, one.dense_y)
            style = {**THEORY, "color": COLOURS[index % len(COLOURS)]} if several else THEORY
            axes.plot(x, y, label=f"theory, n = {trials[index].size}" if several else "theory", **style)
        if self.dense_y is not None:
            # A pole between two points of the grid must not flatten everything else.
            highest = max(float(np.max(one.y)) for one in stated)
            lowest = min(float(np.min(one.y)) for one in stated)
            room = highest - lowest
            axes.set_ylim(
                lowest / 1.5 if self.log_y else lowest - 0.1 * room, highest * 3 if self.log_y else highest + room
            )
        for index, trial in enumerate(trials):
            mean = statistics.mean_of(trial.measured)
            label = f"simulation, n = {trial.size}"
            error_bars(axes, trial.stated.x, mean.value, np.sqrt(mean.variance), index, label)
        if self.log_x:
            log_axis(axes.xaxis)
        if self.log_y:
            log_axis(axes.yaxis)
        axes.set_xlabel(f"{self.axis} ${self.axis_symbol}$" if self.axis_symbol else self.axis)
        axes.set_ylabel(self.broken_title)

    def arrays(self) -> dict[str, tuple[tuple[str, ...], Any]]:
        return {"": ((self.axis,), self.y), self.axis: ((self.axis,), self.x)}

    def summary(self) -> str:
        low, high = float(np.min(self.y)), float(np.max(self.y))
        return f"{number(low)} to {number(high)} over {self.axis}"


def _fit(sizes, stated, reduced) -> statistics.Extrapolation:
    return statistics.extrapolate(sizes, reduced, [one.y for one in stated], stated[-1].rate, shared=True)
