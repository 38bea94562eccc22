r"""How closely one run of SGD follows the overlap equations."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from deeplimits.ensembles import committees as ensemble
from deeplimits.ensembles import overlap_chain
from deeplimits.limit import Limit, Run, choice, integer, real, whole
from deeplimits.limits.two_layer.committee_start import aligned_start, steps_at
from deeplimits.models.committees import Task
from deeplimits.predictions import Exponent
from deeplimits.theory.two_layer.overlaps import integration


class SgdConcentration(Limit):
    r"""A single run of one-pass SGD stays within O(√(γ/(dp))) of the overlap equations.

    Setting     committee machine under one-pass SGD, overlaps Ω^ν after ν steps, Ω(t) the solution of the equations
    Limit       d → ∞ at fixed p, k, γ, T
    Result      E‖Ω^ν − Ω(νδt)‖_∞ ≤ e^(Cνδt) √(γ/(dp)) for νδt ≤ T; the rate is attained: E‖Ω^ν − Ω(T)‖_∞ ∝ d^(−1/2)
    Validity    γ/p = O(1); the constant e^(CT) is real near a saddle; size counts the dimension d
    Finite size the power law is corrected by O(1/d)
    References  veiga2022 Thm 3.1
    """

    students: int = integer(2, 1, 4, symbol="p", doc="student units")
    teachers: int = integer(1, 1, 4, symbol="k", doc="teacher units")
    rate: Array = real(1.5, 1e-3, 20.0, log=True, symbol=r"\gamma", doc="learning rate")
    noise: Array = real(0.05, 0.0, 10.0, symbol=r"\Delta", doc="variance of the label noise")
    overlap: Array = real(0.3, 0.0, 2.0, symbol="m", doc="overlap of a student with its teacher at the start")
    norm: Array = real(
        0.3, 0.0, 5.0, symbol="q", doc="squared norm of a student outside the teachers' span at the start"
    )
    time: Array = real(0.5, 0.01, 100.0, log=True, symbol="T", doc="time at which the run is compared")
    simulator: str = choice(
        "chain", ("chain", "weights"), doc="exact Markov chain of the overlaps, or SGD in weight space"
    )

    usual = Run(sizes=(100, 400, 1600), samples=3000, batch=500)

    def _setting(self):
        task = Task(jnp.eye(self.teachers), self.rate, self.noise)
        return task, aligned_start(self.students, self.teachers, self.overlap, self.norm)

    def theory(self):
        return {
            "deviation": Exponent(
                jnp.asarray(-0.5), label="largest deviation of an overlap", symbol=r"E\|\Omega^\nu-\Omega\|_\infty"
            )
        }

    def at_size(self, size):
        d = whole(size, "d", self, least=self.students + self.teachers)
        marks, times = steps_at(self.time, d * self.students / float(self.rate), self)
        realised = self.replace(time=times[0])
        task, start = realised._setting()
        goal = integration.trajectory(task, start, times, method="explicit")
        overlaps = np.concatenate([np.ravel(goal.m[0]), np.ravel(goal.q[0])])
        return {"dimension": d, "marks": marks, "goal": tuple(overlaps.tolist())}, realised

    def simulate(self, key, *, dimension: int, marks: tuple[int, ...], goal: tuple[float, ...]):
        task, start = self._setting()
        if self.simulator == "chain":
            record = overlap_chain.overlap_chain(key, task, start, jnp.array(marks), dimension)
        else:
            weights_key, sgd_key = jax.random.split(key)
            network = ensemble.with_overlaps(weights_key, task, start, dimension)
            record, _ = ensemble.one_pass_sgd(sgd_key, task, network, jnp.array(marks))
        found = jnp.concatenate([jnp.ravel(record.m[0]), jnp.ravel(record.q[0])])
        return {"deviation": jnp.max(jnp.abs(found - jnp.array(goal)))}
