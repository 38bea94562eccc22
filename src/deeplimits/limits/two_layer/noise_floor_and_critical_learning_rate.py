r"""Where label noise stops SGD, and the learning rate it can bear."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from deeplimits.ensembles import overlap_steps
from deeplimits.limit import Limit, Run, integer, real, whole
from deeplimits.models.committees import Overlaps, Task
from deeplimits.numerics.arguments import known, written
from deeplimits.predictions import Value
from deeplimits.showcase import Showcase
from deeplimits.theory.two_layer.overlaps.stationary_risk import critical_learning_rate, noise_floor

SECOND_ORDER = 0.0025
"""What the neglected order in Δ may be, relative to the floor."""


class NoiseFloorAndCriticalLearningRate(Limit):
    r"""SGD with label noise never gets below a floor, and above a critical learning rate it does not even stay there.

    Setting     p = k erf students that know the teacher, P = I, a = a* = 1, label noise of variance Δ, constant
                learning rate γ
    Limit       d → ∞, then t → ∞; first order in Δ, exact in γ
    Result      perpendicular fluctuations q obey dq/dt = −(Bq + qB)/p + (γ/p³)T[q] + (γ/p)ΔB, B_ij = E σ'_i σ'_j,
                T[q]_ij = Σ_lm E[σ'_i σ'_j σ'_l σ'_m] q_lm; floor R = (1/2p²) Σ B_ij q_ij at rest;
                γ_c = smallest γ at which the operator has a zero eigenvalue: π√(5/3) for one erf neuron
    Validity    0 < γ < γ_c; 6pR/(1 − γ/γ_c) ≪ 1, beyond which the second order in Δ shows; size counts the dimension d
    Finite size O(1/d) and O(Δ)
    Computed by two_layer.noise_floor, two_layer.critical_learning_rate, two_layer.fixed_point
    References  saad1995b; goldt2019
    """

    units: int = integer(1, 1, 3, symbol="p", doc="student and teacher units")
    step: Array = real(1.5, 1e-3, 100.0, log=True, symbol=r"\gamma", doc="learning rate")
    noise: Array = real(0.01, 1e-4, 0.3, log=True, symbol=r"\sqrt{\Delta}", doc="standard deviation of the label noise")

    usual = Run(sizes=(20, 80), samples=200, batch=100)
    showcase = Showcase(
        ranges={"step": (0.1, 6.0)},
        see="The floor grows with the learning rate and rises without bound at a critical one.",
    )

    burn_in = 40.0
    duration = 120.0
    """Times, in units of t, before and after which the risk is averaged."""

    def _task(self):
        return Task(jnp.eye(self.units), self.step, self.noise)

    def validity(self):
        if not known(self.step, self.noise):
            return ()
        critical, floor = _around(self.units, float(self.step))
        step, noise = float(self.step), float(self.noise)
        if step >= critical:
            return (
                f"step = {written(step)} is not below the critical learning rate {critical:.6g}: nothing is at rest",
            )
        # The term of second order, measured by `two_layer.fixed_point` at p = 1, 2, 3 and γ/γ_c from 0.05 to 0.9:
        # between −1.2 and −5.6 times pR/(1 − γ/γ_c), relative to the first.
        second = 6 * self.units * floor / (1 - step / critical)
        if second * noise**2 <= SECOND_ORDER:
            return ()
        return (
            f"noise = {written(noise)} is too large for the first order at step = {written(step)}; take at most "
            f"{math.sqrt(SECOND_ORDER / second):.3g}, or solve for the state of rest (two_layer.fixed_point)",
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
def _around(units: int, step: float) -> tuple[float, float]:
    """γ_c, and the floor per noise variance; just below γ_c where the step is not."""
    critical, floor = _program(units)(step)
    return float(critical), float(floor)


@functools.cache
def _program(units: int):
    """Compiled whole and once."""

    def found(step):
        critical = critical_learning_rate(Task(jnp.eye(units)))
        return critical, noise_floor(Task(jnp.eye(units), jnp.minimum(step, 0.999 * critical), 1.0))

    return jax.jit(found)
