"""Whether a signal is recovered, judged from runs: how often, how certainly, and which way it goes as N grows."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from deeplimits import tails
from deeplimits.errors import ParameterError
from deeplimits.numerics import arguments


class Frequency(NamedTuple):
    """Of the runs in one dimension: how many recovered the signal, with an exact binomial interval."""

    dimension: int
    runs: int
    recovered: int
    low: float
    high: float

    @property
    def share(self) -> float:
        return self.recovered / self.runs


class RecoveryReport(NamedTuple):
    """Frequencies by dimension, and whether they rise or fall with it."""

    frequencies: tuple[Frequency, ...]
    trend: float
    """The standardized slope of the frequency in log N (Cochran and Armitage); 0 where all runs end alike."""
    p_value: float
    """Two-sided, of no trend."""
    verdict: str
    """"rises", "falls", "no trend seen", or "one dimension", which proves nothing about N → ∞."""


def recovery_report(
    observations: Mapping[int, ArrayLike],
    threshold: float,
    *,
    absolute: bool = False,
    confidence: float = 0.95,
) -> RecoveryReport:
    """How often runs recover a signal: the share with m ≥ η in each dimension, and its trend.

    `observations` maps each dimension N to the final correlations m of runs there, one number a run; `absolute` looks
    at |m|, as an even loss asks. Weak recovery at η says that the share tends to 1, strong recovery that it does for
    every η < 1; a single N proves neither.

    >>> report = recovery_report({100: [0.1, 0.7, 0.6, 0.8], 400: [0.7, 0.6, 0.9, 0.8]}, 0.5)
    >>> [one.share for one in report.frequencies], report.verdict
    ([0.75, 1.0], 'no trend seen')
    """
    eta = float(arguments.number("threshold", threshold, arguments.inside(0, 1)))
    level = float(arguments.number("confidence", confidence, arguments.inside(0, 1)))
    if not observations:
        raise ParameterError("observations is empty; give the runs of at least one dimension")
    found = []
    for dimension in sorted(observations):
        n = arguments.whole("dimension", dimension, 2)
        runs = np.asarray(
            arguments.array(f"observations[{n}]", observations[dimension], ("runs",), allowed=arguments.between(-1, 1))
        )
        count = int(np.sum((np.abs(runs) if absolute else runs) >= eta))
        found.append(Frequency(n, len(runs), count, *tails.binomial_interval(count, len(runs), level)))
    trend, p_value = _trend(found)
    if len(found) == 1:
        verdict = "one dimension"
    elif p_value > 1 - level:
        verdict = "no trend seen"
    else:
        verdict = "rises" if trend > 0 else "falls"
    return RecoveryReport(tuple(found), trend, p_value, verdict)


def _trend(found: list[Frequency]) -> tuple[float, float]:
    """Σ (r_i − n_i p)x_i over its standard deviation under one p for all, x = log N."""
    counts, hits = (np.array([getattr(one, name) for one in found], float) for name in ("runs", "recovered"))
    x = np.log([one.dimension for one in found])
    p = hits.sum() / counts.sum()
    x = x - counts @ x / counts.sum()
    variance = p * (1 - p) * counts @ x**2
    if variance == 0:
        return 0.0, 1.0
    z = float((hits - counts * p) @ x / np.sqrt(variance))
    return z, float(2 * special.ndtr(-abs(z)))
