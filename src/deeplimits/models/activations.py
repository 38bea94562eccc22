"""Activations: a value, its first two derivatives, and where it is not smooth.

Everything that is called an activation, a link or a neuron elsewhere is one of these. The argument is scaled as in
textbooks: `erf` is erf(u), `gelu` is uΦ(u), `swish` is u/(1 + e^{−u}). `rescaled` gives σ(βu)·γ for other conventions.
"""

import functools
import inspect
import math
import re
from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.scipy.special import erf, ndtr
from jaxtyping import Array, Float

from deeplimits.errors import ParameterError, UnknownName

Function = Callable[[Float[Array, "..."]], Float[Array, "..."]]


@dataclass(frozen=True)
class Activation:
    """A nonlinearity σ with σ' and σ'' almost everywhere, and the points (`kinks`) where σ or σ' jumps."""

    name: str
    value: Function
    derivative: Function
    second_derivative: Function
    kinks: tuple[float, ...] = ()
    continuous: bool = True
    """False where σ itself jumps: then σ' misses a delta function and σ has no tangent kernel on the diagonal."""
    parameters: tuple[float, ...] = ()
    """What the name leaves open, such as the slope of leaky_relu."""

    @property
    def smooth(self) -> bool:
        return not self.kinks

    def __repr__(self) -> str:
        return f"Activation({self.name!r})"


def _bell(u):
    return jnp.exp(-(u**2) / 2) / math.sqrt(2 * math.pi)


def _tanh_slope(u):
    return 1 / jnp.cosh(jnp.clip(u, -350.0, 350.0)) ** 2


def _sigmoid_slope(u):
    return jax.nn.sigmoid(u) * jax.nn.sigmoid(-u)


def _sigmoid_curvature(u):
    # σ'(1 − 2σ) = −σ' tanh(u/2), without cancellation at 0
    return -_sigmoid_slope(u) * jnp.tanh(u / 2)


def _positive(u):
    return jnp.where(u > 0, 1.0, 0.0)


def piecewise_linear(positive: float, negative: float, name: str | None = None) -> Activation:
    """σ(u) = `positive`·u for u > 0 and `negative`·u for u < 0.

    >>> [float(piecewise_linear(1.0, 0.1).value(u)) for u in (2.0, -2.0)]
    [2.0, -0.2]
    """
    return Activation(
        name or f"piecewise_linear({positive:g},{negative:g})",
        lambda u: jnp.where(u > 0, positive, negative) * u,
        lambda u: jnp.where(u > 0, positive, negative),
        jnp.zeros_like,
        kinks=() if positive == negative else (0.0,),
        parameters=(positive, negative),
    )


def leaky_relu(slope: float) -> Activation:
    """u for u > 0, `slope`·u for u < 0."""
    if not math.isfinite(slope):
        raise ParameterError(f"slope = {slope} is not allowed; leaky_relu needs a finite number")
    return piecewise_linear(1.0, float(slope), f"leaky_relu({float(slope):g})")


def relu_power(power: int | float) -> Activation:
    """max(u, 0)^k for k ≥ 1."""
    if power != int(power) or power < 1:
        raise ParameterError(f"power = {power} is not allowed; relu_power needs a whole number of at least 1")
    power = int(power)
    if power == 1:
        return NAMED["relu"]
    return Activation(
        f"relu_power({power})",
        lambda u: jnp.maximum(u, 0.0) ** power,
        lambda u: power * jnp.maximum(u, 0.0) ** (power - 1),
        lambda u: power * (power - 1) * jnp.maximum(u, 0.0) ** (power - 2) * _positive(u),
        kinks=(0.0,),
        parameters=(float(power),),
    )


def polynomial(*coefficients: float) -> Activation:
    """c₀ + c₁u + c₂u² + …, in ascending powers.

    >>> float(polynomial(1.0, 0.0, 0.5).value(2.0))
    3.0
    """
    found = tuple(float(c) for c in coefficients)
    if not found or not all(map(math.isfinite, found)):
        raise ParameterError(f"coefficients = {coefficients} is not allowed; give at least one finite number")
    first = tuple(k * c for k, c in enumerate(found))[1:] or (0.0,)
    second = tuple(k * c for k, c in enumerate(first))[1:] or (0.0,)

    def evaluate(powers):
        return lambda u: jnp.polyval(jnp.asarray(powers[::-1]), jnp.asarray(u, float))

    name = "polynomial(" + ",".join(f"{c:g}" for c in found) + ")"
    return Activation(name, evaluate(found), evaluate(first), evaluate(second), parameters=found)


