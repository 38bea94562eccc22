r"""Gaussian fluctuations of SGD around the overlap equations."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from deeplimits.ensembles import overlap_chain
from deeplimits.limit import Limit, Run, choice, real, whole
from deeplimits.limits.two_layer.committee_start import steps_at
from deeplimits.models.committees import Overlaps, Task
from deeplimits.predictions import Value
from deeplimits.theory.two_layer.overlaps import fluctuations, integration


class SgdFluctuations(Limit):
    r"""Around the overlap equations SGD fluctuates like a Gaussian process of known covariance.

    Setting     one student, one teacher of unit norm, one-pass SGD with label noise Δ, from M₀ and Q₀
    Limit       d → ∞ at fixed γ and T
    Result      √(d/γ) (Ω^ν − Ω(t)) → N(0, Σ(t)), dΣ/dt = JΣ + ΣJᵀ + D, Σ(0) = 0, J the Jacobian of the equations,
                D the covariance of one step ξ = (E σ'λ*, 2E σ'λ + γ E²σ'²); at a stable fixed point JΣ + ΣJᵀ + D = 0
    Validity    times T ≪ ln d where J has unstable directions; size counts the dimension d
    Finite size covariances deviate by O(1/d)
    References  benarous2022; goldt2019
    """

    activation: str = choice("erf", ("erf", "tanh", "linear"), doc="activation σ")
    rate: Array = real(1.0, 1e-3, 4.0, log=True, symbol=r"\gamma", doc="learning rate")
    noise: Array = real(0.1, 0.0, 10.0, symbol=r"\Delta", doc="variance of the label noise")
    overlap: Array = real(0.3, -0.8, 0.8, symbol="M_0", doc="overlap with the teacher at the start")
    norm: Array = real(0.8, 0.7, 5.0, symbol="Q_0", doc="squared norm of the student at the start")
    time: Array = real(0.5, 0.01, 100.0, log=True, symbol="T", doc="time at which the runs are compared")

    usual = Run(sizes=(16, 200), samples=60_000, batch=1000)

    def _setting(self):
        task = Task(jnp.eye(1), self.rate, self.noise, self.activation)
        return task, Overlaps(self.overlap[None, None], self.norm[None, None])

    def theory(self):
        task, start = self._setting()
        sigma = fluctuations.covariance_flow(task, start, self.time).covariance[0]
        return {
            "teacher_variance": Value(sigma[0, 0], label="variance of M", symbol=r"\Sigma_{MM}", rate=1.0),
            "joint_variance": Value(
                sigma[0, 0] + 2 * sigma[0, 1] + sigma[1, 1],
                label="variance of M + Q",
                symbol=r"\Sigma_{MM}+2\Sigma_{MQ}+\Sigma_{QQ}",
                rate=1.0,
            ),
            "student_variance": Value(sigma[1, 1], label="variance of Q", symbol=r"\Sigma_{QQ}", rate=1.0),
        }

    def at_size(self, size):
        d = whole(size, "d", self, least=2)
        marks, times = steps_at(self.time, d / float(self.rate), self)
        realised = self.replace(time=times[0])
        goal = integration.trajectory(*realised._setting(), times, method="explicit")
        centre = (float(goal.m[0, 0, 0]), float(goal.q[0, 0, 0]))
        return {"dimension": d, "marks": marks, "centre": tuple(np.asarray(centre).tolist())}, realised

    def simulate(self, key, *, dimension: int, marks: tuple[int, ...], centre: tuple[float, float]):
        task, start = self._setting()
        record = overlap_chain.overlap_chain(key, task, start, jnp.array(marks), dimension)
        scale = jnp.sqrt(dimension / self.rate)
        m, q = scale * (record.m[0, 0, 0] - centre[0]), scale * (record.q[0, 0, 0] - centre[1])
        return {"teacher_variance": m**2, "joint_variance": (m + q) ** 2, "student_variance": q**2}
