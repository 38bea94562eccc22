"""Minimum-norm least squares on isotropic features.

Conventions: y = ⟨x, β⟩ + noise with ‖β‖² = signal and noise variance `noise_variance`; n samples of p features;
gamma = p/n. Risk is excess risk E(⟨x₀, β̂ − β⟩)², without the irreducible noise.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.numerics.arguments import NOT_NEGATIVE, POSITIVE, argument, array, whole
from deeplimits.numerics.shapes import Floats, Scalar
from deeplimits.theory.regression.risks import Risk
from deeplimits.theory.spectra.ridge_equation import AT_THRESHOLD


def ridgeless_risk(gamma: ArrayLike, signal: ArrayLike, noise_variance: ArrayLike) -> Risk:
    """Risk as n, p → ∞ with p/n → γ; infinite at γ = 1.

    >>> risk = ridgeless_risk(2.0, signal=5.0, noise_variance=1.0)
    >>> float(risk.bias), float(risk.variance)
    (2.5, 1.0)
    """
    gamma, signal, noise_variance = _checked(gamma, signal, noise_variance)
    over = gamma > 1
    # γ < 1:  B = 0,            V = σ²γ/(1−γ)
    # γ > 1:  B = r²(1 − 1/γ),  V = σ²/(γ−1)
    bias = jnp.where(over, signal * (1 - 1 / gamma), 0.0)
    # A ratio that differs from 1 by rounding means 1, not a risk of 1e15.
    distance = jnp.where(jnp.abs(1 - gamma) < AT_THRESHOLD, 0.0, jnp.abs(1 - gamma))
    inflation = jnp.where(over, 1.0, gamma) / jnp.where(distance == 0, 1.0, distance)
    # Without noise there is no variance, at the threshold either.
    variance = jnp.where((distance == 0) & (noise_variance > 0), jnp.inf, noise_variance * inflation)
    return Risk(bias, variance)


def ridgeless_norm(gamma: ArrayLike, signal: ArrayLike, noise_variance: ArrayLike) -> Floats:
    """Limit of ‖β̂‖²: the signal that is seen, plus the variance.

    >>> float(ridgeless_norm(0.5, 1.0, 1.0)), float(ridgeless_norm(2.0, 1.0, 1.0))
    (2.0, 1.5)
    """
    gamma = argument("gamma", gamma, POSITIVE)
    variance = ridgeless_risk(gamma, signal, noise_variance).variance
    return jnp.asarray(signal, float) * jnp.minimum(1.0, 1 / gamma) + variance


def ridgeless_training_error(gamma: ArrayLike, noise_variance: ArrayLike) -> Floats:
    """Limit of the mean squared residual on the training data, σ²(1 − γ)₊.

    >>> float(ridgeless_training_error(0.25, 1.0)), float(ridgeless_training_error(2.0, 1.0))
    (0.75, 0.0)
    """
    noise_variance = argument("noise_variance", noise_variance, NOT_NEGATIVE)
    return noise_variance * jnp.maximum(1 - argument("gamma", gamma, POSITIVE), 0.0)


def _checked(gamma, signal, noise_variance):
    return (
        argument("gamma", gamma, POSITIVE),
        argument("signal", signal, NOT_NEGATIVE, "‖β‖²"),
        argument("noise_variance", noise_variance, NOT_NEGATIVE),
    )


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
    _, signal, noise_variance = _checked(1.0, signal, noise_variance)
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

    Of the same fit: `ridgeless_finite_sample_norm`, `ridgeless_finite_sample_training_error`; given your own X
    `design_risk` (any covariance), and `ablation`, which says what makes the error at one point.

    >>> risk = ridgeless_finite_sample_risk(40, 20, signal=1.0, noise_variance=1.0)
    >>> round(float(risk.variance), 10)
    1.0526315789
    """
    n, p = whole("n", n, 1), whole("p", p, 1)
    signal, noise_variance = (float(part) for part in _checked(1.0, signal, noise_variance)[1:])
    bias = signal * max(0.0, 1 - n / p)
    if p <= n - 2:
        variance = noise_variance * p / (n - p - 1)
    elif p >= n + 2:
        variance = noise_variance * n / (p - n - 1)
    else:
        variance = float("inf") if noise_variance > 0 else 0.0
    return Risk(jnp.asarray(bias), jnp.asarray(variance))


def ridgeless_finite_sample_norm(n: int, p: int, signal: float, noise_variance: float) -> Scalar:
    """E‖β̂‖² = r² min(1, n/p) + E V for Gaussian features, exact at every n and p.

    E V is that of `ridgeless_finite_sample_risk`.

    >>> round(float(ridgeless_finite_sample_norm(20, 40, signal=1.0, noise_variance=1.0)), 10)
    1.5526315789
    """
    n, p = whole("n", n, 1), whole("p", p, 1)
    return signal * min(1.0, n / p) + ridgeless_finite_sample_risk(n, p, signal, noise_variance).variance


