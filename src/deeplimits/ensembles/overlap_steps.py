"""One-pass SGD at finite dimension as a Markov chain of the overlaps: exact in law, at a cost independent of d.

The step depends on the input only through its fields (λ, λ*) ~ N(0, Ω) and its norm ‖x‖² = λᵀΩ⁻¹λ + χ²_{d−p−k}. What is
random in a sample is drawn for many steps at once, because a call of the generator costs more than a step.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from deeplimits.ensembles import trainers
from deeplimits.ensembles.committees import Record, joint_overlaps
from deeplimits.errors import ParameterError
from deeplimits.models.committees import Overlaps, Task
from deeplimits.numerics import draws
from deeplimits.numerics.draws import Draws
from deeplimits.numerics.shapes import Scalar

BLOCK = 64
"""How many samples are drawn together."""


class ChainStep(NamedTuple):
    """The state after one step, the time that the step took, and (f* − f)²/2 on its sample."""

    state: Overlaps
    time: Scalar
    risk: Scalar


def samples(key: PRNGKeyArray, shape: tuple[int, ...], fields: int, dimension: int) -> Draws:
    """What is random in so many samples: a normal variable for each field, the label noise, the rest of ‖x‖²."""
    return draws.draw(key, shape, fields + 1, freedom=dimension - fields)


def chain_step(sample: Draws, task: Task, state: Overlaps, time: Scalar, dimension: int) -> ChainStep:
    """One step at a time, of which the learning rate may depend on it."""
    p, k = state.students, task.teachers
    u = sample.gaussians[:-1]
    lam = _root(jnp.block([[state.q, state.m], [state.m.T, task.teacher]])) @ u
    # ‖x‖²: all p + k normals count, also where Ω is singular and some are not used by the fields.
    square = jnp.sum(u**2) + sample.chi_square
    sigma, slope = task.activation.value(lam[:p]), task.activation.derivative(lam[:p])
    clean = task.teacher_output @ task.teacher_activation.value(lam[p:]) / k - state.a @ sigma / p
    error = clean + task.noise * sample.gaussians[-1]
    rate = task.learning_rate(time)
    step = rate / (dimension * p)
    drive = state.a * error * slope
    moved = drive[:, None] * lam[None, :p]
    q = state.q + step * (moved + moved.T) + step * rate / p * drive[:, None] * drive[None, :] * square / dimension
    m = state.m + step * drive[:, None] * lam[None, p:]
    after = Overlaps(m, q, state.a + step * task.output_rate * error * sigma)
    return ChainStep(after, step, clean**2 / 2)


def overlap_chain(
    key: PRNGKeyArray, task: Task, start: Overlaps, marks: Int[Array, " times"], dimension: int
) -> Record:
    """Run the chain and record the overlaps after `marks` steps (increasing).

    >>> task, state = Task(teacher=[[1.0]]), Overlaps([[0.5]], [[0.7]])
    >>> overlap_chain(jax.random.key(0), task, state, jnp.array([10, 20]), 5).m.shape
    (2, 1, 1)
    """
    check_dimension(task, start, dimension)
    joint_overlaps(task, start)
    fields = start.students + task.teachers

    def advance(sample, carry):
        state, t, total = carry
        state, step, risk = chain_step(sample, task, state, t, dimension)
        return state, t + step, total + risk

    def to_mark(begin, end, carry):
        def block(number, inner):
            first = number * BLOCK
            # Neighbouring keys in the first word; `draw` takes those in the last.
            drawn = samples(draws.neighbour(key, number, word=0), (BLOCK,), fields, dimension)
            low, high = jnp.maximum(first, begin), jnp.minimum(first + BLOCK, end)
            return jax.lax.fori_loop(low, high, lambda i, inner: advance(_one(drawn, i - first), inner), inner)

        blocks = begin // BLOCK, (end - 1) // BLOCK + 1
        state, t, total = jax.lax.fori_loop(*blocks, block, (*carry, jnp.zeros(())))
        return (state, t), Record(state.m, state.q, state.a, total / jnp.maximum(end - begin, 1).astype(float))

    return trainers.to_marks(to_mark, (start, jnp.zeros(())), marks).seen


def first_passages(
    key: PRNGKeyArray,
    task: Task,
    start: Callable[[Scalar], Overlaps],
    level: Scalar,
    dimension: int,
    runs: int,
    most_steps: int,
) -> Float[Array, " runs"]:
    """The times t at which |M| of a single student and teacher first reaches a level, for several independent runs.

    `start` makes the state at the beginning of a run from a standard normal variable. The runs follow one another, so
    that systems that are simulated side by side end at about the same time. Not a number where a run is not over when
    all together have used up `most_steps`.

    >>> def start(normal):
    ...     return Overlaps(normal[None, None] / 10, jnp.ones((1, 1)))
    >>> first_passages(jax.random.key(0), Task(teacher=[[1.0]]), start, jnp.asarray(0.5), 20, 3, 10**6).shape
    (3,)
    """

    begin = start(jnp.zeros(()))
    check_dimension(task, begin, dimension)
    fields = begin.students + task.teachers

    def unfinished(carry):
        return (carry[0] < most_steps) & (carry[1] < runs)

    def advance(carry, sample):
        run, state, t, fresh, times = carry
        # One normal variable more than a step needs decides where a run begins.
        first = start(sample.gaussians[-1])
        state = jax.tree.map(lambda new, old: jnp.where(fresh, new, old), first, state)
        used = sample._replace(gaussians=sample.gaussians[:-1])
        state, step, _ = chain_step(used, task, state, t, dimension)
        t = t + step
        over = jnp.abs(state.m[0, 0]) >= level
        times = jnp.where(over & (jnp.arange(runs) == run), t, times)
        return (run + over.astype(run.dtype), state, jnp.where(over, 0.0, t), over, times), None

    def block(carry):
        drawn = draws.draw(
            draws.neighbour(key, carry[0] // BLOCK, word=0), (BLOCK,), fields + 2, freedom=dimension - fields
        )
        inner, _ = jax.lax.scan(advance, carry[1:], drawn)
        return carry[0] + BLOCK, *inner

    none = (jnp.zeros((), int), jnp.zeros((), int), begin, jnp.zeros(()), jnp.ones((), bool), jnp.full(runs, jnp.nan))
    return jax.lax.while_loop(unfinished, block, none)[-1]


def _one(drawn: Draws, index: Array) -> Draws:
    return jax.tree.map(lambda part: part[index], drawn)


def check_dimension(task: Task, start: Overlaps, dimension: int) -> None:
    """Raise unless p + k weight vectors fit into the dimension, and a step uses one sample."""
    if task.samples is not None and task.samples != 1:
        raise ParameterError(
            f"batch = {task.samples} is not allowed; the chain of overlaps is that of one sample a step, so take "
            "committees.one_pass_sgd"
        )
    fields = start.students + task.teachers
    if dimension < fields:
        raise ParameterError(f"dimension = {dimension} is not allowed; {fields} weight vectors need at least {fields}")


def _root(omega: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """A lower triangular root; at perfect learning Ω is singular, and a vanishing pivot leaves a zero column.

    Written out column by column, because a library call for each small matrix would cost more than the whole step.
    """
    count = omega.shape[0]
    columns = []
    floor = 1e-14 * jnp.max(jnp.einsum("ii->i", omega))
    for index in range(count):
        pivot = omega[index, index]
        alive = pivot > floor
        inverse = jnp.where(alive, jax.lax.rsqrt(jnp.where(alive, pivot, 1.0)), 0.0)
        column = jnp.where(jnp.arange(count) >= index, omega[:, index] * inverse, 0.0)
        columns.append(column)
        omega = omega - column[:, None] * column[None, :]
    return jnp.stack(columns, axis=1)
