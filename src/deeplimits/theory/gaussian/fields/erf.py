r"""Closed forms for σ(x) = erf(x/√2), σ'(x) = √(2/π) exp(−x²/2) (Saad and Solla 1995)."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from deeplimits.numerics.shapes import Scalar
from deeplimits.numerics.symmetric import diagonal, filled, upper
from deeplimits.theory.gaussian.duals.abstract_dual import Dual, Scaled
from deeplimits.theory.gaussian.duals.analytic import Erf
from deeplimits.theory.gaussian.fields.abstract_fields import Fields, PairIntegrals

TWO_OVER_PI = 2 / math.pi
# Entries of the largest intermediate array that `squares` makes at once: half a megabyte stays in cache.
BLOCK = 1 << 16


class ErfSaad(Fields):
    """σ(x) = erf(x/√2)."""

    @property
    def dual(self) -> Dual:
        return Scaled(Erf(), 1 / math.sqrt(2), 1.0)

    def k20(self, caa: Array, cbb: Array, cab: Array) -> Array:
        # E σ''_a σ_b = −(2/π) C_ab / ((1 + C_aa) √Λ), Λ = (1 + C_aa)(1 + C_bb) − C_ab², and (2/π)/√Λ = E σ'_a σ'_b
        return -cab / (1 + caa) * self.j2(caa, cbb, cab)

    def between(self, own: Float[Array, "p d"], every: Float[Array, "n d"]) -> PairIntegrals:
        """As integrals of pairs, at a tenth of their cost, in one and two dimensions."""
        if own.shape[1] > 2:
            return super().between(own, every)
        rows, columns = 1 + jnp.sum(own**2, axis=1)[:, None], 1 + jnp.sum(every**2, axis=1)[None, :]
        covariances = own @ every.T
        # Λ = 1 + |v|² + |w|² + (v₁w₂ − v₂w₁)², a sum of squares, where (1 + |v|²)(1 + |w|²) − ⟨v, w⟩² would cancel.
        determinant = rows + columns - 1
        if own.shape[1] == 2:
            determinant = determinant + (own[:, :1] * every[None, :, 1] - own[:, 1:] * every[None, :, 0]) ** 2
        shrink = jax.lax.rsqrt(rows) * jax.lax.rsqrt(columns)
        j2 = TWO_OVER_PI * jax.lax.rsqrt(determinant)
        # |⟨v, w⟩| < √((1 + |v|²)(1 + |w|²)), also after rounding
        i2 = TWO_OVER_PI * arcsin(jnp.clip(covariances * shrink, -1.0, 1.0))
        return PairIntegrals(i2, j2, -covariances / rows * j2)

    def i4(self, c: Float[Array, "4 4"]) -> Scalar:
        """E σ'_0 σ'_1 σ_2 σ_3: the weight σ'_0 σ'_1 tilts the Gaussian into another one, of covariance S."""
        once = _tilted(c, 0)
        tilted = _tilted(once, 1)[2:, 2:]
        # (4/π²) det(A)^{−1/2} arcsin( S_cd / √((1 + S_cc)(1 + S_dd)) ), det A = (1 + C_aa)(1 + S'_bb)
        correlation = tilted[0, 1] / jnp.sqrt((1 + tilted[0, 0]) * (1 + tilted[1, 1]))
        return TWO_OVER_PI**2 / jnp.sqrt((1 + c[0, 0]) * (1 + once[1, 1])) * arcsin(correlation)

    def j4(self, c: Float[Array, "4 4"]) -> Scalar:
        # E σ'σ'σ'σ' = (2/π)² det(I + C)^{−1/2}
        return TWO_OVER_PI**2 / jnp.sqrt(jnp.linalg.det(jnp.eye(4) + c))

    def squares(self, c: Float[Array, "n n"], v: Float[Array, " n"], students: int) -> Float[Array, "p p"]:
        """Σ_cd v_c v_d I₄(i, j, c, d) for all pairs of students: time O(p² n²), memory O(n²) and never the tensor."""
        first, second = (jnp.asarray(places) for places in upper(students))

        def one(pair):
            i, j = pair
            once = _tilted(c, i)
            tilted = _tilted(once, j)
            determinant = (1 + c[i, i]) * (1 + once[j, j])
            scale = jax.lax.rsqrt(1 + diagonal(tilted))
            angles = arcsin(tilted * scale[:, None] * scale[None, :])
            return TWO_OVER_PI**2 * (v @ angles @ v) * jax.lax.rsqrt(determinant)

        block = max(1, BLOCK // c.shape[0] ** 2)
        if block >= len(first):
            values = jax.vmap(one)((first, second))
        else:
            values = jax.lax.map(one, (first, second), batch_size=block)
        return filled(values, students)


def _arcsine_polynomial(degree: int = 13) -> tuple[float, ...]:
    """Coefficients in s = x² of (arcsin(x) − x)/x³ on |x| ≤ 1/2: its Taylor series, condensed by interpolation."""
    orders = np.arange(1, 40)
    # arcsin(x) = Σ_k (2k)!/(4^k (k!)² (2k+1)) x^{2k+1}
    terms = np.cumprod((2 * orders - 1) / (2 * orders)) / (2 * orders + 1)
    series = np.polynomial.Polynomial(terms)
    condensed = np.polynomial.Chebyshev.interpolate(series, degree, domain=[0.0, 0.25])
    return tuple(condensed.convert(kind=np.polynomial.Polynomial).coef.tolist())


_COEFFICIENTS = _arcsine_polynomial()


@jax.custom_jvp
def arcsin(x: Array) -> Array:
    """arcsin to machine precision by a polynomial, several times faster than the library's on a whole matrix."""
    size = jnp.abs(x)
    large = size > 0.5
    # arcsin(x) = π/2 − 2 arcsin(√((1 − x)/2)) brings the outer half into the inner one.
    square = jnp.where(large, jnp.maximum(1 - size, 1e-300) / 2, size * size)
    root = jnp.where(large, jnp.sqrt(jnp.where(large, square, 1.0)), size)
    inner = root + root * square * _horner(_COEFFICIENTS, square)
    return jnp.sign(x) * jnp.where(large, math.pi / 2 - 2 * inner, inner)


@arcsin.defjvp
def _arcsin_derivative(primals, tangents):
    # Written out, because the absolute value inside has no derivative at zero.
    (x,), (dx,) = primals, tangents
    return arcsin(x), dx * jax.lax.rsqrt((1 - x) * (1 + x))


def _horner(coefficients: tuple[float, ...], x: Array) -> Array:
    value = jnp.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        value = value * x + coefficient
    return value


def _tilted(c: Float[Array, "n n"], k: ArrayLike) -> Float[Array, "n n"]:
    """The covariance C − c_k c_kᵀ/(1 + C_kk) that the weight σ'_k makes of C.

    For k itself, and fields that are the same, that is c_k/(1 + C_kk), of which a difference of large numbers would
    leave no digit. Fields that are the same here need not stay so: their derivative is that of the difference.
    """
    row = c[k] / (1 + c[k, k])
    plain = c - c[k][:, None] * row[None, :]

    def put(fields):
        left = jnp.where(fields[:, None], row[None, :], plain)
        return jnp.where(fields[None, :], row[:, None], left)

    alone = put(jnp.arange(c.shape[0]) == k)
    return alone + jax.lax.stop_gradient(put(jnp.all(c == c[k][None, :], axis=1)) - alone)
