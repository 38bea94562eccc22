r"""The angle of a correlation, from 1 − ρ and 1 + ρ, as one short polynomial that compilers turn into vector code.

θ = arccos ρ. With t = (1 − ρ)/2: θ = 2 asin √t near ρ = 1, π/2 − asin ρ in the middle, π − 2 asin √(1 − t) near ρ = −1;
in all three asin x = x P(x²) with x² ≤ 1/4.
"""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float
from numpy.polynomial import chebyshev

Floats = Float[Array, "..."]


def _arcsine_polynomial() -> list[float]:
    """Coefficients, in powers of y = 8t − 1, of asin(√t)/√t for 0 ≤ t ≤ 1/4; they fall like 13.9^−k."""
    degree, terms = 15, 60
    # asin(√t)/√t = Σ_k C(2k,k) t^k/(4^k(2k+1)), and t^k = 16^−k (C(2k,k) + 2 Σ_j C(2k,k−j) T_j(y)): sums of positive
    # terms, so that each Chebyshev coefficient has its own relative accuracy; a fit would have equal noise in all.
    taylor = [math.comb(2 * k, k) / (4.0**k * (2 * k + 1)) for k in range(terms)]
    series = [
        2 * sum(taylor[k] * math.comb(2 * k, k - j) / 16.0**k for k in range(j, terms)) for j in range(degree + 1)
    ]
    series[0] /= 2
    return [float(c) for c in chebyshev.cheb2poly(series)]


_COEFFICIENTS = _arcsine_polynomial()


def _arcsine_ratio(t: Floats) -> Floats:
    y = 8 * t - 1
    total = jnp.full_like(y, _COEFFICIENTS[-1])
    for coefficient in _COEFFICIENTS[-2::-1]:
        total = total * y + coefficient
    return total


@jax.custom_jvp
def angles(gap: Floats, cogap: Floats) -> tuple[Floats, Floats]:
    """θ and π − θ of the correlation with 1 − ρ = `gap` and 1 + ρ = `cogap`, each with its own relative accuracy.

    >>> import jax.numpy as jnp
    >>> [float(angle) for angle in angles(jnp.array(1e-20), jnp.array(2.0))]
    [1.4142135623730951e-10, 3.1415926534483717]
    """
    near, opposite = gap < 0.5, cogap < 0.5
    middle = ~(near | opposite)
    t = jnp.where(near, gap, cogap) / 2
    rho = (cogap - gap) / 2
    argument = jnp.where(middle, rho**2, t)
    factor = jnp.where(middle, rho, 2 * jnp.sqrt(t))
    arc = factor * _arcsine_ratio(argument)
    # near: arc = θ; opposite: arc = π − θ; middle: arc = π/2 − θ
    theta = jnp.where(near, arc, jnp.where(opposite, math.pi - arc, math.pi / 2 - arc))
    supplement = jnp.where(opposite, arc, jnp.where(near, math.pi - arc, math.pi / 2 + arc))
    return theta, supplement


@angles.defjvp
def _(primals, tangents):
    (gap, cogap), (moved, comoved) = primals, tangents
    # dθ = −dρ/√(1 − ρ²); ρ is known from either of its two arguments, and the mean of both moves is taken.
    sine = jnp.sqrt(gap * cogap)
    move = (moved - comoved) / 2
    # At θ = 0 and π the derivative is infinite; 0 is put there, so that a gradient through the diagonal stays finite.
    step = jnp.where(sine > 0, move / jnp.where(sine > 0, sine, 1.0), 0.0)
    return angles(gap, cogap), (step, -step)
