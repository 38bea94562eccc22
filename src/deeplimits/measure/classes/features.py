r"""Second moments of features by class, and neural collapse.

Features h_i with class means μ_c, their frequencies π_c and the global mean μ_G = Σ_c π_c μ_c:

    Σ_i h_i h_iᵀ/N = μ_G μ_Gᵀ + Σ_c π_c (μ_c − μ_G)(μ_c − μ_G)ᵀ + (1/N) Σ_i (h_i − μ_{c(i)})(h_i − μ_{c(i)})ᵀ
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from deeplimits.numerics.shapes import Scalar

RANK = 1e-10
"""Directions of between-class covariance below this share of its largest are not inverted."""


class _Three(NamedTuple):
    mean: Array
    """μ_G μ_Gᵀ, which knows no class"""
    between: Array
    within: Array


class FeatureParts(_Three):
    """The three parts of the second moment of features, as matrices."""

    @property
    def whole(self) -> Float[Array, "d d"]:
        """Their sum."""
        return self.mean + self.between + self.within

    @property
    def classes(self) -> Float[Array, "d d"]:
        """Σ_c π_c μ_c μ_cᵀ, the first two together."""
        return self.mean + self.between

    def traces(self) -> "FeatureTraces":
        """The trace of each part."""
        return FeatureTraces(*(jnp.trace(part) for part in self))


class FeatureTraces(_Three):
    """Traces of the parts of the second moment of features, numbers."""


class Moments(NamedTuple):
    """Counts, means and centred second moments by class; those of two batches can be `merged`."""

    counts: Float[Array, " classes"]
    means: Float[Array, "classes d"]
    scatter: Float[Array, "d d"]
    """Σ_i (h_i − μ_{c(i)})(h_i − μ_{c(i)})ᵀ"""

    def merged(self, other: "Moments") -> "Moments":
        """Of both sets of samples together, without cancellation."""
        counts = self.counts + other.counts
        safe = jnp.where(counts > 0, counts, 1.0)
        gap = other.means - self.means
        means = self.means + (other.counts / safe)[:, None] * gap
        added = (self.counts * other.counts / safe)[:, None] * gap
        return Moments(counts, means, self.scatter + other.scatter + added.T @ gap)


class Collapse(NamedTuple):
    """How far features and a linear classifier are from a simplex frame, where all of these vanish."""

    nc1: Scalar
    """tr(Σ_W Σ_B⁺)/C"""
    within_over_between: Scalar
    """tr Σ_W / tr Σ_B"""
    nc2_norms: Scalar
    """standard deviation over mean of |μ_c − μ_G|"""
    nc2_angles: Scalar
    """mean over pairs of |cos(μ_c − μ_G, μ_c' − μ_G) + 1/(C − 1)|"""
    nc2_weight_norms: Scalar | None = None
    """standard deviation over mean of |w_c|"""
    nc2_weight_angles: Scalar | None = None
    """mean over pairs of |cos(w_c, w_c') + 1/(C − 1)|"""
    nc3: Scalar | None = None
    """|W/|W|_F − M/|M|_F|_F with the centred class means M"""
    nc4: Scalar | None = None
    """share of samples at which argmax of the outputs is not the class with the nearest mean"""
    seconds: float | None = None
    """how long it took, where a network was measured"""
    products = 0
    """none are made: features are all that is looked at"""
    seed = None
    """nothing is drawn"""

    @property
    def value(self) -> tuple[Array | None, ...]:
        """NC1 to NC4: within over between, norms and angles of the means, distance of the classifier, mismatch."""
        return self.nc1, self.nc2_norms, self.nc2_angles, self.nc3, self.nc4

    @property
    def standard_error(self) -> None:
        """None: the measures are exact on the features they are given."""

    @property
    def residual(self) -> None:
        """None: no equation is solved."""


def moments(features: Float[Array, "n d"], labels: Int[Array, " n"], classes: int) -> Moments:
    """Counts, class means and scatter within classes.

    >>> moments(jnp.array([[1.0], [3.0], [5.0]]), jnp.array([0, 0, 1]), 2).scatter.tolist()
    [[2.0]]
    """
    member = (labels[:, None] == jnp.arange(classes)[None, :]).astype(features.dtype)
    counts = jnp.sum(member, axis=0)
    # A shift by any sample, so that a large common mean does not cancel digits.
    origin = features[0]
    shifted = features - origin[None, :]
    means = member.T @ shifted / jnp.where(counts > 0, counts, 1.0)[:, None]
    centred = shifted - means[labels]
    return Moments(counts, means + origin[None, :], centred.T @ centred)


def feature_parts(features: Float[Array, "n d"], labels: Int[Array, " n"], classes: int) -> FeatureParts:
    """The second moment of features as global mean, between classes and within classes.

    >>> x = jnp.array([[1.0, 0.0], [1.0, 0.2], [0.0, 1.0], [0.1, 1.3], [-1.0, -1.0], [-1.2, -1.0]])
    >>> found = feature_parts(x, jnp.array([0, 0, 1, 1, 2, 2]), 3).traces()
    >>> [round(float(trace), 10) for trace in found]
    [0.0072222222, 1.5077777778, 0.015]
    """
    return parts_of(moments(features, labels, classes))


def parts_of(found: Moments) -> FeatureParts:
    """The parts from moments by class, with the frequencies of the classes as their weights."""
    total = jnp.sum(found.counts)
    share = found.counts / total
    middle = share @ found.means
    centred = found.means - middle[None, :]
    return FeatureParts(jnp.outer(middle, middle), (share[:, None] * centred).T @ centred, found.scatter / total)


def neural_collapse(
    features: Float[Array, "n d"],
    labels: Int[Array, " n"],
    classes: int,
    *,
    weights: Float[Array, "classes d"] | None = None,
    outputs: Float[Array, "n classes"] | None = None,
) -> Collapse:
    r"""NC1 to NC4 of features of the last layer before a linear classifier with rows `weights`.

    Setting     μ_c class means, μ_G their plain mean, Σ_B = Avg_c (μ_c − μ_G)(μ_c − μ_G)ᵀ, Σ_W = Avg_c of the
                covariance within class c; every class counts the same, whatever its size
    Result      `Collapse`; nc2 of the weights and nc3 need `weights`, nc4 needs `outputs`
    Validity    at least two classes, every class with a sample, Σ_B ≠ 0; `measure_collapse` checks it for a `Model`
    References  papyan2020b

    >>> x = jnp.array([[1.0, 0.0], [1.0, 0.2], [0.0, 1.0], [0.1, 1.3], [-1.0, -1.0], [-1.2, -1.0]])
    >>> found = neural_collapse(x, jnp.array([0, 0, 1, 1, 2, 2]), 3)
    >>> round(float(found.nc1), 13), round(float(found.within_over_between), 13)
    (0.007749112426, 0.0099484156227)
    """
    found = moments(features, labels, classes)
    member = (labels[:, None] == jnp.arange(classes)[None, :]).astype(features.dtype)
    centred = features - found.means[labels]
    each = (member / found.counts[None, :] / classes).sum(axis=1)
    return collapse_of(
        found.means, (each[:, None] * centred).T @ centred, weights, mismatch=_mismatch(features, found, outputs)
    )


def collapse_of(
    means: Float[Array, "classes d"],
    within: Float[Array, "d d"],
    weights: Float[Array, "classes d"] | None = None,
    *,
    mismatch: Scalar | None = None,
) -> Collapse:
    """The same from class means and the covariance within classes, averaged over classes."""
    count = means.shape[0]
    centred = means - jnp.mean(means, axis=0)[None, :]
    geometry = simplex_distance(centred)
    # Σ_B = MᵀM/C: its pseudo-inverse from the singular vectors of the C centred means
    _, s, v = jnp.linalg.svd(centred / jnp.sqrt(1.0 * count), full_matrices=False)
    kept = s > jnp.sqrt(RANK) * s[0]
    along = jnp.einsum("ka,ab,kb->k", v, within, v)
    nc1 = jnp.sum(jnp.where(kept, along / jnp.where(kept, s, 1.0) ** 2, 0.0)) / count
    trace = jnp.trace(within) / jnp.sum(s**2)
    if weights is None:
        return Collapse(nc1, trace, geometry.norms, geometry.angles, nc4=mismatch)
    of_weights = simplex_distance(weights)
    gap = weights / jnp.linalg.norm(weights) - centred / jnp.linalg.norm(centred)
    return Collapse(
        nc1, trace, geometry.norms, geometry.angles, of_weights.norms, of_weights.angles, jnp.linalg.norm(gap), mismatch
    )


class Geometry(NamedTuple):
    """Distance of C vectors from a simplex frame."""

    norms: Scalar
    angles: Scalar


def simplex_distance(vectors: Float[Array, "classes d"]) -> Geometry:
    """Standard deviation over mean of the norms, and mean of |cos + 1/(C−1)| over pairs: zero for a simplex frame.

    >>> found = simplex_distance(jnp.eye(3) - 1 / 3)
    >>> abs(float(found.norms)) < 1e-15, abs(float(found.angles)) < 1e-15
    (True, True)
    """
    count = vectors.shape[0]
    norms = jnp.linalg.norm(vectors, axis=1)
    unit = vectors / norms[:, None]
    gaps = jnp.abs(unit @ unit.T + 1 / (count - 1)) * (1 - jnp.eye(count))
    return Geometry(jnp.std(norms) / jnp.mean(norms), jnp.sum(gaps) / (count * (count - 1)))


def nearest_mean(features: Float[Array, "n d"], means: Float[Array, "classes d"]) -> Int[Array, " n"]:
    """The class whose mean is nearest to each sample."""
    middle = jnp.mean(means, axis=0)
    x, m = features - middle[None, :], means - middle[None, :]
    return jnp.argmin(jnp.sum(m**2, axis=1)[None, :] - 2 * x @ m.T, axis=1)


def _mismatch(features: Array, found: Moments, outputs: Array | None) -> Array | None:
    if outputs is None:
        return None
    chosen = jnp.argmax(outputs, axis=1)
    return jnp.mean(jnp.asarray(chosen != nearest_mean(features, found.means), features.dtype))
