r"""Attention from uniform to the largest score."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import attention as ensemble
from deeplimits.ensembles.random_attention import random_tokens
from deeplimits.limit import Limit, Run, integer, real, replace, whole
from deeplimits.measure import tokens as measure
from deeplimits.predictions import Bound, Identity, Value
from deeplimits.theory.attention import temperatures

ROUNDING = -33.0
"""Logarithm of what a sum of unit vectors is uncertain by, and of the smallest numbers."""
SMALLEST = -700.0


class AttentionTemperatureLimits(Limit):
    r"""Attention is uniform at inverse temperature 0 and sees one token alone at ∞.

    Setting     n uniform tokens on the sphere of R^d, B = V = I: every token's row A = softmax(βs), s_j = ⟨x_i, x_j⟩
    Limit       β = 1/N → 0 and β = N → ∞
    Result      N max |nA_j − 1| → max |s_j − s̄|; 1 − max A ≤ (n−1)e^{−β(s₁−s₂)}; |ẋ_i| ≤ (n−1)e^{−β(1−s₂)}: the flow
                freezes; at any β dH/dβ = −β Var_A(s), so that the entropy H falls from log n, and ∂_β log Z = ⟨s⟩_A
    Validity    β ≥ 0, distinct scores; size counts N
    Finite size O(1/N) for the hot side; the rest holds at every N
    Computed by attention.hot_deviation (uniform), attention.cold_remainder (argmax), attention.frozen_speed (frozen),
                attention.gibbs_row (entropy, log_partition)
    References  geshkovski2025 Sec 2
    """

    tokens: int = integer(8, 2, 64, symbol="n", doc="number of tokens")
    dimension: int = integer(3, 2, 64, symbol="d", doc="dimension of the tokens")
    beta: Array = real(2.0, 0.05, 20.0, symbol=r"\beta", doc="inverse temperature at which the entropy is looked at")
    extreme: Array = real(50, 1, 1e6, log=True, symbol="N", doc="β on the cold side, 1/β on the hot side")

    usual = Run(sizes=(20, 40, 80), samples=60, batch=20)

    def at_size(self, size):
        return {}, replace(self, extreme=whole(size, "N", self))

    def draw(self, key):
        return random_tokens(key, self.tokens, self.dimension)

    def stated(self, system):
        scores = system @ system.T
        row = temperatures.gibbs_row(scores, jnp.broadcast_to(self.beta, scores.shape[:1]))
        cold = jnp.broadcast_to(self.extreme, scores.shape[:1])
        # Numbers do not tell smaller ones from zero.
        rest = jnp.maximum(temperatures.cold_remainder(scores, cold), SMALLEST)
        speed = jnp.maximum(temperatures.frozen_speed(scores, self.extreme), ROUNDING)
        return {
            "uniform": Value(
                jnp.max(jnp.abs(temperatures.hot_deviation(scores))), label="deviation of hot attention from uniform",
                symbol=r"\max|s-\bar s|", rate=1.0,
            ),
            "argmax": Bound(
                rest, label="log of what cold attention leaves to the others",
                symbol=r"\log(1-\max A)", per_draw="difference", x=jnp.arange(1.0, self.tokens + 1), axis="token",
            ),
            "frozen": Bound(
                speed, label="log of the speed of cold tokens",
                symbol=r"\log|\dot x|", per_draw="difference", x=jnp.arange(1.0, self.tokens + 1), axis="token",
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
        # All weights but the largest, added without taking that from one.
        rest = jnp.sum(jnp.where(jnp.eye(n, dtype=bool), 0.0, cold), axis=1)
        speed = jnp.linalg.norm(ensemble.attention_velocity(system, self.extreme), axis=1)

        def partition(beta):
            # A_ii = e^{βs_ii}/Z_i
            return beta - jnp.log(jnp.diagonal(ensemble.attention_matrix(system, beta)))

        return {
            "uniform": self.extreme * jnp.max(jnp.abs(n * hot - 1)),
            "argmax": _log(rest),
            "frozen": _log(speed),
            "entropy": jax.jvp(
                lambda beta: measure.attention_entropy(system, beta), (self.beta,), (jnp.ones_like(self.beta),)
            )[1],
            "log_partition": jax.jvp(partition, (self.beta,), (jnp.ones_like(self.beta),))[1],
        }


def _log(x: Array) -> Array:
    """The logarithm; what has underflowed is as small as numbers are."""
    return jnp.log(jnp.maximum(x, jnp.finfo(float).tiny))
