r"""Weighted second moments taken apart by class: the algebra of Papyan's decompositions, exact for any weights.

Every sample i of class c has, for every label c', a vector v_icc' and a weight w_icc' ≥ 0. With

    w_cc' = Σ_i w_icc',  v_cc' = Σ_i w_icc' v_icc' / w_cc',    w_c = Σ_{c'≠c} w_cc',  v_c = Σ_{c'≠c} w_cc' v_cc' / w_c

the second moment Σ w_icc' v_icc' v_icc'ᵀ is the sum of four positive parts:

    class    Σ_c w_c v_c v_cᵀ                                     rank ≤ C
    cross    Σ_{c'≠c} w_cc' (v_cc' − v_c)(v_cc' − v_c)ᵀ           rank ≤ C(C−2)
    within   Σ_{c'≠c} Σ_i w_icc' (v_icc' − v_cc')(v_icc' − v_cc')ᵀ
    same     Σ_ic w_icc v_icc v_iccᵀ

Each centring is by the mean of the very group that was averaged over; with any other the parts do not sum to the whole.
Every function here is JAX and can be traced; the number of classes is read off the shapes.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from deeplimits.numerics.shapes import Floats


class Parts(NamedTuple):
    """The four parts as rows r with part = Σ r rᵀ."""

    classes: Float[Array, "classes d"]
    cross: Float[Array, "pairs d"]
    within: Float[Array, "entries d"]
    same: Float[Array, "n d"]

    def matrices(self) -> "Matrices":
        """The parts as matrices."""
        return Matrices(*(jnp.einsum("ra,rb->ab", rows, rows) for rows in self))

    def traces(self) -> "Traces":
        """The trace of each part."""
        return Traces(*(jnp.sum(rows**2) for rows in self))


class _Four(NamedTuple):
    classes: Array
    cross: Array
    within: Array
    same: Array

    @property
    def whole(self) -> Array:
        """Their sum."""
        return self.classes + self.cross + self.within + self.same


class Matrices(_Four):
    """The four parts as d×d matrices."""


class Traces(_Four):
    """The traces of the four parts, numbers; the whole's is their sum."""

    @property
    def shares(self) -> Float[Array, " 4"]:
        """Each part's share of the whole, in the order of the fields."""
        return jnp.stack(self) / self.whole


class Groups(NamedTuple):
    """Weights and weighted means by class and label."""

    weights: Float[Array, "classes labels"]
    """w_cc'"""
    means: Float[Array, "classes labels d"]
    """v_cc'; zero where the weight is"""
    class_weights: Float[Array, " classes"]
    """w_c"""
    class_means: Float[Array, "classes d"]
    """v_c"""


def groups(vectors: Float[Array, "n labels d"], weights: Float[Array, "n labels"], labels: Int[Array, " n"]) -> Groups:
    """Weighted means by class and label.

    >>> found = groups(jnp.ones((4, 2, 3)), jnp.full((4, 2), 1 / 8), jnp.array([0, 0, 1, 1]))
    >>> found.weights.tolist(), found.class_weights.tolist()
    ([[0.25, 0.25], [0.25, 0.25]], [0.25, 0.25])
    """
    member = (labels[:, None] == jnp.arange(weights.shape[1])[None, :]).astype(vectors.dtype)
    w = jnp.einsum("nc,nl->cl", member, weights)
    sums = jnp.einsum("nc,nl,nld->cld", member, weights, vectors)
    return from_sums(w, sums)


def from_sums(w: Float[Array, "classes labels"], sums: Float[Array, "classes labels d"]) -> Groups:
    """The same from Σ_i w_icc' and Σ_i w_icc' v_icc', which can be summed batch by batch."""
    others = w * (1 - jnp.eye(w.shape[0]))
    class_w = jnp.sum(others, axis=1)
    class_sums = jnp.einsum("cl,cld->cd", 1 - jnp.eye(w.shape[0]), sums)
    return Groups(w, _divided(sums, w[..., None]), class_w, _divided(class_sums, class_w[:, None]))


def _divided(sums: Array, weights: Array) -> Array:
    # Late in training whole groups underflow; they carry no weight, and their mean is not asked for.
    empty = weights < 1e-300
    return jnp.where(empty, 0.0, sums / jnp.where(empty, 1.0, weights))


def class_rows(found: Groups) -> Float[Array, "classes d"]:
    """√w_c v_c."""
    return jnp.sqrt(found.class_weights)[:, None] * found.class_means


def cross_rows(found: Groups) -> Float[Array, "pairs d"]:
    """√w_cc' (v_cc' − v_c) for all c' ≠ c."""
    others = found.weights * (1 - jnp.eye(found.weights.shape[0]))
    rows = jnp.sqrt(others)[..., None] * (found.means - found.class_means[:, None, :])
    return rows.reshape(-1, rows.shape[-1])


def parts(vectors: Float[Array, "n labels d"], weights: Float[Array, "n labels"], labels: Int[Array, " n"]) -> Parts:
    r"""The class, cross, within and same parts of Σ w_icc' v_icc' v_icc'ᵀ.

    Setting     sample i of class `labels[i]` with vectors v_i1 … v_iC and weights; for gradients of a cross-entropy
                v_icc' = ∇l(f(x_i), c') and w_icc' = p_i(c')/N, and the whole is the Gauss-Newton matrix
    Result      four sets of rows; `matrices()` and `traces()` of the result
    References  papyan2020

    >>> vectors = jnp.array([[[0.0], [2.0]], [[0.0], [4.0]], [[1.0], [0.0]], [[1.0], [0.0]]])
    >>> found = parts(vectors, jnp.full((4, 2), 0.125), jnp.array([0, 0, 1, 1]))
    >>> [round(float(trace), 4) for trace in found.traces()]
    [2.5, 0.0, 0.25, 0.0]
    """
    found = groups(vectors, weights, labels)
    own = labels[:, None] == jnp.arange(weights.shape[1])[None, :]
    centred = vectors - found.means[labels]
    within = jnp.sqrt(jnp.where(own, 0.0, weights))[..., None] * centred
    same = jnp.sqrt(jnp.sum(jnp.where(own, weights, 0.0), axis=1))[:, None] * jnp.sum(
        jnp.where(own[..., None], vectors, 0.0), axis=1
    )
    return Parts(class_rows(found), cross_rows(found), within.reshape(-1, within.shape[-1]), same)


def row_spectrum(rows: Float[Array, "r d"]) -> Floats:
    """The nonzero eigenvalues of Σ r rᵀ, largest first, from the smaller of the two Gram matrices.

    >>> row_spectrum(jnp.array([[3.0, 4.0]])).tolist()
    [25.0]
    """
    small = rows @ rows.T if rows.shape[0] <= rows.shape[1] else rows.T @ rows
    return jnp.maximum(jnp.linalg.eigvalsh(small)[::-1], 0.0)
