r"""Duals of activations that scale with their argument: piecewise linear ones, steps, powers of ReLU.

θ is the angle between u and v, ρ = cos θ. The arc-cosine functions J_k(θ) give E[u₊^k v₊^k] = (ab)^{k/2} J_k(θ)/2π.
"""

import functools
import math
from fractions import Fraction

import equinox as eqx
import jax
import jax.numpy as jnp

from deeplimits.numerics.apart import apart
from deeplimits.theory.gaussian.angles import angles, once
from deeplimits.theory.gaussian.duals.abstract_dual import Dual, Features
from deeplimits.theory.gaussian.pairs import Pair


class PiecewiseLinear(Dual):
    """p·u for u > 0 and q·u for u < 0: identity (1, 1), ReLU (1, 0), leaky ReLU (1, s), absolute value (1, −1)."""

    positive: float = eqx.field(static=True)
    negative: float = eqx.field(static=True)

    # σ(u) = q u + (p − q) u₊, hence every function below is pq·(linear) + (p − q)²·(ReLU).

    def value(self, where: Pair):
        linear, kinked = self.positive * self.negative, (self.positive - self.negative) ** 2
        if kinked == 0:
            return linear * where.covariance
        correlation = (where.cogap - where.gap) / 2
        # K = √(ab) (pq ρ + (p − q)² (sin θ + (π − θ) cos θ)/2π)
        return where.scale * (linear * correlation + kinked * arc_cosine(1, where) / (2 * math.pi))

    def slope(self, where: Pair):
        linear, kinked = self.positive * self.negative, (self.positive - self.negative) ** 2
        _, supplement = angles(where.gap, where.cogap)
        # K̇ = pq + (p − q)² (π − θ)/2π
        return linear + kinked * supplement / (2 * math.pi)

    def variance(self, a):
        return (self.positive**2 + self.negative**2) / 2 * a

    def features(self, where: Pair, scale):
        linear, kinked = self.positive * self.negative, (self.positive - self.negative) ** 2
        less = _arc_gap(where.gap, where.cogap)
        total = self.positive**2 + self.negative**2
        gap = (2 * linear * where.gap + kinked * less) / total
        cogap = (2 * linear * where.cogap + kinked * (2 - less)) / total
        return Features(scale * (cogap - gap) / 2, gap, cogap)


class Jump(Dual):
    """low for u < 0 and 1 for u > 0: the step (low = 0) and the sign (low = −1); 0 at u = 0.

    The slope is that of Price's theorem, dK/dc; it is infinite where u = ±v.
    """

    low: float = eqx.field(static=True)

    def value(self, where: Pair):
        _, supplement = angles(where.gap, where.cogap)
        # P(u > 0, v > 0) = (π − θ)/2π; the sign is twice the step less one.
        both = supplement / (2 * math.pi)
        kernel = both if self.low == 0 else 4 * both - 1
        return jnp.where(where.scale > 0, kernel, 0.0)

    def slope(self, where: Pair):
        return (1 - self.low) ** 2 / (2 * math.pi * where.scale * _sine(where.gap, where.cogap))

    def variance(self, a):
        return jnp.where(a > 0, (1 + self.low**2) / 2, 0.0)

    def features(self, where: Pair, scale):
        theta, _ = angles(where.gap, where.cogap)
        gap = theta / math.pi if self.low == 0 else 2 * theta / math.pi
        return Features(self.value(where), gap, 2 - gap)


class ReluPower(Dual):
    """max(u, 0)^k."""

    power: int = eqx.field(static=True)

    def value(self, where: Pair):
        return where.scale**self.power * arc_cosine(self.power, where) / (2 * math.pi)

    def slope(self, where: Pair):
        k = self.power
        return k**2 * where.scale ** (k - 1) * arc_cosine(k - 1, where) / (2 * math.pi)

    def variance(self, a):
        # E u₊^{2k} = (2k − 1)!! a^k/2
        return a**self.power * math.prod(range(2 * self.power - 1, 0, -2)) / 2


def arc_cosine(power: int, where: Pair):
    """J_k(θ) = sin θ p_k(cos θ) + (π − θ) q_k(cos θ)."""
    return _arc_cosine(power, where.gap, where.cogap) if power else angles(where.gap, where.cogap)[1]


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _arc_cosine(power: int, gap, cogap):
    sine_part, angle_part = _arc_cosine_polynomials(power)
    _, supplement = angles(gap, cogap)
    cosine = (cogap - gap) / 2
    if power == 1:
        # J₁ = sin θ + (π − θ) cos θ = sin ε − ε cos ε with ε = π − θ
        return _excess(supplement, _sine(gap, cogap), -cosine)
    closed = _sine(gap, cogap) * _horner(sine_part, cosine) + supplement * _horner(angle_part, cosine)
    # J_k is of order (1 + ρ)^{k + 1/2}, which the two terms of the closed form leave of numbers of order one.
    return jnp.where(cogap < 1, _arc_cosine_series(power, jnp.minimum(cogap, 1.0)), closed)


