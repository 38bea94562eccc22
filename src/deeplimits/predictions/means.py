"""What `Value` and `Curve` share: the mean over simulations must approach what is stated."""

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

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

    @property
    def shape_of_one(self) -> tuple[int, ...]:
        return getattr(self, self.states).shape

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


class Carried(NamedTuple):
    """Gaps carried to infinite size: what is left there, its error, and the gaps that the fit has at other sizes."""

    gap: np.ndarray
    error: np.ndarray
    sizes: np.ndarray
    gaps: np.ndarray


SEEN = 2.0
"""A gap at the largest size of so many standard errors shows; then the verdict rests on the extrapolation."""


def carried(trials: Sequence[Trial], reach: float) -> Carried | None:
    """The fit of the gaps by which they are judged, up to the size `reach`; None where nothing is carried anywhere."""
    sizes = np.array([trial.size for trial in trials], dtype=float)
    rate = trials[-1].stated.rate if trials else None
    if rate is None or len(set(sizes)) < 2:
        return None
    found = fit(sizes.tolist(), [trial.stated for trial in trials], [trial.reduced for trial in trials])
    states = trials[-1].stated.states
    gaps = np.stack([trial.reduced.value - np.asarray(getattr(trial.stated, states)) for trial in trials])
    if np.all(np.abs(gaps[-1]) <= SEEN * np.sqrt(trials[-1].reduced.variance)):
        return None
    # The fit has one power of the size, or two, where what it leaves at infinity is not what one alone would leave.
    two = np.tensordot(statistics.fit_weights(sizes.tolist(), rate)[0], gaps, axes=1)
    powers = [rate] if np.allclose(two, found.gap, rtol=1e-9, atol=1e-300) else [rate, 2 * rate]
    finer = np.geomspace(sizes.min(), reach, 60)
    design, wanted = (np.stack([n**-power for power in powers], axis=1) for n in (sizes, finer))
    coefficients = np.tensordot(np.linalg.pinv(design), gaps - found.gap, axes=1)
    return Carried(found.gap, found.error, finer, found.gap + np.tensordot(wanted, coefficients, axes=1))
