r"""Ridge regression in high dimension, for features that are not isotropic."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import data, estimators
from deeplimits.limit import Limit, Run, axis, real, whole
from deeplimits.measure.leave_one_out import leave_one_out
from deeplimits.predictions import Curve, Value
from deeplimits.theory.regression import ridge
from deeplimits.theory.regression.populations import Population


class RidgeRegression(Limit):
    r"""Risk of ridge regression for a covariance with two eigenvalues, and what the training data say about it.

    Setting     y = ⟨x, β⟩ + ε, x in R^p with independent features of variance t (each with probability w) or 1;
                ‖β‖² → r², of which a share g lies in the features of variance t; Var ε = σ²;
                β̂ = argmin (1/n)‖y − Xβ‖² + λ‖β‖² on n samples
    Limit       n, p → ∞ with p/n → γ
    Result      λ = κ(1 − γ∫s/(s+κ) dH), D₂ = γ∫s²/(s+κ)² dH
                bias B = r²κ²∫s/(s+κ)² dG/(1 − D₂), variance V = σ²D₂/(1 − D₂)
                training error (λ/κ)²(B + V + σ²); leave-one-out and generalized cross-validation → B + V + σ²
                risk along γ: with little ridge it peaks near γ = 1; for t = 1 and the best ridge, γσ²/r², it does not
    Validity    λ > 0; size counts the samples n
    Finite size gaps of order 1/n
    References  hastie2022 Thm 5; dobriban2018
    """

    gamma: Array = real(2.0, 0.02, 50.0, log=True, symbol=r"\gamma", doc="features per sample, p/n")
    ridge: Array = real(0.3, 1e-3, 100.0, log=True, symbol=r"\lambda", doc="ridge penalty")
    large: Array = real(4.0, 1.0, 100.0, log=True, symbol="t", doc="the larger eigenvalue of the covariance")
    share: Array = real(0.5, 0.05, 0.95, symbol="w", doc="share of directions with the larger eigenvalue")
    alignment: Array = real(0.7, 0.0, 1.0, symbol="g", doc="share of the signal in those directions")
    signal: Array = real(1.0, 0.0, 100.0, symbol=r"r^2", doc="squared norm of the true coefficients")
    noise: Array = real(1.0, 0.0, 10.0, symbol=r"\sigma", doc="standard deviation of the label noise")
    gammas: Array = axis(
        (0.25, 0.5, 1.0, 1.5, 3.0), 0.02, 50.0, log=True, symbol=r"\gamma", doc="features per sample along the curve"
    )

    usual = Run(sizes=(24, 48, 96), samples=1600)

    # Independent coefficients and label noises on one design.
    repeats = 6

    def _risk(self, gamma):
        values = jnp.stack([jnp.ones(()), self.large])
        weights = jnp.stack([1 - self.share, self.share])
        alignment = jnp.stack([1 - self.alignment, self.alignment])
        population = Population(values, weights, alignment)
        return ridge.ridge_risk(gamma, self.ridge, population, self.signal, self.noise**2)

    def theory(self):
        risk = self._risk(self.gamma)
        unseen = risk.total + self.noise**2
        dense = jnp.geomspace(self.gammas[0], self.gammas[-1], 200)
        return {
            "bias": Value(risk.bias, label="squared bias", symbol="B", rate=1.0),
            "variance": Value(risk.variance, label="variance", symbol="V", rate=1.0),
            "training_error": Value(risk.training_error, label="training error", rate=1.0),
            "leave_one_out": Value(unseen, label="leave-one-out error", symbol=r"R+\sigma^2", rate=1.0),
            "cross_validation": Value(unseen, label="generalized cross-validation", symbol=r"R+\sigma^2", rate=1.0),
            "risk_curve": Curve(
                self.gammas,
                self._risk(self.gammas).total,
                axis="features per sample",
                axis_symbol=r"\gamma",
                label="excess risk",
                symbol="R",
                rate=1.0,
                dense_x=dense,
                dense_y=self._risk(dense).total,
                log_x=True,
            ),
        }

    def at_size(self, size):
        n = whole(size, "n", self, least=4)
        p = whole(float(self.gamma) * n, "p", self)
        along = tuple(whole(float(gamma) * n, "p", self) for gamma in self.gammas)
        realised = self.replace(gamma=p / n, gammas=[q / n for q in along])
        return {"samples": n, "features": p, "along": along}, realised

    def simulate(self, key, *, samples: int, features: int, along: tuple[int, ...]):
        kind_key, data_key, sign_key, noise_key = jax.random.split(key, 4)
        widest = max(features, *along)
        # Independent variances, so that no rounding of wp to a whole number enters; the curve takes leading columns.
        large = jax.random.bernoulli(kind_key, self.share, (widest,))
        covariance = jnp.where(large, self.large, 1.0)
        density = jnp.where(large, self.alignment / self.share, (1 - self.alignment) / (1 - self.share))
        signs = jax.random.rademacher(sign_key, (self.repeats, widest), dtype=float)
        directions = jnp.sqrt(self.signal * density) * signs
        noises = self.noise * jax.random.normal(noise_key, (self.repeats, samples))
        x = data.independent_entries(data_key, samples, widest) * jnp.sqrt(covariance)

        def risk(p):
            betas = directions[:, :p] / jnp.sqrt(1.0 * p)
            bias, variance = jax.vmap(
                lambda beta: estimators.ridge_risk(x[:, :p], beta, covariance[:p], self.ridge, self.noise**2)
            )(betas)
            return jnp.mean(bias), variance[0]

        def errors(direction, noise):
            seen = x[:, :features]
            labels = seen @ (direction[:features] / jnp.sqrt(1.0 * features)) + noise
            estimate = estimators.ridge_fit(seen, labels, self.ridge)
            left_out = leave_one_out(seen, labels, self.ridge)
            return jnp.mean((labels - seen @ estimate) ** 2), left_out.mean_square, left_out.generalized

        bias, variance = risk(features)
        training, left_out, generalized = (jnp.mean(part) for part in jax.vmap(errors)(directions, noises))
        return {
            "bias": bias,
            "variance": variance,
            "training_error": training,
            "leave_one_out": left_out,
            "cross_validation": generalized,
            "risk_curve": jnp.stack([sum(risk(p)) for p in along]),
        }
