"""The spectrum of a nonlinear Gram matrix as an explicit curve, in JAX: traceable and differentiable.

With H the law of ζMP(n/p) + η − ζ and γ = n/N the matrix is N/n times a sample covariance matrix of population H, and
its spectrum the image of the curve Im ψ(a + ib) = 0, ψ(α) = α(1 − γ − γ α m_H(α)). See `silverstein`.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array

from deeplimits.models.activations import ActivationLike
from deeplimits.numerics import roots
from deeplimits.numerics.shapes import Scalar
from deeplimits.theory.gaussian import moments as gaussian_moments
from deeplimits.theory.spectra import marchenko_pastur_formulas


class OddMoments(NamedTuple):
    """η = E σ(ξ)² and ζ = E[ξσ(ξ)]² of an odd activation."""

    eta: Scalar
    zeta: Scalar


def odd_moments(activation: ActivationLike, variance: ArrayLike = 1.0) -> OddMoments:
    """By quadrature; at another variance K the moments of u ↦ σ(√K u).

    >>> round(float(odd_moments("sign").zeta), 10)
    0.6366197724
    """
    eta = gaussian_moments.second_moment(activation, variance)
    linear = gaussian_moments.hermite_moment(activation, 1, variance)
    # Rounding must not make a linear activation more than linear.
    return OddMoments(eta, jnp.minimum(linear**2, eta))


def remainder_sensitivity(activation: ActivationLike) -> float:
    """d log(η − ζ)/d log K at K = 1: how the nonlinear remainder of an input's feature varies with its squared norm.

    Norms fluctuate, ‖x‖²/p = 1 ± √(2/p), and the diagonal (η − ζ)I of the theorem with them.

    >>> round(remainder_sensitivity("tanh"), 2), abs(remainder_sensitivity("sign")) < 1e-12
    (1.28, True)
    """
    away = 0.01
    below, above = (odd_moments(activation, variance) for variance in (1 - away, 1 + away))
    remainders = [float(found.eta - found.zeta) for found in (below, above)]
    if min(remainders) <= 0:  # linear: nothing remains
        return 0.0
    return float(np.log(remainders[1] / remainders[0])) / (2 * away)


class GramCurve(NamedTuple):
    """The law along the curve."""

    x: Array
    density: Array
    cdf: Array
    edges: Array


def curve(moments: OddMoments, data_ratio: Array, width_ratio: Array, points: int) -> GramCurve:
    """Places, densities and distribution function at `points` places between the edges, denser towards these."""
    gamma = 1 / width_ratio
    parameters = (moments.eta, moments.zeta, data_ratio, gamma)
    frozen = jax.lax.stop_gradient(parameters)
    lowest, highest = _population_edges(*frozen)
    reach = 1.01 * jnp.sqrt(frozen[3]) * highest
    # Both ends side by side.
    inner, outer = jnp.stack([lowest, highest]), jnp.stack([lowest - reach, highest + reach])
    both = roots.bracketed(
        _slope_outside, inner, outer, inner, *parameters, sentence="an end of the support was not found"
    )
    low, high = both
    angle = jnp.arange(0.5, points) * (jnp.pi / points)
    a = (low + high) / 2 - (high - low) / 2 * jnp.cos(angle)
    top = jnp.log(2 * jnp.sqrt(frozen[3]) * highest)
    # In a gap of the support no b solves the equation, and the curve runs along the real line.
    log_b = roots.bracketed(_height_equation, jnp.full(points, top - 30.0), top, a, *parameters, optional=True)
    alpha = jax.lax.complex(a, jnp.exp(log_b))
    x = width_ratio * jnp.real(_image(alpha, *parameters))
    # ρ = Im(−1/α)/(πγ), in units of N/n
    density = jnp.imag(-1 / alpha) / (jnp.pi * gamma * width_ratio)
    ends = width_ratio * jnp.real(_image(both.astype(complex), *parameters))
    # 1 − F = {arg α + γ[∫arg(α − t) dH − arg α + Im S₁]}/(πγ), S₁ = ∫t dH/(α − t) = −1 − α m_H
    first = -1 - alpha * _population_transform(alpha, *parameters[:3])
    turned = _mean_angle(alpha, *parameters[:3]) - jnp.angle(alpha) + jnp.imag(first)
    return GramCurve(x, density, 1 - (jnp.angle(alpha) / gamma + turned) / jnp.pi, ends)


def _mean_angle(alpha, eta, zeta, data_ratio):
    """∫ arg(α − t) dH(t), from the primitive of the Marchenko-Pastur transform in its own variable α' = −1/m̲."""
    rate = data_ratio.astype(complex)
    z = (alpha - (eta - zeta).astype(complex)) / zeta.astype(complex)
    inner = -1 / (rate * marchenko_pastur_formulas.marchenko_pastur_stieltjes(z, data_ratio) - (1 - rate) / z)
    # ∫ m̲ dz = −log α' + c [log(α'/(α' − 1)) − 1/(α' − 1)]
    lag = jnp.angle(inner) - jnp.angle(inner - 1) - jnp.imag(1 / (inner - 1))
    return (jnp.angle(inner) - data_ratio * lag - (1 - data_ratio) * jnp.angle(z)) / data_ratio


def _population_edges(eta, zeta, data_ratio, _):
    low, high = marchenko_pastur_formulas.marchenko_pastur_edges(data_ratio, zeta)
    # With fewer inputs than samples the kernel has an atom below its bulk.
    low = jnp.where((data_ratio > 1) & (eta > zeta), 0.0, low)
    return low + eta - zeta, high + eta - zeta


def _population_transform(alpha, eta, zeta, data_ratio):
    return marchenko_pastur_formulas.marchenko_pastur_stieltjes(alpha - (eta - zeta).astype(complex), data_ratio, zeta)


def _image(alpha, eta, zeta, data_ratio, gamma):
    """ψ(α) = α(1 − γ − γ α m_H(α))."""
    rate = gamma.astype(complex)
    return alpha * (1 - rate - rate * alpha * _population_transform(alpha, eta, zeta, data_ratio))


def _slope(a, eta, zeta, data_ratio, gamma):
    """ψ'(a) at real places a outside the population."""
    return jax.jvp(
        lambda u: jnp.real(_image(u.astype(complex), eta, zeta, data_ratio, gamma)), (a,), (jnp.ones_like(a),)
    )[1]


def _slope_outside(a, inner, *parameters):
    """The same, −∞ at the edge of the population itself."""
    return jnp.where(a == inner, -jnp.inf, _slope(a, *parameters))


def _height_equation(log_b, a, eta, zeta, data_ratio, gamma):
    """Im ψ(a + ib)/b, increasing in b."""
    b = jnp.exp(log_b)
    return jnp.imag(_image(jax.lax.complex(a, b), eta, zeta, data_ratio, gamma)) / b
