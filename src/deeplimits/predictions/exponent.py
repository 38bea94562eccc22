"""`Exponent`: a power law."""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from deeplimits import statistics
from deeplimits.errors import ParameterError
from deeplimits.predictions.base import Kind, Report, Trial, as_floats, number, standardized
from deeplimits.predictions.drawing import THEORY, error_bars, log_axis, simulation


class Record(NamedTuple):
    """The slope, and what it was fitted to: means by size, or the mean slopes by size."""

    sizes: list[int]
    slope: float
    slope_error: float
    means: list[float]
    standard_errors: list[float]


class Exponent(Kind):
    """The exponent of a power law, measured by the slope of a log-log line.

    Either the power law is in the size: a simulation returns one positive number and the slope is fitted over sizes,
    with a correction size**-correction where one is stated. Or it is in a variable `x` that one simulation covers: it
    returns positive numbers on that grid, each simulation has a slope, and the slopes' mean is extrapolated in size at
    the stated `rate`.

    With `centre` the power law is that of a distance: simulations return what the theory gives as `centre` (a path, a
    vector of overlaps), and their distance from it is fitted, the largest entry of the difference or, with
    ``norm="l2"``, its Euclidean length.
    """

    kind = "Exponent"

    value: Float[Array, "..."] = eqx.field(converter=as_floats)
    label: str = eqx.field(static=True, kw_only=True)
    symbol: str = eqx.field(static=True, default="", kw_only=True)
    correction: Float[Array, "..."] | None = eqx.field(converter=as_floats, default=None, kw_only=True)
    x: Float[Array, "... points"] | None = eqx.field(converter=as_floats, default=None, kw_only=True)
    axis: str = eqx.field(static=True, default="", kw_only=True)
    rate: float | None = eqx.field(static=True, default=None, kw_only=True)

    centre: Float[Array, "..."] | None = eqx.field(converter=as_floats, default=None, kw_only=True)
    norm: str = eqx.field(static=True, default="max", kw_only=True)

    @property
    def exact(self) -> bool:
        return False

    def seen(self, size: int, measured: np.ndarray) -> np.ndarray:
        if self.centre is None:
            return measured
        difference = (measured - np.asarray(self.centre)).reshape(len(measured), -1)
        return np.abs(difference).max(axis=1) if self.norm == "max" else np.linalg.norm(difference, axis=1)

    def of_draws(self, measured: np.ndarray) -> tuple["Exponent", np.ndarray]:
        # The exponent is the same for all draws; what may differ is the centre.
        once = {"value": np.asarray(self.value)[0], "x": None if self.x is None else np.asarray(self.x)[0]}
        if self.centre is None:
            return dataclasses.replace(self, **once), measured
        return dataclasses.replace(self, **once, centre=np.zeros(())), measured - np.asarray(self.centre)

    def reduced(self, measured: np.ndarray) -> statistics.Mean:
        if self.x is None:
            return statistics.mean_of(measured)
        if np.any(measured <= 0):
            raise ParameterError(f"{self.label}: a power law needs positive measurements, and some are not")
        log_x = np.log(np.asarray(self.x))
        centred = log_x - log_x.mean()
        return statistics.mean_of(np.log(measured) @ centred / (centred @ centred))

    @staticmethod
    def deviation(sizes, stated, reduced) -> statistics.Deviation:
        return statistics.largest_deviation(_fit(sizes, stated, reduced))

    @staticmethod
    def report(trials, reduced, deviation) -> Report:
        stated = trials[-1].stated
        sizes = [trial.size for trial in trials]
        fit = _fit(sizes, [trial.stated for trial in trials], reduced)
        slope, error = float(np.asarray(stated.value) + fit.gap), float(fit.error)
        return Report(
            f"{standardized(deviation)}, slope {number(slope, error)}",
            stated.summary(),
            number(slope, error),
            Record(
                sizes,
                slope,
                error,
                [float(mean.value) for mean in reduced],
                [float(np.sqrt(mean.variance)) for mean in reduced],
            ),
        )

    def wrong_by(self, factor: float) -> "Exponent | None":
        value = np.asarray(self.value)
        return dataclasses.replace(self, value=value * factor) if np.any(value) else None

    def draw(self, axes: Any, trials: Sequence[Trial] = ()) -> None:
        exponent = float(self.value)
        if not trials:
            x = np.array([1.0, 100.0]) if self.x is None else np.asarray(self.x)
            axes.plot(x, (x / x[0]) ** exponent, label=f"slope {exponent:.4g}", **THEORY)
        elif self.x is None:
            sizes = np.array([trial.size for trial in trials], float)
            means = [statistics.mean_of(trial.measured) for trial in trials]
            values = np.array([mean.value for mean in means])
            error_bars(axes, sizes, values, [np.sqrt(mean.variance) for mean in means])
            axes.plot(sizes, values[-1] * (sizes / sizes[-1]) ** exponent, label=f"slope {exponent:.4g}", **THEORY)
        else:
            x = np.asarray(self.x)
            for index, trial in enumerate(trials):
                middle = np.exp(np.log(trial.measured).mean(axis=0))
                axes.plot(trial.stated.x, middle, label=f"simulation, n = {trial.size}", **simulation(index))
            anchor = np.exp(np.log(trials[-1].measured).mean(axis=0))[-1]
            axes.plot(x, anchor * (x / x[-1]) ** exponent, label=f"slope {exponent:.4g}", **THEORY)
        log_axis(axes.xaxis)
        log_axis(axes.yaxis)
        axes.set_xlabel("size $n$" if self.x is None else self.axis)
        axes.set_ylabel(self.broken_title)

    def arrays(self) -> dict[str, tuple[tuple[str, ...], Any]]:
        return {"": ((), self.value)}

    def summary(self) -> str:
        return f"slope {number(float(self.value))}"


