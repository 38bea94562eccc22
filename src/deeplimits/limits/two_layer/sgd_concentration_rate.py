r"""How closely one run of SGD follows the overlap equations."""

import math

import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import committees as ensemble
from deeplimits.ensembles import overlap_steps
from deeplimits.limit import Limit, Run, choice, integer, real, rounded, whole
from deeplimits.limits.two_layer._shared import aligned_start, steps_at
from deeplimits.models.committees import Task
from deeplimits.numerics.arguments import known, written
from deeplimits.predictions import Exponent
from deeplimits.showcase import Showcase
from deeplimits.theory.two_layer.overlaps import integration

LONGEST_STEP = 0.03
"""Of time, in which the equations may not change much."""
FEWEST_STEPS = 20
"""In the time up to which a run is compared."""


class SgdConcentrationRate(Limit):
    r"""A single run of one-pass SGD stays within O(√(γ/(dp))) of the overlap equations.

    Setting     committee machine under one-pass SGD, overlaps Ω^ν after ν steps, Ω(t) the solution of the equations
    Limit       d → ∞ at fixed p, k, γ, T
    Result      E‖Ω^ν − Ω(νδt)‖_∞ ≤ e^(Cνδt) √(γ/(dp)) for νδt ≤ T; the rate is attained: the largest
                deviation at T/4, T/2, 3T/4 and T is ∝ d^(−1/2) in the mean
    Validity    γ/p = O(1); the constant e^(CT) is real near a saddle; size counts the dimension d
    Finite size the power law is corrected by O(1/d)
    Computed by two_layer.trajectory; the constant, and the powers of γ and p, by two_layer.concentration
    References  veiga2022 Thm 3.1
    """

    students: int = integer(2, 1, 4, symbol="p", doc="student units")
    teachers: int = integer(1, 1, 4, symbol="k", doc="teacher units")
    step: Array = real(1.5, 1e-3, 20.0, log=True, symbol=r"\gamma", doc="learning rate")
    noise: Array = real(0.2236, 0.0, 3.0, symbol=r"\sqrt{\Delta}", doc="standard deviation of the label noise")
    overlap: Array = real(0.3, 0.0, 2.0, symbol="m", doc="overlap of a student with its teacher at the start")
    norm: Array = real(
        0.3, 0.0, 5.0, symbol="q", doc="squared norm of a student outside the teachers' span at the start"
    )
    time: Array = real(0.5, 0.01, 100.0, log=True, symbol="T", doc="time up to which the run is compared")
    simulator: str = choice(
        "chain", ("chain", "weights"), doc="exact Markov chain of the overlaps, or SGD in weight space"
    )

    usual = Run(sizes=(60, 240, 960), samples=3000, batch=300)
    showcase = Showcase(see="The largest deviation of one run from the equations falls like d^(−1/2).")

    looks = 4
    """At how many times up to T a run is compared."""

    def validity_at(self, size):
        if not known(self.step, self.time):
            return ()
        step, time = float(self.step), float(self.time)
        # One step lasts γ/(dp), which the equations take to be no time at all.
        longest = min(LONGEST_STEP, time / FEWEST_STEPS)
        if step <= longest * size * self.students:
            return ()
        least = math.ceil(step / (longest * self.students))
        return (
            f"step = {written(step)} makes steps of time {step / (size * self.students):.2g} at d = {size} with "
            f"{self.students} students, not small beside 1 and time = {written(time)}; take sizes of at "
            f"least {least}, or a "
            "smaller step",
        )

    def _setting(self):
        task = Task(jnp.eye(self.teachers), self.step, self.noise)
        return task, aligned_start(self.students, self.teachers, self.overlap, self.norm)

    def theory(self):
        times = self.time * jnp.arange(1.0, self.looks + 1) / self.looks
        path = integration.trajectory(*self._setting(), times, method="explicit")
        return {
            "deviation": Exponent(
                -0.5,
                centre=_stacked(path),
                label="largest deviation of an overlap",
                symbol=r"E\|\Omega^\nu-\Omega\|_\infty",
            )
        }

    def at_size(self, size):
        d = whole(size, "d", self, least=self.students + self.teachers)
        (quarter,), times = steps_at(self.time / self.looks, d * self.students / float(self.step), self)
        marks = tuple(look * quarter for look in range(1, self.looks + 1))
        return {"dimension": d, "marks": marks}, rounded(self, time=self.looks * times[0])

    def simulate(self, key, *, dimension: int, marks: tuple[int, ...]):
        task, start = self._setting()
        if self.simulator == "chain":
            record = overlap_steps.overlap_chain(key, task, start, jnp.array(marks), dimension)
        else:
            network = ensemble.with_overlaps(task, start, dimension)
            record = ensemble.one_pass_sgd(key, task, network, jnp.array(marks)).record
        return {"deviation": _stacked(record)}


def _stacked(path) -> Array:
    """M and Q at all times, in one vector."""
    return jnp.concatenate([jnp.ravel(path.m), jnp.ravel(path.q)])
