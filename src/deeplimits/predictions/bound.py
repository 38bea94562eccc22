"""`Bound`: what must not be crossed."""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from deeplimits import statistics
from deeplimits.errors import ParameterError
from deeplimits.predictions.base import Kind, Report, Trial, as_floats, beside_mean, number
from deeplimits.predictions.drawing import SHADE, THEORY, simulation, size_axis

ROUNDING = 1e-10


class Record(NamedTuple):
    """Crossings and tightness by size."""

    sizes: list[int]
    crossings: list[int]
    samples: list[int]
    tightness: list[float]


class Bound(Kind):
    """A bound on a number or on a curve.

    With `failure=0` no simulation may cross it; with `failure=delta` a fraction delta may, and more than chance allows
    is a disagreement. How close the simulations come, the tightness, is reported: 1 means the bound is attained.
    `per_draw` as in `Value`.
    """

    kind = "Bound"

    value: Float[Array, "..."] = eqx.field(converter=as_floats)
    label: str = eqx.field(static=True, kw_only=True)
    symbol: str = eqx.field(static=True, default="", kw_only=True)
    side: str = eqx.field(static=True, default="upper", kw_only=True)
    failure: float = eqx.field(static=True, default=0.0, kw_only=True)
    x: Float[Array, "... points"] | None = eqx.field(converter=as_floats, default=None, kw_only=True)
    axis: str = eqx.field(static=True, default="", kw_only=True)
    per_draw: str = eqx.field(static=True, default="ratio", kw_only=True)

    def __check_init__(self):
        if self.side not in ("upper", "lower"):
            raise ParameterError(f"Bound: side = {self.side!r} is not allowed; it must be 'upper' or 'lower'")

    def of_draws(self, measured: np.ndarray) -> tuple["Bound", np.ndarray]:
        middle, beside = beside_mean(self.value, measured, self.per_draw)
        x = None if self.x is None else np.asarray(self.x)
        return dataclasses.replace(self, value=middle, x=x if x is None or x.ndim == 1 else x[0]), beside

    def reduced(self, measured: np.ndarray) -> np.ndarray:
        return measured

    @staticmethod
    def deviation(sizes, stated, reduced) -> statistics.Deviation:
        crossings = sum(int(_crossed(one, measured).sum()) for one, measured in zip(stated, reduced, strict=True))
        if stated[-1].failure == 0:
            return statistics.certain(crossings == 0)
        p_value = statistics.binomial_tail(crossings, sum(map(len, reduced)), stated[-1].failure)
        return statistics.Deviation(
            statistics.equivalent_z(p_value), statistics.equivalent_z(statistics.LEVEL), p_value
        )

    @classmethod
    def noticed(cls, stated, deviation, beside_wrong) -> None:
        """A bound states an inequality; how far from an equality it is, is no error. The tightness says it."""

    @staticmethod
    def report(trials, reduced, deviation) -> Report:
        stated = trials[-1].stated
        crossings = [int(_crossed(trial.stated, trial.measured).sum()) for trial in trials]
        counts = [len(trial.measured) for trial in trials]
        closeness = [tightness(trial) for trial in trials]
        permitted = "" if stated.failure == 0 else f" ({stated.failure:g} of them permitted)"
        return Report(
            f"crossed {sum(crossings)} times in {sum(counts)}{permitted}, tightness {max(closeness):.4g}",
            stated.summary(),
            number(float(_extreme(trials[-1]))),
            Record([trial.size for trial in trials], crossings, counts, closeness),
        )

    def wrong_by(self, factor: float) -> "Bound":
        # A bound that is too generous is no error: both factors make it too strict.
        factor = max(factor, 1 / factor)
        return dataclasses.replace(self, value=self.value / factor if self.side == "upper" else self.value * factor)

    def draw(self, axes: Any, trials: Sequence[Trial] = ()) -> None:
        if self.x is not None:
            axes.plot(self.x, self.value, label=f"{self.side} bound", **THEORY)
            x, edge = np.asarray(self.x), np.asarray(self.value)
            for index, trial in enumerate(trials):
                middle = np.mean(trial.measured, axis=0)
                axes.plot(trial.stated.x, middle, label=f"simulation, n = {trial.size}", **simulation(index, "--"))
            axes.set_xlabel(self.axis)
        elif trials:
            sizes = [trial.size for trial in trials]
            x, edge = np.array(sizes, float), np.array([float(trial.stated.value) for trial in trials])
            axes.plot(x, edge, label=f"{self.side} bound", **THEORY)
            shown = [(trial.size, value) for trial in trials for value in trial.measured[:200]]
            axes.plot(*np.array(shown).T, label="simulations", **simulation(0))
            size_axis(axes, sizes)
            if np.all(edge > 0):
                axes.set_yscale("log")
        else:
            axes.axhline(float(self.value), label=f"{self.side} bound", **THEORY)
            x, edge = np.array([0.0, 1.0]), np.full(2, float(self.value))
            axes.set_xticks([])
        low, high = axes.get_ylim()
        beyond = high if self.side == "upper" else low
        axes.fill_between(x, edge, beyond, label="excluded", **SHADE)
        axes.set_ylim(low, high)
        axes.set_ylabel(self.broken_title)

    def arrays(self) -> dict[str, tuple[tuple[str, ...], Any]]:
        if self.x is None:
            return {"": ((), self.value)}
        return {"": ((self.axis,), self.value), self.axis: ((self.axis,), self.x)}

    def summary(self) -> str:
        values = np.asarray(self.value)
        sign = "≤" if self.side == "upper" else "≥"
        return f"{sign} {number(float(values.max() if self.side == 'upper' else values.min()))}"


def tightness(trial: Trial) -> float:
    """How close the simulations come to the bound: the largest ratio of the smaller to the larger side."""
    bound, measured = np.asarray(trial.stated.value), trial.measured
    over, under = (measured, bound) if trial.stated.side == "upper" else (bound, measured)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(over == under, 1.0, over / under)
    return float(np.nanmax(ratio))


def _crossed(stated: Bound, measured: np.ndarray) -> np.ndarray:
    """Which simulations cross the bound anywhere by more than rounding."""
    bound = np.asarray(stated.value)
    beyond = measured - bound if stated.side == "upper" else bound - measured
    over = beyond > ROUNDING * np.maximum(np.abs(bound), np.abs(measured)) + 1e-300
    bad = over | ~np.isfinite(measured)
    return np.asarray(bad.reshape(len(measured), -1).any(axis=1))


def _extreme(trial: Trial) -> float:
    return trial.measured.max() if trial.stated.side == "upper" else trial.measured.min()
