r"""Extreme eigenpairs of a symmetric matrix that is known by its products, with bounds on their errors.

Lanczos' recurrence in float64 with full orthogonalization, restarted with the best vectors when its basis is full (the
thick restart of Wu and Simon). Since every coefficient is kept, the residual of a Ritz pair (θ, Vs) is known without
another product, rounding of products in float32 included, and

    |θ − λ| ≤ |A Vs − θ Vs|                   for some eigenvalue λ, always,
    |θ − λ| ≤ |A Vs − θ Vs|²/gap              where no other eigenvalue lies within `gap`;

the gap is taken as half the distance to the nearest other Ritz value.

A basis grown from one vector has one vector from each eigenspace, so it sees one copy of an eigenvalue that occurs
twice. For matrices with symmetries let a second vector join (`copies`), or give several starts.
"""

import time
from typing import NamedTuple

import numpy as np
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from deeplimits.errors import NotConverged, ParameterError
from deeplimits.measure.curvature.basis import Basis, Ritz
from deeplimits.numerics import arguments

ENDS = ("largest", "smallest", "both", "magnitude")
BYTES = 2**31
"""What a basis may take."""


class Eigenpairs(NamedTuple):
    """Eigenvalues with their vectors and what is known of their errors."""

    values: np.ndarray
    """the eigenvalues asked for: largest first, smallest first, or in order of magnitude; 'both': descending"""
    vectors: np.ndarray
    """their eigenvectors, as columns"""
    residuals: np.ndarray
    """|Av − θv|: an eigenvalue lies within this distance, for certain"""
    error: np.ndarray
    """min(residual, residual²/gap), and the rounding of the products as far as it makes them asymmetric; in float32 the
    network itself is rounded too, by about 1e-7 of the largest eigenvalue, which no product shows"""
    products: int
    restarts: int
    seed: int
    seconds: float
    others: np.ndarray
    """the remaining Ritz values, descending, not converged"""

    @property
    def value(self) -> np.ndarray:
        """The eigenvalues."""
        return self.values

    @property
    def standard_error(self) -> None:
        """None: nothing is left to chance; `error` is a bound."""

    @property
    def residual(self) -> float:
        """The largest residual."""
        return float(self.residuals.max())


def eigenpairs(
    operator: LinearOperator | np.ndarray,
    *,
    count: int = 1,
    which: str = "largest",
    tolerance: float = 1e-7,
    start: np.ndarray | None = None,
    seed: int = 0,
    most_products: int = 1000,
    basis: int | None = None,
    copies: int = 0,
) -> Eigenpairs:
    r"""Extreme eigenpairs of a symmetric operator, each eigenvalue to `tolerance` relative to itself.

    `which` end: 'largest', 'smallest', 'both' (`count` at each end) or 'magnitude'. `start` is a vector, or several as
    rows, near the wanted ones (from an earlier call); otherwise one is drawn from `seed`. At most `basis` vectors are
    held. With `copies` > 0 a further start joins once the wanted values are found, for so many products; if it brings
    eigenvalues that could not be seen before, they are refined like the others, and another start joins.

    Eigenvalues below a thousandth of the largest wanted one are found to `tolerance` times that thousandth. What does
    not converge within `most_products` raises `NotConverged`.

    >>> found = eigenpairs(np.diag([1.0, 2.0, 3.0, 10.0, 10.5]), count=2)
    >>> found.values.round(10).tolist()
    [10.5, 10.0]
    """
    begin = time.perf_counter()
    matrix = aslinearoperator(operator)
    size = matrix.shape[0]
    arguments.choice("which", which, ENDS)
    arguments.real("tolerance", tolerance, arguments.POSITIVE)
    wanted = min(arguments.whole("count", count, 1) * (2 if which == "both" else 1), size)
    rng = np.random.default_rng(seed)
    starts = _starts(start, size, rng)
    space = Basis(matrix, _room(basis, wanted, len(starts), size), starts)
    search = _Search(space, wanted, which, tolerance, most_products, rng)
    search.grow()
    if copies:
        search.look_for_copies(copies)
    ritz = space.ritz()
    chosen = places(ritz.theta, wanted, which)
    return Eigenpairs(
        ritz.theta[chosen],
        space.vectors(ritz, chosen).T,
        ritz.residuals[chosen],
        (errors(ritz) + ritz.rounding)[chosen],
        space.products,
        search.restarts,
        seed,
        time.perf_counter() - begin,
        np.delete(ritz.theta, chosen)[::-1],
    )


