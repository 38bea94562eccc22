"""One gradient step: the sheet's numbers, automatic differentiation, dense linear algebra and simulation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize

from deeplimits.ensembles import data, one_step
from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.theory import mixtures

W = [[0.5, -0.3], [0.2, 0.8]]
BETA = [0.6, -0.4]
X = np.array([[1, -0.5, 0.3], [0.2, 0.7, -1.1]]).T
Y = [1.0, -1.0, 0.5]
ROWS = [[np.cos(k * j + k / 2) / 2**0.5 for j in range(1, 5)] for k in range(1, 7)]


def test_gradient_reference_and_automatic_differentiation():
    found = mixtures.first_gradient("tanh", W, BETA, X, Y)
    stated = [[0.1522706753, -0.0494443637], [-0.1051595660, 0.0288737440]]
    np.testing.assert_allclose(found, stated, atol=1e-10)

    def cost(w):
        return jnp.mean((jnp.array(Y) - jnp.tanh(X @ w.T) @ jnp.array(BETA) / 2**0.5) ** 2) / 2

    assert abs(float(cost(jnp.array(W))) - 0.2248244643) < 1e-10
    np.testing.assert_allclose(found, -jax.grad(cost)(jnp.array(W)), rtol=1e-12)


def system(p, seed, teacher="relu", noise=0.3, samples=2.0, neurons=1.5):
    n, width = int(samples * p), int(neurons * p)
    mean = 1 / np.sqrt(2 * np.pi) if teacher == "relu" else 0.0
    numbers = data.gaussian_arrays(jax.random.key(seed), (width, p), (width,), (n, p), (n,), (p,))
    return one_step.step_data(numbers, teacher, jnp.asarray(noise), mean)


def test_the_gradient_is_of_rank_one_up_to_smaller_terms():
    gaps = []
    for p in (80, 240):
        found = []
        for seed in range(3):
            drawn = system(p, seed)
            gradient = np.asarray(one_step.first_step("tanh", drawn))
            part = mixtures.rank_one_gradient("tanh", drawn.output, drawn.x, drawn.y)
            root = len(drawn.output) ** 0.5
            found.append((root * np.linalg.norm(gradient - part.matrix, 2), root * np.linalg.norm(gradient, 2)))
            np.testing.assert_allclose(part.singular_value, np.linalg.norm(part.matrix, 2), rtol=1e-10)
        gaps.append(np.mean(found, axis=0))
    slope = np.log(gaps[1][0] / gaps[0][0]) / np.log(3)
    assert -0.7 < slope < -0.3, gaps
    # The gradient itself stays of order one.
    assert 0.7 < gaps[1][1] / gaps[0][1] < 1.4


def test_spike_references():
    found = mixtures.one_step_spike(4.0, "tanh", "relu", 2.0, 1.5, noise=0.3)
    stated = (2.4043912451, 0.3141974115, 1.6528948100)
    np.testing.assert_allclose(found[:3], stated, atol=1e-10)
    assert abs(float(found.critical_step) - 2.6781666032) < 1e-10
    below = mixtures.one_step_spike(2.0, "tanh", "relu", 2.0, 1.5, noise=0.3)
    assert abs(float(below.singular_value) - 2.2247448714) < 1e-10
    assert float(below.alignment) == 0
    # At the transition nothing jumps.
    near = mixtures.one_step_spike(float(found.critical_step) * (1 + 1e-9), "tanh", "relu", 2.0, 1.5, noise=0.3)
    np.testing.assert_allclose((near.singular_value, near.alignment), (2.2247448714, 0.0), atol=1e-6)


def test_spike_against_simulation():
    """Singular value and alignment of the stepped weights from a silent start, extrapolated from two dimensions."""
    stated = mixtures.one_step_spike(5.0, "tanh", "relu", 2.0, 1.5, noise=0.3)

    def drawn(p, seeds):
        found = []
        for seed in seeds:
            one = system(p, seed)
            step = 5.0 * len(one.output) ** 0.5 * np.asarray(one_step.first_step("tanh", one, silent=True))
            values, vectors = np.linalg.eigh((one.weights + step).T @ (one.weights + step))
            found.append((values[-1] ** 0.5, float(vectors[:, -1] @ one.target) ** 2))
        return np.array(found)

    small, large = drawn(80, range(16)), drawn(160, range(16))
    mean = 2 * large.mean(axis=0) - small.mean(axis=0)
    error = np.sqrt(4 * large.var(axis=0, ddof=1) + small.var(axis=0, ddof=1)) / np.sqrt(16)
    wanted = np.array([float(stated.singular_value), float(stated.alignment)])
    assert np.all(np.abs(mean - wanted) < 5 * error), (mean, wanted, error)
    assert np.all(error < [0.15, 0.08])


def test_ridge_risk_reference_and_dense_linear_algebra():
    found = mixtures.one_step_ridge_risk(0.05, "tanh", "relu", ROWS, [1.0, 0, 0, 0], 12, noise=0.3)
    np.testing.assert_allclose((found.effective_ridge, found.risk), (0.0615642251, 0.1813087056), atol=1e-10)
    assert abs(float(found.kernel_bound) - 0.0908450569) < 1e-10

    # The same with matrices, and κ by bisection.
    student, teacher = (mixtures.layer_moments(name, 1.0) for name in ("tanh", "relu"))
    w, n, ridge = np.array(ROWS), 12, 0.05
    sigma = (float(student.slope) ** 2 * w @ w.T + float(student.rest) * np.eye(6)) / 6
    b = float(student.slope * teacher.slope) * w[:, 0] / 6**0.5
    kappa = optimize.brentq(
        lambda k: k - ridge - k / n * np.trace(sigma @ np.linalg.inv(sigma + k * np.eye(6))), 1e-6, 10
    )
    inverse = np.linalg.inv(sigma + kappa * np.eye(6))
    theta = np.linalg.solve(sigma, b)
    left = 0.09 + float(teacher.variance) - b @ theta
    risk = (kappa**2 * theta @ inverse @ sigma @ inverse @ theta + left) / (
        1 - np.trace(sigma @ inverse @ sigma @ inverse) / n
    )
    np.testing.assert_allclose(found.risk, risk - 0.09, rtol=1e-10)


def test_ridge_risk_improves_with_the_step_and_stays_above_the_linear_bound():
    one = system(200, 0, neurons=1.5, samples=3.0)
    gradient = np.asarray(one_step.first_step("tanh", one))
    fresh, test = (jax.random.normal(jax.random.key(k), (m, 200)) for k, m in ((7, 600), (8, 2000)))

    def target(x):
        return jnp.maximum(x @ one.target, 0.0) - 1 / np.sqrt(2 * np.pi)

    noise = 0.3 * jax.random.normal(jax.random.key(9), (600,))
    stated = []
    for step in (0.0, 6.0):
        weights = one.weights + step * len(one.output) ** 0.5 * gradient
        found = mixtures.one_step_ridge_risk(0.01, "tanh", "relu", weights, one.target, 600, noise=0.3)
        measured = one_step.ridge_features_risk(
            "tanh", weights, (fresh, target(fresh) + noise), (test, target(test)), jnp.asarray(0.01)
        )
        assert abs(float(measured) / float(found.risk) - 1) < 0.12
        stated.append(float(found.risk))
        assert float(found.risk) > float(found.kernel_bound)
    assert stated[1] < 0.85 * stated[0]


def test_without_a_ridge_and_with_more_neurons_than_samples():
    """λ → 0 is a limit: κ solves tr Σ(Σ + κ)^{−1} = n and nothing divides by zero."""
    w = np.random.default_rng(0).standard_normal((30, 8)) / 8**0.5
    direction = np.eye(8)[0]
    at, near = (mixtures.one_step_ridge_risk(ridge, "tanh", "relu", w, direction, 12) for ridge in (0.0, 1e-10))
    assert float(at.effective_ridge) > 0
    np.testing.assert_allclose(at.risk, near.risk, rtol=1e-5)
    fewer = mixtures.one_step_ridge_risk(0.0, "tanh", "relu", w, direction, 60)
    assert float(fewer.effective_ridge) == 0
    assert np.isfinite(fewer.risk)


@pytest.mark.parametrize(("call", "error", "sentence"), [
    (lambda: mixtures.rank_one_gradient("abs", BETA, X, Y), OutsideValidity, "has E σ'(ξ) = 0"),
    (lambda: mixtures.one_step_spike(1.0, "cos", "relu", 2.0, 1.5), OutsideValidity, "has E σ'(ξ) = 0"),
    (lambda: mixtures.first_gradient("tanh", W, BETA, X, Y[:2]), ParameterError, "y"),
    (lambda: mixtures.one_step_spike(-1.0, "tanh", "relu", 2.0, 1.5), ParameterError, "step = -1"),
    (
        lambda: mixtures.one_step_ridge_risk(-0.1, "tanh", "relu", ROWS, [1.0, 0, 0, 0], 12),
        ParameterError, "ridge = -0.1",
    ),
    (
        lambda: mixtures.one_step_ridge_risk(0.1, "tanh", "relu", ROWS, [1.0, 0, 0, 0], 0),
        ParameterError, "samples = 0",
    ),
    (
        lambda: mixtures.one_step_ridge_risk(0.1, "tanh", "relu", ROWS, [0.0] * 4, 12),
        OutsideValidity, "has no direction",
    ),
])  # fmt: skip
def test_bad_input_is_said(call, error, sentence):
    with pytest.raises(error) as raised:
        call()
    assert sentence in str(raised.value), str(raised.value)
