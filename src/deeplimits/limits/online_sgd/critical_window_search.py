r"""The search when the information exponent is three or more."""

import math

import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import reduced_chains
from deeplimits.errors import OutsideValidity
from deeplimits.limit import Limit, Run, integer, real, rounded, whole
from deeplimits.limits.online_sgd._shared import even_times
from deeplimits.numerics.arguments import written
from deeplimits.predictions import Curve
from deeplimits.showcase import Showcase
from deeplimits.theory.online_sgd import critical_window, landscapes

POINTS = 5


class CriticalWindowSearch(Limit):
    r"""At the largest admissible step a spiked k-tensor, k ≥ 3, is found when a diffusion explodes.

    Setting     spherical online SGD on tensor PCA, L = −⟨λθ^(⊗k) + W, x^(⊗k)⟩, k ≥ 3, δ = cN^(−(k−2)/2), from
                √N m₀ = u₀; u = √N m, ϑ = δ²·steps/N = c²·steps/N^(k−1)
    Limit       N → ∞ with c, u₀ fixed
    Result      u converges to du = [(kλ/c)u^(k−1) − (k/2)u]dϑ + √k dB, which explodes in finite time: the signal is
                found after a random multiple of N^(k−1) samples, without logarithms
                in general du = [(a_k/c)u^(k−1) − (s(0)/2)u]dϑ + σ dB
                stated here: P(u, or |u| for even k, exceeds U before ϑ), which tends to that of explosion as U grows
    Validity    k ≥ 3, u₀ < U; size counts the dimension N
    Finite size gap O(1/N): U²/N from m² against 1, and a step of u is O(N^(−(k−1)/2))
    Computed by online_sgd.passage_probability, online_sgd.tensor_pca; from a random start
                online_sgd.recovery.recovery_probability
    References  benarous2021
    """

    order: int = integer(3, 3, 5, symbol="k", doc="information exponent k")
    signal: Array = real(3.0, 0.1, 20.0, log=True, symbol=r"\lambda", doc="strength λ of the signal")
    step: Array = real(2.0, 0.05, 10.0, log=True, symbol="c", doc="step constant c")
    start: Array = real(1.0, 0.0, 3.0, symbol="u_0", doc="correlation at the start, times √N")
    level: Array = real(2.5, 0.5, 8.0, symbol="U", doc="level U to be passed, times √N")
    horizon: Array = real(0.5, 0.05, 5.0, log=True, symbol=r"\vartheta", doc="time up to which the level is awaited")

    usual = Run(sizes=(28, 56, 112), samples=11_000, batch=1100)
    showcase = Showcase(
        see="The chance that the search has ended rises from zero without a sharp step: the search time stays random."
    )

    def validity(self):
        if float(self.start) < 0.9 * float(self.level):
            return ()
        return (
            f"start = {written(self.start)} is not below level = {written(self.level)} by a tenth of it, so that there "
            "is nothing to wait for; start lower or raise the level",
        )

    def theory(self):
        times = even_times(self.horizon, POINTS)
        landscape = landscapes.tensor_pca(self.signal, self.order)
        passed = critical_window.passage_probability(landscape, self.step, self.start, self.level, times)
        return {
            "passed": Curve(
                times, passed, axis="scaled time", axis_symbol=r"\vartheta", label="share that passed",
                symbol=r"P(\max u>U)", rate=1.0, resolution=critical_window.UNCERTAIN, event=True,
            )
        }  # fmt: skip

    def at_size(self, size):
        n = whole(size, "N", self, least=16)
        if float(self.level) > 0.5 * math.sqrt(n):
            raise OutsideValidity(
                f"CriticalWindowSearch: at N = {n} the level {written(self.level)}/√N is not small against 1; take a "
                f"size of at least {math.ceil(4 * float(self.level) ** 2)}"
            )
        per_unit = n ** (self.order - 1) / float(self.step) ** 2
        every = whole(float(self.horizon) * per_unit / POINTS, "steps between records", self)
        return {"dimension": n, "every": every}, rounded(self, horizon=every * POINTS / per_unit)

    def rounds(self, *, dimension: int, every: int):
        return POINTS * every / reduced_chains.BLOCK

    def simulate(self, key, *, dimension: int, every: int):
        root = dimension**0.5
        delta = self.step * dimension ** (-(self.order - 2) / 2)

        model = reduced_chains.tensor_pca(dimension, self.signal, self.order)
        even = self.order % 2 == 0
        passage = reduced_chains.first_passage(
            key, lambda sample, m: model.step(sample, m, delta), model.samples,
            self.start / root, self.level[None] / root, POINTS * every, even,
        )  # fmt: skip
        return {"passed": (passage <= every * jnp.arange(1.0, POINTS + 1)).astype(float)}
