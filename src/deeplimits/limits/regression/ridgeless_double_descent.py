r"""Double descent of minimum-norm least squares."""

from itertools import pairwise

import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import data, estimators
from deeplimits.errors import OutsideValidity
from deeplimits.limit import Limit, Run, axis, real, rounded, whole
from deeplimits.limits.regression._shared import at_threshold, features_of, risk_curve
from deeplimits.numerics.arguments import written
from deeplimits.predictions import Value
from deeplimits.showcase import Showcase
from deeplimits.theory.regression import ridgeless


class RidgelessDoubleDescent(Limit):
    r"""Risk of minimum-norm least squares and its peak at the interpolation threshold.

    Setting     y = ⟨x, β⟩ + ε, isotropic x in R^p, ‖β‖² = r², Var ε = σ², n samples, β̂ = X⁺y
    Limit       n, p → ∞ with p/n → γ
    Result      γ < 1: bias B = 0, variance V = σ²γ/(1 − γ)
                γ > 1: bias B = r²(1 − 1/γ), variance V = σ²/(γ − 1)
                excess risk R = B + V, with a pole at γ = 1
                ‖β̂‖² → r² min(1, 1/γ) + V, training error → σ²(1 − γ)₊
    Validity    γ ≠ 1; features with finite moments of order above four; size counts the samples n
    Finite size relative gap about 1/(n|1 − γ|)
    Computed by regression.ridgeless_risk, regression.ridgeless_norm, regression.ridgeless_training_error,
                regression.design_risk, regression.best_overparametrization, regression.ridgeless_finite_sample_risk
    References  hastie2022 Thm 1; belkin2019
    """

    gamma: Array = real(2.0, 0.01, 100.0, log=True, symbol=r"\gamma", doc="features per sample, p/n")
    noise: Array = real(0.5, 0.0, 10.0, symbol=r"\sigma", doc="standard deviation of the label noise")
    signal: Array = real(1.0, 0.0, 100.0, symbol=r"r^2", doc="squared norm of the true coefficients")
    gammas: Array = axis(
        (0.2, 0.35, 0.5, 0.65, 0.8, 1.25, 1.5, 2.0, 3.0, 5.0),
        0.01,
        100.0,
        log=True,
        symbol=r"\gamma",
        doc="features per sample along the risk curve",
    )

    usual = Run(sizes=(40, 80, 160), samples=160)
    showcase = Showcase(
        ranges={"gamma": (0.1, 10.0), "noise": (0.1, 2.0), "signal": (0.1, 4.0)},
        parameters={"gammas": (0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 1.25, 1.5, 2.0, 3.0, 5.0, 8.0)},
        see="The risk rises to a peak where features are as many as samples, and falls again beyond it.",
    )

    # Independent coefficients and label noises on one design.
    repeats = 8

    def validity(self):
        ones = "; the risk is infinite at the interpolation threshold, so move away from 1"
        found = []
        if at_threshold(self.gamma):
            found.append(f"gamma = 1 is outside the theorem{ones}")
        if at_threshold(self.gammas):
            found.append(f"gammas contains 1, which is outside the theorem{ones}")
        return tuple(found)

    def theory(self):
        noise_variance = self.noise**2
        risk = ridgeless.ridgeless_risk(self.gamma, self.signal, noise_variance)
        along = ridgeless.ridgeless_risk(self.gammas, self.signal, noise_variance)
        # An even number of points, so that none falls on the pole when the ends are reciprocal.
        dense = jnp.geomspace(self.gammas[0], self.gammas[-1], 400)
        dense_risk = ridgeless.ridgeless_risk(dense, self.signal, noise_variance).total
        return {
            "risk": Value(risk.total, label="excess risk", symbol="R", rate=1.0),
            "bias": Value(risk.bias, label="squared bias", symbol="B", rate=1.0),
            "variance": Value(risk.variance, label="variance", symbol="V", rate=1.0),
            "norm": Value(
                ridgeless.ridgeless_norm(self.gamma, self.signal, noise_variance),
                label="squared norm of the estimate",
                symbol=r"\|\hat\beta\|^2",
                rate=1.0,
            ),
            "training_error": Value(
                ridgeless.ridgeless_training_error(self.gamma, noise_variance), label="training error", rate=1.0
            ),
            "risk_curve": risk_curve(self.gammas, along.total, dense, dense_risk, log_y=True),
        }

    def at_size(self, size):
        n = whole(size, "n", self, least=2)
        p = features_of(self, n, float(self.gamma))
        # The nearest to the threshold first, which needs the largest size.
        nearest = sorted(map(float, self.gammas), key=lambda gamma: abs(gamma - 1))
        found = sorted((features_of(self, n, gamma, name="gammas"), gamma) for gamma in nearest)
        along = tuple(p for p, _ in found)
        for (p_of_one, one), (p_of_next, other) in pairwise(found):
            if p_of_one == p_of_next:
                raise OutsideValidity(
                    f"RidgelessDoubleDescent: at n = {n} gammas = {written(one)} and {written(other)} both mean "
                    f"p = {p_of_one}; take a larger size"
                )
        realised = rounded(self, gamma=p / n, gammas=[q / n for q in along])
        return {"samples": n, "features": p, "along": along}, realised

    def simulate(self, key, *, samples: int, features: int, along: tuple[int, ...]):
        counts = (features, *along)
        widest = max(counts)
        # The points of the curve share one data matrix and take its leading columns.
        x, directions, errors = data.gaussian_arrays(
            key, (samples, widest), (widest, self.repeats), (samples, self.repeats)
        )

        least_squares = estimators.NestedLeastSquares(x, counts)
        biases = self.signal * least_squares.biases(directions)
        variances = self.noise**2 * least_squares.variances()
        seen, leading = x[:, :features], directions[:features]
        lengths = jnp.linalg.norm(leading, axis=0, keepdims=True)
        labels = jnp.sqrt(self.signal) * (seen @ leading) / lengths + self.noise * errors
        estimates = least_squares.fit(features, labels)
        return {
            "risk": biases[0] + variances[0],
            "bias": biases[0],
            "variance": variances[0],
            "norm": jnp.mean(jnp.sum(estimates**2, axis=0)),
            "training_error": jnp.mean((labels - seen @ estimates) ** 2),
            "risk_curve": biases[1:] + variances[1:],
        }
