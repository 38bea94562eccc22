"""A number measured at several sizes, carried to infinite size and set beside the theory's."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from deeplimits.gallery.figure import Check
from deeplimits.statistics import LEVEL, equivalent_z, extrapolate, largest_deviation, mean_of

SURE = equivalent_z(LEVEL)
"""So many standard errors are hardly ever exceeded by chance: the threshold of one test in the false-alarm budget."""


def of_mean(label: str, draws: ArrayLike, theory: ArrayLike) -> Check:
    """The mean of independent draws, beside the theory's number.

    >>> of_mean("mean", [0.9, 1.1] * 10, 1.0).holds
    True
    """
    mean = mean_of(np.asarray(draws, float))
    return Check(label, float(mean.value), float(mean.variance) ** 0.5, float(np.asarray(theory)), SURE)


def at_infinity(
    label: str, sizes: Sequence[float], draws: Sequence[ArrayLike], theory: ArrayLike, rate: float
) -> Check:
    """The number that draws at several sizes lead to, where the gap to `theory` closes like size^−rate.

    The error holds the noise and what the next order may still add; the threshold is that of the false-alarm budget.
    """
    theory = float(np.asarray(theory))
    means = [mean_of(np.asarray(one, float)) for one in draws]
    fit = extrapolate(sizes, means, [theory] * len(means), rate)
    found = largest_deviation(fit)
    error = float(fit.error + fit.allowance / found.threshold)
    return Check(label, theory + float(fit.gap), error, theory, found.threshold)
