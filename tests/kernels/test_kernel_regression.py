"""Regression with kernels, against matrix functions, scikit-learn and the formula sheets' values."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.kernel_ridge import KernelRidge

from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.models.architectures import FullyConnected
from deeplimits.theory.kernels import InfiniteWidth, gaussian_process, rkhs, training, two_layer_kernels

X = np.array([[1.0, 0.5, -0.3], [0.2, -1.0, 0.7], [-0.6, 0.4, 1.1]])
Y = np.array([1.0, -1.0, 0.5])
NEW = np.array([[0.5, 0.5, 0.5]])


@pytest.fixture(scope="module")
def problem():
    """A random kernel on training and new points, several outputs, a start."""
    rng = np.random.default_rng(0)
    features = rng.standard_normal((9, 12)) / 3
    return (
        features[:6],
        features[6:],
        rng.standard_normal((6, 2)),
        rng.standard_normal((6, 2)),
        rng.standard_normal((3, 2)),
    )


@pytest.mark.parametrize("time", [0.0, 0.3, 7.0])
def test_gradient_flow_is_a_matrix_exponential(problem, time):
    seen, new, y, start, test_start = problem
    k = seen @ seen.T
    found = training.gradient_flow(k, y, time, start=start, cross=new @ seen.T, test_start=test_start)
    decay = expm(-k * time / 6)
    np.testing.assert_allclose(found.train, y + decay @ (start - y), atol=1e-12)
    change = new @ seen.T @ np.linalg.solve(k, (np.eye(6) - decay) @ (y - start))
    np.testing.assert_allclose(found.test, test_start + change, atol=1e-11)


@pytest.mark.parametrize("steps", [0, 1, 2, 9])
@pytest.mark.parametrize("share", [0.3, 1.0, 1.7])
def test_gradient_descent_step_by_step(problem, steps, share):
    seen, new, y, start, test_start = problem
    k = seen @ seen.T
    # share = 1 makes one factor 1 − ηλ/n exactly zero, share = 1.7 makes one negative
    eta = share * 6 / np.linalg.eigvalsh(k)[-1]
    f, g = start.copy(), test_start.copy()
    for _ in range(steps):
        residual = y - f
        f, g = f + eta / 6 * k @ residual, g + eta / 6 * new @ seen.T @ residual
    found = training.gradient_descent(k, y, eta, steps, start=start, cross=new @ seen.T, test_start=test_start)
    np.testing.assert_allclose(found.train, f, atol=1e-11)
    np.testing.assert_allclose(found.test, g, atol=1e-11)


def test_many_times_at_once_and_the_end_of_training(problem):
    seen, new, y, start, _ = problem
    k, cross = seen @ seen.T, new @ seen.T
    found = training.gradient_flow(k, y, [0.0, 1.0, np.inf], start=start, cross=cross)
    assert found.train.shape == (3, 6, 2)
    np.testing.assert_allclose(found.train[0], start, atol=1e-13)
    np.testing.assert_allclose(found.train[2], y, atol=1e-13)
    np.testing.assert_allclose(found.test[2], cross @ np.linalg.solve(k, y - start), atol=1e-10)
    ended = training.gradient_descent(k, y, 0.1, np.inf, start=start, cross=cross)
    np.testing.assert_allclose(ended.test, found.test[2], atol=1e-12)


def test_singular_kernels_keep_their_null_space():
    k = np.ones((2, 2))
    found = training.gradient_flow(k, [1.0, 0.0], np.inf, cross=[[1.0, 1.0]])
    np.testing.assert_allclose(found.train, [0.5, 0.5], atol=1e-14)
    np.testing.assert_allclose(found.test, [0.5], atol=1e-14)
    # Nothing moves without a kernel, however long one waits; a new point sees t/n times the residual.
    np.testing.assert_allclose(training.gradient_flow(np.zeros((2, 2)), [1.0, 0.0], 5.0).train, 0.0)
    stepped = training.gradient_descent(k, [1.0, 0.0], 0.7, 40, cross=[[1.0, 1.0]])
    np.testing.assert_allclose(stepped.test, [0.5], atol=1e-12)


def test_small_eigenvalues_lose_no_digits():
    tiny = 1e-13
    found = training.gradient_flow(np.diag([1.0, tiny]), [0.0, 1.0], 3.0, cross=[[0.0, tiny]])
    np.testing.assert_allclose(found.test, [3 * tiny / 2], rtol=1e-10)


@pytest.mark.parametrize(("time", "mean", "variance"), [
    (np.inf, 0.81440676081494, 0.03932030261786), (5.0, 0.59050307208693, 0.048112740371786)])  # fmt: skip
def test_trained_ensemble_reference(time, mean, variance):
    net = InfiniteWidth(FullyConnected(2, "erf", bias_variance=0.09))
    nngp, ntk = training.blocks(net.nngp, X, NEW), training.blocks(net.ntk, X, NEW)
    np.testing.assert_allclose(
        np.linalg.eigvalsh(ntk.train), [0.6668837572921, 1.0187811667255, 1.5131192895928], rtol=1e-12
    )
    found = training.trained_ensemble(nngp, ntk, Y, time)
    np.testing.assert_allclose([found.mean[0], found.covariance[0, 0]], [mean, variance], rtol=1e-12)
    prior = training.trained_ensemble(nngp, ntk, Y, 0.0)
    np.testing.assert_allclose(prior.covariance, nngp.test, rtol=1e-14)
    if time == 5.0:
        # Many small steps are the flow.
        steps = training.trained_ensemble(nngp, ntk, Y, 5000, step=0.001)
        np.testing.assert_allclose([steps.mean[0], steps.covariance[0, 0]], [mean, variance], rtol=2e-3)


@pytest.mark.parametrize(("times", "step"), [([0.0, 5.0, np.inf], None), ([0, 7, 50], 0.1)])
def test_an_ensemble_at_several_times_is_that_at_each(times, step):
    net = InfiniteWidth(FullyConnected(2, "erf", bias_variance=0.09))
    new = np.concatenate([NEW, 2 * NEW])
    nngp, ntk = training.blocks(net.nngp, X, new), training.blocks(net.ntk, X, new)
    for targets in (Y, np.stack([Y, np.ones(len(Y))], axis=1)):
        found = training.trained_ensemble(nngp, ntk, targets, times, step=step)
        each = [training.trained_ensemble(nngp, ntk, targets, time, step=step) for time in times]
        np.testing.assert_allclose(found.mean, np.stack([one.mean for one in each]), rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(found.covariance, np.stack([one.covariance for one in each]), rtol=1e-12, atol=1e-15)


def test_no_time_is_called_none():
    net = InfiniteWidth(FullyConnected(1, "erf"))
    nngp, ntk = training.blocks(net.nngp, X, NEW), training.blocks(net.ntk, X, NEW)
    with pytest.raises(ParameterError, match="time = None is not allowed"):
        training.trained_ensemble(nngp, ntk, Y, None)


def test_nngp_posterior_reference():
    net = InfiniteWidth(FullyConnected(2, "erf", bias_variance=0.09))
    found = gaussian_process.posterior(training.blocks(net.nngp, X, NEW), Y, 0.1)
    np.testing.assert_allclose(
        [found.mean[0], found.covariance[0, 0]], [0.61677388678611, 0.090544098120587], rtol=1e-12
    )


def test_toy_set_of_the_two_layer_kernel():
    j = np.arange(1, 4)
    x = np.cos(np.arange(1, 7)[:, None] * j + 0.3 * j) / np.sqrt(3)
    new = np.sin(0.7 * np.arange(1, 5)[:, None] * j + 0.1 * j) / np.sqrt(3)
    y = np.array([1.0, -1, 1, -1, 1, -1])
    kernel = two_layer_kernels.two_layer_ntk("relu", x)
    found = training.gradient_flow(kernel, y, 10.0, cross=two_layer_kernels.two_layer_ntk("relu", new, x))
    assert abs(float(np.mean((found.train - y) ** 2)) - 0.04707156892) < 1e-10
    np.testing.assert_allclose(found.test, [-0.6196227639, 0.6351248259, 0.0249419053, -0.4289809732], atol=1e-9)
    form = two_layer_kernels.nonlinear_quadratic_form("relu", x)
    linear = two_layer_kernels.nonlinear_quadratic_form("identity", x)
    np.testing.assert_allclose(
        [form.mean, linear.mean, linear.linear_deviation], [0.3070254264, 0.6140508527, 0.5164548865], atol=1e-10
    )


def test_scikit_learn_agrees():
    rng = np.random.default_rng(1)
    x, new, y = rng.standard_normal((15, 2)), rng.standard_normal((4, 2)), rng.standard_normal(15)
    rbf = RBF(0.8)
    process = GaussianProcessRegressor(rbf, alpha=0.3, optimizer=None).fit(x, y)
    mean, covariance = process.predict(new, return_cov=True)
    prior = training.Blocks(*(jnp.asarray(part) for part in (rbf(x), rbf(new, x), rbf(new))))
    found = gaussian_process.posterior(prior, y, 0.3)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-10)
    np.testing.assert_allclose(found.covariance, covariance, atol=1e-12)
    np.testing.assert_allclose(found.log_evidence, process.log_marginal_likelihood_value_, rtol=1e-12)
    np.testing.assert_allclose(gaussian_process.log_evidence(rbf(x), y, 0.3), found.log_evidence, rtol=1e-14)
    ridge = KernelRidge(alpha=0.3, kernel="precomputed").fit(rbf(x), y)
    np.testing.assert_allclose(gaussian_process.kernel_ridge(rbf(x), y, 0.3), ridge.dual_coef_, rtol=1e-9)
    np.testing.assert_allclose(gaussian_process.kernel_ridge(rbf(x), y, 0.3, cross=rbf(new, x)), mean, rtol=1e-10)
    slope = jax.grad(lambda noise: gaussian_process.log_evidence(rbf(x), y, noise))(0.3)
    low, high = (float(gaussian_process.log_evidence(rbf(x), y, 0.3 + step)) for step in (-1e-5, 1e-5))
    assert abs(float(slope) - (high - low) / 2e-5) < 1e-6


def test_ridge_without_penalty_has_the_least_norm():
    rng = np.random.default_rng(2)
    features = rng.standard_normal((5, 3))
    kernel, y = features @ features.T, features @ rng.standard_normal(3)
    np.testing.assert_allclose(gaussian_process.kernel_ridge(kernel, y, 0.0), np.linalg.pinv(kernel) @ y, atol=1e-9)
    # Primal and dual: (ΦΦᵀ + λ)⁻¹ΦY = Φ(ΦᵀΦ + λ)⁻¹Y
    dual = features.T @ gaussian_process.kernel_ridge(kernel, y, 0.7)
    np.testing.assert_allclose(dual, np.linalg.solve(features.T @ features + 0.7 * np.eye(3), features.T @ y))


def test_hilbert_space():
    x = (np.arange(400) + 1) / 400
    kernel = np.minimum(x[:, None], x)
    # ‖f‖² = ∫ f'² for min(x, y): x(1 − x) has 1/3, up to the square of the spacing
    assert abs(float(rkhs.least_norm_interpolant(kernel, x * (1 - x)).squared_norm) - 1 / 3) < 1e-5
    assert abs(float(rkhs.least_norm_interpolant(kernel, x).squared_norm) - 1) < 1e-9
    found = rkhs.least_norm_interpolant(kernel, x)
    np.testing.assert_allclose(rkhs.rkhs_squared_norm(kernel, found.coefficients), found.squared_norm, rtol=1e-8)
    assert np.isinf(float(rkhs.mercer_squared_norm([1.0, 1.0], [1.0, 0.0])))
    with pytest.raises(OutsideValidity, match="no function of this space"):
        rkhs.least_norm_interpolant(np.ones((2, 2)), [1.0, 2.0])


@pytest.mark.parametrize(("call", "error", "words"), [
    (lambda: training.gradient_flow([[1.0, 2.0], [2.0, 1.0]], [1.0, 0.0], 1.0), OutsideValidity, "eigenvalue -1"),
    (lambda: training.gradient_flow([[1.0, 0.5], [0.2, 1.0]], [1.0, 0.0], 1.0), ParameterError, "not symmetric"),
    (lambda: training.gradient_flow(np.eye(2), [1.0, 0.0], -1.0), ParameterError, "time"),
    (lambda: training.gradient_flow(np.eye(2), [1.0], 1.0), ParameterError, "targets"),
    (lambda: training.gradient_flow(np.eye(2), [1.0, np.nan], 1.0), ParameterError, "targets"),
    (lambda: training.gradient_flow(np.eye(2), [1.0, 0.0], 1.0, cross=np.eye(3)), ParameterError, "cross"),
    (lambda: training.gradient_flow(np.eye(2), [1.0, 0.0], 1.0, test_start=[1.0]), ParameterError, "test_start"),
    (lambda: training.gradient_flow(np.full((2, 2), np.inf), [1.0, 0.0], 1.0), ParameterError, "must be finite"),
    (lambda: training.gradient_flow(np.ones(2), [1.0, 0.0], 1.0), ParameterError, "square"),
    (lambda: training.gradient_descent(np.eye(2), [1.0, 0.0], 4.0, 3), OutsideValidity, "2n/λ_max = 4"),
    (lambda: training.gradient_descent(np.eye(2), [1.0, 0.0], 0.0, 3), ParameterError, "step"),
    (lambda: gaussian_process.log_evidence(np.ones((2, 2)), [1.0, 0.0], 0.0), OutsideValidity, "not positive definite"),
    (lambda: gaussian_process.kernel_ridge(np.eye(2), [1.0, 0.0], -1.0), ParameterError, "ridge"),
    (lambda: gaussian_process.kernel_ridge(-np.eye(2), [1.0, 0.0], 0.0), OutsideValidity, "positive semidefinite"),
    (lambda: rkhs.mercer_squared_norm([1.0], [-1.0]), ParameterError, "eigenvalues"),
])  # fmt: skip
def test_bad_input_is_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()
