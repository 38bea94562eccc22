r"""Alignment of vectors and matrices with subspaces."""

import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Float

from deeplimits.errors import ParameterError
from deeplimits.numerics import arguments

DEPENDENT = 1e-10
"""Directions of a basis that are this much shorter than the longest are none."""


def alignment(vector: ArrayLike, basis: ArrayLike) -> float:
    """ρ(v, B) = |P_B v|/|v|: how much of a vector lies in the span of the columns of `basis`.

    Setting     `vector` (d,), not zero; `basis` (d, k), columns that may depend on each other
    Result      a number between 0 and 1; v lives in B up to ε where it is at least 1 − ε. For v in a random direction
                and B of dimension k, E ρ² = k/d
    Validity    any vector and columns that are finite and not all zero
    References  benarous2024

    >>> alignment([3.0, 4.0], [[1.0], [0.0]])
    0.6
    """
    v = np.asarray(arguments.array("vector", vector, ("d",)))
    frame = _frame(basis, len(v))
    if not np.any(v):
        raise ParameterError("vector is zero, which has no direction")
    # Scaled first, so that squares neither overflow nor vanish
    unit = v / np.max(np.abs(v))
    return float(np.linalg.norm(frame.T @ unit) / np.linalg.norm(unit))


def distance_from_subspace(matrix: ArrayLike, basis: ArrayLike) -> float:
    """The least ε with which a matrix lives in a subspace: |(1 − P_B)A|/|A| in operator norm.

    Setting     `matrix` A (d, m), not zero; `basis` (d, k)
    Result      the smallest |M|/|A| over all M for which A − M maps into the span: M = (1 − P_B)A
    References  benarous2024

    >>> round(distance_from_subspace(np.diag([3.0, 1.0, -5.0]), np.eye(3)[:, [0, 2]]), 12)
    0.2
    """
    a = np.asarray(arguments.array("matrix", matrix, ("d", "m")))
    frame = _frame(basis, a.shape[0])
    size = np.linalg.norm(a, 2)
    if size == 0:
        raise ParameterError("matrix is zero, which lives in every subspace")
    return float(np.linalg.norm(a - frame @ (frame.T @ a), 2) / size)


def top_eigenspace(matrix: ArrayLike, count: int) -> Float[np.ndarray, "d k"]:
    """Orthonormal eigenvectors of the k = `count` eigenvalues that are largest in modulus, the largest first.

    In modulus, because off-diagonal blocks of a Hessian are negative. Where eigenvalues k and k + 1 agree the space is
    not unique: compare projectors.

    >>> abs(top_eigenspace(np.diag([3.0, 1.0, -5.0]), 1)).ravel().tolist()
    [0.0, 0.0, 1.0]
    """
    a = np.asarray(arguments.array("matrix", matrix, ("d", "d"), why="symmetric"))
    if not np.allclose(a, a.T, rtol=1e-10, atol=1e-12 * np.max(np.abs(a))):
        raise ParameterError("matrix is not symmetric; its singular vectors are another matter")
    if arguments.whole("count", count, 1) > len(a):
        raise ParameterError(f"count = {count} exceeds the {len(a)} eigenvalues; take fewer")
    values, vectors = np.linalg.eigh(a)
    return vectors[:, np.argsort(-np.abs(values), kind="stable")[:count]]


def _frame(basis: ArrayLike, dimension: int) -> np.ndarray:
    columns = np.asarray(arguments.array("basis", basis, (dimension, "k"), why="a column for each direction"))
    vectors, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    if sizes[0] == 0:
        raise ParameterError("basis is zero and spans nothing")
    return vectors[:, sizes > DEPENDENT * sizes[0]]
