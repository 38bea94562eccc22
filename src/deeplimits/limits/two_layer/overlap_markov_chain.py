r"""One-pass SGD closes on its overlaps at every dimension."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import committees as ensemble
from deeplimits.ensembles import overlap_steps
from deeplimits.limit import Limit, Run, activation_choice, integer, real
from deeplimits.limits.two_layer._shared import aligned_start, in_dimension, no_room
from deeplimits.models.committees import Task
from deeplimits.numerics import draws
from deeplimits.predictions import Value
from deeplimits.showcase import Showcase
from deeplimits.theory.gaussian import closed_forms
from deeplimits.theory.two_layer.overlaps import equations


class OverlapMarkovChain(Limit):
    r"""The overlaps are a Markov chain: exact mean of one step at finite dimension.

    Setting     committee machine trained by one-pass SGD in any dimension d ≥ p + k; δt = γ/(dp)
    Limit       none is needed
    Result      M_ir ← M_ir + δt a_i E σ'_i λ*_r,  a_i ← a_i + δt ρ_a E σ_i,
                Q_ij ← Q_ij + δt (a_i E σ'_i λ_j + a_j E σ'_j λ_i) + δt (γ/p) a_i a_j E² σ'_i σ'_j ‖x‖²/d,
                with (λ, λ*) ~ N(0, Ω) and ‖x‖² = λᵀΩ⁻¹λ + χ²_(d−p−k): closed in (M, Q, a), at a cost independent of d;
                E ΔM = δt Ψ^M,  E ΔQ = δt [Ψ^GF + (γ/p)(Ψ^var(Ω) + (2/d) ∂_s Ψ^var(sΩ)|_{s=1})]
                measured for a step in weight space and for a step of the chain
    Validity    d ≥ p + k; size counts the dimension d
    Finite size exact
    Computed by two_layer.mean_increment
    References  saad1995; veiga2022
    """

    activation: str = activation_choice("erf_saad", closed_forms.has_fields)
    students: int = integer(1, 1, 4, symbol="p", doc="student units")
    teachers: int = integer(1, 1, 4, symbol="k", doc="teacher units")
    step: Array = real(4.0, 1e-3, 100.0, log=True, symbol=r"\gamma", doc="learning rate")
    noise: Array = real(0.3162, 0.0, 3.0, symbol=r"\sqrt{\Delta}", doc="standard deviation of the label noise")
    overlap: Array = real(0.1, 0.0, 2.0, symbol="m", doc="overlap of a student with its teacher")
    norm: Array = real(0.5, 0.0, 5.0, symbol="q", doc="squared norm of a student outside the teachers' span")
    dimension: Array = real(20, 2, 100_000, log=True, symbol="d", doc="dimension of the input")

    usual = Run(sizes=(4, 8, 16), samples=600, batch=20)
    showcase = Showcase(see="One step of SGD moves the overlaps by exactly this, also in few dimensions.")

    steps = 200
    """Independent steps in each measurement."""

    def _setting(self):
        task = Task(jnp.eye(self.teachers), self.step, self.noise, self.activation)
        return task, aligned_start(self.students, self.teachers, self.overlap, self.norm)

    def validity(self):
        return no_room(self)

    def theory(self):
        task, start = self._setting()
        mean = equations.mean_increment(task, start, self.dimension)
        m, q = self.dimension * mean.m[0, 0], self.dimension * mean.q[0, 0]
        return {
            "step_m": Value(m, label="mean step of M, weight space", symbol=r"d\,E\,\Delta M_{11}"),
            "step_q": Value(q, label="mean step of Q, weight space", symbol=r"d\,E\,\Delta Q_{11}"),
            "chain_m": Value(m, label="mean step of M, chain", symbol=r"d\,E\,\Delta M_{11}"),
            "chain_q": Value(q, label="mean step of Q, chain", symbol=r"d\,E\,\Delta Q_{11}"),
        }

    def at_size(self, size):
        return in_dimension(self, size)

    def simulate(self, key, *, dimension: int):
        task, start = self._setting()
        network = ensemble.with_overlaps(task, start, dimension)

        def in_weights(drawn):
            x, z = drawn[None, :dimension], drawn[dimension:]
            state = ensemble.overlaps(ensemble.step(task, network, self.step, x, z).network)
            return state.m[0, 0], state.q[0, 0]

        def in_chain(sample):
            state = overlap_steps.chain_step(sample, task, start, jnp.zeros(()), dimension).state
            return state.m[0, 0], state.q[0, 0]

        # What a step of either kind needs, in one draw: x and its noise; fields, noise and the rest of the norm.
        fields = self.students + self.teachers
        drawn = draws.draw(key, (self.steps,), dimension + 1 + fields + 1, freedom=dimension - fields)
        m, q = jax.vmap(in_weights)(drawn.gaussians[:, : dimension + 1])
        chain_m, chain_q = jax.vmap(in_chain)(drawn._replace(gaussians=drawn.gaussians[:, dimension + 1 :]))
        return {
            "step_m": dimension * (jnp.mean(m) - start.m[0, 0]),
            "step_q": dimension * (jnp.mean(q) - start.q[0, 0]),
            "chain_m": dimension * (jnp.mean(chain_m) - start.m[0, 0]),
            "chain_q": dimension * (jnp.mean(chain_q) - start.q[0, 0]),
        }
