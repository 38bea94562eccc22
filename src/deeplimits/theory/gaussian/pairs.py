r"""Two centred Gaussian variables (u, v): their covariance, with the digits that matter kept.

Kernels of kinked activations depend on the angle θ between u and v, and θ ≈ √(2(1 − ρ)) near coinciding inputs: with
ρ alone half the digits are lost. A `Pair` therefore carries 1 − ρ and 1 + ρ beside the variances, each with its own
relative accuracy.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from deeplimits.errors import ParameterError
from deeplimits.numerics.arguments import FINITE, NOT_NEGATIVE, argument, known
from deeplimits.numerics.double_double import high_half
from deeplimits.numerics.shapes import Floats


class Pair(NamedTuple):
    """Standard deviations √a, √b, and 1 − ρ (`gap`) and 1 + ρ (`cogap`) of the correlation ρ; shapes broadcast."""

    root_a: Floats
    root_b: Floats
    gap: Floats
    cogap: Floats

    @property
    def a(self) -> Floats:
        return self.root_a**2

    @property
    def b(self) -> Floats:
        return self.root_b**2

    @property
    def scale(self) -> Floats:
        """√(ab)"""
        return self.root_a * self.root_b

    @property
    def covariance(self) -> Floats:
        # Whichever of the two is small has the digits.
        correlation = jnp.where(self.gap < self.cogap, 1 - self.gap, self.cogap - 1)
        return self.scale * correlation

    @property
    def determinant(self) -> Floats:
        """ab − c²"""
        return self.scale**2 * self.gap * self.cogap


def pair(a: ArrayLike, b: ArrayLike, c: ArrayLike) -> Pair:
    """The pair of variances a, b and covariance c.

    >>> float(pair(1.0, 4.0, 1.0).gap)
    0.5
    """
    a, b, c = jnp.broadcast_arrays(*(jnp.asarray(value, float) for value in (a, b, c)))
    alive = (a > 0) & (b > 0)
    left, right = jnp.where(alive, a, 1.0), jnp.where(alive, b, 1.0)
    middle = jnp.where(alive, c, 0.0)
    # By powers of two to sizes between 1/4 and 1: products of tiny or huge variances leave the range of numbers.
    shrink_a, shrink_b = (_power_of_two(part) for part in (left, right))
    left, right, middle = left * shrink_a * shrink_a, right * shrink_b * shrink_b, middle * shrink_a * shrink_b
    root_a, root_b = jnp.sqrt(left), jnp.sqrt(right)
    scale = root_a * root_b
    # 1 − ρ = (ab − c²)/(√(ab)(√(ab) + c)), for ρ > 0 without cancellation; 1 + ρ likewise for ρ < 0.
    determinant = _determinant(left, right, middle)
    away = scale + jnp.abs(middle)
    small, large = determinant / (scale * away), away / scale
    gap = jnp.where(middle >= 0, small, large)
    cogap = jnp.where(middle >= 0, large, small)
    zero = jnp.zeros_like(a)
    return Pair(
        jnp.where(a > 0, jnp.sqrt(jnp.where(a > 0, a, 1.0)), zero),
        jnp.where(b > 0, jnp.sqrt(jnp.where(b > 0, b, 1.0)), zero),
        gap,
        cogap,
    )


def _power_of_two(x):
    """2^{−i} with x 4^{−i} between 1/4 and 1."""
    _, exponent = jnp.frexp(jax.lax.stop_gradient(x))
    # Not exp2, which compilers round.
    return jnp.ldexp(jnp.ones_like(x), -((exponent + 1) // 2))


def coincident(a: ArrayLike) -> Pair:
    """u = v with variance a: the diagonal, exactly."""
    a = jnp.asarray(a, float)
    root = jnp.where(a == 0, 0.0, jnp.sqrt(jnp.where(a == 0, 1.0, a)))
    return Pair(root, root, jnp.zeros_like(root), jnp.full_like(root, 2.0))


def check_covariance(a: ArrayLike, b: ArrayLike, c: ArrayLike) -> None:
    """Refuse variances and covariances that no pair of Gaussian variables has (unless they are traced)."""
    for name, value in (("a", a), ("b", b)):
        argument(name, value, NOT_NEGATIVE, "a variance")
    argument("c", c, FINITE, "a covariance")
    if not known(a, b, c):
        return
    a, b, c = np.broadcast_arrays(*(np.asarray(value, float) for value in (a, b, c)))
    bad = np.abs(c) > np.sqrt(a) * np.sqrt(b) * (1 + 1e-12)
    if np.any(bad):
        where = np.unravel_index(np.argmax(bad), bad.shape)
        raise ParameterError(
            f"c = {c[where]} is not allowed with variances {a[where]} and {b[where]}; |c| is at most √(ab) = "
            f"{math.sqrt(a[where] * b[where])}"
        )


@jax.custom_jvp
def _determinant(a, b, c):
    """ab − c² with the rounding errors of both products put back; where rounding made it negative, 0."""
    product, rest = _exact_product(a, b)
    square, remainder = _exact_product(c, c)
    return jnp.maximum((product - square) + (rest - remainder), 0.0)


@_determinant.defjvp
def _(primals, tangents):
    (a, b, c), (da, db, dc) = primals, tangents
    # Also at c² = ab, where the maximum has a corner: there this is the derivative from inside.
    return _determinant(a, b, c), b * da + a * db - 2 * c * dc


def _exact_product(x, y):
    """xy rounded, and its rounding error (Dekker); the halves are cut bit by bit, whatever the compiler fuses."""
    product = x * y
    x_high, y_high = high_half(x), high_half(y)
    x_low, y_low = x - x_high, y - y_high
    rest = ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low
    return product, rest
