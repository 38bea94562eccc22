r"""What one layer does to the variance K of a Gaussian preactivation: F(K) = C_b + C_w E σ², and its derivatives.

Across kinks the derivatives come from Stein's identity, which needs none of σ: with z standard normal and σ = σ(√K z),
d/dK E σ² = E σ²(z² − 1)/2K and d²/dK² E σ² = E σ²(z⁴ − 6z² + 3)/4K².
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.models.activations import Activation
from deeplimits.theory.gaussian.quadrature import line_nodes
from deeplimits.tracing import is_traced

Floats = Float[Array, "..."]


class Susceptibilities(NamedTuple):
    """How one layer multiplies a small change: of the norm (parallel), of the direction (perpendicular)."""

    parallel: Floats
    perpendicular: Floats


# Solvers ask for the same moments again and again: each is compiled once for each activation.
compiled = functools.partial(jax.jit, static_argnums=0)


def along(function, sigma: Activation, kernel: ArrayLike) -> Floats:
    """E function(u, z) for u = √K z, elementwise in K."""
    kernel = jnp.asarray(kernel, float)

    def one(k):
        u, weight = line_nodes(k, sigma.kinks)
        z = u / jnp.sqrt(jnp.where(k > 0, k, 1.0))
        return jnp.sum(weight * jnp.broadcast_to(function(u, z), u.shape))

    return jax.lax.map(one, jnp.ravel(kernel), batch_size=64).reshape(kernel.shape)


@compiled
def second_moment(sigma: Activation, kernel: ArrayLike) -> Floats:
    """E σ(u)², u ~ N(0, K)."""
    return along(lambda u, z: sigma.value(u) ** 2, sigma, kernel)


@compiled
def slope_moment(sigma: Activation, kernel: ArrayLike) -> Floats:
    """E σ'(u)²"""
    if not sigma.continuous:
        raise OutsideValidity(
            f"activation = {sigma.name} jumps, so E σ'² is infinite and small changes of the input grow without bound; "
            "take a continuous activation"
        )
    return along(lambda u, z: sigma.derivative(u) ** 2, sigma, kernel)


@compiled
def first_derivative(sigma: Activation, kernel: ArrayLike) -> Floats:
    """d E σ²/dK; at K = 0 and a kink there, the limit from above (which needs σ(0) = 0)."""
    kernel = jnp.asarray(kernel, float)
    if sigma.smooth:
        # E[σ'² + σσ'']
        return along(lambda u, z: sigma.derivative(u) ** 2 + sigma.value(u) * sigma.second_derivative(u), sigma, kernel)
    stein = along(lambda u, z: sigma.value(u) ** 2 * (z**2 - 1) / 2, sigma, kernel) / jnp.where(kernel > 0, kernel, 1.0)
    sides = sigma.derivative(jnp.asarray([np.nextafter(0.0, -1.0), np.nextafter(0.0, 1.0)]))
    return jnp.where(kernel > 0, stein, jnp.mean(jnp.broadcast_to(sides, (2,)) ** 2))


@compiled
def second_derivative(sigma: Activation, kernel: ArrayLike) -> Floats:
    """d² E σ²/dK² for K > 0."""
    kernel = jnp.asarray(kernel, float)
    return along(lambda u, z: sigma.value(u) ** 2 * (z**4 - 6 * z**2 + 3) / 4, sigma, kernel) / kernel**2


def layer_map(sigma: Activation, kernel: ArrayLike, weight_variance: ArrayLike, bias_variance: ArrayLike) -> Floats:
    """F(K) = C_b + C_w E σ²"""
    return jnp.asarray(bias_variance, float) + jnp.asarray(weight_variance, float) * second_moment(sigma, kernel)


def susceptibilities(sigma: Activation, kernel: ArrayLike, weight_variance: ArrayLike = 1.0) -> Susceptibilities:
    """χ_∥ = F'(K) and χ_⊥ = C_w E σ'².

    >>> from deeplimits.models.activations import activation
    >>> [round(float(chi), 6) for chi in susceptibilities(activation("tanh"), 0.41803720053348, 1.5)]
    [0.551983, 0.938636]
    """
    c_w = jnp.asarray(weight_variance, float)
    return Susceptibilities(c_w * first_derivative(sigma, kernel), c_w * slope_moment(sigma, kernel))


def check_variances(**values: ArrayLike) -> None:
    """Refuse variances that are negative or not finite (unless they are traced)."""
    for name, value in values.items():
        if is_traced(value):
            continue
        numbers = np.asarray(value, float)
        if not np.all(np.isfinite(numbers)) or np.any(numbers < 0):
            raise ParameterError(f"{name} = {value} is not allowed; a variance is a finite number of at least 0")
