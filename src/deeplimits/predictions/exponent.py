"""`Exponent`: a power law."""

import dataclasses
from collections.abc import Sequence
from dataclasses import KW_ONLY
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from deeplimits import statistics
from deeplimits.errors import ParameterError
from deeplimits.predictions.base import Kind, Report, Trial, as_floats, multiplied, number, option, standardized
from deeplimits.predictions.composing import size_axis, with_errors
from deeplimits.predictions.picture import SIMULATION, Axis, Line, Picture, Points


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

    returns = "positive numbers over a range; with `centre`, what is at a distance from it"
    compared = "fitted slope with its error"
    drawn = "log-log line"

    value: Float[Array, "..."] = eqx.field(converter=as_floats)
    _: KW_ONLY
    correction: Float[Array, "..."] | None = eqx.field(converter=as_floats, default=None)
    x: Float[Array, "... points"] | None = eqx.field(converter=as_floats, default=None)
    axis: str = option(default="")
    rate: float | None = option(default=None)

    centre: Float[Array, "..."] | None = eqx.field(converter=as_floats, default=None)
    norm: str = option(default="max")

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

    def reduced(self, measured: np.ndarray) -> "_Measured":
        if self.x is None:
            return _Measured(statistics.mean_of(measured), None)
        if np.any(measured <= 0):
            raise ParameterError(f"{self.label}: a power law needs positive measurements, and some are not")
        log_x = np.log(np.asarray(self.x))
        centred = log_x - log_x.mean()
        logs = np.log(measured)
        return _Measured(statistics.mean_of(logs @ centred / (centred @ centred)), statistics.mean_of(logs))

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
                [float(found.mean.value) for found in reduced],
                [float(np.sqrt(found.mean.variance)) for found in reduced],
            ),
        )

    def wrong_by(self, factor: float) -> "Exponent | None":
        return multiplied(self, "value", factor)

    def picture(self, trials: Sequence[Trial] = ()) -> Picture:
        heights = dataclasses.replace(self.axis_of_values, log=True)
        if self.x is None and trials:
            sizes = [trial.size for trial in trials]
            means = [trial.reduced.mean for trial in trials]
            line = self._through(np.array(sizes, float), float(means[-1].value))
            return Picture(size_axis(sizes), heights, (line, with_errors(sizes, means)))
        across = Axis("size", "n", log=True) if self.x is None else Axis(self.axis, log=True)
        if not trials:
            x = np.array([1.0, 100.0]) if self.x is None else np.asarray(self.x)
            return Picture(across, heights, (Line(x, (x / x[0]) ** float(self.value), label=self._slope),))
        lines, found = [], []
        for index, trial in enumerate(trials):
            x, logs = np.asarray(trial.stated.x), trial.reduced.logs
            level, reach = logs.value, 2 * np.sqrt(logs.variance)
            ends, label = np.exp([level - reach, level + reach]), f"simulation, n = {trial.size}"
            found.append(Points(x, np.exp(level), *ends, label=label, role=SIMULATION, series=index))
            lines.append(self._through(x, float(np.exp(level[-1])), labelled=index == 0))
        return Picture(across, heights, (*lines, *found))

    def _through(self, x: np.ndarray, last: float, labelled: bool = True) -> Line:
        """The power law through the last point: only its slope is stated."""
        return Line(x, last * (x / x[-1]) ** float(self.value), label=self._slope if labelled else "")

    @property
    def _slope(self) -> str:
        return f"slope {float(self.value):.4g}"

    @classmethod
    def example(cls, rng: np.random.Generator) -> list[Trial]:
        stated = cls(-0.5, label="error", symbol="e", correction=1.0)
        noise = {n: np.exp(0.01 * rng.standard_normal(400)) for n in (50, 100, 200)}
        return [Trial(n, stated, 3 * n**-0.5 * (1 + 5 / n) * factors) for n, factors in noise.items()]

    def arrays(self) -> dict[str, tuple[tuple[str, ...], Any]]:
        return {"": ((), self.value)}

    def summary(self) -> str:
        return f"slope {number(float(self.value))}"


class _Measured(NamedTuple):
    """What a slope is fitted to."""

    mean: statistics.Mean
    """Of the numbers returned, or of the slopes of the simulations."""
    logs: statistics.Mean | None
    """Of the logarithms on the grid of one simulation."""


def _fit(sizes, stated, reduced) -> statistics.Extrapolation:
    last = stated[-1]
    means = [found.mean for found in reduced]
    if last.x is not None:
        return statistics.extrapolate(sizes, means, [one.value for one in stated], last.rate)
    n = np.array(sizes, float)
    values = np.array([float(mean.value) for mean in means])
    needed = 2 if last.correction is None else 3
    if len(set(sizes)) < needed:
        raise ParameterError(f"sizes = {list(sizes)}: fitting an exponent needs {needed} distinct sizes or more")
    if np.any(values <= 0):
        raise ParameterError(f"{last.label}: a power law needs positive measurements, and some are not")
    relative = np.array([float(np.sqrt(mean.variance)) for mean in means]) / values
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
        dof=np.asarray(float(min(mean.dof for mean in means))),
        allowance=np.asarray(allowance),
        correction=np.asarray(0.0 if extra is None else abs(coefficients[2])),
        asymptotic=np.asarray(True),
        coefficient=np.asarray(coefficients[-1]),
        coefficient_error=np.asarray(np.sqrt(covariance[-1, -1])),
    )
