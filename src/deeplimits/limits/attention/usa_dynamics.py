r"""Attention without its normalization."""

import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles.transformers import particles as ensemble
from deeplimits.ensembles.transformers.random_layers import random_tokens
from deeplimits.limit import integer, real
from deeplimits.limits.attention._shared import Layered, depth_measured, depth_statements, integrated
from deeplimits.predictions import Identity
from deeplimits.showcase import Showcase
from deeplimits.theory.attention import energies, gram_matrices


class UsaDynamics(Layered):
    r"""Unnormalized self-attention (USA): sums of e^{β⟨x_i,x_j⟩} divided by n, a gradient flow.

    Setting     n uniform tokens on the sphere of R^d, ẋ_i = P^⊥ (1/n) Σ_j e^{β⟨x_i,x_j⟩} x_j, time in units of e^{−β}
    Limit       none for the flow; steps h → 0 for layers
    Result      the Gram matrix moves by itself: Ġ_ij = Σ_k A_ik(G_kj − G_ikG_ij) + (i ↔ j), A = e^{βG}/n; the flow is n
                times the gradient of E = (1/2βn²) Σ e^{βG_ij}, so that Σ|ẋ_i|² = n dE/dt; layers follow it with an
                error of order h
    Validity    β > 0; size counts the layers in a unit of time, 1/h
    Finite size exact for the flow; O(h) for layers
    Computed by attention.gram_flow (gram, layers), attention.energy_growth (speed)
    References  geshkovski2025 Sec 3
    """

    tokens: int = integer(6, 2, 24, symbol="n", doc="number of tokens")
    dimension: int = integer(3, 2, 24, symbol="d", doc="dimension of the tokens")
    beta: Array = real(1.5, 0.05, 10.0, symbol=r"\beta", doc="inverse temperature")
    time: Array = real(1.5, 0.2, 5.0, symbol=r"e^\beta t", doc="time, in units of e^{−β}")

    showcase = Showcase(see="Layers of unnormalized attention follow a gradient flow.")

    def draw(self, key):
        return random_tokens(key, self.tokens, self.dimension)

    def stated(self, system):
        natural = jnp.exp(-self.beta) * self.time
        gram = gram_matrices.gram_flow(system @ system.T, natural[None], self.beta, kind="unnormalized")[0]
        growth = energies.energy_growth(system, self.beta, kind="unnormalized").growth
        return {
            "gram": integrated(gram, "inner products", r"\langle x_i,x_j\rangle"),
            "speed": Identity(
                self.tokens * growth, label="sum of squared speeds", symbol=r"\sum|\dot x_i|^2", tolerance=1e-11,
                reason="rounding of sums of e^{β⟨x_i,x_j⟩}",
            ),
            **depth_statements(gram, 1 / self.layers),
        }  # fmt: skip

    def measured(self, system):
        kind = {"kind": "unnormalized", "shift": self.beta}
        flow = ensemble.attention_flow(system, self.time[None], self.beta, **kind)[0]
        velocity = ensemble.attention_velocity(system, self.beta, kind="unnormalized")
        return {
            "gram": flow @ flow.T,
            "speed": jnp.sum(velocity**2),
            **depth_measured(system, self.beta, self.time, self.layers, **kind),
        }
