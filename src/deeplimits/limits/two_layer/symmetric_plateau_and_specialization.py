r"""Students that cannot tell their teachers apart, until they do."""

import functools

import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import overlap_steps
from deeplimits.limit import Limit, Run, axis, integer, real, rounded, whole
from deeplimits.limits.two_layer._shared import steps_at, time_curve
from deeplimits.models.committees import Overlaps, Task
from deeplimits.showcase import Showcase, log_points
from deeplimits.theory.two_layer.overlaps import integration


class SymmetricPlateauAndSpecialization(Limit):
    r"""Learning stalls on a symmetric plateau and goes on when the students specialize.

    Setting     K erf students, K orthonormal erf teachers, a = a* = 1, no noise; start on the plateau
                Q_ij = 1/(2K−1), M_ir = 1/√(K(2K−1)), with M_ii raised and the other M_ir lowered by an asymmetry δ₀ and
                students made slightly different, Q_ij + δ₀(δ_ij − 1/K)
    Limit       d → ∞; the closed forms of the plateau for γ → 0
    Result      R_plateau = (1/(πK))[π/6 − K arcsin(1/(2K))], escape rate λ = (2/π)(2K−1)^(−1/2)(2K+1)^(−3/2),
                plateau length ≃ ln(1/δ₀)/λ, that is (1/2λ) ln d from a random start;
                specialization M_11 − M_12 along the overlap equations at the learning rate in use
    Validity    K ≥ 2; an asymmetry well above d^(−1/2), below which noise decides when the plateau ends; size counts d
    Finite size means deviate by O(1/d), amplified along the plateau
    Computed by two_layer.trajectory; the plateau and its end by two_layer.symmetric_plateau, two_layer.plateau_length,
                two_layer.specialization_time
    References  saad1995; saad1995b
    """

    units: int = integer(2, 2, 6, symbol="K", doc="student and teacher units")
    step: Array = real(2.0, 1e-3, 10.0, log=True, symbol=r"\gamma", doc="learning rate")
    asymmetry: Array = real(
        0.15, 1e-4, 0.3, log=True, symbol=r"\delta_0", doc="initial difference of the teacher overlaps"
    )
    times: Array = axis((5.0, 15.0, 30.0, 45.0), 0.001, 1e4, log=True, symbol="t", doc="times")

    usual = Run(sizes=(60, 240), samples=150, batch=100)
    showcase = Showcase(
        parameters={"asymmetry": 0.1, "times": log_points(0.1, 300.0, 10)},
        size=1000,
        samples=16,
        ranges={"asymmetry": (0.001, 0.3), "step": (0.1, 6.0)},
        see="Learning stalls on the plateau for a time that grows with the logarithm of the asymmetry, then "
        "the students specialize.",
    )

    def _setting(self):
        k = self.units
        # Q = 1/(2K−1) and M = 1/√(K(2K−1)) everywhere, with the asymmetry added to both
        asymmetry = self.asymmetry * (jnp.eye(k) - 1 / k)
        start = Overlaps((k * (2 * k - 1)) ** -0.5 + asymmetry, 1 / (2 * k - 1) + asymmetry)
        return Task(jnp.eye(k), self.step), start

    def theory(self):
        path = integration.trajectory(*self._setting(), self.times, method="explicit")

        curve = functools.partial(time_curve, self.times)
        return {
            "specialization": curve(path.m[:, 0, 0] - path.m[:, 0, 1], "specialization", "M_{11}-M_{12}"),
            "teacher_overlap": curve(path.m[:, 0, 0], "overlap with the own teacher", "M_{11}"),
            "student_overlap": curve(path.q[:, 0, 1], "overlap of two students", "Q_{12}"),
        }

    def at_size(self, size):
        d = whole(size, "d", self, least=2 * self.units)
        marks, times = steps_at(self.times, d * self.units / float(self.step), self)
        return {"dimension": d, "marks": marks}, rounded(self, times=times)

    def simulate(self, key, *, dimension: int, marks: tuple[int, ...]):
        record = overlap_steps.overlap_chain(key, *self._setting(), jnp.array(marks), dimension)
        return {
            "specialization": record.m[:, 0, 0] - record.m[:, 0, 1],
            "teacher_overlap": record.m[:, 0, 0],
            "student_overlap": record.q[:, 0, 1],
        }
