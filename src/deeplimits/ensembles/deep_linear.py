"""Deep linear networks with random weights, before and after they have seen data."""

import itertools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from deeplimits.numerics.shapes import Scalar


def last_row(key: PRNGKeyArray, inputs: int, hidden: Sequence[int], weight_variance: Scalar) -> Float[Array, " inputs"]:
    """θ with θ·x = W^(L+1) … W^(1) x, W^(l) of independent entries N(0, σ²/n_{l−1}), multiplied matrix by matrix.

    >>> last_row(jax.random.key(0), 3, [4, 5], jnp.array(1.0)).shape
    (3,)
    """
    widths = [inputs, *hidden, 1]
    total = sum(after * before for before, after in itertools.pairwise(widths))
    flat, end = jax.random.normal(key, (total,)), total
    row = jnp.ones((1,))
    for before, after in reversed(list(itertools.pairwise(widths))):
        matrix = flat[end - after * before : end].reshape(after, before)
        end -= after * before
        row = row @ matrix * jnp.sqrt(weight_variance / before)
    return row


def posterior_scales(
    key: PRNGKeyArray,
    hidden: Sequence[int],
    weight_variance: Scalar,
    points: int,
    squared_norm: Scalar,
    inputs: int,
    *,
    steps: int,
) -> Float[Array, " steps"]:
    """s² = Π_l |row l|²σ²/n_l along a Metropolis chain over the squared lengths of the layers, after data were seen.

    The prior of each squared length is χ²; the likelihood of P labels is (s²)^{−P/2} e^{−n_0ν/(2σ²s²)}. The chain walks
    in the logarithms, starts at the prior's mean, and is kept as a whole.

    >>> posterior_scales(jax.random.key(0), [5], jnp.array(1.0), 2, jnp.array(1.0), 4, steps=10).shape
    (10,)
    """
    n = jnp.asarray(hidden, float)
    layers = len(hidden)

    def log_density(logs):
        scale = jnp.sum(jnp.log(weight_variance) - jnp.log(n) + logs)
        prior = jnp.sum(n / 2 * logs - jnp.exp(logs) / 2)
        misfit = inputs * squared_norm / (2 * weight_variance) * jnp.exp(-scale)
        return prior - points / 2 * scale - misfit

    # Layers move alone and all together; what the likelihood fixes is their sum.
    width = 1 / jnp.sqrt(n / 2 + points / 2)
    noise = jax.random.normal(key, (steps, layers + 1))
    choices = jax.random.uniform(jax.random.fold_in(key, 1), (steps,))

    def step(state, given):
        logs, value = state
        moves, u = given
        proposal = logs + 1.7 * width * moves[:layers] / jnp.sqrt(1.0 * layers) + 0.3 * width * moves[layers]
        new = log_density(proposal)
        taken = jnp.log(u) < new - value
        logs, value = jnp.where(taken, proposal, logs), jnp.where(taken, new, value)
        return (logs, value), jnp.exp(jnp.sum(jnp.log(weight_variance) - jnp.log(n) + logs))

    start = jnp.log(n)
    return jax.lax.scan(step, (start, log_density(start)), (noise, choices))[1]
