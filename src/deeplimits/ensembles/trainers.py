"""Optimizers, run step by step."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from deeplimits.numerics import draws

Losses = Callable[[Float[Array, " d"]], Float[Array, " m"]]


def gradient_descent(
    loss: Callable[[Float[Array, " d"]], Float[Array, ""]],
    start: Float[Array, " d"],
    step: Float[Array, ""],
    steps: int,
) -> Float[Array, "steps+1 d"]:
    """Every iterate of plain gradient descent, the start included."""
    gradient = jax.grad(loss)

    def advance(theta, _):
        following = theta - step * gradient(theta)
        return following, following

    _, path = jax.lax.scan(advance, start, length=steps)
    return jnp.concatenate([start[None], path])


def draw_batch(key: PRNGKeyArray, samples: int, batch: int, sampling: str) -> Float[Array, " samples"]:
    """Weights b_k of a random batch, so that its mean loss is Σ_k b_k l_k.

    With or without replacement the batch has exactly `batch` samples; 'bernoulli' takes each with probability B/m and
    divides by B, so that the gradient is unbiased.
    """
    # Uniform variables in single precision: their grain of 2⁻²⁴ is far below what any statistic of a run shows.
    uniforms = draws.draw(key, (), 0, batch if sampling == "with replacement" else samples).uniforms
    if sampling == "bernoulli":
        return (uniforms < batch / samples) / batch
    if sampling == "with replacement":
        chosen = (uniforms * samples).astype(int)
    else:
        chosen = jax.lax.top_k(uniforms.astype(jnp.float32), batch)[1].astype(int)
    return jnp.sum(chosen[:, None] == jnp.arange(samples), axis=0) / batch


def stochastic_gradient_descent(
    key: PRNGKeyArray,
    losses: Losses,
    start: Float[Array, " d"],
    step: Float[Array, ""],
    steps: int,
    batch: int,
    sampling: str = "with replacement",
    observe: Callable[[Float[Array, " d"], Float[Array, " d"]], Any] = lambda theta, gradient: theta,
) -> tuple[Float[Array, " d"], Any]:
    """Plain stochastic gradient descent with a fresh batch at every step.

    `losses` gives the loss of every sample. `observe(theta, batch_gradient)` is called before every step; what it
    returns is stacked. Gives the last iterate and the observations.
    """

    def advance(theta, index):
        gradient = _batch_gradient(draws.neighbour(key, index), losses, theta, batch, sampling)
        return theta - step * gradient, observe(theta, gradient)

    return jax.lax.scan(advance, start, jnp.arange(steps))


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
    step: Float[Array, ""],
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
    ends = np.cumsum(counts)

    def phase(state, bounds):
        begin, before = state

        def advance(index, carry):
            theta, sums = carry
            gradient = _batch_gradient(draws.neighbour(key, index), losses, theta, batch, sampling)
            return theta - step * gradient, jax.tree.map(jnp.add, sums, observe(theta, gradient, before))

        end, sums = jax.lax.fori_loop(bounds[0], bounds[1], advance, (begin, nothing))
        count = (bounds[1] - bounds[0]).astype(float)
        return (end, jax.tree.map(lambda total: total / count, sums)), Phases(begin, end, sums)

    bounds = jnp.asarray(np.stack([ends - counts, ends], axis=1))
    return jax.lax.scan(phase, (start, nothing), bounds)[1]


def _batch_gradient(key, losses, theta, batch, sampling):
    samples = jax.eval_shape(losses, theta).shape[0]
    weights = draw_batch(key, samples, batch, sampling)
    return jax.grad(lambda theta: weights @ losses(theta))(theta)


def noisy_gradient_descent(
    key: PRNGKeyArray,
    gradient: Callable[[Float[Array, "..."]], Float[Array, "..."]],
    start: Float[Array, "*shape"],
    schedule: Float[Array, "steps ..."],
    noise: Float[Array, "..."],
) -> Float[Array, "steps+1 *shape"]:
    """θ ← θ − η_t(∇L(θ) + noise·ξ_t) with standard normal ξ_t and the step sizes η_t of `schedule`; every iterate.

    `noise` is the standard deviation of the noise in the gradient; Langevin dynamics of temperature τ is noise =
    √(2τ/η). A schedule of shape (steps, k, 1) runs k schedules at once.
    """

    def advance(theta, at):
        eta, index = at
        normal = draws.draw(draws.neighbour(key, index), (), theta.size).gaussians.reshape(theta.shape)
        following = theta - eta * (gradient(theta) + noise * normal)
        return following, following

    _, path = jax.lax.scan(advance, start, (schedule, jnp.arange(schedule.shape[0])))
    return jnp.concatenate([start[None], path])
