r"""How many of the largest eigenvalues stand out of the bulk, with p-values.

At the edge of a bulk whose density vanishes like a square root, the largest eigenvalues are E + c·a_j with a_j the
points of the Airy process (β = 1, the Tracy-Widom law for the first), whatever the matrix: E and c alone depend on it.
To test whether λ_1 belongs to the bulk whose next values are λ_2 … λ_{m+1}, E and c are fitted to those by least
squares and

    T = (λ_1 − E)/c

is compared with the law of the same number for the Airy process itself, which is simulated: eigenvalues of the
stochastic Airy operator −d²/dx² + x + 2·(white noise). Whatever the edge and its scale, the law of T is the same.
"""

import functools
import time
from typing import NamedTuple

import numpy as np
import scipy.linalg

from deeplimits.errors import ParameterError
from deeplimits.numerics import arguments

LEVELS = 12
"""Values beyond the one in question that the edge is fitted to."""
DRAWS = 2000
SPACING = 0.15


class Outliers(NamedTuple):
    """How many eigenvalues lie outside the bulk."""

    count: int
    p_values: np.ndarray
    """of the k-th largest against the bulk behind it, k = 1 … `most`"""
    edge: float
    """where the bulk ends, fitted to the values behind the last outlier"""
    level: float
    """p-values below this over `most` count"""
    seed: int
    seconds: float

    @property
    def value(self) -> int:
        """How many there are."""
        return self.count

    @property
    def standard_error(self) -> None:
        """None: it is a test, whose p-values stand for it."""

    @property
    def residual(self) -> None:
        """None: no equation is solved."""

    @property
    def products(self) -> int:
        """None were made here: the eigenvalues were given."""
        return 0


def count_outliers(eigenvalues: np.ndarray, *, most: int | None = None, level: float = 0.01, seed: int = 0) -> Outliers:
    """The number of outliers among eigenvalues, largest first: the last one that its bulk does not explain.

    At least `most` + 12 of the largest are needed; `most` values are tested, by default all that can be. The chance of
    finding an outlier where there is none is at most `level`. Assumes that the bulk ends like a square root; behind a
    bulk with a heavy tail more is called an outlier. p-values below 1/2000 are an extrapolation of the simulated tail.

    >>> rng = np.random.default_rng(0)
    >>> noise = rng.standard_normal((300, 300)) / np.sqrt(300)
    >>> spiked = (noise + noise.T) / np.sqrt(2)
    >>> spiked[0, 0], spiked[1, 1] = 5.0, 4.0
    >>> count_outliers(np.linalg.eigvalsh(spiked)[::-1], most=5).count
    2
    """
    begin = time.perf_counter()
    values = np.asarray(eigenvalues, float)
    if values.ndim != 1 or np.any(np.diff(values) > 0) or not np.all(np.isfinite(values)):
        raise ParameterError("eigenvalues must be one finite list, largest first")
    testable = len(values) - LEVELS
    if testable < 1:
        raise ParameterError(f"{len(values)} eigenvalues are too few; give at least {LEVELS + 1} of the largest")
    most = testable if most is None else arguments.whole("most", most, 1)
    if most > testable:
        raise ParameterError(f"most = {most} needs {most + LEVELS} eigenvalues; there are {len(values)}")
    arguments.real("level", level, arguments.PART)
    p = np.array([p_value(values[k : k + LEVELS + 1], seed=seed) for k in range(most)])
    found = np.flatnonzero(p < level / most)
    count = int(found[-1]) + 1 if len(found) else 0
    return Outliers(count, p, _fit(values[count : count + LEVELS]).edge, level, seed, time.perf_counter() - begin)


def p_value(values: np.ndarray, *, seed: int = 0) -> float:
    """The chance that the first of these, descending, stands out as far from the rest if all are of one bulk."""
    seen = _statistic(values)
    null = _null(seed)
    if seen <= null[-1]:
        # The observed system is one more draw: never below 1/(draws + 1).
        exceeding = len(null) - np.searchsorted(null, seen)
        if exceeding >= 20:
            return float((exceeding + 1) / (len(null) + 1))
    # Beyond the draws the tail of T goes like exp(−(2/3)T^{3/2}), as Tracy and Widom's.
    from_here = null[-20]
    if seen <= from_here:
        return 21 / (len(null) + 1)
    slope = float(np.log(20) / (np.mean(_action(null[-4:])) - _action(from_here)))
    return float(20 / len(null) * np.exp(-min(slope, 1.0) * (_action(seen) - _action(from_here))))


def _action(x):
    return 2 / 3 * np.maximum(x, 0.0) ** 1.5


class _Fitted(NamedTuple):
    edge: float
    scale: float


def _fit(values: np.ndarray) -> _Fitted:
    """λ_j = E + c·a_j by least squares, a_j the mean places of the Airy points: −(3π(4j − 1)/8)^{2/3}."""
    # The first of them is the second of its bulk where one more stands before it.
    places = -((3 * np.pi * (4 * np.arange(1, len(values) + 1) - 1) / 8) ** (2 / 3))
    slope, edge = np.polyfit(places, values, 1)
    return _Fitted(float(edge), float(slope))


def _statistic(values: np.ndarray) -> float:
    fitted = _fit(values[1 : LEVELS + 1])
    if fitted.scale <= 0:
        return np.inf if values[0] > values[1] else -np.inf
    return (values[0] - fitted.edge) / fitted.scale


@functools.lru_cache(maxsize=4)
def _null(seed: int) -> np.ndarray:
    """Sorted draws of the statistic for the Airy process."""
    rng = np.random.default_rng(seed)
    # Beyond x = |a_{m+1}| + 8 the wanted eigenfunctions have died out.
    length = (3 * np.pi * (4 * (LEVELS + 1) - 1) / 8) ** (2 / 3) + 8
    x = np.arange(SPACING, length, SPACING)
    draws = np.empty(DRAWS)
    off = np.full(len(x) - 1, -1 / SPACING**2)
    for index in range(DRAWS):
        diagonal = 2 / SPACING**2 + x + np.sqrt(2 / SPACING) * rng.standard_normal(len(x)) * np.sqrt(2)
        lowest = scipy.linalg.eigh_tridiagonal(diagonal, off, eigvals_only=True, select="i", select_range=(0, LEVELS))
        draws[index] = _statistic(-np.asarray(lowest))
    return np.sort(draws)
