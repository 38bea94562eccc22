r"""The first layer after one step of gradient descent."""

import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import data, one_step
from deeplimits.limit import Limit, Run, activation_choice, real
from deeplimits.limits.mixtures._shared import at_two_ratios
from deeplimits.numerics.arguments import known, written
from deeplimits.predictions import Value
from deeplimits.showcase import Showcase
from deeplimits.theory.mixtures.one_step import one_step_spike

APART = 1.25
"""How far beyond the transition, in θ₁, the usual sizes show the spike."""


class OneStepSpikeAndAlignment(Limit):
    r"""One large enough step puts a spike into the first layer, and its direction knows the teacher.

    Setting     W₁ = W₀ + η√N G₀, W₀ of N rows and independent entries of variance 1/p; y = ⟨β*, x⟩ or a centred
                ReLU of it, + noise; n samples; the network starts from zero output
    Limit       n, p, N → ∞, n/p → ψ₁, N/p → ψ₂
    Result      θ₁ = μ₁η√((|f*|² + σ²)/ψ₁ + μ*²), θ₂ = μ₁μ*η: a spike iff θ₁ > ψ₂^{1/4},
                s₁ = √((1 + θ₁²)(ψ₂ + θ₁²))/θ₁, ⟨u₁, β*⟩² = (θ₂²/θ₁²)(1 − (ψ₂ + θ₁²)/(θ₁²(θ₁² + 1)))
    Validity    E σ = 0, E σ' ≠ 0; here θ₁ > 1.25ψ₂^{1/4}, short of which there is nothing at the usual sizes; size
                counts the dimension p
    Finite size O(1/p) in mean; a start with an output of its own shifts s₁ by O(p^(−1/2))
    Computed by mixtures.one_step_spike
    References  ba2022 Thm 3
    """

    activation: str = activation_choice("tanh", lambda a: a.odd and a.lipschitz)
    teacher_activation: str = activation_choice(
        "relu", lambda a: a.name in ("relu", "identity", "tanh", "erf"), symbol="g", doc="the teacher's function g"
    )
    step: Array = real(6.0, 1.0, 10.0, log=True, symbol=r"\eta", doc="step η")
    samples_per_dimension: Array = real(2.0, 1.0, 4.0, log=True, symbol=r"\psi_1", doc="samples per dimension n/p")
    neurons_per_dimension: Array = real(1.5, 0.5, 3.0, log=True, symbol=r"\psi_2", doc="neurons per dimension N/p")
    noise: Array = real(0.3, 0.0, 1.0, symbol=r"\sigma", doc="standard deviation of the label noise")

    usual = Run(sizes=(30, 60, 120), samples=1500, batch=4)
    showcase = Showcase(
        ranges={"step": (3.4, 10.0)},
        first="alignment",
        see="A large enough step turns the first layer towards the teacher: from the critical step on its top "
        "direction knows it, up to what the teacher's nonlinearity lets through.",
    )

    def validity(self):
        if not known(self.step, self.samples_per_dimension, self.neurons_per_dimension, self.noise):
            return ()
        found = self._found()
        if float(found.strength) >= APART * float(found.threshold):
            return ()
        return (
            f"step = {written(self.step)} is not beyond {APART:g} times the critical one, "
            f"{float(found.critical_step):.4g}; take a larger step",
        )

    def _found(self):
        ratios = self.samples_per_dimension, self.neurons_per_dimension
        return one_step_spike(self.step, self.activation, self.teacher_activation, *ratios, noise=self.noise)

    def theory(self):
        found = self._found()
        return {
            "singular_value": Value(found.singular_value, label="largest singular value", symbol="s_1", rate=1.0),
            "alignment": Value(
                found.alignment, label="alignment with the teacher", symbol=r"\langle u_1,\beta_*\rangle^2", rate=1.0
            ),
        }

    def at_size(self, size):
        return at_two_ratios(self, size)

    def simulate(self, key, *, samples: int, dimension: int, width: int):
        shapes = (width, dimension), (width,), (samples, dimension), (samples,), (dimension,)
        # The mean of the teacher, over a fine grid of its argument.
        z = jnp.linspace(-9.0, 9.0, 2001)
        bell = jnp.exp(-(z**2) / 2) / jnp.sum(jnp.exp(-(z**2) / 2))
        mean = jnp.sum(bell * one_step.named(self.teacher_activation).value(z))
        system = one_step.step_data(data.gaussian_arrays(key, *shapes), self.teacher_activation, self.noise, mean)
        gradient = one_step.first_step(self.activation, system, silent=True)
        weights = system.weights + self.step * jnp.sqrt(1.0 * width) * gradient
        values, vectors = jnp.linalg.eigh(weights.T @ weights)
        return {"singular_value": jnp.sqrt(values[-1]), "alignment": (vectors[:, -1] @ system.target) ** 2}
