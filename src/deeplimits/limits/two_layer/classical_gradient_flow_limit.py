r"""Small learning rates: SGD becomes gradient flow, whose overlap equations hold in every dimension."""

import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import committees as ensemble
from deeplimits.limit import Limit, Run, activation_choice, axis, integer, real, rounded, whole
from deeplimits.limits.two_layer._shared import aligned_start, no_room, steps_at, time_curve
from deeplimits.measure import committees as measure
from deeplimits.models.activations import activation
from deeplimits.models.committees import Task
from deeplimits.showcase import Showcase, log_points
from deeplimits.theory.gaussian import closed_forms
from deeplimits.theory.two_layer.overlaps import integration


class ClassicalGradientFlowLimit(Limit):
    r"""As the learning rate vanishes, SGD follows gradient flow on the risk; its overlaps close in every dimension.

    Setting     committee machine in fixed dimension d under one-pass SGD with learning rate γ, time t = νγ/(dp)
    Limit       γ → 0 at fixed d and p
    Result      Θ̇ = −∇R; by Stein's lemma ∇R lies in the span of all weights, so that M and Q obey the overlap equations
                without their variance term, exactly, whatever d ≥ p + k: curves at d = 5, 10, 50 collapse
    Validity    d ≥ p + k; size counts 1/γ, for a quadratic activation in units of 24Q/p, Q the largest squared norm:
                a step multiplies the error on its own sample by 1 − 4γλ²/p, and SGD diverges where that overshoots
    Finite size means deviate by O(γ/p), single runs by O(√(γ/(dp)))
    Computed by two_layer.trajectory, with variance=False
    References  robbins1951; saad1995
    """

    activation: str = activation_choice(
        "erf_saad", lambda a: closed_forms.has_fields(a) and (a.lipschitz or a.homogeneous == 2)
    )
    students: int = integer(2, 1, 3, symbol="p", doc="student units")
    teachers: int = integer(1, 1, 3, symbol="k", doc="teacher units")
    dimension: int = integer(5, 2, 1000, log=True, symbol="d", doc="dimension of the input")
    overlap: Array = real(0.2, 0.0, 2.0, symbol="m", doc="overlap of a student with its teacher at the start")
    norm: Array = real(
        0.4, 0.0, 5.0, symbol="q", doc="squared norm of a student outside the teachers' span at the start"
    )
    times: Array = axis((0.5, 1.0, 2.0), 0.001, 100.0, log=True, symbol="t", doc="times")

    usual = Run(sizes=(3, 6, 12), samples=800, batch=100)
    showcase = Showcase(
        parameters={"times": log_points(0.05, 20.0, 9)},
        see="The risk falls in one way whatever the dimension: the overlaps close.",
    )

    inputs = 400
    """Fresh inputs on which a risk is measured."""

    def validity(self):
        return no_room(self)

    def _setting(self, step: float = 0.0):
        task = Task(jnp.eye(self.teachers), step, 0.0, self.activation)
        return task, aligned_start(self.students, self.teachers, self.overlap, self.norm)

    def theory(self):
        flow = integration.trajectory(*self._setting(), self.times, method="explicit", variance=False)

        curve = functools.partial(time_curve, self.times)
        return {
            "risk": curve(flow.risk, "risk", "R"),
            "teacher_overlap": curve(flow.m[:, 0, 0], "overlap with the teacher", "M_{11}"),
            "student_overlap": curve(flow.q[:, 0, 0], "squared norm of a student", "Q_{11}"),
        }

    def at_size(self, size):
        unit = 1.0
        if activation(self.activation).homogeneous == 2:
            # Far below γ = p/(6Q), where SGD becomes unstable: a rare sample that doubles Q must not be the end of it.
            norm = float(self.overlap) ** 2 * (1 + (self.teachers - 1) / 9) + float(self.norm)
            unit = max(1.0, 24 * max(norm, 1.0) / self.students)
        inverse = whole(size * unit, "1/gamma", self)
        marks, times = steps_at(self.times, self.dimension * self.students * inverse, self)
        return {"inverse_rate": inverse, "marks": marks}, rounded(self, times=times)

    def simulate(self, key, *, inverse_rate: int, marks: tuple[int, ...]):
        sgd_key, test_key = jax.random.split(key)
        task, start = self._setting(1 / inverse_rate)
        network = ensemble.with_overlaps(task, start, self.dimension)
        record = ensemble.one_pass_sgd(sgd_key, task, network, jnp.array(marks)).record
        return {
            "risk": measure.risk_on_fresh_inputs(test_key, task, record, self.inputs).value,
            "teacher_overlap": record.m[:, 0, 0],
            "student_overlap": record.q[:, 0, 0],
        }
