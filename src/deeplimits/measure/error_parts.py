"""Where the error of a trained model comes from."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from deeplimits.errors import ParameterError


class ErrorSplit(NamedTuple):
    """Norms in L² of the sample points' law; they need not add up, but obey the triangle inequality."""

    approximation: float
    """‖f_* − f_best‖: what no member of the model class can do."""
    generalization: float
    """‖f_best − f_fit‖: what the finite sample costs."""
    optimization: float
    """‖f_fit − f_found‖: what the optimizer left undone."""
    total: float
    """‖f_* − f_found‖."""


def error_split(
    target: ArrayLike, best: ArrayLike, fit: ArrayLike, found: ArrayLike, weights: ArrayLike | None = None
) -> ErrorSplit:
    """Approximation, generalization and optimization error of a trained model, as measured L² norms.

    Setting     f_* the target, f_best the best of the model class for the population, f_fit the best for the sample,
                f_found what the optimizer found; each by its values at the same points (n,) or (n, k), with optional
                nonnegative `weights` (n,) of the points
    Result      f_* − f_found = (f_* − f_best) + (f_best − f_fit) + (f_fit − f_found), and the norm of each part
    Validity    an identity; the norms satisfy total ≤ approximation + generalization + optimization
    References  bartlett2021

    >>> error_split([1.0, 1.0], [1.0, 0.0], [0.0, 0.0], [0.0, 0.0]).generalization
    0.7071067811865476
    """
    values = [np.asarray(part, float) for part in (target, best, fit, found)]
    if len({part.shape for part in values}) > 1 or values[0].ndim not in (1, 2) or not values[0].size:
        shapes = ", ".join(str(part.shape) for part in values)
        raise ParameterError(
            f"target, best, fit and found have shapes {shapes}; they must share one shape (n,) or (n, k)"
        )
    if not all(np.all(np.isfinite(part)) for part in values):
        raise ParameterError("target, best, fit or found contains values that are not finite; leave those points out")
    count = len(values[0])
    mass = np.ones(count) if weights is None else np.asarray(weights, float)
    if mass.shape != (count,) or np.any(mass < 0) or not mass.sum() > 0:
        raise ParameterError(f"weights must be {count} nonnegative numbers that are not all zero")
    mass = mass / mass.sum()

    def norm(left, right):
        squares = (left - right).reshape(count, -1) ** 2
        return float(np.sqrt(mass @ squares.sum(axis=1)))

    star, best_values, fit_values, found_values = values
    return ErrorSplit(
        norm(star, best_values), norm(best_values, fit_values), norm(fit_values, found_values), norm(star, found_values)
    )