def _fit(sizes, stated, reduced) -> statistics.Extrapolation:
    last = stated[-1]
    if last.x is not None:
        return statistics.extrapolate(sizes, reduced, [one.value for one in stated], last.rate)
    n = np.array(sizes, float)
    values = np.array([float(mean.value) for mean in reduced])
    needed = 2 if last.correction is None else 3
    if len(set(sizes)) < needed:
        raise ParameterError(f"sizes = {list(sizes)}: fitting an exponent needs {needed} distinct sizes or more")
    if np.any(values <= 0):
        raise ParameterError(f"{last.label}: a power law needs positive measurements, and some are not")
    relative = np.array([float(np.sqrt(mean.variance)) for mean in reduced]) / values
    relative = np.maximum(relative, 1e-12)
    extra = None if last.correction is None else (n / n.min()) ** -float(last.correction)
    coefficients, covariance = statistics.weighted_line(np.log(n), np.log(values), relative, extra)
    # What the next term of the correction, of the order of the square of the first, can do to the slope.
    allowance = 0.0
    if extra is not None:
        columns = np.stack([np.ones_like(n), np.log(n), extra], axis=1) / relative[:, None]
        slope_of = covariance[1] @ columns.T / relative
        allowance = abs(slope_of @ extra**2) * statistics.SECOND_ORDER * coefficients[2] ** 2
    return statistics.Extrapolation(
        gap=np.asarray(coefficients[1] - float(last.value)),
        error=np.asarray(np.sqrt(covariance[1, 1])),
        skewness=np.asarray(0.0),
        dof=np.asarray(float(min(mean.dof for mean in reduced))),
        allowance=np.asarray(allowance),
        correction=np.asarray(0.0 if extra is None else abs(coefficients[2])),
        asymptotic=np.asarray(True),
        coefficient=np.asarray(coefficients[-1]),
        coefficient_error=np.asarray(np.sqrt(covariance[-1, -1])),
    )
