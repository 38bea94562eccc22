r"""Expectations of a softmax of k Gaussian logits, one of them raised: two nested integrals, whatever k."""

from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import ArrayLike

from deeplimits.numerics import arguments
from deeplimits.numerics.shapes import Floats

INNER, OUTER = 201, 501
REACH, TAIL, FALL = 9.0, 42.0, 6.0
"""Standard deviations of the logits; how far the slower side of a Gumbel variable reaches, and the faster."""


class SoftmaxMoments(NamedTuple):
    """Of π = softmax(h), h_1 ~ N(a, σ²) and k − 1 others N(0, σ²), independent."""

    correct: Floats
    """E π_1."""
    squared: Floats
    """E |π|²."""


def softmax_moments(raised: ArrayLike, noise: ArrayLike, classes: int) -> SoftmaxMoments:
    """E π_1 and E|π|² of the softmax of k independent Gaussian logits, the first raised.

    Setting     `raised` a, `noise` the standard deviation σ, k = `classes`
    Result      with 1/S = ∫ e^{−tS} dt and 1/S² = ∫ t e^{−tS} dt, t = e^{−τ}:
                Eπ_1 = ∫ g₁(τ − a)F(τ)^{k−1} dτ, Eπ_1² = ∫ g₂(τ − a)F(τ)^{k−1} dτ,
                Eπ_2² = ∫ g₂(τ)F(τ − a)F(τ)^{k−2} dτ, F(τ) = E exp(−e^{σz−τ}), g_n(τ) = E e^{n(σz−τ)} exp(−e^{σz−τ})
                (F is the law of a logit plus a Gumbel variable). Trapezoidal sums converge geometrically
    Validity    σ ≤ 6; |a| ≤ 200
    References  benarous2024

    >>> found = softmax_moments(1.0, 0.0, 3)
    >>> round(float(found.correct), 12)  # e/(e + 2)
    0.576116884766
    """
    k = arguments.whole("classes", classes, 2)
    a = arguments.number("raised", raised, arguments.between(-200.0, 200.0))
    sigma = arguments.number("noise", noise, arguments.between(0.0, 6.0))
    z = jnp.linspace(-REACH, REACH, INNER)
    weights = jnp.exp(-(z**2) / 2)
    weights = weights / jnp.sum(weights)
    low = jnp.minimum(a, 0.0) - REACH * sigma - FALL
    high = jnp.maximum(a, 0.0) + REACH * sigma + TAIL
    tau = low + (high - low) * jnp.linspace(0.0, 1.0, OUTER)
    shifted = sigma * z[None, :] - tau[:, None]
    raised_by = shifted + a

    def parts(logs):
        gone = jnp.exp(-jnp.exp(logs))
        return gone @ weights, (jnp.exp(logs) * gone) @ weights, (jnp.exp(2 * logs) * gone) @ weights

    low_cdf, _, low_two = parts(jnp.minimum(shifted, 300.0))
    own_cdf, own_one, own_two = parts(jnp.minimum(raised_by, 300.0))
    width = (high - low) / (OUTER - 1)
    all_others = low_cdf ** (k - 1)
    some_others = low_cdf ** (k - 2) if k > 2 else jnp.ones_like(low_cdf)
    own = jnp.sum(own_two * all_others)
    return SoftmaxMoments(
        width * jnp.sum(own_one * all_others), width * (own + (k - 1) * jnp.sum(low_two * own_cdf * some_others))
    )
