r"""Spherical online SGD at the critical step: the ODE of the correlation with the signal.

x̃ = x − (δ/N) ∇L(x, Y), x' = x̃/|x̃|, one fresh sample a step, ∇ the spherical gradient. With τ = steps/N,

    dm/dτ = −δ(1 − m²) φ'(m) − (δ²/2) s(m) m,

the second term being the retraction to the sphere, which gradient flow on φ leaves out.
"""

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array

from deeplimits.theory.online_sgd.effective import EffectiveDynamics, solve_ode
from deeplimits.theory.online_sgd.single_index import Landscape


def velocity(landscape: Landscape, m: ArrayLike, step: ArrayLike) -> Array:
    """dm/dτ.

    >>> from deeplimits.theory.online_sgd.single_index import online_pca
    >>> round(float(velocity(online_pca(1.0), 0.5, 0.3)), 10)
    0.1125
    """
    m, delta = jnp.asarray(m, float), jnp.asarray(step, float)
    return -delta * (1 - m**2) * landscape.slope(m) - delta**2 / 2 * landscape.squared_gradient(m) * m


def correlation(landscape: Landscape, start: ArrayLike, step: ArrayLike, times: Array) -> Array:
    """m(τ) at increasing times from m(0) = start, by integration.

    >>> import jax.numpy as jnp
    >>> from deeplimits.theory.online_sgd.single_index import online_pca
    >>> round(float(correlation(online_pca(1.0), 0.2, 0.3, jnp.array([5.0]))[0]), 7)
    0.6735598
    """
    # The velocity is linear in the state that the engine sees: −f is the population part, g the retraction.
    delta = jnp.asarray(step, float)
    dynamics = EffectiveDynamics(
        drift=lambda u: delta * (1 - u**2) * landscape.slope(u),
        corrector=lambda u: -(delta**2) / 2 * landscape.squared_gradient(u) * u,
    )
    return solve_ode(dynamics, jnp.asarray(start, float)[None], times)[:, 0]


def growth_rate(landscape: Landscape, step: ArrayLike) -> Array:
    """κ = δ a_2 − δ² s(0)/2: the rate at which the correlation leaves the equator when k = 2."""
    delta = jnp.asarray(step, float)
    return delta * landscape.drift_constant - delta**2 * landscape.squared_gradient(jnp.zeros(())) / 2


def pca_correlation(signal: ArrayLike, start: ArrayLike, step: ArrayLike, times: ArrayLike) -> Array:
    """Online PCA in closed form: m² = m_*²/(1 + (m_*²/m_0² − 1) e^{−2κτ}), κ = 2δ(λ − δ), m_*² = (λ − δ)/(λ(1 + δ)).

    Written so that it also holds at and above the critical step δ = λ, where m decays.

    >>> round(float(pca_correlation(1.0, 0.2, 0.3, 5.0)), 8)
    0.67355977
    """
    lam, delta, tau = (jnp.asarray(part, float) for part in (signal, step, times))
    m0 = jnp.asarray(start, float)
    kappa = 2 * delta * (lam - delta)
    # m^{-2} solves a linear equation: m^{-2} = e^{−2κτ}/m_0² + 4δλ(1+δ) ∫_0^τ e^{−2κ(τ−s)} ds
    x = 2 * kappa * tau
    safe = jnp.where(jnp.abs(x) < 1e-8, 1.0, x)
    integral = jnp.where(jnp.abs(x) < 1e-8, tau * (1 - x / 2), -jnp.expm1(-safe) / safe * tau)
    return m0 / jnp.sqrt(jnp.exp(-x) + m0**2 * 4 * delta * lam * (1 + delta) * integral)


def pca_plateau(signal: ArrayLike, step: ArrayLike) -> Array:
    """m_* = √((λ − δ)/(λ(1 + δ))), 0 where δ ≥ λ: what a constant step recovers.

    >>> round(float(pca_plateau(1.0, 0.3)), 10)
    0.7337993857
    """
    lam, delta = jnp.asarray(signal, float), jnp.asarray(step, float)
    excess = jnp.maximum(lam - delta, 0.0)
    inside = excess > 0
    return jnp.where(inside, jnp.sqrt(jnp.where(inside, excess, 1.0) / (lam * (1 + delta))), 0.0)


def phase_retrieval_correlation(start: ArrayLike, step: ArrayLike, times: ArrayLike, noise: ArrayLike = 0.0) -> Array:
    """The link z² in closed form: dm/dτ = m[κ(1 − m²) − 8δ²σ²], κ = 8δ − 96δ².

    >>> round(float(phase_retrieval_correlation(0.1, 0.03, 20.0)), 10)
    0.9081585389
    """
    m0, delta, tau = (jnp.asarray(part, float) for part in (start, step, times))
    kappa = 8 * delta - 96 * delta**2
    rate = kappa - 8 * delta**2 * jnp.asarray(noise, float) ** 2
    # m^{-2} solves a linear equation with rate 2·rate and source 2κ
    x = 2 * rate * tau
    safe = jnp.where(jnp.abs(x) < 1e-8, 1.0, x)
    integral = jnp.where(jnp.abs(x) < 1e-8, tau * (1 - x / 2), -jnp.expm1(-safe) / safe * tau)
    return m0 / jnp.sqrt(jnp.exp(-x) + m0**2 * 2 * kappa * integral)
