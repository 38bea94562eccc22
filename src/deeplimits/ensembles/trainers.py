"""Optimizers, run step by step, and the one way in which every loop of this package records what it passes.

`marks` are increasing numbers of steps. What is seen at a mark is stacked along a first axis; between marks nothing is
stored. Parameters are arrays or pytrees of arrays.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray
from numpy.typing import ArrayLike

from deeplimits.numerics import draws
from deeplimits.numerics.shapes import Floats, Scalar

Marks = ArrayLike | Sequence[int]
Losses = Callable[[Float[Array, " d"]], Float[Array, " m"]]


class Passage(NamedTuple):
    """The state after the last mark, and what was seen at every mark, stacked."""

    state: Any
    seen: Any


class Descent(NamedTuple):
    """Where a descent ended, and what was observed before every step, stacked."""

    end: Float[Array, " d"]
    observed: Any


def to_marks(run: Callable[[Array, Array, Any], tuple[Any, Any]], start: Any, marks: Marks) -> Passage:
    """`run(begin, end, state)` takes a state from one step to another and says what it sees there; from mark to mark.

    >>> to_marks(lambda begin, end, x: (x + end - begin, 10 * end), jnp.asarray(0), [0, 3, 5]).seen.tolist()
    [0, 30, 50]
    """
    ends = jnp.asarray(marks)
    begins = jnp.concatenate([jnp.zeros_like(ends[:1]), ends[:-1]])
    return Passage(*jax.lax.scan(lambda state, ends: run(*ends, state), start, (begins, ends)))


def gradient_descent(
    loss: Callable[[Any], Scalar],
    start: Any,
    step: Scalar,
    marks: Marks,
    *,
    observe: Callable[[Any], Any] = lambda theta: theta,
) -> Any:
    """`observe(theta)`, by default θ itself, after `marks` steps of plain gradient descent; 0 is the start.

    >>> gradient_descent(lambda x: x**2 / 2, jnp.ones(()), jnp.asarray(0.5), [0, 1, 3]).tolist()
    [1.0, 0.5, 0.125]
    """
    gradient = jax.grad(loss)

    def advance(_, theta):
        return jax.tree.map(lambda part, slope: part - step * slope, theta, gradient(theta))

    return _observed(advance, start, marks, observe)


def _observed(advance: Callable[[Array, Any], Any], start: Any, marks: Marks, observe: Callable[[Any], Any]) -> Any:
    def run(begin, end, theta):
        theta = jax.lax.fori_loop(begin, end, advance, theta)
        return theta, observe(theta)

    return to_marks(run, start, marks).seen


def draw_batch(key: PRNGKeyArray, samples: int, batch: int, sampling: str) -> Float[Array, " samples"]:
    """Weights b_k of a random batch, so that its mean loss is Σ_k b_k l_k.

    With or without replacement the batch has exactly `batch` samples; 'bernoulli' takes each with probability B/m and
    divides by B, so that the gradient is unbiased.
    """
    # Uniform variables in single precision: their grain of 2⁻²⁴ is far below what any statistic of a run shows.
    uniforms = draws.draw(key, (), 0, batch if sampling == "with replacement" else samples).uniforms
    if sampling == "bernoulli":
        return jnp.where(uniforms < batch / samples, 1 / batch, 0.0)
    if sampling == "with replacement":
        chosen = (uniforms * samples).astype(int)
    else:
        chosen = jax.lax.top_k(uniforms.astype(jnp.float32), batch)[1].astype(int)
    return jnp.sum(chosen[:, None] == jnp.arange(samples)[None, :], axis=0) / batch


def stochastic_gradient_descent(
    key: PRNGKeyArray,
    losses: Losses,
    start: Float[Array, " d"],
    step: Scalar,
    steps: int,
    batch: int,
    *,
    sampling: str = "with replacement",
    observe: Callable[[Float[Array, " d"], Float[Array, " d"]], Any] = lambda theta, gradient: theta,
) -> Descent:
    """Plain stochastic gradient descent with a fresh batch at every step.

    `losses` gives the loss of every sample. `observe(theta, batch_gradient)` is called before every step; what it
    returns is stacked.

    >>> def losses(x):
    ...     return (x[0] - jnp.array([1.0, 3.0])) ** 2 / 2
    >>> found = stochastic_gradient_descent(
    ...     jax.random.key(0), losses, jnp.zeros(1), jnp.asarray(0.5), 60, 2, sampling="without replacement"
    ... )
    >>> float(found.end[0].round(12))  # a batch of all samples: descent to their mean
    2.0
    """

    def advance(theta, index):
        gradient = _batch_gradient(draws.neighbour(key, index), losses, theta, batch, sampling)
        return theta - step * gradient, observe(theta, gradient)

    return Descent(*jax.lax.scan(advance, start, jnp.arange(steps)))


class Phases(NamedTuple):
    """A run in consecutive phases; the first axis of every array counts them."""

    begins: Float[Array, "phases d"]
    ends: Float[Array, "phases d"]
    sums: Any
    """What was observed, summed over the steps of a phase."""


def stochastic_phases(
    key: PRNGKeyArray,
    losses: Losses,
    start: Float[Array, " d"],
    step: Scalar,
    counts: tuple[int, ...],
    batch: int,
    sampling: str,
    observe: Callable[[Float[Array, " d"], Float[Array, " d"], Any], Any],
) -> Phases:
    """Stochastic gradient descent in phases of so many steps each, and sums of what is observed in each.

    `observe(theta, batch_gradient, before)` is called before every step; `before` holds the means of what it returned
    over the previous phase, zero in the first: one phase settles, one finds the mean, one measures about it. (Called
    once with None, to see what it returns.) All phases are one loop, compiled once; nothing is stored on the way.
    """
    shapes = jax.eval_shape(lambda: observe(start, start, None))
    nothing = jax.tree.map(lambda part: jnp.zeros(part.shape), shapes)

    def phase(begin, end, state):
        first, before = state

        def advance(index, carry):
            theta, sums = carry
            gradient = _batch_gradient(draws.neighbour(key, index), losses, theta, batch, sampling)
            return theta - step * gradient, jax.tree.map(jnp.add, sums, observe(theta, gradient, before))

        last, sums = jax.lax.fori_loop(begin, end, advance, (first, nothing))
        count = (end - begin).astype(float)
        return (last, jax.tree.map(lambda total: total / count, sums)), Phases(first, last, sums)

    return to_marks(phase, (start, nothing), np.cumsum(counts)).seen


def _batch_gradient(key, losses, theta, batch, sampling):
    samples = jax.eval_shape(losses, theta).shape[0]
    weights = draw_batch(key, samples, batch, sampling)
    return jax.grad(lambda theta: weights @ losses(theta))(theta)


def noisy_gradient_descent(
    key: PRNGKeyArray,
    gradient: Callable[[Floats], Floats],
    start: Float[Array, "*shape"],
    schedule: Float[Array, "steps ..."],
    noise: Floats,
    marks: Marks,
) -> Float[Array, "marks *shape"]:
    """θ after `marks` steps θ ← θ − η_t(∇L(θ) + noise·ξ_t) with standard normal ξ_t and the η_t of `schedule`.

    `noise` is the standard deviation of the noise in the gradient; Langevin dynamics of temperature τ is noise =
    √(2τ/η). A schedule of shape (steps, k, 1) runs k schedules at once.

    >>> quiet, steps = jnp.zeros(()), jnp.full(3, 0.5)
    >>> noisy_gradient_descent(jax.random.key(0), lambda x: x, jnp.ones(()), steps, quiet, [0, 3]).tolist()
    [1.0, 0.125]
    """

    def advance(index, theta):
        normal = draws.draw(draws.neighbour(key, index), (), theta.size).gaussians.reshape(theta.shape)
        return theta - schedule[index] * (gradient(theta) + noise * normal)

    return _observed(advance, start, marks, lambda theta: theta)
