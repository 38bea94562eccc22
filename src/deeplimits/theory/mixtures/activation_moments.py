r"""What a kernel of high-dimensional data sees of an activation: a few Gaussian moments at the scale of the data.

Derivatives are in Stein's form, E σ'(τξ) = E ξσ(τξ)/τ and E σ''(τξ) = E (ξ² − 1)σ(τξ)/τ², which holds for kinks and
jumps too.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from deeplimits.models.activations import Activation, ActivationLike
from deeplimits.models.activations import activation as named
from deeplimits.numerics.arguments import POSITIVE, argument
from deeplimits.numerics.shapes import Floats
from deeplimits.theory.gaussian import moments
from deeplimits.theory.gaussian.quadrature import line_nodes


class LayerMoments(NamedTuple):
    """Moments of σ(τξ) − E σ(τξ), ξ standard normal."""

    mean: Floats
    """E σ, which is taken off."""
    variance: Floats
    slope: Floats
    """E σ'"""
    curvature: Floats
    """E σ''"""
    energy: Floats
    """E[σ'² + σσ''] of the centred activation: half the slope of the variance in τ², twice over."""
    rest: Floats
    """d₀ = Var σ − τ²(E σ')²: what is not linear."""
    squared_slope: Floats
    """E σ'²; infinite where σ jumps."""


class KernelCoefficients(NamedTuple):
    """The conjugate kernel of a mixture depends on the activation through these."""

    rest: Floats
    """d₀ = Var σ(τξ) − τ²d₁, the multiple of the identity."""
    linear: Floats
    """d₁ = (E σ')²"""
    quadratic: Floats
    """d₂ = (E σ'')²/4"""
    energy: Floats
    """E[σ'² + σσ''], which the next layer of a deep network sees."""


def layer_moments(activation: ActivationLike, variance: ArrayLike) -> LayerMoments:
    """Gaussian moments of an activation at pre-activations of this variance τ²; arrays of any shape.

    Setting     ξ ~ N(0, 1), u = τξ; σ any activation of finite E σ(u)²
    Result      E σ, Var σ, E σ' = E ξσ/τ, E σ'' = E (ξ² − 1)σ/τ², E[σ'² + σσ''] = E (ξ² − 1)(σ − E σ)²/(2τ²), d₀, E σ'²
    Validity    τ² > 0; jumps and kinks are fine, E σ'² is infinite for jumps
    References  ali2022; gu2022

    >>> found = layer_moments("relu", 1.0)
    >>> round(float(found.rest), 10), round(float(found.slope), 10), round(float(found.energy), 10)
    (0.0908450569, 0.5, 0.3408450569)
    """
    sigma, tau = named(activation), argument("variance", variance, POSITIVE)
    moments.check(sigma, tau)
    return _moments(sigma, tau)


@functools.partial(jax.jit, static_argnums=0)
def _moments(sigma: Activation, variance: Floats) -> LayerMoments:
    def one(k):
        u, weight = line_nodes(k, kinks=sigma.kinks)
        root = jnp.sqrt(k)
        z, value = u / root, jnp.broadcast_to(sigma.value(u), u.shape)
        mean = jnp.sum(weight * value)
        centred = value - mean
        # E ξσ and E (ξ² − 1)σ
        first, second = jnp.sum(weight * z * centred), jnp.sum(weight * (z**2 - 1) * centred)
        spread = jnp.sum(weight * centred**2)
        slope_square = jnp.sum(weight * jnp.broadcast_to(sigma.derivative(u), u.shape) ** 2)
        return LayerMoments(
            mean,
            spread,
            first / root,
            second / k,
            # E (ξ² − 1)σ²/2τ² = E[σ'² + σσ'']
            jnp.sum(weight * (z**2 - 1) * centred**2) / (2 * k),
            # The square of what is left over, not a difference of squares.
            jnp.sum(weight * (centred - first * z) ** 2),
            slope_square if sigma.continuous else jnp.inf * jnp.ones_like(k),
        )

    found = jax.lax.map(one, jnp.ravel(variance), batch_size=64)
    return LayerMoments(*(part.reshape(variance.shape) for part in found))


def kernel_coefficients(activation: ActivationLike, variance: ArrayLike = 1.0) -> KernelCoefficients:
    """The four numbers through which the conjugate kernel of a mixture depends on the activation.

    Setting     K_ij = E σ(w·x_i/√p)σ(w·x_j/√p), x_i ~ N(μ_a, C_a), `variance` τ² = tr C°/p
    Result      d₀ = Var σ(τξ) − τ²d₁, d₁ = (E σ')², d₂ = (E σ'')²/4, and E[σ'² + σσ''] for what is behind
    Validity    E σ(τξ)² finite; always d₀ ≥ 2τ⁴d₂
    References  ali2022 Thm 1

    >>> [round(float(part), 10) for part in kernel_coefficients("relu")]
    [0.0908450569, 0.25, 0.0397887358, 0.3408450569]
    """
    found = layer_moments(activation, variance)
    return KernelCoefficients(found.rest, found.slope**2, found.curvature**2 / 4, found.energy)
