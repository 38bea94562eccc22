r"""Integrals against the semicircle-over-a-pole measures of isotropic sample covariances, with their atoms.

Both measures of this module have a density √((x−λ₋)(λ₊−x))/(2π|q−x|) on [λ₋, λ₊] = [(1−√c)², (1+√c)²], a pole q outside
or at an edge, and an atom at q exactly where their density does not carry the total mass M, which is known. Hence

    ∫g dν = M g(q) + ∫ (g(x) − g(q)) √((x−λ₋)(λ₊−x))/(2π|q−x|) dx

on either side of the transition: the atom takes care of itself. The integrand is now a divided difference, as smooth as
g, times a semicircle, and Gauss and Chebyshev's rule of the second kind converges geometrically, for a pole at an edge
too. Written as a sum over nodes the rule has positive weights, that of q being the atom and what the rule leaves over:
Gauss's rule never exceeds the integral of 1/|q−x|, whose even derivatives are positive. So every integral of a positive
function comes out positive, and every variance too.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.numerics.checks import valid
from deeplimits.numerics.ranks import same_rank
from deeplimits.numerics.shapes import Floats

NODES = 2048
REACH = 5e4
"""The largest t√c at which 2048 nodes resolve e^{−2tx}: its degree grows like √(t√c), and the rest is below 1e-16."""
RESOLVED_GAP = 1e-4
"""A distance of x from zero, over √c, from which the nodes resolve e^{−2tx} and 1/x² at every time."""


class Rule(NamedTuple):
    """Nodes and positive weights on the last axis; ∫g dν ≈ Σ weights·g(points)."""

    points: Float[Array, "... nodes"]
    weights: Float[Array, "... nodes"]

    def integrate(self, values: Floats) -> Floats:
        """∫g dν from the values of g at the points."""
        return jnp.sum(jnp.multiply(*same_rank(self.weights, values)), axis=-1)


def marchenko_pastur_rule(gamma: ArrayLike) -> Rule:
    """The law of the eigenvalues of XX'/n as p/n → c, of mass one: pole and atom (1 − 1/c)₊ at zero.

    >>> rule = marchenko_pastur_rule(2.0)
    >>> [round(float(rule.integrate(rule.points**k)), 12) for k in (0, 1, 2)]
    [1.0, 1.0, 3.0]
    """
    c, angles = _prepare(gamma)
    # x = 1 + c − 2√c cos θ, as a sum of squares: no digits are lost at a hard edge.
    x = (1 - jnp.sqrt(c)) ** 2 + 4 * jnp.sqrt(c) * jnp.sin(angles / 2) ** 2
    weights = 2 * jnp.sin(angles) ** 2 / ((NODES + 1) * x)
    return _with_pole(x, weights, jnp.zeros_like(c), jnp.ones_like(c))


def spiked_rule(gamma: ArrayLike, strength: ArrayLike) -> Rule:
    """The measure ω between a mean and its estimate: ∫g dω = lim μ'g(XX'/n)Xy/n for columns x = yμ + z of X, ‖μ‖² = ρ.

    ω = √((x−λ₋)(λ₊−x))/(2π(λ_s−x)) dx + ((ρ²−c)₊/ρ) δ(λ_s), of mass ρ; the mean's
    eigenvalue is λ_s = 1 + c + ρ + c/ρ.

    >>> rule = spiked_rule(0.5, 1.0)
    >>> [round(float(rule.integrate(rule.points**k)), 12) for k in (0, 1)]
    [1.0, 2.5]
    """
    c, angles = _prepare(gamma)
    rho = jnp.asarray(strength, float)[..., None]
    x = (1 - jnp.sqrt(c)) ** 2 + 4 * jnp.sqrt(c) * jnp.sin(angles / 2) ** 2
    # λ_s − x = (√ρ − √(c/ρ))² + 4√c cos²(θ/2)
    distance = (jnp.sqrt(rho) - jnp.sqrt(c / rho)) ** 2 + 4 * jnp.sqrt(c) * jnp.cos(angles / 2) ** 2
    weights = 2 * c * jnp.sin(angles) ** 2 / ((NODES + 1) * distance)
    return _with_pole(x, weights, 1 + c + rho + c / rho, rho + jnp.zeros_like(c))


def _prepare(gamma):
    c = jnp.asarray(gamma, float)[..., None]
    return c, math.pi * jnp.arange(1, NODES + 1, dtype=float) / (NODES + 1)


def _with_pole(points, weights, pole, mass):
    """Append the pole with the mass that the nodes leave over; below zero that is rounding."""
    points, weights = jnp.broadcast_arrays(points, weights)
    shape = (*points.shape[:-1], 1)
    left = jnp.maximum(mass - jnp.sum(weights, axis=-1, keepdims=True), 0.0)
    return Rule(
        jnp.concatenate([points, jnp.broadcast_to(pole, shape)], axis=-1),
        jnp.concatenate([weights, jnp.broadcast_to(left, shape)], axis=-1),
    )


def resolved(what: str, kept: Floats, times: Floats, gamma: Floats, *, ridge: ArrayLike = 0.0) -> Floats:
    """`kept`, unless a time is finite and so late that the nodes would not resolve e^{−2tx} near x = 0."""
    gap = jnp.asarray(ridge, float) + (1 - jnp.sqrt(gamma)) ** 2
    late = jnp.isfinite(times) & (times * jnp.sqrt(gamma) > REACH) & (gap < RESOLVED_GAP * jnp.sqrt(gamma))
    return valid(
        kept,
        ~late,
        f"{what}: the time is too late for the quadrature so close to p = n without ridge; take time·√(p/n) up to "
        f"{REACH:g}, or time = inf",
        lambda: f" (time = {float(jnp.max(jnp.where(jnp.isfinite(times), times, 0.0))):g})",
    )
