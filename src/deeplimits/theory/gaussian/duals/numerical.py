r"""Duals of any activation, by quadrature, or by a Hermite series where that is known to suffice."""

import functools
import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from deeplimits.models.activations import Activation, ActivationLike
from deeplimits.models.activations import activation as named
from deeplimits.numerics import panels
from deeplimits.numerics.shapes import Floats
from deeplimits.theory.gaussian.duals.abstract_dual import Dual
from deeplimits.theory.gaussian.pairs import Pair
from deeplimits.theory.gaussian.quadrature import REACH, expect, line_nodes, pair_rule

_PANEL = 14
DEGREES = (64, 160, 400, 1000)
"""Lengths of series to choose from."""
LARGEST = 2.0**14
"""At larger variances the longest series does not resolve even sin(√a z), whose coefficients reach up to k = a."""


class Quadrature(Dual):
    """E σ(u)σ(v) by nested quadrature: any activation, variance and correlation; milliseconds for each pair."""

    activation: Activation = eqx.field(static=True)

    def value(self, where: Pair):
        return _value(self.activation, where)

    def slope(self, where: Pair):
        return _slope(self.activation, where)

    def variance(self, a):
        return _along_line(lambda u: self.activation.value(u) ** 2, self.activation.kinks, a)


class Series(Dual):
    """E σ(u)σ(v) = Σ_{k ≤ degree} h_k(a) h_k(b) ρ^k, with h_k(a) the Hermite coefficients of a smooth σ(√a ·).

    What is left out is at most √(tail(a) tail(b)), tail(a) = E σ(u)² − Σ_{k ≤ degree} h_k(a)²: see `series_tail`. Meant
    for tiles of a kernel matrix, where the variances vary along one axis each: a of shape (m, 1), b of shape (1, n).
    """

    activation: Activation = eqx.field(static=True)
    degree: int = eqx.field(static=True)
    largest: float = eqx.field(static=True)
    """No variance is larger; it decides how fine the quadrature of the coefficients is."""

    def value(self, where: Pair):
        return self._sum(where, self.activation.value)

    def slope(self, where: Pair):
        return self._sum(where, self.activation.derivative)

    def variance(self, a):
        return _along_line(lambda u: self.activation.value(u) ** 2, self.activation.kinks, a)

    def _sum(self, where: Pair, function):
        left, right = (hermite_rows(function, root, self.degree, self.largest) for root in (where.root_a, where.root_b))
        rho = (where.cogap - where.gap) / 2

        def lower(k, total):
            index = self.degree - k
            return total * rho + left[index] * right[index]

        return jax.lax.fori_loop(0, self.degree + 1, lower, jnp.zeros(jnp.broadcast_shapes(*(p.shape for p in where))))


def hermite_rows(function, root: Floats, degree: int, largest: float) -> Floats:
    """h_k = E f(√a z) h_k(z) for k = 0 … degree, one row each in the shape of `root` = √a, for a smooth function f."""
    # Panels that resolve both h_k, of wave number √k (three nodes in each radian), and f, which varies on scales of
    # one.
    width = min(1.5, _PANEL / (3 * math.sqrt(degree + 1)), 1.5 / math.sqrt(max(largest, 1.0)))
    nodes, weights = panels.even(-REACH, REACH, 2 * math.ceil(REACH / width), _PANEL)
    z, weight = jnp.asarray(nodes), jnp.asarray(weights * np.exp(-(nodes**2) / 2) / math.sqrt(2 * math.pi))

    def raise_degree(pair, k):
        low, high = pair
        return (high, (z * high - jnp.sqrt(k) * low) / jnp.sqrt(k + 1)), high * weight

    _, polynomials = jax.lax.scan(raise_degree, (jnp.zeros_like(z), jnp.ones_like(z)), jnp.arange(degree + 1.0))
    values = function(jnp.ravel(root)[:, None] * z[None, :])
    return (polynomials @ jnp.broadcast_to(values, (root.size, z.size)).T).reshape(degree + 1, *root.shape)


