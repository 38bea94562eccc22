r"""How many samples weak recovery takes."""

import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from deeplimits.ensembles import reduced_chains
from deeplimits.errors import OutsideValidity
from deeplimits.limit import Limit, Run, integer, real, whole
from deeplimits.numerics.arguments import written
from deeplimits.predictions import Exponent, Probability
from deeplimits.showcase import Showcase
from deeplimits.theory.online_sgd import landscapes, spherical_ode

MOST = 2**30
"""Steps after which a walk is given up."""
LONG = 1e30
"""A time at which nobody asks for more digits."""
CERTAIN = 6.5
"""So many standard deviations away a Gaussian walk is at any time once in 10¹⁰ runs."""


class SampleComplexityThresholds(Limit):
    r"""The information exponent k decides how many samples SGD needs to find the signal: N, N log N, or N^(k−1).

    Setting     spherical online SGD on tensor PCA, L = −⟨λθ^(⊗k) + W, x^(⊗k)⟩, from √N m₀ = u₀; step δ = c for
                k ≤ 2 and c N^(−(k−2)/2), the largest admissible one, for k ≥ 3; T = number of samples until m > η
    Limit       N → ∞
    Result      k = 1: T ∝ N; k = 2: T = N log N/(2κ) + O(N), κ = 2λδ − δ²; k ≥ 3: T ∝ N^(k−1)
                α_c = T/N of order 1, log N, N^(k−2) samples per dimension are necessary, and sufficient up to
                logarithms
                the measured power law is that of T for k ≠ 2; for k = 2 that of exp(−2κT/N) ∝ 1/N
                too few samples recover nothing: P(T ≤ N α_few) → 0. Up to a level a, m gains at most
                kλδa^(k−1) α by drift and δ√(kα/N) by noise; with a = A/√N for k ≥ 3 and a ≤ η for k ≤ 2 both stay short
                of a for α_few = x N^(k−2), x a constant, of which noise exceeds 6.5 standard deviations only
    Validity    k ≥ 1; δ < 2λ for k = 2 and η below the plateau; size counts the dimension N
    Finite size relative gap O(N^(−1/2)) for k = 1, where the start counts; O(1/N) up to logarithms for k = 2 and k ≥ 4;
                for k = 3 of T ∝ ∫dm/(m²(1 − m²)) = 1/m₀ − (1/η − artanh η) + O(m₀), which is O(N^(−1/2)) but for the
                root η = 0.834 of the bracket: the default, so that the exponent shows at small N, u₀ = 2.5 being large
                enough for the noise not to take walks back
    Computed by online_sgd.tensor_pca, online_sgd.critical_ratio; for any landscape
                online_sgd.recovery.step_window, online_sgd.recovery.recovery_probability, and on the side of too
                few samples online_sgd.recovery.no_recovery_bound
    References  benarous2021
    """

    order: int = integer(3, 1, 5, symbol="k", doc="information exponent k")
    signal: Array = real(4.0, 0.1, 20.0, log=True, symbol=r"\lambda", doc="strength λ of the signal")
    step: Array = real(1.0, 0.01, 10.0, log=True, symbol="c", doc="step constant c")
    start: Array = real(2.5, 0.5, 10.0, symbol="u_0", doc="correlation at the start, times √N")
    threshold: Array = real(0.83, 0.1, 0.95, symbol=r"\eta", doc="correlation η that counts as recovery")

    usual = Run(sizes=(48, 96, 192, 384), samples=4000, batch=200)
    showcase = Showcase(
        first="samples", see="The number of samples is a power of the dimension that the information exponent sets."
    )

    def validity(self):
        lam, c, eta = float(self.signal), float(self.step), float(self.threshold)
        landscape = landscapes.tensor_pca(lam, self.order)
        if self.order <= 2 and float(spherical_ode.velocity(landscape, eta, c)) <= 0:
            # v = 0 at δ = −2(1 − η²)φ'(η)/(s η)
            critical = -2 * (1 - eta**2) * float(landscape.slope(eta)) / (self.order * eta)
            return (
                f"threshold = {written(eta)} is never reached with step = {written(c)}: the critical "
                f"step is {critical:.4g}, so "
                "take a smaller one",
            )
        return ()

    def _rate(self):
        return spherical_ode.growth_rate(landscapes.tensor_pca(self.signal, 2), self.step)

    def theory(self):
        slope = -1.0 if self.order == 2 else float(max(1, self.order - 1))
        what = "exp(−2κT/N)" if self.order == 2 else "samples to recovery"
        # T is a power of N times 1 + O(1/N), but for k = 1, where the start counts, and k = 3, where
        # ∫ dm/(m²(1−m²)) = 1/m_0 − (1/η − artanh η) + O(m_0): the constant vanishes at η = 0.834.
        constant = 1 / self.threshold - jnp.arctanh(self.threshold)
        correction = {1: 0.5, 3: jnp.where(jnp.abs(constant) < 0.05, 1.0, 0.5)}.get(self.order, 1.0)
        return {
            "samples": Exponent(slope, label=what, symbol="T", correction=correction),
            "too_few": Probability(0.0, label="recovery with too few samples", symbol=r"P(T\leq N\alpha_{few})"),
        }

    def at_size(self, size):
        n = whole(size, "N", self, least=16)
        if float(self.start) > 0.5 * math.sqrt(n) * float(self.threshold):
            raise OutsideValidity(
                f"SampleComplexityThresholds: at N = {n} the start {written(self.start)}/√N is not small against the "
                f"threshold; take a size of at least {math.ceil((2 * float(self.start) / float(self.threshold)) ** 2)}"
            )
        return {"dimension": n}, self

    def rounds(self, *, dimension: int):
        n, k, lam, c = dimension, self.order, float(self.signal), float(self.step)
        if k <= 2:
            # m' = λδ at k = 1; at k = 2 m' = κm, from the noise's 1/√N
            steps = n / (lam * c) if k == 1 else n * (math.log(n) / 2 + 2) / (2 * lam * c - c**2)
        else:
            steps = n ** (k - 1) * _escape_time(k, lam, c, float(self.start))
        return min(steps, MOST) / reduced_chains.BLOCK

    def simulate(self, key, *, dimension: int):
        delta = self.step * dimension ** (-max(0, self.order - 2) / 2)

        model = reduced_chains.tensor_pca(dimension, self.signal, self.order)
        start = self.start / jnp.sqrt(1.0 * dimension)
        passage = reduced_chains.first_passage(
            key, lambda sample, m: model.step(sample, m, delta), model.samples,
            start, self.threshold[None], MOST, False,
        )[0]  # fmt: skip
        # The rate at which the equator repels, from the definition of the step: 2λδ − δ²
        rate = 2 * self.signal * self.step - self.step**2
        early = passage <= dimension * self._too_few(dimension)
        return {
            "samples": jnp.exp(-2 * rate * passage / dimension) if self.order == 2 else passage,
            "too_few": early.astype(float),
        }

    def _too_few(self, n: int) -> Array:
        """α_few: samples per dimension in which neither drift nor noise carries m from the start to a level a ≤ η."""
        k, delta = self.order, self.step * n ** (-max(0, self.order - 2) / 2)
        start = self.start / jnp.sqrt(1.0 * n)
        level = start + (self.threshold - start) * jnp.geomspace(1e-3, 1.0, 100)
        half = (level - start) / 2
        by_drift = half / (k * self.signal * delta * level ** (k - 1))
        by_noise = n / k * (half / (CERTAIN * delta)) ** 2
        return jnp.max(jnp.minimum(by_drift, by_noise))


