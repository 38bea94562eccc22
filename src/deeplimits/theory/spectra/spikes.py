"""Eigenvalues that leave the bulk, and what their eigenvectors know of the signal."""

from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.models.atoms import Atoms
from deeplimits.numerics.arguments import POSITIVE, above, argument
from deeplimits.numerics.checks import valid

Floats = Float[Array, "..."]


class Spike(NamedTuple):
    """An outlier: all overlaps are squared inner products of unit vectors."""

    eigenvalue: Floats
    """Where the eigenvalue of the spike sits; the edge of the bulk below the threshold."""
    overlap: Floats
    """Of the eigenvector with the direction of the spike; zero below the threshold."""
    threshold: Floats
    """The strength above which there is an outlier."""
    deviation: Floats
    """Standard deviation of √n (λ̂ − λ) for real Gaussian data above the threshold, n the samples; zero below it."""


def spiked_covariance(strength: ArrayLike, gamma: ArrayLike, variance: ArrayLike = 1.0) -> Spike:
    """The outlier of a sample covariance matrix whose population is σ²(I + ℓuu').

    Setting     n samples of dimension p with covariance σ²(I + ℓuu'), ‖u‖ = 1; γ = p/n
    Result      ℓ > √γ: λ = σ²(1 + ℓ)(1 + γ/ℓ), |⟨u, û⟩|² = (1 − γ/ℓ²)/(1 + γ/ℓ), √n(λ̂ − λ) has variance
                2σ⁴(1 + ℓ)²(1 − γ/ℓ²); else the upper edge and 0. For γ < 1 a spike −1 < ℓ < −√γ leaves below, by the
                same formulas; between −√γ and √γ a negative ℓ stays at the lower edge
    Validity    ℓ > −1, γ > 0; Gaussian data for the variance
    References  baik2005; baik2006; paul2007

    >>> [round(float(part), 6) for part in spiked_covariance(2.0, 0.5)]
    [3.75, 0.7, 0.707107, 3.968627]
    """
    ell = argument("strength", strength, above(-1), "I + ℓuu' is a covariance matrix")
    gamma, variance = jnp.asarray(gamma, float), jnp.asarray(variance, float)
    root = jnp.sqrt(gamma)
    out = (ell > root) | ((ell < -root) & (gamma < 1))
    safe = jnp.where(out, ell, 2 * root)
    gain = 1 - gamma / safe**2
    edge = jnp.where(ell >= 0, (1 + root) ** 2, (1 - root) ** 2)
    return Spike(
        variance * jnp.where(out, (1 + safe) * (1 + gamma / safe), edge),
        jnp.where(out, gain / (1 + gamma / safe), 0.0),
        root,
        variance * jnp.where(out, jnp.sqrt(2 * gain) * (1 + safe), 0.0),
    )


def population_spike(value: ArrayLike, population: Atoms, gamma: ArrayLike) -> Spike:
    """The outlier that a population eigenvalue α outside the rest of the population makes.

    Setting     population Σ w_k δ(t_k) and, apart from it, finitely many eigenvalues α; γ = p/n
    Result      ψ(α) = α(1 + γ Σ w t/(α − t)) if ψ'(α) = 1 − γ Σ w t²/(α − t)² > 0, with overlap αψ'(α)/ψ(α) and
                √n(λ̂ − λ) of variance 2α²ψ'(α)
    Validity    α > 0 none of the t_k; `threshold` is ψ'(α) itself, positive where there is an outlier
    References  bai2012; benaych2011

    >>> from deeplimits.models.atoms import atoms
    >>> [round(float(part), 8) for part in population_spike(8.0, atoms([1.0, 3.0]), 0.3)[:2]]
    [8.89142857, 0.8484025]
    """
    alpha = argument("value", value, POSITIVE)
    t, w, gamma = (jnp.asarray(part, float) for part in (*population, gamma))
    alpha = valid(alpha, alpha[..., None] != t, "value is one of the population's atoms; a spike is none of them")
    first = jnp.sum(w * t / (alpha[..., None] - t), axis=-1)
    slope = 1 - gamma * jnp.sum(w * t**2 / (alpha[..., None] - t) ** 2, axis=-1)
    place = alpha * (1 + gamma * first)
    out = slope > 0
    return Spike(
        place,
        jnp.where(out, alpha * slope / place, 0.0),
        slope,
        jnp.where(out, alpha * jnp.sqrt(2 * jnp.where(out, slope, 1.0)), 0.0),
    )


class SingularSpike(NamedTuple):
    """An outlier of XX'/n for a rectangular X = signal + noise."""

    eigenvalue: Floats
    left: Floats
    """Squared overlap of the left singular vector."""
    right: Floats
    threshold: Floats


def signal_plus_noise(strength: ArrayLike, gamma: ArrayLike) -> SingularSpike:
    """The outlier of XX'/n for X = θ√n uv' + Z, Z p×n with independent unit entries.

    Setting     ‖u‖ = ‖v‖ = 1, u ∈ R^p, v ∈ R^n, γ = p/n, ρ = θ²
    Result      ρ > √γ: λ = (1 + ρ)(γ + ρ)/ρ, left overlap (ρ² − γ)/(ρ(ρ + γ)), right overlap (ρ² − γ)/(ρ(ρ + 1));
                else the edge (1 + √γ)² and zero
    Validity    θ ≥ 0, γ > 0; `threshold` is γ^{1/4}
    References  benaych2012

    >>> [round(float(part), 6) for part in signal_plus_noise(1.5, 0.5)]
    [3.972222, 0.737374, 0.623932, 0.840896]
    """
    theta, gamma = jnp.asarray(strength, float), jnp.asarray(gamma, float)
    rho, root = theta**2, jnp.sqrt(gamma)
    out = rho > root
    safe = jnp.where(out, rho, 2 * root)
    gain = safe**2 - gamma
    return SingularSpike(
        jnp.where(out, (1 + safe) * (gamma + safe) / safe, (1 + root) ** 2),
        jnp.where(out, gain / (safe * (safe + gamma)), 0.0),
        jnp.where(out, gain / (safe * (safe + 1)), 0.0),
        jnp.sqrt(root),
    )


def spiked_wigner(strength: ArrayLike) -> Spike:
    """The outlier of θuu' + W, W symmetric with Gaussian entries of variance 1/N (2/N on the diagonal).

    Setting     ‖u‖ = 1, the bulk is the semicircle on [−2, 2]
    Result      θ > 1: λ = θ + 1/θ, overlap 1 − 1/θ², √N(λ̂ − λ) of variance 2(1 − 1/θ²); else 2 and 0
    Validity    θ ≥ 0
    References  peche2006; benaych2011

    >>> [float(part) for part in spiked_wigner(2.0)[:3]]
    [2.5, 0.75, 1.0]
    """
    theta = jnp.asarray(strength, float)
    out = theta > 1
    safe = jnp.where(out, theta, 2.0)
    gain = 1 - 1 / safe**2
    return Spike(
        jnp.where(out, safe + 1 / safe, 2.0),
        jnp.where(out, gain, 0.0),
        jnp.ones_like(theta),
        jnp.where(out, jnp.sqrt(2 * gain), 0.0),
    )