class Tails(NamedTuple):
    """Shares of E σ² and of E σ'² that a series leaves out."""

    value: Floats
    slope: Floats


def series_tail(activation: ActivationLike, a: Floats, degree: int, largest: float) -> Tails:
    """What the series of K and K̇ leave out at ρ = 1, relative to their sum; both fall with the degree."""
    sigma = named(activation)

    def one(function):
        rows = hermite_rows(function, jnp.sqrt(a), degree, largest)
        whole = _along_line(lambda u: function(u) ** 2, sigma.kinks, a)
        return jnp.abs(whole - jnp.sum(rows**2, axis=0)) / jnp.where(whole > 0, whole, 1.0)

    return Tails(one(sigma.value), one(sigma.derivative))


def numerical_dual(activation: ActivationLike, variances: np.ndarray, *, tolerance: float = 1e-12) -> Dual:
    """The cheapest dual that is right to `tolerance` at these variances: a short series, a long one, or quadrature."""
    return numerical_duals(activation, np.ravel(variances)[None], tolerance=tolerance)[0]


def numerical_duals(activation: ActivationLike, variances: np.ndarray, *, tolerance: float = 1e-12) -> list[Dual]:
    """As `numerical_dual`, one for each row of variances, as few different ones as there are lengths of the series."""
    sigma = named(activation)
    found: list[Dual] = [Quadrature(sigma)] * len(variances)
    if not sigma.smooth:
        return found
    ends = np.stack([np.min(variances, axis=1), np.max(variances, axis=1)], axis=1)
    open_ = ends[:, 1] <= LARGEST
    if not open_.any():
        return found
    # A power of two, so that similar data share one compiled program.
    largest = 2.0 ** math.ceil(math.log2(max(float(ends[open_].max()), 1.0)))
    # Layers repeat each other once their variances have settled. Those that are too large stand in as zero.
    distinct, place = np.unique(np.where(open_[:, None], ends, 0.0).ravel(), return_inverse=True)
    # Padded to a power of two: networks of similar depth share one compiled program.
    padded = np.resize(distinct, 1 << (len(distinct) - 1).bit_length())
    for degree in DEGREES:
        tails = [np.asarray(tail)[: len(distinct)] for tail in _tail(sigma, jnp.asarray(padded), degree, largest)]
        good = np.all([tail[place.reshape(ends.shape)].max(axis=1) < tolerance for tail in tails], axis=0)
        for row in np.flatnonzero(open_ & good):
            found[row] = Series(sigma, degree, largest)
        open_ &= ~good
        if not open_.any():
            break
    return found


_tail = jax.jit(series_tail, static_argnums=(0, 2, 3))


def _along_line(function, kinks, a):
    def one(variance):
        u, weight = line_nodes(variance, kinks=kinks)
        return jnp.sum(weight * function(u))

    return jax.lax.map(one, jnp.ravel(a), batch_size=64).reshape(a.shape)


def _expectation(activation, f, g, where: Pair):
    return pair_rule(f, g, where, activation.kinks)[0]


# Derivatives by Price's theorem instead of through the nodes. In the variables √a, √b, ρ of a Pair, with f = σ or σ':
# ∂E f(u)f(v)/∂ρ = √(ab) E f'(u)f'(v) and ∂E f(u)f(v)/∂√a = E[(u/√a) f'(u)f(v)]. Where f jumps by J at a kink κ its
# derivative contains J δ(u − κ), so each kink adds the density at κ times J times what is left given u = κ.


_value_of = jax.custom_jvp(
    lambda activation, *parts: _expectation(activation, activation.value, activation.value, Pair(*parts)),
    nondiff_argnums=(0,),
)
_slope_of = jax.custom_jvp(
    lambda activation, *parts: _expectation(activation, activation.derivative, activation.derivative, Pair(*parts)),
    nondiff_argnums=(0,),
)


