"""The hard-margin predictor: the shortest weights that classify every point with margin one.

Everything is exact up to rounding, with multipliers that prove optimality, or with a certificate that proves that no
hyperplane separates the classes.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float
from numpy.typing import NDArray

from deeplimits.errors import NotConverged, OutsideValidity, ParameterError
from deeplimits.numerics import arguments
from deeplimits.numerics.checks import valid
from deeplimits.theory.bias.least_distance import INFEASIBLE, LeastDistance, closest_point

Floats = NDArray[np.float64]

ON_MARGIN = 1e-8
"""A point whose functional margin exceeds one by less than this is a support vector."""
ZERO_MULTIPLIER = 1e-10
"""A multiplier below this fraction of the largest is zero."""
TINY = float(np.finfo(float).tiny)
FREE = 1e-3
"""Weight of the intercept's square in one proximal step, relative to the weights'."""


class NotSeparable(OutsideValidity):
    """No hyperplane separates the classes; `certificate` proves it.

    The certificate is u ≥ 0 with Σ u_i = 1 and Σ u_i y_i x_i = 0 (with an intercept also Σ u_i y_i = 0): the convex
    hulls of the two classes meet. For several classes u has a column for each wrong class.
    """

    def __init__(self, message: str, certificate: Floats):
        super().__init__(message)
        self.certificate = certificate


class HardMargin(NamedTuple):
    """The hard-margin predictor with the proof of its optimality."""

    weights: Floats
    """ŵ, of shape (d,), or (classes, d)."""
    intercept: float | Floats
    """b; zero where none was asked for."""
    multipliers: Floats
    """a ≥ 0 with ŵ = Σ a_i y_i x_i; shape (n,), or (n, classes) with zeros at the right class."""
    margin: float
    """Geometric margin 1/‖ŵ‖."""
    support: NDArray[np.intp]
    """The points on the margin."""
    degenerate: NDArray[np.intp]
    """The points on the margin that carry no multiplier: removing them changes nothing. Empty for almost all data."""
    residual: float
    """Largest violation of optimality: constraints, stationarity, and Σ a_i = ‖ŵ‖², relative."""
    unit: float = 1.0
    """The multipliers are those of x/unit: 1, or the size of x where those of x, of size 1/x², are beyond numbers."""


def hard_margin(x: ArrayLike, y: ArrayLike, *, intercept: bool = False) -> HardMargin:
    """The maximum-margin hyperplane of two classes labelled ±1.

    Setting     n points x_i with labels y_i = ±1, separable: y_i(⟨w, x_i⟩ + b) > 0 for some w (b = 0 without intercept)
    Result      ŵ = argmin ‖w‖ : y_i(⟨w, x_i⟩ + b) ≥ 1; ŵ = Σ a_i y_i x_i with a ≥ 0, a_i = 0 off the margin,
                Σ a_i = ‖ŵ‖² and, with an intercept, Σ a_i y_i = 0; geometric margin 1/‖ŵ‖
    Validity    separable data; otherwise `NotSeparable` is raised with a certificate. Margins below 1e-10 of the
                largest ‖x_i‖ count as none
    References  lawson1995 Ch. 23; soudry2018

    `x` has shape (n, d), `y` shape (n,).

    >>> found = hard_margin([[1.0, 2], [2, 0.5], [-3, -3], [4, 1]], [1, 1, -1, 1])
    >>> [round(v, 10) for v in found.weights.tolist()], round(found.margin, 10)
    ([0.4285714286, 0.2857142857], 1.9414506868)
    """
    points, labels = _checked(x, y)
    largest = np.abs(points).max()
    if largest > 0 and not 1e-100 < largest < 1e100:
        # Squares would overflow or vanish: ŵ(x/s) = s ŵ(x)
        found = hard_margin(points / largest, y, intercept=intercept)
        with np.errstate(over="ignore", under="ignore"):
            multipliers = found.multipliers / largest / largest
        # In units of 1/x² they may be no numbers
        fits = np.isfinite(multipliers) & ((multipliers >= TINY) | (found.multipliers == 0))
        return found._replace(
            weights=found.weights / largest,
            multipliers=multipliers if fits.all() else found.multipliers,
            margin=found.margin * largest,
            unit=1.0 if fits.all() else float(largest),
        )
    signed = points * labels[:, None]
    scale = np.linalg.norm(signed, axis=1).max()
    if scale == 0:
        raise NotSeparable(
            "x contains only zeros, which nothing separates; give points other than the origin", _even(labels)
        )
    if intercept:
        return _with_intercept(points, labels)
    found = closest_point(signed / scale, np.ones(len(signed)))
    if found.point is None and _separable(signed):
        raise OutsideValidity(
            f"the data are separable, but their margin is below {INFEASIBLE:g} of the largest point, {scale:.3g}: too "
            "thin for double precision; take out what is so much shorter than the rest, or give it more weight"
        )
    weights, multipliers = _separated(found, scale)
    return _described(signed, weights, 0.0, multipliers)


def multiclass_hard_margin(x: ArrayLike, y: ArrayLike, *, intercept: bool = False) -> HardMargin:
    """The maximum-margin predictor of K classes labelled 0, …, K−1.

    Setting     n points x_i with classes y_i, separable: ⟨w_{y_i} − w_k, x_i⟩ > 0 for all k ≠ y_i
    Result      argmin Σ_k ‖w_k‖² : ⟨w_{y_i} − w_k, x_i⟩ ≥ 1 for k ≠ y_i, the limit direction of gradient descent on
                the cross-entropy. Σ_k w_k = 0; for two classes w₁ − w₀ = ŵ of `hard_margin`
    Validity    separable data, otherwise `NotSeparable`. With `intercept` a constant feature 1 is appended, and its
                weights are part of the norm
    References  soudry2018; crammer2001

    >>> found = multiclass_hard_margin([[1.0, 2], [2, 0.5], [-3, -3], [4, 1]], [1, 1, 0, 1])
    >>> [round(v, 10) for v in (found.weights[1] - found.weights[0]).tolist()]
    [0.4285714286, 0.2857142857]
    """
    points, labels = _finite(x, y)
    classes = len(np.unique(labels))
    if not np.array_equal(np.unique(labels), np.arange(classes)) or classes < 2:
        raise ParameterError(
            f"y = {_some(labels)} is not allowed; classes must be numbered 0, 1, …, K−1 with K ≥ 2, each one present"
        )
    if intercept:
        points = np.hstack([points, np.ones((len(points), 1))])
    labels = labels.astype(int)
    samples, dimension = points.shape
    right = np.repeat(np.arange(samples), classes - 1)
    wrong = np.concatenate([np.delete(np.arange(classes), label) for label in labels])
    # Row (i, k) holds x_i in the block of class y_i and −x_i in the block of class k.
    rows = np.zeros((len(right), classes, dimension))
    rows[np.arange(len(right)), labels[right]] = points[right]
    rows[np.arange(len(right)), wrong] = -points[right]
    rows = rows.reshape(len(right), -1)
    scale = np.linalg.norm(rows, axis=1).max()
    found = closest_point(rows / scale if scale > 0 else rows, np.ones(len(rows)))
    weights, pairs = _separated(found, scale)
    described = _described(rows, weights, 0.0, pairs)
    multipliers = np.zeros((samples, classes))
    multipliers[right, wrong] = pairs
    weights = weights.reshape(classes, dimension)
    offsets = weights[:, -1] if intercept else np.zeros(classes)
    return described._replace(
        weights=weights[:, :-1] if intercept else weights,
        intercept=offsets,
        multipliers=multipliers,
        support=np.unique(right[described.support]),
        degenerate=np.setdiff1d(
            right[described.degenerate], right[np.flatnonzero(pairs > ZERO_MULTIPLIER * pairs.max())]
        ),
    )


def is_separable(x: ArrayLike, y: ArrayLike, *, intercept: bool = False) -> bool:
    """Whether some hyperplane (through the origin unless `intercept`) separates the two classes.

    >>> is_separable([[1.0], [2.0]], [1, -1]), is_separable([[1.0], [2.0]], [1, -1], intercept=True)
    (False, True)
    """
    points, labels = _checked(x, y)
    if not intercept:
        return _separable(points * labels[:, None])
    # Separation does not depend on the unit, multipliers do.
    largest = np.abs(points).max()
    try:
        hard_margin(points / largest if largest > 0 else points, labels, intercept=True)
    except NotSeparable:
        return False
    return True


def _separable(signed: Floats) -> bool:
    """Whether ⟨w, x̄_i⟩ > 0 for some w and all rows: their directions alone decide."""
    largest = np.abs(signed).max(axis=1, keepdims=True)
    if not np.all(largest > 0):
        return False
    rows = signed / largest
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return closest_point(rows, np.ones(len(rows))).point is not None


class Separator(NamedTuple):
    """ŵ of least norm with margins at least one, and the multipliers a of ŵ = Σ a_i y_i x_i."""

    weights: Float[Array, " d"]
    multipliers: Float[Array, " n"]


def traced_hard_margin(signed: Float[Array, "n d"]) -> Separator:
    """ŵ and the multipliers a of the rows y_i x_i, for use inside traced code; the solver runs on the host."""
    n, d = signed.shape
    answer = (jax.ShapeDtypeStruct((d,), float), jax.ShapeDtypeStruct((n,), float))

    def solve(rows):
        found = hard_margin(rows, np.ones(n))
        return found.weights, found.multipliers if found.unit == 1.0 else np.full(n, np.inf)

    found = Separator(*jax.pure_callback(solve, answer, signed, vmap_method="sequential"))
    sentence = "the multipliers, of size 1/x², are beyond double precision; divide x by its size"
    return valid(found, jnp.all(jnp.isfinite(found.multipliers)), sentence)


def _with_intercept(points: Floats, labels: Floats) -> HardMargin:
    """Proximal steps in the free intercept: minimize ‖w‖² + ε²(b − b_k)² to get b_{k+1}, until b stands still.

    Each step is a least-distance problem in (w, ε(b − b_k)). The error shrinks by about ε² a step.
    """
    if len(np.unique(labels)) < 2:
        raise OutsideValidity(
            "y has one class only: with an intercept any constant separates it and the margin is infinite; "
            "give points of both classes"
        )
    centre = points.mean(axis=0)
    centred = points - centre
    scale = np.linalg.norm(centred, axis=1).max()
    if scale == 0:
        raise NotSeparable("all points of x coincide, and their labels differ; nothing separates them", _even(labels))
    rows = np.hstack([centred * (labels / scale)[:, None], labels[:, None] / FREE])
    size = np.linalg.norm(rows, axis=1).max()
    offset, moved, guess = 0.0, 0.0, None
    for _ in range(60):
        found = closest_point(rows / size, 1 - labels * offset, guess=guess)
        guess = found.point
        solution, multipliers = _separated(found, size)
        moved = solution[-1] / FREE
        offset += moved
        # The proximal term leaves Σ a_i y_i = ε²(b_{k+1} − b_k); at rest the intercept is free.
        if abs(moved) <= 1e-9 * max(1.0, abs(offset)):
            weights, shift, multipliers = _solve_support(centred / scale, labels, multipliers)
            weights = weights / scale
            return _described(
                points * labels[:, None], weights, shift - float(centre @ weights), multipliers / scale**2, labels
            )
    raise NotConverged(f"the intercept still moves by {moved:.2g} after 60 proximal steps; rescale the columns of x")


def _solve_support(points: Floats, labels: Floats, multipliers: Floats) -> tuple[Floats, float, Floats]:
    """Weights, intercept and multipliers from the support alone, which the proximal steps have found.

    There the constraints are equations, and solving them restores the digits that a nearly free intercept costs.
    """
    on = np.flatnonzero(multipliers > ZERO_MULTIPLIER * multipliers.max())
    signs, rows = labels[on], points[on] * labels[on, None]

    def without_labels(values: Floats) -> Floats:
        return values - (np.multiply.outer(signs, signs @ values)) / len(on)

    # ⟨w, x̄_i⟩ + b y_i = 1 on the support; projecting out y removes b, and w is the shortest solution
    reduced = without_labels(rows)
    weights = np.asarray(np.linalg.lstsq(reduced, without_labels(np.ones(len(on))), rcond=None)[0], float)
    intercept = float(signs @ (1 - rows @ weights) / len(on))
    refined = np.zeros_like(multipliers)
    refined[on] = np.maximum(np.linalg.lstsq(reduced.T, weights, rcond=None)[0], 0.0)
    return weights, intercept, refined


def _separated(found: LeastDistance, scale: float) -> tuple[Floats, Floats]:
    """Point and multipliers in the units of the data; the certificate raised where there are none."""
    if found.point is None or found.multipliers is None:
        assert found.certificate is not None
        weights = found.certificate / found.certificate.sum()
        involved = int(np.count_nonzero(weights))
        raise NotSeparable(
            f"the data are not separable: {involved} of the points have the origin in the convex hull of y_i x_i "
            f"(residual {found.residual:.1e}, see the `certificate` of this error); add features, or use a soft margin",
            weights,
        )
    return found.point / scale, found.multipliers / scale**2


def _described(
    rows: Floats, weights: Floats, intercept: float, multipliers: Floats, labels: Floats | None = None
) -> HardMargin:
    margins = rows @ weights + (0.0 if labels is None else labels * intercept)
    support = np.flatnonzero(margins - 1 < ON_MARGIN)
    idle = multipliers <= ZERO_MULTIPLIER * multipliers.max()
    norm = np.linalg.norm(weights)
    residual = max(
        float(1 - margins.min()),
        float(np.linalg.norm(rows.T @ multipliers - weights) / norm),
        float(abs(multipliers.sum() - norm**2) / norm**2),
    )
    if residual > ON_MARGIN:
        raise NotConverged(
            f"the hard-margin solution has residual {residual:.1e}, above {ON_MARGIN:g}: the margin is too thin "
            "for double precision; rescale the features"
        )
    return HardMargin(weights, intercept, multipliers, float(1 / norm), support, support[idle[support]], residual)


def _checked(x: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
    points, labels = _finite(x, y)
    if not np.all(np.abs(labels) == 1):
        raise ParameterError(f"y = {_some(labels)} is not allowed; labels must be +1 or −1")
    return points, labels


def _finite(x: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
    points, labels = arguments.samples(x, y)
    return np.asarray(points), np.asarray(labels)


def _even(labels: Floats) -> Floats:
    return np.full(len(labels), 1 / len(labels))


def _some(labels: Floats) -> str:
    shown = ", ".join(f"{label:g}" for label in labels[:5])
    return f"[{shown}{', …' if len(labels) > 5 else ''}]"
