r"""Ridge regression on features that have seen one step of gradient descent."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from deeplimits.ensembles import data, one_step
from deeplimits.limit import Limit, Run, activation_choice, real
from deeplimits.limits.mixtures._shared import at_two_ratios
from deeplimits.models.designs import Design
from deeplimits.predictions import Value
from deeplimits.showcase import Showcase
from deeplimits.theory.mixtures.one_step import one_step_ridge_risk

TEST = 400


class System(NamedTuple):
    """The first layer after its step, and fresh samples: with noise to learn from, without it to be tested on."""

    weights: Float[Array, "neurons p"]
    target: Float[Array, " p"]
    train: Design
    test: Design


class OneStepRidgeRisk(Limit):
    r"""Ridge regression on features after one step: better than before it, never better than the best linear predictor.

    Setting     W₁ = W₀ + η√N G₀ from n samples; ridge regression on σ(W₁x)/√N with n fresh ones,
                y = relu(⟨β*, x⟩) − 1/√(2π) + noise, penalty λ; risk E(f̂ − f*)²
    Limit       n, p, N → ∞ together, at a fixed step η
    Result      Σ = (μ₁²W₁W₁' + μ₂²I)/N, b = μ₁μ*W₁β*/√N, θ = Σ^{−1}b, σ_eff² = σ² + |f*|² − b'Σ^{−1}b;
                κ = λ + (κ/n)tr Σ(Σ + κ)^{−1}, D = tr Σ²(Σ + κ)^{−2}/n: (κ²θ'Σ(Σ + κ)^{−2}θ + σ_eff²)/(1 − D) − σ²
    Validity    E σ = 0; η = O(1): at η of order √N the features are no longer linear in ⟨β*, x⟩, and the risk is below
                the linear bound; size counts the dimension p
    Finite size O(1/p) in mean
    Computed by mixtures.one_step_ridge_risk
    References  ba2022 Thm 5; hu2022
    """

    activation: str = activation_choice("tanh", lambda a: a.odd and a.bounded and a.smooth)
    step: Array = real(3.0, 0.0, 6.0, symbol=r"\eta", doc="step η")
    ridge: Array = real(0.01, 0.003, 1.0, log=True, symbol=r"\lambda", doc="penalty λ")
    samples_per_dimension: Array = real(3.0, 1.5, 5.0, log=True, symbol="n/p", doc="samples per dimension")
    neurons_per_dimension: Array = real(1.5, 0.5, 2.0, log=True, symbol="N/p", doc="neurons per dimension")
    noise: Array = real(0.3, 0.0, 1.0, symbol=r"\sigma", doc="standard deviation of the label noise")

    usual = Run(sizes=(40, 80, 160), samples=200)
    showcase = Showcase(
        see="The further the first step goes, the lower the risk of ridge regression on the features after it."
    )

    def at_size(self, size):
        return at_two_ratios(self, size)

    def draw(self, key, *, samples: int, dimension: int, width: int):
        shapes = (width, dimension), (width,), (samples, dimension), (samples,), (dimension,)
        fresh = (samples + TEST, dimension), (samples,)
        *numbers, x, errors = data.gaussian_arrays(key, *shapes, *fresh)
        system = one_step.step_data(numbers, "relu", self.noise, 1 / jnp.sqrt(2 * jnp.pi))
        gradient = one_step.first_step(self.activation, system)
        weights = system.weights + self.step * jnp.sqrt(1.0 * width) * gradient
        y = jnp.maximum(x @ system.target, 0.0) - 1 / jnp.sqrt(2 * jnp.pi)
        train = Design(x[:samples], y[:samples] + self.noise * errors)
        return System(weights, system.target, train, Design(x[samples:], y[samples:]))

    def stated(self, system):
        found = one_step_ridge_risk(
            self.ridge, self.activation, "relu", system.weights, system.target, len(system.train.y), noise=self.noise
        )
        return {"risk": Value(found.risk, label="risk after the step", symbol=r"E(\hat f-f^*)^2", rate=1.0)}

    def measured(self, system):
        risk = one_step.ridge_features_risk(self.activation, system.weights, system.train, system.test, self.ridge)
        return {"risk": risk}
