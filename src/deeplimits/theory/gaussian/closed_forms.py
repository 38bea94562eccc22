"""Which activations have which integrals in closed form: the one table. What is not in it is done by quadrature."""

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

from deeplimits.models.activations import NAMED, Activation, ActivationLike
from deeplimits.models.activations import activation as named
from deeplimits.theory.gaussian.duals import abstract_dual as dual_base
from deeplimits.theory.gaussian.duals.abstract_dual import Dual
from deeplimits.theory.gaussian.duals.analytic import Bell, Erf, Exponential, Gelu, NormalCdf, Polynomial, Wave
from deeplimits.theory.gaussian.duals.kinked import Jump, PiecewiseLinear, ReluPower
from deeplimits.theory.gaussian.fields import ErfSaad, Fields, Identity, Relu, Square
from deeplimits.theory.gaussian.fields import abstract_fields as fields_base


class ClosedForms(NamedTuple):
    """What is known of an activation in closed form."""

    dual: Dual | None = None
    """E σ(u)σ(v) and E σ'(u)σ'(v)"""
    fields: Fields | None = None
    """The same and E σ''σ, E σ'σ'σσ, E σ'σ'σ'σ', for the equations of two-layer networks"""


_ERF = ErfSaad()

# An activation by its name in `models.activations`.
TABLE: dict[str, ClosedForms] = {
    "identity": ClosedForms(PiecewiseLinear(1.0, 1.0), Identity()),
    "relu": ClosedForms(PiecewiseLinear(1.0, 0.0), Relu()),
    "abs": ClosedForms(PiecewiseLinear(1.0, -1.0)),
    "step": ClosedForms(Jump(0.0)),
    "sign": ClosedForms(Jump(-1.0)),
    "erf": ClosedForms(Erf(), fields_base.Scaled(_ERF, math.sqrt(2), 1.0)),
    "erf_saad": ClosedForms(_ERF.dual, _ERF),
    "normal_cdf": ClosedForms(NormalCdf()),
    "gelu": ClosedForms(Gelu()),
    "gaussian": ClosedForms(Bell()),
    "sin": ClosedForms(Wave(odd=True)),
    "cos": ClosedForms(Wave(odd=False)),
    "exp": ClosedForms(Exponential()),
    "square": ClosedForms(Polynomial((0.0, 0.0, 1.0)), Square()),
    "quadratic": ClosedForms(Polynomial((0.0, 0.0, 0.5)), fields_base.Scaled(Square(), 1.0, 0.5)),
}

# A family by the beginning of its names; its parameters are those of the activation.
FAMILIES: dict[str, Callable[..., Dual]] = {
    "leaky_relu(": PiecewiseLinear,
    "piecewise_linear(": PiecewiseLinear,
    "relu_power(": lambda power: ReluPower(int(power)),
    "polynomial(": lambda *coefficients: Polynomial(coefficients),
    "hermite": lambda *coefficients: Polynomial(coefficients),
}


@functools.cache
def closed_forms(activation: ActivationLike) -> ClosedForms:
    """The closed forms of an activation, by its name or, for γσ(βu), by those of σ.

    >>> closed_forms("erf").fields is not None, closed_forms("tanh").dual is None
    (True, True)
    """
    sigma = named(activation)
    if sigma.name in TABLE and NAMED[sigma.name] is sigma:
        return TABLE[sigma.name]
    if sigma.scaled_from is not None:
        return _scaled(*sigma.scaled_from)
    for beginning, dual in FAMILIES.items():
        if sigma.name.startswith(beginning) and sigma.parameters:
            return ClosedForms(dual(*sigma.parameters))
    return ClosedForms()


def has_dual(activation: ActivationLike) -> bool:
    """Whether E σ(u)σ(v) and E σ'(u)σ'(v) are known in closed form.

    >>> has_dual("gelu"), has_dual("tanh")
    (True, False)
    """
    return closed_forms(activation).dual is not None


def has_fields(activation: ActivationLike) -> bool:
    """Whether the integrals of two-layer networks are known in closed form.

    >>> has_fields("relu"), has_fields("gelu")
    (True, False)
    """
    return closed_forms(activation).fields is not None


def _scaled(base: Activation, argument: float, factor: float) -> ClosedForms:
    dual, fields = closed_forms(base)
    found = None if dual is None else dual_base.Scaled(dual, argument, factor)
    if found is None or fields is None:
        return ClosedForms(found)
    return ClosedForms(found, fields_base.Scaled(fields, argument, factor))
