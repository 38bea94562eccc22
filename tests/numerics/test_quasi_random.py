"""Quasi-random points: Gaussian expectations in closed form, and the same points at every call."""

import numpy as np
import pytest

from deeplimits.numerics.quasi_random import gaussian_points


def test_expectations():
    z = gaussian_points(4, 2048)
    assert z.shape == (4096, 4)
    assert np.all(np.mean(z**3, axis=0) == pytest.approx(0.0, abs=1e-12))  # reflections
    # E|z| = √(2/π), E max(z₁ + z₂, 0)² = 1, E cos(z₁ + z₂) = 1/e
    assert np.mean(np.abs(z[:, 0])) == pytest.approx(np.sqrt(2 / np.pi), abs=1e-3)
    assert np.mean(np.maximum(z[:, 0] + z[:, 1], 0.0) ** 2) == pytest.approx(1.0, abs=1e-2)
    assert np.mean(np.cos(z[:, 2] + z[:, 3])) == pytest.approx(np.exp(-1.0), abs=1e-3)


def test_points_are_fixed():
    first = gaussian_points(2, 64)
    gaussian_points.cache_clear()
    np.testing.assert_array_equal(gaussian_points(2, 64), first)