def _rule(function_of, value, derivative, jumping):
    """Forward derivative of E f(u)f(v) with f = `value(activation)` and f' = `derivative(activation)`."""

    def jvp(activation, primals, tangents):
        where = Pair(*primals)
        f, slope = value(activation), derivative(activation)
        left, right, moved, comoved = tangents
        mirrored = Pair(where.root_b, where.root_a, where.gap, where.cogap)
        kinks = activation.kinks if jumping(activation) else ()

        def by_root(pair):
            found = _expectation(activation, lambda u: u * slope(u), f, pair)
            for kink in kinks:
                found = found + kink * _given(activation, f, pair, kink) * _jump(f, kink) * _density(pair, kink)
            return jnp.where(pair.root_a > 0, found / jnp.where(pair.root_a > 0, pair.root_a, 1.0), 0.0)

        both = _expectation(activation, slope, slope, where)
        for kink in kinks:
            for pair in (where, mirrored):
                both = both + _given(activation, slope, pair, kink) * _jump(f, kink) * _density(pair, kink)
            for other in kinks:
                both = both + _jump(f, kink) * _jump(f, other) * _joint_density(where, kink, other)
        moved_correlation = (comoved - moved) / 2
        tangent = by_root(where) * left + by_root(mirrored) * right + where.scale * both * moved_correlation
        return function_of(activation, *primals), tangent

    return jvp


_value_of.defjvp(_rule(_value_of, lambda a: a.value, lambda a: a.derivative, lambda a: not a.continuous))
_slope_of.defjvp(_rule(_slope_of, lambda a: a.derivative, lambda a: a.second_derivative, lambda a: not a.smooth))


def _jump(f, kink: float):
    ends = jnp.asarray([np.nextafter(kink, -np.inf), np.nextafter(kink, np.inf)])
    below, above = jnp.broadcast_to(f(ends), (2,))
    return above - below


def _density(where: Pair, u: float):
    """Density of the first variable at u; 0 by convention if that variable is the constant 0."""
    root = jnp.where(where.root_a > 0, where.root_a, 1.0)
    return jnp.where(where.root_a > 0, jnp.exp(-((u / root) ** 2) / 2) / (root * np.sqrt(2 * np.pi)), 0.0)


def _joint_density(where: Pair, u: float, v: float):
    """Density of both; 0 by convention where they have none."""
    determinant = where.determinant
    alive = determinant > 0
    safe = jnp.where(alive, determinant, 1.0)
    square = (where.b * u**2 - 2 * where.covariance * u * v + where.a * v**2) / safe
    return jnp.where(alive, jnp.exp(-square / 2) / (2 * np.pi * jnp.sqrt(safe)), 0.0)


def _given(activation, function, where: Pair, u: float):
    """E[function(v) | first variable = u]"""

    def one(arguments):
        pair = Pair(*arguments)
        root = jnp.where(pair.root_a > 0, pair.root_a, 1.0)
        mean = pair.root_b * (pair.cogap - pair.gap) / 2 * u / root
        v, weight = line_nodes(pair.b * pair.gap * pair.cogap, kinks=activation.kinks, mean=mean)
        return jnp.sum(weight * jnp.broadcast_to(function(v), v.shape))

    found = jax.lax.map(one, tuple(jnp.ravel(part) for part in where), batch_size=64)
    return found.reshape(where.gap.shape)


def _value(activation: Activation, where: Pair):
    return _value_of(activation, *jnp.broadcast_arrays(*where))


def _slope(activation: Activation, where: Pair):
    return _slope_of(activation, *jnp.broadcast_arrays(*where))


def check_moments(activation: ActivationLike, method: str, variances: np.ndarray) -> None:
    """Raise unless the quadrature finds the first two moments of σ (or σ'), at the extreme variances."""
    if variances.size:
        _moments(named(activation), method, float(np.min(variances)), float(np.max(variances)))


@functools.lru_cache(maxsize=1000)
def _moments(activation: Activation, method: str, low: float, high: float):
    function = activation.value if method == "value" else activation.derivative
    # The square shows whether there is a second moment; the function itself whether it has kinks that are not named.
    for power in (2, 1):
        expect(
            lambda u, power=power: function(u) ** power, np.array([low, high]), kinks=activation.kinks, tolerance=1e-9
        )
