"""`Curve`: a function on a grid."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from deeplimits import statistics
from deeplimits.predictions.base import Finding, Kind, Trial, as_floats, beside_mean, gap_law, judge, number, rescaled
from deeplimits.predictions.drawing import COLOURS, THEORY, error_bars, log_axis


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

    @staticmethod
    def compare(trials: Sequence[Trial]) -> Finding:
        stated = trials[-1].stated
        sizes = [trial.size for trial in trials]
        means = [statistics.mean_of(trial.measured) for trial in trials]
        fit = statistics.extrapolate(sizes, means, [trial.stated.y for trial in trials], stated.rate)
        deviation = statistics.largest_deviation(fit, stated.resolution)
        at = deviation.worst
        law = gap_law(float(fit.coefficient[at]), float(fit.coefficient_error[at]), stated.rate, float(fit.gap[at]))
        place = f"at {stated.axis} = {float(stated.x[at]):.4g}"
        return judge(
            deviation,
            f"{law} {place}, the worst of {len(stated.x)} points",
            kind=Curve.kind,
            stated=f"{number(float(stated.y[at]))} {place}",
            measured=number(float(means[-1].value[at]), float(np.sqrt(means[-1].variance[at]))),
            details={
                "sizes": sizes,
                "x": [np.asarray(trial.stated.x).tolist() for trial in trials],
                "means": [mean.value.tolist() for mean in means],
                "standard_errors": [np.sqrt(mean.variance).tolist() for mean in means],
                "rate": stated.rate,
            },
        )

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
