r"""The overlap equations of one-pass SGD and the risk, in the convention of `deeplimits.models.committees`.

Ω = [[Q, M], [Mᵀ, P]] is the covariance of all fields; v_c = −a_i/p for students and +a*_r/k for teachers, so that the
residual without label noise is E = Σ_c v_c σ_c.
"""

import functools
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from deeplimits.errors import ParameterError
from deeplimits.models.committees import Overlaps, Task
from deeplimits.numerics.arguments import FINITE, argument, at_least, of_kind
from deeplimits.numerics.shapes import Scalar
from deeplimits.theory.two_layer.overlaps.integrals import Moments, check_covariance


class Drift(NamedTuple):
    """The parts of the right-hand side: dM/dt = m, dQ/dt = q_flow + (γ/(pb)) q_variance, da/dt = a."""

    m: Float[Array, "p k"]
    q_flow: Float[Array, "p p"]
    q_variance: Float[Array, "p p"]
    a: Float[Array, " p"]


def covariance(task: Task, state: Overlaps) -> Float[Array, "n n"]:
    """Ω, the joint covariance of student and teacher fields."""
    return jnp.block([[state.q, state.m], [state.m.T, task.teacher]])


def _checked(function):
    """A function of (task, state, …) as one program, behind the check of what it is given."""
    compiled = eqx.filter_jit(function)

    @functools.wraps(function)
    def checked(task: Task, state: Overlaps, *rest: ArrayLike, **named: ArrayLike):
        check(task, state)
        return compiled(task, state, *rest, **named)

    return checked


def check(task: Task, state: Overlaps) -> None:
    """Raise unless the state is possible (shapes that fit, Ω positive semidefinite) and the integrals resolve it."""
    of_kind("task", task, Task)
    of_kind("state", state, Overlaps)
    if state.teachers != task.teachers:
        raise ParameterError(
            f"m has {state.teachers} columns but the teacher has {task.teachers} units; they must agree"
        )
    check_covariance(task.teacher, "teacher")
    argument("a", state.a, FINITE)
    argument("teacher_output", task.teacher_output, FINITE)
    omega = covariance(task, state)
    check_covariance(omega, "Omega")
    moments(task).check_variance(omega)


def signed_outputs(task: Task, state: Overlaps) -> Float[Array, " n"]:
    """v."""
    return jnp.concatenate([-state.a / state.students, task.teacher_output / task.teachers])


def moments(task: Task) -> Moments:
    return Moments(task.activation, task.teacher_activation)


@_checked
def risk(task: Task, state: Overlaps) -> Scalar:
    """R = ½ Σ_cc' v_c v_c' I₂(c, c'), the excess risk; that of noisy labels is R + Δ/2.

    Rounding leaves an absolute floor of about 1e-16; below, `risk_near_teacher` takes the differences themselves.

    >>> task = Task(teacher=[[1.0, 0.0], [0.0, 1.0]])
    >>> state = Overlaps([[0.3, 0.1], [0.05, 0.2]], [[0.5, 0.1], [0.1, 0.6]])
    >>> round(float(risk(task, state)), 14)
    0.09206603471354
    """
    v = signed_outputs(task, state)
    return 0.5 * v @ moments(task).second_moments(covariance(task, state), state.students) @ v


class Gradient(NamedTuple):
    """The population gradient of each student: E[E σ'_i x] = Σ_c G_ic w_c/√d, and E[E σ_i]."""

    weights: Float[Array, "p n"]
    outputs: Float[Array, " p"]


@_checked
def gradient(task: Task, state: Overlaps) -> Gradient:
    """G_ic = v_c J₂(i,c) + δ_ic Σ_c' v_c' K₂₀(i,c'), by Stein's lemma: the gradient lies in the span of all weights."""
    v = signed_outputs(task, state)
    i2, j2, k20 = moments(task).pairs(covariance(task, state), state.students)
    own = np.eye(state.students, v.size)
    return Gradient(j2 * v[None, :] + own * (k20 @ v)[:, None], i2 @ v)


@_checked
def squared_gradient(task: Task, state: Overlaps) -> Float[Array, "p p"]:
    """Ψ^var_ij = a_i a_j [Σ_cd v_c v_d I₄(i,j,c,d) + Δ J₂(i,j)], the limit of p² E⟨∇_i ℓ, ∇_j ℓ⟩.

    >>> found = squared_gradient(Task([[1.0]], activation="identity"), Overlaps([[0.5]], [[0.7]]))
    >>> round(float(found[0, 0]), 12)  # P − 2M + Q
    0.7
    """
    return _squares(task, state, covariance(task, state))


