"""Regression, smoothing, separable data and inequalities at the edges of their arguments."""

import warnings

import mpmath
import numpy as np
import pytest

from deeplimits.errors import OutsideValidity, OutsideValidityWarning, ParameterError
from deeplimits.theory.bias import least_squares, noisy_descent, separable_descent
from deeplimits.theory.inequalities import basic
from deeplimits.theory.regression import (
    gradient_flow,
    mixture_contour,
    mixture_dynamics,
    ridge,
    ridgeless,
    smoothing,
    training_risk,
)
from deeplimits.theory.regression.populations import population
from deeplimits.theory.spectra import effective_ridge, equivalents


def flow(points, log_time):
    """Gradient flow of the mean exponential loss from zero, in s = log(1 + t)."""
    from scipy.integrate import solve_ivp

    def move(s, w):
        return np.exp(s - points @ w) @ points / len(points)

    return solve_ivp(move, (0.0, log_time), np.zeros(points.shape[1]), method="LSODA", rtol=1e-11, atol=1e-12).y[:, -1]


@pytest.mark.parametrize(
    "points",
    [
        [[1.0, 2.0], [1.0, 2.0], [2.0, 0.5]],
        [[1.0, 0.0], [1.0, 1.0], [1.0, -1.0]],
        [[1.0, 1.0, 0.0], [1.0, -1.0, 0.0], [1.0, 0.0, 1.2], [1.0, 0.0, -0.8], [2.5, 1.0, 1.0]],
    ],
)
def test_dependent_support_vectors_share_their_multiplier(points):
    points = np.array(points)
    law = separable_descent.log_time_law(points, np.ones(len(points)))
    assert not law.degenerate
    assert law.rate > 0
    late = flow(points, 60.0)
    np.testing.assert_allclose(late - law.predictor.weights * 60.0, law.offset, atol=2e-5)
    # ŵ is an eigenvector of M with eigenvalue one, and the rate is the least eigenvalue or the gap.
    assert np.min(np.abs(np.asarray(law.eigenvalues) - 1)) < 1e-9
    assert law.rate == pytest.approx(min(float(law.eigenvalues[0]), law.gap - 1), rel=1e-9)


def test_degenerate_data_stay_degenerate():
    assert separable_descent.log_time_law([[1.0, 0.0], [1.0, 1.0]], [1, 1]).degenerate
    # The same with a copy of either point.
    assert separable_descent.log_time_law([[1.0, 0.0], [1.0, 0.0], [1.0, 1.0]], [1, 1, 1]).degenerate
    known = separable_descent.log_time_law([[1.0, 2.0], [1.0, 2.0], [2.0, 0.5]], [1, 1, 1])
    np.testing.assert_allclose(known.offset, [0.13973551, 0.86859088], atol=1e-8)


def singular_kernel_exactly(n, dimension, a, share):
    """Variance for unit noise by mpmath's exponential integrals and quadrature."""
    mpmath.mp.dps = 25
    q, share = mpmath.mpf(dimension) / a, mpmath.mpf(share)

    def integrand(x):
        s = mpmath.exp(x)
        left = 1 - share + share * q * mpmath.expint(q + 1, s)
        return s * s * q * mpmath.expint(q - 1, s) * left ** (n - 1)

    marks = [-60 / min(q, mpmath.mpf(1)), -30, -15, -8, -4, -2, 0, 2, 4.5]
    return float(n * share * mpmath.quad(integrand, sorted(marks)))


@pytest.mark.filterwarnings("ignore::deeplimits.errors.OutsideValidityWarning")
@pytest.mark.parametrize(("singularity", "n"), [
    (1.0, 50), (1.5, 50), (1.5, 1), *(pytest.param(a, 50, marks=pytest.mark.slow) for a in (0.5, 0.999, 2.5)),
])  # fmt: skip
def test_singular_kernels_of_every_strength(singularity, n):
    risk = smoothing.singular_kernel_risk(n, 2, singularity, 1.0, 1.0, 1.0, 0.3)
    assert float(risk.variance) == pytest.approx(singular_kernel_exactly(n, 2, singularity, 0.09), rel=1e-9)
    assert 0 < float(risk.bias) < 0.09


