r"""Spiked matrices and tensors under online SGD."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from deeplimits.ensembles import reduced_chains
from deeplimits.errors import OutsideValidity
from deeplimits.limit import Limit, Run, integer, real, rounded, whole
from deeplimits.limits.online_sgd._shared import even_times
from deeplimits.numerics.arguments import written
from deeplimits.predictions import Curve, Exponent, Value
from deeplimits.showcase import Showcase
from deeplimits.theory.online_sgd import spiked_tensor

POINTS = 5


class SpikedTensorBallistic(Limit):
    r"""Overlap and radius of SGD on a spiked matrix or tensor follow two ODEs.

    Setting     Y = λv^(⊗k) + W, W with independent standard Gaussian entries, L = |Y − x^(⊗k)|², x' = x − δ∇L, δ = c/N,
                t = δ·steps; m = ⟨x, v⟩, r = |x|² − m², R² = m² + r
    Limit       N → ∞ with c fixed
    Result      dm/dt = 2km(λm^(k−2) − R^(2k−2)), dr/dt = −4kR^(2k−2)(r − c); the c is the corrector
                N Cov(m, r) → C, dC/dt = JC + CJ' + D, J the Jacobian of the velocity
                a single path is off by O(N^(−1/2))
    Validity    k ≥ 2, r > 0; for k ≥ 3 the gradient grows faster than linearly and a step too large for N
                explodes; size counts the dimension N
    Finite size mean gap O(1/N) and gap O(1/N) of the variance, which is measured by two runs, N E(m − m')²/2: the
                squared gap of the mean, of the same order, would add to it. √N(m_N − m) = ζ + N^(−1/2)η + O(1/N) with η
                even in the Gaussian ζ, so that in E sup|ζ + N^(−1/2)η| the first order, E sign(ζ)η at the time of the
                supremum, is zero: the mean distance has a relative gap O(1/N)
    Computed by online_sgd.ballistic_with_fluctuations; the path alone by online_sgd.spiked_ballistic, its equation by
                online_sgd.spiked_dynamics; Φ and the covariance V of the gradient by online_sgd.spiked_loss,
                online_sgd.spiked_gradient_covariance
    References  benarous2022
    """

    order: int = integer(2, 2, 5, symbol="k", doc="order k of the tensor")
    signal: Array = real(2.0, 0.0, 8.0, symbol=r"\lambda", doc="strength λ of the spike")
    step: Array = real(1.0, 0.01, 2.0, log=True, symbol="c", doc="step constant c = δN")
    overlap: Array = real(0.3, -1.5, 1.5, symbol="m_0", doc="overlap at the start")
    radius: Array = real(0.7, 0.01, 2.0, symbol="r_0", doc="squared length of the rest at the start")
    horizon: Array = real(0.1, 0.01, 2.0, log=True, symbol="t", doc="time up to which SGD is followed")

    usual = Run(sizes=(100, 400, 1600), samples=40_000, batch=2000)
    showcase = Showcase(
        parameters={"horizon": 0.3},
        see="Overlap and radius follow two equations; the step size enters through the corrector.",
    )

    def _start(self):
        return jnp.stack([self.overlap, self.radius])

    def theory(self):
        times = even_times(self.horizon, POINTS)
        path, covariance = spiked_tensor.ballistic_with_fluctuations(
            self.signal, self.order, self.step, self._start(), times
        )
        shared = {"axis": "time", "axis_symbol": "t", "rate": 1.0}
        return {
            "overlap": Curve(times, path[:, 0], label="overlap", symbol="m", **shared),
            "radius": Curve(times, path[:, 1], label="squared length of the rest", symbol="r", **shared),
            "fluctuation": Value(
                covariance[-1, 0, 0], label="scaled variance of m", symbol=r"N\,\mathrm{Var}\,m", rate=1.0
            ),
            "path_gap": Exponent(
                -0.5, centre=path[:, 0], correction=1.0, label="distance from the ODE", symbol=r"\sup_t|m_N-m|"
            ),
        }  # fmt: skip

    def at_size(self, size):
        n = whole(size, "N", self, least=3)
        largest = max(
            float(self.overlap) ** 2 + float(self.radius), float(self.step), float(self.signal) ** (2 / self.order)
        )
        # Six times where a typical step would be too long: of tens of thousands of runs one is never typical.
        least = 24 * self.order * float(self.step) * largest ** (self.order - 1)
        if n < least:
            raise OutsideValidity(
                f"SpikedTensorBallistic: at N = {n} SGD may diverge; with step = {written(self.step)} the "
                f"dimension must be at least {least:.4g}: take such a size, or a smaller step"
            )
        every = whole(float(self.horizon) * n / float(self.step) / POINTS, "steps between records", self)
        return {"dimension": n, "every": every}, rounded(self, horizon=every * POINTS * float(self.step) / n)

    def simulate(self, key, *, dimension: int, every: int):
        def step(sample, state):
            return reduced_chains.spiked_step(sample, state, dimension, self.signal, self.order, self.step)

        start = reduced_chains.SpikedState(*(jnp.broadcast_to(x, (2,)) for x in (self.overlap, self.radius)))
        samples = reduced_chains.spiked_samples(key, (POINTS * every, 2), dimension)
        found = reduced_chains.run(jax.vmap(step), samples, start, every * np.arange(1, POINTS + 1))
        overlap, other = found.overlap.T
        return {
            "overlap": overlap,
            "radius": found.radius[:, 0],
            "fluctuation": dimension * (overlap[-1] - other[-1]) ** 2 / 2,
            "path_gap": overlap,
        }
