"""The bias of descent at the edges: dependent support vectors, extreme scales, wrong input."""

import mpmath as mp
import numpy as np
import pytest

import deeplimits as dl
from deeplimits.errors import DeeplimitsError, OutsideValidity, ParameterError
from deeplimits.theory.bias import (
    diagonal_networks,
    noisy_descent,
    quadratic_model,
    separable_descent,
    sgd_noise,
    slow_directions,
)
from deeplimits.theory.bias.separable_descent import log_time_law
from deeplimits.theory.bias.support_vectors import NotSeparable, hard_margin, is_separable
from deeplimits.theory.inequalities import matrix_tails


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


@pytest.mark.parametrize(("step", "count"), [(1e-9, 10), (1e-7, 10), (1e-8, 3_000_000), (0.3, 7), (1.7, 9), (0.5, 1)])
def test_averaged_variance_cancels_nothing(step, count):
    """ηλ = 1e-9 and T = 10 were ten times off."""
    with mp.workdps(60):
        x, t = mp.mpf(step), mp.mpf(count)
        rho = 1 - x
        v = x / (2 - x)
        exact = v / t * ((1 + rho) / (1 - rho) - 2 * rho * (1 - rho**count) / (t * (1 - rho) ** 2))
    assert float(noisy_descent.averaged_variance(step, 1.0, 1.0, count)) == pytest.approx(float(exact), rel=1e-8)


def test_negative_curvature_is_seen():
    assert float(noisy_descent.contraction_factor([-1.0, 10.0], 0.1)) == pytest.approx(1.1)
    assert float(noisy_descent.contraction_factor([0.0, 10.0], 0.05)) == pytest.approx(0.5)


def deep_potential(z, depth):
    """∫_0^z h^{−1} = ∫_0^s t h'(t) dt with h(s) = z, by bisection and mpmath's quadrature."""
    power = mp.mpf(depth) / (depth - 2)
    low, high = mp.mpf(0), mp.mpf(1)
    for _ in range(90):
        s = (low + high) / 2
        low, high = (s, high) if (1 - s) ** -power - (1 + s) ** -power < z else (low, s)
    return mp.quad(lambda t: t * power * ((1 - t) ** (-power - 1) + (1 + t) ** (-power - 1)), [0, s / 2, 0.9 * s, s])


@pytest.mark.parametrize("depth", [3, 4, 6])
@pytest.mark.parametrize("z", [0.01, 1.0, 30.0])
def test_potentials_of_deeper_networks(depth, z):
    with mp.workdps(30):
        exact = float(deep_potential(mp.mpf(z), depth))
    assert float(diagonal_networks.diagonal_potential(z, depth=depth)) == pytest.approx(exact, rel=1e-8)
    assert float(diagonal_networks.diagonal_potential(-z, depth=depth)) == pytest.approx(exact, rel=1e-8)


@pytest.mark.parametrize("depth", [2, 3, 4])
def test_the_interpolant_minimizes_the_regularizer(depth):
    """Among the solutions of Xβ = y none near the flow's has a smaller Q, for every depth."""
    x = np.array([[1, 2, 0.5, -1, 0.3], [0.2, -1, 1.5, 0.7, 2]])
    start = np.array([1, 0.5, 2, 1, 1.5])
    found = np.asarray(diagonal_networks.diagonal_interpolant(x, [1.0, 2.0], 0.7, start=start, depth=depth).beta)
    least = float(diagonal_networks.diagonal_regularizer(found, 0.7, start, depth=depth))
    null = np.linalg.svd(x)[2][2:]
    for direction in null:
        ends = [
            float(diagonal_networks.diagonal_regularizer(found + h * direction, 0.7, start, depth=depth))
            for h in (-1e-3, 1e-3)
        ]
        assert min(ends) > least
        assert abs(ends[1] - ends[0]) < 5e-3 * (sum(ends) - 2 * least)


def test_regularizers_at_extreme_scales():
    """c q(β/c) with c = α²: for α = 1e-200 it is |β|(log|β| − log α² − 1), to rounding."""
    exact = 1.0 * (400 * np.log(10) - 1) + 0.5 * (np.log(0.5) + 400 * np.log(10) - 1)
    assert float(diagonal_networks.diagonal_regularizer([1.0, -0.5], 1e-200, [1.0, 1.0])) == pytest.approx(
        exact, rel=1e-14
    )
    with mp.workdps(40):
        z = mp.mpf("1e200")
        large = float((2 - mp.sqrt(4 + z**2) + z * mp.asinh(z / 2)) / z)
    assert float(diagonal_networks.diagonal_potential(1e200)) / 1e200 == pytest.approx(large, rel=1e-13)


@pytest.mark.parametrize("size", [1e-200, 1e-120, 1e120, 1e200])
def test_margins_of_data_of_every_size(size):
    """Of size 1e200 they were 'not separable', with a certificate."""
    points = np.array([[1.0, 2], [2, 0.5], [-3, -3], [4, 1]])
    usual = hard_margin(points, [1, 1, -1, 1])
    found = hard_margin(size * points, [1, 1, -1, 1])
    np.testing.assert_allclose(found.weights * size, usual.weights, rtol=1e-12)
    assert found.margin == pytest.approx(usual.margin * size, rel=1e-12)


