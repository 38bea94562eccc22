"""The bias of descent at the edges: dependent support vectors, extreme scales, wrong input."""

import numpy as np
import pytest

from deeplimits.errors import DeeplimitsError
from deeplimits.theory.bias import separable_descent


def late_flow(rows, scale, log_time):
    """w(t) − ŵ-free: gradient flow on c Σ e^{−⟨w, x_i⟩} in s = log t, integrated from t = 1 with an implicit solver."""
    from scipy.integrate import solve_ivp

    def field(s, w):
        return np.exp(s) * scale * rows.T @ np.exp(-rows @ w)

    def slope(s, w):
        return -np.exp(s) * scale * (rows.T * np.exp(-rows @ w)) @ rows

    start = np.zeros(rows.shape[1])
    found = solve_ivp(field, (-8.0, log_time), start, method="Radau", jac=slope, rtol=1e-10, atol=1e-12)
    return found.y[:, -1]


@pytest.mark.parametrize(
    "rows",
    [
        [[1.0, 1.0], [1.0, -1.0], [1.0, 0.0]],
        [[1.0, 0.0], [1.0, 0.0], [3.0, 1.0]],
        [[1.0, 0.5], [1.0, 0.5], [1.0, -2.0], [1.0, 0.1], [4.0, 1.0]],
        [[1.0, 1.0, 0.0], [1.0, -1.0, 0.0], [1.0, 0.0, 1.0], [1.0, 0.0, -1.0]],
    ],
)
def test_dependent_support_vectors_have_an_offset(rows):
    """They were called degenerate; (1, 1), (1, −1), (1, 0) has the offset (log 3, 0) for c = 1."""
    rows = np.array(rows)
    law = separable_descent.log_time_law(rows, np.ones(len(rows)), loss_scale=1.0)
    assert not law.degenerate
    late = 40.0
    deviation = late_flow(rows, 1.0, late) - law.predictor.weights * late
    # The span of the support alone is predicted; these supports span the plane or leave the rest untouched.
    on = rows[law.predictor.support]
    inside = np.linalg.pinv(on) @ on
    np.testing.assert_allclose(inside @ deviation, law.offset, atol=max(2e-7, 20 * np.exp(-law.rate * late)))


def test_the_offsets_in_closed_form():
    law = separable_descent.log_time_law([[1.0, 1.0], [1.0, -1.0], [1.0, 0.0]], [1, 1, 1], loss_scale=1.0)
    np.testing.assert_allclose(law.offset, [np.log(3), 0.0], atol=1e-12)
    twice = separable_descent.log_time_law([[1.0, 0.0], [1.0, 0.0], [3.0, 1.0]], [1, 1, 1], loss_scale=1.0)
    np.testing.assert_allclose(twice.offset, [np.log(2), 0.0], atol=1e-12)


def test_truly_degenerate_data_are_still_found_out():
    """(1, 1) is on the margin of (1, 0) and carries nothing, also when (1, 0) is there twice."""
    for rows in ([[1.0, 0.0], [1.0, 1.0]], [[1.0, 0.0], [1.0, 0.0], [1.0, 1.0]]):
        law = separable_descent.log_time_law(rows, np.ones(len(rows)))
        assert law.degenerate
        assert law.offset is None


@pytest.mark.parametrize("x", [[[0.0, 0.0]], [[np.nan, 1.0]], [1.0, 2.0], np.zeros((0, 2))])
def test_largest_step_needs_points(x):
    with pytest.raises(DeeplimitsError, match="x"):
        separable_descent.largest_separable_step(x)
