"""Is a finite data set linearly separable?"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


def is_separable(signed: Float[Array, "n d"]) -> Float[Array, ""]:
    """1 if some w has ⟨w, y_i x_i⟩ > 0 for all rows y_i x_i of `signed`, else 0.

    By Gordan's theorem there is no such w exactly if zero is a convex combination of the rows, which nonnegative least
    squares decides: the smallest ‖Σ u_i (y_i x_i, 1) − (0, 1)‖ over u ≥ 0 vanishes.
    """
    answer = jax.ShapeDtypeStruct((), float)
    return jax.pure_callback(_is_separable, answer, signed, vmap_method="sequential")


def _is_separable(signed: Float[Array, "n d"]) -> np.ndarray:
    from scipy.optimize import nnls

    rows = np.asarray(signed)
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    system = np.vstack([rows.T, np.ones(len(rows))])
    target = np.zeros(len(system))
    target[-1] = 1
    _, residual = nnls(system, target)
    return np.asarray(residual > 1e-9, dtype=float)


def signed_points(x: Float[Array, "n d"], labels: Float[Array, " n"]) -> Float[Array, "n d"]:
    """The points multiplied by their labels."""
    return jnp.asarray(x) * labels[:, None]
