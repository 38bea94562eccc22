"""`Curve`: a function on a grid."""

import dataclasses
from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from deeplimits import statistics
from deeplimits.predictions.base import Report, Trial, as_floats, beside_mean, gap_law, number, option, standardized
from deeplimits.predictions.composing import with_errors
from deeplimits.predictions.means import Averaged, carried, fit
from deeplimits.predictions.picture import SIMULATION, Axis, Line, Picture, Points

VISIBLE = 0.03
"""Lines that differ by less than this share of a panel are drawn as one."""

POLE = 3.0
"""A line that leaves its points by so many times their span is cut; one span beyond them is shown of it."""


class Record(NamedTuple):
    """The mean curves by size."""

    sizes: list[int]
    x: list[list[float]]
    means: list[list[float]]
    standard_errors: list[list[float]]
    rate: float | None


class Curve(Averaged):
    """Values on a grid with a named axis, that the mean over simulations must approach at every point.

    One statistic judges the whole curve, because its points share seeds. `rate` and `resolution` as in `Value`.
    `dense_x` and `dense_y` hold the curve on a finer grid, for drawing only. `per_draw` as in `Value`. With `event` a
    simulation says at each point whether something happened (1 or 0) and the curve states its probability, from which
    the errors follow: in so many draws a rare event may be missing.
    """

    returns = "values on its grid"
    compared = "the largest of its points' differences: one statistic per curve"
    drawn = "line, points with error bars"
    states = "y"

    x: Float[Array, "... points"] = eqx.field(converter=as_floats)
    y: Float[Array, "... points"] = eqx.field(converter=as_floats)
    _: KW_ONLY
    axis: str = option()
    axis_symbol: str = option(default="")
    rate: float | None = option(default=None)
    resolution: float = option(default=1e-12)
    per_draw: str = option(default="ratio")
    dense_x: Float[Array, "... fine"] | None = eqx.field(converter=as_floats, default=None)
    dense_y: Float[Array, "... fine"] | None = eqx.field(converter=as_floats, default=None)
    event: bool = option(default=False)
    log_x: bool = option(default=False)
    log_y: bool = option(default=False)

    def of_draws(self, measured: np.ndarray) -> tuple["Curve", np.ndarray]:
        middle, beside = beside_mean(self.y, measured, self.per_draw)
        # The grid may be given once for all draws or once for each; it is the same.
        x = np.asarray(self.x)
        return dataclasses.replace(self, x=x if x.ndim == 1 else x[0], y=middle, dense_x=None, dense_y=None), beside

    def with_known_error(self, mean: statistics.Mean) -> statistics.Mean:
        if not self.event:
            return mean
        count = round(mean.dof) + 1
        return statistics.mean_of_successes(mean.value * count, self.y, count, statistics.FEWEST_EVENTS)

    @staticmethod
    def report(trials, reduced, deviation) -> Report:
        stated = trials[-1].stated
        sizes = [trial.size for trial in trials]
        found = fit(sizes, [trial.stated for trial in trials], reduced)
        at = deviation.worst
        law = gap_law(
            float(found.coefficient[at]), float(found.coefficient_error[at]), stated.rate, float(found.gap[at])
        )
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

    def picture(self, trials: Sequence[Trial] = ()) -> Picture:
        stated = [trial.stated for trial in trials] or [self]
        if any(self._differ(one, stated[-1]) for one in stated):
            sizes = [trial.size for trial in trials]
            lines = [one._line(f"theory, n = {n}", i) for i, (n, one) in enumerate(zip(sizes, stated, strict=True))]
        else:
            lines = [self._line("theory")]
        found = [
            with_errors(trial.stated.x, [trial.reduced], f"simulation, n = {trial.size}", index)
            for index, trial in enumerate(trials)
        ]
        fitted = carried(trials, max((trial.size for trial in trials), default=1))
        if fitted is not None and self._differ(dataclasses.replace(stated[-1], y=trials[-1].mean.value), stated[-1]):
            reach, middle = 2 * fitted.error, np.asarray(stated[-1].y) + fitted.gap
            found.append(
                Points(stated[-1].x, middle, middle - reach, middle + reach, label="fitted, n → ∞", role=SIMULATION,
                       series=len(trials))
            )  # fmt: skip
        heights = Axis(self.label, self.symbol, self.log_y, *self._ends(stated))
        whole = all(bool(np.all(one.x == np.round(one.x))) for one in stated)
        return Picture(Axis(self.axis, self.axis_symbol, self.log_x, whole=whole), heights, (*lines, *found))

    def _line(self, label: str, series: int | None = None) -> Line:
        if self.dense_x is None or self.dense_y is None:
            return Line(self.x, self.y, label=label, series=series)
        return Line(self.dense_x, self.dense_y, label=label, series=series)

    def _differ(self, one: "Curve", other: "Curve") -> bool:
        """Whether two predictions, of two sizes, would be seen to be two lines."""

        def apart(first: Any, second: Any, log: bool) -> bool:
            first, second = (np.log(np.maximum(part, 1e-300)) if log else np.asarray(part) for part in (first, second))
            scale = VISIBLE * np.ptp(second) + 1e-9 * np.max(np.abs(second))
            return bool(np.max(np.abs(first - second)) > scale)

        return apart(one.x, other.x, self.log_x) or apart(one.y, other.y, self.log_y)

    def _ends(self, stated: Sequence["Curve"]) -> tuple[float | None, float | None]:
        """A pole between two points of the grid must not flatten everything else; what is near them is shown whole."""
        if self.dense_y is None:
            return None, None
        low, high = min(float(np.min(one.y)) for one in stated), max(float(np.max(one.y)) for one in stated)
        dense, span = np.asarray(self.dense_y), high - low

        def beyond(times: float) -> tuple[float, float]:
            return (low / 3**times, high * 3**times) if self.log_y else (low - times * span, high + times * span)

        (least, most), (bottom, top) = beyond(POLE), beyond(1)
        return (bottom if np.min(dense) < least else None), (top if np.max(dense) > most else None)

    @classmethod
    def example(cls, rng: np.random.Generator) -> list[Trial]:
        x = np.linspace(-4.0, 4.0, 9)
        stated = cls(x, 3 + np.sin(x), axis="place", axis_symbol="x", label="wave", symbol="y", rate=1.0)
        return [Trial(n, stated, 3 + np.sin(x) + 1 / n + 0.1 * rng.standard_normal((400, 9))) for n in (50, 100, 200)]

    def arrays(self) -> dict[str, tuple[tuple[str, ...], Any]]:
        return {"": ((self.axis,), self.y), self.axis: ((self.axis,), self.x)}

    def summary(self) -> str:
        low, high = float(np.min(self.y)), float(np.max(self.y))
        return f"{number(low)} to {number(high)} over {self.axis}"
