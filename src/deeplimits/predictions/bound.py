"""`Bound`: what must not be crossed."""

import dataclasses
from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from deeplimits import statistics, tails
from deeplimits.errors import ParameterError
from deeplimits.predictions.base import Kind, Report, Trial, as_floats, beside_mean, number, option
from deeplimits.predictions.composing import alone, dots, over_sizes, size_axis, wide
from deeplimits.predictions.picture import EXCLUDED, SIMULATION, Axis, Band, Line, Picture, Points

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

    returns = "a number or curve"
    compared = "must not be crossed; tightness is reported"
    drawn = "shaded region"

    value: Float[Array, "..."] = eqx.field(converter=as_floats)
    _: KW_ONLY
    side: str = option(default="upper")
    failure: float = option(default=0.0)
    x: Float[Array, "... points"] | None = eqx.field(converter=as_floats, default=None)
    axis: str = option(default="")
    per_draw: str = option(default="ratio")

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
        p_value = tails.binomial_tail(crossings, sum(map(len, reduced)), stated[-1].failure)
        return statistics.Deviation(tails.equivalent_z(p_value), tails.equivalent_z(statistics.LEVEL), p_value)

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

    def picture(self, trials: Sequence[Trial] = ()) -> Picture:
        name = f"{self.side} bound"
        heights = self.axis_of_values
        if self.x is not None:
            stated = trials[-1].stated if trials else self
            line, found = Line(stated.x, stated.value, label=name), _ranges(trials)
            return Picture(Axis(self.axis), heights, (self._beyond(stated.x, stated.value), line, *found))
        if not trials:
            return alone(heights, float(self.value), name)
        sizes = [trial.size for trial in trials]
        across = size_axis(sizes)
        stated = np.array([float(trial.stated.value) for trial in trials])
        heights = dataclasses.replace(heights, log=wide(stated, *(trial.measured for trial in trials)))
        ends = (across.low, *sizes, across.high), (stated[0], *stated, stated[-1])
        place, edge = ends if np.all(stated == stated[0]) else (sizes, stated)
        found = dots(sizes, [trial.measured for trial in trials])
        return Picture(across, heights, (self._beyond(place, edge), over_sizes(sizes, stated, name), found))

    def _beyond(self, x: Any, edge: Any) -> Band:
        """What the bound rules out."""
        sides = {"low": edge} if self.side == "upper" else {"high": edge}
        return Band(x, **sides, label="excluded", role=EXCLUDED)

    @classmethod
    def example(cls, rng: np.random.Generator) -> list[Trial]:
        stated = cls(1.0, label="largest share", symbol="s")
        return [Trial(n, stated, rng.random(400) ** 0.01) for n in (50, 100, 200)]

    def arrays(self) -> dict[str, tuple[tuple[str, ...], Any]]:
        if self.x is None:
            return {"": ((), self.value)}
        return {"": ((self.axis,), self.value), self.axis: ((self.axis,), self.x)}

    def summary(self) -> str:
        values = np.asarray(self.value)
        sign = "≤" if self.side == "upper" else "≥"
        return f"{sign} {number(float(values.max() if self.side == 'upper' else values.min()))}"


def _ranges(trials: Sequence[Trial]) -> list[Points]:
    """The mean curves, with bars over all simulations: none of them may cross."""
    found = []
    for index, trial in enumerate(trials):
        middle, low, high = (part(trial.measured, axis=0) for part in (np.mean, np.min, np.max))
        label = f"simulations, n = {trial.size}: mean and range"
        found.append(Points(trial.stated.x, middle, low, high, label=label, role=SIMULATION, series=index))
    return found


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
