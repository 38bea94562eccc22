"""Mixtures of Gaussian classes in high dimension, as a user gives them, and the numbers that kernels see of them."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int

from deeplimits.errors import ParameterError
from deeplimits.numerics import arguments
from deeplimits.numerics.arguments import known
from deeplimits.numerics.shapes import Scalar

ROUNDING = 1e-9
"""How far below zero, relative to the largest, rounding may put an eigenvalue of a covariance."""


class GaussianMixture(NamedTuple):
    """Classes N(μ_a, C_a) in R^p, of entries of order one."""

    means: Float[Array, "classes p"]
    covariances: Float[Array, "classes p p"]
    proportions: Float[Array, " classes"]

    @property
    def variance(self) -> Scalar:
        """τ₀² = tr C°/p, C° = Σ π_a C_a: the squared length of a point, per dimension."""
        traces = jnp.einsum("aii->a", self.covariances)
        return self.proportions @ traces / self.means.shape[1]

    @property
    def excess(self) -> Float[Array, " classes"]:
        """tr(C_a − C°)/p; of order 1/√p where classes are hard to tell apart."""
        return jnp.einsum("aii->a", self.covariances) / self.means.shape[1] - self.variance

    @property
    def overlap(self) -> Float[Array, "classes classes"]:
        """T_ab = tr(C_a C_b)/p."""
        return jnp.einsum("aij,bji->ab", self.covariances, self.covariances) / self.means.shape[1]


def gaussian_mixture(
    means: ArrayLike, covariances: ArrayLike, *, proportions: ArrayLike | None = None
) -> GaussianMixture:
    """A mixture of Gaussian classes, checked: covariances positive semidefinite, proportions that sum to one.

    Setting     `means` one row a class; `covariances` one matrix a class, one for all of them, or variances, a number
                or one a class, of isotropic classes; equal proportions unless given
    Result      the mixture, with τ₀² = tr C°/p, tr(C_a − C°)/p and T_ab = tr(C_aC_b)/p

    >>> import numpy as np
    >>> two = gaussian_mixture([[1.0, 0.0], [-1.0, 0.0]], np.eye(2))
    >>> float(two.variance), two.overlap.tolist()
    (1.0, [[1.0, 1.0], [1.0, 1.0]])
    >>> gaussian_mixture(np.zeros((1, 2)), [[1.0, 2.0], [2.0, 1.0]])
    Traceback (most recent call last):
    ...
    deeplimits.errors.ParameterError: covariances is not positive semidefinite: class 0 has the eigenvalue -1; check how it was computed
    """  # noqa: E501
    mu = arguments.array("means", means, ("classes", "p"), why="the mean of a class in each row")
    k, p = mu.shape
    given = arguments.array(
        "covariances",
        covariances,
        (k, p, p),
        (p, p),
        (k,),
        (),
        why="a matrix for each class, one for all, or variances",
    )
    # Where there are as many classes as dimensions a square matrix is one covariance.
    if given.ndim < 2:
        checked = arguments.argument("covariances", covariances, arguments.NOT_NEGATIVE, "variances of classes")
        c = jnp.broadcast_to(checked, (k,))[:, None, None] * jnp.eye(p)[None]
    else:
        c = jnp.broadcast_to(given, (k, p, p))
        if known(c):
            _require_covariances(np.asarray(c[:1] if given.ndim == 2 else c))
    shares = jnp.full((k,), 1 / k) if proportions is None else proportions
    return GaussianMixture(mu, c, arguments.probabilities("proportions", shares, k))


def _require_covariances(matrices: np.ndarray) -> None:
    for place, matrix in enumerate(matrices):
        scale = float(np.max(np.abs(matrix)))
        asymmetry = float(np.max(np.abs(matrix - matrix.T)))
        if asymmetry > ROUNDING * scale:
            raise ParameterError(
                f"covariances is not symmetric: entries of class {place} differ by {asymmetry:.3g} from their mirror "
                "images; a covariance is symmetric"
            )
        smallest = float(np.linalg.eigvalsh(matrix)[0])
        if smallest < -ROUNDING * scale:
            raise ParameterError(
                f"covariances is not positive semidefinite: class {place} has the eigenvalue {smallest:.6g}; check how "
                "it was computed"
            )


class KernelData(NamedTuple):
    """What a kernel in high dimension sees of labelled points."""

    inputs: Float[Array, "n p"]
    """x/√p."""
    spread: Float[Array, " n"]
    """s_i = |x_i − μ_a|²/p − τ₀², of order 1/√p."""
    labels: Int[Array, " n"]
    overlap: Float[Array, "classes classes"]
    """T_ab = tr(C_aC_b)/p."""
    variance: Scalar
    """τ₀² = tr C°/p."""

    @property
    def members(self) -> Float[Array, "n classes"]:
        """J: 1 where a point is of a class."""
        classes = jnp.arange(self.overlap.shape[0])
        return (self.labels[:, None] == classes[None, :]).astype(float)


def kernel_data(x: ArrayLike, labels: ArrayLike, *, mixture: GaussianMixture | None = None) -> KernelData:
    """The parts of labelled points that kernels in high dimension depend on; estimated where no mixture is given.

    Setting     rows x of entries of order one, x_i ~ N(μ_a, C_a); `labels` a = 0, 1, …, below the number of classes
    Result      x/√p, s_i = |x_i − μ_a|²/p − τ₀², T_ab = tr(C_aC_b)/p, τ₀² = tr C°/p
                without a mixture μ_a is the class mean, lengths are scaled by n_a/(n_a − 1), and T_ab is the mean of
                ⟨x_i − μ_a, x_j − μ_b⟩²/p over pairs of different points, which needs no covariance matrix
    Validity    at least two points in each class without a mixture; centre your own data (`standardized` does)
    References  ali2022

    >>> import numpy as np
    >>> found = kernel_data(np.array([[1.0, 1.0], [-1.0, 1.0]]), [0, 0], mixture=gaussian_mixture(np.zeros((1, 2)), 0.5))
    >>> found.spread.tolist(), float(found.variance)
    ([0.5, 0.5], 0.5)
    """  # noqa: E501
    points = arguments.array("x", x, ("n", "p"), why="one point in each row")
    n, p = points.shape
    marks = _labels(labels, n, None if mixture is None else mixture.means.shape[0])
    if mixture is not None:
        if mixture.means.shape[1] != p:
            raise ParameterError(
                f"x has {p} columns, and the mixture is of dimension {mixture.means.shape[1]}; they must be equal"
            )
        inner = points - mixture.means[marks]
        spread = jnp.sum(inner**2, axis=1) / p - mixture.variance
        return KernelData(points / p**0.5, spread, marks, mixture.overlap, mixture.variance)
    if not known(marks, points):
        raise ParameterError("labels and x must be known where no mixture is given; give the mixture inside jit")
    return _estimated(points, marks)


def _estimated(points: Array, marks: Array) -> KernelData:
    p = points.shape[1]
    x, where = np.asarray(points), np.asarray(marks)
    counts = np.bincount(where)
    if np.any(counts < 2):
        raise ParameterError(
            f"labels: class {int(np.argmin(counts))} has {int(np.min(counts))} points; a class needs two, or a mixture"
        )
    members = np.eye(len(counts))[where]
    inner = x - (members.T @ x / counts[:, None])[where]
    # A class mean takes one n_a-th of the variance with it.
    kept = 1 - 1 / counts
    lengths = np.sum(inner**2, axis=1) / p / kept[where]
    variance = float(np.mean(lengths))
    squares = _square_products(inner, where, len(counts)) / p
    squares -= np.diag(members.T @ (p * (kept[where] * lengths) ** 2))
    overlap = squares / (np.outer(counts, counts) - np.diag(counts))
    # E⟨z_i, z_j⟩² = tr C_aC_b between classes; inside, with H = I − 11'/n, tr C²(H_ii² + H_ij²) + (tr C)²H_ij²
    own = np.diag(overlap) - p * (members.T @ lengths / counts / counts) ** 2
    between = overlap / np.outer(kept, kept)
    between[np.diag_indices(len(counts))] = np.maximum(own / (kept**2 + 1 / counts**2), 0.0)
    return KernelData(
        points / p**0.5, jnp.asarray(lengths - variance), marks, jnp.asarray(between), jnp.asarray(variance)
    )


def _square_products(inner: np.ndarray, where: np.ndarray, classes: int) -> np.ndarray:
    """Σ⟨z_i, z_j⟩² over i of class a and j of class b, by products of points or of coordinates, whichever are fewer."""
    n, p = inner.shape
    if classes * p**2 < n**2:
        # Σ⟨z_i, z_j⟩² = tr S_aS_b, S_a = Σ z_iz_i'
        scatter = np.stack([inner[where == a].T @ inner[where == a] for a in range(classes)])
        return np.einsum("aij,bij->ab", scatter, scatter)
    members = np.eye(classes)[where]
    return members.T @ (inner @ inner.T) ** 2 @ members


def _labels(labels: ArrayLike, count: int, classes: int | None) -> Int[Array, " n"]:
    found = arguments.array(
        "labels", labels, (count,), allowed=arguments.COUNT, why="the class of each row of x, 0, 1, …"
    )
    if known(found):
        values = np.asarray(found)
        if classes is not None and np.max(values) >= classes:
            raise ParameterError(f"labels go up to {int(np.max(values))}, and there are {classes} classes, from 0 on")
        if classes is None and len(np.unique(values)) <= np.max(values):
            raise ParameterError("labels leave classes out: without a mixture every class from 0 on needs points")
    return found.astype(int)


def standardized(x: ArrayLike) -> Float[Array, "n p"]:
    """Data as kernels in high dimension want them: the mean taken off, the mean of |x_i|²/p scaled to one.

    A common mean is a direction of length √n, which no statement of this room covers. Constant columns are left out.

    >>> import numpy as np
    >>> standardized(np.array([[3.0, 1.0, 7.0], [1.0, 1.0, 5.0]])).tolist()
    [[1.0, 1.0], [-1.0, -1.0]]
    """
    points = np.asarray(arguments.array("x", x, ("n", "p"), why="one point in each row"))
    kept = points[:, np.ptp(points, axis=0) > 0]
    if not kept.shape[1]:
        raise ParameterError("x has only constant columns; nothing is left of it when its mean is taken off")
    # Scaled by the largest entry first, so that no square overflows or vanishes.
    centred = kept - np.mean(kept, axis=0)
    centred = centred / np.max(np.abs(centred))
    return jnp.asarray(centred / np.sqrt(np.mean(centred**2)))
