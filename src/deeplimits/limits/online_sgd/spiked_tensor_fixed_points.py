r"""Where SGD on a spiked tensor comes to rest."""

import math

import numpy as np
from jaxtyping import Array

from deeplimits.ensembles import reduced_chains
from deeplimits.limit import Limit, Run, integer, real, whole
from deeplimits.numerics import roots
from deeplimits.numerics.arguments import written
from deeplimits.predictions import Value
from deeplimits.showcase import Showcase
from deeplimits.theory.online_sgd import spiked_tensor

SURE = 10.0


class SpikedTensorFixedPoints(Limit):
    r"""SGD on a spiked tensor rests on the sphere r = c, at a positive overlap iff the signal exceeds a threshold.

    Setting     Y = λv^(⊗k) + W, L = |Y − x^(⊗k)|², x' = x − δ∇L, δ = c/N, t = δ·steps; m = ⟨x, v⟩, r = |x|² − m²
    Limit       N → ∞, then t → ∞
    Result      rest points: (0, 0) unstable; (0, c), with rates 4(λ − c), −8c for k = 2 (stable iff λ < c) and
                −2kc^(k−1), −4kc^(k−1) for k ≥ 3 (stable); (m, c) with λm^(k−2) = (m² + c)^(k−1): √(λ − c) for
                k = 2; for k ≥ 3 two roots m_† < m_* iff λ > λ_c = c^(k/2)(2(k−1)/k)^(k−1)(k/(k−2))^((k−2)/2), m_*
                stable and m_† a saddle, on either side of √((k−2)c/k)
                from the spike, m₀ = λ^(1/k) > m_*, SGD reaches m_*
                from m < m_†, k ≥ 3, gradient flow with the corrector forgets the signal; SGD stays there for a time of
                order exp(NV), V = ∫₀^(m_†) 2|b|/D dm, b the velocity of m and D its noise at r = c:
                V ≈ (½ − 1/k)m_†²/c for λ well above λ_c, so that the basin of (0, c) exists only for N ≫ c/m_†², which
                is 10⁴ at the default and is not simulated here (spiked-microscopic-sde follows SGD near (0, c))
    Validity    λ above λ_c by 5 % or more; a horizon of nine or more relaxation times at m_*, so that e⁻⁹ of the way to
                it is left; NV_* ≥ 10, V_* = ∫ 2b/D dm from m_† to m_*, so that noise carries one run in 10⁴ or
                fewer back over the saddle; size counts the dimension N
    Finite size gap O(1/N)
    Computed by online_sgd.overlap_roots, online_sgd.critical_signal, online_sgd.escape_actions; all of them with their
                rates by online_sgd.spiked_rest_points
    References  benarous2022
    """

    order: int = integer(3, 2, 5, symbol="k", doc="order k of the tensor")
    signal: Array = real(1.5, 0.05, 20.0, log=True, symbol=r"\lambda", doc="strength λ of the spike")
    step: Array = real(0.3, 0.01, 2.0, log=True, symbol="c", doc="step constant c = δN")
    horizon: Array = real(
        10.0, 9.0, 100.0, log=True, symbol="t",
        doc="time after which SGD is taken to be at rest, over the slowest relaxation time at m_*",
    )  # fmt: skip

    usual = Run(sizes=(200, 400, 800), samples=600, batch=100)
    showcase = Showcase(
        ranges={"signal": (0.4, 6.0)},
        see="At a threshold of the signal a positive overlap appears at once, not from zero: a discontinuous "
        "transition.",
    )

    def validity(self):
        critical = float(np.asarray(spiked_tensor.critical_signal(self.order, float(self.step))))
        if float(self.signal) < 1.05 * critical:
            return (
                f"signal = {written(self.signal)} is not above the threshold {critical:.4g} by 5 %; there is no "
                "rest point with an overlap to approach, so raise the signal or take a smaller step",
            )
        return ()

    def theory(self):
        _, overlap = spiked_tensor.overlap_roots(self.signal, self.order, self.step)
        return {
            "overlap": Value(overlap, label="overlap at rest", symbol="m_*", rate=1.0),
            "radius": Value(self.step, label="squared length of the rest", symbol="r", rate=1.0),
        }

    def validity_at(self, size):
        c, k = float(self.step), self.order
        found = []
        # δ times the curvature 2k(2k − 1)R^(2k−2) must stay small where SGD starts, R² = λ^(2/k) + c, and a bit beyond.
        least = 8 * k * c * (1.5 * float(self.signal) ** (2 / k) + c) ** (k - 1)
        if size < least:
            found.append(
                f"at N = {size} SGD diverges; with step = {written(c)} the critical dimension is about "
                f"{least:.3g}, so take a "
                "larger size or a smaller step"
            )
        back = spiked_tensor.escape_actions(float(self.signal), k, c)[1]
        if size * back < SURE:
            found.append(
                f"at N = {size} noise carries SGD back over the saddle, in a time of order exp({back:.2g} N), since "
                f"signal = {written(self.signal)} is near the threshold; take sizes of at least {SURE / back:.0f}, or "
                "a larger signal"
            )
        return tuple(found)

    def at_size(self, size):
        n = whole(size, "N", self, least=3)
        c = float(self.step)
        slowest = _relaxation_rate(float(self.signal), self.order, c)
        steps = whole(math.ceil(float(self.horizon) / slowest * n / c), "steps", self)
        return {"dimension": n, "steps": steps}, self

    def simulate(self, key, *, dimension: int, steps: int):
        c, lam, k = self.step, self.signal, self.order

        def step(sample, state):
            return reduced_chains.spiked_step(sample, state, dimension, lam, k, c)

        start = reduced_chains.SpikedState(lam ** (1 / k), c)
        found = reduced_chains.run(step, reduced_chains.spiked_samples(key, (steps,), dimension), start, [steps])
        return {"overlap": found.overlap[-1], "radius": found.radius[-1]}


def _relaxation_rate(signal: float, order: int, step: float) -> float:
    """How fast the mean of SGD's steps, ṁ = 2km(λm^(k−2) − R^(2k−2)), ṙ = −4kR^(2k−2)(r − c), forgets near its rest."""
    k, c = order, step

    def pull(m):
        return signal * m ** (k - 2) - (m**2 + c) ** (k - 1)

    low, high = np.array([np.sqrt((k - 2) * c / k)]), np.array([signal ** (1 / k)])
    rest = float(roots.on_host(pull, low, high)[0])
    small = 1e-6 * rest
    along = -2 * k * rest * (pull(rest + small) - pull(rest - small)) / (2 * small)
    return min(float(along), 4 * k * (rest**2 + c) ** (k - 1))
