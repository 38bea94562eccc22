"""Drawing from determinantal point processes."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray


def determinantal_sample(key: PRNGKeyArray, kernel: Float[Array, "n n"]) -> Bool[Array, " n"]:
    """One draw of the L-ensemble with the given positive semidefinite matrix: which points are in the set.

    The spectral algorithm (Hough, Krishnapur, Peres and Virág): keep each eigenvector with probability l/(1 + l); then
    draw points one by one from the diagonal of the projection onto what is left, each draw conditioning on the last.

    >>> import jax
    >>> int(determinantal_sample(jax.random.key(0), 1e12 * jax.numpy.eye(4)).sum())
    4
    """
    count = kernel.shape[0]
    eigenvalues, vectors = jnp.linalg.eigh(kernel)
    keep, choose = jax.random.uniform(key, (2, count))
    eigenvalues = jnp.maximum(eigenvalues, 0.0)
    kept = keep < eigenvalues / (1 + eigenvalues)
    projection = jnp.where(kept, vectors, 0.0) @ vectors.T

    def draw(state, inputs):
        projection, chosen = state
        number, level = inputs
        weights = jnp.maximum(jnp.where(chosen, 0.0, jnp.diagonal(projection)), 0.0)
        # The point at which the sum of the weights passes a random level.
        sums = jnp.cumsum(weights)
        point = jnp.minimum(jnp.sum(sums <= level * sums[-1]), count - 1)
        needed = number < jnp.sum(kept)
        pivot = jnp.where(needed, projection[point, point], 1.0)
        # Conditioning on a point is a Schur complement.
        column = projection[:, point]
        following = projection - jnp.outer(column, column) / pivot
        return (jnp.where(needed, following, projection), chosen.at[point].set(chosen[point] | needed)), None

    start = projection, jnp.zeros(count, dtype=bool)
    (_, chosen), _ = jax.lax.scan(draw, start, (jnp.arange(count), choose))
    return chosen
