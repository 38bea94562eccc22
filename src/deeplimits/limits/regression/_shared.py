"""What the limits about regression have in common: the interpolation threshold p = n."""

import numpy as np
from jax.typing import ArrayLike

from deeplimits.errors import OutsideValidity
from deeplimits.limit import Limit, whole
from deeplimits.theory.spectra.ridge_equation import AT_THRESHOLD

# Closer to p = n than this the risk of a finite sample has too few moments for its mean to be measured.
CLOSEST = 8


def at_threshold(gamma: ArrayLike) -> bool:
    """Whether one of the ratios p/n is 1, up to rounding."""
    return bool(np.any(np.abs(np.asarray(gamma) - 1) < AT_THRESHOLD))


def features_of(limit: Limit, samples: int, gamma: float, least: int = 1) -> int:
    """The whole number of features p of n samples at the ratio gamma, refused too near to n."""
    n, p = samples, whole(gamma * samples, "p", limit, least)
    if abs(p - n) < CLOSEST:
        raise OutsideValidity(
            f"{type(limit).__name__}: at n = {n} gamma = {gamma:g} means p = {p}, and a finite sample needs "
            f"|p - n| >= {CLOSEST} for its mean risk to be measurable; take a larger size or gamma further from 1"
        )
    return p
