"""Distances between points of a mixture: in high dimension they are all the same."""

import math
from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.numerics.arguments import POSITIVE, array, inside, number, of_kind, whole
from deeplimits.numerics.shapes import Floats
from deeplimits.theory.mixtures.gaussian_mixtures import GaussianMixture


class PairDistances(NamedTuple):
    """|x − x'|²/p of a point of class a and another of class b."""

    common: Floats
    """τ = 2 tr C°/p, which they all approach."""
    mean: Float[Array, "classes classes"]
    variance: Float[Array, "classes classes"]


def pair_distances(mixture: GaussianMixture) -> PairDistances:
    """Mean and variance of the squared distance of two points of a mixture, exact in every dimension.

    Setting     x ~ N(μ_a, C_a), x' ~ N(μ_b, C_b) independent; d = |x − x'|²/p
    Result      E d = tr(C_a + C_b)/p + |μ_a − μ_b|²/p;  Var d = 2 tr(C_a + C_b)²/p² + 4Δ'(C_a + C_b)Δ/p²
                both classes vanish behind τ = 2 tr C°/p as p grows: for C = I the variance is 8/p
    Validity    Gaussian classes
    References  couillet2022

    >>> import numpy as np
    >>> from deeplimits.theory.mixtures.gaussian_mixtures import gaussian_mixture
    >>> found = pair_distances(gaussian_mixture(np.zeros((1, 4)), 1.0))
    >>> float(found.mean[0, 0]), float(found.variance[0, 0])
    (2.0, 2.0)
    """
    of_kind("mixture", mixture, GaussianMixture)
    p = mixture.means.shape[1]
    gap = mixture.means[:, None, :] - mixture.means[None, :, :]
    both = mixture.covariances[:, None] + mixture.covariances[None, :]
    traces = jnp.einsum("aii->a", mixture.covariances) / p
    along = jnp.einsum("abi,abij,abj->ab", gap, both, gap) / p**2
    return _pairs(mixture.variance, traces, mixture.overlap / p, jnp.sum(gap**2, axis=2) / p, along)


def diagonal_pair_distances(means: Float[Array, "classes p"], variances: Float[Array, "classes p"]) -> PairDistances:
    """The same for balanced classes of diagonal covariances, which needs no matrices.

    >>> found = diagonal_pair_distances(jnp.zeros((1, 4)), jnp.ones((1, 4)))
    >>> float(found.mean[0, 0]), float(found.variance[0, 0])
    (2.0, 2.0)
    """
    p = means.shape[1]
    gap = means[:, None, :] - means[None, :, :]
    both = variances[:, None] + variances[None, :]
    along = jnp.sum(gap**2 * both, axis=2) / p**2
    traces = jnp.mean(variances, axis=1)
    return _pairs(jnp.mean(traces), traces, variances @ variances.T / p**2, jnp.sum(gap**2, axis=2) / p, along)


def _pairs(variance, traces, products, apart, along) -> PairDistances:
    # tr (C_a + C_b)² = tr C_a² + tr C_b² + 2 tr C_aC_b
    own = jnp.einsum("aa->a", products)
    squares = own[:, None] + own[None, :] + 2 * products
    mean = traces[:, None] + traces[None, :] + apart
    return PairDistances(2 * variance, mean, 2 * squares + 4 * along)


class LargestGap(NamedTuple):
    """The largest deviation of a distance from τ among all pairs of n points."""

    typical: Floats
    """Its size for large p and n, to leading order."""
    bound: Floats
    """What it exceeds with at most the given probability, at every n and p."""


def largest_distance_gap(
    samples: int, dimension: int, *, eigenvalues: ArrayLike = 1.0, failure: ArrayLike = 0.01
) -> LargestGap:
    """How far any of the distances between n points is from the common one.

    Setting     n independent points N(μ, C) in R^p; max over pairs of ||x_i − x_j|²/p − 2 tr C/p|; `eigenvalues` of C,
                one number for a multiple of the identity
    Result      typical √(2 v log(n(n − 1)/2)), v = 8 tr C²/p² the variance of one distance
                with probability 1 − `failure` at most 4√(tr C² t)/p + 4|C|t/p, t = log(n(n − 1)/failure)
    Validity    Gaussian points of one class; n ≥ 2; the typical size for log n ≪ p
    References  couillet2022; laurent2000 Lemma 1

    >>> found = largest_distance_gap(800, 1600)
    >>> round(float(found.typical), 4), round(float(found.bound), 4)
    (0.356, 0.4689)
    """
    n, p = whole("samples", samples, 2, "a distance needs two points"), whole("dimension", dimension, 1)
    c = array("eigenvalues", eigenvalues, (), (p,), allowed=POSITIVE, why="of the covariance")
    allowed = number("failure", failure, inside(0, 1), "a probability")
    square = jnp.mean(c**2)
    log_pairs = math.log(n * (n - 1) / 2)
    t = log_pairs + math.log(2.0) - jnp.log(allowed)
    # |x − x'|² = 2 Σ c_k χ²: below and above its mean by more than 2(2√(tr C² t)) + 4|C|t with probability 2e^{−t}
    bound = 4 * jnp.sqrt(square * t / p) + 4 * jnp.max(c) * t / p
    return LargestGap(jnp.sqrt(16 * square / p * log_pairs), bound)
