r"""Where SGD on a spiked tensor comes to rest."""

import jax
import jax.numpy as jnp
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
                −2kc^(k−1), −4kc^(k−1) for k ≥ 3 (stable); (m, c) with λm^(k−2) = (m² + c)^(k−1): √(λ − c) for k =
                2; for k ≥ 3
                two roots m_† < m_* iff λ > λ_c = c^(k/2)(2(k−1)/k)^(k−1)(k/(k−2))^((k−2)/2), m_* stable and m_† a
                saddle from m₀ = 1.2m_* SGD reaches m_*; from m₀ = m_†/2 it forgets the signal (k ≥ 3)
    Validity    λ above λ_c by 5 % or more; size counts the dimension N
    Finite size gap O(1/N); the probability to leave the wrong basin is exponentially small
    References  benarous2022
    """

    order: int = integer(3, 2, 5, symbol="k", doc="order k of the tensor")
    signal: Array = real(1.5, 0.05, 20.0, log=True, symbol=r"\lambda", doc="strength λ of the spike")
    step: Array = real(0.3, 0.01, 2.0, log=True, symbol="c", doc="step constant c = δN")
    horizon: Array = real(0.6, 0.05, 10.0, log=True, symbol="t", doc="time after which SGD is taken to be at rest")

    usual = Run(sizes=(100, 200, 400), samples=1000, batch=100)

    def _rates(self):
        points = spiked.rest_points(float(self.signal), self.order, float(self.step))
        return points[-1]

    def validity(self):
        critical = float(spiked.critical_signal(self.order, self.step))
        if float(self.signal) < 1.05 * critical:
            return (
                f"signal = {float(self.signal):g} is not above the threshold {critical:.4g} by 5 %; there is no "
                f"rest point "
                "with an overlap to approach, so raise the signal or take a smaller step",
            )
        slowest = -max(self._rates().eigenvalues)
        if slowest * float(self.horizon) < 9:
            return (
                f"horizon = {float(self.horizon):g} is too short to come to rest: the slowest rate is "
                f"{slowest:.3g}, so take "
                f"a horizon of at least {9 / slowest:.3g}",
            )
        return ()

    def theory(self):
        saddle, overlap = spiked.overlap_roots(self.signal, self.order, self.step)
        results: dict[str, Kind] = {
            "overlap": Value(overlap, label="overlap at rest", symbol="m_*", rate=1.0),
            "radius": Value(self.step, label="squared length of the rest", symbol="r", rate=1.0),
        }
        if self.order > 2:
            zero = 0.0 * saddle
            results["forgets"] = Probability(1.0 + zero, label="forgetting the signal", symbol=r"P(|m|<m_*/2)")
        return results

    def at_size(self, size):
        n = whole(size, "N", self, least=3)
        c, k = float(self.step), self.order
        least = 8 * k * c * (1.5 * self._rates().overlap ** 2 + c) ** (k - 1)
        if n < least:
            raise OutsideValidity(
                f"SpikedTensorFixedPoints: at N = {n} SGD diverges; with step = {c:g} the critical dimension is about "
                f"{least:.3g}, so take a larger size or a smaller step"
            )
        steps = whole(float(self.horizon) * n / c, "steps", self)
        return {"dimension": n, "steps": steps}, self.replace(horizon=steps * c / n)

    def simulate(self, key, *, dimension: int, steps: int):
        high_key, low_key = jax.random.split(key)
        saddle, overlap = spiked.overlap_roots(self.signal, self.order, self.step)

        def step(key, state):
            return reduced_chains.spiked_step(key, state, dimension, self.signal, self.order, self.step)

        def last(key, m):
            start = reduced_chains.SpikedState(m, self.step)
            found = reduced_chains.run(step, key, start, 1, steps)
            return found.overlap[-1], found.radius[-1]

        if self.order == 2:
            m, r = last(high_key, 1.2 * overlap)
            return {"overlap": m, "radius": r}
        starts = jnp.stack([1.2 * overlap, 0.5 * saddle])
        m, r = jax.vmap(last)(jnp.stack([high_key, low_key]), starts)
        return {"overlap": m[0], "radius": r[0], "forgets": (jnp.abs(m[1]) < overlap / 2).astype(float)}
