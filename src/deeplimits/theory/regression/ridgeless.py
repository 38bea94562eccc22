"""Minimum-norm least squares on isotropic features.

Conventions: y = ⟨x, β⟩ + noise with ‖β‖² = signal and noise variance `noise_variance`; n samples of p features;
gamma = p/n. Risk is excess risk E(⟨x₀, β̂ − β⟩)², without the irreducible noise.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.errors import ParameterError
from deeplimits.theory.regression.risks import Risk
from deeplimits.theory.spectra.ridge_equation import AT_THRESHOLD


def ridgeless_risk(gamma: ArrayLike, signal: ArrayLike, noise_variance: ArrayLike) -> Risk:
    """Risk as n, p → ∞ with p/n → γ; infinite at γ = 1.

    >>> risk = ridgeless_risk(2.0, signal=5.0, noise_variance=1.0)
    >>> float(risk.bias), float(risk.variance)
    (2.5, 1.0)
    """
    gamma, signal, noise_variance = (jnp.asarray(a, float) for a in (gamma, signal, noise_variance))
    over = gamma > 1
    # γ < 1:  B = 0,            V = σ²γ/(1−γ)
    # γ > 1:  B = r²(1 − 1/γ),  V = σ²/(γ−1)
    bias = jnp.where(over, signal * (1 - 1 / gamma), 0.0)
    # A ratio that differs from 1 by rounding means 1, not a risk of 1e15.
    distance = jnp.where(jnp.abs(1 - gamma) < AT_THRESHOLD, 0.0, jnp.abs(1 - gamma))
    inflation = jnp.where(over, 1.0, gamma) / jnp.where(distance == 0, 1.0, distance)
    variance = jnp.where(distance == 0, jnp.inf, noise_variance * inflation)
    return Risk(bias, variance)


def ridgeless_norm(gamma: ArrayLike, signal: ArrayLike, noise_variance: ArrayLike) -> Float[Array, "..."]:
    """Limit of ‖β̂‖²: the signal that is seen, plus the variance.

    >>> float(ridgeless_norm(0.5, 1.0, 1.0)), float(ridgeless_norm(2.0, 1.0, 1.0))
    (2.0, 1.5)
    """
    gamma = jnp.asarray(gamma, float)
    variance = ridgeless_risk(gamma, signal, noise_variance).variance
    return jnp.asarray(signal, float) * jnp.minimum(1.0, 1 / gamma) + variance


def ridgeless_training_error(gamma: ArrayLike, noise_variance: ArrayLike) -> Float[Array, "..."]:
    """Limit of the mean squared residual on the training data, σ²(1 − γ)₊.

    >>> float(ridgeless_training_error(0.25, 1.0)), float(ridgeless_training_error(2.0, 1.0))
    (0.75, 0.0)
    """
    return jnp.asarray(noise_variance, float) * jnp.maximum(1 - jnp.asarray(gamma, float), 0.0)


class BestGamma(NamedTuple):
    """The γ of least risk, and that risk."""

    gamma: Array
    risk: Array


def best_overparametrization(signal: ArrayLike, noise_variance: ArrayLike) -> BestGamma:
    """The γ > 1 with the smallest risk and that risk; (inf, signal) where the risk falls all the way (SNR ≤ 1).

    >>> gamma, risk = best_overparametrization(5.0, 1.0)
    >>> round(float(gamma), 10), round(float(risk), 10)
    (1.8090169944, 3.472135955)
    """
    signal, noise_variance = jnp.asarray(signal, float), jnp.asarray(noise_variance, float)
    minimum = signal > noise_variance
    root = jnp.sqrt(jnp.where(minimum, signal / jnp.where(noise_variance > 0, noise_variance, 1.0), 4.0))
    # γ* = √SNR/(√SNR − 1),  R* = σ²(2√SNR − 1);  without noise γ* = 1 and R* = 0
    gamma = jnp.where(noise_variance > 0, root / (root - 1), 1.0)
    risk = jnp.where(noise_variance > 0, noise_variance * (2 * root - 1), 0.0)
    return BestGamma(jnp.where(minimum, gamma, jnp.inf), jnp.where(minimum, risk, signal))


def ridgeless_finite_sample_risk(n: int, p: int, signal: float, noise_variance: float) -> Risk:
    """Mean risk of minimum-norm least squares on Gaussian features, exact at every n and p.

    Setting     y = Xβ + ε, X is (n, p) with independent standard Gaussian entries, ‖β‖² = r², Var ε = σ², β̂ = X⁺y
    Result      E B = r²(1 − n/p)₊
                E V = σ²p/(n − p − 1) for p ≤ n − 2, σ²n/(p − n − 1) for p ≥ n + 2, infinite in between
    Validity    Gaussian features; the mean risk is infinite for p in {n − 1, n, n + 1}
    References  hastie2022 Sec 3; belkin2019

    >>> risk = ridgeless_finite_sample_risk(40, 20, signal=1.0, noise_variance=1.0)
    >>> round(float(risk.variance), 10)
    1.0526315789
    """
    for name, value, least in (("n", n, 1), ("p", p, 1), ("signal", signal, 0), ("noise_variance", noise_variance, 0)):
        if not value >= least:
            raise ParameterError(f"finite_sample_risk: {name} = {value} is not allowed; it must be at least {least}")
    bias = signal * max(0.0, 1 - n / p)
    if p <= n - 2:
        variance = noise_variance * p / (n - p - 1)
    elif p >= n + 2:
        variance = noise_variance * n / (p - n - 1)
    else:
        variance = float("inf") if noise_variance > 0 else 0.0
    return Risk(jnp.asarray(bias), jnp.asarray(variance))
