"""Activations of few levels: staircases, which take the place of multiplications by numbers of many digits."""

import functools
import itertools

import jax.numpy as jnp

from deeplimits.errors import ParameterError
from deeplimits.models.activations import Activation


@functools.cache
def staircase(jumps: tuple[float, ...], thresholds: tuple[float, ...], *, start: float = 0.0) -> Activation:
    """σ(u) = `start` + Σ_k j_k 1{u > s_k}, with thresholds s in increasing order.

    >>> ternary = staircase((1.0, 1.0), (-0.5, 0.5), start=-1.0)
    >>> [float(ternary.value(u)) for u in (-2.0, 0.0, 2.0)]
    [-1.0, 0.0, 1.0]
    """
    if len(jumps) != len(thresholds) or not thresholds:
        raise ParameterError(
            f"jumps has {len(jumps)} entries and thresholds {len(thresholds)}; give as many, at least one"
        )
    if any(later <= before for before, later in itertools.pairwise(thresholds)):
        raise ParameterError(f"thresholds = {thresholds} is not allowed; they must increase")

    def value(u):
        u = jnp.asarray(u, float)
        steps = (jump * jnp.where(u > place, 1.0, 0.0) for jump, place in zip(jumps, thresholds, strict=True))
        return start + sum(steps, start=jnp.zeros_like(u))

    return Activation(
        f"staircase({','.join(f'{place:g}:{jump:g}' for place, jump in zip(thresholds, jumps, strict=True))})",
        value,
        jnp.zeros_like,
        jnp.zeros_like,
        kinks=thresholds,
        continuous=False,
        parameters=(start, *jumps),
        increasing=min(jumps) >= 0,
        bounded=True,
    )
