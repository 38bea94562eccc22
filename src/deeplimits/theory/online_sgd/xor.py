r"""The XOR mixture learnt by a two-layer ReLU network.

y fair, X ~ ½N(μ, I/λ) + ½N(−μ, I/λ) if y = 1, with ν in place of μ if y = 0; μ, ν orthonormal. Network v·g(WX) with K
neurons, logistic loss with ridge α, δ = c/N. Statistics: v_i, m^μ_i = W_i·μ, m^ν_i = W_i·ν and R_ij, the overlaps
of the parts of the W_i orthogonal to μ, ν.
"""

import math
from itertools import combinations
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array

from deeplimits.errors import OutsideValidity
from deeplimits.numerics import flows
from deeplimits.numerics.quasi_random import gaussian_points
from deeplimits.theory.online_sgd.landscapes import check_order

CRITICAL_RIDGE = 1 / 8


class XorState(NamedTuple):
    """The summary statistics of K neurons."""

    output: Array
    """v, shape (K,)."""
    along_mu: Array
    """m^μ, shape (K,)."""
    along_nu: Array
    """m^ν, shape (K,)."""
    overlaps: Array
    """R, shape (K, K)."""


def velocity(state: XorState, separation: ArrayLike, ridge: ArrayLike, step: ArrayLike, points: int = 2048) -> XorState:
    """The ballistic velocity: Gaussian expectations over the four clusters, by 2·`points` quasi-random points each.

    >>> import jax.numpy as jnp
    >>> at = XorState(jnp.ones(1), jnp.ones(1), jnp.zeros(1), jnp.zeros((1, 1)))
    >>> round(float(-velocity(at, 1e12, 0.0, 1.0).output[0]), 6)
    -0.067235
    """
    lam, alpha, c = (jnp.asarray(part, float) for part in (separation, ridge, step))
    v, mu, nu, overlaps = state
    width = v.shape[0]
    z = jnp.asarray(gaussian_points(width + 2, points)) / jnp.sqrt(lam)
    zeta = z[:, 2:] @ _root(overlaps).T  # N(0, R/λ)

    def cluster(mean_mu, mean_nu, label):
        x_mu, x_nu = mean_mu + z[:, 0], mean_nu + z[:, 1]
        h = x_mu[:, None] * mu + x_nu[:, None] * nu + zeta
        active = jnp.where(h > 0, 1.0, 0.0)
        error = jax.nn.sigmoid(jnp.maximum(h, 0.0) @ v) - label
        weighted = active * error[:, None] / len(z)
        return (
            jnp.maximum(h, 0.0).T @ error / len(z),  # C_i = E g(h_i) e
            x_mu @ weighted,  # A^μ_i = E (X·μ) 1{h_i>0} e
            x_nu @ weighted,
            weighted.T @ zeta,  # A^⊥_ij = E ζ_j 1{h_i>0} e
            (weighted * error[:, None]).T @ active,  # B_ij = E 1{h_i>0} 1{h_j>0} e²
        )

    # Around μ and −μ with label 1, around ν and −ν with label 0
    means = jnp.array([[1.0, 0.0, 1.0], [-1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [0.0, -1.0, 0.0]]).T
    out, a_mu, a_nu, a_perp, both = (part.mean(axis=0) for part in jax.lax.map(lambda m: cluster(*m), tuple(means)))
    # dR_ij/dt = −v_i A^⊥_ij − v_j A^⊥_ji − 2αR_ij + (c/λ) v_i v_j B_ij
    pull = v[:, None] * a_perp
    change = -pull - pull.T - 2 * alpha * overlaps + c / lam * jnp.outer(v, v) * both
    return XorState(-out - alpha * v, -v * a_mu - alpha * mu, -v * a_nu - alpha * nu, change)


def xor_ballistic(
    start: XorState, times: ArrayLike, separation: ArrayLike, ridge: ArrayLike, step: ArrayLike,
    points: int = 2048, steps: int = 36,
) -> XorState:  # fmt: skip
    """The statistics at increasing times (a leading axis), by `steps` fixed Runge-Kutta steps of order four.

    >>> start = XorState(jnp.ones(1), jnp.ones(1), jnp.zeros(1), 0.1 * jnp.eye(1))
    >>> found = xor_ballistic(start, jnp.array([0.0, 2.0]), 100.0, 0.1, 1.0, points=64, steps=8)
    >>> [round(float(part), 2) for part in found.output[:, 0]]
    [1.0, 0.92]
    """
    return flows.fixed_steps(lambda t, state: velocity(state, separation, ridge, step, points), start, times, steps)


def escape_matrix(output: Array, overlaps: Array, separation: ArrayLike, ridge: ArrayLike, points: int = 2048) -> Array:
    """The rates at which m^μ leaves 0: dm^μ/dt = (matrix) m^μ to first order (for m^ν exchange the labels).

    −v_i[½(1 + 1/λ)T¹_ij + T⁰_ij/(2λ)] − αδ_ij with T^y_ij = δ_ij √(λ/(2πR_ii)) E[σ(v·g(h)) − y | h_i = 0]
    + v_j E[1{h_i>0} 1{h_j>0} σ'(v·g(h))], h ~ N(0, R/λ).
    """
    lam, alpha, v = jnp.asarray(separation, float), jnp.asarray(ridge, float), output
    width = v.shape[0]
    h = jnp.asarray(gaussian_points(width, points)) @ _root(overlaps).T / jnp.sqrt(lam)
    chance = jax.nn.sigmoid(jnp.maximum(h, 0.0) @ v)
    active = jnp.where(h > 0, 1.0, 0.0)
    together = (active * (chance * (1 - chance))[:, None]).T @ active / len(h) * v
    variances = jnp.diag(overlaps)

    def on_the_kink(i):
        # h given h_i = 0: take off the regression on h_i
        given = h - h[:, i, None] * overlaps[i] / variances[i]
        return jnp.mean(jax.nn.sigmoid(jnp.maximum(given, 0.0) @ v))

    at_zero = jnp.stack([on_the_kink(i) for i in range(width)])
    density = jnp.sqrt(lam / (2 * jnp.pi * variances))
    ones, zeros = (jnp.diag(density * (at_zero - label)) + together for label in (1.0, 0.0))
    return -v[:, None] * ((1 + 1 / lam) / 2 * ones + zeros / (2 * lam)) - alpha * jnp.eye(width)


def noiseless_velocity(state: XorState, ridge: ArrayLike) -> XorState:
    """The velocity for λ → ∞, X in {±μ, ±ν}; both indicators vanish at m = 0, so that what is at rest there stays."""
    alpha = jnp.asarray(ridge, float)
    v, mu, nu, overlaps = state

    def side(m, sign, label):
        # What the cluster at sign·(mean) with this label does to v and to the overlap m
        h = jnp.maximum(sign * m, 0.0)
        pull = (label - jax.nn.sigmoid(v @ h)) / 4
        return pull * h, pull * sign * jnp.where(sign * m > 0, v, 0.0)

    (a, b), (d, e) = ((side(mu, s, 1.0) for s in (1.0, -1.0)), (side(nu, s, 0.0) for s in (1.0, -1.0)))
    return XorState(
        a[0] + b[0] + d[0] + e[0] - alpha * v,
        a[1] + b[1] - alpha * mu,
        d[1] + e[1] - alpha * nu,
        -2 * alpha * overlaps,
    )


def noiseless_ballistic(start: XorState, times: ArrayLike, ridge: ArrayLike, steps: int = 2000) -> XorState:
    """The statistics for λ → ∞, with sliding: an overlap that reaches 0 against the flow stays at 0.

    Runge-Kutta steps of order four; a step in which an overlap changes sign ends with it frozen at 0. (It changes sign
    only where 0 attracts, and never has to be released.) The time of freezing is off by at most one step.
    """

    def freeze(before: Array, after: Array) -> Array:
        return jnp.where(before * after <= 0, 0.0, after)

    def slide(before: XorState, after: XorState) -> XorState:
        return after._replace(
            along_mu=freeze(before.along_mu, after.along_mu), along_nu=freeze(before.along_nu, after.along_nu)
        )

    return flows.fixed_steps(lambda t, state: noiseless_velocity(state, ridge), start, times, steps, amend=slide)


def type_mass(ridge: ArrayLike) -> Array:
    """S = log((1 − 4α)/(4α)): Σ v_i² over the neurons of an active type, 0 < α < 1/8.

    >>> round(float(type_mass(0.05)), 12)
    1.38629436112
    """
    alpha = jnp.asarray(ridge, float)
    return jnp.log1p(-4 * alpha) - jnp.log(4 * alpha)


def rest_loss(ridge: float, active: int) -> float:
    """The regularized loss at a rest point with a active types: ¼[a log(1+e^{−S}) + (4−a) log 2] + αaS.

    >>> round(rest_loss(0.05, 4), 12)
    0.500402423538
    """
    if not 0 < ridge < CRITICAL_RIDGE:
        raise OutsideValidity(f"ridge = {ridge:g}: nonzero rest points exist only for 0 < ridge < 1/8")
    s = float(type_mass(ridge))
    return (active * math.log1p(math.exp(-s)) + (4 - active) * math.log(2)) / 4 + ridge * active * s


def xor_component_count(width: int) -> int:
    """The number of connected components of the rest points of the noiseless dynamics.

    Setting     width K, ridge 0 < α < 1/8, λ → ∞: each neuron is at rest at 0 or in one of four types (±μ, ±ν), and the
                neurons of a type share a mass Σv² = S
    Result      n(K) = Σ_{a=0}^{min(4,K)} C(4, a)·(K! if a = K, else 1): with a spare neuron, mass moves
                continuously, so that only the set of active types counts; without one the assignments are isolated.
                n(4) = 39, of which the 4! = 24 with all four types are stable
    Validity    K ≥ 1
    References  benarous2022

    >>> [xor_component_count(width) for width in range(1, 8)]
    [5, 17, 35, 39, 16, 16, 16]
    """
    check_order(width)
    return sum(math.comb(4, a) * (math.factorial(width) if a == width else 1) for a in range(min(4, width) + 1))


def components_by_enumeration(width: int) -> int:
    """The same number from the definition: union of neighbouring assignments of neurons to types or to zero.

    Two rest points with the same active types are neighbours where one arises from the other by emptying a neuron
    whose type has another neuron, or by filling an empty one.
    """
    check_order(width)
    patterns = list(np.ndindex(*[5] * width))
    parent = {pattern: pattern for pattern in patterns}

    def root(x):
        while parent[x] != x:
            x = parent[x]
        return x

    for pattern in patterns:
        for i, kind in enumerate(pattern):
            if kind and pattern.count(kind) > 1:
                other = root((*pattern[:i], 0, *pattern[i + 1 :]))
                parent[root(pattern)] = other
    return len({root(pattern) for pattern in patterns})


def xor_success_probability(width: int) -> float:
    """P(all four types are found) = 1 − 4(3/4)^K + 6(1/2)^K − 4(1/4)^K, each neuron choosing one of four at random.

    >>> xor_success_probability(4)
    0.09375
    """
    check_order(width)
    return sum((-1) ** a * math.comb(4, a) * ((4 - a) / 4) ** width for a in range(5))


def active_types_probability(width: int, active: int) -> float:
    """P(exactly a types are found) = C(4, a)·#{surjections of K neurons onto a types}/4^K.

    >>> active_types_probability(4, 3)
    0.5625
    """
    check_order(width)
    onto = sum((-1) ** j * math.comb(active, j) * (active - j) ** width for j in range(active + 1))
    return sum(1 for _ in combinations(range(4), active)) * onto / 4**width


def _root(overlaps: Array) -> Array:
    # Cholesky with a jitter far below any overlap that matters: R may be singular, and rounding may take it below.
    width = overlaps.shape[0]
    return jnp.linalg.cholesky(overlaps + 1e-12 * (1 + jnp.trace(overlaps)) * jnp.eye(width))
