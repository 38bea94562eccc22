r"""The risk of a committee machine is a function of its overlaps."""

import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import committees as ensemble
from deeplimits.limit import Limit, Run, activation_choice, integer, real, whole
from deeplimits.limits.two_layer._shared import aligned_start
from deeplimits.models.committees import Task
from deeplimits.numerics import draws
from deeplimits.predictions import Value
from deeplimits.showcase import Showcase
from deeplimits.theory.gaussian import closed_forms
from deeplimits.theory.two_layer.overlaps import equations
from deeplimits.theory.two_layer.overlaps.integrals import activation_integrals


class PopulationRiskFromOverlaps(Limit):
    r"""Overlaps are sufficient: risk and Gaussian integrals from a few numbers, at every dimension.

    Setting     student f = (1/p)Σ a_i σ(λ_i), teacher f* = (1/k)Σ σ(λ*_r), fields λ = ⟨w, x⟩/√d, x ~ N(0, I_d)
    Limit       none is needed: exact at every d
    Result      R = E(f* − f)²/2 = ½ Σ_cc' v_c v_c' I₂(c, c'), a function of Ω = [[Q, M], [Mᵀ, P]] alone
                I₂ = E σ_a σ_b, J₂ = E σ'_a σ'_b, I₃ = E σ'_a λ_b σ_c, I₄ = E σ'_a σ'_b σ_c σ_d, shown for the fields
                a = first student, b = second student, c = first teacher, d = second teacher
    Validity    p, k ≥ 2 here, d ≥ p + k; size counts the dimension d
    Finite size exact
    Computed by two_layer.risk, two_layer.activation_integrals, two_layer.covariance
    References  saad1995; goldt2019
    """

    activation: str = activation_choice(
        "erf_saad", lambda a: closed_forms.has_fields(a) or (a.odd and a.smooth and a.bounded)
    )
    students: int = integer(3, 2, 4, symbol="p", doc="student units")
    teachers: int = integer(2, 2, 4, symbol="k", doc="teacher units")
    overlap: Array = real(0.5, 0.0, 2.0, symbol="m", doc="overlap of a student with its teacher at the start")
    norm: Array = real(0.5, 0.0, 5.0, symbol="q", doc="squared norm of a student outside the teachers' span")

    usual = Run(sizes=(8, 16, 32), samples=1000, batch=20)
    showcase = Showcase(see="The risk and the Gaussian integrals behind it, from overlaps alone.")

    inputs = 1200
    """Fresh inputs in each measurement."""

    def _setting(self):
        start = aligned_start(self.students, self.teachers, self.overlap, self.norm)
        return Task(jnp.eye(self.teachers), 1.0, 0.0, self.activation), start

    def _indices(self):
        return 0, 1, self.students, self.students + 1

    def theory(self):
        task, start = self._setting()
        integrals = activation_integrals(self.activation)
        omega = equations.covariance(task, start)
        a, b, c, d = self._indices()
        return {
            "risk": Value(equations.risk(task, start), label="risk", symbol="R"),
            "i2": Value(integrals.i2(omega, a, c), label="second moment", symbol=r"E\,\sigma_a\sigma_c"),
            "j2": Value(integrals.j2(omega, a, b), label="second moment of slopes", symbol=r"E\,\sigma'_a\sigma'_b"),
            "i3": Value(integrals.i3(omega, a, c, b), label="gradient moment", symbol=r"E\,\sigma'_a\lambda_c\sigma_b"),
            "i4": Value(integrals.i4(omega, a, b, c, d), label="noise moment", symbol=r"E\,\sigma'\sigma'\sigma\sigma"),
        }

    def at_size(self, size):
        d = whole(size, "d", self, least=self.students + self.teachers)
        return {"dimension": d}, self

    def simulate(self, key, *, dimension: int):
        task, start = self._setting()
        network = ensemble.with_overlaps(task, start, dimension)
        x = draws.draw(key, (self.inputs,), dimension).gaussians
        clean = ensemble.residual(task, network, x).clean
        fields = x @ jnp.concatenate([network.w, network.teacher]).T / jnp.sqrt(1.0 * dimension)
        a, b, c, d = (fields[:, index] for index in self._indices())
        value, slope = task.activation.value, task.activation.derivative
        return {
            "risk": jnp.mean(clean**2) / 2,
            "i2": jnp.mean(value(a) * value(c)),
            "j2": jnp.mean(slope(a) * slope(b)),
            "i3": jnp.mean(slope(a) * c * value(b)),
            "i4": jnp.mean(slope(a) * slope(b) * value(c) * value(d)),
        }
