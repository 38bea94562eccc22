"""Functions by their values at Chebyshev points: what is smooth is known there to all digits from a few dozen."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deeplimits.numerics import arguments

Floats = NDArray[np.floating]


class Collocation(NamedTuple):
    """The points cos(πj/n), j = 0…n, and what derivative and integral of the polynomial through values there are."""

    points: Floats
    derivative: Floats
    """The matrix that takes values to values of the derivative."""
    weights: Floats
    """∫ over [−1, 1] is the sum of weights times values (Clenshaw and Curtis)."""


def collocation(count: int) -> Collocation:
    """`count` + 1 points, `count` even or odd.

    >>> rule = collocation(8)
    >>> bool(np.allclose(rule.derivative @ rule.points**3, 3 * rule.points**2))
    True
    >>> round(float(rule.weights @ rule.points**6), 12)  # 2/7
    0.285714285714
    """
    n = arguments.whole("count", count, 1)
    j = np.arange(n + 1)
    x = np.cos(np.pi * j / n)
    scale = np.where((j == 0) | (j == n), 2.0, 1.0) * (-1.0) ** j
    matrix = np.outer(scale, 1 / scale) / (x[:, None] - x[None, :] + np.eye(n + 1))
    # ∫ T_k = 2/(1 − k²) for even k; the weights are its discrete cosine transform.
    even = np.arange(0, n + 1, 2)
    moments = 2 / (1.0 - even**2) * np.where((even == 0) | (even == n), 0.5, 1.0)
    weights = 2 / n * np.cos(np.pi * np.outer(j, even) / n) @ moments * np.where((j == 0) | (j == n), 0.5, 1.0)
    return Collocation(x, matrix - np.diag(matrix.sum(axis=1)), weights)