def _escape_time(order: int, signal: float, step: float, start: float) -> float:
    """The mean time, in N^(k−1) steps, that u = √N m takes from the start to infinity, k ≥ 3.

    du = (ckλu^(k−1) − c²ku/2) ds + c√k dW: large steps push towards the equator, and the noise must bring u beyond
    u* with u*^(k−2) = c/2λ.
    """
    # (2/c²k) ∫_{u₀}^∞ J(y) dy, J(y) = ∫^y e^{U(y)−U(z)} dz, U(u) = u²/2 − (2λ/c)u^k/k taken as linear between points
    beyond = (step / (2 * signal)) ** (1 / (order - 2))
    u = np.linspace(-8.0 if order % 2 else 0.0, 4 * max(beyond, start, 2.0), 2000)
    width = float(u[1] - u[0])
    inner, total = 0.0, 0.0
    for place, rise in zip(u[1:], np.diff(u**2 / 2 - 2 * signal / step * u**order / order), strict=True):
        # ∫ over a step of e^{rise·s} ds is (e^rise − 1)/rise
        grown = inner * math.exp(min(rise, 100.0))
        inner = min(grown + width * math.expm1(min(rise, 100.0)) / (rise or 1e-9), LONG)
        total += width * inner * (place >= start)
    return 2 * total / (step**2 * order)
