"""`Identity`: an exact statement about one finite system."""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from deeplimits import statistics
from deeplimits.predictions.base import Kind, Report, Trial, as_floats, number
from deeplimits.predictions.drawing import THEORY, simulation, size_axis

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

    kind = "Identity"

    value: Float[Array, "..."] = eqx.field(converter=as_floats)
    label: str = eqx.field(static=True, kw_only=True)
    tolerance: float = eqx.field(static=True, kw_only=True)
    reason: str = eqx.field(static=True, kw_only=True)
    symbol: str = eqx.field(static=True, default="", kw_only=True)

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

    def draw(self, axes: Any, trials: Sequence[Trial] = ()) -> None:
        threshold = self.tolerance
        axes.axhline(threshold, label="tolerance", **THEORY)
        highest = threshold
        if trials:
            found = [
                (trial.size, max(residual, EPSILON / 10))
                for trial in trials
                for residual in residuals(trial.stated, trial.measured)
            ]
            axes.plot(*np.array(found).T, label="simulations", **simulation(0))
            # A residual that is too large must be seen.
            highest = max([highest, *(residual for _, residual in found if np.isfinite(residual))])
            size_axis(axes, [trial.size for trial in trials])
        axes.set_yscale("log")
        axes.set_ylim(EPSILON / 20, highest * 10)
        axes.set_ylabel(f"relative residual of\n{self.title}")

    def arrays(self) -> dict[str, tuple[tuple[str, ...], Any]]:
        values = np.asarray(self.value)
        return {"": (tuple(f"axis {axis}" for axis in range(values.ndim)), values)}

    def summary(self) -> str:
        values = np.asarray(self.value)
        if values.size == 1:
            return number(float(values.ravel()[0]))
        return f"{values.size} numbers, the largest {number(float(np.abs(values).max()))}"


def residuals(stated: Identity, measured: np.ndarray) -> np.ndarray:
    """The largest relative difference of what was measured and what was stated, for each draw."""
    values = np.broadcast_to(np.asarray(stated.value), measured.shape).reshape(len(measured), -1)
    scale = np.maximum(np.abs(values).max(axis=1), np.finfo(float).tiny)
    difference = np.abs(measured.reshape(values.shape) - values).max(axis=1) / scale
    return np.where(np.isfinite(difference), difference, np.inf)