class _Search:
    """Growing a basis until the wanted Ritz values are good."""

    def __init__(self, space: Basis, wanted: int, which: str, tolerance: float, most: int, rng: np.random.Generator):
        self.space, self.wanted, self.which, self.tolerance, self.most = space, wanted, which, tolerance, most
        self.rng, self.restarts = rng, 0

    def grow(self) -> None:
        while not self.good():
            if self.space.products >= self.most:
                raise NotConverged(
                    f"{self.space.products} products did not give {self.wanted} eigenvalues to {self.tolerance:g}; "
                    "allow more of them, a larger tolerance, or ask for fewer eigenvalues"
                )
            self.step()

    def step(self) -> None:
        space = self.space
        if space.full:
            self._restart()
        # The recurrence ends in an invariant subspace: go on from a new vector.
        while space.waiting == 0:
            space.join(self.rng.standard_normal(space.operator.shape[0]))
        space.step()

    def good(self) -> bool:
        if self.space.complete:
            return True
        if self.space.size < self.wanted:
            return False
        ritz = self.space.ritz()
        chosen = places(ritz.theta, self.wanted, self.which)
        values = np.abs(ritz.theta[chosen])
        return bool(np.all(errors(ritz)[chosen] <= self.tolerance * np.maximum(values, 1e-3 * values.max())))

    def look_for_copies(self, products: int) -> None:
        """Let one more start join after another, until one brings nothing new."""
        space = self.space
        while not space.complete:
            before = self.values()
            if space.size + products > space.most:
                self._restart()
            if not space.join(self.rng.standard_normal(space.operator.shape[0])):
                return
            for _ in range(products):
                if space.complete or space.full:
                    break
                self.step()
            self.most = space.products + self.most
            self.grow()
            if np.abs(self.values() - before).max() <= 10 * self.tolerance * np.abs(before).max():
                return

    def values(self) -> np.ndarray:
        theta = self.space.ritz().theta
        return theta[places(theta, self.wanted, self.which)]

    def _restart(self) -> None:
        kept = min(self.wanted + max(3, self.wanted // 2), self.space.size - 1)
        self.space.restart(places(self.space.ritz().theta, kept, self.which))
        self.restarts += 1


def _room(basis: int | None, wanted: int, starts: int, size: int) -> int:
    fewest = wanted + starts + 3
    usual = max(80, 4 * wanted + 40) if basis is None else basis
    return min(max(fewest, min(usual, BYTES // (8 * size))), size)


def _starts(start: np.ndarray | None, size: int, rng: np.random.Generator) -> np.ndarray:
    if start is None:
        return rng.standard_normal((1, size))
    found = np.atleast_2d(np.asarray(start, float))
    if found.shape[1] != size or not np.all(np.isfinite(found)):
        raise ParameterError(f"start has shape {found.shape}; it must have finite rows of {size} entries")
    # A little of everything, so that a wanted vector to which every start is orthogonal is found all the same.
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    rough = rng.standard_normal(found.shape) / np.sqrt(size)
    return found / np.where(lengths > 0, lengths, 1.0) + 1e-3 * rough


def places(theta: np.ndarray, wanted: int, which: str) -> np.ndarray:
    """Places of the wanted ones among ascending values, in the order in which they are reported."""
    order = np.arange(len(theta))
    wanted = min(wanted, len(theta))
    if which == "largest":
        return order[::-1][:wanted]
    if which == "smallest":
        return order[:wanted]
    if which == "magnitude":
        return np.argsort(-np.abs(theta), kind="stable")[:wanted]
    return np.concatenate([order[::-1][: wanted - wanted // 2], order[: wanted // 2][::-1]])


def errors(ritz: Ritz) -> np.ndarray:
    """min(residual, residual²/gap) of every Ritz value."""
    theta, r = ritz.theta, ritz.residuals
    if len(theta) == 1:
        return r
    steps = np.diff(theta)
    gap = np.minimum(np.append(steps, np.inf), np.insert(steps, 0, np.inf)) / 2
    return np.where(gap > r, r**2 / np.where(gap > r, gap, 1.0), r)