def test_singular_kernels_warn_and_refuse():
    with pytest.warns(OutsideValidityWarning, match="not below d/2"):
        smoothing.singular_kernel_risk(50, 2, 1.5, 1.0, 1.0, 1.0, 0.3)
    with pytest.raises(OutsideValidity, match="not below d/2"):
        smoothing.singular_kernel_constants(2, 1.5, 1.0, 1.0, 1.0)
    good = {"singularity": 0.5, "smoothness": 1.0, "slope": 1.0, "noise_variance": 1.0, "bandwidth": 0.3}
    for name, value in (
        ("singularity", 0.0),
        ("singularity", -1.0),
        ("smoothness", 2.0),
        ("noise_variance", -1.0),
        ("bandwidth", -0.3),
        ("bandwidth", 2.0),
        ("slope", np.nan),
    ):
        with pytest.raises(ParameterError, match=name):
            smoothing.singular_kernel_risk(50, 2, **{**good, name: value})


def test_concentration_of_the_kernel_weights():
    assert float(smoothing.kernel_concentration(1, 2, 0.5)) == pytest.approx(1, rel=1e-12)
    # E ΣK²/(ΣK)² → (q − 1)²/(q(q − 2)N), q = d/a
    far = 10**5 * float(smoothing.kernel_concentration(10**5, 2, 0.5))
    assert far == pytest.approx(9 / 8, rel=1e-3)
    rng = np.random.default_rng(0)
    k = rng.uniform(size=(200_000, 3)) ** (-0.25)
    draws = np.sum(k**2, axis=1) / np.sum(k, axis=1) ** 2
    found = float(smoothing.kernel_concentration(3, 2, 0.5))
    assert abs(found - draws.mean()) < 5 * draws.std() / np.sqrt(len(draws))


@pytest.mark.parametrize(("k", "n", "dimension"), [(1, 1, 3), (1, 2, 7), (5, 50, 2), (1, 10**7, 3), (5, 10**12, 3)])
def test_order_statistics_keep_their_digits(k, n, dimension):
    mpmath.mp.dps = 40
    share = mpmath.mpf(2) / dimension
    exact = mpmath.gamma(k + 1 + share) / mpmath.gamma(k + 1)
    exact *= mpmath.exp(mpmath.loggamma(mpmath.mpf(n) + 1) - mpmath.loggamma(n + 1 + share))
    exact = 1 if k == n else float(exact)
    assert float(smoothing.order_statistic_moment(2.0, k, n, dimension)) == pytest.approx(exact, rel=2e-14)


def test_neighbours_given_the_design_and_at_a_density():
    rng = np.random.default_rng(0)
    place, laplacian = np.array([0.0, 0.0]), 4.0
    errors = []
    for _ in range(4000):
        angle, radius = rng.uniform(0, 2 * np.pi, 50), np.sqrt(rng.uniform(size=50))
        points = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        values = np.sum(points**2, axis=1)
        near = np.argsort(radius)[:5]
        errors.append(values[near].mean())
    mean = float(smoothing.nearest_neighbours_curvature_bias(laplacian, 5, 50, 2))
    assert abs(np.mean(errors) - mean) < 5 * np.std(errors) / np.sqrt(len(errors))
    found = smoothing.nearest_neighbours_risk(points, values, place, 0.0, 5, 2.0)
    assert float(found.bias) == pytest.approx(errors[-1] ** 2)
    assert float(found.variance) == 0.4
    limit = smoothing.order_statistic_limit(1.0, 3, 10**8, 3, 0.7)
    # A ball in which the density is 0.7: n·0.7·V points of the unit ball.
    exact = smoothing.order_statistic_moment(1.0, 3, round(10**8 * 0.7 * smoothing.ball_volume(3)), 3)
    assert float(limit) == pytest.approx(float(exact), rel=1e-7)
    for call in (
        lambda: smoothing.order_statistic_moment(2.0, 0, 5, 2),
        lambda: smoothing.order_statistic_moment(2.0, 6, 5, 2),
        lambda: smoothing.order_statistic_moment(2.0, 1, 5, 0),
    ):
        with pytest.raises(ParameterError):
            call()


def test_ridgeless_risks_refuse_and_know_the_noiseless_threshold():
    for call in (
        lambda: ridgeless.ridgeless_risk(-1.0, 1.0, 1.0),
        lambda: ridgeless.ridgeless_risk(0.5, 1.0, -1.0),
        lambda: ridgeless.ridgeless_risk(0.5, -1.0, 1.0),
        lambda: ridgeless.ridgeless_finite_sample_risk(20.5, 10, 1.0, 1.0),
        lambda: ridgeless.ridgeless_training_error(0.5, -1.0),
        lambda: ridge.ridge_risk(np.inf, population([1.0]), 2.0, 1.0, 1.0),
        lambda: ridge.ridge_risk(-1.0, population([1.0]), 2.0, 1.0, 1.0),
    ):
        with pytest.raises(ParameterError):
            call()
    assert float(ridgeless.ridgeless_risk(1.0, 1.0, 0.0).variance) == 0
    assert np.isinf(float(ridgeless.ridgeless_risk(1.0, 1.0, 0.1).variance))


