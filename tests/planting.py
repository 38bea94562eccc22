"""Wrong theories, to see whether a comparison notices."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp

from deeplimits.predictions import Trial


def planted(trials: list[Trial], factor: float) -> list[Trial]:
    """The measurements of `trials`, beside a theory that is wrong by `factor`."""
    return [trial.beside(trial.stated.wrong_by(factor)) for trial in trials]


def is_zero(kind) -> bool:
    """A prediction of zero stays zero when multiplied; there is nothing to plant."""
    return kind.wrong_by(2.0) is None


def wrong_rate(trials: list[Trial], factor: float) -> list[Trial]:
    """The measurements of `trials`, beside a theory whose stated finite-size rate is wrong by `factor`."""
    return [trial.beside(dataclasses.replace(trial.stated, rate=trial.stated.rate * factor)) for trial in trials]


def total(limit):
    """One number that depends on everything a limit predicts."""
    leaves = jax.tree.leaves(eqx.filter(list(limit.theory().values()), eqx.is_inexact_array))
    return sum((jnp.sum(leaf) for leaf in leaves), jnp.zeros(()))
