"""`Identity`: an exact statement about one finite system."""

import dataclasses
from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from deeplimits import statistics
from deeplimits.predictions.base import Kind, Report, Trial, as_floats, number, option
from deeplimits.predictions.composing import MOST_DOTS, alone, dots, size_axis
from deeplimits.predictions.picture import SIMULATION, Axis, Field, Line, Picture, Points, Rule

EPSILON = float(np.finfo(np.float64).eps)


class Record(NamedTuple):
    """The largest residuals by size."""

    sizes: list[int]
    residuals: list[float]
    reason: str


class Identity(Kind):
    """What holds of every drawn system in exact arithmetic.

    Given by `stated`: `value` is what the theory says of the drawn system, an array of any shape. What is measured of
    the same system may differ from it, relative to the largest entry of `value`, by `tolerance` at most; `reason` says
    where that much comes from (rounding errors of so many steps, the tolerance of an integrator).
    """

    returns = "what is stated exactly of the same draw"
    compared = "a stated tolerance, with its reason"
    drawn = "residual; alone, the numbers that are stated"

    value: Float[Array, "..."] = eqx.field(converter=as_floats)
    _: KW_ONLY
    tolerance: float = option()
    reason: str = option()

    def of_draws(self, measured: np.ndarray) -> tuple["Identity", np.ndarray]:
        return self, measured

    def reduced(self, measured: np.ndarray) -> np.ndarray:
        return measured

    @staticmethod
    def deviation(sizes, stated, reduced) -> statistics.Deviation:
        worst = max(float(residuals(*pair).max()) for pair in zip(stated, reduced, strict=True))
        return statistics.certain(worst <= stated[-1].tolerance)

    @classmethod
    def noticed(cls, stated, deviation, beside_wrong) -> float:
        return stated[-1].tolerance

    @staticmethod
    def report(trials, reduced, deviation) -> Report:
        stated = trials[-1].stated
        worst = [float(residuals(trial.stated, trial.measured).max()) for trial in trials]
        return Report(
            f"largest residual {max(worst):.2g} (tolerance {stated.tolerance:.2g}: {stated.reason})",
            stated.summary(),
            number(max(worst)),
            Record([trial.size for trial in trials], worst, stated.reason),
        )

    def wrong_by(self, factor: float) -> "Identity | None":
        # An exact statement must notice ten times its own tolerance, whatever other kinds notice.
        value = np.asarray(self.value) * (1 + np.sign(factor - 1) * 10 * self.tolerance)
        return dataclasses.replace(self, value=value) if np.any(value) else None

    def picture(self, trials: Sequence[Trial] = ()) -> Picture:
        if not trials:
            return self._numbers()
        sizes = [trial.size for trial in trials]
        found = [residuals(trial.stated, trial.measured) for trial in trials]
        # A residual that is too large must be seen.
        finite = np.concatenate(found)
        top = 10 * max(self.tolerance, float(np.max(finite, where=np.isfinite(finite), initial=0.0)))
        low = EPSILON / 20
        shown = dots(sizes, [np.clip(one, 2 * low, top) for one in found])
        heights = Axis(f"relative residual of {self.label}", self.symbol, log=True, low=low, high=top)
        return Picture(size_axis(sizes), heights, (Rule(self.tolerance, label="tolerance"), shown))

    def against(self, trials: Sequence[Trial] = ()) -> Picture:
        """What was measured over what is stated of the same draw: the diagonal, and the numbers on it."""
        stated = [np.ravel(self.value), *(np.ravel(np.asarray(trial.stated.value)) for trial in trials)]
        low, high = (float(found) for found in (min(map(np.min, stated)), max(map(np.max, stated))))
        margin = 0.05 * (high - low) if high - low > 1e-6 * abs(high) else 0.1 * abs(high) or 1.0
        ends = low - margin, high + margin
        alone = [] if trials else [Points(*[np.ravel(self.value)] * 2, label="theory")]
        found = alone or [_pairs(trial) for trial in trials]
        across = Axis(f"{self.label}, as stated", self.symbol)
        heights = Axis(f"{self.label}, as measured", self.symbol)
        return Picture(across, heights, (Line(ends, ends, label="measured as stated"), *found))

    def _numbers(self) -> Picture:
        """What is stated of one system."""
        values = np.asarray(self.value)
        if values.size == 1:
            return alone(self.axis_of_values, float(values.ravel()[0]))
        if values.ndim == 2:
            rows, columns = (np.arange(1, count + 1) for count in values.shape)
            shown = Field(columns, rows, values, label=self.label)
            return Picture(Axis("column", whole=True), Axis("row", whole=True), (shown,))
        points = Points(np.arange(1, values.size + 1), values.ravel(), label="theory")
        return Picture(Axis("entry", whole=True), self.axis_of_values, (points,))

    @classmethod
    def example(cls, rng: np.random.Generator) -> list[Trial]:
        trials = []
        for n in (50, 100, 200):
            systems = rng.standard_normal((100, 8))
            stated = cls(systems, label="the system itself", symbol="x", tolerance=1e-12, reason="rounding")
            trials.append(stated.trial(n, systems * (1 + 1e-14), drawn=True))
        return trials

    def arrays(self) -> dict[str, tuple[tuple[str, ...], Any]]:
        values = np.asarray(self.value)
        return {"": (tuple(f"axis {axis}" for axis in range(values.ndim)), values)}

    def summary(self) -> str:
        values = np.asarray(self.value)
        if values.size == 1:
            return number(float(values.ravel()[0]))
        return f"{values.size} numbers, the largest {number(float(np.abs(values).max()))}"


def _pairs(trial: Trial) -> Points:
    """Measured over stated numbers, as many as can be seen, evenly spread by rank."""
    x = np.broadcast_to(np.asarray(trial.stated.value), trial.measured.shape).ravel()
    ranked = np.argsort(x, kind="stable")
    kept = ranked[np.unique(np.linspace(0, len(x) - 1, min(len(x), MOST_DOTS)).round().astype(int))]
    return Points(x[kept], trial.measured.ravel()[kept], label=f"simulations, n = {trial.size}", role=SIMULATION)


def residuals(stated: Identity, measured: np.ndarray) -> np.ndarray:
    """The largest relative difference of what was measured and what was stated, for each draw."""
    values = np.broadcast_to(np.asarray(stated.value), measured.shape).reshape(len(measured), -1)
    scale = np.maximum(np.abs(values).max(axis=1), np.finfo(float).tiny)
    difference = np.abs(measured.reshape(values.shape) - values).max(axis=1) / scale
    return np.where(np.isfinite(difference), difference, np.inf)
