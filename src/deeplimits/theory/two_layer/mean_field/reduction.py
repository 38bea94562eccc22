r"""Wide and high-dimensional at once: each neuron is its overlap m with the teachers and its own norm q outside them.

W = M P⁻¹ W* + W^⊥; as p → ∞ with γ/p → 0 the parts W^⊥ of different neurons stay orthogonal, so that
Q_ij = m_i P⁻¹ m_jᵀ for i ≠ j, while Q_ii = m_i P⁻¹ m_iᵀ + q_i. No dimension is left in the equations.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float
from numpy.typing import ArrayLike

from deeplimits.errors import ParameterError
from deeplimits.models.committees import Task
from deeplimits.numerics import arguments, flows
from deeplimits.numerics.checks import converged
from deeplimits.numerics.shapes import Scalar
from deeplimits.numerics.symmetric import diagonal
from deeplimits.theory.gaussian.fields import trapezoid
from deeplimits.theory.two_layer.overlaps.equations import moments

UNREACHED = "the reduced flow needs more steps than allowed or diverges; ask for earlier times"


class Reduced(eqx.Module):
    """Weighted neurons: teacher overlaps m (n, k), orthogonal norms q (n), second layer a (n), weights ω (n)."""

    m: Float[Array, "n k"]
    q: Float[Array, " n"]
    a: Float[Array, " n"]
    weights: Float[Array, " n"]

    def __init__(self, m: ArrayLike, q: ArrayLike, a: ArrayLike | None = None, weights: ArrayLike | None = None):
        self.m, self.q = jnp.asarray(m, float), jnp.asarray(q, float)
        if self.m.ndim != 2 or self.q.shape != self.m.shape[:1] or self.m.size == 0:
            raise ParameterError(f"m and q have shapes {self.m.shape} and {self.q.shape}; they must be (n, k) and (n,)")
        count = self.m.shape[0]
        self.a = jnp.ones(count) if a is None else jnp.asarray(a, float)
        self.weights = jnp.full(count, 1 / count) if weights is None else jnp.asarray(weights, float)
        if self.a.shape != (count,) or self.weights.shape != (count,):
            raise ParameterError(
                f"a and weights have shapes {self.a.shape}, {self.weights.shape}; both must be ({count},)"
            )


class ReducedFlow(NamedTuple):
    """Neurons and risk at each time."""

    times: Float[Array, " times"]
    m: Float[Array, "times n k"]
    q: Float[Array, "times n"]
    a: Float[Array, "times n"]
    risk: Float[Array, " times"]
    converged: Bool[Array, ""]


def _fields(task: Task, state: Reduced) -> tuple[Float[Array, "n f"], Float[Array, " f"], Float[Array, " f"]]:
    """Covariances between each neuron and all fields seen as independent copies, the fields' variances, and v."""
    inverse = jnp.linalg.inv(task.teacher)
    # An interaction is always with a copy: its covariance is m_i P⁻¹ m_jᵀ also for i = j.
    among = state.m @ inverse @ state.m.T
    covariances = jnp.concatenate([among, state.m], axis=1)
    variances = jnp.concatenate([diagonal(among) + state.q, diagonal(task.teacher)])
    v = jnp.concatenate([-state.weights * state.a, task.teacher_output / task.teachers])
    return covariances, variances, v


def velocity(task: Task, state: Reduced) -> Reduced:
    r"""(ṁ, q̇, ȧ) for every neuron.

    ṁ_i = a_i E[E(λ*) λ* σ'_i],  q̇_i = 2 a_i q_i E[E(λ*) σ''_i],  ȧ_i = ρ_a E[E(λ*) σ_i], by Stein's lemma
    ṁ_i = a_i Σ_c v_c (K₂₀(i,c) m_i + J₂(i,c) C_c,teacher),  q̇_i = 2 a_i q_i Σ_c v_c K₂₀(i,c)
    """
    arguments.of_kind("task", task, Task)
    covariances, variances, v = _fields(task, state)
    i2, j2, k20 = _pairs(task, covariances, variances, state.m.shape[0])
    curvature = k20 @ v
    seen = jnp.concatenate([state.m, task.teacher])
    m = state.a[:, None] * (curvature[:, None] * state.m + (j2 * v[None, :]) @ seen)
    return Reduced(m, 2 * state.a * state.q * curvature, task.output_rate * (i2 @ v), jnp.zeros_like(state.weights))


