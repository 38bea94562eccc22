"""Random ReLU networks with weights of any symmetric law, and random lines."""

import itertools
import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from deeplimits.numerics.arguments import choice
from deeplimits.numerics.shapes import Scalar

LAWS = ("gaussian", "uniform", "laplace", "triangular")
"""Symmetric laws without atoms, here with variance 1."""

Weights = list[Float[Array, "rows columns"]]


def random_weights(key: PRNGKeyArray, widths: Sequence[int], *, law: str = "gaussian") -> Weights:
    """Matrices W^(l) = √(2/n_{l−1}) Ŵ^(l) of layers between these widths, Ŵ of independent entries of variance 1.

    >>> [one.shape for one in random_weights(jax.random.key(0), [3, 5, 1])]
    [(5, 3), (1, 5)]
    """
    choice("law", law, LAWS)
    shapes = [(after, before) for before, after in itertools.pairwise(widths)]
    total = sum(rows * columns for rows, columns in shapes)
    if law == "gaussian":
        flat = jax.random.normal(key, (total,))
    else:
        flat = _of_uniform(law, jax.random.uniform(key, (total,), minval=-1.0, maxval=1.0))
    found, begin = [], 0
    for rows, columns in shapes:
        entries = flat[begin : begin + rows * columns].reshape(rows, columns)
        found.append(math.sqrt(2 / columns) * entries)
        begin += rows * columns
    return found


def _of_uniform(law: str, u: Array) -> Array:
    """A variable of variance 1 from one that is uniform between −1 and 1."""
    if law == "uniform":
        return math.sqrt(3) * u
    away = 1 - jnp.abs(u)
    if law == "laplace":
        return -jnp.sign(u) * jnp.log(away) / math.sqrt(2)
    # Density √6 − |w| over 6: the share beyond w is (1 − w/√6)²/2
    return jnp.sign(u) * math.sqrt(6) * (1 - jnp.sqrt(away))


def relu_network(weights: Weights, x: Float[Array, " inputs"]) -> Float[Array, " outputs"]:
    """The outputs of a ReLU network without biases.

    >>> relu_network([jnp.array([[1.0, -1.0], [2.0, 1.0]]), jnp.array([[1.0, -1.0]])], jnp.array([1.0, 0.5])).tolist()
    [-2.0]
    """
    h = x
    for matrix in weights[:-1]:
        h = jnp.maximum(matrix @ h, 0.0)
    return weights[-1] @ h


def gates(weights: Weights, x: Float[Array, " inputs"]) -> list[Float[Array, " neurons"]]:
    """1 for each hidden neuron that is on, layer by layer.

    >>> [one.tolist() for one in gates([jnp.array([[1.0], [-1.0]]), jnp.ones((1, 2))], jnp.ones(1))]
    [[1.0, 0.0]]
    """
    found, h = [], x
    for matrix in weights[:-1]:
        z = matrix @ h
        found.append(jnp.where(z > 0, 1.0, 0.0))
        h = jnp.maximum(z, 0.0)
    return found


def tangent_kernel(weights: Weights, x: Float[Array, "points inputs"]) -> Float[Array, "points points"]:
    """Θ_ab = Σ ∂z_a ∂z_b over all entries of Ŵ^(l) = √(n_{l−1}/2) W^(l), of a network with one output.

    >>> one = [jnp.array([[1.0]]), jnp.array([[1.0]])]
    >>> round(float(tangent_kernel(one, jnp.array([[2.0]]))[0, 0]), 10)
    16.0
    """

    def output(weights, one):
        return relu_network(weights, one)[0]

    slopes = jax.vmap(jax.grad(output), (None, 0))(weights, x)
    # ∂z/∂Ŵ = √(2/n_{l−1}) ∂z/∂W
    rows = [part.reshape(len(x), -1) * math.sqrt(2 / part.shape[2]) for part in slopes]
    return sum((part @ part.T for part in rows), jnp.zeros((len(x), len(x))))


def cell_sides(normals: Float[Array, "lines 2"], offsets: Float[Array, " lines"]) -> Scalar:
    """How many sides the cell around the origin has, of the lines {x: w_j·x + b_j = 0}: each line looked at by itself.

    >>> square = jnp.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> float(cell_sides(square, jnp.ones(4)))
    4.0
    """
    # Points of line j: its nearest point to the origin, and t times its direction.
    squared = jnp.sum(normals**2, axis=1)
    nearest = -(offsets / squared)[:, None] * normals
    along = jnp.stack([-normals[:, 1], normals[:, 0]], axis=1)
    # On the origin's side of line k: sign(b_k)(w_k·(p_j + t u_j) + b_k) > 0, which bounds t from above or from below
    side = jnp.sign(offsets)[None, :]
    constant = side * (nearest @ normals.T + offsets[None, :])
    slope = side * (along @ normals.T)
    others = ~jnp.eye(len(offsets), dtype=bool)
    safe = jnp.where(slope == 0, 1.0, slope)
    crossing = -constant / safe
    low = jnp.max(jnp.where(others & (slope > 0), crossing, -jnp.inf), axis=1)
    high = jnp.min(jnp.where(others & (slope < 0), crossing, jnp.inf), axis=1)
    return jnp.sum(jnp.where(low < high, 1.0, 0.0))