@pytest.mark.parametrize("gamma", [1 + 1e-9, 1 - 1e-9, 1 + 1e-6])
def test_ridge_at_zero_beside_the_threshold(gamma):
    found = ridge.ridge_risk(0.0, population([1.0]), gamma, 2.0, 1.0)
    exact = ridgeless.ridgeless_risk(gamma, 2.0, 1.0)
    assert float(found.variance) == pytest.approx(float(exact.variance), rel=1e-13)
    assert float(found.bias) == pytest.approx(float(exact.bias), rel=1e-13, abs=1e-15)


def test_risk_given_the_design_and_its_ablation():
    rng = np.random.default_rng(0)
    for n, p in ((8, 5), (5, 8)):
        x, beta, point = rng.standard_normal((n, p)), rng.standard_normal(p), rng.standard_normal(p)
        root = rng.standard_normal((p, p))
        sigma = root @ root.T
        noise = rng.standard_normal((20_000, n))
        wrong = (beta @ x.T + noise) @ np.linalg.pinv(x).T - beta
        risks = np.einsum("sp,pq,sq->s", wrong, sigma, wrong)
        found = ridgeless.design_risk(x, beta, 1.0, covariance=sigma)
        assert abs(float(found.total) - risks.mean()) < 5 * risks.std() / np.sqrt(len(risks))
        parts = ridgeless.ablation(x, beta, noise[0], point)
        assert float(parts.error) == pytest.approx(float(wrong[0] @ point), rel=1e-9)
    assert float(ridgeless.ridgeless_finite_sample_norm(40, 20, 2.0, 1.0)) == pytest.approx(2 + 20 / 19)


def test_gradient_methods_refuse_what_is_no_time():
    x, y, start = [[1.0, 2.0], [0.0, 1.0]], [1.0, 2.0], [0.0, 0.0]
    # Lists are welcome.
    assert least_squares.closest_minimizer(x, y, start).shape == (2,)
    for call in (
        lambda: least_squares.gradient_descent(x, y, start, 0.1, -3),
        lambda: least_squares.gradient_descent(x, y, start, 0.1, 2.5),
        lambda: least_squares.gradient_flow(x, y, start, -3.0),
        lambda: least_squares.gradient_flow(x, [1.0, np.nan], start, 3.0),
        lambda: least_squares.gradient_flow(x, [1.0], start, 3.0),
        lambda: noisy_descent.langevin_variance(0.1, 1.0, -1.0),
        lambda: noisy_descent.stationary_variance(0.1, 1.0, -1.0),
        lambda: noisy_descent.temperature(0.1, -1.0),
    ):
        with pytest.raises(ParameterError):
            call()


def test_ridge_flow_at_the_end_of_training():
    """t = ∞ was refused; without ridge it is the solution closest to the start, also for dependent samples."""
    x, y = np.array([[1.0, 2.0, 0.0, 1.0], [0.0, 1.0, 1.0, 3.0], [0.0, 1.0, 1.0, 3.0]]), [1.0, 2.0, 2.0]
    start = [1.0, 0.0, 0.0, 0.0]
    found = gradient_flow.ridge_flow(x, y, 0.0, [50.0, np.inf], start=start)
    np.testing.assert_allclose(found[1], np.array([31, -8, 12, 26]) / 41, atol=1e-14)
    np.testing.assert_allclose(found[0], found[1], atol=1e-9)
    ridge = np.linalg.solve(x.T @ x / 3 + 0.3 * np.eye(4), x.T @ np.array(y) / 3)
    np.testing.assert_allclose(gradient_flow.ridge_flow(x, y, 0.3, np.inf, start=start), ridge, atol=1e-14)


def test_late_times_do_not_overflow():
    found = gradient_flow.early_stopped_risk(1e160, 0.5, 1.0, 1.0)
    assert float(found.variance) == pytest.approx(1, rel=1e-10)
    assert float(found.bias) == 0


