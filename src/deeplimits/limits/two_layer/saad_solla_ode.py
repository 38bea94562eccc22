r"""The overlap equations of one-pass SGD."""

import functools
import math

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array

from deeplimits.ensembles import committees as ensemble
from deeplimits.limit import Limit, Run, activation_choice, axis, integer, real, rounded, whole
from deeplimits.limits.two_layer._shared import aligned_start, steps_at, time_curve
from deeplimits.measure import committees as measure
from deeplimits.models.activations import activation
from deeplimits.models.committees import Task
from deeplimits.numerics.arguments import known, written
from deeplimits.showcase import Showcase, log_points
from deeplimits.theory.gaussian import closed_forms
from deeplimits.theory.two_layer.overlaps import integration

LARGEST_KICK = 0.1
"""Of an output weight in one step, per input; at three times as much one of thousands of runs diverged."""


class SaadSollaOde(Limit):
    r"""In high dimension the overlaps of a committee machine under one-pass SGD follow ordinary differential equations.

    Setting     student (1/p)Σ a_i σ(λ_i), teacher (1/k)Σ σ(λ*_r) orthonormal, noise of variance Δ, learning rate γ,
                second layer at relative rate ρ_a, time t = νγ/(dp); start: each student leans towards one teacher
    Limit       d → ∞ at fixed p, k, γ
    Result      dM_ir/dt = a_i Σ_c v_c I₃(i,r,c),  da_i/dt = ρ_a Σ_c v_c I₂(i,c),
                dQ_ij/dt = a_i Σ_c v_c I₃(i,j,c) + a_j Σ_c v_c I₃(j,i,c) + (γ/(pb)) Ψ^var_ij,
                Ψ^var_ij = a_i a_j [Σ_cd v_c v_d I₄(i,j,c,d) + Δ J₂(i,j)]; a batch of b changes the last term only
    Validity    γ, b = O(1), the start not within d^(−1/2) of a saddle; size counts the dimension d
    Finite size means deviate by O(1/d), single runs by O(√(γ/(dp)))
    Computed by two_layer.trajectory, two_layer.batch_terms (minibatch); in the conventions of other authors
                two_layer.from_convention, two_layer.to_convention
    References  saad1995; saad1995b; goldt2019; veiga2022
    """

    activation: str = activation_choice("erf_saad", lambda a: closed_forms.has_fields(a) and a.lipschitz)
    students: int = integer(2, 1, 3, symbol="p", doc="student units")
    teachers: int = integer(1, 1, 3, symbol="k", doc="teacher units")
    step: Array = real(2.0, 1e-3, 20.0, log=True, symbol=r"\gamma", doc="learning rate")
    output_rate: Array = real(0.5, 0.0, 20.0, symbol=r"\rho_a", doc="relative learning rate of the second layer")
    noise: Array = real(0.2236, 0.0, 3.0, symbol=r"\sqrt{\Delta}", doc="standard deviation of the label noise")
    overlap: Array = real(0.3, 0.0, 2.0, symbol="m", doc="overlap of a student with its teacher at the start")
    norm: Array = real(
        0.3, 0.0, 5.0, symbol="q", doc="squared norm of a student outside the teachers' span at the start"
    )
    batch_size: int = integer(2, 1, 100, symbol="b", doc="samples in a batch, for the mini-batch curve")
    times: Array = axis((0.5, 1.0, 2.0), 0.001, 100.0, log=True, symbol="t", doc="times")

    usual = Run(sizes=(24, 48, 96), samples=1000, batch=50)
    showcase = Showcase(
        parameters={
            "students": 2,
            "teachers": 2,
            "overlap": 0.1,
            "output_rate": 0.0,
            "noise": 0.0,
            "step": 1.0,
            "times": log_points(0.01, 100.0, 12),
        },
        size=300,
        samples=8,
        first="teacher_overlap",
        see="Over four decades of time: both students learn the mean of the teachers, wait on a plateau, and "
        "then each takes one teacher.",
    )

    inputs = 400
    """Fresh inputs on which a risk is measured."""

    def _setting(self, batch: ArrayLike = 1):
        task = Task(
            jnp.eye(self.teachers), self.step, self.noise, self.activation, output_rate=self.output_rate, batch=batch
        )
        return task, aligned_start(self.students, self.teachers, self.overlap, self.norm)

    def theory(self):
        # Single samples and mini-batches differ in one number: one solver for both.
        sizes = jnp.array([1.0, float(self.batch_size)])
        both = jax.vmap(lambda batch: integration.trajectory(*self._setting(batch), self.times, method="explicit"))(
            sizes
        )
        single, batched = (jax.tree.map(lambda part, i=index: part[i], both) for index in range(2))

        curve = functools.partial(time_curve, self.times)
        return {
            "risk": curve(single.risk, "risk", "R"),
            "teacher_overlap": curve(single.m[:, 0, 0], "overlap with the teacher", "M_{11}"),
            "student_overlap": curve(single.q[:, 0, 0], "squared norm of a student", "Q_{11}"),
            "output": curve(single.a[:, 0], "output weight", "a_1"),
            "minibatch": curve(batched.q[:, 0, 0], "squared norm of a student, mini-batches", "Q_{11}"),
        }

    def validity_at(self, size):
        if activation(self.activation).bounded or not known(self.step, self.output_rate):
            return ()
        # One step moves an output weight by ρ_aγ/(dp) Eσ: in few dimensions fast layers of unbounded units run away.
        kick = float(self.step) * float(self.output_rate) / self.students
        if kick <= LARGEST_KICK * size:
            return ()
        return (
            f"at d = {size} single steps of the second layer may make it run away with output_rate = "
            f"{written(self.output_rate)} and step = {written(self.step)}; take sizes of at least "
            f"{math.ceil(kick / LARGEST_KICK)}, or smaller ones of these",
        )

    def at_size(self, size):
        d = whole(size, "d", self, least=self.students + self.teachers)
        marks, times = steps_at(self.times, d * self.students / float(self.step), self)
        return {"dimension": d, "marks": marks}, rounded(self, times=times)

    def simulate(self, key, *, dimension: int, marks: tuple[int, ...]):
        sgd_key, test_key = jax.random.split(key)
        task, start = self._setting()
        network = ensemble.with_overlaps(task, start, dimension)
        # Two networks on one stream of samples: the first learns from one of each batch, the second from all.
        shares = jnp.stack([jnp.eye(self.batch_size)[0], jnp.full(self.batch_size, 1 / self.batch_size)])
        train = jax.vmap(lambda shares: ensemble.one_pass_sgd(sgd_key, task, network, jnp.array(marks), shares=shares))
        both = train(shares).record
        record, batched = (jax.tree.map(lambda part, i=index: part[i], both) for index in range(2))
        return {
            "risk": measure.risk_on_fresh_inputs(test_key, task, record, self.inputs).value,
            "teacher_overlap": record.m[:, 0, 0],
            "student_overlap": record.q[:, 0, 0],
            "output": record.a[:, 0],
            "minibatch": batched.q[:, 0, 0],
        }
