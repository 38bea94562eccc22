"""How far a two-layer network is from its linearization in the weights.

f(x; W) = m^{−1/2} Σ_j a_j σ(⟨w_j, x⟩) with |a_j| ≤ 1 and m neurons; W has the rows w_j.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float
from scipy.optimize import minimize_scalar

from deeplimits.errors import OutsideValidity
from deeplimits.models.activations import Activation

_RANGE = 30.0


@functools.cache
def curvature_bound(activation: Activation) -> float:
    """sup |σ''| over the line, to 1e-12.

    >>> from deeplimits.models.activations import smooth
    >>> round(curvature_bound(smooth("tanh")), 12)
    0.76980035892
    """

    def curvature(u):
        # A prediction may be under compilation; this number is needed now.
        with jax.ensure_compile_time_eval():
            return np.abs(np.asarray(activation.second_derivative(jnp.asarray(u, float))))

    grid = np.linspace(-_RANGE, _RANGE, 12_001)
    values = curvature(grid)
    best = int(np.argmax(values))
    if not np.all(np.isfinite(values)) or values[[0, -1]].max() > 1.5 * values[len(grid) // 4 : -len(grid) // 4].max():
        raise OutsideValidity(f"the second derivative of {activation.name} is unbounded, so the bound does not apply")
    left, right = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    refined = minimize_scalar(lambda u: -float(curvature(u)), bounds=(left, right), options={"xatol": 1e-10})
    return float(max(values[best], -refined.fun))


def smooth_remainder_bound(
    activation: Activation,
    width: ArrayLike,
    distance: ArrayLike,
    largest_output_weight: ArrayLike = 1.0,
    input_norm: ArrayLike = 1.0,
) -> Float[Array, "..."]:
    """Bound on |f(x;W) − f(x;V) − ⟨∇f(x;V), W−V⟩| for ‖W − V‖_F = `distance`: sup|σ''| max|a| ‖x‖² distance²/(2√m)."""
    curvature = curvature_bound(activation)
    width, distance = jnp.asarray(width, float), jnp.asarray(distance, float)
    return (
        curvature
        * jnp.asarray(largest_output_weight, float)
        * jnp.asarray(input_norm, float) ** 2
        * distance**2
        / (2 * jnp.sqrt(width))
    )
