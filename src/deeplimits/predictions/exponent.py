"""`Exponent`: a power law."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from deeplimits import statistics
from deeplimits.errors import ParameterError
from deeplimits.predictions.base import Finding, Kind, Trial, as_floats, judge, number
from deeplimits.predictions.drawing import THEORY, error_bars, log_axis, simulation


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

    @staticmethod
    def compare(trials: Sequence[Trial]) -> Finding:
        stated = trials[-1].stated
        fit, details = _slope_over_sizes(trials) if stated.x is None else _slope_inside(trials)
        deviation = statistics.largest_deviation(fit)
        slope, error = float(np.asarray(stated.value) + fit.gap), float(fit.error)
        return judge(
            deviation,
            f"slope {number(slope, error)}",
            kind=Exponent.kind,
            stated=stated.summary(),
            measured=number(slope, error),
            details={"sizes": [trial.size for trial in trials], "slope": slope, "slope_error": error, **details},
        )

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


def _slope_over_sizes(trials: Sequence[Trial]) -> tuple[statistics.Extrapolation, dict[str, Any]]:
    stated = trials[-1].stated
    sizes = np.array([trial.size for trial in trials], float)
    means = [statistics.mean_of(trial.measured) for trial in trials]
    values = np.array([float(mean.value) for mean in means])
    needed = 2 if stated.correction is None else 3
    if len(set(sizes)) < needed:
        raise ParameterError(
            f"sizes = {sizes.astype(int).tolist()}: fitting an exponent needs {needed} distinct sizes or more"
        )
    if np.any(values <= 0):
        raise ParameterError(f"{stated.label}: a power law needs positive measurements, and some are not")
    relative = np.array([float(np.sqrt(mean.variance)) for mean in means]) / values
    relative = np.maximum(relative, 1e-12)
    smallest = sizes.min()
    extra = None if stated.correction is None else (sizes / smallest) ** -float(stated.correction)
    coefficients, covariance = statistics.weighted_line(np.log(sizes), np.log(values), relative, extra)
    # What the next term of the correction, of the order of the square of the first, can do to the slope.
    allowance = 0.0
    if extra is not None:
        columns = np.stack([np.ones_like(sizes), np.log(sizes), extra], axis=1) / relative[:, None]
        slope_of = covariance[1] @ columns.T / relative
        allowance = abs(slope_of @ extra**2) * statistics.SECOND_ORDER * coefficients[2] ** 2
    fit = statistics.Extrapolation(
        gap=np.asarray(coefficients[1] - float(stated.value)),
        error=np.asarray(np.sqrt(covariance[1, 1])),
        skewness=np.asarray(0.0),
        dof=np.asarray(float(min(mean.dof for mean in means))),
        allowance=np.asarray(allowance),
        coefficient=np.asarray(coefficients[-1]),
        coefficient_error=np.asarray(np.sqrt(covariance[-1, -1])),
    )
    return fit, {"means": values.tolist(), "standard_errors": (relative * values).tolist()}


def _slope_inside(trials: Sequence[Trial]) -> tuple[statistics.Extrapolation, dict[str, Any]]:
    means = []
    for trial in trials:
        if np.any(trial.measured <= 0):
            raise ParameterError(f"{trial.stated.label}: a power law needs positive measurements, and some are not")
        log_x = np.log(np.asarray(trial.stated.x))
        centred = log_x - log_x.mean()
        means.append(statistics.mean_of(np.log(trial.measured) @ centred / (centred @ centred)))
    sizes = [trial.size for trial in trials]
    fit = statistics.extrapolate(sizes, means, [trial.stated.value for trial in trials], trials[-1].stated.rate)
    return fit, {"slopes": [float(mean.value) for mean in means]}
