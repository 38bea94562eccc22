r"""Neural collapse: features and classifier that are free to move, and what collapse looks like in noise."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.numerics import arguments
from deeplimits.numerics.shapes import Scalar


class CollapsedSolution(NamedTuple):
    """The minimum of the regularized cross-entropy over features and classifier."""

    scale: Scalar
    """s: the logits are s(1 − 11'/C); zero where the penalty wins."""
    loss: Scalar
    strength: Scalar
    """κ = √(n λ_W λ_H); collapse takes κ < 1/C."""


class CollapseMetrics(NamedTuple):
    """What `neural_collapse_in_noise` predicts."""

    within: Scalar
    """NC1, tr(Σ_W Σ_B⁺)/C."""
    ratio: Scalar
    """tr Σ_W/tr Σ_B."""
    squared_length: Scalar
    """|μ̂_c − μ̂_G|², the squared length of a centred class mean."""
    cosine: Scalar
    """Between the centred means of two classes: −1/(C − 1)."""


def unconstrained_features(
    classes: int, per_class: int, ridge_weights: ArrayLike, ridge_features: ArrayLike
) -> CollapsedSolution:
    """The global minimum of cross-entropy over classifier W and features H that are free: an exact neural collapse.

    Setting     mean cross-entropy of logits WH over n examples of each of C classes, + (λ_W/2)|W|² + (λ_H/2)|H|²; no
                bias, feature dimension at least C − 1
    Result      κ = √(nλ_Wλ_H) < 1/C: logits s(1 − 11'/C) for every example, s = log(1/κ − (C − 1)), features a simplex
                frame dual to the classifier, loss log(1 + (C − 1)e^{−s}) + κ(C − 1)s; otherwise 0 and log C
    Validity    a global minimum; every other critical point is a strict saddle
    References  zhu2021; papyan2020b

    >>> found = unconstrained_features(4, 3, 0.01, 0.02)
    >>> round(float(found.scale), 10), round(float(found.loss), 10)
    (3.6329657401, 0.3432920808)
    """
    c, n = arguments.whole("classes", classes, 2), arguments.whole("per_class", per_class, 1)
    lam_w = arguments.number("ridge_weights", ridge_weights, arguments.POSITIVE, "without it the norms grow for ever")
    lam_h = arguments.number("ridge_features", ridge_features, arguments.POSITIVE, "without it the norms grow for ever")
    kappa = jnp.sqrt(n * lam_w * lam_h)
    collapsed = kappa < 1 / c
    # s = log(1/κ − (C − 1)), positive where κ < 1/C
    s = jnp.where(collapsed, jnp.log(jnp.where(collapsed, 1 / kappa - (c - 1), 1.0)), 0.0)
    return CollapsedSolution(s, jnp.logaddexp(0.0, jnp.log(c - 1.0) - s) + kappa * (c - 1) * s, kappa)


def neural_collapse_in_noise(
    classes: int, per_class: int, dimension: int, scale: ArrayLike, noise: ArrayLike
) -> CollapseMetrics:
    """Metrics of collapse for Gaussian features around a simplex, to first order in the dimension.

    Setting     n features of each of C classes in R^d, N(μ_c, τ²I) with centred means of length ℓ = `scale` and cosine
                −1/(C − 1); `noise` the standard deviation τ; sample means and covariances
    Limit       d, n → ∞ with d/n fixed
    Result      |μ̂_c − μ̂_G|² → ℓ² + (1 − 1/C)τ²d/n;  tr Σ_W = (1 − 1/n)τ²d;
                NC1 = (C − 1)(1 − 1/n)τ²/(ℓ²C/(C − 1) + τ²d/n), each of the C − 1 eigenvalues of Σ_B being
                (ℓ²C/(C − 1) + τ²d/n)/C; the cosine stays −1/(C − 1)
    References  papyan2020b

    >>> found = neural_collapse_in_noise(3, 10, 100, 1.0, 0.1)
    >>> [round(float(part), 6) for part in found]
    [0.01125, 0.84375, 1.066667, -0.5]
    """
    c, n = arguments.whole("classes", classes, 2), arguments.whole("per_class", per_class, 2)
    d = arguments.whole("dimension", dimension, c)
    length = arguments.number("scale", scale, arguments.POSITIVE)
    tau = arguments.number("noise", noise, arguments.NOT_NEGATIVE)
    within = (1 - 1 / n) * tau**2
    between = length**2 * c / (c - 1) + tau**2 * d / n
    return CollapseMetrics(
        (c - 1) * within / between,
        d * within * c / ((c - 1) * between),
        between * (c - 1) / c,
        jnp.asarray(-1 / (c - 1)),
    )


def simplex_frame(classes: int, dimension: int) -> Float[np.ndarray, "C d"]:
    """C unit vectors in R^d whose inner products are all −1/(C − 1), as rows.

    >>> frame = simplex_frame(3, 2)
    >>> (frame @ frame.T).round(12).tolist()
    [[1.0, -0.5, -0.5], [-0.5, 1.0, -0.5], [-0.5, -0.5, 1.0]]
    """
    c = arguments.whole("classes", classes, 2)
    d = arguments.whole("dimension", dimension, c - 1, "a simplex of C points spans C − 1 dimensions")
    # The rows of 1 − 11'/C in a basis of their span, by Helmert's vectors
    helmert = np.zeros((c, d))
    for j in range(1, c):
        helmert[:j, j - 1], helmert[j, j - 1] = 1.0, -float(j)
        helmert[:, j - 1] /= np.sqrt(j * (j + 1.0))
    return helmert * np.sqrt(c / (c - 1.0))


def mean_logits(scale: ArrayLike, classes: int) -> Float[Array, "C C"]:
    """Logits s(1 − 11'/C) of the collapsed solution, a row for each class.

    >>> mean_logits(2.0, 2).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    c = arguments.whole("classes", classes, 2)
    return jnp.asarray(scale, float) * (jnp.eye(c) - 1 / c)
