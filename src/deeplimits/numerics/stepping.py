"""Steps of the right length: the control of the error, which all methods share, and derivatives backwards through it.

Every step that would pass a time asked for is cut to end there, or, for dense output, taken again from its beginning
with the length that ends there: nothing is interpolated. Lengths of steps are no part of the solution, and derivatives
pass them by.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from deeplimits.numerics.checks import converged
from deeplimits.numerics.shapes import Scalar

Field = Callable[[Scalar, Float[Array, " n"]], Float[Array, " n"]]
"""The right-hand side f(t, y) of dy/dt = f."""

SAFETY, SHRINK, GROW = 0.9, 0.2, 8.0
"""The next step is as long as this share of what its error allows, within these factors of the last one."""

SIDE_BY_SIDE = 1024
"""Dense output: so many times are computed at once."""


class Stepped(NamedTuple):
    """Where a step leads, and an estimate of its error."""

    y: Float[Array, " n"]
    error: Float[Array, " n"]


class Method(NamedTuple):
    """How one step is made; the estimate of its error goes like its length to the power of `order`."""

    step: Callable[[Field, Array, Array, Array], Stepped]
    order: int


class Accuracy(NamedTuple):
    """What is allowed: an error of atol + rtol|y| a step, and so many steps."""

    rtol: float
    atol: float
    most_steps: int


class Place(NamedTuple):
    """Where a solution stands: y at t, the next step h, the next time to end at, and the steps tried and taken."""

    t: Scalar
    y: Float[Array, " n"]
    h: Scalar
    index: Int[Array, ""]
    tried: Int[Array, ""]
    taken: Int[Array, ""]


class Path(NamedTuple):
    """y at the times asked for, not a number where it was not reached; whether all were (1 or 0); the steps tried.

    All are floats: JAX has no derivative of a program's answers that are not, even where none is asked for.
    """

    states: Float[Array, "times n"]
    reached: Scalar
    steps: Scalar


class _Attempt(NamedTuple):
    place: Place
    good: Bool[Array, ""]
    arrived: Bool[Array, ""]
    """Whether the step was good and ends at the next time asked for."""
    h: Scalar


def first_place(start: Float[Array, " n"], first_step: Array) -> Place:
    zero = jnp.zeros((), int)
    return Place(jnp.zeros(()), start, jax.lax.stop_gradient(first_step), zero, zero, zero)


def attempt(method: Method, field: Field, place: Place, goal: Scalar, accuracy: Accuracy) -> _Attempt:
    """One step towards the goal: taken if its error is allowed, and followed by one of the right length."""
    cut = place.t + place.h >= goal
    h = jnp.where(cut, jnp.maximum(goal - place.t, 0.0), place.h)
    following, error = method.step(field, place.t, place.y, h)
    # What has no length leads nowhere, also where the field is not a number.
    following = jnp.where(h == 0, place.y, following)
    allowed = accuracy.atol + accuracy.rtol * jnp.maximum(jnp.abs(place.y), jnp.abs(following))
    size = jax.lax.stop_gradient(jnp.where(h == 0, 0.0, jnp.sqrt(jnp.mean((error / allowed) ** 2))))
    # An error that is not a number calls for a much shorter step.
    size = jnp.where(jnp.isfinite(size), size, jnp.inf)
    good = size <= 1
    length = jax.lax.stop_gradient(h) * jnp.clip(SAFETY * jnp.maximum(size, 1e-16) ** (-1 / method.order), SHRINK, GROW)
    # A step that was cut says nothing against the one proposed before.
    length = jnp.where(cut & good, jnp.maximum(place.h, length), length)
    arrived = cut & good
    moved = Place(
        jnp.where(good, jnp.where(cut, goal, place.t + h), place.t),
        jnp.where(good, following, place.y),
        length,
        jnp.where(arrived, place.index + 1, place.index),
        place.tried + 1,
        jnp.where(good, place.taken + 1, place.taken),
    )
    return _Attempt(moved, good, arrived, h)


def going(place: Place, accuracy: Accuracy) -> Bool[Array, ""]:
    """Whether there are steps left, and the next one is long enough to be one."""
    return (place.tried < accuracy.most_steps) & (place.t + place.h > place.t)


def follow(
    method: Method, field: Field, start: Float[Array, " n"], times: Float[Array, " times"], accuracy: Accuracy
) -> Path:
    """y at increasing times ≥ 0 from y(0) = start; differentiable forwards only."""
    return _run(method, field, start, times, accuracy, None)[0]


def follow_dense(
    method: Method, field: Field, start: Float[Array, " n"], times: Float[Array, " times"], accuracy: Accuracy
) -> Path:
    """As `follow`, by steps that look at the last time only; each of the others is found by a shorter one."""
    path, (places, end) = _run(method, field, start, times[-1:], accuracy, 1)
    begins = jnp.where(jnp.arange(places.t.size) <= end.taken, places.t, jnp.inf)

    def state(now):
        # The step that begins last before t reaches further, so that a shorter one is as accurate as it was.
        t, index = now
        h, y = t - begins[index], places.y[index]
        return jnp.where(h == 0, y, method.step(field, begins[index], y, h).y)

    before = jnp.searchsorted(begins, times, side="right") - 1
    states = jax.lax.map(state, (times, before), batch_size=min(times.size, SIDE_BY_SIDE))
    increasing = jnp.all(jnp.diff(times) >= 0) & (times[0] >= 0)
    unreached = times > end.t
    return Path(
        jnp.where(unreached[:, None], jnp.nan, states), (increasing & (path.reached > 0)).astype(float), path.steps
    )


def follow_until(
    method: Method,
    field: Field,
    start: Float[Array, " n"],
    until: Callable[[Scalar, Float[Array, " n"]], Array],
    first_step: float,
    latest: Scalar,
    accuracy: Accuracy,
) -> tuple[Place, Place, Bool[Array, ""]]:
    """The last place at which until(t, y) does not hold, the one after, and whether it holds there."""

    def unfinished(carry):
        _, place, over = carry
        return ~over & (place.index < 1) & going(place, accuracy)

    def advance(carry):
        before, place, _ = carry
        tried = attempt(method, field, place, latest, accuracy)
        before = jax.tree.map(lambda old, new: jnp.where(tried.good, new, old), before, place)
        return before, tried.place, tried.good & jnp.asarray(until(tried.place.t, tried.place.y))

    place = first_place(start, jnp.asarray(first_step))
    over = jnp.asarray(until(place.t, start))
    return jax.lax.while_loop(unfinished, advance, (place, place, over))


def _run(method, field, start, times, accuracy, stride) -> tuple[Path, Any]:
    """The path, and where a stride is given, the places after each so many steps taken."""
    count = times.shape[0]

    def unfinished(carry):
        return (carry[0].index < count) & going(carry[0], accuracy)

    def advance(carry):
        place, states, marks = carry
        tried = attempt(method, field, place, times[place.index], accuracy)
        states = states.at[place.index].set(jnp.where(tried.arrived, tried.place.y, states[place.index]))
        if stride is not None:
            slot = tried.place.taken // stride
            kept = tried.good & (tried.place.taken % stride == 0)
            marks = jax.tree.map(lambda all, new: all.at[slot].set(jnp.where(kept, new, all[slot])), marks, tried.place)
        return tried.place, states, marks

    # The first step is a guess; a few more find the right length.
    whole = jnp.where(times[0] > 0, times[0], jnp.where(times[-1] > 0, times[-1], 1.0))
    place = first_place(start, 1e-3 * whole)
    marks = None
    if stride is not None:
        slots = -(-accuracy.most_steps // stride) + 1
        marks = jax.tree.map(lambda x: jnp.broadcast_to(x, (slots, *x.shape)), place)
    states = jnp.full((count, start.size), jnp.nan)
    place, states, marks = jax.lax.while_loop(unfinished, advance, (place, states, marks))
    # Times that are not known before cannot be refused before.
    increasing = jnp.all(jnp.diff(times) >= 0) & (times[0] >= 0)
    reached = (place.index == count) & increasing
    return Path(states, reached.astype(float), place.tried.astype(float)), (marks, place)


@eqx.filter_custom_vjp
def follow_both_ways(problem: tuple[Any, Array, Array], method: Method, accuracy: Accuracy, otherwise: str) -> Path:
    """`follow` for problem = (field, start, times), differentiable backwards: by every quantity the field is made of.

    The field must be a pytree of them (`equinox.filter_closure_convert`). Backwards, the steps are taken again from
    marks that were left every √most_steps steps, and each is differentiated: the derivative is that of the numbers
    computed, and takes the memory of 2√most_steps states. Where the end is not reached there is no derivative, and
    `otherwise` is raised: a program that returns derivatives alone has lost every check of the path itself.
    """
    field, start, times = problem
    return follow(method, field, start, times, accuracy)


@follow_both_ways.def_fwd
def _forth(perturbed, problem, method, accuracy, otherwise):
    field, start, times = problem
    path, (marks, end) = _run(method, field, start, times, accuracy, _stride(accuracy))
    return path, converged((path.states, marks, end), path.reached > 0, otherwise)


@follow_both_ways.def_bwd
def _back(residuals, cotangents, perturbed, problem, method, accuracy, otherwise):
    states, marks, end = residuals
    field, start, times = problem
    stride = _stride(accuracy)
    pulls = jnp.zeros_like(states) if cotangents.states is None else cotangents.states
    # A Python number that is differentiated by comes here as what it is.
    parts, rest = eqx.partition(field, lambda x: isinstance(x, float) or eqx.is_inexact_array(x))
    parts = jax.tree.map(jnp.asarray, parts)

    def stretch(place):
        """The steps taken from a mark to the next one: where each began, how long it was, and what it ended at."""

        def unfinished(carry):
            # Steps refused at the end of a stretch are taken up by none: only what was taken counts.
            return (carry[0].taken < end.taken) & (carry[1] < stride)

        def advance(carry):
            place, filled, steps = carry
            tried = attempt(method, field, place, times[place.index], accuracy)
            one = (place.t, place.y, tried.h, jnp.where(tried.arrived, place.index, times.shape[0]))
            steps = jax.tree.map(lambda all, new: all.at[filled].set(new), steps, one)
            return tried.place, jnp.where(tried.good, filled + 1, filled), steps

        zero = jnp.zeros((), int)
        empty = (place.t, place.y, place.h, zero)
        steps = jax.tree.map(lambda x: jnp.broadcast_to(x, (stride + 1, *x.shape)), empty)
        return jax.lax.while_loop(unfinished, advance, (place, zero, steps))[1:]

    def pull_stretch(carry):
        mark, y_bar, parts_bar = carry
        filled, steps = stretch(jax.tree.map(lambda all: all[mark], marks))

        def pull(back, carry):
            y_bar, parts_bar = carry
            t, y, h, ends = jax.tree.map(lambda all: all[filled - 1 - back], steps)
            y_bar = y_bar + jnp.where(ends < times.shape[0], pulls[ends], 0.0)
            _, pulled = jax.vjp(lambda parts, y: method.step(eqx.combine(parts, rest), t, y, h).y, parts, y)
            more, moved = pulled(y_bar)
            return jnp.where(h == 0, y_bar, moved), jax.tree.map(jnp.add, parts_bar, more)

        y_bar, parts_bar = jax.lax.fori_loop(0, filled, pull, (y_bar, parts_bar))
        return mark - 1, y_bar, parts_bar

    nothing = (jnp.zeros_like(start), jax.tree.map(jnp.zeros_like, parts))
    last = jnp.maximum(end.taken - 1, 0) // stride
    _, start_bar, parts_bar = jax.lax.while_loop(lambda carry: carry[0] >= 0, pull_stretch, (last, *nothing))
    # dy(t_j)/dt_j = f(t_j, y(t_j)), and no other state depends on t_j.
    times_bar = None
    if perturbed[2]:
        slopes = jax.lax.map(lambda now: field(*now), (times, states))
        times_bar = jnp.sum(slopes * pulls, axis=1)
    return parts_bar, start_bar, times_bar


def _stride(accuracy: Accuracy) -> int:
    return math.isqrt(accuracy.most_steps - 1) + 1
