"""Alignment with subspaces: values by hand, random baselines, singular bases."""

import numpy as np
import pytest

from deeplimits import measure
from deeplimits.errors import ParameterError


def test_values_by_hand():
    assert measure.alignment([3.0, 4.0], [[1.0], [0.0]]) == pytest.approx(0.6, rel=1e-14)
    assert measure.distance_from_subspace(np.diag([3.0, 1, -5]), np.eye(3)[:, [0, 2]]) == pytest.approx(0.2, rel=1e-14)
    np.testing.assert_allclose(np.abs(measure.top_eigenspace(np.diag([3.0, 1, -5]), 2)), np.eye(3)[:, [2, 0]])
    # A basis with repeated columns, and vectors near the ends of what doubles hold
    assert measure.alignment([3e200, 4e200], [[1.0, 2.0], [0.0, 0.0]]) == pytest.approx(0.6, rel=1e-14)
    assert measure.alignment([3e-200, 4e-200], [[1.0], [0.0]]) == pytest.approx(0.6, rel=1e-14)


def test_random_vectors():
    random = np.random.default_rng(0)
    squares = [measure.alignment(v, np.eye(20)[:, :5]) ** 2 for v in random.normal(size=(2000, 20))]
    assert np.mean(squares) == pytest.approx(5 / 20, abs=5 * np.std(squares) / 2000**0.5)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: measure.alignment([0.0, 0.0], np.eye(2)), "vector"),
        (lambda: measure.alignment([1.0, 0.0], np.zeros((2, 1))), "basis"),
        (lambda: measure.distance_from_subspace(np.zeros((2, 2)), np.eye(2)), "matrix"),
        (lambda: measure.top_eigenspace(np.array([[0.0, 1], [0, 0]]), 1), "symmetric"),
        (lambda: measure.top_eigenspace(np.eye(2), 3), "count"),
    ],
)
def test_bad_input(call, name):
    with pytest.raises(ParameterError, match=name):
        call()
