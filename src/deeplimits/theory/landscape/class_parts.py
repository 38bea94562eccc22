r"""Second moments split by class: gradients, features and backpropagated errors, and their shares at the start.

Example i of class c has, for every possible label c', a vector g_icc' with weight w_icc' (Σ w = 1): the gradient that
the label c' would give, weighted by its probability. The second moment is the Gauss-Newton matrix.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array

from deeplimits.numerics import arguments

NOTHING = 1e-300
"""Groups of less weight than this are left out."""


class ClassParts(NamedTuple):
    """Four matrices, or their traces, whose sum is the whole second moment."""

    between: Array
    """Of the classes' means, Σ_c w_c g_c g_c': rank at most C."""
    cross: Array
    """Of the cross-class means about them: rank at most C(C − 2)."""
    within: Array
    """Of the examples about their cross-class means."""
    same: Array
    """c' = c: gradients of the labels that are there."""

    @property
    def whole(self) -> Array:
        """The sum."""
        return self.between + self.cross + self.within + self.same


class FeatureParts(NamedTuple):
    """The second moment of features: class means, whose part is again two, and what is within classes."""

    common: Array
    """h_G h_G' of the mean of the class means."""
    between: Array
    """Of the class means about it."""
    within: Array
    """Of the features about their class means."""

    @property
    def whole(self) -> Array:
        """The sum."""
        return self.common + self.between + self.within


def class_decomposition(vectors: ArrayLike, weights: ArrayLike, classes: ArrayLike) -> ClassParts:
    """The exact split of Σ w g g' by class and label.

    Setting     `vectors` g (N, C, P), for every example and every label; `weights` w (N, C), not negative; `classes`
                (N,), 0 … C − 1
    Result      w_cc' = Σ_i w_icc', g_cc' = Σ_i w_icc' g_icc'/w_cc', w_c and g_c over c' ≠ c in the same way;
                between Σ_c w_c g_c g_c', cross Σ_{c≠c'} w_cc'(g_cc' − g_c)(…)',
                within Σ_{c≠c'} Σ_i w_icc'(g_icc' − g_cc')(…)', same Σ_ic w_icc g_icc g_icc'
    Validity    any weights; with w = p/N and g = J'(p − e_c') the sum is the Gauss-Newton matrix of cross-entropy
    References  papyan2019; papyan2020

    >>> parts = class_decomposition(np.ones((2, 2, 1)), np.full((2, 2), 0.25), [0, 1])
    >>> [float(part[0, 0]) for part in parts]
    [0.5, 0.0, 0.0, 0.5]
    """
    g = arguments.array("vectors", vectors, ("N", "C", "P"), why="a vector for each example and label")
    count, c, _ = g.shape
    w = arguments.array("weights", weights, (count, c), allowed=arguments.NOT_NEGATIVE)
    allowed = arguments.Allowed(lambda k: (k >= 0) & (k < c) & (k == np.round(k)), f"a class, 0 to {c - 1}")
    labels = arguments.array("classes", classes, (count,), allowed=allowed).astype(int)
    member = jax.nn.one_hot(labels, c, dtype=float)
    other = 1 - jnp.eye(c)
    pair_weight = member.T @ w  # w_cc'
    pair = _mean(jnp.einsum("ic,ik,ikp->ckp", member, w, g), pair_weight)
    class_weight = jnp.sum(pair_weight * other, axis=1)
    mean = _mean(jnp.einsum("ck,ckp->cp", pair_weight * other, pair), class_weight)
    off = 1 - member
    inner = g - pair[labels]
    about = pair - mean[:, None, :]
    return ClassParts(
        jnp.einsum("c,cp,cq->pq", class_weight, mean, mean),
        jnp.einsum("ck,ckp,ckq->pq", pair_weight * other, about, about),
        jnp.einsum("ik,ikp,ikq->pq", w * off, inner, inner),
        jnp.einsum("ik,ikp,ikq->pq", w * member, g, g),
    )


def feature_decomposition(features: ArrayLike, classes: ArrayLike) -> FeatureParts:
    """The exact split of the mean of h h' by class, classes weighted by their frequency.

    >>> parts = feature_decomposition([[1.0], [3.0], [0.0]], [0, 0, 1])
    >>> [round(float(part[0, 0]), 6) for part in parts]
    [1.777778, 0.888889, 0.666667]
    """
    h = arguments.array("features", features, ("N", "P"), why="a row for each example")
    labels = arguments.array("classes", classes, (h.shape[0],), allowed=arguments.COUNT)
    # What does not name a class that occurs has no weight; classes are known where they are counted.
    member = (labels[:, None] == jnp.unique(labels, size=h.shape[0], fill_value=-1.0)[None, :]).astype(float)
    share = member.sum(axis=0) / h.shape[0]
    mean = _mean(member.T @ h / h.shape[0], share)
    centre = share @ mean
    inner, about = h - member @ mean, mean - centre[None, :]
    return FeatureParts(jnp.outer(centre, centre), (about * share[:, None]).T @ about, inner.T @ inner / h.shape[0])


def start_gradient_parts(classes: int, per_class: int, squared_mean: ArrayLike, spread: ArrayLike) -> ClassParts:
    """Traces of the parts for softmax regression with zero weights, all probabilities 1/C.

    Setting     n examples of each of C classes with mean of squared length |μ|² (its mean over classes) and covariance
                of trace `spread`; g_icc' = (1/C − e_c') ⊗ x_ic, w = 1/(nC²)
    Result      with M = |μ|² + spread/n: between M/C², cross M(C − 2)/C, within ((C − 1)/C)² spread(1 − 1/n),
                same (1 − 1/C)(|μ|² + spread)/C, in the mean over the examples
    References  papyan2020

    >>> parts = start_gradient_parts(3, 1000000, 1.0, 0.0)
    >>> [round(float(part), 6) for part in parts]
    [0.111111, 0.333333, 0.0, 0.222222]
    """
    c, n = arguments.whole("classes", classes, 2), arguments.whole("per_class", per_class, 1)
    square = arguments.number("squared_mean", squared_mean, arguments.NOT_NEGATIVE)
    spread = arguments.number("spread", spread, arguments.NOT_NEGATIVE)
    mean = square + spread / n
    return ClassParts(
        mean / c**2, mean * (c - 2) / c, ((c - 1) / c) ** 2 * spread * (1 - 1 / n), (1 - 1 / c) / c * (square + spread)
    )


def _mean(total: Array, weight: Array) -> Array:
    some = weight > NOTHING
    weight = weight.reshape(weight.shape + (1,) * (total.ndim - weight.ndim))
    some = some.reshape(weight.shape)
    return jnp.where(some, total / jnp.where(some, weight, 1.0), 0.0)
