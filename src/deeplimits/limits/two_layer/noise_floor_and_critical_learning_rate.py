r"""Where label noise stops SGD, and the learning rate it can bear."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from deeplimits.ensembles import overlap_steps
from deeplimits.limit import Limit, Run, integer, real, whole
from deeplimits.models.committees import Overlaps, Task
from deeplimits.numerics.arguments import known
from deeplimits.predictions import Value
from deeplimits.theory.two_layer.overlaps.stationary_risk import critical_learning_rate, noise_floor


class NoiseFloorAndCriticalLearningRate(Limit):
    r"""SGD with label noise never gets below a floor, and above a critical learning rate it does not even stay there.

    Setting     p = k erf students that know the teacher, P = I, a = a* = 1, label noise of variance Δ, constant
                learning rate γ
    Limit       d → ∞, then t → ∞; first order in Δ, exact in γ
    Result      perpendicular fluctuations q obey dq/dt = −(Bq + qB)/p + (γ/p³)T[q] + (γ/p)ΔB, B_ij = E σ'_i σ'_j,
                T[q]_ij = Σ_lm E[σ'_i σ'_j σ'_l σ'_m] q_lm; floor R = (1/2p²) Σ B_ij q_ij at rest;
                γ_c = smallest γ at which the operator has a zero eigenvalue: π√(5/3) for one erf neuron
    Validity    0 < γ < γ_c; Δ small; size counts the dimension d
    Finite size O(1/d) and O(Δ)
    Computed by two_layer.noise_floor, two_layer.critical_learning_rate
    References  saad1995b; goldt2019
    """

    units: int = integer(1, 1, 3, symbol="p", doc="student and teacher units")
    step: Array = real(1.5, 1e-3, 100.0, log=True, symbol=r"\gamma", doc="learning rate")
    noise: Array = real(0.01, 1e-4, 0.3, log=True, symbol=r"\sqrt{\Delta}", doc="standard deviation of the label noise")

    usual = Run(sizes=(20, 80), samples=200, batch=100)

    burn_in = 40.0
    duration = 120.0
    """Times, in units of t, before and after which the risk is averaged."""

    def _task(self):
        return Task(jnp.eye(self.units), self.step, self.noise)

    def validity(self):
        if not known(self.step):
            return ()
        critical = _critical(self.units)
        if float(self.step) < critical:
            return ()
        return (
            f"step = {float(self.step):g} is not below the critical learning rate {critical:.6g}: nothing is at rest",
        )

    def theory(self):
        task = self._task()
        return {
            "floor": Value(
                noise_floor(task) / task.noise_variance,
                label="risk at rest, per noise variance",
                symbol=r"R_\infty/\Delta",
                rate=1.0,
            )
        }

    def at_size(self, size):
        d = whole(size, "d", self, least=2 * self.units)
        per_time = d * self.units / float(self.step)
        marks = tuple(np.round(np.array([self.burn_in, self.burn_in + self.duration]) * per_time).astype(int).tolist())
        return {"dimension": d, "marks": marks}, self

    def simulate(self, key, *, dimension: int, marks: tuple[int, ...]):
        identity = jnp.eye(self.units)
        record = overlap_steps.overlap_chain(
            key, self._task(), Overlaps(identity, identity), jnp.array(marks), dimension
        )
        return {"floor": record.online_risk[-1] / self.noise**2}


@functools.cache
def _critical(units: int) -> float:
    """γ_c of so many units, compiled whole and once."""
    return float(jax.jit(lambda: critical_learning_rate(Task(jnp.eye(units))))())
