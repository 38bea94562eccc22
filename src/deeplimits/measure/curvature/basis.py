"""An orthonormal basis that grows by products with a symmetric matrix, and what the matrix is on it."""

from typing import NamedTuple

import numpy as np
import scipy.linalg
from scipy.sparse.linalg import LinearOperator

DEPENDENT = 1e-12
"""A vector whose part outside the basis is below this share of it brings nothing new."""


class Ritz(NamedTuple):
    """Ritz values in ascending order, their coefficients in the basis, and |A Vs − θ Vs|."""

    theta: np.ndarray
    s: np.ndarray
    residuals: np.ndarray
    rounding: np.ndarray
    """|(T − Tᵀ)s|/2: how far the products are from those of a symmetric matrix, which is rounding in their precision"""


class Split(NamedTuple):
    """A vector's coefficients in the basis and the rest."""

    coefficients: np.ndarray
    rest: np.ndarray


class Basis:
    r"""Band Lanczos: V holds `size` vectors that have been multiplied and `waiting` orthonormal ones behind them.

    A V = [V, W] T to rounding, T being (size + waiting) × size, with every coefficient of the orthogonalization kept.
    Each step multiplies the first that waits and puts what is new in the product last in the queue. One start gives
    Lanczos' recurrence, several its band form; more can join later.
    """

    def __init__(self, operator: LinearOperator, most: int, starts: np.ndarray):
        self.operator = operator
        self.v = np.empty((most + len(starts) + 1, operator.shape[0]))
        self.t = np.zeros((len(self.v), most))
        self.size = self.waiting = self.products = 0
        for start in starts:
            self.join(start)

    @property
    def most(self) -> int:
        """How many vectors can be multiplied before a restart."""
        return self.t.shape[1]

    @property
    def full(self) -> bool:
        """Whether a restart is due."""
        return self.size == self.most

    @property
    def complete(self) -> bool:
        """Whether the basis spans everything."""
        return self.size >= self.operator.shape[0]

    def join(self, vector: np.ndarray) -> bool:
        """Queue a vector's part outside the basis; False where there is none."""
        norm = np.linalg.norm(vector)
        if norm == 0 or self.size + self.waiting >= self.operator.shape[0]:
            return False
        if len(self.v) <= self.most + self.waiting + 1:
            self.v = np.concatenate([self.v, np.empty_like(self.v[:1])])
            self.t = np.concatenate([self.t, np.zeros_like(self.t[:1])])
        rest = self._orthogonal(vector / norm).rest
        length = np.linalg.norm(rest)
        if length < DEPENDENT:
            return False
        self.v[self.size + self.waiting] = rest / length
        self.waiting += 1
        return True

    def step(self) -> None:
        """One product."""
        place, held = self.size, self.size + self.waiting
        product = np.asarray(self.operator @ self.v[place], float)
        self.products += 1
        found = self._orthogonal(product)
        self.size, self.waiting = self.size + 1, self.waiting - 1
        self.t[:held, place] = found.coefficients
        length = np.linalg.norm(found.rest)
        if length > DEPENDENT * max(np.abs(self.t[:held, : self.size]).max(), 1e-300) and held < self.operator.shape[0]:
            self.v[held] = found.rest / length
            self.t[held, place] = length
            self.waiting += 1

    def _orthogonal(self, vector: np.ndarray) -> Split:
        v = self.v[: self.size + self.waiting]
        coefficients = v @ vector
        rest = vector - coefficients @ v
        # Once is enough unless most of the vector was taken away.
        if np.linalg.norm(rest) < 1e-2 * np.linalg.norm(vector):
            again = v @ rest
            coefficients, rest = coefficients + again, rest - again @ v
        return Split(coefficients, rest)

    def ritz(self) -> Ritz:
        """Eigenpairs of the projection, with the residuals of the pairs that they stand for."""
        t = self.t[: self.size, : self.size]
        theta, s = scipy.linalg.eigh((t + t.T) / 2)
        inside = t @ s - s * theta
        outside = self.t[self.size : self.size + self.waiting, : self.size] @ s
        skew = np.linalg.norm((t - t.T) @ s, axis=0) / 2
        return Ritz(theta, s, np.sqrt((inside**2).sum(axis=0) + (outside**2).sum(axis=0)), skew)

    def vectors(self, ritz: Ritz, chosen: np.ndarray) -> np.ndarray:
        """Ritz vectors as rows."""
        return ritz.s[:, chosen].T @ self.v[: self.size]

    def restart(self, kept: np.ndarray) -> None:
        """Keep these Ritz vectors and the queue."""
        ritz = self.ritz()
        s, queue = ritz.s[:, kept], slice(self.size, self.size + self.waiting)
        inner, coupling = s.T @ self.t[: self.size, : self.size] @ s, self.t[queue, : self.size] @ s
        vectors, waiting = self.vectors(ritz, kept), self.v[queue].copy()
        self.size = len(kept)
        self.t[:] = 0
        self.v[: self.size], self.v[self.size : self.size + self.waiting] = vectors, waiting
        self.t[: self.size, : self.size] = inner
        self.t[self.size : self.size + self.waiting, : self.size] = coupling
