"""What optimizers do late in training, against what the theory of implicit bias says they must do."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import load_digits

from deeplimits.ensembles import data, estimators, flows, trainers
from deeplimits.measure import fluctuation_dissipation as fd
from deeplimits.models import designs
from deeplimits.statistics import LEVEL
from deeplimits.theory.bias import diagonal_networks, quadratic_model, separable_descent
from deeplimits.theory.bias.support_vectors import hard_margin


@pytest.fixture(scope="module")
def random_data():
    """Separable random data whose law is approached fast enough to be seen at t = e⁴⁰ (q = 0.45)."""
    rng = np.random.default_rng(7)
    x = rng.standard_normal((5, 80))
    y = np.where(x[:, 0] > 0, 1.0, -1.0)
    law = separable_descent.log_time_law(x, y)
    assert law.rate > 0.4
    return jnp.asarray(x * y[:, None]), law


@pytest.fixture(scope="module")
def flow_in_log_time():
    return jax.jit(flows.separable_flow, static_argnames="loss")


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
def test_residual_vector_at_late_times(random_data, flow_in_log_time, loss):
    signed, law = random_data
    times = jnp.array([10.0, 20.0, 30.0, 40.0])
    path = flow_in_log_time(signed, jnp.zeros(80), times, loss=loss)
    multipliers = jnp.asarray(law.predictor.multipliers)
    residuals = separable_descent.in_support_span(
        signed, multipliers, path - times[:, None] * law.predictor.weights[None, :]
    )
    errors = np.linalg.norm(residuals - law.offset[None, :], axis=1)
    assert errors[-1] < 1e-6
    # The deviation decays like t^{−q} until it meets the integrator's precision.
    assert np.log(errors[1] / errors[2]) / 10 == pytest.approx(law.rate, rel=1e-3)
    late = jnp.exp(times[-1] + flows.log_loss_along(signed, path[-1], loss))
    assert float(late) == pytest.approx(law.loss_constant, rel=1e-6)


def test_residual_of_the_sheet_decays_at_its_rate(flow_in_log_time):
    signed = jnp.array([[1.0, 2], [2, 0.5], [3, 3], [4, 1]])
    law = separable_descent.log_time_law(signed, np.ones(4))
    times = jnp.array([20.0, 40.0, 120.0])
    path = flow_in_log_time(signed, jnp.zeros(2), times, loss="exponential")
    errors = np.linalg.norm(path - times[:, None] * law.predictor.weights[None, :] - law.offset[None, :], axis=1)
    assert np.log(errors[0] / errors[1]) / 20 == pytest.approx(10 / 49, rel=0.02)
    assert errors[1] < 1e-3
    assert errors[2] < 1e-9


def test_degenerate_data_follow_their_closed_form(flow_in_log_time):
    signed, times = jnp.array([[1.0, 0.0], [1.0, 1.0]]), np.array([1.0, 10.0, 40.0, 200.0])
    path = flow_in_log_time(signed, jnp.zeros(2), jnp.asarray(times), loss="exponential")
    # The integrator's variable is log(1 + t).
    exact = separable_descent.degenerate_flow(np.where(times < 30, np.log(np.expm1(times)), times))
    np.testing.assert_allclose(path, exact, rtol=1e-9)
    # The residual grows like log log t; no offset exists.
    assert float(path[-1, 1]) == pytest.approx(np.log(200.0), abs=0.05)


@pytest.mark.slow
def test_gradient_descent_within_the_band_of_its_law(random_data):
    signed, law = random_data
    step = 0.5 * separable_descent.largest_separable_step(signed)
    separable_descent.check_step(signed, step)
    gradient = jax.grad(lambda w: jnp.mean(jax.nn.softplus(-signed @ w)))

    @jax.jit
    def run(w):
        return jax.lax.fori_loop(0, 100_000, lambda _, w: w - step * gradient(w), w)

    w = run(jnp.zeros(80))
    log_time = np.log(step * 100_000)
    predictor = jnp.asarray(law.predictor.weights)
    # w_k = ŵ log(ηk) + w̃ up to (ηk)^{−q} …
    np.testing.assert_allclose(w, predictor * log_time + law.offset, atol=3 * np.exp(-law.rate * log_time))
    # … so the direction is off by C/log t, with corrections of relative order 1/log t.
    distance = jnp.linalg.norm(w / jnp.linalg.norm(w) - predictor / jnp.linalg.norm(predictor))
    stated = separable_descent.direction_error(predictor, law.offset, log_time)
    assert abs(float(distance / stated) - 1) < 1.5 * np.linalg.norm(law.offset) / (np.linalg.norm(predictor) * log_time)


def test_interior_points_do_not_cycle():
    """Eight points in five dimensions on which a full second-order correction cycles."""
    key = jax.random.split(jax.random.fold_in(jax.random.key(101), 5), 2000)[1955]
    x = data.independent_entries(jax.random.split(key)[0], 8, 5)
    signed = (x * jnp.where(x[:, :1] > 0, 1.0, -1.0)).at[:, 0].add(1.0)
    weights, multipliers = estimators.max_margin(signed)
    stated = hard_margin(signed, np.ones(8))
    np.testing.assert_allclose(weights, stated.weights, atol=1e-10)
    np.testing.assert_allclose(multipliers, stated.multipliers, atol=1e-9)


def test_diagonal_networks_from_tiny_to_large_scales():
    rng = np.random.default_rng(1)
    x, y, start = jnp.asarray(rng.standard_normal((4, 9))), jnp.asarray(rng.standard_normal(4)), jnp.ones(9)
    limit = jax.jit(lambda alpha: flows.diagonal_network_flow(x, y, alpha, start, 2, jnp.ones(1)).limit)
    for alpha in (1e-3, 1e-2, 0.1, 1.0, 10.0):
        stated = diagonal_networks.diagonal_interpolant(x, y, alpha).beta
        np.testing.assert_allclose(limit(jnp.asarray(alpha)), stated, atol=1e-6 * float(jnp.max(jnp.abs(stated))))


def test_quadratic_model_off_interpolation_drifts_as_predicted():
    # One feature direction, two contradicting labels: the perpendicular part grows linearly in time.
    phi, y, start = np.array([[1.0, 1.0], [0.0, 0.0]]), np.array([0.0, 1.0]), np.array([0.3, 0.2])
    psi = np.array([[[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.5], [0.5, 0.0]]])
    times = [1.0, 10.0, 20.0]
    stated = np.asarray(quadratic_model.first_order_path(phi, psi, y, start, times))

    def flow(epsilon):
        def loss(theta):
            return jnp.sum((phi.T @ theta + epsilon / 2 * jnp.einsum("p,apq,q->a", theta, psi, theta) - y) ** 2) / 2

        return flows.gradient_flow(loss, jnp.asarray(start), jnp.asarray(times), rtol=1e-12, stiff=False)

    measured = (flow(1e-4) - flow(-1e-4)) / 2e-4
    np.testing.assert_allclose(measured, stated, rtol=1e-5, atol=1e-6)
    growth = np.diff(stated[:, 1]) / np.diff(times)
    assert abs(growth[1]) > 0.05


def threshold(blocks: int = fd.BLOCKS) -> float:
    """What a difference studentized by that many blocks exceeds by chance with the probability allowed to one test."""
    return stats.t.isf(LEVEL / 2, blocks - 1)


@pytest.mark.slow
def test_fluctuation_dissipation_of_a_linear_model():
    x, y = designs.polynomial_regression(10, 3)
    centre, step = jnp.linalg.lstsq(x, y)[0], jnp.asarray(0.2)

    def mean_loss(theta):
        return jnp.mean((x @ theta - y) ** 2) / 2

    def look(theta, batch_gradient):
        full, bent = jax.jvp(jax.grad(mean_loss), (theta,), (batch_gradient,))
        return fd.observe(theta, full, batch_gradient, step, centre, hessian_times_batch_gradient=bent)

    @jax.jit
    @jax.vmap
    def chains(key):
        return trainers.stochastic_gradient_descent(
            key,
            lambda theta: (x @ theta - y) ** 2 / 2,
            centre,
            step,
            32_000,
            2,
            sampling="without replacement",
            observe=look,
        ).observed

    keys = jax.random.split(jax.random.key(0), 12)
    found = fd.report(jax.tree.map(lambda part: np.asarray(part)[:, 2000:], chains(keys)))
    assert found.second is not None
    for relation in found:
        assert abs(relation.z) < threshold(12 * fd.BLOCKS)
        # A wrong factor of one twentieth would be seen.
        assert abs(relation.left - 1.05 * relation.right) > threshold(12 * fd.BLOCKS) * relation.difference.error


class DigitsRun(NamedTuple):
    """What was seen at every step of a stationary run."""

    sides: fd.Observation
    next_order: np.ndarray
    """−(η²/6)D³L[∇L_B, ∇L_B, ∇L_B]"""
    loss: np.ndarray
    square: np.ndarray
    """‖θ‖²"""


@pytest.fixture(scope="module")
def digits_run():
    """A small network on digits at stationarity: 64-8-10, tanh, weight decay, batches of 10 of 200 samples."""
    images, labels = load_digits(return_X_y=True)
    x, targets = jnp.asarray(images[:200] / 16 - 0.3), jnp.asarray(np.eye(10)[labels[:200]])
    sizes = (64 * 8, 8, 80, 10)

    def losses(theta):
        w, b, v, c = jnp.split(theta, np.cumsum(sizes)[:-1])
        scores = jnp.tanh(x @ w.reshape(64, 8) + b) @ v.reshape(8, 10) + c
        return -jnp.sum(targets * jax.nn.log_softmax(scores), axis=1) + 0.02 * jnp.sum(theta**2)

    def mean_loss(theta):
        return jnp.mean(losses(theta))

    step = jnp.asarray(0.2)

    def train(key, theta, steps, observe):
        return trainers.stochastic_gradient_descent(
            key, losses, theta, step, steps, 10, sampling="with replacement", observe=observe
        )

    @jax.jit
    def settle(key):
        theta = 0.2 * jax.random.normal(key, (sum(sizes),))
        first, second, third = jax.random.split(key, 3)
        theta, _ = train(first, theta, 5000, lambda theta, gradient: None)
        theta, path = train(second, theta, 3000, lambda theta, gradient: theta)
        # What is recorded later should have forgotten the path that gave the centre.
        theta, _ = train(third, theta, 3000, lambda theta, gradient: None)
        return theta, jnp.mean(path, axis=0)

    @jax.jit
    def record(key, theta, centre):
        def look(theta, batch_gradient):
            def bent(theta):
                return jax.jvp(jax.value_and_grad(mean_loss), (theta,), (batch_gradient,))

            ((loss, full), (_, product)), (_, (_, twice_bent)) = jax.jvp(bent, (theta,), (batch_gradient,))
            sides = fd.observe(theta, full, batch_gradient, step, centre, hessian_times_batch_gradient=product)
            return DigitsRun(sides, -(step**2) / 6 * twice_bent @ batch_gradient, loss, theta @ theta)

        return train(key, theta, 40_000, look).observed

    seen = record(jax.random.key(1), *settle(jax.random.key(0)))
    return jax.tree.map(np.asarray, seen)


@pytest.mark.slow
def test_the_run_on_digits_is_stationary(digits_run):
    for series in (digits_run.loss, digits_run.square):
        blocks = series[: len(series) // 32 * 32].reshape(32, -1).mean(axis=1)
        assert stats.ttest_ind(blocks[:16], blocks[16:]).pvalue > LEVEL


# Blocks shorter than the run's memory would understate the error.
@pytest.mark.slow
@pytest.mark.parametrize("blocks", [16, 32, 64])
def test_fluctuation_dissipation_of_a_network_on_digits(digits_run, blocks):
    """⟨L(θ − η∇L_B) − L(θ)⟩ = 0 gives ⟨‖∇L‖²⟩ = (η/2)⟨∇L_B·H∇L_B⟩ − (η²/6)⟨D³L[∇L_B, ∇L_B, ∇L_B]⟩ + O(η³)."""
    sides = digits_run.sides
    both_orders = sides._replace(curvature_side=sides.curvature_side + digits_run.next_order)
    first, leading = fd.report(sides, blocks=blocks)
    _, second = fd.report(both_orders, blocks=blocks)
    assert leading is not None
    assert second is not None
    for relation in (first, leading, second):
        assert abs(relation.z) < threshold(blocks)
        # A wrong factor of one twentieth would be seen.
        assert abs(relation.left - 1.05 * relation.right) > threshold(blocks) * relation.difference.error
    # The second order is half a percent of the first at η = 0.2, which is about the standard error.
    assert 0 < second.right - leading.right < 0.01 * leading.right