def _squares(task: Task, state: Overlaps, omega: Float[Array, "n n"]) -> Float[Array, "p p"]:
    v = signed_outputs(task, state)
    _, j2, _ = moments(task).pairs(omega, state.students)
    inside = moments(task).squares(omega, v, state.students) + task.noise_variance * j2[:, : state.students]
    return state.a[:, None] * state.a[None, :] * inside


def squared_gradient_at(task: Task, state: Overlaps, dimension: ArrayLike) -> Float[Array, "p p"]:
    r"""p² E⟨∇_i ℓ, ∇_j ℓ⟩ at finite d, exactly: a_i a_j E[E² σ'_i σ'_j ‖x‖²/d].

    ‖x‖² depends on the fields only through λᵀΩ⁻¹λ, and E[g λᵀΩ⁻¹λ] = rank(Ω) E g + 2 ∂_s E_{sΩ}[g] at s = 1. So the
    answer is Ψ^var(Ω) + (2/d) ∂_s Ψ^var(sΩ): no inverse, and no integral of more dimensions.
    """
    return _squared_gradient_at(task, state, _dimension(state, dimension))


@_checked
def _squared_gradient_at(task: Task, state: Overlaps, dimension: Array) -> Float[Array, "p p"]:
    omega = covariance(task, state)
    value, stretched = jax.jvp(lambda c: _squares(task, state, c), (omega,), (omega,))
    return value + 2 / dimension * stretched


def _dimension(state: Overlaps, dimension: ArrayLike) -> Array:
    fields = state.students + state.teachers
    return argument("dimension", dimension, at_least(fields), f"there are {fields} weight vectors")


@_checked
def drift(task: Task, state: Overlaps) -> Drift:
    """The parts of the overlap equations at one state.

    >>> task = Task(teacher=[[1.0, 0.0], [0.0, 1.0]], noise=0.1, output_rate=1.0)
    >>> state = Overlaps([[0.3, 0.1], [0.05, 0.2]], [[0.5, 0.1], [0.1, 0.6]])
    >>> [round(float(x), 10) for x in drift(task, state).m[0]]
    [0.1205263568, 0.1243120752]
    """
    p = state.students
    omega = covariance(task, state)
    step = gradient(task, state)
    # ⟨E σ'_i x, w_c⟩/√d for every field c
    moved = state.a[:, None] * (step.weights @ omega)
    flow = moved[:, :p]
    return Drift(
        m=moved[:, p:],
        q_flow=flow + flow.T,
        q_variance=squared_gradient(task, state),
        a=task.output_rate * step.outputs,
    )


@_checked
def velocity(task: Task, state: Overlaps, *, time: ArrayLike = 0.0) -> Overlaps:
    """(dM/dt, dQ/dt, da/dt).

    dM_ir/dt = a_i Σ_c v_c I₃(i,r,c)
    dQ_ij/dt = a_i Σ_c v_c I₃(i,j,c) + a_j Σ_c v_c I₃(j,i,c) + (γ/(pb)) Ψ^var_ij
    da_i/dt  = ρ_a Σ_c v_c I₂(i,c)

    >>> moved = velocity(Task([[1.0]], activation="identity"), Overlaps([[0.4]], [[0.7]]))
    >>> round(float(moved.m[0, 0]), 12)  # P − M
    0.6
    """
    parts = drift(task, state)
    share = task.learning_rate(time) / (state.students * task.batch)
    return Overlaps(parts.m, parts.q_flow + share * parts.q_variance, parts.a)


def mean_increment(task: Task, state: Overlaps, dimension: ArrayLike) -> Overlaps:
    r"""The exact mean of one SGD step at finite d: (E ΔM, E ΔQ, E Δa).

    E[E² σ'_iσ'_j ‖x‖²/d] differs from its limit by the O(1/d) of `squared_gradient_at`; distinct samples of a batch
    add the product of their mean gradients to ΔQ.

    >>> task = Task(teacher=[[1.0]], step=1.0, noise=0.1**0.5)
    >>> step = mean_increment(task, Overlaps([[0.3]], [[0.8]]), 10)
    >>> round(float(step.m[0, 0]), 12), round(float(step.q[0, 0]), 12)
    (0.025700990086, -0.004351153992)
    """
    of_kind("state", state, Overlaps)
    dimension, p = _dimension(state, dimension), state.students
    parts = drift(task, state)
    spent = task.step / (dimension * p)
    own = squared_gradient_at(task, state, dimension)
    weights = state.a[:, None] * gradient(task, state).weights
    # ⟨g_i, g_j⟩ a_i a_j / d, with g_i = E[E σ'_i x]
    crossed = weights @ covariance(task, state) @ weights.T / dimension
    variance = own / task.batch + (1 - 1 / task.batch) * crossed
    return Overlaps(spent * parts.m, spent * (parts.q_flow + task.step / p * variance), spent * parts.a)
