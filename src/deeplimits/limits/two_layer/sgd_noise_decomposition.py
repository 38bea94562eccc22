r"""A stochastic gradient is the population gradient plus noise."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import committees as ensemble
from deeplimits.limit import Limit, Run, activation_choice, integer, real
from deeplimits.limits.two_layer._shared import aligned_start, in_dimension, no_room
from deeplimits.measure import committees as measure
from deeplimits.models.committees import Task
from deeplimits.numerics import draws
from deeplimits.predictions import Value
from deeplimits.showcase import Showcase
from deeplimits.theory.gaussian import closed_forms
from deeplimits.theory.two_layer.overlaps import equations


class SgdNoiseDecomposition(Limit):
    r"""Size of the gradient noise of a fresh mini-batch, exactly at every dimension.

    Setting     committee machine at given overlaps, loss ℓ = E²/2, fresh batch of b samples;
                Θ⁺ = Θ − γ∇R + γε, ε = ∇(R − R̂_b), E ε = 0, Cov ε = Cov(∇ℓ)/b
    Limit       none is needed; d → ∞ gives Ψ^var of the overlap equations
    Result      E‖∇_i ℓ‖² = [Ψ^var_ii(Ω) + (2/d) ∂_s Ψ^var_ii(sΩ)|_{s=1}]/p²,  tr Cov ε_i = (E‖∇_i ℓ‖² − ‖∇_i R‖²)/b,
                ‖∇_i R‖² = (a_i²/(p²d)) G_i Ω G_iᵀ,  G_ic = v_c J₂(i,c) + δ_ic Σ_c' v_c' K₂₀(i,c')
    Validity    fresh batches (a fixed batch has frozen noise); size counts the dimension d ≥ p + k
    Finite size exact
    Computed by two_layer.squared_gradient_at, two_layer.gradient, two_layer.covariance; as d → ∞
                two_layer.squared_gradient
    References  veiga2022; saad1995
    """

    activation: str = activation_choice("erf_saad", closed_forms.has_fields)
    students: int = integer(2, 1, 4, symbol="p", doc="student units")
    teachers: int = integer(2, 1, 4, symbol="k", doc="teacher units")
    overlap: Array = real(0.4, 0.0, 2.0, symbol="m", doc="overlap of a student with its teacher")
    norm: Array = real(0.5, 0.0, 5.0, symbol="q", doc="squared norm of a student outside the teachers' span")
    noise: Array = real(0.2236, 0.0, 3.0, symbol=r"\sqrt{\Delta}", doc="standard deviation of the label noise")
    batch_size: int = integer(4, 1, 100, symbol="b", doc="samples in a batch")
    dimension: Array = real(50, 2, 100_000, log=True, symbol="d", doc="dimension of the input")

    usual = Run(sizes=(6, 12, 24), samples=1000, batch=20)
    showcase = Showcase(see="The noise of a mini-batch is largest where the student knows nothing of the teacher.")

    batches = 40
    """Pairs of batches in each measurement."""

    def _setting(self):
        task = Task(jnp.eye(self.teachers), 1.0, self.noise, self.activation)
        return task, aligned_start(self.students, self.teachers, self.overlap, self.norm)

    def validity(self):
        return no_room(self)

    def theory(self):
        task, start = self._setting()
        p = self.students
        second = equations.squared_gradient_at(task, start, self.dimension)[0, 0] / p**2
        row = start.a[0] * equations.gradient(task, start).weights[0] / p
        mean = row @ equations.covariance(task, start) @ row / self.dimension
        return {
            "second_moment": Value(second, label="squared gradient of a sample", symbol=r"E\|\nabla_1\ell\|^2"),
            "noise": Value(
                (second - mean) / self.batch_size,
                label="noise of a batch",
                symbol=r"\mathrm{tr\,Cov}\,\epsilon_1",
            ),
        }

    def at_size(self, size):
        return in_dimension(self, size)

    def simulate(self, key, *, dimension: int):
        task, start = self._setting()
        network = ensemble.with_overlaps(task, start, dimension)
        drawn = draws.draw(key, (2 * self.batches, self.batch_size), dimension + 1).gaussians
        gradient = jax.vmap(jax.vmap(lambda x, z: measure.batch_gradient(task, network, x[None], z[None])[0]))
        single = gradient(drawn[..., :dimension], drawn[..., dimension])
        means = jnp.mean(single, axis=1)
        # Half the squared difference of two independent batches has the trace of the covariance as its mean.
        gap = means[: self.batches] - means[self.batches :]
        return {
            "second_moment": jnp.mean(jnp.sum(single**2, axis=-1)),
            "noise": jnp.mean(jnp.sum(gap**2, axis=-1)) / 2,
        }
