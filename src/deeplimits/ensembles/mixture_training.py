r"""Online SGD of softmax regression on a mixture of k Gaussians, as the exact chain of its summary statistics.

A step depends on the class, on the sample along the means and in the span of the weights, and on the squared length of
the rest, which is χ²: its law at every finite dimension, at a cost that does not depend on the dimension.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, PRNGKeyArray

from deeplimits.numerics import draws
from deeplimits.numerics.draws import Draws
from deeplimits.numerics.shapes import Scalar


class MixtureStatistics(NamedTuple):
    """Overlaps x^c·μ_b of weights with means, and the Gram matrix of the rest of the weights."""

    means: Float[Array, "k k"]
    rest: Float[Array, "k k"]


class Mixture(NamedTuple):
    """What the chain has to know: a Cholesky factor of the means' Gram matrix, probabilities of classes, and λ."""

    frame: Float[Array, "k k"]
    probabilities: Float[Array, " k"]
    separation: Scalar


def random_start(key: PRNGKeyArray, mixture: Mixture, dimension: int) -> MixtureStatistics:
    """The statistics of weights with independent entries of variance 1/d."""
    k = mixture.frame.shape[0]
    numbers = jax.random.normal(key, (k, dimension)) / jnp.sqrt(1.0 * dimension)
    return MixtureStatistics(numbers[:, :k] @ mixture.frame.T, numbers[:, k:] @ numbers[:, k:].T)


def samples(key: PRNGKeyArray, steps: int, dimension: int, classes: int) -> Draws:
    """What is random in so many steps."""
    return draws.draw(key, (steps,), 2 * classes, uniforms=1, freedom=max(0, dimension - 2 * classes))


def mixture_step(
    sample: Draws, state: MixtureStatistics, mixture: Mixture, dimension: int, ridge: ArrayLike, step: ArrayLike
) -> MixtureStatistics:
    """x ← (1 − δβ)x − δ(π − e_a)Y', δ = c/d."""
    k = mixture.frame.shape[0]
    delta, noise = jnp.asarray(step, float) / dimension, 1 / jnp.sqrt(mixture.separation)
    keep = 1 - delta * jnp.asarray(ridge, float)
    label = jnp.sum(jnp.where(sample.uniforms[0] > jnp.cumsum(mixture.probabilities)[:-1], 1, 0))
    along, inside = noise * sample.gaussians[:k], noise * sample.gaussians[k:]
    # Y in the orthonormal frame of the means is the class's row of the Cholesky factor plus noise.
    place = mixture.frame[label] + along
    on_means = mixture.frame @ place
    weights = jax.scipy.linalg.solve_triangular(mixture.frame, state.means.T, lower=True).T
    root = jnp.linalg.cholesky(state.rest + 1e-14 * (1 + jnp.trace(state.rest)) * jnp.eye(k))
    error = jax.nn.softmax(weights @ place + root @ inside) - jax.nn.one_hot(label, k, dtype=float)
    moved = keep * root - delta * jnp.outer(error, inside)
    across = delta**2 * noise**2 * sample.chi_square
    return MixtureStatistics(
        keep * state.means - delta * jnp.outer(error, on_means),
        moved @ moved.T + across * jnp.outer(error, error),
    )


def held_out_block(
    key: PRNGKeyArray, weights: Float[Array, "k d"], separation: ArrayLike, count: int, block: int, kind: str
) -> Float[Array, "d d"]:
    """Block cc of the Hessian or of the gradients' second moment over `count` fresh samples, means e_1, …, e_k.

    The classes have equal probabilities.
    """
    k, d = weights.shape
    label_key, noise_key = jax.random.split(key)
    labels = jax.random.randint(label_key, (count,), 0, k)
    y = jax.random.normal(noise_key, (count, d)) / jnp.sqrt(jnp.asarray(separation, float))
    targets = jax.nn.one_hot(labels, d, dtype=float)
    y = y + targets
    chance = jax.nn.softmax(y @ weights.T, axis=1)[:, block]
    w = chance * (1 - chance) if kind == "hessian" else (chance - targets[:, block]) ** 2
    return (y * w[:, None]).T @ y / count
