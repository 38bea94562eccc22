"""Symmetric matrices by their upper triangle. Places are known when a program is made, so none are computed in it."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int


def upper(count: int) -> tuple[Int[np.ndarray, " pairs"], Int[np.ndarray, " pairs"]]:
    """Rows and columns of the upper triangle, row by row."""
    return np.triu_indices(count)


def triangle(matrix: Float[Array, "n n"]) -> Float[Array, " pairs"]:
    """The upper triangle, row by row."""
    return matrix[upper(matrix.shape[0])]


def filled(values: Float[Array, " pairs"], count: int) -> Float[Array, "n n"]:
    """The symmetric matrix with that upper triangle.

    >>> filled(jnp.array([1.0, 2.0, 3.0]), 2).tolist()
    [[1.0, 2.0], [2.0, 3.0]]
    """
    places = np.zeros((count, count), int)
    first, second = upper(count)
    places[first, second] = places[second, first] = np.arange(len(first))
    return values[places]


def diagonal(matrix: Float[Array, "n n"]) -> Float[Array, " n"]:
    """The diagonal, by one operation where `jnp.diagonal` takes twenty."""
    return jnp.einsum("ii->i", matrix)
