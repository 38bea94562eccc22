r"""Attention from uniform to the largest score."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles.transformers import particles as ensemble
from deeplimits.ensembles.transformers.random_layers import random_tokens
from deeplimits.limit import Limit, Run, integer, real, replace, whole
from deeplimits.measure.tokens import clustering as measure
from deeplimits.predictions import Bound, Identity, Picture, Value
from deeplimits.predictions.picture import Axis, Line
from deeplimits.showcase import Showcase
from deeplimits.theory.attention import temperatures

SMALLEST = 690.0
"""Weights below e to the minus this, where numbers end, are taken for it: in what is stated and in what is measured."""


class AttentionTemperatureLimits(Limit):
    r"""Attention is uniform at inverse temperature 0 and sees one token alone at ∞.

    Setting     n uniform tokens on the sphere of R^d, B = V = I: a token's row A = softmax(βs), s_j = ⟨x_i, x_j⟩
    Limit       β = 1/N → 0 and β = N → ∞
    Result      N max |nA_j − 1| → max |s_j − s̄|; 1 − max A ≥ e^{−βg}/(1+(n−1)e^{−βg}), g = s₁ − s₂, so that the flow
                freezes (the largest score of a token is its own); at any β dH/dβ = −β Var_A(s), so that the entropy H
                falls from log n, and ∂_β log Z = ⟨s⟩_A
    Validity    β ≥ 0, distinct scores; size counts N
    Finite size O(1/N) for the hot side, O(1/N²) with two tokens; the rest holds at every N
    Computed by attention.hot_deviation (uniform), attention.cold_rate (argmax), attention.gibbs_row (entropy,
                log_partition)
    References  geshkovski2025 Sec 2
    """

    tokens: int = integer(8, 2, 64, symbol="n", doc="number of tokens")
    dimension: int = integer(3, 2, 64, symbol="d", doc="dimension of the tokens")
    beta: Array = real(2.0, 0.05, 20.0, symbol=r"\beta", doc="inverse temperature at which the entropy is looked at")
    extreme: Array = real(50, 1, 1e6, log=True, symbol="N", doc="β on the cold side, 1/β on the hot side")

    usual = Run(sizes=(20, 40, 80), samples=60, batch=20)
    showcase = Showcase(
        ranges={"beta": (0.05, 10.0)},
        see="As the inverse temperature grows, each token attends to itself alone; near zero it attends to all alike.",
    )

    def charts(self):
        # Tokens evenly on a circle: every row is like the first.
        scores = jnp.cos(2 * jnp.pi * jnp.arange(self.tokens) / self.tokens)
        beta = jnp.geomspace(0.05, 300.0, 121)
        row = temperatures.gibbs_row(scores, beta)
        across = Axis("inverse temperature", r"\beta", log=True)
        alike = jnp.ones_like(beta) / self.tokens
        entropies = (
            Line(beta, row.entropy, label="theory"),
            Line(beta, -jnp.log(alike), label="log n: all alike", series=1),
        )
        itself = Line(beta, row.weights[:, 0], label="theory"), Line(beta, alike, label="1/n: all alike", series=1)
        return {
            "entropy_over_temperature": Picture(across, Axis("entropy of a row", "H"), entropies),
            "weight_of_itself": Picture(across, Axis("weight of itself", "A_{ii}"), itself),
        }

    def at_size(self, size):
        return {}, replace(self, extreme=whole(size, "N", self))

    def draw(self, key):
        return random_tokens(key, self.tokens, self.dimension)

    def stated(self, system):
        scores = system @ system.T
        row = temperatures.gibbs_row(scores, jnp.broadcast_to(self.beta, scores.shape[:1]))
        places = jnp.arange(1.0, self.tokens + 1)
        cold = jnp.broadcast_to(self.extreme, scores.shape[:1])
        # Smaller weights than numbers have are told to be the smallest, here and in `_log`.
        rest = jnp.minimum(temperatures.cold_rate(scores, cold).most, SMALLEST / self.extreme)
        return {
            "uniform": Value(
                jnp.max(jnp.abs(temperatures.hot_deviation(scores))), label="deviation of hot attention from uniform",
                # Of two tokens nA − 1 = ± tanh(β(s₁ − s₂)/2), which is odd in β.
                symbol=r"\max|s-\bar s|", rate=2.0 if self.tokens == 2 else 1.0,
            ),
            "argmax": Bound(
                rest, label="decay in β of what is left to the other tokens", symbol=r"-\log(1-\max A)/\beta",
                x=places, axis="token",
            ),
            "entropy": Identity(
                row.entropy_slope, label="slope of the entropy in β", symbol=r"dH/d\beta", tolerance=1e-9,
                reason="rounding",
            ),
            "log_partition": Identity(
                row.mean_score, label="slope of log Z in β", symbol=r"\langle s\rangle_A", tolerance=1e-9,
                reason="rounding",
            ),
        }  # fmt: skip

    def measured(self, system):
        n = self.tokens
        hot = ensemble.attention_matrix(system, 1 / self.extreme)
        cold = ensemble.attention_matrix(system, self.extreme)
        others = ~jnp.eye(n, dtype=bool)
        # All weights but a token's own, added without taking that from one.
        rest = jnp.sum(jnp.where(others, cold, 0.0), axis=1)

        def partition(beta):
            # A_ii = e^{βs_ii}/Z_i
            return beta - jnp.log(jnp.diagonal(ensemble.attention_matrix(system, beta)))

        return {
            "uniform": self.extreme * jnp.max(jnp.abs(n * hot - 1)),
            "argmax": -_log(rest) / self.extreme,
            "entropy": jax.jvp(
                lambda beta: measure.attention_entropy(system, beta), (self.beta,), (jnp.ones_like(self.beta),)
            )[1],
            "log_partition": jax.jvp(partition, (self.beta,), (jnp.ones_like(self.beta),))[1],
        }


def _log(x: Array) -> Array:
    """The logarithm; what has underflowed, or is about to, is as small as numbers are."""
    return jnp.log(jnp.maximum(x, jnp.exp(-SMALLEST)))
