"""What `Value` and `Curve` share: the mean over simulations must approach what is stated."""

from collections.abc import Sequence
from typing import Any, ClassVar

import equinox as eqx
import numpy as np

from deeplimits import statistics
from deeplimits.predictions.base import Kind, Trial, multiplied, rescaled


class Averaged(Kind):
    """A number, or one at every point of a grid, that the mean over simulations must approach.

    `rate` is the power of 1/size with which the gap closes; None states that the theory is exact at every size.
    Gaps below `resolution` are rounding errors. Stated about single draws, each measurement is compared with the
    statement about its own draw, by their ratio or their difference (`per_draw`).
    """

    states: ClassVar[str]
    """The field that holds what is stated."""

    rate: eqx.AbstractVar[float | None]
    resolution: eqx.AbstractVar[float]
    per_draw: eqx.AbstractVar[str]

    def on_one_scale(self, trials: Sequence[Trial]) -> list[Trial]:
        return rescaled(trials, self.states) if self.per_draw == "ratio" else list(trials)

    def reduced(self, measured: np.ndarray) -> statistics.Mean:
        return statistics.mean_of(measured)

    def with_known_error(self, mean: statistics.Mean) -> statistics.Mean:
        """A mean with the error that the statement implies, where it implies one."""
        return mean

    @staticmethod
    def deviation(sizes, stated, reduced) -> statistics.Deviation:
        return statistics.largest_deviation(fit(sizes, stated, reduced), stated[-1].resolution)

    def wrong_by(self, factor: float) -> Any:
        # What is below the resolution everywhere is zero here.
        large = np.any(np.abs(np.asarray(getattr(self, self.states))) > self.resolution)
        return multiplied(self, self.states, factor) if large else None


def fit(sizes, stated, reduced) -> statistics.Extrapolation:
    """The gaps at several sizes, carried to infinite size."""
    values = [getattr(one, one.states) for one in stated]
    means = [one.with_known_error(mean) for one, mean in zip(stated, reduced, strict=True)]
    return statistics.extrapolate(sizes, means, values, stated[-1].rate, shared=True)
