"""Second moments of pairs of samples in what an operation computes: how alike two samples are there, and how surely."""

import functools
from typing import NamedTuple

import numpy as np

PAIRS = 48
ENTRIES = 2048
"""Pairs times positions that are looked at; at least `FEWEST` pairs."""
FEWEST = 4
BLOCKS = 20
"""Of features, whose scatter is the error of a mean cosine."""


class Pairs(NamedTuple):
    """Mean products over features, (pairs, positions): positions are tokens, or places of an image."""

    first: np.ndarray
    second: np.ndarray
    both: np.ndarray
    error: float
    """Standard error of the mean cosine over independent features."""

    def of(self, count: int) -> "Pairs":
        """The first pairs alone."""
        return Pairs(self.first[:count], self.second[:count], self.both[:count], self.error)

    @property
    def cosine(self) -> float:
        """Mean cosine of two samples, positions and features together."""
        return float(mean_cosine(self.first, self.second, self.both))


def mean_cosine(first: np.ndarray, second: np.ndarray, both: np.ndarray) -> np.ndarray:
    """Over pairs, of what is summed over positions, the last axis.

    >>> float(mean_cosine(np.ones((1, 2)), np.full((1, 2), 4.0), np.array([[2.0, 0.0]])))
    0.5
    """
    size = np.sqrt(first.sum(axis=-1) * second.sum(axis=-1))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.mean(both.sum(axis=-1) / size, axis=-1)


class Chosen(NamedTuple):
    """The two samples of every pair."""

    left: np.ndarray
    right: np.ndarray


@functools.cache
def chosen(samples: int) -> Chosen:
    """Pairs of different samples, always the same ones, the first of them for whoever takes fewer."""
    left, right = np.triu_indices(samples, 1)
    order = np.random.default_rng(0).permutation(len(left))[:PAIRS]
    return Chosen(left[order], right[order])


def pairs(values: np.ndarray, samples: int, axis: int, errors: bool) -> Pairs | None:
    """Of a result whose first axis counts samples; `axis` counts features. None where it does not."""
    if values.ndim < 2 or len(values) != samples or samples < 2 or not values.size:
        return None
    moved = np.moveaxis(values, axis, -1)
    rows = moved.reshape(samples, -1, moved.shape[-1])
    left, right = (one[: max(ENTRIES // rows.shape[1], FEWEST)] for one in chosen(samples))
    x, y = rows[left], rows[right]
    width = rows.shape[2]
    starts = np.unique(np.linspace(0, width, min(BLOCKS, width), endpoint=False).astype(int))
    parts = [np.add.reduceat(a * b, starts, axis=-1) for a, b in ((x, x), (y, y), (x, y))]
    whole = [part.sum(axis=-1) for part in parts]
    error = 0.0
    if errors and len(starts) > 1:
        left_out = np.array([mean_cosine(*(w - part[..., i] for w, part in zip(whole, parts, strict=True)))
                             for i in range(len(starts))])  # fmt: skip
        if np.all(np.isfinite(left_out)):
            error = float(np.sqrt((len(starts) - 1) * np.mean((left_out - left_out.mean()) ** 2)))
    first, second, both = (one / width for one in whole)
    return Pairs(first, second, both, error)
