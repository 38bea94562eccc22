r"""Where training starts: the equator."""

import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import data
from deeplimits.limit import Limit, Run, integer, real, sized
from deeplimits.predictions import Law, Probability, Value
from deeplimits.showcase import Showcase
from deeplimits.theory.online_sgd import equator


class EquatorInitialization(Limit):
    r"""A random start is nearly orthogonal to what is to be learnt.

    Setting     x uniform on the unit sphere of R^N, m = ⟨x, θ⟩ its overlap with a fixed unit vector θ
    Limit       N → ∞ (Poincaré)
    Result      √N m → N(0, 1) in law; exactly at every N: m² ~ Beta(1/2, (N−1)/2), density ∝ (1 − m²)^((N−3)/2),
                E(√N m)² = 1, E(√N m)⁴ = 3N/(N+2), P(√N|m| > u) = I_{1−u²/N}((N−1)/2, 1/2) ≤ 2 exp(−u²/2)
                a start on the upper half-sphere, m ≥ 0, is |m|: E √N|m| = √N Γ(N/2)/(√π Γ((N+1)/2)) → √(2/π)
    Validity    N ≥ 2; size counts the dimension N
    Finite size the law deviates by O(1/N); moments and tail exact
    Computed by online_sgd.gaussian_law, online_sgd.equator_exceedance, online_sgd.fourth_moment,
                online_sgd.recovery.half_sphere_mean (upper_half_mean); as a law online_sgd.recovery.half_sphere_law
    References  benarous2021 Sec 2; vershynin2018 Sec 3.3
    """

    dimension: int = integer(100, 2, 10_000_000, log=True, symbol="N", doc="dimension")
    threshold: Array = real(1.0, 0.0, 6.0, symbol="u", doc="threshold of the tail probability, in units of 1/√N")

    usual = Run(sizes=(16, 32, 64), samples=80_000, batch=500)
    showcase = Showcase(see="√N times the overlap of a random start with the signal is a standard normal number.")

    def theory(self):
        x = jnp.linspace(-5.0, 5.0, 401)
        return {
            "overlap": Law(x, *equator.gaussian_law(x), label="scaled overlap", symbol=r"\sqrt{N} m", rate=1.0),
            "second_moment": Value(1.0, label="second moment", symbol=r"N\,E\,m^2"),
            "fourth_moment": Value(
                jnp.asarray(equator.fourth_moment(self.dimension)), label="fourth moment", symbol=r"N^2\,E\,m^4"
            ),
            "upper_half_mean": Value(
                jnp.asarray(equator.half_sphere_mean(self.dimension)),
                label="mean on the upper half-sphere",
                symbol=r"\sqrt{N}\,E|m|",
            ),
            "tail": Probability(
                equator.equator_exceedance(self.threshold, self.dimension),
                label="tail probability",
                symbol=r"P(\sqrt{N}|m|>u)",
            ),
        }

    def at_size(self, size):
        return sized(self, dimension=size, least=2)

    def simulate(self, key, *, dimension: int):
        # Any fixed direction will do, by rotation symmetry: the first axis.
        overlap = jnp.sqrt(1.0 * dimension) * data.on_sphere(key, dimension)[0]
        return {
            "overlap": overlap,
            "second_moment": overlap**2,
            "fourth_moment": overlap**4,
            "upper_half_mean": jnp.abs(overlap),
            "tail": (jnp.abs(overlap) > self.threshold).astype(float),
        }
