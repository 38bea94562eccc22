r"""The rest points of the noiseless XOR dynamics: which there are, how stable, and which one a network has reached.

0 < α < 1/8. Every neuron is at rest at 0 or in one of four types, μ±: v = ±m^μ > 0, ν±: v = −(±m^ν) < 0, with its other
overlaps zero; the neurons of a type share Σ v² = S = log((1 − 4α)/(4α)).
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.numerics.arguments import NOT_NEGATIVE, POSITIVE, array, choice, number, of_kind
from deeplimits.numerics.shapes import Scalar
from deeplimits.theory.online_sgd.xor import CRITICAL_RIDGE, XorState, check_state, rest_loss, type_mass

TYPES = ("mu+", "mu-", "nu+", "nu-")


class Rest(NamedTuple):
    """A rest point: the type of each neuron ("0" for none), what it costs, and how small changes grow."""

    types: tuple[str, ...]
    active: tuple[str, ...]
    """The types that at least one neuron has."""
    loss: float
    """The regularized loss."""
    rates: dict[str, float]
    """Linear rates: the mass of an active type, its imbalance v ∓ m, and a neuron at 0 towards a missing type."""
    stable: bool
    """Whether no neuron at 0 finds a missing type: nothing leaves. Along an active type nothing moves."""


def xor_rest_point(types: Sequence[str], ridge: float, *, shares: Sequence[float] | None = None) -> XorState:
    """The statistics at rest with these types of the K neurons, each "mu+", "mu-", "nu+", "nu-" or "0".

    Setting     the noiseless flow of `noiseless_ballistic` at the ridge α
    Result      neurons of one type divide its mass S, v_i² = share·S, by `shares` (K,), evenly unless given; R = 0
    Validity    0 < α < 1/8: beyond, nothing but zero is at rest
    References  benarous2022

    >>> state = xor_rest_point(["mu+", "mu-", "nu+", "nu-"], 0.05)
    >>> [round(float(v), 6) for v in state.output]
    [1.17741, 1.17741, -1.17741, -1.17741]
    """
    mass = _mass(ridge)
    found = [choice("types", kind, ("0", *TYPES)) for kind in types]
    if not found:
        raise ParameterError("types is empty; give the type of each neuron")
    given = (
        np.ones(len(found))
        if shares is None
        else np.asarray(array("shares", shares, (len(found),), allowed=NOT_NEGATIVE))
    )
    v, mu, nu = np.zeros((3, len(found)))
    for kind in TYPES:
        here = np.array([one == kind for one in found])
        if not here.any():
            continue
        if not given[here].sum() > 0:
            raise ParameterError(f"shares of type {kind} are all 0; give one that is not")
        size = np.sqrt(mass * given[here] / given[here].sum())
        sign = 1.0 if kind[-1] == "+" else -1.0
        v[here] = size if kind.startswith("mu") else -size
        (mu if kind.startswith("mu") else nu)[here] = sign * size
    width = len(found)
    return XorState(jnp.asarray(v), jnp.asarray(mu), jnp.asarray(nu), jnp.zeros((width, width)))


def classify_xor_rest(state: XorState, ridge: float, *, tolerance: float = 0.05) -> Rest:
    """Which rest point a state is at, up to `tolerance` in every statistic and in the mass of every type.

    Setting     the noiseless flow, or SGD at large λ, at a late time
    Result      types, active types, loss and linear rates −2αS(1 − 4α), −2α, 1/8 − α; `stable` where no neuron at 0
                sees a missing type
    Validity    0 < α < 1/8; OutsideValidity is raised where the state is not at rest yet
    References  benarous2022

    >>> rest = classify_xor_rest(xor_rest_point(["mu+", "mu-", "nu+", "0"], 0.05), 0.05)
    >>> rest.active, rest.stable, {name: round(rate, 6) for name, rate in rest.rates.items()}
    (('mu+', 'mu-', 'nu+'), False, {'mass': -0.110904, 'imbalance': -0.1, 'missing type': 0.075})
    """
    of_kind("state", state, XorState)
    check_state(state)
    mass, near = _mass(ridge), float(number("tolerance", tolerance, POSITIVE))
    v, mu, nu = (np.asarray(part) for part in state[:3])
    types = tuple(_type(*neuron, near) for neuron in zip(v, mu, nu, strict=True))
    masses = {kind: float(sum(x**2 for x, one in zip(v, types, strict=True) if one == kind)) for kind in TYPES}
    active = tuple(kind for kind in TYPES if masses[kind] > 0)
    far = [kind for kind in active if abs(masses[kind] - mass) > near]
    if far or float(jnp.max(jnp.abs(jnp.asarray(state.overlaps)))) > near:
        raise OutsideValidity(
            f"the state is not at rest: Σ v² of {', '.join(far) or 'the types'} should be {mass:.4g} and R zero within "
            f"{near:g} (masses {', '.join(f'{kind} {masses[kind]:.4g}' for kind in active)}); wait longer"
        )
    rates = {"mass": -2 * ridge * mass * (1 - 4 * ridge), "imbalance": -2 * ridge} if active else {}
    leaves = "0" in types and len(active) < len(TYPES)
    if leaves:
        rates["missing type"] = CRITICAL_RIDGE - ridge
    return Rest(types, active, rest_loss(ridge, len(active)), rates, not leaves)


def _mass(ridge: float) -> float:
    if not 0 < ridge < CRITICAL_RIDGE:
        raise OutsideValidity(f"ridge = {ridge:g}: nonzero rest points exist only for 0 < ridge < 1/8")
    return float(type_mass(ridge))


def _type(v: Scalar, mu: Scalar, nu: Scalar, near: float) -> str:
    """The type of one neuron, or what is wrong with it."""
    if max(abs(v), abs(mu), abs(nu)) <= near:
        return "0"
    for name, along, across, sign in (("mu", mu, nu, 1.0), ("nu", nu, mu, -1.0)):
        if sign * v > 0 and abs(across) <= near and abs(abs(along) - abs(v)) <= near:
            return name + ("+" if along > 0 else "-")
    raise OutsideValidity(
        f"a neuron with v = {v:.4g}, m^μ = {mu:.4g}, m^ν = {nu:.4g} is of no type within {near:g}; wait longer"
    )
