r"""The density of all eigenvalues, by Lanczos quadrature around outliers that are taken out first.

For a random unit vector z the spectral measure Σ_j (u_j·z)² δ_{λ_j} has in mean the weight 1/P at every eigenvalue, and
m Lanczos steps from z give its Gauss quadrature. An outlier has in one draw a random weight of relative size √2, which
is most of the error; so outliers are found exactly, deflated, and given their weight 1/P, and the probes see the rest.
Full orthogonalization keeps converged eigenvalues from appearing again ('ghosts').
"""

import time
from typing import NamedTuple

import numpy as np
import scipy.linalg
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from deeplimits.measure.curvature.lanczos import Eigenpairs, eigenpairs
from deeplimits.measure.estimates import Estimate
from deeplimits.numerics import arguments


class SpectralDensity(NamedTuple):
    """The law of the eigenvalues: outliers with their exact weights, and the quadrature of each probe for the rest."""

    outliers: np.ndarray
    """eigenvalues found one by one, descending"""
    nodes: np.ndarray
    """(probes, steps) points of the quadratures of the other eigenvalues"""
    weights: np.ndarray
    """(probes, steps), each row summing to the share of the other eigenvalues"""
    size: int
    """how many eigenvalues there are"""
    residual: float
    """largest residual of an outlier"""
    products: int
    seed: int
    seconds: float

    @property
    def value(self) -> "Law":
        """The law itself: all points with their weights."""
        return self.atoms()

    @property
    def standard_error(self) -> float:
        """The largest standard error of `cdf` at any node."""
        return float(self.cdf(self.nodes.ravel()).error.max(initial=0.0))

    def cdf(self, x: np.ndarray) -> Estimate:
        """The share of eigenvalues up to x, with its standard error over probes; nodes count half at themselves."""
        x = np.asarray(x, float)
        sharp = np.searchsorted(np.sort(self.outliers), x, side="right") / self.size
        below = (self.nodes[:, :, None] < x.ravel()) + 0.5 * (self.nodes[:, :, None] == x.ravel())
        return self._over_probes((self.weights[:, :, None] * below).sum(axis=1).reshape(-1, *x.shape), sharp)

    def density(self, x: np.ndarray, width: float | None = None) -> Estimate:
        """The density smoothed by a Gaussian of standard deviation `width`, with its standard error over probes.

        Without `width`, a hundredth of the range of the bulk.
        """
        x = np.asarray(x, float)
        if width is None:
            width = max(float(np.ptp(self.nodes)) / 100, 1e-12)
        arguments.real("width", width, arguments.POSITIVE)

        def bumps(centres, masses):
            z = (x.ravel() - centres[..., None]) / width
            return (masses[..., None] * np.exp(-(z**2) / 2)).sum(axis=-2) / (width * np.sqrt(2 * np.pi))

        sharp = bumps(self.outliers, np.full(len(self.outliers), 1 / self.size)).reshape(x.shape)
        return self._over_probes(bumps(self.nodes, self.weights).reshape(-1, *x.shape), sharp)

    def moment(self, power: int) -> Estimate:
        """The mean of λ^power over all eigenvalues."""
        sharp = (self.outliers**power).sum() / self.size
        return self._over_probes((self.weights * self.nodes**power).sum(axis=1), sharp)

    def atoms(self) -> "Law":
        """All points with their weights, averaged over probes."""
        values = np.concatenate([self.outliers, self.nodes.ravel()])
        weights = np.concatenate(
            [np.full(len(self.outliers), 1 / self.size), (self.weights / len(self.weights)).ravel()]
        )
        order = np.argsort(values)
        return Law(values[order], weights[order])

    def _over_probes(self, each: np.ndarray, sharp: np.ndarray) -> Estimate:
        error = each.std(axis=0, ddof=1) / np.sqrt(len(each))
        return Estimate(
            each.mean(axis=0) + sharp, error, len(each), None, self.residual, self.products, self.seed, self.seconds
        )


