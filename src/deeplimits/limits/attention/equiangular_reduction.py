r"""Equal angles stay equal: attention on the sphere as one equation."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from deeplimits.ensembles.matrices import uniform_orthogonal
from deeplimits.ensembles.transformers import particles as ensemble
from deeplimits.ensembles.transformers.random_layers import tokens_in_their_span
from deeplimits.limit import Limit, Run, axis, choice, integer, real, replace, whole
from deeplimits.numerics.arguments import known, written
from deeplimits.predictions import Curve, Identity
from deeplimits.showcase import Showcase, log_points
from deeplimits.theory.attention import equiangular

REST = 1e-9


class EquiangularReduction(Limit):
    r"""Tokens with equal pairwise angles keep them, and in high dimension all tokens are such.

    Setting     n tokens on the unit sphere of R^d, B = V = I, β ≥ 0; ⟨x_i, x_j⟩ = γ₀ for all i ≠ j at the start, or
                independent uniform tokens
    Limit       none for equal angles; d → ∞ at fixed n for uniform tokens, which begin with γ₀ = 0
    Result      ⟨x_i(t), x_j(t)⟩ = γ(t), SA: γ̇ = 2(1−γ)(1+(n−1)γ)/(e^{β(1−γ)}+n−1),
                USA: γ̇ = (2/n)e^{βγ}(1−γ)(1+(n−1)γ), both solved by exponential integrals
    Validity    γ₀ > −1/(n−1), below which no n tokens have equal angles; size counts the dimension d ≥ n
    Finite size exact for equal angles; the mean cosine of uniform tokens deviates by O(1/d), a single one by
                O(d^(−1/2))
    Computed by attention.equiangular_cosine
    References  geshkovski2025 Sec 6
    """

    kind: str = choice("softmax", ensemble.KINDS, doc="rows of attention that sum to one (SA), or not (USA)")
    tokens: int = integer(6, 2, 24, symbol="n", doc="number of tokens")
    beta: Array = real(2.0, 0.0, 6.0, symbol=r"\beta", doc="inverse temperature")
    start: Array = real(0.1, -0.9, 0.95, symbol=r"\gamma_0", doc="cosine of every pair at the start")
    times: Array = axis((0.5, 1.0, 2.0), 0.001, 20.0, log=True, symbol="t", doc="times")

    dimension: Array = real(1000, 2, 1e8, log=True, symbol="d", doc="dimension of uniform tokens, at least n")

    usual = Run(sizes=(1000, 2000, 4000), samples=400, batch=100)
    showcase = Showcase(
        parameters={"times": log_points(0.05, 20.0, 9)},
        see="Tokens in high dimension share one angle, which closes from orthogonal to parallel.",
    )

    def validity(self):
        n, least = self.tokens, -1 / (self.tokens - 1)
        wrong = []
        if known(self.start) and float(self.start) <= least + REST:
            wrong.append(f"start = {written(self.start)} is not above −1/(n−1) = {least:g}: no {n} tokens have it")
        if known(self.dimension) and float(self.dimension) < n:
            wrong.append(f"dimension = {written(self.dimension)} is below tokens = {n}")
        return tuple(wrong)

    def theory(self):
        high = equiangular.equiangular_cosine(0.0, self.times, self.tokens, self.beta, kind=self.kind)
        return {
            "uniform": Curve(
                self.times, high.cosine, axis="time", axis_symbol="t", label="cosine of uniform tokens",
                symbol=r"\gamma", rate=1.0,
            )
        }  # fmt: skip

    def at_size(self, size):
        return {}, replace(self, dimension=whole(size, "d", self, least=self.tokens))

    def rounds(self):
        # Where tokens are one the equation contracts like 2 for SA and 2e^β for USA: steps of an explicit method.
        pace = 2.0 if self.kind == "softmax" else 2 * math.exp(float(self.beta))
        return 10 + pace * float(self.times[-1]) / 15

    def draw(self, key):
        n = self.tokens
        turn_key, free_key = jax.random.split(key)
        gram = (1 - self.start) * jnp.eye(n) + self.start
        # Tokens with this Gram matrix, turned at random.
        equal = jnp.linalg.cholesky(gram) @ uniform_orthogonal(turn_key, n)
        return jnp.stack([equal, tokens_in_their_span(free_key, n, self.dimension)])

    def stated(self, system):
        found = equiangular.equiangular_cosine(self.start, self.times, self.tokens, self.beta, kind=self.kind)
        pairs = self.tokens * (self.tokens - 1) // 2
        return {
            "equal_angles": Identity(
                jnp.repeat(found.cosine[:, None], pairs, axis=1),
                label="cosines of tokens with equal angles",
                symbol=r"\langle x_i,x_j\rangle",
                tolerance=1e-9,
                reason="the integrator's 1e-11, magnified where angles repel rounding errors",
            )
        }

    def measured(self, system):
        n = self.tokens
        equal, free = jax.vmap(lambda x: ensemble.attention_flow(x, self.times, self.beta, kind=self.kind))(system)
        first, second = np.triu_indices(n, 1)
        return {
            "equal_angles": jnp.sum(equal[:, first] * equal[:, second], axis=2),
            # the mean of x_i·x_j over i ≠ j
            "uniform": (jnp.sum(jnp.sum(free, axis=1) ** 2, axis=-1) - n) / (n * (n - 1)),
        }
