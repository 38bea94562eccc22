"""Batches, concentration, laziness over data, hypotheses of convergence, times of learning: against other roads."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import minimize

from deeplimits.errors import DeeplimitsError, OutsideValidityWarning
from deeplimits.measure import laziness, laziness_on_data
from deeplimits.models.committees import Overlaps, Task
from deeplimits.theory.two_layer import expected_laziness, mean_field
from deeplimits.theory.two_layer.mean_field import SingleIndex
from deeplimits.theory.two_layer.overlaps import (
    activation_integrals,
    batch_terms,
    concentration,
    mediocrity,
    trajectory,
)


def test_parts_of_a_batch_against_gradients_in_weight_space():
    """One step of linear neurons with b = 4, d = 8: E ΔQ by the moments of Gaussian inputs, 200,000 draws."""
    d, b, gamma = 8, 4, 3.0
    rng = np.random.default_rng(0)
    w, teacher = rng.normal(size=(2, d)), rng.normal(size=(1, d))
    task = Task(teacher @ teacher.T / d, gamma, activation="identity", batch=b)
    state = Overlaps(w @ teacher.T / d, w @ w.T / d, [1.0, 0.6])
    with pytest.warns(OutsideValidityWarning, match="giant step"):
        parts = batch_terms(task, state, d)
    x = rng.normal(size=(50_000, b, d))
    error = (x @ teacher[0] - x @ w.T @ np.array([1.0, 0.6]) / 2) / np.sqrt(d)
    push = gamma / 2 * np.array([1.0, 0.6])[:, None] * (error[..., None] * x).mean(axis=1)[:, None, :] / np.sqrt(d)
    moved = w + push
    change = np.einsum("nid,njd->nij", moved, moved) / d - w @ w.T / d
    mean, spread = change.mean(axis=0), change.std(axis=0) / np.sqrt(len(x))
    # In time γ/(dp); for ‖x‖²/d, which the limit takes for 1, linear neurons have 1 + 2/d in the variance term.
    stated = gamma / (2 * d) * np.asarray(parts.flow + parts.crossed + (1 + 2 / d) * parts.variance)
    assert np.all(np.abs(mean - stated) < 5 * spread)
    without = gamma / (2 * d) * np.asarray(parts.flow + (1 + 2 / d) * parts.variance)
    assert np.max(np.abs(mean - without) / spread) > 8


def test_concentration_against_the_mean_of_a_maximum():
    """The largest of |N(0, Σ)| by pseudo-random draws; and √(γ/(dp)) in d."""
    task, start = Task([[1.0]], 1.0, 0.3, "identity"), Overlaps([[0.2]], [[0.7]])
    from deeplimits.theory.two_layer.overlaps import covariance_flow

    sigma = np.asarray(covariance_flow(task, start, [0.5, 2.0]).covariance)
    found = np.asarray(concentration(task, start, [0.5, 2.0], 400))
    for one, stated in zip(sigma, found, strict=True):
        drawn = np.abs(np.random.default_rng(1).multivariate_normal(np.zeros(2), one, 100_000)).max(axis=1)
        assert stated * 20 == pytest.approx(drawn.mean(), abs=5 * drawn.std() / 300 + 1e-3 * drawn.mean())


def test_laziness_over_data():
    """One input: the same as before. Many: the block norm by a general minimizer from many starts, the rest by hand."""
    rng = np.random.default_rng(3)
    w, a = jnp.asarray(rng.normal(size=(4, 2))), jnp.asarray([1.0, -1.0, 1.0, 0.5])
    x, y = jnp.asarray(rng.normal(size=(5, 2))), jnp.asarray(rng.normal(size=5))
    one = laziness("tanh", jnp.asarray(0.3), w, a, x[0], y[0])
    assert float(laziness_on_data("tanh", 0.3, w, a, x[:1], y[:1])) == pytest.approx(float(one), rel=1e-9)

    def outputs(theta):
        theta = theta.reshape(4, 3)
        return 0.3 * jnp.tanh(x @ theta[:, 1:].T) @ theta[:, 0]

    theta = jnp.concatenate([a[:, None], w], axis=1).ravel()
    jacobian, hessian = np.asarray(jax.jacfwd(outputs)(theta)), np.asarray(jax.hessian(outputs)(theta))

    def minus(u):
        u = u / np.linalg.norm(u)
        return -np.mean(np.einsum("nij,i,j->n", hessian, u, u) ** 2)

    starts = np.concatenate([rng.normal(size=(20, 12)), np.eye(12)])
    curvature = np.sqrt(-min(minimize(minus, u).fun for u in starts))
    stated = np.sqrt(np.mean((np.asarray(outputs(theta)) - y) ** 2)) * curvature / np.linalg.norm(jacobian, 2) ** 2 * 5
    assert float(laziness_on_data("tanh", 0.3, w, a, x, y)) == pytest.approx(stated, rel=1e-5)


def test_what_global_convergence_asks():
    ring = np.array([[np.cos(t), np.sin(t)] for t in np.linspace(0, 2 * np.pi, 24, endpoint=False)])
    both = mean_field.Particles(np.concatenate([ring, ring]), np.concatenate([np.ones(24), -np.ones(24)]))
    found = mean_field.convergence_conditions(both, "relu")
    assert found.applies
    # Neighbours on the ring are 2π/24 apart, so that no direction is farther than half of that
    assert found.largest_gap == pytest.approx(np.pi / 24, abs=0.02)
    assert not mean_field.convergence_conditions(both, "erf_saad").applies
    assert not mean_field.convergence_conditions(mean_field.Particles(ring), "relu").both_signs
    assert mean_field.convergence_conditions(mean_field.Particles(ring), "relu").largest_gap == pytest.approx(np.pi)


@pytest.mark.parametrize("degree", [0, 1, 2])
def test_times_of_learning(degree):
    """Against Radau with an event, from its own right-hand side."""
    phi, sigma, epsilon = np.array([0.5, 1.0, 0.8]), np.array([0.7, 1.0, 0.6]), 1e-3
    a, powers = np.array([0.6, -0.4, 0.3, -0.1]), np.arange(3)

    def left(y):
        return phi - sigma * ((y[4:] ** powers[:, None]) @ y[:4] / 4)

    def field(t, y):
        a, s = y[:4], y[4:]
        slopes = np.stack([0 * s, 1 + 0 * s, 2 * s])
        pull = sigma * left(y)
        return np.concatenate([pull @ (s ** powers[:, None]) / epsilon, a * (1 - s**2) * (pull @ slopes)])

    def learnt(t, y):
        return abs(left(y)[degree]) - phi[degree] / 2

    learnt.terminal = True
    exact = solve_ivp(
        field, (0, 50), np.concatenate([a, 0 * a]), method="Radau", rtol=1e-10, atol=1e-12, events=learnt
    ).t_events[0][0]
    assert mean_field.learning_time(SingleIndex(phi, sigma, epsilon), a, degree, 50.0) == pytest.approx(exact, rel=1e-6)


def test_the_upper_root_of_the_plateau_is_where_norms_diverge():
    """Q̇ = 4(Q − 3Q²) + 4γ(3Q − 6Q² + 15Q³) on M = 0: from just above it blows up, from below it falls."""
    upper = float(mediocrity(0.05).upper)
    speed = [4 * (q - 3 * q**2) + 0.2 * (3 * q - 6 * q**2 + 15 * q**3) for q in (0.999 * upper, upper, 1.001 * upper)]
    assert speed[0] < 0 < speed[2]
    assert speed[1] == pytest.approx(0, abs=1e-10)
    assert np.isinf(float(mediocrity(0.0).upper))


def test_steps_above_the_critical_one_are_warned_of():
    with pytest.warns(OutsideValidityWarning, match="critical learning rate 4.056"):
        trajectory(Task([[1.0]], 6.0, 0.1), Overlaps([[0.3]], [[1.0]]), [1.0])
    # Just below, and in batches of two, nothing is said: warnings are errors here.
    trajectory(Task([[1.0]], 4.0, 0.1), Overlaps([[0.3]], [[1.0]]), [1.0])
    trajectory(Task([[1.0]], 6.0, 0.1, batch=2), Overlaps([[0.3]], [[1.0]]), [1.0])


@pytest.mark.parametrize(
    ("attempt", "why"),
    [
        (lambda: trajectory(Task([[1.0]]), Overlaps([[0.1]], [[0.5]]), []), "empty"),
        (lambda: activation_integrals("tanh").i2(np.eye(2), 0, 1.0), "index = 1.0"),
        (lambda: expected_laziness("tanh", -5, 0.5, 1.0), "width"),
        (lambda: laziness("relu", 1.0, jnp.ones((3, 2)), jnp.ones(3), jnp.ones(2), jnp.ones(())), "no second"),
        (lambda: laziness("tanh", -1.0, jnp.ones((3, 2)), jnp.ones(3), jnp.ones(2), jnp.ones(())), "scale"),
        (lambda: mean_field.learning_time(SingleIndex([1.0], [1.0], 0.1), [0.0], 3, 1.0), "degrees 0 to 0"),
        (lambda: mean_field.learning_time(SingleIndex([1.0, 1.0], [1.0, 0.0], 0.1), [0.0], 1, 1.0), "never"),
    ],
)
def test_what_is_refused(attempt, why):
    with pytest.raises(DeeplimitsError, match=why):
        attempt()
