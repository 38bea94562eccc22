r"""Large deep linear networks on large data: what is left of width, depth and data is one number, the effective depth.

As P, n_0 and all n_l grow together with P/n_0 → α and ν fixed, the posterior of s² concentrates where

    (1 + t) Π_l (1 + t P/n_l) = ν/(α σ^{2(L+1)}),     and |θ_⊥|² → (ν(1−α)/α)/(1 + t).

In deep networks, λ = P Σ 1/n_l fixed while L → ∞ and σ² = 1, the left side is (1 + t) e^{λt}.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from deeplimits.numerics.arguments import FINITE, NOT_NEGATIVE, POSITIVE, Allowed, argument, array, known, number
from deeplimits.numerics.ranks import same_rank
from deeplimits.numerics.roots import bracketed
from deeplimits.numerics.shapes import Floats
from deeplimits.theory.bayes import log_products
from deeplimits.theory.bayes.evidence import WIDTH

SHARE = Allowed(lambda x: (x > 0) & (x <= 1), "above 0 and at most 1")
ENDS = 1500.0
"""Logarithms of the largest and smallest numbers that appear, squared."""


class Concentrated(NamedTuple):
    """Where the posterior concentrates."""

    slack: Floats
    """t: 0 where the prior is the best one of its kind, positive where it expects smaller maps than the data show"""
    perpendicular: Floats
    """|θ_⊥|²"""
    total: Floats
    """|θ|²"""


def concentrated_posterior(
    squared_norm: ArrayLike, alpha: ArrayLike, weight_variance: ArrayLike, points_per_width: ArrayLike
) -> Concentrated:
    r"""The squared norms on which the posterior of a large deep linear network concentrates.

    Setting     ν = `squared_norm` of the shortest interpolant, α = P/n_0, σ² = `weight_variance`, and P/n_l for each
                hidden layer
    Result      t with (1 + t) Π_l (1 + t P/n_l) = ν/(α σ^{2(L+1)}); |θ_⊥|² → (ν(1−α)/α)/(1+t), |θ|² → ν + |θ_⊥|²
    Validity    P, n_0, n_l → ∞ together; the exact moment deviates by O(1/P)
    References  hanin2023

    >>> round(float(concentrated_posterior(2.0, 0.5, 1.0, [0.5] * 4).perpendicular), 10)
    1.2992913147
    """
    nu, share = number("squared_norm", squared_norm, POSITIVE), number("alpha", alpha, SHARE)
    variance = number("weight_variance", weight_variance, POSITIVE)
    if known(points_per_width) and np.size(np.asarray(points_per_width, float)) == 0:
        ratios = jnp.zeros(0)
    else:
        ratios = array("points_per_width", points_per_width, ("layers",), allowed=POSITIVE, why="P/n_l of each layer")
    return concentrated(nu, share, variance, ratios, jnp.ones_like(ratios))


def concentrated(nu: Floats, share: Floats, variance: Floats, per_width: Floats, counts: Floats) -> Concentrated:
    """`concentrated_posterior` with `counts` layers of each ratio."""
    factors, many = jnp.concatenate([jnp.ones(1), per_width]), jnp.concatenate([jnp.ones(1), counts])
    present = jnp.where(many > 0, factors, 0.0)
    # t > −1/max(1, P/n_l): the factor that vanishes first
    lowest = -1 / jnp.max(present)
    target = jnp.log(nu) - jnp.log(share) - jnp.sum(many) * jnp.log(variance)
    x = bracketed(_finite_depth, -ENDS / 2.2, ENDS / 2.2, target, factors, many, lowest)
    return _norms(lowest + jnp.exp(x), nu, share)


def _finite_depth(x, target, factors, counts, lowest):
    # Σ log(1 + t P/n_l), with 1 + t P/n_l as (1 + t_0 P/n_l) + (t − t_0) P/n_l, which loses nothing near t_0
    step = jnp.exp(x)
    start = jnp.maximum(1 + lowest * factors, 0.0)
    return jnp.sum(jnp.where(counts > 0, counts * jnp.log(start + step * factors), 0.0)) - target


def _norms(t, nu, share):
    perpendicular = nu * (1 - share) / share / (1 + t)
    return Concentrated(t, perpendicular, nu + perpendicular)


class DeepPosterior(NamedTuple):
    """Where the posterior of a deep network concentrates, and its evidence for each point."""

    shrinkage: Floats
    """z(λ) = 1/(1 + t): |θ_⊥|² over ν(1−α)/α; from α/ν at λ = 0, the prior's, to 1"""
    perpendicular: Floats
    """|θ_⊥|²"""
    log_evidence: Floats
    """(1/P)(log Z + ½ log det X Xᵀ) + ½ log(2π/n_0)"""