@_arc_cosine.defjvp
def _(power, primals, tangents):
    (gap, cogap), (moved, comoved) = primals, tangents
    # dJ_k/dcos θ = k² J_{k−1} (Price). Term by term the derivative would be a difference of infinities at θ = 0 and π.
    lower = power**2 * arc_cosine(power - 1, Pair(gap, gap, gap, cogap))
    return _arc_cosine(power, gap, cogap), lower * (comoved - moved) / 2


@jax.custom_jvp
def _arc_gap(gap, cogap):
    """1 − J₁(θ)/π = (1 − ρ) − (sin θ − θ cos θ)/π, kept from becoming negative by rounding: its root is an angle."""
    theta, _ = angles(gap, cogap)
    return apart(_less, gap, cogap, theta)


def _less(gap, cogap, theta):
    return jnp.maximum(gap - _excess(theta, _sine(gap, cogap), (cogap - gap) / 2) / math.pi, 0.0)


@_arc_gap.defjvp
def _(primals, tangents):
    (gap, cogap), (moved, comoved) = primals, tangents
    return _arc_gap(gap, cogap), angles(gap, cogap)[1] / math.pi * (moved - comoved) / 2


def _excess(angle, sine, cosine):
    """sin x − x cos x, of order x³ for small x, where it is summed as Σ_n (−1)^{n+1} 2n x^{2n+1}/(2n + 1)!"""
    square = angle**2
    series = jnp.zeros_like(angle)
    for n in range(10, 0, -1):
        series = series * square + (-1) ** (n + 1) * 2 * n / math.factorial(2 * n + 1)
    return jnp.where(angle < 0.7, angle * square * series, sine - angle * cosine)


def _arc_cosine_polynomials(power: int) -> tuple[list[Fraction], list[Fraction]]:
    """p_k and q_k, from dJ_k/dcos θ = k² J_{k−1} (Price) and J_k(π) = 0, in exact arithmetic and ascending powers.

    With x = cos θ the derivative reads q_k' = k² q_{k−1} and (1 − x²)p_k' − x p_k + q_k = k²(1 − x²)p_{k−1}.
    """
    p: list[Fraction] = [Fraction(0)]
    q: list[Fraction] = [Fraction(1)]
    for k in range(1, power + 1):
        integral = [Fraction(0)] + [k**2 * c / (j + 1) for j, c in enumerate(q)]
        source = [k**2 * c for c in p] + [Fraction(0)] * 2
        for j, c in enumerate(p):
            source[j + 2] -= k**2 * c
        # Matching powers from the top: coefficient of x^{j+1} is −(j + 1) p_j + (j + 2) p_{j+2} + q_{j+1}.
        degree = k - 1
        following = [Fraction(0)] * (degree + 3)
        for j in range(degree, -1, -1):
            right = source[j + 1] if j + 1 < len(source) else Fraction(0)
            known = integral[j + 1] if j + 1 < len(integral) else Fraction(0)
            following[j] = ((j + 2) * following[j + 2] + known - right) / (j + 1)
        # The power x⁰ fixes the constant of integration: p_1 + q_0 = source_0.
        integral[0] = source[0] - following[1]
        p, q = following[: degree + 1], integral
    return p, q


def _arc_cosine_series(power: int, cogap):
    """J_k in powers of c = 1 + ρ ≤ 1, all terms positive, each at most half of the one before.

    k-fold integral (Price) of J_0 = π − θ = √(2c) Σ_n C(2n,n) (c/8)^n/(2n + 1).
    """
    terms = [
        Fraction(math.comb(2 * n, n), 8**n * (2 * n + 1))
        / math.prod(Fraction(2 * (n + j) + 1, 2) for j in range(1, power + 1))
        for n in range(48)
    ]
    return math.factorial(power) ** 2 * jnp.sqrt(2 * cogap) * cogap**power * _horner(terms, cogap)


def _horner(coefficients: list[Fraction], x):
    total = jnp.zeros_like(x)
    for coefficient in reversed(coefficients):
        total = total * x + float(coefficient)
    return total


def _sine(gap, cogap):
    product = gap * cogap
    return once(jnp.where(product > 0, jnp.sqrt(jnp.where(product > 0, product, 1.0)), 0.0))
