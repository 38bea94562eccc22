r"""Interpolation when the features do not hold the whole signal."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import data, estimators
from deeplimits.limit import Limit, Run, real, rounded, whole
from deeplimits.limits.regression._shared import at_threshold, features_of
from deeplimits.predictions import Value
from deeplimits.showcase import Showcase
from deeplimits.theory.regression import populations, ridge


class MisspecifiedAndLatentRidgeless(Limit):
    r"""Minimum-norm least squares on a part of the signal, and on noisy views of a few latent variables.

    Setting     misspecified: y = ⟨x, β⟩ + ⟨w, θ⟩ + ε, isotropic x in R^p seen, w unseen, ‖β‖² = k r², ‖θ‖² = (1−k)r²
                latent: x = Wz + u, y = ⟨θ, z⟩ + ε, z in R^q and u standard Gaussian, W'W = μI, q/p = ψ, ‖θ‖² = r²
                Var ε = σ², n samples, β̂ = X⁺y
    Limit       n, p → ∞ with p/n → γ
    Result      misspecified, γ < 1: (1−k)r² + [(1−k)r² + σ²]γ/(1−γ)
                misspecified, γ > 1: (1−k)r² + kr²(1−1/γ) + [(1−k)r² + σ²]/(γ−1)
                latent: ridge regression's risk at λ = 0 for H = ψδ(1+μ) + (1−ψ)δ(1), all signal μr²/(1+μ)² in the
                eigenspace of 1+μ, noise σ² + r²/(1+μ); in excess of the best linear predictor
    Validity    γ ≠ 1, ψ ≤ 1; size counts the samples n
    Finite size relative gap about 1/(n|1 − γ|)
    Computed by regression.misspecified_risk, regression.ridge_risk, regression.latent_features
    References  hastie2022 Sec 5
    """

    gamma: Array = real(2.0, 0.02, 50.0, log=True, symbol=r"\gamma", doc="features per sample, p/n")
    signal: Array = real(1.0, 0.0, 100.0, symbol=r"r^2", doc="squared norm of the true coefficients")
    seen: Array = real(0.7, 0.0, 1.0, symbol="k", doc="share of the signal in the features (misspecified)")
    strength: Array = real(4.0, 0.01, 1000.0, log=True, symbol=r"\mu", doc="strength of the latent variables")
    latent: Array = real(0.5, 0.02, 0.98, symbol=r"\psi", doc="latent variables per feature, q/p")
    noise: Array = real(0.5, 0.0, 10.0, symbol=r"\sigma", doc="standard deviation of the label noise")

    usual = Run(sizes=(40, 80, 160), samples=400)
    showcase = Showcase(
        ranges={"gamma": (0.1, 10.0)},
        see="The risk has its peak at γ = 1 and falls beyond it; with latent structure it falls far below.",
    )

    # Independent coefficients and label noises on one design.
    repeats = 16

    def validity(self):
        if at_threshold(self.gamma):
            return ("gamma = 1 is outside the theorem; the risk is infinite at the interpolation threshold",)
        return ()

    def theory(self):
        variance = self.noise**2
        part = ridge.misspecified_risk(self.gamma, self.signal, variance, seen=self.seen)
        population, signal, noise = populations.latent_features(self.strength, self.latent, self.signal, variance)
        view = ridge.ridge_risk(0.0, population, self.gamma, signal, noise)
        return {
            "misspecified": Value(part.total, label="excess risk, part of the signal", symbol="R", rate=1.0),
            "latent_bias": Value(view.bias, label="squared bias, latent signal", symbol="B", rate=1.0),
            "latent_variance": Value(view.variance, label="variance, latent signal", symbol="V", rate=1.0),
        }

    def at_size(self, size):
        n = whole(size, "n", self, least=2)
        p = features_of(self, n, float(self.gamma), least=2)
        q = min(max(round(float(self.latent) * p), 1), p - 1)
        return {"samples": n, "features": p, "hidden": q}, rounded(self, gamma=p / n, latent=q / p)

    def simulate(self, key, *, samples: int, features: int, hidden: int):
        k, n = self.repeats, samples
        # Two designs of p features each; what every one of the repeats draws for itself stands beside them.
        shapes = [(2, n, features), (n, hidden), (features, k), (hidden, k), (3, n, k)]
        (x, own), z, directions, hidden_directions, (unseen, noise, other_noise) = data.gaussian_arrays(key, *shapes)

        # Part of the signal: ⟨w, θ⟩ is a Gaussian variable of variance ‖θ‖², whatever the dimension of w.
        spare = self.signal * (1 - self.seen)
        beta = jnp.sqrt(self.signal * self.seen) * directions / jnp.linalg.norm(directions, axis=0, keepdims=True)
        labels = x @ beta + jnp.sqrt(spare) * unseen + self.noise * noise

        # Latent: the law of u does not change under rotations: the latent variables may enter along the first q axes.
        views = own.at[:, :hidden].add(jnp.sqrt(self.strength) * z)
        theta = jnp.sqrt(self.signal) * hidden_directions / jnp.linalg.norm(hidden_directions, axis=0, keepdims=True)
        best = jnp.zeros((features, k)).at[:hidden].set(jnp.sqrt(self.strength) * theta / (1 + self.strength))
        # The labels are ⟨x, best⟩ plus what x cannot tell; the fit is linear in them.
        told = views @ best
        rest = z @ theta - told + self.noise * other_noise

        fits = jax.lax.map(
            lambda problem: estimators.min_norm_fit(*problem),
            (
                jnp.stack([x, views]),
                jnp.stack([jnp.concatenate([labels, jnp.zeros((n, k))], 1), jnp.concatenate([told, rest], 1)]),
            ),
        )
        missed, spread = fits[1, :, :k] - best, fits[1, :, k:]
        covariance = jnp.where(jnp.arange(features) < hidden, 1 + self.strength, 1.0)
        return {
            "misspecified": jnp.sum((fits[0, :, :k] - beta) ** 2) / k + spare,
            "latent_bias": covariance @ jnp.mean(missed**2, axis=1),
            "latent_variance": covariance @ jnp.mean(spread**2, axis=1),
        }
