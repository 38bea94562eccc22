"""Trace and Frobenius norm of a symmetric matrix from its products with random vectors, with standard errors."""

import time

import numpy as np
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from deeplimits.errors import ParameterError
from deeplimits.measure.estimates import Estimate
from deeplimits.numerics import arguments

METHODS = ("hutchinson", "hutch++")


def trace(
    operator: LinearOperator | np.ndarray, *, products: int = 30, method: str = "hutch++", seed: int = 0
) -> Estimate:
    r"""tr A from about `products` products.

    'hutchinson' averages zᵀAz over random signs z, with variance 2(|A|_F² − Σ A_ii²). 'hutch++' spends a third of the
    products on a sketch Q of the range, a third on tr QᵀAQ, which is exact, and the rest on Hutchinson outside Q: far
    better where a few eigenvalues carry the trace. Where Q spans everything the answer is exact, with error 0.

    >>> found = trace(np.diag(np.arange(1.0, 101.0)), products=60)
    >>> abs(found.value - 5050) < 4 * found.error
    True
    """
    begin = time.perf_counter()
    matrix = aslinearoperator(operator)
    size = matrix.shape[0]
    arguments.choice("method", method, METHODS)
    count = arguments.whole("products", products, 4 if method == "hutchinson" else 9)
    rng = np.random.default_rng(seed)
    exact, used, q = 0.0, 0, np.zeros((size, 0))
    if method == "hutch++":
        third = min(count // 3, size)
        q = np.linalg.qr(np.stack([matrix @ z for z in _signs(rng, third, size)], axis=1))[0]
        exact = float(np.sum(q * np.stack([matrix @ column for column in q.T], axis=1)))
        used = 2 * third
    if q.shape[1] == size:
        return Estimate(exact, 0.0, 0, products=used, seed=seed, seconds=time.perf_counter() - begin)
    draws = []
    for z in _signs(rng, count - used, size):
        rest = z - q @ (q.T @ z)
        draws.append(float(rest @ (matrix @ rest)))
    value = exact + float(np.mean(draws))
    return Estimate(
        value, _error(draws), len(draws), products=used + len(draws), seed=seed, seconds=time.perf_counter() - begin
    )


def frobenius(operator: LinearOperator | np.ndarray, *, products: int = 30, seed: int = 0) -> Estimate:
    r"""|A|_F = √(Σ λ²) from |Az|² averaged over random signs z; the error by the delta method.

    >>> found = frobenius(np.eye(50), products=10)
    >>> round(float(found.value), 12), float(found.error) < 1e-12
    (7.071067811865, True)
    """
    begin = time.perf_counter()
    matrix = aslinearoperator(operator)
    count = arguments.whole("products", products, 4)
    rng = np.random.default_rng(seed)
    draws = [float(np.sum(np.asarray(matrix @ z) ** 2)) for z in _signs(rng, count, matrix.shape[0])]
    value = float(np.sqrt(np.mean(draws)))
    error = _error(draws) / (2 * value) if value > 0 else 0.0
    return Estimate(value, error, count, products=count, seed=seed, seconds=time.perf_counter() - begin)


def _signs(rng: np.random.Generator, count: int, size: int) -> np.ndarray:
    return rng.choice((-1.0, 1.0), size=(count, size))


def _error(draws: list[float]) -> float:
    if not np.all(np.isfinite(draws)):
        raise ParameterError("the products are NaN or infinite")
    return float(np.std(draws, ddof=1) / np.sqrt(len(draws)))