def test_inequalities_for_normal_matrices_and_nothing_else():
    nilpotent = [[0.0, 1.0], [0.0, 0.0]]
    with pytest.raises(OutsideValidity, match="not normal"):
        basic.hoffman_wielandt(nilpotent, np.zeros((2, 2)))
    rng = np.random.default_rng(0)
    for _ in range(20):
        # Rotations are normal, with complex eigenvalues.
        one, two = (np.linalg.qr(rng.standard_normal((4, 4)))[0] for _ in range(2))
        left, right = basic.hoffman_wielandt(one, two)
        assert float(left) <= float(right) * (1 + 1e-12)
        eigenvalues = np.linalg.eigvals(two)
        best = min(
            np.sum(np.abs(np.linalg.eigvals(one) - eigenvalues[list(order)]) ** 2)
            for order in __import__("itertools").permutations(range(4))
        )
        assert float(left) == pytest.approx(best, rel=1e-10)
    for call in (
        lambda: basic.bernoulli_lower_tail(-1.0, 10),
        lambda: basic.bernoulli_lower_tail(0.5, 0),
        lambda: basic.weyl([1.0, 2.0], [1.0, 2.0]),
        lambda: basic.burkholder(1.0),
    ):
        with pytest.raises(ParameterError):
            call()


def test_burkholder_by_enumeration():
    # Every martingale of ±c_k signs over six steps: ‖M‖_p lies between the two multiples of ‖S‖_p.
    c = np.array([1.0, 0.5, 2.0, 0.1, 1.5, 0.7])
    signs = np.array(np.meshgrid(*[[-1, 1]] * 6)).reshape(6, -1).T
    for p in (1.5, 2.0, 4.0):
        size = np.mean(np.abs(signs @ c) ** p) ** (1 / p)
        square = np.sqrt(np.sum(c**2))
        found = basic.burkholder(p)
        assert float(found.lower) * square <= size * (1 + 1e-12)
        assert size <= float(found.upper) * square * (1 + 1e-12)


def test_features_of_huge_inputs_are_signs():
    from deeplimits.theory.regression import feature_regression

    x = np.array([[1.0, 0.2], [-0.4, 1.0], [0.3, -0.8]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        huge = feature_regression(1e6 * x, np.ones(3), 1e6 * x, np.ones(3), activation="tanh")
    unit = x / np.linalg.norm(x, axis=1)[:, None]
    # E sign(u) sign(v) = (2/π) arcsin ρ
    exact = np.linalg.eigvalsh(2 / np.pi * np.arcsin(np.clip(unit @ unit.T, -1, 1)))
    np.testing.assert_allclose(huge.values, exact, atol=3e-6)


def test_the_contour_begins_where_the_integrals_do():
    found, other = (
        by(0.0, 0.5, 1.0, start=0.0)
        for by in (mixture_contour.classification_dynamics_by_contour, mixture_dynamics.classification_dynamics)
    )
    np.testing.assert_allclose([float(part) for part in found], [float(part) for part in other], rtol=1e-12)


def test_lists_of_eigenvalues_are_populations():
    """They were AttributeErrors: 'list' object has no attribute 'eigenvalues', or 'values'."""
    given = population([1.0, 4.0])
    one, other = (ridge.ridge_risk(0.3, law, 2.0, 1.0, 0.5) for law in (given, [1.0, 4.0]))
    assert float(one.total) == float(other.total)
    assert ridge.optimal_ridge([1.0, 4.0], 2.0, 1.0, 0.5) == ridge.optimal_ridge(given, 2.0, 1.0, 0.5)
    assert ridge.least_effective_ridge([1.0], 4.0) == pytest.approx(1.0)
    found = training_risk.flow_risk(1.3, [1.0], 1.5, 1.0, 1.0)
    assert float(found.bias) == pytest.approx(0.4549144064, rel=1e-9)
    assert float(effective_ridge(0.0, [1.0, 4.0], 2.0)) == pytest.approx(2.0)
    assert float(equivalents.resolvent_equivalent(0.4, 1.0, [1.0, 3.0], 1.5)) == pytest.approx(1.5658825475, rel=1e-9)
    for call in (
        lambda: ridge.ridge_risk(0.3, [1.0, -4.0], 2.0, 1.0, 0.5),
        lambda: ridge.ridge_risk(0.3, "white", 2.0, 1.0, 0.5),
        lambda: effective_ridge(0.3, [[1.0, 4.0]], 2.0),
        lambda: effective_ridge(0.3, [1.0, -4.0], 2.0),
    ):
        with pytest.raises(ParameterError):
            call()
