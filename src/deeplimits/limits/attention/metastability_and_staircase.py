r"""Clusters form out of uniform tokens, wait, and merge."""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles.matrices import uniform_orthogonal
from deeplimits.ensembles.transformers import particles as ensemble
from deeplimits.limit import Limit, Run, integer, real, replace, whole
from deeplimits.limits.attention._shared import plane
from deeplimits.numerics.arguments import known, written
from deeplimits.predictions import Value
from deeplimits.showcase import Showcase
from deeplimits.theory.attention import staircase

NEAR = 0.99
"""Cosine at which two clusters are said to have merged."""
LONGEST = 12.0
"""Logarithm of the longest waiting that is integrated."""


class MetastabilityAndStaircase(Limit):
    r"""How fast waves grow on uniform tokens, and how long two clusters wait until they merge.

    Setting     SA with B = V = I; a ring of tokens, displaced so that their density is 1 + ε cos kθ; two clusters of
                m and M − m tokens in R^d at an angle α
    Limit       ε = 1/N → 0
    Result      waves grow like e^{λ_k t}, λ_k = (k²/β) I_k(β)/I_0(β), fastest at k ≈ √(2β), about the number of
                clusters; c = cos α obeys ċ = (1−c²)[m₂/(m₁e^{β(1−c)}+m₂) + m₁/(m₂e^{β(1−c)}+m₁)], so that clusters
                wait for about e^{β(1−c)} and merge one after the other
    Validity    β(1 − c) up to 12, beyond which the waiting is too long to be integrated; size counts N
    Finite size O(1/N²) for the growth; the merging is exact
    Computed by attention.harmonic_growth (growth), attention.merge_time (merging)
    References  geshkovski2025 Sec 5; geshkovski2024
    """

    degree: int = integer(3, 1, 8, symbol="k", doc="waves on the ring")
    beta: Array = real(4.0, 0.1, 12.0, symbol=r"\beta", doc="inverse temperature")
    angle: Array = real(1.2, 0.2, 3.0, symbol=r"\alpha", doc="angle of the two clusters at the start")
    tokens: int = integer(8, 2, 16, symbol="M", doc="tokens in two clusters")
    first: int = integer(5, 1, 15, symbol="m", doc="tokens in the first of them")
    dimension: int = integer(3, 2, 6, symbol="d", doc="dimension of the two clusters")
    amplitude: Array = real(100, 10, 1e5, log=True, symbol="N", doc="inverse of the height of the waves")

    usual = Run(sizes=(50, 100, 200), samples=20, batch=10)
    showcase = Showcase(
        first="merging",
        over="angle",
        ranges={"angle": (0.3, 2.6)},
        see="The wider the angle between two clusters, the longer they wait: the merging time grows exponentially.",
    )

    ring = 96
    """Tokens on the ring: the sums over them are integrals, to rounding."""

    def validity(self):
        wrong = []
        if self.first >= self.tokens:
            wrong.append(f"first = {self.first} of {self.tokens} tokens leave none for the second cluster")
        if known(self.beta, self.angle):
            beta, angle = float(self.beta), float(self.angle)
            if beta * (1 - math.cos(angle)) > LONGEST:
                wrong.append(
                    f"clusters at angle = {written(angle)} wait for e^{beta * (1 - math.cos(angle)):.0f}; take less"
                )
            if math.cos(angle) >= NEAR:
                wrong.append(f"clusters at angle = {written(angle)} have merged already (cosine {NEAR})")
        return tuple(wrong)

    def theory(self):
        growth = staircase.harmonic_growth(self.degree, self.beta, 2.0)
        wait = jnp.exp(staircase.merge_time(NEAR, jnp.cos(self.angle), self.beta, mass=self.first / self.tokens))
        return {
            "growth": Value(growth, label="growth rate of a wave", symbol=r"\lambda_k", rate=2.0, resolution=1e-9),
            "merging": Value(wait, label="time until two clusters have merged", symbol="T", resolution=1e-7),
        }

    def at_size(self, size):
        return {}, replace(self, amplitude=whole(size, "N", self, least=10))

    def simulate(self, key):
        phase_key, turn_key = jax.random.split(key)
        k, even = self.degree, jnp.linspace(0.0, 2 * jnp.pi, self.ring, endpoint=False)
        shift, height = jax.random.uniform(phase_key, (2,)) * jnp.array([2 * jnp.pi, 0.5]) + jnp.array([0.0, 0.5])
        # Moving tokens by −(ε/k) sin kθ gives the density 1 + ε cos kθ, to first order.
        angles = even - height / self.amplitude / k * jnp.sin(k * even) + shift

        def wave(tokens):
            place = jnp.arctan2(tokens[:, 1], tokens[:, 0])
            return jnp.mean(jnp.cos(k * (place - shift)))

        x = plane(angles)
        level, slope = jax.jvp(wave, (x,), (ensemble.attention_velocity(x, self.beta),))
        corner = jnp.zeros((self.tokens, self.dimension)).at[:, 0].set(1.0)
        corner = corner.at[self.first :, :2].set(jnp.stack([jnp.cos(self.angle), jnp.sin(self.angle)]))
        merged = ensemble.attention_until(
            corner @ uniform_orthogonal(turn_key, self.dimension),
            self.beta,
            lambda y: y[0] @ y[-1] >= NEAR,
            rtol=1e-10,
        )
        return {"growth": slope / level, "merging": merged.t}
