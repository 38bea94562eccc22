"""Ridge regression in high dimension: exact risk for every covariance and every direction of the signal.

Conventions: y = ⟨x, β⟩ + noise with ‖β‖² = signal r² and noise variance σ²; n samples of p features with covariance Σ;
gamma = p/n; β̂ = (X'X/n + λ)^{-1}X'y/n, the smallest interpolating or least-squares solution at λ = 0. Risk is excess
risk E⟨x₀, β̂ − β⟩², without the irreducible noise.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from deeplimits.models.atoms import Atoms
from deeplimits.numerics import roots
from deeplimits.numerics.arguments import NOT_NEGATIVE, POSITIVE, SHARE, argument
from deeplimits.numerics.ranks import same_rank
from deeplimits.numerics.shapes import Floats
from deeplimits.theory.regression.minimum import minimum
from deeplimits.theory.regression.populations import Population, PopulationLike, as_population
from deeplimits.theory.regression.risks import Risk
from deeplimits.theory.spectra.ridge_equation import AT_THRESHOLD, effective_ridge


def ridge_risk(
    ridge: ArrayLike, population: PopulationLike, gamma: ArrayLike, signal: ArrayLike, noise_variance: ArrayLike
) -> Risk:
    """Limiting risk of ridge regression, λ ≥ 0, for a general covariance; infinite at λ = 0 and γ = 1.

    Setting     y = ⟨x, β⟩ + ε, rows x of covariance Σ with spectral law H, G the law of its eigenvalues weighted by the
                squared coordinates of β, ‖β‖² = r², Var ε = σ²; β̂ = (X'X/n + λ)^{-1}X'y/n; p/n → γ
    Result      κ solves λ = κ(1 − γ∫s/(s+κ) dH), D₂ = γ∫s²/(s+κ)² dH
                B = r²κ²∫s/(s+κ)² dG/(1 − D₂), V = σ²D₂/(1 − D₂), training error (λ/κ)²(B + V + σ²)
    Validity    λ ≥ 0; eigenvalues bounded; at λ = 0 p must differ from n
    References  hastie2022 Thm 5; dobriban2018

    `ridge` and `gamma` broadcast against each other; see `regression.population`, whose eigenvalues or law may stand
    here where the signal has no preferred direction.

    >>> from deeplimits.theory.regression.populations import population
    >>> two = population([1.0, 4.0], alignment=[0.3, 0.7])
    >>> risk = ridge_risk(0.3, two, 2.0, signal=1.0, noise_variance=1.0)
    >>> round(float(risk.bias), 10), round(float(risk.variance), 10)
    (1.0633930296, 0.8019039472)
    """
    check_model(gamma, signal, noise_variance)
    population = as_population(population)
    t, w = population.eigenvalues
    argument("ridge", ridge, NOT_NEGATIVE, "for an infinite ridge the estimate is zero, and the risk that of zero")
    gamma, lam = jnp.broadcast_arrays(jnp.asarray(gamma, float), jnp.asarray(ridge, float))
    kappa = effective_ridge(lam, population.eigenvalues, gamma)
    # λ/κ: at κ = 0 its limit 1 − γH{s > 0}, zero where that is rounding
    room = 1 - gamma * jnp.sum(jnp.where(t > 0, w, 0.0))
    room = jnp.where(jnp.abs(room) < AT_THRESHOLD, 0.0, room)
    seen = kappa > 0
    stretch = jnp.where(seen, lam / jnp.where(seen, kappa, 1.0), room)
    return _risk(kappa, stretch, gamma, population, signal, noise_variance)


class AtEffectiveRidge(NamedTuple):
    """The ridge that belongs to an effective ridge, and the risk there."""

    ridge: Floats
    risk: Risk


def risk_at(
    effective: ArrayLike, population: PopulationLike, gamma: ArrayLike, signal: ArrayLike, noise_variance: ArrayLike
) -> AtEffectiveRidge:
    """The ridge λ that belongs to an effective ridge κ, and the risk there; explicit, and valid for negative λ too.

    λ(κ) = κ(1 − γ∫s/(s+κ) dH) increases to the right of `least_effective_ridge`, where λ reaches minus the smallest
    nonzero eigenvalue of the sample covariance and the risk becomes infinite.

    >>> from deeplimits.theory.regression.populations import population
    >>> ridge, risk = risk_at(2.0, population([1.0, 4.0], alignment=[0.3, 0.7]), 2.0, 1.0, 1.0)
    >>> float(ridge), round(float(risk.bias), 10), round(float(risk.variance), 10)
    (0.0, 1.0, 1.25)
    """
    check_model(gamma, signal, noise_variance)
    population = as_population(population)
    t, w = population.eigenvalues
    kappa, gamma = jnp.asarray(effective, float), jnp.asarray(gamma, float)
    s, shift, mass = same_rank(t, kappa[..., None], w * t)
    stretch = 1 - gamma * jnp.sum(mass / _nonzero(s + shift), axis=-1)
    return AtEffectiveRidge(kappa * stretch, _risk(kappa, stretch, gamma, population, signal, noise_variance))


def _risk(kappa, stretch, gamma, population, signal, noise_variance):
    (t, w), g = population
    noise = jnp.asarray(noise_variance, float)
    t, w, g, shift = same_rank(t, w, g, kappa[..., None])
    shifted = _nonzero(t + shift)
    # 1 − D₂ = λ/κ + γ∫sκ/(s+κ)² dH, without cancellation
    slack = stretch + gamma * kappa * jnp.sum(w * t / shifted**2, axis=-1)
    d2 = gamma * jnp.sum(w * (t / shifted) ** 2, axis=-1)
    missed = jnp.asarray(signal, float) * kappa**2 * jnp.sum(g * t / shifted**2, axis=-1)
    open_ = slack > 0
    safe = jnp.where(open_, slack, 1.0)
    bias = jnp.where(open_, missed / safe, jnp.where(missed > 0, jnp.inf, 0.0))
    variance = jnp.where(open_, noise * d2 / safe, jnp.where(noise > 0, jnp.inf, 0.0))
    # (λ/κ)²(R + σ²), R + σ² = (missed + σ²)/slack; at γ = 1, λ = 0 the data are interpolated
    training = jnp.where(open_, stretch**2 * (missed + noise) / safe, 0.0)
    return Risk(bias, variance, training, kappa)


def _nonzero(x):
    return jnp.where(x == 0, 1.0, x)


def least_effective_ridge(population: PopulationLike, gamma: float) -> float:
    """The κ at which D₂ = γ∫s²/(s+κ)² dH reaches one: ridges down to λ(κ) < 0 keep the estimate finite.

    >>> from deeplimits.theory.regression.populations import population
    >>> round(least_effective_ridge(population([1.0]), 4.0), 10)
    1.0
    """
    t, w = (np.asarray(part) for part in as_population(population).eigenvalues)
    t, w = t[(t > 0) & (w > 0)], w[(t > 0) & (w > 0)]
    # D₂ falls on (−s_min, ∞), and at s + κ = √(γ∫s²) beyond −s_min it is at most one.
    reach = math.sqrt(gamma * float(w @ t**2))
    low, high = np.log(reach) - 60.0, np.log(reach) + 1.0

    def excess(u):
        return gamma * (t / (t - t.min() + np.exp(u)[..., None])) ** 2 @ w - 1

    return math.exp(float(roots.on_host(excess, low, high))) - float(t.min())


class OptimalRidge(NamedTuple):
    """The best ridge; infinite where predicting zero is best."""

    ridge: float
    risk: float
    effective_ridge: float


def optimal_ridge(population: PopulationLike, gamma: float, signal: float, noise_variance: float) -> OptimalRidge:
    """The ridge λ of smallest limiting risk; it may be negative, for a signal along large eigenvalues and γ > 1.

    Setting     as in `ridge_risk`
    Result      argmin over λ > −λ_min of B + V, λ_min the smallest nonzero eigenvalue of the sample covariance; for
                G = H (no preferred direction) and H = δ(1): λ* = γσ²/r²
    Validity    γ > 0; a minimum on a grid of 400 values of κ, refined to the accuracy of a flat minimum, about 1e-7
    References  dobriban2018; hastie2022 Sec 6; wu2020

    >>> from deeplimits.theory.regression.populations import population
    >>> best = optimal_ridge(population([1.0]), 2.0, signal=5.0, noise_variance=1.0)
    >>> round(best.ridge, 5), round(best.risk, 10)
    (0.4, 3.108495283)
    """
    check_model(gamma, signal, noise_variance)
    population = as_population(population)
    first = least_effective_ridge(population, float(gamma))
    scale = float(population.eigenvalues.mean) * (1 + gamma)

    def risk(u):
        return np.asarray(risk_at(first + np.exp(u), population, gamma, signal, noise_variance)[1].total)

    found = minimum(risk, np.log(scale) + np.linspace(-25.0, 18.0, 400))
    # With κ → ∞ the estimate is zero and the risk r²∫s dG.
    null = float(signal * jnp.sum(population.alignment * population.eigenvalues.values))
    if found.index == 399 or found.value >= null * (1 - 1e-12):
        return OptimalRidge(math.inf, null, math.inf)
    effective = first + math.exp(found.at)
    ridge, best = risk_at(effective, population, gamma, signal, noise_variance)
    return OptimalRidge(float(ridge), float(best.total), effective)


def misspecified_risk(
    gamma: ArrayLike, signal: ArrayLike, noise_variance: ArrayLike, *, seen: ArrayLike, ridge: ArrayLike = 0.0
) -> Risk:
    """Risk when only a part of the signal lies in the features, isotropic and ridgeless unless told otherwise.

    Setting     y = ⟨x, β⟩ + ⟨w, θ⟩ + ε, independent isotropic x (seen, in R^p) and w (unseen); r² = ‖β‖² + ‖θ‖²,
                k = ‖β‖²/r² = `seen`
    Result      the unseen part acts as noise: B = r²(1−k) + B₀(kr², σ²+r²(1−k)), V = V₀(kr², σ²+r²(1−k)), B₀ and V₀
                those of the seen part; ridgeless γ > 1: r²(1−k) + r²k(1−1/γ) + [r²(1−k)+σ²]/(γ−1)
    Validity    0 ≤ k ≤ 1; at λ = 0 γ ≠ 1
    References  hastie2022 Sec 5

    >>> round(float(misspecified_risk(2.0, signal=1.0, noise_variance=0.25, seen=0.7).total), 12)
    1.2
    """
    share = argument("seen", seen, SHARE, "the part of the signal in the features")
    signal = jnp.asarray(signal, float)
    unseen = signal * (1 - share)
    one = Population(Atoms(jnp.ones(1), jnp.ones(1)), jnp.ones(1))
    found = ridge_risk(ridge, one, gamma, signal * share, jnp.asarray(noise_variance, float) + unseen)
    return Risk(unseen + found.bias, found.variance)


def check_model(gamma: ArrayLike, signal: ArrayLike, noise_variance: ArrayLike) -> None:
    """Refuse known values that are no ratio, squared norm or variance."""
    argument("gamma", gamma, POSITIVE)
    argument("signal", signal, NOT_NEGATIVE)
    argument("noise_variance", noise_variance, NOT_NEGATIVE)
