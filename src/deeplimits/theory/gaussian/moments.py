r"""Gaussian moments of an activation, for every room: E f(u), u ~ N(0, K), f made of σ, σ', σ'' and powers of u.

By the panels of `quadrature`, with ends at the kinks of σ: right to rounding for smooth, kinked and jumping σ, and
traceable in K. Across kinks derivatives in K come from Stein's identity, which needs none of σ: with z standard normal
and σ = σ(√K z), d/dK E σ² = E σ²(z² − 1)/2K and d²/dK² E σ² = E σ²(z⁴ − 6z² + 3)/4K².
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.errors import OutsideValidity
from deeplimits.models.activations import Activation, ActivationLike
from deeplimits.models.activations import activation as named
from deeplimits.theory.gaussian.quadrature import line_nodes

Floats = Float[Array, "..."]

# Solvers ask for the same moments again and again: each is compiled once for each activation.
compiled = functools.partial(jax.jit, static_argnums=0)


def along(function, activation: ActivationLike, variance: ArrayLike) -> Floats:
    """E function(u, z) for u = √K z, elementwise in K; `function` is smooth where the activation is.

    >>> round(float(along(lambda u, z: z * jnp.tanh(u), "tanh", 1.0)), 12)
    0.605705509602
    """
    kinks, variance = named(activation).kinks, jnp.asarray(variance, float)

    def one(k):
        u, weight = line_nodes(k, kinks)
        z = u / jnp.sqrt(jnp.where(k > 0, k, 1.0))
        return jnp.sum(weight * jnp.broadcast_to(function(u, z), u.shape))

    return jax.lax.map(one, jnp.ravel(variance), batch_size=64).reshape(variance.shape)


def mean(activation: ActivationLike, variance: ArrayLike = 1.0) -> Floats:
    """E σ(u)

    >>> round(float(mean("relu")), 12)
    0.398942280401
    """
    sigma = named(activation)
    return along(lambda u, z: sigma.value(u), sigma, variance)


def hermite_moment(activation: ActivationLike, order: int, variance: ArrayLike = 1.0) -> Floats:
    """E σ(√K z) He_k(z), the k-th Hermite moment (He₁ = z, He₂ = z² − 1), by Stein √K^k E σ^(k) where that exists.

    >>> round(float(hermite_moment("relu", 1)), 12), round(float(hermite_moment("square", 2)), 12)
    (0.5, 2.0)
    """
    sigma = named(activation)

    def weighted(u, z):
        low, high = jnp.zeros_like(z), jnp.ones_like(z)
        for k in range(order):
            low, high = high, z * high - k * low
        return sigma.value(u) * high

    return along(weighted, sigma, variance)


def second_moment(activation: ActivationLike, variance: ArrayLike = 1.0) -> Floats:
    """E σ(u)²

    >>> round(float(second_moment("relu", 3.0)), 12)
    1.5
    """
    return _second_moment(named(activation), variance)


def mean_slope(activation: ActivationLike, variance: ArrayLike = 1.0) -> Floats:
    """E σ'(u)

    >>> round(float(mean_slope("erf_saad")), 12)
    0.564189583548
    """
    sigma = _continuous(activation)
    return along(lambda u, z: sigma.derivative(u), sigma, variance)


def slope_moment(activation: ActivationLike, variance: ArrayLike = 1.0, power: int = 2) -> Floats:
    """E σ'(u)^power

    >>> round(float(slope_moment("relu")), 12)
    0.5
    """
    return _slope_moment(_continuous(activation), variance, power)


def mean_curvature(activation: ActivationLike, variance: ArrayLike = 1.0) -> Floats:
    """E σ''(u) of a smooth activation.

    >>> round(float(mean_curvature("square")), 12)
    2.0
    """
    sigma = named(activation)
    if not sigma.smooth:
        raise OutsideValidity(f"activation = {sigma.name} has a kink and no second derivative; take a smooth one")
    return along(lambda u, z: sigma.second_derivative(u), sigma, variance)


def first_derivative(activation: ActivationLike, variance: ArrayLike) -> Floats:
    """d E σ²/dK; at K = 0 and a kink there, the limit from above (which needs σ(0) = 0).

    >>> round(float(first_derivative("relu", 2.0)), 12)
    0.5
    """
    return _first_derivative(named(activation), variance)


def second_derivative(activation: ActivationLike, variance: ArrayLike) -> Floats:
    """d² E σ²/dK² for K > 0.

    >>> round(float(second_derivative("square", 2.0)), 10)
    6.0
    """
    return _second_derivative(named(activation), variance)


def _continuous(activation: ActivationLike) -> Activation:
    sigma = named(activation)
    if not sigma.continuous:
        raise OutsideValidity(
            f"activation = {sigma.name} jumps, so E σ'² is infinite and small changes of the input grow without bound; "
            "take a continuous activation"
        )
    return sigma


@compiled
def _second_moment(sigma: Activation, variance: ArrayLike) -> Floats:
    return along(lambda u, z: sigma.value(u) ** 2, sigma, variance)


@functools.partial(jax.jit, static_argnums=(0, 2))
def _slope_moment(sigma: Activation, variance: ArrayLike, power: int) -> Floats:
    return along(lambda u, z: sigma.derivative(u) ** power, sigma, variance)


@compiled
def _first_derivative(sigma: Activation, variance: ArrayLike) -> Floats:
    variance = jnp.asarray(variance, float)
    if sigma.smooth:
        # E[σ'² + σσ'']
        return along(
            lambda u, z: sigma.derivative(u) ** 2 + sigma.value(u) * sigma.second_derivative(u), sigma, variance
        )
    stein = along(lambda u, z: sigma.value(u) ** 2 * (z**2 - 1) / 2, sigma, variance)
    sides = sigma.derivative(jnp.asarray([np.nextafter(0.0, -1.0), np.nextafter(0.0, 1.0)]))
    at_zero = jnp.mean(jnp.broadcast_to(sides, (2,)) ** 2)
    return jnp.where(variance > 0, stein / jnp.where(variance > 0, variance, 1.0), at_zero)


@compiled
def _second_derivative(sigma: Activation, variance: ArrayLike) -> Floats:
    variance = jnp.asarray(variance, float)
    return along(lambda u, z: sigma.value(u) ** 2 * (z**4 - 6 * z**2 + 3) / 4, sigma, variance) / variance**2
