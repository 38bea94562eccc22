r"""Bayesian model selection: which prior scale, depth and width of a deep linear network make the data most likely."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import digamma, polygamma
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.numerics.arguments import POSITIVE, argument, array, number
from deeplimits.numerics.roots import bracketed
from deeplimits.numerics.shapes import Floats
from deeplimits.theory.bayes import log_products
from deeplimits.theory.bayes.evidence import (
    DEPTH,
    WIDTH,
    Interpolation,
    evidence_of,
    interpolate,
    layers,
    log_scale,
    require_interpolation,
)


class PriorScale(NamedTuple):
    """The prior of largest evidence, and its evidence."""

    weight_variance: Floats
    log_evidence: Floats


def best_prior_scale(data: Interpolation, hidden: Sequence[int] | ArrayLike) -> PriorScale:
    r"""The weight variance σ² that makes the data most likely, exact.

    Setting     as `log_evidence`
    Result      σ_*^{2(L+1)} = ν Π_{l=0}^L (n_l/2)/ζ_*, ζ_* the argument at which G(ζ | P/2, n_1/2, …) is largest;
                σ_*^{2(L+1)} → ν n_0/P as all sizes grow
    Validity    one output; the maximum is unique, since the logarithm of a product of Gamma variables has a
                log-concave density
    References  hanin2023

    >>> from deeplimits.theory.bayes import interpolation
    >>> round(float(best_prior_scale(interpolation(3, 6, 1.0, 0.0), [4]).weight_variance), 12)
    1.632993161855
    """
    return _best_scale(require_interpolation(data), *layers(hidden))


def _best_scale(data, widths, counts):
    shapes = jnp.concatenate([data.points[None] / 2, widths / 2])
    many = jnp.concatenate([jnp.ones(1), counts])
    mean = jnp.sum(jnp.where(many > 0, many * (digamma(shapes) - jnp.log(shapes)), 0.0))
    spread = jnp.sqrt(jnp.sum(jnp.where(many > 0, many * polygamma(1, shapes), 0.0)))
    # The mode of a law with one mode is within √3 standard deviations of its mean.
    y = bracketed(_slope, mean - 2 * spread, mean + 2 * spread, shapes, many)
    log_variance = (log_scale(jnp, data, jnp.ones(()), counts) - y) / (jnp.sum(counts) + 1)
    variance = jnp.exp(log_variance)
    return PriorScale(variance, evidence_of(data, variance, widths, counts))


def _slope(y, shapes, counts):
    return jax.grad(log_products.log_density)(y, shapes, counts)


class Selection(NamedTuple):
    """The evidence of every architecture that was asked for, each at its best prior scale; and the best of all."""

    widths: Floats
    depths: Floats
    weight_variances: Float[Array, "widths depths"]
    """The best weight variance of each"""
    log_evidence: Float[Array, "widths depths"]
    width: int
    depth: int
    weight_variance: float


def select_architecture(
    x: ArrayLike,
    y: ArrayLike,
    widths: ArrayLike,
    depths: ArrayLike,
    *,
    weight_variance: ArrayLike | None = None,
) -> Selection:
    r"""Which depth, width and prior scale of a deep linear network the data speak for.

    Setting     points in the rows of `x`, labels `y`, P ≤ n_0 of full rank; networks with each of these numbers of
                hidden layers of each of these widths; `weight_variance` where the prior scale is given and not chosen
    Result      log Z of each, maximized over σ²
    Validity    one output, data interpolated without noise
    References  hanin2023

    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(8, 20))
    >>> found = select_architecture(x, x[:, 0], [20, 100], [0, 1, 3])
    >>> found.log_evidence.shape, found.depth
    ((2, 3), 0)
    """
    data = interpolate(x, y)
    n = array("widths", jnp.atleast_1d(jnp.asarray(widths, float)), ("widths",), allowed=WIDTH)
    layers_each = array("depths", jnp.atleast_1d(jnp.asarray(depths, float)), ("depths",), allowed=DEPTH)
    pairs = jnp.stack([jnp.repeat(n, layers_each.size), jnp.tile(layers_each, n.size)], axis=1)
    if weight_variance is None:
        found = jax.lax.map(lambda pair: _best_scale(data, pair[:1], pair[1:]), pairs)
    else:
        given = number("weight_variance", weight_variance, POSITIVE)
        one = jax.lax.map(lambda pair: evidence_of(data, given, pair[:1], pair[1:]), pairs)
        found = PriorScale(jnp.full(one.shape, 1.0) * given, one)
    shape = (n.size, layers_each.size)
    variances, evidence = found.weight_variance.reshape(shape), found.log_evidence.reshape(shape)
    row, column = np.unravel_index(int(jnp.argmax(evidence)), shape)
    return Selection(
        n, layers_each, variances, evidence, int(n[row]), int(layers_each[column]), float(variances[row, column])
    )


def evidence_map(
    data: Interpolation, weight_variances: ArrayLike, width: ArrayLike, depths: ArrayLike
) -> Float[Array, "depths variances"]:
    """`log_evidence` over numbers of hidden layers, all of one width, and weight variances: a map of model space.

    >>> from deeplimits.theory.bayes import interpolation
    >>> found = evidence_map(interpolation(10, 20, 2.0, 0.0), [0.5, 1.0, 2.0], 20, [1, 12])
    >>> round(float(found[1, 1]), 10)
    -8.6165088272
    """
    require_interpolation(data)
    variances = jnp.atleast_1d(argument("weight_variances", weight_variances, POSITIVE))
    counts = jnp.atleast_1d(argument("depths", depths, DEPTH))
    n = number("width", width, WIDTH)
    pairs = jnp.stack([jnp.repeat(counts, variances.size), jnp.tile(variances, counts.size)], axis=1)
    found = jax.lax.map(lambda pair: evidence_of(data, pair[1], n[None], pair[:1]), pairs)
    return found.reshape(counts.size, variances.size)
