r"""The first gradient of a wide network."""

import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import data, one_step
from deeplimits.limit import Limit, Run, activation_choice, real
from deeplimits.limits.mixtures._shared import at_two_ratios
from deeplimits.predictions import Value
from deeplimits.showcase import Showcase
from deeplimits.theory.mixtures.one_step import rank_one_gradient


class OneStepGradientRankOne(Limit):
    r"""The first gradient of a wide two-layer network is a matrix of rank one.

    Setting     f = β·σ(Wx)/√N, W and β of independent entries of variances 1/p and 1/N, σ odd, n samples x ~ N(0, I_p),
                y = ⟨β*, x⟩ + noise (the labels enter as they are, whatever the teacher); squared loss
    Limit       n, p, N → ∞ together
    Result      G = (μ₁/(n√N))βy'X + E, √N|E| = O(n^(−1/2)), μ₁ = E σ'(ξ): largest singular value
                (μ₁/(n√N))|β||X'y| and singular vectors β/|β| and X'y/|X'y|
    Validity    E σ = 0 and E σ' ≠ 0; size counts the dimension p
    Finite size O(1/p) in mean
    Computed by mixtures.rank_one_gradient
    References  ba2022 Prop 2
    """

    activation: str = activation_choice("tanh", lambda a: a.odd and a.lipschitz)
    samples_per_dimension: Array = real(2.0, 1.0, 4.0, log=True, symbol="n/p", doc="samples per dimension")
    neurons_per_dimension: Array = real(1.5, 0.5, 3.0, log=True, symbol="N/p", doc="neurons per dimension")
    noise: Array = real(0.3, 0.0, 1.0, symbol=r"\sigma", doc="standard deviation of the label noise")

    usual = Run(sizes=(40, 80, 160), samples=100)
    showcase = Showcase(
        over="noise",
        first="singular_value",
        see="One direction carries the first gradient: its largest singular value and both of its vectors are "
        "known beforehand.",
    )

    def at_size(self, size):
        return at_two_ratios(self, size)

    def draw(self, key, *, samples: int, dimension: int, width: int):
        shapes = (width, dimension), (width,), (samples, dimension), (samples,), (dimension,)
        return one_step.step_data(data.gaussian_arrays(key, *shapes), "identity", self.noise, 0.0)

    def stated(self, system):
        found = rank_one_gradient(self.activation, system.output, system.x, system.y)
        one = jnp.ones(())
        root = jnp.sqrt(1.0 * system.output.shape[0])
        return {
            "singular_value": Value(
                root * found.singular_value, label="largest singular value of √N G", symbol="s_1", rate=1.0
            ),
            "along_output": Value(
                one, label="alignment of its left vector with β", symbol=r"\langle u,\beta\rangle^2", rate=1.0
            ),
            "along_labels": Value(
                one, label="alignment of its right vector with X'y", symbol=r"\langle v,X'y\rangle^2", rate=1.0
            ),
        }

    def measured(self, system):
        gradient = one_step.first_step(self.activation, system) * jnp.sqrt(1.0 * system.output.shape[0])
        left, values, right = jnp.linalg.svd(gradient, full_matrices=False)
        pull = system.y @ system.x
        return {
            "singular_value": values[0],
            "along_output": (left[:, 0] @ system.output) ** 2 / jnp.sum(system.output**2),
            "along_labels": (right[0] @ pull) ** 2 / jnp.sum(pull**2),
        }