def _pairs(task: Task, covariances, variances, neurons: int):
    integrals = moments(task)
    rows, columns = variances[:neurons, None], variances[None, :]
    closed = integrals._closed
    if closed is not None:
        return (
            closed.i2(rows, columns, covariances),
            closed.j2(rows, columns, covariances),
            closed.k20(rows, columns, covariances),
        )
    return _pairs_by_quadrature(task, covariances, variances, neurons)


def _pairs_by_quadrature(task: Task, covariances, variances, neurons: int):
    student = task.activation

    def entry(activation):
        def three(variance_a, variance_b, covariance):
            c = jnp.stack([jnp.stack([variance_a, covariance]), jnp.stack([covariance, variance_b])])
            parts = (
                lambda x, y: student.value(x) * activation.value(y),
                lambda x, y: student.derivative(x) * activation.derivative(y),
                lambda x, y: student.second_derivative(x) * activation.value(y),
            )
            return tuple(trapezoid.expectation(part, c, [0, 1]) for part in parts)

        return jax.vmap(jax.vmap(three, (None, 0, 0)), (0, None, 0))

    own, teachers = slice(0, neurons), slice(neurons, None)
    with_students = entry(student)(variances[own], variances[own], covariances[:, own])
    with_teachers = entry(task.teacher_activation)(variances[own], variances[teachers], covariances[:, teachers])
    return tuple(jnp.concatenate(both, axis=1) for both in zip(with_students, with_teachers, strict=True))


def risk(task: Task, state: Reduced) -> Scalar:
    """R = ½ E_{λ*}[(f* − f̄)²], f̄ the mean over neurons and over each neuron's own noise."""
    arguments.of_kind("task", task, Task)
    covariances, variances, v = _fields(task, state)
    neurons = state.m.shape[0]
    i2, _, _ = _pairs(task, covariances, variances, neurons)
    teacher = moments(task).second_moments(task.teacher, 0)
    b = v[neurons:]
    return 0.5 * (v[:neurons] @ i2[:, :neurons] @ v[:neurons] + b @ teacher @ b) + v[:neurons] @ i2[:, neurons:] @ b


def reduced_flow(task: Task, start: Reduced, times: ArrayLike) -> ReducedFlow:
    """Neurons and risk at increasing times; ln q is integrated, so that q stays positive.

    >>> flow = reduced_flow(Task(teacher=[[1.0]]), Reduced([[0.1]], [0.5]), [5.0])
    >>> round(float(flow.m[0, 0, 0]), 10), round(float(flow.q[0, 0]), 10), round(float(flow.risk[0]), 10)
    (0.7836576095, 0.3254082627, 0.0087040712)
    """
    arguments.of_kind("start", start, Reduced)
    arguments.of_kind("task", task, Task)
    times = arguments.times("times", times)
    if start.m.shape[1] != task.teachers:
        raise ParameterError(
            f"m has {start.m.shape[1]} columns but the teacher has {task.teachers} units; they must agree"
        )
    if arguments.known(task.teacher) and np.linalg.eigvalsh(np.asarray(task.teacher))[0] <= 1e-12:
        raise ParameterError("teacher is singular: the reduction divides by P; merge teachers that coincide")
    arguments.argument("q", start.q, arguments.POSITIVE, "norms outside the teachers")
    flow = _solve(task, start, times)
    return converged(flow, flow.converged, UNREACHED)


@eqx.filter_jit
def _solve(task: Task, start: Reduced, times) -> ReducedFlow:
    def slope(t, y):
        m, log_q, a = y
        moved = velocity(task, Reduced(m, jnp.exp(log_q), a, start.weights))
        return moved.m, moved.q / jnp.exp(log_q), moved.a

    found = flows.solve(slope, (start.m, jnp.log(start.q), start.a), times, throw=False, otherwise=UNREACHED)
    m, log_q, a = found.states
    q = jnp.exp(log_q)
    risks = jax.lax.map(lambda y: risk(task, Reduced(y[0], y[1], y[2], start.weights)), (m, q, a))
    return ReducedFlow(times, m, q, a, risks, found.converged)
