r"""Wide and high-dimensional: each neuron is two numbers."""

import functools

import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import committees as ensemble
from deeplimits.errors import OutsideValidity
from deeplimits.limit import Limit, Run, activation_choice, axis, real, rounded, whole
from deeplimits.limits.two_layer._shared import steps_at, time_curve
from deeplimits.models.activations import activation
from deeplimits.models.committees import Overlaps, Task
from deeplimits.numerics.arguments import written
from deeplimits.showcase import Showcase, log_points
from deeplimits.theory.two_layer.mean_field import reduction


class MeanFieldHighDReduction(Limit):
    r"""With many neurons in high dimension, the p × p overlaps reduce to (m, q) for each neuron.

    Setting     p students of two kinds, half with (m, q) = (m₁, q₁) and half with (m₂, q₂), orthogonal outside the
                span of the teacher; one teacher of unit norm, a = a* = 1, learning rate γ, in dimension d = 2p;
                time t = νγ/(dp)
    Limit       d, p → ∞ with γ/p → 0
    Result      Q = MP⁻¹Mᵀ + diag(q): off-diagonal parts outside the teacher vanish, and each neuron obeys
                ṁ_i = a_i E[E(λ*)λ*σ'(λ_i)],  q̇_i = 2a_i q_i E[E(λ*)σ''(λ_i)],
                E(λ*) = f*(λ*) − (1/p)Σ_j a_j E_ξ σ(m_jλ* + √q_j ξ)
    Validity    P invertible; γ/p → 0, else the off-diagonal part is forced at O(γ/p); with a quadratic activation
                48γQ ≤ p, Q the largest squared norm: 4(γ/p)λ² < 2 for all fields that occur, λ² ≤ 2Q ln 10⁵, for a
                step that overshoots its own sample makes SGD diverge; size counts the students p
    Finite size O(1/p) and O(1/d) in the mean
    Computed by two_layer.reduced_flow
    References  arnaboldi2023
    """

    activation: str = activation_choice(
        "erf_saad", lambda a: (a.odd and a.smooth and a.increasing and a.bounded) or a.homogeneous == 2
    )
    step: Array = real(1.0, 0.01, 10.0, log=True, symbol=r"\gamma", doc="learning rate")
    overlap: Array = real(0.4, -1.0, 2.0, symbol="m_1", doc="overlap with the teacher of the first kind")
    other_overlap: Array = real(
        -0.1, -1.0, 2.0, symbol="m_2", doc="overlap with the teacher of the second kind at the start"
    )
    norm: Array = real(0.3, 0.01, 5.0, symbol="q_1", doc="orthogonal norm of the first kind at the start")
    other_norm: Array = real(0.6, 0.01, 5.0, symbol="q_2", doc="orthogonal norm of the second kind at the start")
    times: Array = axis((0.5, 1.0, 2.0), 0.001, 100.0, log=True, symbol="t", doc="times")

    usual = Run(sizes=(8, 16, 32), samples=200, batch=20)
    showcase = Showcase(
        parameters={"times": log_points(0.05, 20.0, 9)},
        see="Two numbers for each neuron follow closed equations, whatever their number.",
    )

    def _kinds(self):
        return jnp.stack([self.overlap, self.other_overlap])[:, None], jnp.stack([self.norm, self.other_norm])

    def theory(self):
        m, q = self._kinds()
        task = Task(jnp.eye(1), self.step, 0.0, self.activation)
        flow = reduction.reduced_flow(task, reduction.Reduced(m, q), self.times)

        curve = functools.partial(time_curve, self.times)
        return {
            "overlap": curve(flow.m[:, 0, 0], "overlap of the first kind", "m_1"),
            "other_overlap": curve(flow.m[:, 1, 0], "overlap of the second kind", "m_2"),
            "norm": curve(flow.q[:, 0], "orthogonal norm of the first kind", "q_1"),
            "other_norm": curve(flow.q[:, 1], "orthogonal norm of the second kind", "q_2"),
        }

    def at_size(self, size):
        p = 2 * whole(size / 2, "p/2", self)
        d = 2 * p
        if activation(self.activation).homogeneous == 2:
            kinds = ((self.overlap, self.norm), (self.other_overlap, self.other_norm))
            largest = max(1.0, *(float(m) ** 2 + float(q) for m, q in kinds))
            step = float(self.step)
            # A step multiplies the error on its own sample by 1 − 4(γ/p)λ²; of 10⁵ fields the largest has λ² = 23Q.
            if 48 * step * largest > p:
                raise OutsideValidity(
                    f"MeanFieldHighDReduction: step = {written(step)} is too large for {p} quadratic "
                    "students of squared norm "
                    f"{largest:.3g}, under which SGD diverges; take a step of at most {p / (48 * largest):.2g}, "
                    f"smaller overlaps and norms, or sizes of at least {int(48 * step * largest) + 1}"
                )
        marks, times = steps_at(self.times, d * p / float(self.step), self)
        return {"students": p, "dimension": d, "marks": marks}, rounded(self, times=times)

    def simulate(self, key, *, students: int, dimension: int, marks: tuple[int, ...]):
        m, q = self._kinds()
        m, q = jnp.repeat(m, students // 2, axis=0), jnp.repeat(q, students // 2)
        task = Task(jnp.eye(1), self.step, 0.0, self.activation)
        start = Overlaps(m, m @ m.T + jnp.diag(q))
        network = ensemble.with_overlaps(task, start, dimension)
        record = ensemble.one_pass_sgd(key, task, network, jnp.array(marks)).record
        norms = jnp.diagonal(record.q, axis1=1, axis2=2) - record.m[:, :, 0] ** 2
        first, second = slice(0, students // 2), slice(students // 2, None)
        return {
            "overlap": jnp.mean(record.m[:, first, 0], axis=1),
            "other_overlap": jnp.mean(record.m[:, second, 0], axis=1),
            "norm": jnp.mean(norms[:, first], axis=1),
            "other_norm": jnp.mean(norms[:, second], axis=1),
        }
