"""Simulated averages against a limit, by the house's statistics: standard errors, and a false-alarm budget."""

from collections.abc import Mapping

import numpy as np

from deeplimits import statistics


def agrees(draws: Mapping[int, object], stated: object, rate: float = 1.0) -> bool:
    """Whether draws at several sizes, (samples, ...) each, have the stated mean at infinite size."""
    means = [statistics.mean_of(np.asarray(found, float)) for found in draws.values()]
    fit = statistics.extrapolate(list(draws), means, [np.asarray(stated, float)] * len(means), rate)
    return statistics.largest_deviation(fit).agrees
