r"""When do tokens cluster? The step in the plane of time and inverse temperature."""

import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles.transformers import particles as ensemble
from deeplimits.ensembles.transformers.random_layers import tokens_in_their_span
from deeplimits.limit import Limit, Run, integer, real, replace, whole
from deeplimits.numerics.arguments import known, written
from deeplimits.predictions import Picture, Value
from deeplimits.predictions.picture import Axis, Field, Line
from deeplimits.showcase import Showcase
from deeplimits.theory.attention import equiangular


class ClusteringPhaseDiagram(Limit):
    r"""In high dimension all pairs of tokens come together at one time t*(β): a sharp step.

    Setting     n independent uniform tokens on the sphere of R^d, SA with B = V = I; a pair is clustered where
                ⟨x_i, x_j⟩ > c
    Limit       d → ∞ at fixed n, β and c
    Result      the share of clustered pairs steps from 0 to 1 at t*(β) = t_SA(c), the time at which equiangular tokens
                from γ = 0 reach γ = c; measured: when half of the pairs are clustered
    Validity    d ≥ n, β ≥ 0; size counts the dimension d
    Finite size the time of half of the pairs deviates by O(1/d) in the mean, the width of the step is O(d^(−1/2))
    Computed by attention.equiangular_time
    References  geshkovski2025 Sec 6
    """

    tokens: int = integer(8, 2, 32, symbol="n", doc="number of tokens")
    beta: Array = real(2.0, 0.0, 5.0, symbol=r"\beta", doc="inverse temperature")
    gap: Array = real(1e-3, 1e-5, 0.5, log=True, symbol="1-c", doc="a pair with a cosine above c is clustered")
    dimension: Array = real(1000, 2, 1e8, log=True, symbol="d", doc="dimension of the tokens, at least n")

    usual = Run(sizes=(1000, 2000, 4000), samples=200, batch=50)
    showcase = Showcase(
        ranges={"beta": (0.0, 5.0)},
        see="All pairs come together at one time t*(β): left of the white line no pair is clustered, right "
        "of it all are.",
    )

    def validity(self):
        if not known(self.dimension) or float(self.dimension) >= self.tokens:
            return ()
        return (f"dimension = {written(self.dimension)} is below tokens = {self.tokens}",)

    def theory(self):
        time = jnp.exp(equiangular.equiangular_time(1 - self.gap, 0.0, self.tokens, self.beta))
        return {
            "transition": Value(time, label="time at which half of the pairs are clustered", symbol="t^*", rate=1.0)
        }

    def charts(self):
        betas, times = jnp.linspace(0.0, 5.0, 41), jnp.linspace(0.0, 25.0, 61)
        # γ(t) of equiangular tokens that begin orthogonal; the time is an axis in front
        cosines = equiangular.equiangular_cosine(0.0, times, self.tokens, betas).cosine
        ends = jnp.exp(equiangular.equiangular_time(1 - self.gap, 0.0, self.tokens, betas))
        marks = (
            Field(times, betas, cosines.T, label="cosine of two tokens"),
            Line(ends, betas, label="t*(β), where all pairs are clustered"),
        )
        across = Axis("time", "t", high=float(times[-1]), low=0.0)
        return {"clustering": Picture(across, Axis("inverse temperature", r"\beta"), marks)}

    def at_size(self, size):
        return {}, replace(self, dimension=whole(size, "d", self, least=self.tokens))

    def simulate(self, key):
        n = self.tokens
        x = tokens_in_their_span(key, n, self.dimension)
        first, second = jnp.triu_indices(n, 1)

        def half(tokens):
            apart = jnp.sum((tokens[first] - tokens[second]) ** 2, axis=1) / 2
            return jnp.mean((apart < self.gap).astype(float)) >= 0.5

        found = ensemble.attention_until(x, self.beta, half, rtol=1e-8, latest=1e6)
        return {"transition": found.t}
