"""Activations: a value and its first two derivatives."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.scipy.special import erf
from jaxtyping import Array, Float

from deeplimits.errors import UnknownName

Function = Callable[[Float[Array, "..."]], Float[Array, "..."]]


@dataclass(frozen=True)
class Activation:
    """A smooth nonlinearity σ with σ' and σ''."""

    name: str
    value: Function
    derivative: Function
    second_derivative: Function


def _gaussian(u):
    return jnp.exp(-(u**2) / 2) / math.sqrt(2 * math.pi)


def _tanh_slope(u):
    return 1 / jnp.cosh(jnp.clip(u, -350.0, 350.0)) ** 2


def _sigmoid_slope(u):
    s = jax.nn.sigmoid(u)
    return s * jax.nn.sigmoid(-u)


SMOOTH = {
    activation.name: activation
    for activation in (
        Activation("quadratic", lambda u: u**2 / 2, lambda u: u, jnp.ones_like),
        Activation("tanh", jnp.tanh, _tanh_slope, lambda u: -2 * jnp.tanh(u) * _tanh_slope(u)),
        Activation(
            "sigmoid",
            jax.nn.sigmoid,
            _sigmoid_slope,
            lambda u: _sigmoid_slope(u) * (1 - 2 * jax.nn.sigmoid(u)),
        ),
        Activation(
            "erf",
            erf,
            lambda u: 2 / math.sqrt(math.pi) * jnp.exp(-(u**2)),
            lambda u: -4 / math.sqrt(math.pi) * u * jnp.exp(-(u**2)),
        ),
        Activation(
            "gelu",
            lambda u: u * (1 + erf(u / math.sqrt(2))) / 2,
            lambda u: (1 + erf(u / math.sqrt(2))) / 2 + u * _gaussian(u),
            lambda u: (2 - u**2) * _gaussian(u),
        ),
        Activation("softplus", jax.nn.softplus, jax.nn.sigmoid, _sigmoid_slope),
        Activation("sin", jnp.sin, jnp.cos, lambda u: -jnp.sin(u)),
    )
}


def smooth(name: str) -> Activation:
    """The smooth activation of that name."""
    try:
        return SMOOTH[name]
    except KeyError:
        raise UnknownName(f"there is no smooth activation {name!r}; there are {', '.join(SMOOTH)}") from None
