r"""The evidence of deep linear networks that interpolate, exact for every depth, all widths and any data.

A network x ↦ W^(L+1) … W^(1) x with hidden widths n_1 … n_L and one output is linear, x ↦ θ·x. Its prior,
W^(l)_ij ~ N(0, σ²/n_{l−1}), is a scale mixture: θ given s is N(0, (σ² s²/n_0) I) with s² = Π_l (σ²/n_l) χ²_{n_l}. So
everything depends on the data through few numbers: how many they are, P; the dimension n_0; ν = |θ_*|², the squared
norm of the shortest interpolant; and log det X Xᵀ.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.numerics.arguments import FINITE, POSITIVE, Allowed, argument, array, known, number
from deeplimits.numerics.shapes import Floats
from deeplimits.theory.bayes import log_products

WIDTH = Allowed(lambda x: (x >= 1) & (x == np.round(x)) & (x <= 1e12), "a whole number from 1 to 1e12")
DEPTH = Allowed(lambda x: (x >= 0) & (x == np.round(x)) & (x <= 1e9), "a whole number from 0 to 1e9")
RANK = 1e-10
"""Singular values below this share of the largest count as zero."""


class Interpolation(NamedTuple):
    """What the evidence needs to know of data that a linear function can interpolate."""

    points: Floats
    """P, how many"""
    dimension: Floats
    """n_0, of how many coordinates"""
    squared_norm: Floats
    """ν = |θ_*|² of the shortest θ with θ·x_i = y_i"""
    log_determinant: Floats
    """log det X Xᵀ of the P rows"""


def interpolation(
    points: ArrayLike, dimension: ArrayLike, squared_norm: ArrayLike, log_determinant: ArrayLike
) -> Interpolation:
    """The numbers that `log_evidence` and the posterior need, given by themselves.

    >>> interpolation(2, 4, 1.0, 0.0).squared_norm.item()
    1.0
    """
    p, n = number("points", points, WIDTH), number("dimension", dimension, WIDTH)
    if known(p, n) and p > n:
        raise OutsideValidity(
            f"points = {float(p):g} exceeds dimension = {float(n):g}: a linear network cannot interpolate more points "
            "than there are dimensions; take fewer points, or features of a higher dimension"
        )
    why = "labels that are all zero have no density of their own scale"
    return Interpolation(
        p, n, number("squared_norm", squared_norm, POSITIVE, why), number("log_determinant", log_determinant, FINITE)
    )


def interpolate(x: ArrayLike, y: ArrayLike) -> Interpolation:
    """ν = yᵀ(X Xᵀ)⁻¹y and log det X Xᵀ of points in the rows of x with labels y.

    >>> found = interpolate([[2.0, 0.0, 0.0], [0.0, 1.0, 0.0]], [2.0, 3.0])
    >>> round(float(found.squared_norm), 12), round(float(found.log_determinant), 12)
    (10.0, 1.38629436112)
    """
    given = labelled(x, y)
    parts = decomposed(given)
    squared = float(np.sum((parts.coordinates / parts.values) ** 2))
    if not 0 < squared < np.inf:
        raise OutsideValidity(
            f"the shortest interpolant has the squared norm {squared:g}: labels must not all vanish, nor data lie at "
            "the ends of double precision; centre or rescale them"
        )
    points, dimension = given.rows.shape
    return interpolation(points, dimension, squared, 2 * float(np.sum(np.log(parts.values))))


class Labelled(NamedTuple):
    """Points in rows, and their labels."""

    rows: np.ndarray
    labels: np.ndarray


def labelled(x: ArrayLike, y: ArrayLike) -> Labelled:
    """Points and labels on the host."""
    rows = np.asarray(array("x", x, ("n", "d"), why="one point in each row"))
    return Labelled(rows, np.asarray(array("y", y, (len(rows),), why="one label for each row of x")))


class Decomposed(NamedTuple):
    """Singular values and directions of the rows, and the labels in their basis."""

    values: np.ndarray
    directions: np.ndarray
    coordinates: np.ndarray


def decomposed(data: Labelled) -> Decomposed:
    """The singular value decomposition; what no linear function interpolates, or not all labels of, is refused."""
    rows = data.rows
    if len(rows) > rows.shape[1]:
        raise OutsideValidity(
            f"there are {len(rows)} points in {rows.shape[1]} dimensions: a linear network cannot interpolate more "
            "points than there are dimensions; take fewer points, or features of a higher dimension"
        )
    left, values, right = np.linalg.svd(rows, full_matrices=False)
    rank = int(np.sum(values > RANK * values.max(initial=0.0)))
    if rank < len(rows):
        raise OutsideValidity(
            f"the {len(rows)} points have rank {rank}: some are combinations of others, and labels of such points have "
            "no density; take them out, or project the data on fewer points"
        )
    return Decomposed(values, right, left.T @ data.labels)


def log_evidence(data: Interpolation, weight_variance: ArrayLike, hidden: Sequence[int] | ArrayLike) -> Floats:
    r"""log of the density of the labels under the prior of a deep linear network, exact.

    Setting     θ' = W^(L+1) … W^(1), W^(l)_ij ~ N(0, σ²/n_{l−1}) with σ² = `weight_variance`, `hidden` the widths
                n_1 … n_L (none for linear regression); P ≤ n_0 points of full rank, interpolated without noise
    Result      Z = (πν)^{−P/2} det(X Xᵀ)^{−1/2} [Π Γ(n_l/2)]⁻¹ G^{L+1,0}_{0,L+1}(ζ | P/2, n_1/2, …, n_L/2),
                ζ = ν Π_{l=0}^L n_l/(2σ²)
    Validity    one output; every depth and all widths
    References  hanin2023 Thm 3.2

    Meijer's G is computed in the log domain, to about 13 digits at any size.

    >>> round(float(log_evidence(interpolation(2, 4, 1.0, 0.0), 1.0, [3, 5])), 13)
    -2.9919872684456
    >>> round(float(log_evidence(interpolation(3, 6, 1.0, 0.0), 2.0, [4])), 13)
    -2.9860219664703
    """
    widths, counts = layers(hidden)
    variance = number("weight_variance", weight_variance, POSITIVE)
    return evidence_of(require_interpolation(data), variance, widths, counts)


def evidence_over_depth(
    data: Interpolation, weight_variance: ArrayLike, width: ArrayLike, depths: ArrayLike
) -> Float[Array, " depths"]:
    """`log_evidence` with each of these numbers of hidden layers, all of one width.

    >>> data = interpolation(10, 20, 2.0, 0.0)
    >>> [round(float(one), 10) for one in evidence_over_depth(data, 1.0, 20, [11, 12, 13])]
    [-8.6194597612, -8.6165088272, -8.618275718]
    """
    require_interpolation(data)
    n = number("width", width, WIDTH)
    counts = jnp.atleast_1d(argument("depths", depths, DEPTH))
    variance = number("weight_variance", weight_variance, POSITIVE)
    return jax.lax.map(lambda depth: evidence_of(data, variance, n[None], depth[None]), counts)


def layers(hidden: Sequence[int] | ArrayLike) -> tuple[Array, ...]:
    """The different widths among the hidden layers, and how many layers have each."""
    if known(hidden):
        if np.size(np.asarray(hidden, float)) == 0:
            return jnp.ones(1), jnp.zeros(1)
        array("hidden", hidden, ("layers",), allowed=WIDTH, why="one width for each hidden layer")
        values, counts = log_products.grouped(np.asarray(hidden, float))
        return jnp.asarray(values), jnp.asarray(counts)
    widths = jnp.asarray(hidden, float)
    return widths, jnp.ones_like(widths)


def log_scale(xp, data, weight_variance, counts):
    """log(n_0 ν/P) − (L+1) log σ²: where the data lie on the prior's scale; 0 where they are as large as it expects."""
    ratio = xp.log(data.dimension) + xp.log(data.squared_norm) - xp.log(data.points)
    return ratio - (xp.sum(counts) + 1) * xp.log(weight_variance)


