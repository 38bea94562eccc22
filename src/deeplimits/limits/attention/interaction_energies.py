r"""The energy that attention climbs."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles.transformers import particles as ensemble
from deeplimits.ensembles.transformers.random_layers import random_score, random_tokens
from deeplimits.limit import Limit, Run, choice, integer, real, whole
from deeplimits.measure.tokens import clustering as measure
from deeplimits.predictions import Identity, Value
from deeplimits.showcase import Showcase
from deeplimits.theory.attention import energies

MOMENTS = (0.25, 0.5, 1.0, 2.0, 4.0)
ROUNDING = 1e-11


class InteractionEnergies(Limit):
    r"""With symmetric scores and the same values, attention is gradient ascent of one energy.

    Setting     n uniform tokens on the sphere of R^d, V = B symmetric (the identity, or Gaussian over √d);
                E(X) = (1/2βn²) Σ_ij e^{β⟨x_i, Bx_j⟩}
    Limit       none is needed
    Result      SA: dE/dt = (1/n²) Σ_i Z_i|ẋ_i|², gradient ascent in the metric weighted by Z_i; USA: dE/dt = (1/n)
                Σ_i |ẋ_i|²; in both E never decreases
    Validity    β > 0, V = B = Bᵀ (for other matrices there is no energy, and E may fall); size counts the tokens n
    Finite size exact
    Computed by attention.log_interaction_energy (energy), attention.energy_growth (growth)
    References  geshkovski2025 Sec 3
    """

    kind: str = choice("softmax", ensemble.KINDS, doc="rows of attention that sum to one (SA), or not (USA)")
    score: str = choice("goe", ("identity", "goe", "wigner"), symbol="B", doc="score and value matrix")
    dimension: int = integer(4, 2, 32, symbol="d", doc="dimension of the tokens")
    beta: Array = real(1.5, 0.05, 5.0, symbol=r"\beta", doc="inverse temperature")

    usual = Run(sizes=(4, 8, 16), samples=20, batch=10)
    showcase = Showcase(see="The energy rises at exactly the rate of the squared velocities.")

    def at_size(self, size):
        return {"tokens": whole(size, "n", self, least=2)}, self

    def draw(self, key, *, tokens: int):
        token_key, score_key = jax.random.split(key)
        matrix = random_score(score_key, self.score, self.dimension)
        scale = 1.0 if self.score == "identity" else jnp.sqrt(1.0 * self.dimension)
        return random_tokens(token_key, tokens, self.dimension), matrix / scale

    def stated(self, system):
        tokens, matrix = system
        return {
            "energy": Identity(
                energies.log_interaction_energy(tokens, self.beta, score=matrix), label="logarithm of the energy",
                symbol=r"\log E", tolerance=1e-9, reason="rounding, where log E is near zero",
            ),
            "growth": Identity(
                energies.energy_growth(tokens, self.beta, score=matrix, kind=self.kind).growth,
                label="growth of the energy", symbol=r"\dot E", tolerance=1e-8,
                reason="rounding, where forces nearly cancel",
            ),
            "monotone": Value(1.0, label="share of times at which the energy has not fallen", symbol=r"P(\dot E\geq0)"),
        }  # fmt: skip

    def measured(self, system):
        tokens, matrix = system
        layer = ensemble.AttentionLayer(matrix[None], matrix[None])

        def log_energy(x):
            return measure.log_energy(x, self.beta, score=matrix)

        velocity = ensemble.attention_velocity(tokens, self.beta, layer=layer, kind=self.kind)
        value, slope = jax.jvp(log_energy, (tokens,), (velocity,))
        # USA is faster by e^{β⟨x,Bx⟩}: its clock is set by the largest score.
        shift = self.beta * jnp.max(tokens @ matrix @ tokens.T)
        path = ensemble.attention_flow(tokens, jnp.array(MOMENTS), self.beta, layer=layer, kind=self.kind, shift=shift)
        levels = jnp.concatenate([value[None], jax.vmap(log_energy)(path)])
        return {
            "energy": value,
            "growth": jnp.exp(value) * slope,
            "monotone": jnp.mean((jnp.diff(levels) >= -ROUNDING).astype(float)),
        }
