"""What arguments of spectral laws must satisfy; every refusal names the argument, its value and what is allowed."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deeplimits.errors import ParameterError


def positive(name: str, value: ArrayLike) -> float:
    """The value as a number, refused unless it is positive and finite."""
    number = float(np.asarray(value, float))
    if not (number > 0 and math.isfinite(number)):
        raise ParameterError(f"{name} = {number:g} is not allowed; it must be positive and finite")
    return number


def atoms(values: ArrayLike, weights: ArrayLike | None) -> tuple[NDArray, NDArray]:
    """Values in increasing order without repetition, with their weights summing to one."""
    places = np.atleast_1d(np.asarray(values, float))
    if places.ndim != 1 or places.size == 0:
        raise ParameterError(f"values has shape {places.shape}; it must be a list of at least one eigenvalue")
    if not np.all(np.isfinite(places)):
        raise ParameterError("values contains a number that is not finite; every eigenvalue must be")
    masses = np.full(places.size, 1 / places.size) if weights is None else np.atleast_1d(np.asarray(weights, float))
    if masses.shape != places.shape:
        raise ParameterError(f"weights has shape {masses.shape}; it must have that of values, {places.shape}")
    if not np.all(np.isfinite(masses)) or np.any(masses < 0) or abs(masses.sum() - 1) > 1e-9:
        raise ParameterError(
            f"weights are not a probability: smallest {masses.min():g}, sum {masses.sum():g}; they must be at least 0 "
            "and sum to 1"
        )
    distinct, index = np.unique(places, return_inverse=True)
    merged = np.bincount(index, weights=masses, minlength=distinct.size) / masses.sum()
    kept = merged > 0
    return distinct[kept], merged[kept]
