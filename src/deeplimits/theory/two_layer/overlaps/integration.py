r"""Solving the overlap equations: adaptively, through plateaus, to any time.

Short runs use an explicit method of order eight. A long run ends near a fixed point where an explicit method is held
back by stability, not accuracy; there an implicit method of order six takes steps as long as the plateau.
"""

import warnings
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int
from numpy.typing import ArrayLike

from deeplimits.errors import DeeplimitsError, OutsideValidityWarning
from deeplimits.models.committees import Overlaps, Task
from deeplimits.numerics import arguments, flows, panels, symmetric
from deeplimits.numerics.checks import converged
from deeplimits.theory.two_layer.overlaps import equations, stationary_risk

# Beyond this time the implicit method wins.
LONG = 3e3
MOST_STEPS = 200_000
_NODES = panels.normal(40)


class Trajectory(NamedTuple):
    """The solution at the times asked for, and what it cost."""

    times: Float[Array, " times"]
    m: Float[Array, "times p k"]
    q: Float[Array, "times p p"]
    a: Float[Array, "times p"]
    risk: Float[Array, " times"]
    steps: Int[Array, ""]
    converged: Bool[Array, ""]


def pack(state: Overlaps, *, with_outputs: bool = True) -> Float[Array, " size"]:
    """The state as a vector: M row by row, Q_ij for i ≤ j, a. A spurious antisymmetric part of Q has no place here."""
    parts = [jnp.ravel(state.m), symmetric.triangle(state.q)] + ([state.a] if with_outputs else [])
    return jnp.concatenate(parts)


def unpack(
    vector: Float[Array, " size"], students: int, teachers: int, *, a: Float[Array, " p"] | None = None
) -> Overlaps:
    """The state that `pack` made a vector of; `a` is the second layer where it was left out."""
    overlaps = students * teachers
    end = overlaps + students * (students + 1) // 2
    q = symmetric.filled(vector[overlaps:end], students)
    return Overlaps(vector[:overlaps].reshape(students, teachers), q, vector[end:] if a is None else a)


def packed_velocity(
    task: Task, students: int, *, a: Float[Array, " p"] | None = None, variance: bool = True
) -> Callable[[ArrayLike, Float[Array, " size"]], Float[Array, " size"]]:
    """The right-hand side as a function of (t, vector); without `variance` it is gradient flow."""

    def right_side(t, vector):
        state = unpack(vector, students, task.teachers, a=a)
        if variance:
            moved = equations.velocity(task, state, time=t)
        else:
            moved = flow_velocity(task, state)
        return pack(moved, with_outputs=a is None)

    return right_side


def flow_velocity(task: Task, state: Overlaps) -> Overlaps:
    """The velocity without the variance term: gradient flow on the population risk, exact at every dimension."""
    step = equations.gradient(task, state)
    moved = state.a[:, None] * (step.weights @ equations.covariance(task, state))
    flow = moved[:, : state.students]
    return Overlaps(moved[:, state.students :], flow + flow.T, task.output_rate * step.outputs)


def trajectory(
    task: Task,
    start: Overlaps,
    times: ArrayLike,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    method: str = "auto",
    variance: bool = True,
) -> Trajectory:
    """Overlaps, second layer and risk at increasing times ≥ 0, from `start` at t = 0.

    `method` is "explicit" (order 8), "implicit" (order 6, for long or stiff runs) or "auto". `variance=False` is
    gradient flow. The tolerances, by default 1e-11 and 1e-13 (explicit) or 1e-9 and 1e-11 (implicit), are per step; the
    error at the end is about ten times larger. Traceable: jit, vmap over initial conditions, grad. A run that diverges
    raises; outside a trace an impossible start does so as well.

    >>> task = Task(teacher=[[1.0]], step=0.4, noise=0.3**0.5, activation="identity")
    >>> solution = trajectory(task, Overlaps([[0.2]], [[0.7]]), [1.5])
    >>> round(float(solution.m[0, 0, 0]), 10), round(float(solution.q[0, 0, 0]), 10)
    (0.8214958719, 0.8291212365)
    """
    times = arguments.times("times", times)
    arguments.choice("method", method, ("auto", "explicit", "implicit"))
    equations.check(task, start)
    for name, value in (("a", start.a), ("teacher_output", task.teacher_output)):
        arguments.argument(name, value, arguments.FINITE)
    if method == "auto":
        long = arguments.known(times) and float(times[-1]) > LONG
        stiff = arguments.known(task.output_rate) and float(task.output_rate) >= 50
        method = "implicit" if long or stiff else "explicit"
    usual = (1e-11, 1e-13) if method == "explicit" else (1e-9, 1e-11)
    rtol, atol = (usual[0] if rtol is None else rtol), (usual[1] if atol is None else atol)
    solution = _solve(task, start, times, rtol, atol, method, variance)
    if variance and arguments.known(solution.converged) and bool(solution.converged):
        _warn_of_large_steps(task, start)
    if arguments.known(solution.q) and bool(solution.converged):
        equations.moments(task).check_variance(jnp.max(solution.q) * jnp.eye(min(start.students + start.teachers, 4)))
    where = f", at learning rate γ = {float(task.step):.4g}" if arguments.known(task.step) else ""
    return converged(
        solution,
        solution.converged,
        f"the overlaps diverge, or need more than {MOST_STEPS} steps{where}; take a smaller step (see "
        "critical_learning_rate) or an earlier time",
    )


def _warn_of_large_steps(task: Task, start: Overlaps) -> None:
    """Say so where γ is above γ_c: what has been learnt is lost again there, though nothing diverges."""
    abstract = not arguments.known(task.step, task.batch, task.teacher, task.teacher_output)
    if abstract or task.schedule is not None or start.students != task.teachers:
        return
    step = float(task.step / task.batch)
    # Two thirds of the rate of uncoupled neurons is below γ_c of those that are met; nearer than that it is found.
    slope = task.activation.derivative(jnp.sqrt(jnp.diag(task.teacher))[:, None] * jnp.asarray(_NODES.nodes)[None, :])
    weights, a = jnp.asarray(_NODES.weights), task.teacher_output
    alone = 2 * start.students * jnp.min((slope**2 @ weights) / (a**2 * (slope**4 @ weights)))
    if not step > float(alone) / 2:
        return
    try:
        critical = float(stationary_risk.critical_learning_rate(task))
    except DeeplimitsError:
        # Degenerate teachers and activations without these integrals have none.
        return
    if step >= critical:
        warnings.warn(
            f"step γ/b = {step:.4g} is above the critical learning rate {critical:.4g} of this teacher: there "
            "is no stationary state near it, and a student that has learnt is thrown out again",
            OutsideValidityWarning,
            stacklevel=3,
        )


@eqx.filter_jit
def _solve(task: Task, start: Overlaps, times, rtol, atol, method: str, variance: bool) -> Trajectory:
    students, teachers = start.students, start.teachers
    a = start.a if task.frozen else None
    right_side = packed_velocity(task, students, a=a, variance=variance)
    found = flows.solve(
        right_side,
        pack(start, with_outputs=a is None),
        times,
        rtol=rtol,
        atol=atol,
        stiff=method == "implicit",
        most_steps=MOST_STEPS,
        throw=False,
        otherwise="the overlaps diverge, or need too many steps; take a smaller step or an earlier time",
    )
    states = jax.vmap(lambda vector: unpack(vector, students, teachers, a=a))(found.states)
    risks = jax.vmap(lambda state: equations.risk(task, state))(states)
    return Trajectory(times, states.m, states.q, states.a, risks, found.steps, found.converged)
