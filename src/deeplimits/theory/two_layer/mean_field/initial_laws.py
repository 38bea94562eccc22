"""A measure on neurons as weighted points: quantiles, or a Gaussian quadrature of the initial law."""

import numpy as np
from numpy.typing import NDArray
from scipy import special

from deeplimits.errors import ParameterError


def normal_quantiles(count: int) -> NDArray[np.float64]:
    """The quantiles Φ⁻¹((i − ½)/n) of the standard normal law, all of weight 1/n: error O(1/n).

    >>> normal_quantiles(3).round(4).tolist()
    [-0.9674, 0.0, 0.9674]
    """
    if count < 1:
        raise ParameterError(f"count = {count} is not allowed; at least one particle is needed")
    return special.ndtri((np.arange(count) + 0.5) / count)


def gauss_hermite(degree: int, dimensions: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Points (n, dimensions) and weights of the tensor Gauss-Hermite rule of N(0, I): spectral for smooth flows.

    >>> points, weights = gauss_hermite(3, 2)
    >>> round(float(weights @ points[:, 0] ** 4), 12)
    3.0
    """
    if degree < 1 or dimensions < 1:
        raise ParameterError(f"degree = {degree}, dimensions = {dimensions} is not allowed; both must be at least 1")
    nodes, weights = np.polynomial.hermite_e.hermegauss(degree)
    weights = weights / weights.sum()
    points = np.stack(np.meshgrid(*[nodes] * dimensions, indexing="ij"), axis=-1).reshape(-1, dimensions)
    products = (
        np.stack(np.meshgrid(*[weights] * dimensions, indexing="ij"), axis=-1).reshape(-1, dimensions).prod(axis=1)
    )
    return points, products
