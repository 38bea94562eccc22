r"""Large deep linear networks on large data depend on width, depth and data through one number."""

import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import deep_linear
from deeplimits.limit import Limit, Run, integer, real, rounded, whole
from deeplimits.predictions import Value
from deeplimits.showcase import Showcase
from deeplimits.theory.bayes import effective_depth


class BayesEffectiveDepth(Limit):
    r"""The posterior of a large deep linear network concentrates, at a norm that its effective depth decides.

    Setting     a deep linear network with prior W^(l)_ij ~ N(0, σ²/n_{l−1}), L hidden layers of width n; P points in
                dimension n_0, the shortest interpolant of squared norm ν
    Limit       P, n_0, n → ∞ with P/n_0 → α, P/n → η
    Result      |θ_⊥|² → (ν(1−α)/α)/(1+t), (1 + t)(1 + ηt)^L = ν/(α σ^{2(L+1)}); deep networks at σ² = 1 have
                (1 + t) e^{λt} = ν/α with the effective depth λ = P Σ 1/n_l
    Validity    α < 1; size counts the points P
    Finite size O(1/P)
    Computed by bayes.concentrated_posterior, bayes.deep_posterior
    References  hanin2023
    """

    squared_norm: Array = real(2.0, 0.2, 5.0, log=True, symbol=r"\nu", doc="squared norm of the shortest interpolant")
    alpha: Array = real(0.5, 0.1, 0.9, symbol=r"\alpha", doc="points per dimension, P/n_0")
    points_per_width: Array = real(0.5, 0.1, 2.0, log=True, symbol=r"\eta", doc="points per neuron of a layer, P/n")
    weight_variance: Array = real(1.0, 0.5, 2.0, log=True, symbol=r"\sigma^2", doc="weight variance times fan-in")
    hidden: int = integer(3, 1, 6, symbol="L", doc="number of hidden layers")

    usual = Run(sizes=(20, 40, 80), samples=60)
    showcase = Showcase(
        over="points_per_width",
        see="More points per neuron act like more depth: what the data leave open grows from a linear model's "
        "value on the left towards ν(1−α)/α.",
    )

    # Steps of the chain, and of its beginning that is left out.
    steps, burn = 6000, 1000

    def theory(self):
        ratios = jnp.full((self.hidden,), self.points_per_width)
        found = effective_depth.concentrated(
            self.squared_norm, self.alpha, self.weight_variance, ratios, jnp.ones(self.hidden)
        )
        return {
            "open": Value(found.perpendicular, label="squared norm left open", symbol=r"|\theta_\perp|^2", rate=1.0)
        }

    def at_size(self, size):
        points = whole(size, "P", self, least=4)
        inputs = max(round(points / float(self.alpha)), points + 1)
        width = max(round(points / float(self.points_per_width)), 1)
        at = rounded(self, alpha=points / inputs, points_per_width=points / width)
        return {"points": points, "inputs": inputs, "width": width}, at

    def simulate(self, key, *, points: int, inputs: int, width: int):
        scales = deep_linear.posterior_scales(
            key,
            [width] * self.hidden,
            self.weight_variance,
            points,
            self.squared_norm,
            inputs,
            steps=self.steps,
        )
        # Given s, θ_⊥ is N(0, (σ²s²/n_0) I) in n_0 − P dimensions.
        mean = jnp.mean(scales[self.burn :])
        return {"open": self.weight_variance / inputs * (inputs - points) * mean}
