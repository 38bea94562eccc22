"""One row of attention as the inverse temperature goes from 0 to ∞: from uniform to the largest score."""

from typing import NamedTuple

import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.numerics import arguments


class GibbsRow(NamedTuple):
    """A row of attention as a Gibbs law on tokens, and how it answers to β."""

    weights: Float[Array, "... n"]
    entropy: Float[Array, "..."]
    entropy_slope: Float[Array, "..."]
    """dH/dβ = −β Var_A(s): never positive for β ≥ 0."""
    log_partition: Float[Array, "..."]
    mean_score: Float[Array, "..."]
    """∂_β log Z = ⟨s⟩_A."""


def gibbs_row(scores: ArrayLike, beta: ArrayLike) -> GibbsRow:
    """A = softmax(βs) over the last axis: entropy, its slope in β, log Z and its slope.

    >>> found = gibbs_row([1.0, 0.0, -1.0], 1.0)
    >>> found.weights.round(12).tolist(), round(float(found.entropy), 12)
    ([0.665240955775, 0.244728471055, 0.09003057317], 0.83239558184)
    >>> gibbs_row([1.0, 0.0, -1.0], 1e4).weights.tolist()
    [1.0, 0.0, 0.0]
    """
    s = arguments.argument("scores", scores, arguments.FINITE)
    b = arguments.argument("beta", beta, arguments.NOT_NEGATIVE)[..., None]
    top = jnp.max(s, axis=-1, keepdims=True)
    log_weights = b * (s - top) - logsumexp(b * (s - top), axis=-1, keepdims=True)
    weights = jnp.exp(log_weights)
    mean = jnp.sum(weights * s, axis=-1)
    variance = jnp.sum(weights * (s - mean[..., None]) ** 2, axis=-1)
    # 0 log 0 = 0
    entropy = -jnp.sum(jnp.where(weights > 0, weights * log_weights, 0.0), axis=-1)
    log_partition = logsumexp(b * (s - top), axis=-1) + b[..., 0] * top[..., 0]
    return GibbsRow(weights, entropy, -b[..., 0] * variance, log_partition, mean)


def hot_deviation(scores: ArrayLike) -> Float[Array, "... n"]:
    """lim β⁻¹(n A_j − 1) as β → 0: the score above the mean score.

    >>> hot_deviation([1.0, 0.0, -1.0]).tolist()
    [1.0, 0.0, -1.0]
    """
    s = arguments.argument("scores", scores, arguments.FINITE)
    return s - jnp.mean(s, axis=-1, keepdims=True)


def cold_remainder(scores: ArrayLike, beta: ArrayLike) -> Float[Array, "..."]:
    """log of a bound on 1 − max A, the weight of all but the largest score: log(n − 1) − β(s₁ − s₂).

    >>> round(float(cold_remainder([1.0, 0.0, -1.0], 10.0)), 6)
    -9.306853
    """
    s = arguments.argument("scores", scores, arguments.FINITE)
    b = arguments.argument("beta", beta, arguments.NOT_NEGATIVE)
    ordered = jnp.sort(s, axis=-1)
    return jnp.log(s.shape[-1] - 1.0) - b * (ordered[..., -1] - ordered[..., -2])


def frozen_speed(gram: ArrayLike, beta: ArrayLike) -> Float[Array, " n"]:
    """log of a bound on |ẋ_i| of SA with B = V = I and distinct tokens: log(n − 1) − β(1 − max_{j≠i} ⟨x_i, x_j⟩).

    The largest score of a token is its own, so that attention becomes the identity and the flow stands still.

    >>> frozen_speed(jnp.array([[1.0, 0.5], [0.5, 1.0]]), 100.0).tolist()
    [-50.0, -50.0]
    """
    g = arguments.array("gram", gram, ("n", "n"))
    b = arguments.number("beta", beta, arguments.NOT_NEGATIVE)
    n = g.shape[0]
    nearest = jnp.max(jnp.where(jnp.eye(n, dtype=bool), -jnp.inf, g), axis=1)
    return jnp.log(n - 1.0) - b * (1 - nearest)
