"""Wrong theories, to see whether a comparison notices."""

import dataclasses
from functools import singledispatch

import equinox as eqx
import jax
import jax.numpy as jnp
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
def _(kind: Identity, factor):
    # An exact statement must notice ten times its own tolerance, whatever other kinds notice.
    return dataclasses.replace(kind, value=kind.value * (1 + np.sign(factor - 1) * 10 * kind.tolerance))


@wrong_by.register
def _(kind: Probability, factor):
    # A probability too near to one to be raised is lowered by the same factor.
    raised = kind.value * factor
    return dataclasses.replace(kind, value=raised if float(raised) < 1 else kind.value / factor)


@wrong_by.register
def _(kind: Bound, factor):
    # A bound that is too generous is no error: both factors make it too strict.
    factor = max(factor, 1 / factor)
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
    return [trial._replace(stated=wrong_by(trial.stated, factor)) for trial in trials]


def is_zero(kind) -> bool:
    """A prediction of zero stays zero when multiplied; there is nothing to plant."""
    values = np.asarray(kind.arrays()[""][1])
    return kind.kind in ("Value", "Curve", "Exponent", "Identity") and not np.any(values)


def wrong_rate(trials: list[Trial], factor: float) -> list[Trial]:
    """The measurements of `trials`, beside a theory whose stated finite-size rate is wrong by `factor`."""
    return [
        trial._replace(stated=dataclasses.replace(trial.stated, rate=trial.stated.rate * factor)) for trial in trials
    ]


def total(limit):
    """One number that depends on everything a limit predicts."""
    leaves = jax.tree.leaves(eqx.filter(list(limit.theory().values()), eqx.is_inexact_array))
    return sum((jnp.sum(leaf) for leaf in leaves), jnp.zeros(()))
