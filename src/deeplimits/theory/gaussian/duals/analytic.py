"""Duals of analytic activations in closed form: erf, Φ, GELU, bell, sine and cosine, exp, polynomials."""

import math

import equinox as eqx
import jax.numpy as jnp

from deeplimits.numerics.apart import apart
from deeplimits.theory.gaussian.angles import angles, small_arcsine
from deeplimits.theory.gaussian.duals.abstract_dual import Dual
from deeplimits.theory.gaussian.pairs import Pair

SMALL_TANGENT = 0.3
"""Of the angle to the opposite, below which GELU's terms are those of its series."""


class _Lifted:
    """The angle between (√k u, 1) and (√k v, 1): arcsine laws are about it. r = kc/√((1 + ka)(1 + kb))."""

    def __init__(self, where: Pair, k: float):
        left, right = 1 + k * where.a, 1 + k * where.b
        self.length = jnp.sqrt(left) * jnp.sqrt(right)
        # √((1 + ka)(1 + kb)) − k√(ab), without cancellation
        excess = (1 + k * (where.a + where.b)) / (self.length + k * where.scale)
        self.gap = (excess + k * where.scale * where.gap) / self.length
        self.cogap = (excess + k * where.scale * where.cogap) / self.length
        angle, self.supplement = angles(self.gap, self.cogap)
        # asin r = π/2 − θ, which cancels where r is small.
        r = k * where.covariance / self.length
        few = jnp.abs(r) < 0.5
        self.arcsine = jnp.where(few, apart(small_arcsine, jnp.where(few, r, 0.0)), math.pi / 2 - angle)
        # D = (1 + ka)(1 + kb) − k²c²
        self.root_determinant = self.length * jnp.sqrt(self.gap * self.cogap)


class Erf(Dual):
    """erf(u): Williams' arcsine law."""

    def value(self, where: Pair):
        # K = (2/π) asin(2c/√((1 + 2a)(1 + 2b)))
        return 2 / math.pi * _Lifted(where, 2.0).arcsine

    def slope(self, where: Pair):
        # K̇ = (4/π)/√((1 + 2a)(1 + 2b) − 4c²)
        return 4 / math.pi / _Lifted(where, 2.0).root_determinant


class NormalCdf(Dual):
    """Φ(u), the normal distribution function."""

    def value(self, where: Pair):
        # K = 1/4 + asin(c/√((1 + a)(1 + b)))/2π = (π − θ)/2π
        return _Lifted(where, 1.0).supplement / (2 * math.pi)

    def slope(self, where: Pair):
        # K̇ = 1/(2π√D)
        return 1 / (2 * math.pi * _Lifted(where, 1.0).root_determinant)


class Gelu(Dual):
    """uΦ(u)."""

    def value(self, where: Pair):
        a, b, c = where.a, where.b, where.covariance
        lifted = _Lifted(where, 1.0)
        # K = c/4 + c asin(·)/2π + [ab − c² + c²(1/(1 + a) + 1/(1 + b))]/(2π√D)
        bracket = where.determinant + c**2 * (1 / (1 + a) + 1 / (1 + b))
        # c/4 + c asin(·)/2π = c(π − θ)/2π
        usual = c * lifted.supplement + bracket / lifted.root_determinant
        # Where π − θ = atan t is small, t = √D/|c|, both are about √D: their sum is, with L² = (1 + a)(1 + b),
        # 1/√D − (2 + a + b) √D/L² + |c| (t − atan t)
        opposite = lifted.root_determinant < -SMALL_TANGENT * c
        t = jnp.where(opposite, lifted.root_determinant / jnp.where(opposite, -c, 1.0), 0.0)
        share = (1 / (1 + a) + 1 / (1 + b)) * lifted.root_determinant
        near = 1 / lifted.root_determinant - share - c * t**3 * _arctangent_rest(t**2)
        return jnp.where(opposite, near, usual) / (2 * math.pi)

    def slope(self, where: Pair):
        a, b, c = where.a, where.b, where.covariance
        lifted = _Lifted(where, 1.0)
        # K̇ = 1/4 + asin(·)/2π + (c/(2π√D))(1/(1 + a) + 1/(1 + b) + 1/D)
        bracket = 1 / (1 + a) + 1 / (1 + b) + 1 / lifted.root_determinant**2
        return (lifted.supplement + c * bracket / lifted.root_determinant) / (2 * math.pi)


