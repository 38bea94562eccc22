r"""The overlap with a spike before it is visible."""

import jax
import jax.numpy as jnp
from jax.scipy.stats import norm
from jaxtyping import Array

from deeplimits.ensembles import reduced_chains
from deeplimits.limit import Limit, real, whole
from deeplimits.predictions import Law, Value
from deeplimits.theory.dynamics import spiked


class SpikedMicroscopicSde(Limit):
    r"""From a random start √N m is an Ornstein-Uhlenbeck process that turns unstable at λ = c.

    Setting     Y = λvv' + W, L = |Y − xx'|², x' = x − δ∇L, δ = c/N, t = δ·steps, x₀ ~ N(0, I/N); u = √N⟨x, v⟩,
                r = |x|² − m²
    Limit       N → ∞ with c, t fixed
    Result      du = 4u(λ − r)dt + √(8cr) dB, dr/dt = −8r(r − c), u(0) ~ N(0, 1), r(0) = 1
                u(t) is Gaussian with variance (e^(8λt)/D)[1 + c(e^(8(c−λ)t) − 1)/(c − λ)], D = 1 + (e^(8ct) − 1)/c
                λ < c: stationary variance c²/(c − λ); λ > c: escape at rate 4(λ − c), the transition
    Validity    t fixed, so that u stays of order one; size counts the dimension N
    Finite size gap O(1/N)
    References  benarous2022
    """

    signal: Array = real(1.5, 0.0, 5.0, symbol=r"\lambda", doc="strength λ of the spike")
    step: Array = real(1.0, 0.05, 3.0, log=True, symbol="c", doc="step constant c = δN")
    time: Array = real(0.1, 0.01, 1.0, log=True, symbol="t", doc="time t of the later law; the earlier is at t/2")

    sizes = (100, 200, 400)
    samples = 100_000
    batch = 5000

    def theory(self):
        results = {}
        for name, time in (("early", self.time / 2), ("late", self.time)):
            variance, _ = spiked.microscopic_variance(self.signal, self.step, time)
            sd = jnp.sqrt(variance)
            x = sd * jnp.linspace(-5.0, 5.0, 401)
            results[name] = Law(
                x,
                norm.pdf(x / sd) / sd,
                norm.cdf(x / sd),
                label=f"{name} scaled overlap",
                symbol=r"\sqrt{N}m",
                rate=1.0,
            )
        variance, radius = spiked.microscopic_variance(self.signal, self.step, self.time)
        results["variance"] = Value(variance, label="variance of the scaled overlap", symbol=r"N\,E\,m^2", rate=1.0)
        results["radius"] = Value(radius, label="squared length of the rest", symbol="r", rate=1.0)
        return results

    def at_size(self, size):
        n = whole(size, "N", self, least=10)
        half = whole(float(self.time) * n / float(self.step) / 2, "steps", self)
        return {"dimension": n, "half": half}, self.replace(time=2 * half * float(self.step) / n)

    def simulate(self, key, *, dimension: int, half: int):
        start_key, rest_key, chain_key = jax.random.split(key, 3)
        root = jnp.sqrt(1.0 * dimension)
        start = reduced_chains.SpikedState(
            jax.random.normal(start_key) / root, reduced_chains.chi_square(rest_key, dimension - 1) / dimension
        )

        def step(key, state):
            return reduced_chains.spiked_step(key, state, dimension, self.signal, 2, self.step)

        found = reduced_chains.run(step, chain_key, start, 2, half)
        u = root * found.overlap
        return {"early": u[1], "late": u[2], "variance": u[2] ** 2, "radius": found.radius[2]}
