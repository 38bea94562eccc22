r"""One step of a method for stiff equations: the linearly implicit Euler method, extrapolated (Deuflhard's SEULEX).

A step h is made by n = 1, …, K substeps of h/n, each of them y' = y + (1 − (h/n)J)⁻¹ (h/n) f(t', y) with t' its end and
J the Jacobian at the step's beginning. The errors are power series in h/n; combinations with the weights
Π_{m≠n} n/(n − m) remove their first K − 1 terms. Nothing has to be iterated, and a linear function of y that the
equation preserves is preserved up to rounding, whatever the tolerances.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from deeplimits.numerics.shapes import Scalar
from deeplimits.numerics.stepping import Field, Method, Stepped

ORDER = 6
"""K: of higher order, the weights (65 at most) would cost more digits than the method gains."""


def _weights(counts: np.ndarray) -> np.ndarray:
    return np.array([np.prod([n / (n - m) for m in counts if m != n]) for n in counts])


_COUNTS = np.arange(1, ORDER + 1)
_BEST = _weights(_COUNTS)
# Without the single step the order is less by one: the difference estimates the error.
_ERROR = _BEST - np.append(0.0, _weights(_COUNTS[1:]))

# All substeps in one list: which n they belong to, which of the n they are, and whether they are the last.
_ROW = np.repeat(np.arange(ORDER), _COUNTS)
_PLACE = np.concatenate([np.arange(n) for n in _COUNTS])
_LAST = np.equal(_PLACE, _COUNTS[_ROW] - 1)


def extrapolated_euler(field: Field, t: Scalar, y: Float[Array, " n"], h: Scalar) -> Stepped:
    """y(t + h) from y(t) with error O(h⁷), and how it differs from the result of order one less."""
    jacobian = jax.jacfwd(lambda y: field(t, y))(y)
    lengths = h / jnp.asarray(_COUNTS, float)
    lower, pivots = jax.vmap(lambda length: jax.scipy.linalg.lu_factor(jnp.eye(y.size) - length * jacobian))(lengths)

    def substep(carry, now):
        moved, total, error = carry
        row, place, last = now
        moved = jnp.where(place == 0, 0.0, moved)
        length = lengths[row]
        slope = field(t + (place + 1).astype(float) * length, y + moved)
        moved = moved + jax.scipy.linalg.lu_solve((lower[row], pivots[row]), length * slope)
        share = jnp.where(last, moved, 0.0)
        return (moved, total + jnp.asarray(_BEST)[row] * share, error + jnp.asarray(_ERROR)[row] * share), None

    (_, total, error), _ = jax.lax.scan(substep, (jnp.zeros_like(y),) * 3, (_ROW, _PLACE, _LAST))
    return Stepped(y + total, error)


STIFF = Method(extrapolated_euler, order=ORDER)
