r"""When is a wide two-layer network lazy?"""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.limit import Limit, Run, choice, integer, real, whole
from deeplimits.measure import committees as measure
from deeplimits.models import activations
from deeplimits.predictions import Value
from deeplimits.theory.two_layer import laziness

SCALINGS = {"ntk": 0.5, "mean-field": 1.0}


class LazyScaling(Limit):
    r"""The output scale decides whether a wide network is lazy.

    Setting     h = α(p) Σ_i a_i σ(⟨w_i, x⟩), a_i = ±1 fair, w_i ~ N(0, I_d), one input ‖x‖ = 1 with label y
                κ = |h − y| ‖D²h‖/‖Dh‖² at initialization: training is lazy where κ is small
    Limit       p → ∞ with α = p^(−s)
    Result      E κ ≃ p^(s−1) B E|p^(1/2−s) √(E σ²) g − y| / E[σ² + σ'²], g ~ N(0,1),
                B = sup_u of the operator norm of [[0, σ'(u)], [σ'(u), σ''(u)]]
                so κ ∝ p^(−1/2) for s = 1/2 (ntk: lazy) and κ → |y|B/E[σ² + σ'²] for s = 1 (mean-field: not lazy);
                in general E κ ≲ p^(−1/2) + (pα)^(−1), lazy exactly if pα → ∞
    Validity    σ twice differentiable with bounded derivatives; size counts the neurons p
    Finite size relative corrections O(1/p)
    References  chizat2019
    """

    scaling: str = choice("ntk", ("ntk", "mean-field"), doc="output scale: p^(-1/2) or 1/p")
    activation: str = choice("tanh", ("tanh", "erf", "sigmoid", "sin"), doc="activation σ")
    width: int = integer(1000, 1, 10_000_000, log=True, symbol="p", doc="number of neurons")
    dimension: int = integer(3, 1, 1000, log=True, symbol="d", doc="dimension of the input")
    label: Array = real(1.0, 0.0, 100.0, symbol="y", doc="label")

    usual = Run(sizes=(20, 120), samples=14_000, batch=20)

    def theory(self):
        s = SCALINGS[self.scaling]
        value = laziness.expected_laziness(activations.smooth(self.activation), self.width, s, self.label)
        lazy = 1 - s  # κ ∝ p^{−(1−s)} for 1/2 ≤ s ≤ 1
        return {
            "laziness": Value(self.width**lazy * value, label="laziness", symbol=r"p^{1-s}\,E\,\kappa", rate=1.0),
        }

    def at_size(self, size):
        p = whole(size, "p", self)
        return {"width": p}, self.replace(width=p)

    def simulate(self, key, *, width: int):
        w_key, a_key, x_key = jax.random.split(key, 3)
        x = jax.random.normal(x_key, (self.dimension,))
        x = x / jnp.linalg.norm(x)
        w = jax.random.normal(w_key, (width, self.dimension))
        a = jax.random.rademacher(a_key, (width,), dtype=float)
        s = SCALINGS[self.scaling]
        scale = jnp.asarray(float(width) ** -s)
        kappa = measure.laziness(scale, w, a, x, self.label, activations.smooth(self.activation))
        return {"laziness": width ** (1 - s) * kappa}
