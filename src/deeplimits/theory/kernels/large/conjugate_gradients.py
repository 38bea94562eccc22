r"""Ridge regression with a kernel matrix that is known by its products, with a certificate for the answer.

Conjugate gradients on (K + λ)α = y, preconditioned by a part of low rank. What it has reached is not believed: one more
product gives the true residual r = y − (K + λ)α, and K being positive semidefinite

    ‖α − α*‖ ≤ ‖r‖/λ,   ‖Kα − Kα*‖ ≤ ‖r‖,   |f(x) − f*(x)| ≤ √k(x, x) ‖r‖/√λ at every x

as e = α* − α = (K + λ)⁻¹r, |k(x)ᵀe|² ≤ k(x)ᵀ(K + λ)⁻¹k(x) · rᵀ(K + λ)⁻¹r, and the first factor is at most k(x, x).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
from jaxtyping import Float

from deeplimits.errors import NotConverged, ParameterError
from deeplimits.numerics.arguments import POSITIVE, array, number, whole

GOLDEN = 0.6180339887498949
RANK = 500


class IterativeFit(NamedTuple):
    """Coefficients, and how far they may be from the exact ones."""

    coefficients: np.ndarray
    """α, of the shape of the targets"""
    residual: np.ndarray
    """‖y − (K + λ)α‖ of each column, from a product made for it"""
    coefficient_error: np.ndarray
    """bound of ‖α − α*‖"""
    fitted_error: np.ndarray
    """bound of the error at the training points, ‖Kα − Kα*‖"""
    prediction_error: np.ndarray
    """bound of |f(x) − f*(x)|/√k(x, x) anywhere"""
    iterations: int
    products: int


def iterative_ridge(
    matrix: Any,
    targets: np.ndarray,
    ridge: float,
    *,
    tolerance: float = 1e-8,
    rank: int | None = None,
    most: int = 2000,
) -> IterativeFit:
    r"""Solve (K + λ)α = y by products with K alone, and say how far the answer may be off.

    Setting     K (n, n) symmetric positive semidefinite: an array, or a `GramFile`; targets (n,) or (n, k); λ = `ridge`
    Result      α with ‖y − (K + λ)α‖ ≤ `tolerance` ‖y‖, and the bounds above
    Validity    λ > 0; in memory stay the preconditioner, `rank` rows of K (500, or as many as there are), and n numbers
                for each target
    References  rasmussen2006 Sec 8.3

    >>> k = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> found = iterative_ridge(k, np.array([1.0, 0.0]), 0.5)
    >>> found.coefficients.round(9).tolist(), bool(found.coefficient_error < 1e-7)
    ([0.75, -0.25], True)
    """
    lam = float(number("ridge", ridge, POSITIVE, "without one take kernel_ridge"))
    tolerance = float(number("tolerance", tolerance, POSITIVE))
    whole("most", most, 1)
    if not hasattr(matrix, "rows"):
        matrix = _InMemory(np.asarray(array("matrix", matrix, ("n", "n"), why="a square matrix of kernel values")))
    n = matrix.shape[0]
    y = np.asarray(targets, dtype=float)
    if y.ndim not in (1, 2) or y.shape[0] != n or y.size == 0 or not np.all(np.isfinite(y)):
        raise ParameterError(f"targets has shape {y.shape}; it must be ({n},) or ({n}, k), of finite numbers")
    rank = min(RANK, n) if rank is None else min(whole("rank", rank, 0), n)
    columns = y.reshape(n, -1)
    before = getattr(matrix, "products", 0)
    precondition = _low_rank(matrix, rank, lam)
    alpha, iterations = _conjugate_gradients(matrix, columns, lam, precondition, tolerance, most)
    residual = np.linalg.norm(columns - lam * alpha - matrix @ alpha, axis=0)
    size = np.linalg.norm(columns, axis=0)
    if np.any(residual > 1.01 * tolerance * size) or not np.all(np.isfinite(alpha)):
        worst = float(np.max(residual / np.where(size > 0, size, 1.0)))
        raise NotConverged(
            f"the residual is {worst:.3g} of the targets after {iterations} iterations, above tolerance = "
            f"{tolerance:g}; take a larger rank, a larger ridge, or a tolerance of {2 * worst:.1g}"
        )
    shape = y.shape[1:]
    residual = residual.reshape(shape)
    products = getattr(matrix, "products", 0) - before
    return IterativeFit(
        alpha.reshape(y.shape), residual, residual / lam, residual, residual / np.sqrt(lam), iterations, products
    )


class _InMemory:
    def __init__(self, values: np.ndarray):
        self.values, self.shape, self.products = values, values.shape, 0

    def rows(self, indices: np.ndarray) -> np.ndarray:
        return self.values[indices]

    def __matmul__(self, vectors: np.ndarray) -> np.ndarray:
        self.products += 1
        return self.values @ vectors


def _conjugate_gradients(
    matrix: Any,
    y: Float[np.ndarray, "n k"],
    lam: float,
    precondition: Callable[[np.ndarray], np.ndarray],
    tolerance: float,
    most: int,
) -> tuple[np.ndarray, int]:
    """All columns side by side, so that each reading of the matrix serves all of them."""
    alpha = np.zeros_like(y)
    residual = y.copy()
    goal = tolerance * np.linalg.norm(y, axis=0)
    z = precondition(residual)
    direction, weight = z.copy(), np.sum(residual * z, axis=0)
    for iteration in range(most):
        open_ = np.linalg.norm(residual, axis=0) > goal
        if not np.any(open_):
            return alpha, iteration
        image = matrix @ direction + lam * direction
        curvature = np.sum(direction * image, axis=0)
        if np.any(curvature[open_] <= 0):
            raise NotConverged(
                "matrix is not positive semidefinite: a direction has negative curvature; check the kernel"
            )
        step = np.where(open_, weight / np.where(open_, curvature, 1.0), 0.0)
        alpha += step * direction
        residual -= step * image
        z = precondition(residual)
        new = np.sum(residual * z, axis=0)
        direction = z + np.where(open_, new / np.where(open_, weight, 1.0), 0.0) * direction
        weight = new
    return alpha, most


def _low_rank(matrix: Any, rank: int, lam: float) -> Callable[[np.ndarray], np.ndarray]:
    """v ↦ (F Fᵀ + λ)⁻¹ v with F Fᵀ = C W⁻¹ Cᵀ, C some columns of K and W its square part.

    Whatever the rounding in it, it changes how fast the answer comes and not what it is.
    """
    n = matrix.shape[0]
    if rank == 0:
        return lambda v: v / lam
    # Places that are spread evenly whatever order the inputs have, and the same ones every time.
    chosen = np.unique((n * ((np.arange(1, 4 * rank + 1) * GOLDEN) % 1.0)).astype(int))
    chosen = chosen[np.linspace(0, len(chosen) - 1, min(rank, len(chosen))).astype(int)]
    columns = np.asarray(matrix.rows(chosen)).T
    square = columns[chosen]
    shift = 1e-10 * max(float(np.trace(square)), 1e-300)
    lower = scipy.linalg.cholesky(square + shift * np.eye(len(chosen)), lower=True)
    factor = scipy.linalg.solve_triangular(lower, columns.T, lower=True, overwrite_b=False).T
    inner = scipy.linalg.cho_factor(factor.T @ factor + lam * np.eye(len(chosen)))
    # (F Fᵀ + λ)⁻¹ = (1 − F (FᵀF + λ)⁻¹ Fᵀ)/λ
    return lambda v: (v - factor @ scipy.linalg.cho_solve(inner, factor.T @ v)) / lam


def predict_by_blocks(
    kernel: Callable[..., Any],
    new: Float[np.ndarray, "t d"],
    x: Float[np.ndarray, "n d"],
    coefficients: np.ndarray,
    *,
    block: int = 2048,
) -> np.ndarray:
    """f(x') = Σ_i k(x', x_i) α_i at the rows of `new`, with a block of K(x', X) in memory at a time.

    >>> line = lambda a, b: np.asarray(a) @ np.asarray(b).T
    >>> predict_by_blocks(line, np.array([[2.0]]), np.array([[1.0], [3.0]]), np.array([0.5, 0.5]), block=1).tolist()
    [4.0]
    """
    whole("block", block, 1)
    new, x = (np.asarray(array(name, value, ("n", "d"))) for name, value in (("new", new), ("x", x)))
    alpha = np.asarray(coefficients, dtype=float)
    if alpha.shape[0] != x.shape[0]:
        raise ParameterError(
            f"coefficients has shape {alpha.shape}; it must have a row for each of {x.shape[0]} inputs"
        )
    found = np.zeros((new.shape[0], *alpha.shape[1:]))
    for i in range(0, new.shape[0], block):
        for j in range(0, x.shape[0], block):
            found[i : i + block] += np.asarray(kernel(new[i : i + block], x[j : j + block])) @ alpha[j : j + block]
    return found
