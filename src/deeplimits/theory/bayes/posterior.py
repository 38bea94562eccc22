r"""What a deep linear network believes after it has seen data: the posterior of its map and the law of its predictions.

θ = θ_* + θ_⊥ with θ_* the shortest interpolant; θ_⊥ is uniform in direction on the complement of the data, and given
s it is N(0, (σ² s²/n_0) I) there, with the posterior density prior(s²)(s²)^{−P/2} e^{−n_0ν/(2σ²s²)} of s².
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.errors import OutsideValidity
from deeplimits.numerics.arguments import FINITE, POSITIVE, argument, array, number, whole
from deeplimits.numerics.shapes import Floats
from deeplimits.theory.bayes import log_products
from deeplimits.theory.bayes.evidence import (
    RANK,
    Interpolation,
    decomposed,
    evidence_of,
    interpolate,
    labelled,
    layers,
    log_scale,
    require_interpolation,
)


def posterior_norm_moment(
    data: Interpolation, weight_variance: ArrayLike, hidden: Sequence[int] | ArrayLike, *, order: int = 1
) -> Floats:
    r"""E[|θ_⊥|^{2k}] under the posterior: how much of the network the data leave open.

    Setting     the deep linear network of `log_evidence`, after P points; θ_⊥ the part of its map θ that they do not
                see; k = `order`
    Result      (ν/2)^k (n_0−P)(n_0−P+2) … (n_0−P+2k−2) G(ζ | P/2−k, n/2)/G(ζ | P/2, n/2)
    Validity    one output, P ≤ n_0
    References  hanin2023 Thm 3.3

    >>> from deeplimits.theory.bayes import interpolation
    >>> round(float(posterior_norm_moment(interpolation(2, 4, 1.0, 0.0), 1.0, [3, 5])), 12)
    0.845044858064
    """
    widths, counts = layers(hidden)
    variance = number("weight_variance", weight_variance, POSITIVE)
    return moment_of(require_interpolation(data), variance, widths, counts, whole("order", order, 1))


def moment_of(data: Interpolation, variance: Floats, widths: Floats, counts: Floats, order: int) -> Floats:
    """`posterior_norm_moment` with `counts` layers of each of `widths`."""
    lib, given = log_products.placed(data, variance, widths, counts)
    return jnp.asarray(_moment(lib, float(order), *given))


def _moment(lib, k, data, variance, widths, counts):
    xp = lib.arrays
    everything = xp.concatenate([xp.ones(1), counts])
    half, y = data.points / 2, log_scale(xp, data, variance, counts)
    # G(ζ | P/2−k, n/2) = ζ^{−k} G(ζ | P/2, n/2 + k): larger layers in place of fewer points
    larger = xp.concatenate([half[None], widths / 2 + k])
    moved = y - xp.sum(counts * xp.log1p(2 * k / widths))
    ratio = log_products.density_by(lib, moved, larger, everything) - log_products.density_by(
        lib, y, xp.concatenate([half[None], widths / 2]), everything
    )
    free, steps = data.dimension - data.points, xp.arange(k)
    rising = xp.sum(counts * xp.sum(xp.log1p(2 * steps[:, None] / widths[None]), axis=0))
    scale = k * ((xp.sum(counts) + 1) * xp.log(variance) - xp.log(data.dimension))
    return xp.prod(free + 2 * steps) * xp.exp(scale + rising + ratio)


class Predicted(NamedTuple):
    """The predictive law at new points: its mean, its variance, and how much heavier than Gaussian its tails are."""

    mean: Floats
    variance: Floats
    kurtosis: Floats
    """E(f − mean)⁴/variance²; 3 for a Gaussian, and where the data leave nothing open"""


class Geometry(NamedTuple):
    """Data, and new points beside them: what the shortest interpolant says there, and how far they leave the span."""

    data: Interpolation
    mean: Floats
    distance: Floats
    """|x_⊥|²"""


def predict_labels(
    x: ArrayLike, y: ArrayLike, new: ArrayLike, weight_variance: ArrayLike, hidden: Sequence[int] | ArrayLike
) -> Predicted:
    r"""Mean, variance and kurtosis of f(x) = θ·x at new points, under the posterior of a deep linear network.

    Setting     P points in the rows of `x` with labels `y`, interpolated; `new` points, one in each row
    Result      mean θ_*·x; variance |x_⊥|² E|θ_⊥|²/(n_0−P); E(f − mean)⁴ = 3|x_⊥|⁴ E|θ_⊥|⁴/((n_0−P)(n_0−P+2))
    Validity    one output; P ≤ n_0 points of full rank
    References  hanin2023

    >>> found = predict_labels([[1.0, 0.0, 0.0]], [2.0], [[1.0, 1.0, 0.0], [3.0, 0.0, 0.0]], 1.0, [5, 5])
    >>> found.mean.tolist(), bool(found.variance[0] > 0), float(found.variance[1])
    ([2.0, 6.0], True, 0.0)
    """
    place = _placed(x, y, new)
    variance = number("weight_variance", weight_variance, POSITIVE)
    widths, counts = layers(hidden)
    free = float(place.data.dimension - place.data.points)
    if free == 0:
        return Predicted(place.mean, jnp.zeros_like(place.mean), jnp.full_like(place.mean, 3.0))
    second = moment_of(place.data, variance, widths, counts, 1)
    fourth = moment_of(place.data, variance, widths, counts, 2)
    tails = 3 * (fourth / second**2) * free / (free + 2)
    return Predicted(place.mean, place.distance * second / free, jnp.where(place.distance > 0, tails, 3.0))


def log_predictive_density(
    x: ArrayLike,
    y: ArrayLike,
    new: ArrayLike,
    values: ArrayLike,
    weight_variance: ArrayLike,
    hidden: Sequence[int] | ArrayLike,
) -> Float[Array, "new values"]:
    r"""log of the density of f at new points, at each of `values`: exact, and heavier in the tails than a Gaussian.

    Setting     as `predict_labels`
    Result      p(f) = Z(the data and the new point with label f)/Z(the data)
    Validity    one output; P < n_0, and new points outside the span of the data
    References  hanin2023

    >>> density = log_predictive_density([[1.0, 0.0, 0.0]], [2.0], [[1.0, 1.0, 0.0]], [2.0, 3.0], 1.0, [5, 5])
    >>> density.shape, bool(density[0, 0] > density[0, 1])
    ((1, 2), True)
    """
    place = _placed(x, y, new)
    data, at = place.data, jnp.atleast_1d(array("values", jnp.atleast_1d(argument("values", values, FINITE)), ("k",)))
    if data.points >= data.dimension or not np.all(np.asarray(place.distance) > 0):
        raise OutsideValidity(
            "a new point lies in the span of the data, where f is known and has no density; predict_labels gives its "
            "value"
        )
    variance = number("weight_variance", weight_variance, POSITIVE)
    widths, counts = layers(hidden)
    squared = data.squared_norm + (at[None, :] - place.mean[:, None]) ** 2 / place.distance[:, None]
    log_determinant = data.log_determinant + jnp.log(place.distance)[:, None] + jnp.zeros_like(squared)

    def one(part):
        more = Interpolation(data.points + 1, data.dimension, *part)
        return evidence_of(more, variance, widths, counts)

    flat = jax.lax.map(one, (jnp.ravel(squared), jnp.ravel(log_determinant)))
    return flat.reshape(squared.shape) - evidence_of(data, variance, widths, counts)


def _placed(x: ArrayLike, y: ArrayLike, new: ArrayLike) -> Geometry:
    data, given = interpolate(x, y), labelled(x, y)
    width = given.rows.shape[1]
    places = np.asarray(array("new", new, ("m", width), why="new points in rows, as long as those of x"))
    parts = decomposed(given)
    along = places @ parts.directions.T
    rest = places - along @ parts.directions
    squared = np.sum(rest**2, axis=1)
    # Rounding leaves something of a point that lies in the span.
    squared = np.where(squared <= RANK**2 * np.sum(places**2, axis=1), 0.0, squared)
    return Geometry(data, jnp.asarray(along @ (parts.coordinates / parts.values)), jnp.asarray(squared))
