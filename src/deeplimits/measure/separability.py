"""Is a finite data set linearly separable?"""

import jax
import numpy as np
from jaxtyping import Array, Float


def is_separable(signed: Float[Array, "*sets n d"]) -> Float[Array, "*sets"]:
    """1 if some w has ⟨w, y_i x_i⟩ > 0 for all rows y_i x_i of `signed`, else 0; for one set of points or for many.

    By Gordan's theorem there is no such w exactly if zero is a convex combination of the rows, which nonnegative least
    squares decides: the smallest ‖Σ u_i (y_i x_i, 1) − (0, 1)‖ over u ≥ 0 vanishes.

    >>> import jax.numpy as jnp
    >>> is_separable(jnp.array([[[1.0], [2.0]], [[1.0], [-2.0]]])).tolist()
    [1.0, 0.0]
    """
    answer = jax.ShapeDtypeStruct(signed.shape[:-2], float)
    return jax.pure_callback(_are_separable, answer, signed, vmap_method="expand_dims")


def _are_separable(signed: Float[Array, "*sets n d"]) -> np.ndarray:
    from scipy.optimize import nnls

    rows = np.asarray(signed)
    rows = rows / np.linalg.norm(rows, axis=-1, keepdims=True)
    target = np.append(np.zeros(rows.shape[-1]), 1.0)
    found = np.empty(rows.shape[:-2])
    for place in np.ndindex(found.shape):
        system = np.vstack([rows[place].T, np.ones(rows.shape[-2])])
        found[place] = nnls(system, target)[1] > 1e-9
    return found
