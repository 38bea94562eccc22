r"""Gaussian fluctuations of SGD around the overlap equations."""

import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import overlap_steps
from deeplimits.limit import Limit, Run, activation_choice, real, rounded, whole
from deeplimits.limits.two_layer._shared import steps_at
from deeplimits.models.committees import Overlaps, Task
from deeplimits.predictions import Value
from deeplimits.showcase import Showcase
from deeplimits.theory.two_layer.overlaps import fluctuations


class SgdFluctuations(Limit):
    r"""Around the overlap equations SGD fluctuates like a Gaussian process of known covariance.

    Setting     one student, one teacher of unit norm, one-pass SGD with label noise of variance Δ, from M₀ and Q₀
    Limit       d → ∞ at fixed γ and T
    Result      √(d/γ) (Ω^ν − Ω(t)) → N(0, Σ(t)), dΣ/dt = JΣ + ΣJᵀ + D, Σ(0) = 0, J the Jacobian of the equations,
                D the covariance of one step ξ = (E σ'λ*, 2E σ'λ + γ E²σ'²); at a stable fixed point JΣ + ΣJᵀ + D = 0
    Validity    times T ≪ ln d where J has unstable directions; size counts the dimension d
    Finite size covariances deviate by O(1/d)
    Computed by two_layer.covariance_flow; at rest two_layer.overlaps.stationary_covariance
    References  benarous2022; goldt2019
    """

    activation: str = activation_choice("erf_saad", lambda a: a.odd and a.smooth and a.increasing and a.lipschitz)
    step: Array = real(1.0, 1e-3, 2.0, log=True, symbol=r"\gamma", doc="learning rate")
    noise: Array = real(0.3162, 0.0, 3.0, symbol=r"\sqrt{\Delta}", doc="standard deviation of the label noise")
    overlap: Array = real(0.3, -0.8, 0.8, symbol="M_0", doc="overlap with the teacher at the start")
    norm: Array = real(0.8, 0.7, 5.0, symbol="Q_0", doc="squared norm of the student at the start")
    time: Array = real(0.5, 0.01, 20.0, log=True, symbol="T", doc="time at which the runs are compared")

    usual = Run(sizes=(16, 50, 200), samples=60_000, batch=1000)
    showcase = Showcase(
        over="time", see="Rescaled fluctuations around the overlap equations have the predicted variance."
    )

    def _setting(self):
        task = Task(jnp.eye(1), self.step, self.noise, self.activation)
        return task, Overlaps(self.overlap[None, None], self.norm[None, None])

    def theory(self):
        flow = fluctuations.covariance_flow(*self._setting(), self.time)
        (m, q), sigma = flow.mean[0], self.step * flow.covariance[0]

        def variance(value, about, label, symbol):
            return Value(value, about=about, power=1.0, label=label, symbol=symbol, rate=1.0)

        # d E(Ω^ν − Ω(T))² → γΣ
        return {
            "teacher_variance": variance(sigma[0, 0], m, "variance of M, times d", r"\gamma\Sigma_{MM}"),
            "joint_variance": variance(
                sigma[0, 0] + 2 * sigma[0, 1] + sigma[1, 1],
                m + q,
                "variance of M + Q, times d",
                r"\gamma(\Sigma_{MM}+2\Sigma_{MQ}+\Sigma_{QQ})",
            ),
            "student_variance": variance(sigma[1, 1], q, "variance of Q, times d", r"\gamma\Sigma_{QQ}"),
        }

    def at_size(self, size):
        d = whole(size, "d", self, least=2)
        marks, times = steps_at(self.time, d / float(self.step), self)
        return {"dimension": d, "marks": marks}, rounded(self, time=times[0])

    def simulate(self, key, *, dimension: int, marks: tuple[int, ...]):
        record = overlap_steps.overlap_chain(key, *self._setting(), jnp.array(marks), dimension)
        m, q = record.m[0, 0, 0], record.q[0, 0, 0]
        return {"teacher_variance": m, "joint_variance": m + q, "student_variance": q}
