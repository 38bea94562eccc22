r"""The overlap with a spike before it is visible."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm
from jaxtyping import Array

from deeplimits.ensembles import reduced_chains
from deeplimits.limit import Limit, Run, integer, real, rounded, too_small, whole
from deeplimits.numerics.arguments import written
from deeplimits.predictions import Law, Value
from deeplimits.showcase import Showcase
from deeplimits.theory.online_sgd import spiked_tensor

PATH = np.linspace(0.0, 1.0, 65)
_variance = jax.jit(spiked_tensor.microscopic_variance)  # for checks on the host, as one program


RARE = 30.0
"""The least −log of the probability that a path explodes."""
MOST = 1e6  # no size is looked for beyond so many times the one asked for


def _explosion(size: float, order: int, step: float) -> float:
    """V = (N/2kc)(R − b − c log(R/b)), R^(k−1) = N/2kc, b = max(1, c): −log of the probability to reach R from b."""
    large, begin = size / (2 * order * step), max(1.0, step)
    end = large ** (1 / (order - 1))
    return large * (end - begin - step * math.log(end / begin)) if end > begin else 0.0


class SpikedMicroscopicSde(Limit):
    r"""From a random start √N m is an Ornstein-Uhlenbeck process, which turns unstable at λ = c for a matrix.

    Setting     Y = λv^(⊗k) + W, L = |Y − x^(⊗k)|², x' = x − δ∇L, δ = c/N, t = δ·steps, x₀ ~ N(0, I/N); u = √N⟨x, v⟩,
                r = |x|² − m²
    Limit       N → ∞ with λ, c, t fixed
    Result      u(0) ~ N(0, 1), r(0) = 1, and u(t) is Gaussian
                k = 2: du = 4u(λ − r)dt + √(8cr) dB, dr/dt = −8r(r − c), with variance
                (e^(8λt)/D)[1 + c(e^(8(c−λ)t) − 1)/(c − λ)], D = 1 + (e^(8ct) − 1)/c; λ < c: stationary variance
                c²/(c − λ); λ > c: escape at rate 4(λ − c), the transition
                k ≥ 3: du = −2kr^(k−1)u dt + √(4kcr^(k−1)) dB, dr/dt = −4kr^(k−1)(r − c), stationary variance c: the
                signal is invisible unless λ grows like N^((k−2)/2) (see critical-window-search)
    Validity    t fixed, so that u stays of order one. For k = 2 the overlap itself, in R² = m² + r, changes log E u² by
                (12/N)∫E u² dt, which must be at most 0.3; for k ≥ 3 the signal moves u by 2kλt u^(k−1)N^(−(k−2)/2),
                which must be at most 0.2 for the largest u² expected, b = max(1, c). Beyond r = R, R^(k−1) = N/2kc, a
                step overshoots and the path explodes; in dr = −4kr^(k−1)(r − c)dt + 4k√(cr^k/N)dB that has probability
                e^(−V), V = (N/2kc)(R − b − c log(R/b)), and V must be at least 30. Size counts the dimension N
    Finite size gap O(1/N); of the laws O(N^(−1/2)) for k = 3, from the signal's drift 2kλu^(k−1)N^(−(k−2)/2), which by
                symmetry does not count in the variance
    Computed by online_sgd.microscopic_variance, online_sgd.tensor_microscopic_variance
    References  benarous2022
    """

    order: int = integer(2, 2, 5, symbol="k", doc="order k of the tensor")
    signal: Array = real(1.5, 0.0, 5.0, symbol=r"\lambda", doc="strength λ of the spike")
    step: Array = real(1.0, 0.05, 3.0, log=True, symbol="c", doc="step constant c = δN")
    time: Array = real(0.1, 0.01, 1.0, log=True, symbol="t", doc="time t of the later law; the earlier is at t/2")

    usual = Run(sizes=(400, 800, 1600), samples=60_000, batch=3000)
    showcase = Showcase(
        first="late", see="Near the equator the overlap is a Gaussian process: stable while λ < c, escaping beyond."
    )

    def _variance(self, time):
        if self.order == 2:
            return spiked_tensor.microscopic_variance(self.signal, self.step, time)
        variance, radius = spiked_tensor.tensor_microscopic_variance(self.order, self.step, time[None])
        return variance[0], radius[0]

    def theory(self):
        results = {}
        for name, time in (("early", self.time / 2), ("late", self.time)):
            sd = jnp.sqrt(self._variance(time)[0])
            x = sd * jnp.linspace(-5.0, 5.0, 401)
            results[name] = Law(
                x,
                norm.pdf(x / sd) / sd,
                norm.cdf(x / sd),
                label=f"{name} scaled overlap",
                symbol=r"\sqrt{N}m",
                rate=0.5 if self.order == 3 else 1.0,
            )
        variance, radius = self._variance(self.time)
        results["variance"] = Value(variance, label="variance of the scaled overlap", symbol=r"N\,E\,m^2", rate=1.0)
        results["radius"] = Value(radius, label="squared length of the rest", symbol="r", rate=1.0)
        return results

    def validity_at(self, size):
        k, lam, c, time = self.order, float(self.signal), float(self.step), float(self.time)
        if k == 2:
            needed = 40 * float(jnp.trapezoid(_variance(lam, c, time * PATH)[0], time * PATH))
        else:
            needed = (10 * k * lam * time) ** (2 / (k - 2)) * max(1.0, c)
        while needed < size * MOST and _explosion(needed, k, c) < RARE:
            needed = max(1.05 * needed, 4 * k * c * max(1.0, c) ** (k - 1))
        return too_small(
            size,
            needed,
            f"at N = {size} with signal = {written(lam)} and step = {written(c)} the scaled overlap does "
            "not stay of order one up to "
            f"time = {written(time)}, or a path explodes; take sizes of at least {math.ceil(needed)}, or "
            "a shorter time",
        )

    def at_size(self, size):
        n = whole(size, "N", self, least=10)
        half = whole(float(self.time) * n / float(self.step) / 2, "steps", self)
        return {"dimension": n, "half": half}, rounded(self, time=2 * half * float(self.step) / n)

    def simulate(self, key, *, dimension: int, half: int):
        root = jnp.sqrt(1.0 * dimension)
        first, samples = reduced_chains.first_and_rest(reduced_chains.spiked_samples(key, (2 * half + 1,), dimension))
        # x_0 ~ N(0, I/N): one component along the spike, the rest χ²_{N−1} = G² + χ²_{N−2}
        along, other = first.gaussians
        start = reduced_chains.SpikedState(along / root, (other**2 + first.chi_square) / dimension)

        def step(sample, state):
            return reduced_chains.spiked_step(sample, state, dimension, self.signal, self.order, self.step)

        found = reduced_chains.run(step, samples, start, [half, 2 * half])
        u = root * found.overlap
        return {"early": u[0], "late": u[1], "variance": u[1] ** 2, "radius": found.radius[1]}