NAMED = {
    activation.name: activation
    for activation in (
        piecewise_linear(1.0, 1.0, "identity"),
        piecewise_linear(1.0, 0.0, "relu"),
        piecewise_linear(1.0, -1.0, "abs"),
        Activation("step", _positive, jnp.zeros_like, jnp.zeros_like, (0.0,), continuous=False),
        Activation("sign", jnp.sign, jnp.zeros_like, jnp.zeros_like, (0.0,), continuous=False),
        Activation(
            "erf",
            erf,
            lambda u: 2 / math.sqrt(math.pi) * jnp.exp(-(u**2)),
            lambda u: -4 / math.sqrt(math.pi) * u * jnp.exp(-(u**2)),
        ),
        Activation("normal_cdf", ndtr, _bell, lambda u: -u * _bell(u)),
        Activation("tanh", jnp.tanh, _tanh_slope, lambda u: -2 * jnp.tanh(u) * _tanh_slope(u)),
        Activation("sigmoid", jax.nn.sigmoid, _sigmoid_slope, _sigmoid_curvature),
        Activation("gelu", lambda u: u * ndtr(u), lambda u: ndtr(u) + u * _bell(u), lambda u: (2 - u**2) * _bell(u)),
        Activation(
            "swish",
            lambda u: u * jax.nn.sigmoid(u),
            lambda u: jax.nn.sigmoid(u) + u * _sigmoid_slope(u),
            lambda u: 2 * _sigmoid_slope(u) + u * _sigmoid_curvature(u),
        ),
        Activation("softplus", jax.nn.softplus, jax.nn.sigmoid, _sigmoid_slope),
        Activation("sin", jnp.sin, jnp.cos, lambda u: -jnp.sin(u)),
        Activation("cos", jnp.cos, lambda u: -jnp.sin(u), lambda u: -jnp.cos(u)),
        Activation("exp", jnp.exp, jnp.exp, jnp.exp),
        Activation(
            "gaussian",
            lambda u: jnp.exp(-(u**2) / 2),
            lambda u: -u * jnp.exp(-(u**2) / 2),
            lambda u: (u**2 - 1) * jnp.exp(-(u**2) / 2),
        ),
        Activation("quadratic", lambda u: u**2 / 2, lambda u: u, jnp.ones_like),
    )
}

FAMILIES: dict[str, Callable[..., Activation]] = {
    "leaky_relu": leaky_relu,
    "piecewise_linear": piecewise_linear,
    "polynomial": polynomial,
    "relu_power": relu_power,
}

SMOOTH = {name: NAMED[name] for name in ("quadratic", "tanh", "sigmoid", "erf", "gelu", "softplus", "sin")}
"""Those whose second derivative is bounded."""

_CALL = re.compile(r"(\w+)\(([^()]*)\)")


@functools.cache
def activation(given: "str | Activation | Callable") -> Activation:
    """The activation of that name, such as 'tanh' or 'leaky_relu(0.1)'; a JAX function of one number is also welcome.

    A function of your own is taken to be smooth; if it has kinks, build an `Activation` that names them.

    >>> activation("leaky_relu(0.1)").parameters
    (1.0, 0.1)
    >>> float(activation(lambda u: u**3).derivative(2.0))
    12.0
    """
    if isinstance(given, Activation):
        return given
    if callable(given):
        return from_function(given)
    call = _CALL.fullmatch(given.replace(" ", ""))
    if call and call[1] in FAMILIES:
        try:
            numbers = [float(part) for part in call[2].split(",")]
        except ValueError:
            raise ParameterError(f"activation = {given!r} is not allowed; {call[1]}(…) takes numbers") from None
        try:
            inspect.signature(FAMILIES[call[1]]).bind(*numbers)
        except TypeError:
            raise ParameterError(f"activation = {given!r} is not allowed; {call[1]} wants another count") from None
        return FAMILIES[call[1]](*numbers)
    if given not in NAMED:
        families = ", ".join(f"{name}(…)" for name in FAMILIES)
        raise UnknownName(f"there is no activation {given!r}; there are {', '.join(NAMED)}, {families}")
    return NAMED[given]


def from_function(function: Callable, kinks: tuple[float, ...] = (), name: str | None = None) -> Activation:
    """An activation from any JAX function of one number; its derivatives are found by automatic differentiation."""

    def elementwise(scalar):
        return lambda u: jnp.vectorize(scalar)(jnp.asarray(u, float))

    def value(u):
        return jnp.asarray(function(u), float)

    return Activation(
        name or getattr(function, "__name__", "function"),
        elementwise(value),
        elementwise(jax.grad(value)),
        elementwise(jax.grad(jax.grad(value))),
        kinks,
    )


@functools.cache
def rescaled(base: Activation, argument: float, factor: float = 1.0, name: str | None = None) -> Activation:
    """γσ(βu) with β = `argument`, γ = `factor`: other conventions, or swish_β(u) = swish(βu)/β.

    >>> import math
    >>> round(float(rescaled(activation("erf"), 1 / math.sqrt(2)).value(1.0)), 6)
    0.682689
    """
    return Activation(
        name or f"{factor:g}*{base.name}({argument:g}u)",
        lambda u: factor * base.value(argument * u),
        lambda u: factor * argument * base.derivative(argument * u),
        lambda u: factor * argument**2 * base.second_derivative(argument * u),
        kinks=tuple(kink / argument for kink in base.kinks),
        continuous=base.continuous,
    )


def smooth(name: str) -> Activation:
    """The activation of that name, if its second derivative is bounded."""
    try:
        return SMOOTH[name]
    except KeyError:
        raise UnknownName(f"there is no smooth activation {name!r}; there are {', '.join(SMOOTH)}") from None
