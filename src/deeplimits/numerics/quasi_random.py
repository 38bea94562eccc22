"""Points that fill a space evenly: a quadrature rule for many dimensions."""

import functools

import numpy as np
from jaxtyping import Float
from scipy.special import ndtri


@functools.cache
def gaussian_points(dimension: int, count: int) -> Float[np.ndarray, "points dimension"]:
    """`count` scrambled Sobol points of R^dimension turned Gaussian, and their reflections: the same at every call.

    The mean of a function over them is its expectation under N(0, I), with an error that falls nearly like 1/count; odd
    functions have mean zero exactly. A Kronecker sequence would spare an import, and was ten times less accurate for
    functions with a kink.

    >>> points = gaussian_points(3, 1024)
    >>> points.shape, abs(float(np.mean(points[:, 0] ** 2)) - 1) < 1e-2
    ((2048, 3), True)
    """
    from scipy.stats import qmc  # here, because importing scipy.stats takes half a second

    sobol = qmc.Sobol(dimension, seed=20).random(count)  # pyright: ignore[reportCallIssue]
    gaussian = ndtri(np.clip(sobol, 1e-12, 1 - 1e-12))
    return np.concatenate([gaussian, -gaussian])
