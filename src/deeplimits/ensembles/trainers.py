"""Optimizers, run step by step."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray


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
    if sampling == "with replacement":
        chosen = jax.random.randint(key, (batch,), 0, samples)
        return jnp.zeros(samples).at[chosen].add(1 / batch)
    if sampling == "without replacement":
        chosen = jax.random.permutation(key, samples)[:batch]
        return jnp.zeros(samples).at[chosen].set(1 / batch)
    return jax.random.bernoulli(key, batch / samples, (samples,)) / batch


def stochastic_gradient_descent(
    key: PRNGKeyArray,
    losses: Callable[[Float[Array, " d"]], Float[Array, " m"]],
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
    samples = jax.eval_shape(losses, start).shape[0]

    def advance(theta, key):
        weights = draw_batch(key, samples, batch, sampling)
        gradient = jax.grad(lambda theta: weights @ losses(theta))(theta)
        return theta - step * gradient, observe(theta, gradient)

    return jax.lax.scan(advance, start, jax.random.split(key, steps))


def noisy_gradient_descent(
    key: PRNGKeyArray,
    gradient: Callable[[Float[Array, " d"]], Float[Array, " d"]],
    start: Float[Array, " d"],
    schedule: Float[Array, " steps"],
    noise: Float[Array, "..."],
) -> Float[Array, "steps+1 d"]:
    """θ ← θ − η_t(∇L(θ) + noise·ξ_t) with standard normal ξ_t and the step sizes η_t of `schedule`; every iterate.

    Langevin dynamics of temperature τ is noise = √(2τ/η).
    """

    def advance(theta, at):
        eta, key = at
        following = theta - eta * (gradient(theta) + noise * jax.random.normal(key, theta.shape))
        return following, following

    _, path = jax.lax.scan(advance, start, (schedule, jax.random.split(key, schedule.shape[0])))
    return jnp.concatenate([start[None], path])
