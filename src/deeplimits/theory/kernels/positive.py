"""Kernel matrices as given by a user: symmetric, finite, positive semidefinite, or refused with the reason."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.tracing import is_traced

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


def matrix(kernel: ArrayLike, name: str = "kernel") -> Float[Array, "n n"]:
    """A square, finite, symmetric matrix; anything else is refused."""
    found = jnp.asarray(kernel, float)
    if found.ndim != 2 or found.shape[0] != found.shape[1] or not found.size:
        raise ParameterError(f"{name} has shape {found.shape}; it must be a square matrix (n, n)")
    if is_traced(found):
        return found
    values = np.asarray(found)
    if not np.all(np.isfinite(values)):
        raise ParameterError(f"{name} has entries that are not finite; remove those points")
    asymmetry = float(np.max(np.abs(values - values.T)))
    if asymmetry > TOLERANCE * float(np.max(np.abs(values))):
        raise ParameterError(f"{name} is not symmetric: entries differ by {asymmetry:.3g} from their mirror images")
    return found


def modes(kernel: ArrayLike, name: str = "kernel") -> Modes:
    """Eigenvalues and eigenvectors of a positive semidefinite matrix; a negative eigenvalue is named and refused.

    >>> modes([[1.0, 0.5], [0.5, 1.0]]).eigenvalues.tolist()
    [0.5, 1.5]
    """
    eigenvalues, vectors = jnp.linalg.eigh(matrix(kernel, name))
    if not is_traced(eigenvalues):
        least, largest = float(eigenvalues[0]), float(jnp.max(jnp.abs(eigenvalues)))
        if least < -TOLERANCE * largest:
            raise OutsideValidity(
                f"{name} is not positive semidefinite: it has the eigenvalue {least:.6g} (the largest is "
                f"{float(eigenvalues[-1]):.6g}); a kernel matrix has none below zero, so check how it was computed"
            )
    return Modes(jnp.maximum(eigenvalues, 0.0), vectors)


def column(values: ArrayLike, count: int, name: str) -> tuple[Float[Array, "n k"], bool]:
    """Values at n points as (n, k), and whether they came as one column (n,)."""
    found = jnp.asarray(values, float)
    if found.ndim not in (1, 2) or found.shape[0] != count:
        raise ParameterError(f"{name} has shape {found.shape}; it must have {count} rows, one for each point")
    if not is_traced(found) and not bool(jnp.all(jnp.isfinite(found))):
        raise ParameterError(f"{name} has entries that are not finite; leave those points out")
    return (found[:, None], True) if found.ndim == 1 else (found, False)


def cross_matrix(cross: ArrayLike, count: int, name: str = "cross") -> Float[Array, "t n"]:
    """Kernel values between new points (rows) and the n training points (columns)."""
    found = jnp.asarray(cross, float)
    if found.ndim != 2 or found.shape[1] != count:
        raise ParameterError(f"{name} has shape {found.shape}; it must have {count} columns, one per training point")
    if not is_traced(found) and not bool(jnp.all(jnp.isfinite(found))):
        raise ParameterError(f"{name} has entries that are not finite; remove those points")
    return found
