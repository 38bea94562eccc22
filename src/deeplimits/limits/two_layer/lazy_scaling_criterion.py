r"""When is a wide two-layer network lazy?"""

import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.limit import Limit, Run, activation_choice, choice, integer, real, sized
from deeplimits.measure import committees as measure
from deeplimits.models import activations
from deeplimits.numerics import draws
from deeplimits.predictions import Value
from deeplimits.predictions.picture import Axis, Line, Picture
from deeplimits.showcase import Showcase
from deeplimits.theory.two_layer import laziness

SCALINGS = {"ntk": 0.5, "mean-field": 1.0}


class LazyScalingCriterion(Limit):
    r"""The output scale decides whether a wide network is lazy.

    Setting     h = α(p) Σ_i a_i σ(⟨w_i, x⟩), a_i = ±1 fair, w_i ~ N(0, I_d), one input ‖x‖ = 1 with label y
                κ = |h − y| ‖D²h‖/‖Dh‖² at initialization: training is lazy where κ is small
    Limit       p → ∞ with α = p^(−s)
    Result      E κ ≃ p^(s−1) B_p E|p^(1/2−s) √(E σ²) g − y| / E[σ² + σ'²], g ~ N(0,1),
                B_p = E max_i b(u_i) → B = sup b over p normal u_i, b(u) the norm of [[0, σ'(u)], [σ'(u), σ''(u)]]
                so κ ∝ p^(−1/2) for s = 1/2 (ntk: lazy) and κ → |y|B/E[σ² + σ'²] for s = 1 (mean-field: not lazy);
                in general E κ ≲ p^(−1/2) + (pα)^(−1), lazy exactly if pα → ∞
    Validity    σ twice differentiable with bounded derivatives; size counts the neurons p
    Finite size relative corrections O(1/p)
    Computed by two_layer.expected_laziness; of networks over a data set by measure.laziness_on_data; of a scale a^(−s)
                between the two by two_layer.output_scaling
    References  chizat2019
    """

    scaling: str = choice("ntk", ("ntk", "mean-field"), doc="output scale: p^(-1/2) or 1/p")
    activation: str = activation_choice("tanh", lambda a: a.bounded and a.bounded_curvature and not a.even)
    width: Array = real(1000, 1, 10_000_000, log=True, symbol="p", doc="number of neurons")
    dimension: int = integer(3, 1, 1000, log=True, symbol="d", doc="dimension of the input")
    label: Array = real(1.0, 0.0, 100.0, symbol="y", doc="label")

    usual = Run(sizes=(20, 60, 180), samples=600, batch=20)
    showcase = Showcase(
        see="How nonlinear training is: the criterion falls like a power of the width in one scaling and not "
        "in the other.",
    )

    def charts(self):
        widths, sigma = jnp.geomspace(4.0, 1e5, 10), activations.activation(self.activation)
        lines = [
            Line(
                widths,
                jnp.stack([laziness.expected_laziness(sigma, width, s, self.label) for width in widths]),
                label=f"{name}: output scale p^{{−{s:g}}}",
                series=series,
            )
            for series, (name, s) in enumerate(SCALINGS.items())
        ]
        across, heights = Axis("number of neurons", "p", log=True), Axis("laziness", r"E\,\kappa", log=True)
        return {"criterion": Picture(across, heights, tuple(lines))}

    def theory(self):
        s = SCALINGS[self.scaling]
        value = laziness.expected_laziness(activations.activation(self.activation), self.width, s, self.label)
        lazy = 1 - s  # κ ∝ p^{−(1−s)} for 1/2 ≤ s ≤ 1
        return {
            "laziness": Value(self.width**lazy * value, label="laziness", symbol=r"p^{1-s}\,E\,\kappa", rate=1.0),
        }

    def at_size(self, size):
        return sized(self, width=size)

    def simulate(self, key, *, width: int):
        d = self.dimension
        drawn = draws.draw(key, (width + 1,), d + 1).gaussians
        x = drawn[0, :d] / jnp.linalg.norm(drawn[0, :d])
        w, a = drawn[1:, :d], jnp.sign(drawn[1:, d])
        s = SCALINGS[self.scaling]
        scale = jnp.asarray(float(width) ** -s)
        # A network and its mirror image −a, which is as likely: with label y it is as lazy as the first with label −y.
        labels = jnp.stack([self.label, -self.label])
        kappa = measure.laziness(activations.activation(self.activation), scale, w, a, x, labels)
        return {"laziness": width ** (1 - s) * jnp.mean(kappa)}
