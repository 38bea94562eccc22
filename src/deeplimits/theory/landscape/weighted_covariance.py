r"""Bulk and outliers of A = (1/M) Σ_l w_l Y_l Y_l', weights that depend on a few coordinates of the samples.

Y_l in R^d has covariance I/λ around its class mean, and w_l depends on u_l, its coordinates in a fixed space U of
dimension q; M/d → α. Every block of the Hessian and of the gradients' second moment of a mixture is of this form.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float

from deeplimits.errors import ParameterError
from deeplimits.numerics import arguments
from deeplimits.numerics.roots import bracketed
from deeplimits.numerics.shapes import Floats, Scalar

NOT_MONOTONE = "the bulk has no edge: are all weights zero?"


class WeightedSample(NamedTuple):
    """The law of (w, u) as points with probabilities, and the two ratios."""

    weights: Float[Array, " points"]
    """w, not negative."""
    coordinates: Float[Array, "points q"]
    """u, in an orthonormal basis of U, its own noise included."""
    probabilities: Float[Array, " points"]
    separation: Scalar
    """λ."""
    per_dimension: Scalar
    """α = M/d, samples per dimension."""


def weighted_sample(
    weights: ArrayLike, coordinates: ArrayLike, separation: ArrayLike, per_dimension: ArrayLike,
    *, probabilities: ArrayLike | None = None,
) -> WeightedSample:  # fmt: skip
    """The law of weights and coordinates, checked; equal probabilities unless given.

    >>> import numpy as np
    >>> weighted_sample(np.ones(2), np.zeros((2, 1)), 10.0, 4.0).probabilities.tolist()
    [0.5, 0.5]
    """
    w = arguments.array("weights", weights, ("points",), allowed=arguments.NOT_NEGATIVE)
    u = arguments.array("coordinates", coordinates, (w.shape[0], "q"), why="a row for each weight")
    p = jnp.full(w.shape, 1 / w.shape[0]) if probabilities is None else probabilities
    return WeightedSample(
        w,
        u,
        arguments.probabilities("probabilities", p, w.shape[0]),
        arguments.number("separation", separation, arguments.POSITIVE),
        arguments.number("per_dimension", per_dimension, arguments.POSITIVE, "samples per dimension"),
    )


def bulk_inverse(sample: WeightedSample, m: ArrayLike) -> Floats:
    """z(m) = −1/m + (1/λ) E[w/(1 + wm/(λα))], the inverse of m(z) = lim (1/d) tr (A − z)^{−1}.

    >>> one = weighted_sample([1.0], [[0.0]], 1.0, 2.0)
    >>> round(float(bulk_inverse(one, -0.5)), 12)  # 2 + 1/(1 − 1/4)
    3.333333333333
    """
    m = jnp.asarray(m, float)
    w = sample.weights.reshape((1,) * m.ndim + (-1,))
    return -1 / m + (w / (1 + w * m[..., None] / _scale(sample))) @ sample.probabilities / sample.separation


class Outliers(NamedTuple):
    """The q candidates, by decreasing eigenvalue; those that are outliers come first."""

    exist: Bool[Array, " q"]
    eigenvalues: Float[Array, " q"]
    """The edge of the bulk where there is no outlier."""
    projections: Float[Array, " q"]
    """|P_U v|² of the eigenvector; zero where there is no outlier."""
    directions: Float[Array, "q q"]
    """The unit vectors P_U v/|P_U v| as rows."""
    edge: Scalar
    """The right edge of the bulk."""


def weighted_outliers(sample: WeightedSample) -> Outliers:
    """Outliers of the weighted covariance, how much of their eigenvectors lies in U, in which directions.

    Setting     A = (1/M) Σ w_l Y_l Y_l', Y of covariance I/λ around means in U, w a function of u = P_U Y; M/d → α
    Limit       d → ∞ with λ, q fixed
    Result      bulk: z = −1/m + (1/λ) E[w/(1 + wm/(λα))]; its right edge is the least z for m in (−λα/max w, 0)
                outliers: det(z − K(z)) = 0 beyond the edge, K = E[w u u'/(1 + wm/(λα))]
                |P_U v|² = 1/(1 − e'K'(z)e), e the unit null vector, the direction of P_U v
    Validity    w ≥ 0 (for blocks with w ≤ 0 take −A)
    References  benarous2024; benaych2011

    >>> import numpy as np  # one spike of length 1 in noise 1/λ: Marchenko-Pastur, ℓ = 1 + λ
    >>> z = np.sqrt(0.1) * np.array([[1.0], [-1.0]]) + 1.0
    >>> found = weighted_outliers(weighted_sample([1.0, 1.0], z, 10.0, 4.0))
    >>> round(float(found.eigenvalues[0]), 9), round(float(found.edge), 9)  # (ℓ/λ)(1 + 1/(α(ℓ − 1))), (1 + ½)²/λ
    (1.1275, 0.225)
    """
    arguments.of_kind("sample", sample, WeightedSample)
    scale = _scale(sample)
    low = -scale / jnp.max(sample.weights)
    # In units of the pole of the heaviest weight: x = m/low in (0, 1)
    share = bracketed(_edge_condition, 1e-9, 1.0, sample, low, sentence=NOT_MONOTONE)
    lowest = low * share
    edge = bulk_inverse(sample, lowest)
    q = sample.coordinates.shape[1]
    candidates = jnp.full((q,), lowest)
    exist = _outlier_condition(jnp.ones(q), sample, lowest) < 0
    place = bracketed(_outlier_condition, jnp.ones(q), 1e-9, sample, lowest, optional=True)
    m = jnp.where(exist, lowest * place, candidates)
    pairs = jax.vmap(lambda m: jnp.linalg.eigh(_matrix(sample, m)))(m)
    directions = jnp.take_along_axis(pairs[1], jnp.arange(q)[::-1][:, None, None], axis=2)[:, :, 0]
    along = sample.coordinates @ directions.T
    ratio = sample.weights[:, None] / (1 + sample.weights[:, None] * m[None, :] / scale)
    # z'(m) = 1/m² − (1/(λ²α)) E[(w/(1 + wm/(λα)))²],  −e'K'(z)e = E[(w e·u/(…))²]/(λα z'(m))
    slope = 1 / m**2 - sample.probabilities @ ratio**2 / (sample.separation * scale)
    spread = sample.probabilities @ (ratio * along) ** 2 / scale
    return Outliers(
        exist,
        jnp.where(exist, bulk_inverse(sample, m), edge),
        jnp.where(exist, slope / (slope + spread), 0.0),
        directions,
        edge,
    )


def outlier_alignment(found: Outliers, vector: ArrayLike, count: int) -> Scalar:
    """ρ² = |P x|²/|x|² of a vector in U, P onto the eigenvectors of the `count` largest outliers.

    Setting     `vector` x in the coordinates of the sample that `found` belongs to
    Result      Σ_j |P_U v_j|²⟨e_j, x⟩²/|x|² over the outliers that there are
    Validity    d → ∞; eigenvectors of the bulk have no part in U
    References  benarous2024

    >>> z = jnp.sqrt(0.1) * jnp.array([[1.0], [-1.0]]) + 1.0
    >>> found = weighted_outliers(weighted_sample([1.0, 1.0], z, 10.0, 4.0))
    >>> round(float(outlier_alignment(found, [2.0], 1)), 9)  # (1 − 1/(α(ℓ − 1)²))/(1 + 1/(α(ℓ − 1))), ℓ − 1 = 10
    0.973170732
    """
    arguments.of_kind("found", found, Outliers)
    q = found.eigenvalues.shape[0]
    x = arguments.array("vector", vector, (q,), why="a coordinate for each direction")
    if arguments.whole("count", count, 1) > q:
        raise ParameterError(f"count = {count} exceeds the {q} candidates; take fewer")
    inside = found.projections[:count] * (found.directions[:count] @ x) ** 2
    return jnp.sum(inside) / (x @ x)


def _scale(sample: WeightedSample) -> Array:
    return sample.separation * sample.per_dimension


def _edge_condition(share, sample, low):
    """1 − m² (1/(λ²α)) E[(w/(1 + wm/(λα)))²], which falls as m falls: its zero is the edge."""
    m = low * share
    pulled = sample.weights * m / (1 + sample.weights * m / _scale(sample))
    return 1 - sample.probabilities @ pulled**2 / (sample.separation * _scale(sample))


def _matrix(sample, m):
    heavy = sample.probabilities * sample.weights / (1 + sample.weights * m / _scale(sample))
    return (sample.coordinates * heavy[:, None]).T @ sample.coordinates


def _outlier_condition(shares, sample, lowest):
    """z(m) − κ_j(K(m)), κ_j the j-th largest eigenvalue: it rises with m, so that it has one zero or none."""

    def one(j):
        m = lowest * shares[j]
        return bulk_inverse(sample, m) - jnp.linalg.eigvalsh(_matrix(sample, m))[::-1][j]

    return jax.vmap(one)(jnp.arange(shares.shape[0]))