def ridgeless_finite_sample_training_error(n: int, p: int, noise_variance: float) -> Scalar:
    """E‖y − Xβ̂‖²/n = σ²(1 − p/n)₊, exact for every design of full rank: the residual is the noise off its columns.

    >>> float(ridgeless_finite_sample_training_error(40, 20, 1.0))
    0.5
    """
    return argument("noise_variance", noise_variance, NOT_NEGATIVE) * max(0.0, 1 - whole("p", p, 1) / whole("n", n, 1))


def design_risk(
    x: ArrayLike, coefficients: ArrayLike, noise_variance: ArrayLike, *, covariance: ArrayLike | None = None
) -> Risk:
    """Excess risk of minimum-norm least squares given the design: B_X = β'ΠΣΠβ, V_X = (σ²/n) tr(Σ̂⁺Σ).

    Setting     y = Xβ + ε for this X (n, p), Var ε = σ², new points of covariance Σ, the identity unless given
    Result      the mean over the noise; Π = I − X⁺X projects on what the rows of X do not see
    Validity    any X; singular values below max(n, p) rounding errors of the largest count as zero
    References  hastie2022 Lemma 1

    >>> risk = design_risk([[1.0, 0.0], [2.0, 0.0]], [1.0, 3.0], 5.0)
    >>> float(risk.bias), round(float(risk.variance), 12)
    (9.0, 1.0)
    """
    design, _, values, right, kept = _decomposed(x)
    beta = array("coefficients", coefficients, (design.shape[1],), why="one for each column of x")
    noise = argument("noise_variance", noise_variance, NOT_NEGATIVE)
    unseen = beta - right.T @ jnp.where(kept, right @ beta, 0.0)
    sigma = jnp.eye(len(beta)) if covariance is None else array("covariance", covariance, (len(beta), len(beta)))
    seen = jnp.where(kept, jnp.einsum("rp,pq,rq->r", right, sigma, right) / jnp.where(kept, values, 1.0) ** 2, 0.0)
    return Risk(unseen @ sigma @ unseen, noise * jnp.sum(seen))


class Ablation(NamedTuple):
    """What one prediction of minimum-norm least squares gets wrong, direction by direction."""

    bias: Scalar
    """⟨x₀, (X⁺X − I)β⟩: what the rows of X do not see."""
    inverse: Float[Array, " r"]
    """1/s_r, the inverse singular values of X."""
    test: Float[Array, " r"]
    """⟨x₀, v_r⟩: how much the test point lies in each direction."""
    residual: Float[Array, " r"]
    """⟨u_r, ε⟩: how much the noise does."""

    @property
    def error(self) -> Scalar:
        """⟨x₀, β̂ − β⟩ = bias + Σ_r test·residual/s_r: it is large only where all three are."""
        return self.bias + jnp.sum(self.inverse * self.test * self.residual)


def ablation(x: ArrayLike, coefficients: ArrayLike, errors: ArrayLike, point: ArrayLike) -> Ablation:
    """The parts of ⟨x₀, β̂ − β⟩ = ⟨x₀, (X⁺X − I)β⟩ + Σ_r (1/s_r)⟨x₀, v_r⟩⟨u_r, ε⟩, for this X, β, ε = `errors` and x₀.

    Setting     y = Xβ + ε, β̂ = X⁺y, X = Σ_r s_r u_r v_r'; shapes (n, p), (p,), (n,), (p,)
    Result      the exact identity above: the peak of double descent needs a small s_r, a test point along v_r and noise
                along u_r; taking away one of the three takes away the peak
    Validity    always
    References  schaeffer2023

    >>> found = ablation([[1.0, 0.0], [0.0, 0.1]], [1.0, 1.0], [0.5, 0.5], [1.0, 1.0])
    >>> round(float(found.error), 12), found.inverse.tolist()
    (5.5, [1.0, 10.0])
    """
    design, left, values, right, kept = _decomposed(x)
    n, p = design.shape
    beta, eps = array("coefficients", coefficients, (p,)), array("errors", errors, (n,))
    x0 = array("point", point, (p,))
    unseen = beta - right.T @ jnp.where(kept, right @ beta, 0.0)
    inverse = jnp.where(kept, 1 / jnp.where(kept, values, 1.0), 0.0)
    return Ablation(-(x0 @ unseen), inverse, right @ x0, left.T @ eps)


def _decomposed(x):
    design = array("x", x, ("n", "p"), why="one sample in each row")
    left, values, right = jnp.linalg.svd(design, full_matrices=False)
    return design, left, values, right, values > max(design.shape) * jnp.finfo(float).eps * values[0]
