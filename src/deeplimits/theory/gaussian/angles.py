r"""The angle of a correlation, from 1 − ρ and 1 + ρ, as one short polynomial that compilers turn into vector code.

θ = arccos ρ. With t = (1 − ρ)/2: θ = 2 asin √t near ρ = 1, π/2 − asin ρ in the middle, π − 2 asin √(1 − t) near ρ = −1;
in all three asin x = x P(x²) with x² ≤ 1/4.
"""

import math
from fractions import Fraction
from typing import NamedTuple

import jax
import jax.numpy as jnp

from deeplimits.numerics.apart import apart
from deeplimits.numerics.shapes import Floats


def _arcsine_polynomial() -> list[float]:
    """Coefficients, in powers of t, of the best polynomial for asin(√t)/√t on 0 ≤ t ≤ 1/4, in exact arithmetic.

    The Chebyshev series in y = 8t − 1 falls like 13.9^−k. In powers of t, which is at most 1/4, nothing
    cancels, and the first coefficient is 1: small angles lose no digit.
    """
    degree, terms = 15, 40
    # asin(√t)/√t = Σ_k C(2k,k) t^k/(4^k(2k+1)), and t^k = 16^−k (C(2k,k) + 2 Σ_j C(2k,k−j) T_j(y))
    taylor = [Fraction(math.comb(2 * k, k), 4**k * (2 * k + 1)) for k in range(terms)]
    series: list[Fraction] = [
        2 * sum((taylor[k] * Fraction(math.comb(2 * k, k - j), 16**k) for k in range(j, terms)), Fraction(0))
        for j in range(degree + 1)
    ]
    series[0] = series[0] / 2
    low, high = [Fraction(1)], [Fraction(-1), Fraction(8)]
    total = [Fraction(0)] * (degree + 1)
    for coefficient in series:
        for power, c in enumerate(low):
            total[power] += coefficient * c
        # T_{j+1} = 2(8t − 1)T_j − T_{j−1}
        following = [Fraction(0)] * (len(high) + 1)
        for power, c in enumerate(high):
            following[power] -= 2 * c
            following[power + 1] += 16 * c
        for power, c in enumerate(low):
            following[power] -= c
        low, high = high, following
    return [float(c) for c in total]


_COEFFICIENTS = _arcsine_polynomial()


def _arcsine_ratio(t: Floats) -> Floats:
    total = jnp.full_like(t, _COEFFICIENTS[-1])
    for coefficient in _COEFFICIENTS[-2::-1]:
        total = total * t + coefficient
    return total


def once(array: Floats) -> Floats:
    """The same array, computed once: on a CPU the compiler would otherwise repeat the work in each of its uses."""
    return jax.lax.optimization_barrier(array) if jax.default_backend() == "cpu" else array


class Angles(NamedTuple):
    """θ and π − θ."""

    theta: Floats
    supplement: Floats


@jax.custom_jvp
def angles(gap: Floats, cogap: Floats) -> Angles:
    """θ and π − θ of the correlation with 1 − ρ = `gap` and 1 + ρ = `cogap`, each with its own relative accuracy.

    >>> import jax.numpy as jnp
    >>> [f"{float(angle):.14g}" for angle in angles(jnp.array(1e-20), jnp.array(2.0))]
    ['1.4142135623731e-10', '3.1415926534484']
    """
    near, opposite = gap < 0.5, cogap < 0.5
    arc = apart(_arc, gap, cogap)
    # near: arc = θ; opposite: arc = π − θ; middle: arc = π/2 − θ
    theta = jnp.where(near, arc, jnp.where(opposite, math.pi - arc, math.pi / 2 - arc))
    supplement = jnp.where(opposite, arc, jnp.where(near, math.pi - arc, math.pi / 2 + arc))
    return Angles(theta, supplement)


def _arc(gap: Floats, cogap: Floats) -> Floats:
    """The smaller of θ and π − θ, or in the middle π/2 − θ."""
    near, opposite = gap < 0.5, cogap < 0.5
    middle = ~(near | opposite)
    t = jnp.where(near, gap, cogap) / 2
    rho = (cogap - gap) / 2
    argument = jnp.where(middle, rho**2, t)
    factor = jnp.where(middle, rho, 2 * jnp.sqrt(t))
    return factor * _arcsine_ratio(argument)


@angles.defjvp
def _(primals, tangents):
    (gap, cogap), (moved, comoved) = primals, tangents
    # dθ = −dρ/√(1 − ρ²); ρ is known from either of its two arguments, and the mean of both moves is taken.
    sine = jnp.sqrt(gap * cogap)
    move = (moved - comoved) / 2
    # At θ = 0 and π the derivative is infinite; 0 is put there, so that a gradient through the diagonal stays finite.
    step = jnp.where(sine > 0, move / jnp.where(sine > 0, sine, 1.0), 0.0)
    return angles(gap, cogap), Angles(step, -step)


@jax.custom_jvp
def small_arcsine(x: Floats) -> Floats:
    """asin x for |x| ≤ 1/2.

    >>> import jax.numpy as jnp
    >>> f"{float(small_arcsine(jnp.array(0.5))) * 6:.14g}"
    '3.1415926535898'
    """
    return x * _arcsine_ratio(x**2)


@small_arcsine.defjvp
def _(primals, tangents):
    (x,), (moved,) = primals, tangents
    return small_arcsine(x), moved / jnp.sqrt((1 - x) * (1 + x))