def _arctangent_rest(square):
    """(t − atan t)/t³ for t² = `square`, t ≤ 0.3."""
    total = jnp.zeros_like(square)
    for k in reversed(range(16)):
        total = 1 / (2 * k + 3) - square * total
    return total


class Bell(Dual):
    """exp(−u²/2)."""

    def value(self, where: Pair):
        # K = 1/√D
        return 1 / _Lifted(where, 1.0).root_determinant

    def slope(self, where: Pair):
        # K̇ = c/D^{3/2}
        return where.covariance / _Lifted(where, 1.0).root_determinant ** 3


class Wave(Dual):
    """sin u (odd) and cos u (even): K = e^{−(a+b)/2} sinh c and e^{−(a+b)/2} cosh c, and the other for the slope."""

    odd: bool = eqx.field(static=True)

    def value(self, where: Pair):
        return _wave(where, self.odd)

    def slope(self, where: Pair):
        return _wave(where, not self.odd)


def _wave(where: Pair, odd: bool):
    # −(a + b)/2 ± c, each as a sum of squares: √a − √b, and √(ab) times 1 ∓ ρ
    apart = (where.root_a - where.root_b) ** 2 / 2
    plus, minus = -apart - where.scale * where.gap, -apart - where.scale * where.cogap
    if not odd:
        return (jnp.exp(plus) + jnp.exp(minus)) / 2
    # e^{p} − e^{m} = −e^{p} expm1(m − p) for p ≥ m, and e^{m} expm1(p − m) otherwise: no overflow, differentiable at 0
    above = plus >= minus
    down = -jnp.exp(plus) * jnp.expm1(jnp.where(above, minus - plus, 0.0))
    up = jnp.exp(minus) * jnp.expm1(jnp.where(above, 0.0, plus - minus))
    return jnp.where(above, down, up) / 2


class Exponential(Dual):
    """e^u: K = K̇ = e^{(a+b)/2 + c}."""

    def value(self, where: Pair):
        return jnp.exp((where.a + where.b) / 2 + where.covariance)

    def slope(self, where: Pair):
        return self.value(where)


class Polynomial(Dual):
    """c₀ + c₁u + …: K = Σ_k c^k/k! E[σ^(k)(u)] E[σ^(k)(v)], a finite sum."""

    coefficients: tuple[float, ...] = eqx.field(static=True)

    def value(self, where: Pair):
        return _covariance_series(self.coefficients, where)

    def slope(self, where: Pair):
        return _covariance_series(_derivative(self.coefficients), where)


def _covariance_series(coefficients, where: Pair):
    c = where.covariance
    total, power = jnp.zeros_like(c), jnp.ones_like(c)
    for order in range(len(coefficients)):
        if order:
            coefficients = _derivative(coefficients)
            power = power * c / order
        total = total + power * _gaussian_mean(coefficients, where.a) * _gaussian_mean(coefficients, where.b)
    return total


def _derivative(coefficients: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(k * c for k, c in enumerate(coefficients))[1:] or (0.0,)


def _gaussian_mean(coefficients: tuple[float, ...], a):
    """E Σ c_k u^k = Σ c_{2j} (2j − 1)!! a^j"""
    total = jnp.zeros_like(a)
    for j in range((len(coefficients) - 1) // 2, -1, -1):
        total = total * a + coefficients[2 * j] * math.prod(range(2 * j - 1, 0, -2))
    return total