def evidence_of(data: Interpolation, weight_variance: Floats, widths: Floats, counts: Floats) -> Floats:
    """`log_evidence` with `counts` layers of each of `widths`."""
    lib, given = log_products.placed(data, weight_variance, widths, counts)
    return jnp.asarray(_evidence(lib, *given))


def _evidence(lib, data, weight_variance, widths, counts):
    xp = lib.arrays
    half, y = data.points / 2, log_scale(xp, data, weight_variance, counts)
    shapes = xp.concatenate([half[None], widths / 2])
    density = log_products.density_by(lib, y, shapes, xp.concatenate([xp.ones(1), counts]))
    # Z = Γ(P/2) (πν)^{−P/2} det^{−1/2} p(log(n_0ν/P) − (L+1) log σ²), p the density of Σ log of the Gamma variables
    norm = lib.special.gammaln(half) - half * (xp.log(xp.pi) + xp.log(data.squared_norm))
    return norm - data.log_determinant / 2 + density


def log_meijer_g(log_argument: ArrayLike, shapes: ArrayLike) -> Floats:
    """log G^{q,0}_{0,q}(ζ | b_1, …, b_q) for ζ > 0 and real b, given log ζ: in the log domain, at any size of the b.

    >>> import math
    >>> round(float(log_meijer_g(math.log(2.0), [0.0])), 12)  # e^−ζ
    -2.0
    >>> round(float(log_meijer_g(40.0, [500.0] * 8)), 8)
    18800.58536619
    """
    y = number("log_argument", log_argument, FINITE)
    b = array("shapes", shapes, ("shapes",), allowed=Allowed(lambda x: np.abs(x) <= 1e12, "between -1e12 and 1e12"))
    return _log_meijer_g(y, b)


def _log_meijer_g(y, b):
    lib, (y, b) = log_products.placed(y, b)
    xp, gammaln = lib.arrays, lib.special.gammaln
    # ζ^s G(ζ | b) = G(ζ | b + s) makes all of them positive
    shift = xp.maximum(1 - xp.min(b), 0.0)
    positive = b + shift
    inside = log_products.density_by(lib, y - xp.sum(xp.log(positive)), positive, xp.ones_like(b))
    return jnp.asarray(inside + xp.sum(gammaln(positive)) - shift * y)


def require_interpolation(data: Interpolation) -> Interpolation:
    """`data`, or a sentence where something else was given."""
    if not isinstance(data, Interpolation):
        raise ParameterError(f"data is a {type(data).__name__}; give what interpolate(x, y) answers")
    return data
