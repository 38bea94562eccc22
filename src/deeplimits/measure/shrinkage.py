"""Covariance estimators that shrink the eigenvalues of a sample."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.numerics.arguments import NOT_NEGATIVE, array

Floats = NDArray[np.floating]
ROOT5 = np.sqrt(5.0)


def analytical_shrinkage(eigenvalues: ArrayLike, samples: int) -> Floats:
    """Ledoit and Wolf's shrunk eigenvalues, from the p sample eigenvalues alone.

    Setting     the eigenvalues of X'X/n, increasing; n samples, p dimensions; f̃ and H̃ kernel estimates (Epanechnikov's
                kernel, bandwidths λ_j n^{−1/3}) of the density and its Hilbert transform
    Result      p ≤ n: d = λ/[(πcλf̃)² + (1 − c − πcλH̃)²], c = p/n; p > n: d = 1/(π²λ(f̃² + H̃²)) and one value for the
                null space
    Validity    n > 11 where p > n
    References  ledoit2020

    >>> data = np.random.default_rng(0).standard_normal((800, 400))
    >>> shrunk = analytical_shrinkage(np.linalg.eigvalsh(data.T @ data / 800), 800)
    >>> bool(np.all(np.abs(shrunk[20:-20] - 1) < 0.1))
    True
    """
    values = np.sort(np.asarray(array("eigenvalues", eigenvalues, ("p",), allowed=NOT_NEGATIVE, why="increasing")))
    p = values.size
    if p == 0 or samples < 2:
        raise ParameterError(f"{p} eigenvalues from samples = {samples}; there must be at least one, from 2 samples")
    ratio, width = p / samples, samples ** (-1 / 3)
    positive = values[max(p - samples, 0) :]
    if positive[0] <= 0:
        raise OutsideValidity(
            f"an eigenvalue is {positive[0]:g} among the {positive.size} that {samples} samples leave positive; the "
            "data are degenerate (repeated or constant columns): remove those first"
        )
    # One bandwidth for each eigenvalue, in proportion to it.
    own = width * positive
    x = (positive[:, None] - positive) / own
    density = np.mean(3 / (4 * ROOT5 * own) * np.maximum(1 - x**2 / 5, 0.0), axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        tail = 3 / (4 * ROOT5 * np.pi) * (1 - x**2 / 5) * np.log(np.abs((ROOT5 - x) / (ROOT5 + x)))
    tail = np.where(np.isclose(np.abs(x), ROOT5, rtol=1e-14), 0.0, tail)
    hilbert = np.mean((-3 * x / (10 * np.pi) + tail) / own, axis=1)
    if p <= samples:
        squares = (np.pi * ratio * positive * density) ** 2 + (1 - ratio - np.pi * ratio * positive * hilbert) ** 2
        return positive / squares
    if ROOT5 * width >= 1:
        raise OutsideValidity(f"samples = {samples} is too few; with more dimensions than samples it takes at least 12")
    shrunk = 1 / (np.pi**2 * positive * (density**2 + hilbert**2))
    logarithm = np.log((1 + ROOT5 * width) / (1 - ROOT5 * width))
    at_zero = 3 / (10 * width**2) + 3 / (4 * ROOT5 * width) * (1 - 1 / (5 * width**2)) * logarithm
    null = 1 / ((p - samples) / samples * at_zero * np.mean(1 / positive))
    return np.concatenate([np.full(p - samples, null), shrunk])


class _Estimator(ABC):
    """What scikit-learn asks of a covariance estimator, without depending on it."""

    def __init__(self, *, assume_centered: bool = False):
        self.assume_centered = assume_centered

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name."""
        return {"assume_centered": self.assume_centered}

    def set_params(self, **params: Any):
        """Change parameters by name."""
        for name, value in params.items():
            if name not in self.get_params():
                raise ParameterError(f"{type(self).__name__} has no parameter {name}; it has assume_centered")
            setattr(self, name, value)
        return self

    def fit(self, X: ArrayLike, y: Any = None):
        """Estimate from data, samples in rows; sets `covariance_`, `precision_`, `location_` and `n_features_in_`."""
        data = np.asarray(X, float)
        if data.ndim != 2 or data.shape[0] < 3:
            raise ParameterError(f"X has shape {data.shape}; it must be (samples, features) with at least 3 samples")
        if not np.all(np.isfinite(data)):
            raise ParameterError("X contains a number that is not finite; fill or drop missing values first")
        self.n_features_in_ = data.shape[1]
        self.location_ = np.zeros(data.shape[1]) if self.assume_centered else data.mean(axis=0)
        centred = data - self.location_
        # Estimating the mean costs one sample.
        samples = len(data) - (0 if self.assume_centered else 1)
        self.covariance_ = self._shrink(centred.T @ centred / samples, centred, samples)
        self.precision_ = np.linalg.pinv(self.covariance_, hermitian=True)
        return self

    def get_precision(self) -> Floats:
        """The inverse of the estimate."""
        return self.precision_

    @abstractmethod
    def _shrink(self, sample: Floats, centred: Floats, samples: int) -> Floats:
        """The estimate, from the sample covariance, the centred data and the number of samples they are worth."""


class NonlinearShrinkage(_Estimator):
    """Analytical nonlinear shrinkage: sample eigenvectors, eigenvalues of `analytical_shrinkage`.

    Fits the interface of scikit-learn's covariance estimators (`fit`, `covariance_`, `precision_`, `location_`,
    `get_params`), which itself is not needed.

    >>> data = np.random.default_rng(0).standard_normal((60, 30))
    >>> error = np.linalg.norm(NonlinearShrinkage().fit(data).covariance_ - np.eye(30))
    >>> bool(error < 0.5 * np.linalg.norm(np.cov(data.T) - np.eye(30)))
    True
    """

    def _shrink(self, sample, centred, samples):
        values, vectors = np.linalg.eigh(sample)
        values[: max(len(values) - samples, 0)] = 0.0
        return vectors * analytical_shrinkage(values, samples) @ vectors.T


class LinearShrinkage(_Estimator):
    """Ledoit and Wolf's linear shrinkage (1 − ρ)Σ̂ + ρ(tr Σ̂/p)I with the intensity `shrinkage_` estimated from the data.

    ρ = min(b², d²)/d², d² = ‖Σ̂ − mI‖²_F/p, b² = Σ_k ‖x_kx_k' − Σ̂‖²_F/(n²p).

    >>> data = np.random.default_rng(0).standard_normal((60, 30))
    >>> bool(0.8 < LinearShrinkage().fit(data).shrinkage_ <= 1)
    True
    """

    def _shrink(self, sample, centred, samples):
        p = len(sample)
        mean = np.trace(sample) / p
        target = mean * np.eye(p)
        distance = np.sum((sample - target) ** 2) / p
        # Σ_k ‖x_kx_k' − Σ̂‖² = Σ_k ‖x_k‖⁴ − n‖Σ̂‖²
        spread = (np.sum(np.sum(centred**2, axis=1) ** 2) - samples * np.sum(sample**2)) / (samples**2 * p)
        self.shrinkage_ = 1.0 if distance == 0 else float(np.clip(spread / distance, 0.0, 1.0))
        return (1 - self.shrinkage_) * sample + self.shrinkage_ * target
