r"""Gaussian moments of an activation, for every room: E f(u), u ~ N(0, K), f made of σ, σ', σ'' and powers of u.

In closed form where there is one, otherwise by the panels of `quadrature`, with ends at the kinks of σ: right to
rounding for smooth, kinked and jumping σ, and traceable in K; where K is known an integral that the panels do not
resolve, or that does not exist, is an error. Across kinks derivatives in K come from Stein's identity, which needs none
of σ: with z standard normal and σ = σ(√K z), d/dK E σ² = E σ²(z² − 1)/2K and
d²/dK² E σ² = E σ²(z⁴ − 6z² + 3)/4K².
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
from deeplimits.numerics.arguments import NOT_NEGATIVE, POSITIVE, argument, known, whole
from deeplimits.numerics.checks import converged, valid
from deeplimits.numerics.shapes import Floats
from deeplimits.theory.gaussian.closed_forms import closed_forms
from deeplimits.theory.gaussian.pairs import coincident
from deeplimits.theory.gaussian.quadrature import COARSE, LARGEST_OUTSKIRTS, NODES, OUTSKIRTS, line_nodes

_TOLERANCE = 1e-8

# Solvers ask for the same moments again and again: each is compiled once for each activation.
compiled = functools.partial(jax.jit, static_argnums=0)


def along(function, activation: ActivationLike, variance: ArrayLike) -> Floats:
    """E function(u, z) for u = √K z, elementwise in K; `function` is smooth where the activation is.

    >>> round(float(along(lambda u, z: z * jnp.tanh(u), "tanh", 1.0)), 12)
    0.605705509602
    """
    sigma, variance = named(activation), argument("variance", variance, NOT_NEGATIVE)

    def one(k, order=NODES):
        u, weight = line_nodes(k, kinks=sigma.kinks, order=order)
        z = u / jnp.sqrt(jnp.where(k > 0, k, 1.0))
        terms = weight * jnp.broadcast_to(function(u, z), u.shape)
        return jnp.sum(terms), jnp.sum(abs(terms)), jnp.sum(jnp.where(abs(z) > OUTSKIRTS, abs(terms), 0.0))

    if not known(variance):
        return jax.lax.map(lambda k: one(k)[0], jnp.ravel(variance), batch_size=64).reshape(variance.shape)

    def both(k):
        return *one(k), one(k, COARSE)[0]

    found = jax.lax.map(both, jnp.ravel(variance), batch_size=64)
    value, size, outskirts, coarse = (part.reshape(variance.shape) for part in found)
    return _resolved(sigma, value, size, outskirts, coarse)


def check(activation: ActivationLike, variance: ArrayLike) -> None:
    """Refuse, where it is known, a variance at which E σ² is not finite or is not resolved by the panels.

    >>> check("tanh", [1.0, 100.0])
    """
    sigma = named(activation)
    if not known(variance):
        return
    ends = np.asarray(variance, float)
    if not ends.size:
        return
    if closed_forms(sigma).dual is not None:
        # What a recursion has reached may be infinite: that is said of the moment, not of an argument.
        found = np.asarray(_second_moment(sigma, jnp.asarray(ends)))
        _resolved(sigma, found, np.abs(found), np.zeros_like(found), found)
    else:
        ends = np.array([np.min(ends), np.max(ends)])
        _resolved(sigma, *_square(sigma, ends))


@compiled
def _square(sigma: Activation, ends: Floats):
    def one(k):
        parts = [line_nodes(k, kinks=sigma.kinks, order=order) for order in (NODES, COARSE)]
        terms, coarse = (weight * jnp.broadcast_to(sigma.value(u), u.shape) ** 2 for u, weight in parts)
        far = abs(parts[0][0]) > OUTSKIRTS * jnp.sqrt(jnp.where(k > 0, k, 1.0))
        return jnp.sum(terms), jnp.sum(terms), jnp.sum(jnp.where(far, terms, 0.0)), jnp.sum(coarse)

    return jax.lax.map(one, ends)


def _resolved(sigma: Activation, value, size, outskirts, coarse):
    value = valid(
        value,
        jnp.isfinite(size) & (outskirts <= LARGEST_OUTSKIRTS * size),
        f"a Gaussian moment of {sigma.name} is not finite at some of these variances: the activation grows too fast, "
        "or is not a number somewhere; take smaller variances or another activation",
    )
    return converged(
        value,
        jnp.abs(value - coarse) <= _TOLERANCE * size,
        f"a Gaussian moment of {sigma.name} is not resolved at some of these variances: the activation oscillates, or "
        "has kinks that it does not name; take smaller variances, or an Activation with its kinks",
    )


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
    sigma, order = named(activation), whole("order", order)

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
    return _second_moment(named(activation), argument("variance", variance, NOT_NEGATIVE))


def mean_slope(activation: ActivationLike, variance: ArrayLike = 1.0) -> Floats:
    """E σ'(u)

    >>> round(float(mean_slope("erf_saad")), 12)
    0.564189583548
    """
    sigma = _sloped(activation)
    return along(lambda u, z: sigma.derivative(u), sigma, variance)


def slope_moment(activation: ActivationLike, variance: ArrayLike = 1.0, *, power: int = 2) -> Floats:
    """E σ'(u)^power

    >>> round(float(slope_moment("relu")), 12)
    0.5
    """
    variance = argument("variance", variance, NOT_NEGATIVE)
    return _slope_moment(_sloped(activation), variance, whole("power", power, 1))


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
    return _first_derivative(named(activation), argument("variance", variance, NOT_NEGATIVE))


def second_derivative(activation: ActivationLike, variance: ArrayLike) -> Floats:
    """d² E σ²/dK² for K > 0.

    >>> round(float(second_derivative("square", 2.0)), 10)
    6.0
    """
    return _second_derivative(named(activation), argument("variance", variance, POSITIVE))


def continuous(activation: ActivationLike, so: str) -> Activation:
    """An activation without jumps; for any other an error that says what follows from them."""
    sigma = named(activation)
    if not sigma.continuous:
        raise OutsideValidity(f"activation = {sigma.name} jumps, so {so}; take a continuous activation")
    return sigma


def _sloped(activation: ActivationLike) -> Activation:
    return continuous(activation, "E σ'² is infinite and small changes of the input grow without bound")


@compiled
def _second_moment(sigma: Activation, variance: ArrayLike) -> Floats:
    dual = closed_forms(sigma).dual
    if dual is not None:
        return dual.variance(jnp.asarray(variance, float))
    return along(lambda u, z: sigma.value(u) ** 2, sigma, variance)


@functools.partial(jax.jit, static_argnums=(0, 2))
def _slope_moment(sigma: Activation, variance: ArrayLike, power: int) -> Floats:
    dual, variance = closed_forms(sigma).dual, jnp.asarray(variance, float)
    if dual is not None and power == 2 and sigma.smooth:
        return dual.slope(coincident(variance))
    found = along(lambda u, z: sigma.derivative(u) ** power, sigma, variance)
    if 0.0 not in sigma.kinks:
        return found
    # At K = 0 the limit from above, in which u is as often on either side of the kink.
    return jnp.where(variance > 0, found, jnp.mean(_beside_zero(sigma) ** power))


def _beside_zero(sigma: Activation) -> Float[Array, "2"]:
    """σ' on the two sides of 0."""
    sides = sigma.derivative(jnp.asarray([np.nextafter(0.0, -1.0), np.nextafter(0.0, 1.0)]))
    return jnp.broadcast_to(sides, (2,))


