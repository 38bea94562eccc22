"""Wrong theories, to see whether a comparison notices."""

import dataclasses
from functools import singledispatch

import numpy as np

from deeplimits.predictions import Bound, Curve, Exponent, Identity, Law, Probability, Spectrum, Trial, Value


@singledispatch
def wrong_by(kind, factor: float):
    """The same prediction with what it states multiplied by `factor`."""
    raise TypeError(f"no way to plant an error in a {type(kind).__name__}")


@wrong_by.register(Value)
@wrong_by.register(Exponent)
def _(kind, factor):
    return dataclasses.replace(kind, value=kind.value * factor)


@wrong_by.register
def _(kind: Probability, factor):
    # A probability too near to one to be raised is lowered by the same factor.
    raised = kind.value * factor
    return dataclasses.replace(kind, value=raised if float(raised) < 1 else kind.value / factor)


@wrong_by.register
def _(kind: Bound, factor):
    return dataclasses.replace(kind, value=kind.value / factor if kind.side == "upper" else kind.value * factor)


@wrong_by.register
def _(kind: Curve, factor):
    return dataclasses.replace(kind, y=kind.y * factor)


@wrong_by.register(Spectrum)
@wrong_by.register(Law)
def _(kind, factor):
    changes = {"x": kind.x * factor, "density": kind.density / factor}
    if isinstance(kind, Spectrum):
        changes |= {"edges": kind.edges * factor, "outliers": kind.outliers * factor}
    return dataclasses.replace(kind, **changes)


def planted(trials: list[Trial], factor: float) -> list[Trial]:
    """The measurements of `trials`, beside a theory that is wrong by `factor`."""
    if isinstance(trials[0].stated, Identity):
        # An identity is stated by the second of the two sides that its simulation returns.
        scales = np.array([1.0, factor])
        return [
            trial._replace(measured=trial.measured * scales.reshape(1, 2, *[1] * (trial.measured.ndim - 2)))
            for trial in trials
        ]
    return [trial._replace(stated=wrong_by(trial.stated, factor)) for trial in trials]


def wrong_rate(trials: list[Trial], factor: float) -> list[Trial]:
    """The measurements of `trials`, beside a theory whose stated finite-size rate is wrong by `factor`."""
    return [
        trial._replace(stated=dataclasses.replace(trial.stated, rate=trial.stated.rate * factor)) for trial in trials
    ]