def deep_posterior(squared_norm: ArrayLike, alpha: ArrayLike, effective_depth: ArrayLike) -> DeepPosterior:
    r"""Deep linear networks of effective depth λ: as λ grows the network finds the prior scale that suits the data.

    Setting     depth L and widths n_l large, λ = P Σ 1/n_l fixed, σ² = 1; ν = `squared_norm`, α = P/n_0
    Result      (1 + t) e^{λt} = ν/α: 1 + t = W(λ e^λ ν/α)/λ, W Lambert's function; |θ_⊥|² → (ν(1−α)/α)/(1+t)
                (1/P) log Z + … → −λt/2 − (1+t)/2 − λt²/4, which grows with λ as t²/4, to −½ log(ν/α) − ½
    Validity    Σ 1/n_l → 0
    References  hanin2023

    >>> found = deep_posterior(2.0, 0.5, [1.0, 4.0])
    >>> [round(float(z), 12) for z in found.shrinkage], round(float(found.perpendicular[1]), 12)
    ([0.555851777252, 0.778776326795], 1.557552653591)
    """
    nu, share, depth = same_rank(
        argument("squared_norm", squared_norm, POSITIVE),
        argument("alpha", alpha, SHARE),
        argument("effective_depth", effective_depth, NOT_NEGATIVE),
    )
    target = jnp.log(nu) - jnp.log(share)
    # v + λ(e^v − 1) = log(ν/α) for v = log(1 + t), which lies between 0 and the right side
    v = bracketed(_infinite_depth, jnp.minimum(target, 0.0) - 1, jnp.maximum(target, 0.0) + 1, target, depth)
    t = jnp.expm1(v)
    evidence = -depth * t / 2 - (1 + t) / 2 - depth * t**2 / 4
    return DeepPosterior(jnp.exp(-v), nu * (1 - share) / share * jnp.exp(-v), evidence)


def _infinite_depth(v, target, depth):
    return v + depth * jnp.expm1(v) - target


class LogNormLimit(NamedTuple):
    """The normal law of log |θ| at initialization."""

    mean: Floats
    variance: Floats


def log_norm_limit(depth_per_width: ArrayLike) -> LogNormLimit:
    r"""log |θ| of a random deep linear network in the limit in which Σ_l 1/n_l stays fixed: N(−δ/2, δ/2).

    Setting     |θ|² = Π_{l=0}^L χ²_{n_l}/n_l, weights N(0, 1/n_{l−1}); δ = Σ_{l=0}^L 1/n_l = `depth_per_width`
    Result      log |θ| → N(−δ/2, δ/2). The limits do not commute: n → ∞ first gives δ = 0 and |θ| = 1; L → ∞ first
                gives δ = ∞ and |θ| → 0 in probability, although E|θ|² = 1 at every size
    Validity    Gaussian weights, n → ∞
    References  hanin2023

    >>> [float(part) for part in log_norm_limit(0.5)]
    [-0.25, 0.25]
    """
    delta = argument("depth_per_width", depth_per_width, NOT_NEGATIVE)
    return LogNormLimit(-delta / 2, delta / 2)


def log_norm_density(log_norm: ArrayLike, widths: Sequence[int] | ArrayLike) -> Floats:
    r"""The density of log |θ| of a random deep linear network, exact at any widths.

    Setting     as `log_norm_limit`, with `widths` n_0, …, n_L
    Result      the density at `log_norm` of ½ Σ_l log(χ²_{n_l}/n_l)
    Validity    Gaussian weights
    References  hanin2023

    >>> import math
    >>> density = log_norm_density([0.0], [2])  # |θ|² exponential
    >>> bool(abs(density[0] - 2 * math.exp(-1)) < 1e-14)
    True
    """
    at = argument("log_norm", log_norm, FINITE)
    array("widths", widths, ("layers",), allowed=WIDTH, why="one width for each layer")
    values, counts = log_products.grouped(np.asarray(widths, float))
    log_values = [log_products.log_density(2 * one, jnp.asarray(values) / 2, jnp.asarray(counts)) for one in at.ravel()]
    return 2 * jnp.exp(jnp.reshape(jnp.stack(log_values), at.shape)) if at.size else jnp.zeros(at.shape)
