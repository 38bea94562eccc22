"""Cover's count in exact arithmetic and by enumeration."""

import math
from itertools import product

import jax.numpy as jnp
import numpy as np
import pytest

from deeplimits.measure.separability import is_separable
from deeplimits.theory.bias.cover_count import cover_probability


@pytest.mark.parametrize(("n", "d"), [(1, 1), (4, 2), (5, 3), (10, 3), (16, 10), (40, 7), (3, 9), (1000, 490)])
def test_cover_count(n, d):
    exact = sum(math.comb(n - 1, k) for k in range(d)) / 2 ** (n - 1)
    assert float(cover_probability(n, d)) == pytest.approx(min(exact, 1.0), rel=1e-10)


@pytest.mark.parametrize(("n", "d"), [(4, 2), (6, 3), (5, 1)])
def test_cover_count_by_enumeration(n, d):
    """All labellings of one set of points in general position; the number separable depends on n and d alone."""
    points = jnp.asarray(np.random.default_rng(0).standard_normal((n, d)))
    separable = [
        float(is_separable(points * jnp.asarray(labels)[:, None])) for labels in product([-1.0, 1.0], repeat=n)
    ]
    assert np.mean(separable) == pytest.approx(float(cover_probability(n, d)))
