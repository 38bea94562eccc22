"""Kernel matrices as given by a user: symmetric, finite, positive semidefinite, or refused with the reason."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.errors import ParameterError
from deeplimits.numerics.arguments import array, known
from deeplimits.numerics.checks import valid

TOLERANCE = 1e-9
"""How far below zero, relative to the largest eigenvalue, rounding may put an eigenvalue."""


class Modes(NamedTuple):
    """Eigenvalues of a kernel matrix in ascending order, with their eigenvectors in the columns."""

    eigenvalues: Float[Array, " n"]
    vectors: Float[Array, "n n"]

    @property
    def null(self) -> Array:
        """Which eigenvalues are zero up to rounding: n machine precisions of the largest."""
        precision = jnp.finfo(self.eigenvalues.dtype).eps * self.eigenvalues.shape[0]
        return self.eigenvalues <= precision * self.eigenvalues[-1]


def matrix(kernel: ArrayLike, *, name: str = "kernel") -> Float[Array, "n n"]:
    """A square, finite, symmetric matrix; anything else is refused."""
    found = array(name, kernel, ("n", "n"), why="a square matrix of kernel values")
    if not known(found):
        return found
    values = np.asarray(found)
    asymmetry = float(np.max(np.abs(values - values.T)))
    if asymmetry > TOLERANCE * float(np.max(np.abs(values))):
        raise ParameterError(f"{name} is not symmetric: entries differ by {asymmetry:.3g} from their mirror images")
    return found


def modes(kernel: ArrayLike, *, name: str = "kernel") -> Modes:
    """Eigenvalues and eigenvectors of a positive semidefinite matrix; a negative eigenvalue is named and refused.

    >>> modes([[1.0, 0.5], [0.5, 1.0]]).eigenvalues.tolist()
    [0.5, 1.5]
    """
    eigenvalues, vectors = jnp.linalg.eigh(matrix(kernel, name=name))
    eigenvalues = valid(
        eigenvalues,
        eigenvalues[0] >= -TOLERANCE * jnp.max(jnp.abs(eigenvalues)),
        f"{name} is not positive semidefinite; a kernel matrix has no eigenvalue below zero, so check how it was "
        "computed",
        lambda: f": it has the eigenvalue {float(eigenvalues[0]):.6g} (the largest is {float(eigenvalues[-1]):.6g})",
    )
    return Modes(jnp.maximum(eigenvalues, 0.0), vectors)


class Column(NamedTuple):
    """Values as a matrix, and whether they came as a vector."""

    values: Float[Array, "n k"]
    single: bool


def column(values: ArrayLike, count: int, name: str) -> Column:
    """Values at n points as (n, k), and whether they came as one column (n,)."""
    found = array(name, values, (count,), (count, "k"), why="one row for each point; leave out what is not finite")
    return Column(found[:, None], True) if found.ndim == 1 else Column(found, False)


def cross_matrix(cross: ArrayLike, count: int, *, name: str = "cross") -> Float[Array, "t n"]:
    """Kernel values between new points (rows) and the n training points (columns)."""
    return array(name, cross, ("t", count), why="one column for each training point")
