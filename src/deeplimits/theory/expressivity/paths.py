r"""A ReLU network without biases as a sum over paths, by enumeration: the oracle for tiny networks.

z_q = Σ_p x_p Σ_{γ: p→q} W_γ^(L+1) Π_l W_γ^(l) ξ_γ^(l), with the gates ξ = 1{z > 0} along the path; the inner sum is the
entry J_qp of the Jacobian.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.errors import ParameterError, TooCostly
from deeplimits.numerics.arguments import array, whole
from deeplimits.numerics.shapes import Scalar

MOST_PATHS = 5_000_000


class PathSum(NamedTuple):
    """Outputs and Jacobian of a network, each a sum over paths."""

    outputs: Float[Array, " outputs"]
    jacobian: Float[Array, "outputs inputs"]
    paths: int
    """paths between one input and one output"""


def path_count(hidden: Sequence[int]) -> int:
    """Π n_l, how many paths lead from one input to one output through hidden layers of these widths.

    >>> path_count([5, 4, 6])
    120
    """
    count = 1
    for width in hidden_widths(hidden):
        count *= width
    return count


def hidden_widths(hidden: Sequence[int]) -> list[int]:
    """Widths of hidden layers as ints, each at least 1."""
    given = np.atleast_1d(np.asarray(hidden)).tolist()
    if np.asarray(hidden).ndim > 1:
        raise ParameterError(f"hidden has shape {np.shape(hidden)}; give one width for each hidden layer")
    return [
        whole(f"hidden[{place}]", int(one) if isinstance(one, float) and one.is_integer() else one, 1)
        for place, one in enumerate(given)
    ]


def path_sum(weights: Sequence[ArrayLike], x: ArrayLike) -> PathSum:
    r"""Outputs and Jacobian of a ReLU network without biases, path by path.

    Setting     W^(1) … W^(L+1) with shapes (n_l, n_{l−1}), one input x; gates ξ_i^(l) = 1{z_i^(l) > 0}
    Result      J_qp = Σ_{γ: p→q} W_γ^(L+1) Π_{l≤L} W_γ^(l) ξ_γ^(l), z_q = Σ_p x_p J_qp
    Validity    as many paths as a loop can visit; for larger networks multiply the matrices
    References  hanin2020

    >>> found = path_sum([[[1.0, -1.0], [2.0, 1.0]], [[1.0, -1.0]]], [1.0, 0.5])
    >>> found.outputs.tolist(), found.jacobian.tolist(), found.paths
    ([-2.0], [[-1.0, -2.0]], 2)
    """
    start = np.asarray(array("x", x, ("inputs",), why="one input"))
    if len(weights) == 0:
        raise ParameterError("weights is empty; give the matrix of each layer")
    matrices, width = [], start.size
    for place, one in enumerate(weights):
        matrices.append(np.asarray(array(f"weights[{place}]", one, ("n", width), why="one row for each neuron")))
        width = len(matrices[-1])
    hidden = [len(one) for one in matrices[:-1]]
    visited = path_count(hidden) * start.size * width
    if visited > MOST_PATHS:
        raise TooCostly(f"the network has {visited} paths, more than {MOST_PATHS}; multiply its matrices instead")
    gates, entering = [], start
    for matrix in matrices[:-1]:
        entering = matrix @ entering
        gates.append((entering > 0).astype(float))
        entering = np.maximum(entering, 0.0)
    jacobian = np.zeros((width, start.size))
    for path in itertools.product(range(start.size), *(range(n) for n in hidden), range(width)):
        product = matrices[-1][path[-1], path[-2]]
        for layer, gate in enumerate(gates):
            product *= matrices[layer][path[layer + 1], path[layer]] * gate[path[layer + 1]]
        jacobian[path[-1], path[0]] += product
    return PathSum(jnp.asarray(jacobian @ start), jnp.asarray(jacobian), path_count(hidden))


def dead_probability(hidden: Sequence[int]) -> Scalar:
    r"""The probability that some hidden layer of a random ReLU network is off as a whole at a given input.

    Setting     no biases, symmetric weights without atoms, `hidden` the widths n_1 … n_L
    Result      1 − Π_l (1 − 2^{−n_l}); then output and Jacobian vanish. That the function is constant is less likely
    Validity    exact at every width
    References  hanin2020; lu2020

    >>> round(float(dead_probability([5, 4, 6])), 14)
    0.10598754882813
    """
    n = jnp.asarray(hidden_widths(hidden), float)
    return -jnp.expm1(jnp.sum(jnp.log1p(-(2.0**-n))))


def gate_probability(gates: Sequence[Sequence[int]]) -> Scalar:
    r"""The probability of a pattern of gates, one list of zeros and ones for each hidden layer, at a given input.

    Setting     no biases, symmetric weights without atoms; ξ_i^(l) = 1{z_i^(l) > 0}
    Result      2^{−Σ n_l}: gates are independent fair coins, and independent of everything that the signs of single
                rows of the weights leave unchanged. Behind a layer that is off as a whole every gate is off
    Validity    one input. Weights with atoms (±1) make z = 0 with positive probability, and the gates of two inputs
                depend on each other
    References  hanin2020

    >>> float(gate_probability([[1, 0], [0, 1, 1]])), float(gate_probability([[0, 0], [0, 0, 0]]))
    (0.03125, 0.25)
    """
    probability, alive = 1.0, True
    if len(gates) == 0:
        raise ParameterError("gates is empty; give a list of zeros and ones for each hidden layer")
    for place, layer in enumerate(gates):
        row = np.asarray(array(f"gates[{place}]", layer, ("n",)))
        if not np.all((row == 0) | (row == 1)):
            raise ParameterError(f"gates[{place}] = {row.tolist()} is not allowed; gates are zeros and ones")
        probability *= 2.0 ** -len(row) if alive else float(not np.any(row))
        alive = alive and bool(np.any(row))
    return jnp.asarray(probability)
