"""One row of attention as the inverse temperature goes from 0 to ∞: from uniform to the largest score."""

from typing import NamedTuple

import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.errors import ParameterError
from deeplimits.numerics import arguments
from deeplimits.numerics.ranks import same_rank
from deeplimits.numerics.shapes import Floats


class GibbsRow(NamedTuple):
    """A row of attention as a Gibbs law on tokens, and how it answers to β."""

    weights: Float[Array, "... n"]
    entropy: Floats
    entropy_slope: Floats
    """dH/dβ = −β Var_A(s): never positive for β ≥ 0."""
    log_partition: Floats
    mean_score: Floats
    """∂_β log Z = ⟨s⟩_A."""


def gibbs_row(scores: ArrayLike, beta: ArrayLike) -> GibbsRow:
    """A = softmax(βs) over the last axis: entropy, its slope in β, log Z and its slope.

    >>> found = gibbs_row([1.0, 0.0, -1.0], 1.0)
    >>> found.weights.round(12).tolist(), round(float(found.entropy), 12)
    ([0.665240955775, 0.244728471055, 0.09003057317], 0.83239558184)
    >>> gibbs_row([1.0, 0.0, -1.0], 1e4).weights.tolist()
    [1.0, 0.0, 0.0]
    """
    s, b = _rows(scores, 1, beta, arguments.NOT_NEGATIVE)
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
    s = _row(scores, 1)
    return s - jnp.mean(s, axis=-1, keepdims=True)


class ColdRate(NamedTuple):
    """Between what −log(1 − max A)/β lies."""

    least: Floats
    most: Floats


def cold_rate(scores: ArrayLike, beta: ArrayLike) -> ColdRate:
    """How fast attention leaves all but the largest score: −log(1 − max A)/β → g = s₁ − s₂, the gap of the scores.

    (n−1)e^{−βg} ≥ 1 − max A ≥ e^{−βg}/(1 + (n−1)e^{−βg}). Of SA with B = V = I and distinct tokens the largest score
    of a token is its own, s₁ = 1, and |ẋ_i| ≤ 1 − A_ii: at β = ∞ attention is the identity and the flow stands still.

    >>> found = cold_rate([1.0, 0.0, -1.0], 10.0)
    >>> round(float(found.least), 6), round(float(found.most), 6)
    (0.930685, 1.000009)
    """
    s, b = _rows(scores, 2, beta, arguments.POSITIVE)
    ordered, b = jnp.sort(s, axis=-1), b[..., 0]
    gap, others = ordered[..., -1] - ordered[..., -2], s.shape[-1] - 1.0
    return ColdRate(gap - jnp.log(others) / b, gap + jnp.log1p(others * jnp.exp(-b * gap)) / b)


def _rows(scores, least, beta, allowed):
    """Scores, and temperatures with one more axis, of one rank."""
    found, b = _row(scores, least), arguments.argument("beta", beta, allowed)
    try:
        jnp.broadcast_shapes(found.shape[:-1], b.shape)
    except ValueError:
        raise ParameterError(
            f"beta has shape {b.shape}; with scores of shape {found.shape} give one number, or one for each row"
        ) from None
    return same_rank(found, b[..., None])


def _row(scores, least):
    found = arguments.argument("scores", scores, arguments.FINITE)
    if found.ndim == 0 or found.shape[-1] < least:
        raise ParameterError(f"scores has shape {found.shape}; it must hold {least} or more along its last axis")
    return found
