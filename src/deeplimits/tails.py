"""Tails and quantiles of the laws that a verdict rests on: Student's, the normal, the binomial.

SciPy's special functions instead of scipy.stats, whose import takes longer than most predictions.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

Floats = NDArray[np.floating]

BEYOND = 1e60


def student_tail(t: ArrayLike, dof: ArrayLike) -> Floats:
    """P(T > t) for Student's law; the normal law where `dof` is infinite."""
    t, dof = np.asarray(t, float), np.asarray(dof, float)
    return np.where(np.isfinite(dof), special.stdtr(np.where(np.isfinite(dof), dof, 1.0), -t), special.ndtr(-t))


def student_quantile(tail: ArrayLike, dof: ArrayLike) -> Floats:
    """The t with P(T > t) = tail."""
    tail, dof = np.asarray(tail, float), np.asarray(dof, float)
    finite = np.where(np.isfinite(dof), dof, 1.0)
    return np.where(np.isfinite(dof), -special.stdtrit(finite, tail), -special.ndtri(tail))


def hall_transform(t: Floats, skewness: Floats) -> Floats:
    """Hall's (1992) monotone transformation of a studentized mean; `skewness` is that of the mean."""
    # Beyond any quantile, and before cubes are no numbers
    t = np.clip(t, -BEYOND, BEYOND)
    return t + skewness * t**2 / 3 + skewness**2 * t**3 / 27 + skewness / 6


def cornish_fisher(z: Floats, skewness: Floats) -> Floats:
    """The normal score of a mean standardized by a known variance, to first order in its skewness."""
    corrected = z - skewness * (z**2 - 1) / 6
    # Beyond the turning point of the parabola the expansion no longer holds; keep the sign and the plain score there.
    return np.where(np.abs(skewness * z) < 1.5, corrected, z)


def binomial_p_value(successes: int, count: int, probability: float) -> float:
    """Exact two-sided p-value of a number of successes."""
    p = min(max(probability, 0.0), 1.0)
    if successes == p * count:
        return 1.0
    counts = np.arange(count + 1)
    # Every outcome that is no likelier than the one seen, up to rounding.
    log_likelihoods = _log_binomial(counts, count, p)
    return float(min(1.0, np.exp(log_likelihoods[log_likelihoods <= log_likelihoods[successes] + 1e-7]).sum()))


def _log_binomial(successes: ArrayLike, count: int, p: float) -> Floats:
    k = np.asarray(successes, float)
    choose = special.gammaln(count + 1) - special.gammaln(k + 1) - special.gammaln(count - k + 1)
    return choose + special.xlogy(k, p) + special.xlog1py(count - k, -p)


def binomial_tail(successes: int, count: int, probability: float) -> float:
    """P(at least that many successes)."""
    return 1.0 if successes <= 0 else float(special.betainc(successes, count - successes + 1, probability))


def binomial_interval(successes: int, count: int, confidence: float = 0.95) -> tuple[float, float]:
    """The exact (Clopper-Pearson) interval of a frequency."""
    tail = (1 - confidence) / 2
    low = special.betaincinv(successes, count - successes + 1, tail) if successes > 0 else 0.0
    high = special.betaincinv(successes + 1, count - successes, 1 - tail) if successes < count else 1.0
    return float(low), float(high)


def equivalent_z(p_value: float) -> float:
    """The standardized normal deviation with the same two-sided p-value."""
    return -float(special.ndtri(max(p_value, 1e-300) / 2))
