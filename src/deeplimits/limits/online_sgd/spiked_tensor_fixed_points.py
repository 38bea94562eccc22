r"""Where SGD on a spiked tensor comes to rest."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from deeplimits.ensembles import reduced_chains
from deeplimits.errors import OutsideValidity
from deeplimits.limit import Limit, Run, integer, real, whole
from deeplimits.predictions import Kind, Probability, Value
from deeplimits.theory.online_sgd import spiked


class SpikedTensorFixedPoints(Limit):
    r"""SGD on a spiked tensor rests on the sphere r = c, at a positive overlap iff the signal exceeds a threshold.

    Setting     Y = λv^(⊗k) + W, L = |Y − x^(⊗k)|², x' = x − δ∇L, δ = c/N, t = δ·steps; m = ⟨x, v⟩, r = |x|² − m²
    Limit       N → ∞, then t → ∞
    Result      rest points: (0, 0) unstable; (0, c), with rates 4(λ − c), −8c for k = 2 (stable iff λ < c) and
                −2kc^(k−1), −4kc^(k−1) for k ≥ 3 (stable); (m, c) with λm^(k−2) = (m² + c)^(k−1): √(λ − c) for
                k = 2; for k ≥ 3 two roots m_† < m_* iff λ > λ_c = c^(k/2)(2(k−1)/k)^(k−1)(k/(k−2))^((k−2)/2), m_*
                stable and m_† a saddle, on either side of √((k−2)c/k)
                from the spike, m₀ = λ^(1/k) > m_*, SGD reaches m_*; from m₀ = ½(c^(k−1)/λ)^(1/(k−2)) < m_†/2, k ≥ 3,
                it forgets the signal: |m| ends below √((k−2)c/k)
    Validity    λ above λ_c by 5 % or more; size counts the dimension N
    Finite size gap O(1/N); the probability to leave the wrong basin is exponentially small
    References  benarous2022
    """

    order: int = integer(3, 2, 5, symbol="k", doc="order k of the tensor")
    signal: Array = real(1.5, 0.05, 20.0, log=True, symbol=r"\lambda", doc="strength λ of the spike")
    step: Array = real(0.3, 0.01, 2.0, log=True, symbol="c", doc="step constant c = δN")
    horizon: Array = real(0.6, 0.05, 10.0, log=True, symbol="t", doc="time after which SGD is taken to be at rest")

    usual = Run(sizes=(100, 200, 400), samples=1000, batch=100)

    def validity(self):
        critical = float(np.asarray(spiked.critical_signal(self.order, float(self.step))))
        if float(self.signal) < 1.05 * critical:
            return (
                f"signal = {float(self.signal):g} is not above the threshold {critical:.4g} by 5 %; there is no "
                "rest point with an overlap to approach, so raise the signal or take a smaller step",
            )
        slowest = -max(spiked.rest_points(float(self.signal), self.order, float(self.step))[-1].eigenvalues)
        if slowest * float(self.horizon) < 9:
            return (
                f"horizon = {float(self.horizon):g} is too short to come to rest: the slowest rate is "
                f"{slowest:.3g}, so take a horizon of at least {9 / slowest:.3g}",
            )
        return ()

    def theory(self):
        _, overlap = spiked.overlap_roots(self.signal, self.order, self.step)
        results: dict[str, Kind] = {
            "overlap": Value(overlap, label="overlap at rest", symbol="m_*", rate=1.0),
            "radius": Value(self.step, label="squared length of the rest", symbol="r", rate=1.0),
        }
        if self.order > 2:
            results["forgets"] = Probability(1.0, label="forgetting the signal", symbol=r"P(|m|<\sqrt{(k-2)c/k})")
        return results

    def at_size(self, size):
        n = whole(size, "N", self, least=3)
        c, k = float(self.step), self.order
        # δ times the curvature 2k(2k − 1)R^(2k−2) must stay small where SGD starts, R² = λ^(2/k) + c, and a bit beyond.
        least = 8 * k * c * (1.5 * float(self.signal) ** (2 / k) + c) ** (k - 1)
        if n < least:
            raise OutsideValidity(
                f"SpikedTensorFixedPoints: at N = {n} SGD diverges; with step = {c:g} the critical dimension is about "
                f"{least:.3g}, so take a larger size or a smaller step"
            )
        steps = whole(float(self.horizon) * n / c, "steps", self)
        return {"dimension": n, "steps": steps}, self.replace(horizon=steps * c / n)

    def simulate(self, key, *, dimension: int, steps: int):
        c, lam, k = self.step, self.signal, self.order

        def step(sample, state):
            return reduced_chains.spiked_step(sample, state, dimension, lam, k, c)

        starts = [lam ** (1 / k)] if k == 2 else [lam ** (1 / k), (c ** (k - 1) / lam) ** (1 / (k - 2)) / 2]
        start = reduced_chains.SpikedState(jnp.stack(starts), jnp.broadcast_to(c, (len(starts),)))
        samples = reduced_chains.spiked_samples(key, (steps, len(starts)), dimension)
        found = reduced_chains.run(jax.vmap(step), samples, start, 1)
        m, r = found.overlap[-1], found.radius[-1]
        if k == 2:
            return {"overlap": m[0], "radius": r[0]}
        forgets = (jnp.abs(m[1]) < jnp.sqrt((k - 2) * c / k)).astype(float)
        return {"overlap": m[0], "radius": r[0], "forgets": forgets}