@compiled
def _first_derivative(sigma: Activation, variance: ArrayLike) -> Floats:
    variance = jnp.asarray(variance, float)
    if sigma.smooth:
        # E[σ'² + σσ'']
        found = along(
            lambda u, z: sigma.derivative(u) ** 2 + sigma.value(u) * sigma.second_derivative(u), sigma, variance
        )
        dual = closed_forms(sigma).dual
        # A closed form knows the root of K and has no derivative at 0.
        return found if dual is None else jnp.where(variance > 0, _slope(dual.variance)(variance), found)
    stein = along(lambda u, z: sigma.value(u) ** 2 * (z**2 - 1) / 2, sigma, variance)
    at_zero = jnp.mean(_beside_zero(sigma) ** 2)
    return jnp.where(variance > 0, stein / jnp.where(variance > 0, variance, 1.0), at_zero)


@compiled
def _second_derivative(sigma: Activation, variance: ArrayLike) -> Floats:
    variance, dual = jnp.asarray(variance, float), closed_forms(sigma).dual
    if sigma.smooth and dual is not None:
        return _slope(_slope(dual.variance))(variance)
    return along(lambda u, z: sigma.value(u) ** 2 * (z**4 - 6 * z**2 + 3) / 4, sigma, variance) / variance**2


def _slope(function):
    """The derivative of a function that acts entry by entry."""
    return lambda x: jax.jvp(function, (x,), (jnp.ones_like(x),))[1]