class Law(NamedTuple):
    """Points and weights that sum to one."""

    values: np.ndarray
    weights: np.ndarray

    def distance(self, eigenvalues: np.ndarray) -> float:
        """The Wasserstein-1 distance to the law of given eigenvalues."""
        exact = np.sort(np.asarray(eigenvalues, float))
        points = np.sort(np.concatenate([self.values, exact]))
        ours = np.insert(np.cumsum(self.weights), 0, 0.0)[np.searchsorted(self.values, points[:-1], side="right")]
        theirs = np.searchsorted(exact, points[:-1], side="right") / len(exact)
        return float(np.sum(np.abs(ours - theirs) * np.diff(points)))


def spectral_density(
    operator: LinearOperator | np.ndarray,
    *,
    outliers: int | Eigenpairs = 20,
    probes: int = 10,
    steps: int = 80,
    tolerance: float = 1e-6,
    seed: int = 0,
) -> SpectralDensity:
    """The density of the eigenvalues, from `probes` times `steps` products and those that find the outliers.

    `outliers` largest in magnitude are found and deflated, or those given (as by `eigenpairs`). The error band of
    `cdf` and `density` comes from the spread over probes.

    >>> found = spectral_density(np.diag(np.r_[np.linspace(0, 1, 200), 5.0]), outliers=1, probes=4, steps=20)
    >>> found.outliers.round(6).tolist()
    [5.0]
    >>> round(float(found.cdf(2.0).value), 12)  # 200 of 201
    0.995024875622
    """
    begin = time.perf_counter()
    matrix = aslinearoperator(operator)
    size = matrix.shape[0]
    count, length = arguments.whole("probes", probes, 2), arguments.whole("steps", steps, 2)
    found, products = _outliers(matrix, outliers, tolerance, seed)
    if found is None or found.vectors.shape[1] == 0:
        values, basis, residual = np.zeros(0), np.zeros((size, 0)), 0.0
    else:
        values, residual = np.sort(found.values)[::-1], float(found.residuals.max())
        basis = np.linalg.qr(found.vectors)[0]
    rest = size - len(values)
    rng = np.random.default_rng(seed + 1)
    length = min(length, max(rest, 1))
    nodes, weights = np.zeros((count, length)), np.zeros((count, length))
    for probe in range(count if rest else 0):
        start = rng.standard_normal(size)
        rule = quadrature(matrix, start - basis @ (basis.T @ start), length, basis)
        nodes[probe], weights[probe] = rule.nodes, rule.weights * rest / size
        products += rule.products
    return SpectralDensity(values, nodes, weights, size, residual, products, seed, time.perf_counter() - begin)


class _Found(NamedTuple):
    pairs: Eigenpairs | None
    products: int


def _outliers(matrix: LinearOperator, outliers: int | Eigenpairs, tolerance: float, seed: int) -> _Found:
    if isinstance(outliers, Eigenpairs):
        return _Found(outliers, 0)
    if arguments.whole("outliers", outliers) == 0:
        return _Found(None, 0)
    pairs = eigenpairs(matrix, count=outliers, which="magnitude", tolerance=tolerance, seed=seed)
    return _Found(pairs, pairs.products)


class Quadrature(NamedTuple):
    """A Gauss rule: nodes, weights that sum to one, and how many products it took."""

    nodes: np.ndarray
    weights: np.ndarray
    products: int


def quadrature(matrix: LinearOperator, start: np.ndarray, steps: int, without: np.ndarray) -> Quadrature:
    """The Gauss quadrature of the spectral measure of `start`, in the complement of the columns of `without`."""
    v = np.zeros((steps, len(start)))
    alpha, beta = np.zeros(steps), np.zeros(steps)
    v[0], used = start / np.linalg.norm(start), 0
    for step in range(steps):
        w = np.asarray(matrix @ v[step], float)
        used = step + 1
        alpha[step] = w @ v[step]
        for _ in range(2):
            w = w - without @ (without.T @ w)
            w = w - v[:used].T @ (v[:used] @ w)
        beta[step] = np.linalg.norm(w)
        if step + 1 == steps or beta[step] <= 1e-12 * np.abs(alpha[:used]).max(initial=1e-300):
            break
        v[step + 1] = w / beta[step]
    theta, s = scipy.linalg.eigh_tridiagonal(alpha[:used], beta[: used - 1])
    # A recurrence that ended early has found its whole measure; points without weight fill the row.
    nodes, weights = np.full(steps, theta[0]), np.zeros(steps)
    nodes[:used], weights[:used] = theta, s[0] ** 2
    return Quadrature(nodes, weights, used)