@pytest.mark.parametrize(
    ("attempt", "why"),
    [
        (lambda: noisy_descent.contraction_factor([0.0, 0.0], 0.1), "zero"),
        (lambda: noisy_descent.contraction_factor([], 0.1), "eigenvalues"),
        (lambda: noisy_descent.best_step([-1.0, 2.0]), "negative"),
        (lambda: noisy_descent.averaged_variance(0.1, 1.0, 1.0, 2.5), "steps"),
        (lambda: noisy_descent.descent_path(np.eye(2), np.ones(2), 1.0, 2.5), "steps"),
        (lambda: noisy_descent.variance_path(1.0, [0.1], -1.0), "noise_variance"),
        (lambda: slow_directions.fast_variance(1.0, 0.1, -2.0), "curvature"),
        (lambda: slow_directions.entropic_drift(lambda p: 1 + p**2, [1.0], 0.3, 1.2, [1.0]), "step"),
        (lambda: slow_directions.entropic_drift(lambda p: 1 + p**2, [1.0], 0.3, 0.1, [2.0, 1.0]), "increasing"),
        (lambda: slow_directions.slow_half_mass(0.0, 1.0), "slow"),
        (lambda: matrix_tails.matrix_bernstein(0.1, 0.1, 3).tail(-1.0), "deviation"),
        (lambda: matrix_tails.matrix_bernstein(0.1, 0.1, 3).deviation(50.0), "probability"),
        (lambda: matrix_tails.gram_bernstein(1.0, 5, 0), "features"),
        (lambda: diagonal_networks.diagonal_regularizer([1.0], 0.0, [1.0]), "alpha"),
        (lambda: diagonal_networks.kernel_solution([[1.0, 0.0], [1.0, 0.0]], [1.0, 2.0]), "no solution"),
        (lambda: diagonal_networks.diagonal_potential(1.0, depth=1), "depth"),
    ],
)
def test_what_is_refused(attempt, why):
    with pytest.raises(DeeplimitsError, match=why):
        attempt()


def test_variance_path_takes_a_list():
    assert float(noisy_descent.variance_path(1.0, [0.1, 0.1], 1.0)[-1]) == pytest.approx(0.01 * (1 + 0.81))


def test_largest_step_of_inputs_that_do_not_span_the_space():
    # One direction, one sample at a time: E(1 − ηx²)² = 1 at η = 2 E x²/E x⁴
    x = np.array([[1.0, 0.0], [2.0, 0.0], [1.0, 0.0]])
    exact = 2 * np.mean(x[:, 0] ** 2) / np.mean(x[:, 0] ** 4)
    assert sgd_noise.largest_sgd_step(x, 1, "without replacement") == pytest.approx(exact, rel=1e-12)


def test_feature_change_names_the_shapes_that_do_not_fit():
    with pytest.raises(DeeplimitsError, match=r"form has shape \(3, 3\)"):
        quadratic_model.feature_change(np.eye(2), np.eye(3), np.ones(2), np.zeros(2), 1.0)


def test_batches_hold_samples():
    from deeplimits.theory.bias import largest_sgd_step

    for batch, sampling in (
        (0, "without replacement"),
        (2.5, "without replacement"),
        (4, "without replacement"),
        (0, "bernoulli"),
    ):
        with pytest.raises(ParameterError, match="batch"):
            largest_sgd_step(np.eye(3), batch, sampling)


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_multipliers_beyond_double_precision_have_a_unit(size):
    """ŵ = Σ a_i y_i x_i, so that a_i is of size 1/x²: 1e400, or 1e-400. Once infinite, or all zero."""
    x, y = size * np.array([[1.0, 2], [2, 0.5], [-3, -3], [4, 1]]), np.array([1, 1, -1, 1])
    found = hard_margin(x, y)
    assert found.unit == 4 * size
    small = x / found.unit * y[:, None]
    np.testing.assert_allclose(found.multipliers @ small, found.weights * found.unit, rtol=1e-9)
    assert is_separable(x, y)
    assert not is_separable(size * np.array([[1.0], [2.0]]), [1, -1])
    with pytest.raises(OutsideValidity, match="divide x by s"):
        log_time_law(x, y)
    near = size**-0.3 * x
    found = hard_margin(near, y)
    assert found.unit == 1.0
    np.testing.assert_allclose(found.multipliers @ (near * y[:, None]), found.weights, rtol=1e-9)


def test_points_of_very_different_size():
    """Separable by (1, 1), with a margin of 1e-11 of the largest point; once called not separable, with a proof."""
    x = [[1e8, 1.0], [1.0, 1e8], [1e-3, 1e-3]]
    with pytest.raises(OutsideValidity, match="are separable, but") as raised:
        hard_margin(x, [1, 1, 1])
    assert not isinstance(raised.value, NotSeparable)
    assert is_separable(x, [1, 1, 1])
    assert not is_separable([*x, [-1e-3, -1e-3]], [1, 1, 1, 1])
    assert not is_separable([*x, [0.0, 0.0]], [1, 1, 1, 1])


def test_a_run_whose_ends_cancel_its_noise_balances_to_rounding():
    # What is left of both was compared with roundings of either: a draw of a campaign.
    limit = dl.limits.FluctuationDissipation(neurons=1, samples=13, step=0.021397295637270664, sampling="bernoulli")
    comparison = dl.compare(limit, samples=60, seed=70988168)
    assert comparison["telescope"].agrees, str(comparison)
