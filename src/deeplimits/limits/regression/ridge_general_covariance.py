r"""Ridge regression in high dimension, for features that are not isotropic."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import data, estimators
from deeplimits.limit import Limit, Run, axis, real, rounded, whole
from deeplimits.limits.regression._shared import risk_curve
from deeplimits.measure.cross_validation import leave_one_out
from deeplimits.models.atoms import Atoms
from deeplimits.predictions import Value
from deeplimits.showcase import Showcase
from deeplimits.theory.regression import ridge
from deeplimits.theory.regression.populations import Population


class RidgeGeneralCovariance(Limit):
    r"""Risk of ridge regression for a covariance with two eigenvalues, and what the training data say about it.

    Setting     y = ⟨x, β⟩ + ε, x in R^p with independent features of variance t (a share w of them) or 1;
                ‖β‖² → r², of which a share g lies in the features of variance t; Var ε = σ²;
                β̂ = argmin (1/n)‖y − Xβ‖² + λ‖β‖² on n samples
    Limit       n, p → ∞ with p/n → γ
    Result      λ = κ(1 − γ∫s/(s+κ) dH), D₂ = γ∫s²/(s+κ)² dH
                bias B = r²κ²∫s/(s+κ)² dG/(1 − D₂), variance V = σ²D₂/(1 − D₂)
                training error (λ/κ)²(B + V + σ²); leave-one-out and generalized cross-validation → B + V + σ²
                risk along γ: with little ridge it peaks near γ = 1; for t = 1 and the best ridge, γσ²/r², it does not
    Validity    λ > 0; size counts the samples n
    Finite size gaps of order 1/n
    Computed by regression.ridge_risk, regression.optimal_ridge
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

    usual = Run(sizes=(24, 48, 96), samples=160)
    showcase = Showcase(
        parameters={"gammas": (0.15, 0.25, 0.4, 0.6, 0.8, 1.25, 1.6, 2.2, 3.2, 5.0)},
        see="Even a little ridge turns the pole at γ = 1 into a hill; leave-one-out sees it from the data.",
    )

    # Independent coefficients and label noises on one design.
    repeats = 24

    def _risk(self, gamma):
        values = jnp.stack([1.0, self.large])
        weights = jnp.stack([1 - self.share, self.share])
        alignment = jnp.stack([1 - self.alignment, self.alignment])
        population = Population(Atoms(values, weights), alignment)
        return ridge.ridge_risk(self.ridge, population, gamma, self.signal, self.noise**2)

    def theory(self):
        dense = jnp.geomspace(self.gammas[0], self.gammas[-1], 200)
        # At the one ratio, at those of the curve and at those between, in one call.
        risks = self._risk(jnp.concatenate([self.gamma[None], self.gammas, dense]))
        risk = jax.tree.map(lambda part: part[0], risks)
        _, along, between = jnp.split(risks.total, [1, 1 + self.gammas.size])
        unseen = risk.total + self.noise**2
        return {
            "bias": Value(risk.bias, label="squared bias", symbol="B", rate=1.0),
            "variance": Value(risk.variance, label="variance", symbol="V", rate=1.0),
            "training_error": Value(risk.training_error, label="training error", rate=1.0),
            "leave_one_out": Value(unseen, label="leave-one-out error", symbol=r"R+\sigma^2", rate=1.0),
            "cross_validation": Value(unseen, label="generalized cross-validation", symbol=r"R+\sigma^2", rate=1.0),
            "risk_curve": risk_curve(self.gammas, along, dense, between),
        }

    def at_size(self, size):
        n = whole(size, "n", self, least=4)
        p = whole(float(self.gamma) * n, "p", self)
        along = tuple(whole(float(gamma) * n, "p", self) for gamma in self.gammas)
        realised = rounded(self, gamma=p / n, gammas=[q / n for q in along])
        return {"samples": n, "features": p, "along": along}, realised

    def simulate(self, key, *, samples: int, features: int, along: tuple[int, ...]):
        kind_key, gaussian_key = jax.random.split(key)
        counts = (features, *along)
        widest, k = max(counts), self.repeats
        # Each feature is large with probability w, so that no rounding of wp to a whole number enters; they are spread
        # evenly, so that of the leading p features, which a point of the curve takes, wp are large to within one.
        steps = jnp.floor(jnp.arange(widest + 1.0) * self.share + jax.random.uniform(kind_key))
        large = jnp.diff(steps) > 0
        covariance = jnp.where(large, self.large, 1.0)
        density = jnp.where(large, self.alignment / self.share, (1 - self.alignment) / (1 - self.share))
        x, directions, noises = data.gaussian_arrays(gaussian_key, (samples, widest), (widest, k), (samples, k))
        x = x * jnp.sqrt(covariance)[None, :]
        directions = jnp.sqrt(self.signal * density)[:, None] * jnp.sign(directions)
        noises = self.noise * noises

        def fitted(p):
            # Features that are left out are zero, and so are their coefficients: one shape for all p.
            there = jnp.arange(widest) < p
            seen, betas = (
                jnp.where(there, x, 0.0),
                jnp.where(there[:, None], directions, 0.0) / jnp.sqrt(jnp.asarray(p, float)),
            )
            # β̂ = Sy; its mean misses (SX − I)β, its covariance is σ²SS'.
            solved = estimators.ridge_matrix(seen, self.ridge)
            clean = seen @ betas
            bias = covariance @ jnp.mean((solved @ clean - betas) ** 2, axis=1)
            variance = self.noise**2 * (covariance @ jnp.sum(solved**2, axis=1))
            # The residual is (I − H)y, H = XS: a mean over the noise needs no draw of it.
            kept = jnp.eye(samples) - seen @ solved
            training = jnp.sum((kept @ clean) ** 2) / (k * samples) + self.noise**2 * jnp.sum(kept**2) / samples
            return bias, variance, training

        biases, variances, training = jax.lax.map(fitted, jnp.asarray(counts))
        seen = x[:, :features]
        labels = seen @ directions[:features] / jnp.sqrt(1.0 * features) + noises
        left_out = jax.vmap(lambda y: leave_one_out(seen, y, ridge=self.ridge), 1)(labels)
        return {
            "bias": biases[0],
            "variance": variances[0],
            "training_error": training[0],
            "leave_one_out": jnp.mean(left_out.mean_square),
            "cross_validation": jnp.mean(left_out.generalized),
            "risk_curve": biases[1:] + variances[1:],
        }
