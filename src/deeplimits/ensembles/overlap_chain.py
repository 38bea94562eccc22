"""One-pass SGD at finite dimension as a Markov chain of the overlaps: exact in law, at a cost independent of d.

The step depends on the input only through its fields (λ, λ*) ~ N(0, Ω) and its norm ‖x‖² = λᵀΩ⁻¹λ + χ²_{d−p−k}.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from deeplimits.ensembles.committees import Record
from deeplimits.errors import ParameterError
from deeplimits.models.committees import Overlaps, Task
from deeplimits.numerics import draws


def chain_step(
    key: PRNGKeyArray, task: Task, state: Overlaps, t: Float[Array, ""], dimension: int
) -> tuple[Overlaps, Array, Array]:
    """One step: the state after it, the time it took, and (f* − f)²/2 on its sample."""
    p, k = state.students, task.teachers
    fields_key, norm_key = jax.random.split(key)
    drawn = jax.random.normal(fields_key, (p + k + 1,))
    u = drawn[:-1]
    lam = _root(jnp.block([[state.q, state.m], [state.m.T, task.teacher]])) @ u
    # ‖x‖²/d: all p + k normals count, also where Ω is singular and some are not used by the fields.
    rest = dimension - p - k
    square = jnp.sum(u**2) + draws.chi_square(norm_key, rest)
    sigma, slope = task.activation.value(lam[:p]), task.activation.derivative(lam[:p])
    clean = task.teacher_output @ task.teacher_activation.value(lam[p:]) / k - state.a @ sigma / p
    error = clean + jnp.sqrt(task.noise) * drawn[-1]
    rate = task.learning_rate(t)
    step = rate / (dimension * p)
    drive = state.a * error * slope
    moved = drive[:, None] * lam[:p]
    q = state.q + step * (moved + moved.T) + step * rate / p * drive[:, None] * drive * square / dimension
    m = state.m + step * drive[:, None] * lam[p:]
    return Overlaps(m, q, state.a + step * task.output_rate * error * sigma), step, clean**2 / 2


def overlap_chain(
    key: PRNGKeyArray, task: Task, start: Overlaps, marks: Int[Array, " times"], dimension: int
) -> Record:
    """Run the chain and record the overlaps after `marks` steps (increasing)."""
    check_dimension(task, start, dimension)

    def advance(index, carry):
        state, t, total = carry
        state, step, risk = chain_step(jax.random.fold_in(key, index), task, state, t, dimension)
        return state, t + step, total + risk

    def to_mark(carry, ends):
        begin, end = ends
        state, t, total = jax.lax.fori_loop(begin, end, advance, (*carry, jnp.zeros(())))
        return (state, t), Record(state.m, state.q, state.a, total / jnp.maximum(end - begin, 1).astype(float))

    marks = jnp.asarray(marks)
    begins = jnp.concatenate([jnp.zeros_like(marks[:1]), marks[:-1]])
    _, record = jax.lax.scan(to_mark, (start, jnp.zeros(())), (begins, marks))
    return record


def first_passage(
    key: PRNGKeyArray, task: Task, start: Overlaps, level: Float[Array, ""], dimension: int, most_steps: int
) -> Float[Array, ""]:
    """The time t at which |M| of a single student and teacher first reaches a level; not a number if it does not."""
    check_dimension(task, start, dimension)

    def waiting(carry):
        state, _, index = carry
        return (jnp.abs(state.m[0, 0]) < level) & (index < most_steps)

    def advance(carry):
        state, t, index = carry
        state, step, _ = chain_step(jax.random.fold_in(key, index), task, state, t, dimension)
        return state, t + step, index + 1

    state, t, _ = jax.lax.while_loop(waiting, advance, (start, jnp.zeros(()), jnp.zeros((), int)))
    return jnp.where(jnp.abs(state.m[0, 0]) >= level, t, jnp.nan)


def check_dimension(task: Task, start: Overlaps, dimension: int) -> None:
    """Raise unless p + k weight vectors fit into the dimension."""
    fields = start.students + task.teachers
    if dimension < fields:
        raise ParameterError(f"dimension = {dimension} is not allowed; {fields} weight vectors need at least {fields}")


def _root(omega: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """A lower triangular root; at perfect learning Ω is singular, and a vanishing pivot leaves a zero column.

    Written out column by column, because a library call for each small matrix would cost more than the whole step.
    """
    count = omega.shape[0]
    columns = []
    floor = 1e-14 * jnp.max(jnp.diagonal(omega))
    for index in range(count):
        pivot = omega[index, index]
        alive = pivot > floor
        inverse = jnp.where(alive, jax.lax.rsqrt(jnp.where(alive, pivot, 1.0)), 0.0)
        column = jnp.where(jnp.arange(count) >= index, omega[:, index] * inverse, 0.0)
        columns.append(column)
        omega = omega - column[:, None] * column
    return jnp.stack(columns, axis=1)
