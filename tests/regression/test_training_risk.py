"""Regression by spectral filters for a general covariance: isotropic closed forms, ridge, dense matrices, bad input."""

import numpy as np
import pytest

from deeplimits.errors import NotConverged, OutsideValidity, ParameterError
from deeplimits.theory.regression import gradient_flow, ridge, ridgeless, training_risk
from deeplimits.theory.regression.populations import population

ONE = population([1.0])
THREE = population([0.2, 1.0, 5.0], [0.3, 0.4, 0.3], alignment=[0.1, 0.3, 0.6])


def parts(risk):
    return [float(part) for part in risk if part is not None]


@pytest.mark.parametrize("gamma", [0.3, 0.97, 1.0, 1.5, 6.0])
@pytest.mark.parametrize("time", [0.0, 0.4, 7.0, 60.0])
def test_isotropic_flow_is_the_integral_over_marchenko_and_pastur(gamma, time):
    found = training_risk.flow_risk(time, ONE, gamma, 2.0, 0.5)
    expected = gradient_flow.early_stopped_risk(time, gamma, 2.0, 0.5)
    assert parts(found)[:2] == pytest.approx(parts(expected), rel=1e-8, abs=1e-9)


def test_isotropic_descent_likewise():
    found = training_risk.descent_risk(0.2, 15, ONE, 1.5, 2.0, 0.5)
    expected = gradient_flow.early_stopped_descent_risk(0.2, 15, 1.5, 2.0, 0.5)
    assert parts(found)[:2] == pytest.approx(parts(expected), rel=1e-8)


@pytest.mark.parametrize("gamma", [0.4, 1.0, 2.5])
def test_training_to_the_end_is_ridge_regression(gamma):
    found = training_risk.flow_risk(80.0, THREE, gamma, 1.0, 0.7, ridge=0.4)
    expected = ridge.ridge_risk(0.4, THREE, gamma, 1.0, 0.7)
    assert parts(found) == pytest.approx(parts(expected)[:3], rel=1e-8)
    assert parts(training_risk.flow_risk(np.inf, THREE, gamma, 1.0, 0.7, ridge=0.4)) == parts(expected)[:3]


def test_without_ridge_the_end_is_the_smallest_solution():
    found = training_risk.flow_risk(3000.0, ONE, 4.0, 1.0, 0.7)
    expected = ridgeless.ridgeless_risk(4.0, 1.0, 0.7)
    assert parts(found) == pytest.approx([*parts(expected), 0.0], abs=1e-8)


def test_nothing_is_learnt_at_the_start():
    mean = float(THREE.alignment @ THREE.eigenvalues.values)
    assert parts(training_risk.flow_risk(0.0, THREE, 1.5, 2.0, 0.7)) == pytest.approx(
        [2 * mean, 0.0, 2 * mean + 0.7], rel=1e-9
    )


@pytest.mark.parametrize(("gamma", "ridge_"), [(0.5, 0.0), (1.0, 0.1), (2.0, 0.0)])
def test_the_mean_over_finite_samples(gamma, ridge_):
    """Exact bias, variance and residual given X, averaged over designs; Gaussian means are off by O(1/n)."""
    rng = np.random.default_rng(0)
    time, noise, n, draws = 2.0, 0.7, 200, 40
    p = round(gamma * n)
    counts = np.round(np.asarray(THREE.eigenvalues.weights) * p).astype(int)
    values = np.repeat(np.asarray(THREE.eigenvalues.values), counts)
    density = np.repeat(np.asarray(THREE.alignment) / counts, counts)
    measured = []
    for _ in range(draws):
        x = rng.standard_normal((n, p)) * np.sqrt(values)
        beta = np.sqrt(density) * rng.choice([-1.0, 1.0], p)
        eigenvalues, vectors = np.linalg.eigh(x.T @ x / n)
        rate = np.maximum(eigenvalues, 0) + ridge_
        learnt = np.where(rate > 1e-12, -np.expm1(-time * rate) / np.where(rate > 1e-12, rate, 1.0), time)
        solver = (vectors * learnt) @ vectors.T @ x.T / n
        missed = beta - solver @ (x @ beta)
        left = np.eye(n) - x @ solver
        measured.append([
            values @ missed**2, noise * np.sum(values[:, None] * solver**2),
            (np.sum((left @ x @ beta) ** 2) + noise * np.sum(left**2)) / n,
        ])  # fmt: skip
    stated = np.array(parts(training_risk.flow_risk(time, THREE, gamma, 1.0, noise, ridge=ridge_)))
    mean, error = np.mean(measured, axis=0), np.std(measured, axis=0) / np.sqrt(draws)
    assert np.all(np.abs(mean - stated) < 5 * error + 3 / n * stated)
    # What the isotropic formula would say is rejected.
    isotropic = np.array(parts(training_risk.flow_risk(time, ONE, gamma, 1.0, noise, ridge=ridge_)))
    assert np.any(np.abs(mean - isotropic) > 5 * error + 3 / n * stated)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: training_risk.flow_risk(-1.0, ONE, 1.0, 1.0, 1.0), ParameterError, "time"),
        (lambda: training_risk.flow_risk(1.0, ONE, 0.0, 1.0, 1.0), ParameterError, "gamma"),
        (lambda: training_risk.flow_risk(1.0, ONE, 1.0, 1.0, 1.0, ridge=-1.0), ParameterError, "ridge"),
        (lambda: training_risk.descent_risk(0.0, 1, ONE, 1.0, 1.0, 1.0), ParameterError, "step"),
        (lambda: training_risk.descent_risk(0.6, 5, ONE, 1.0, 1.0, 1.0), OutsideValidity, "diverges"),
        (lambda: training_risk.flow_risk(1e6, ONE, 1.0, 1.0, 1.0), NotConverged, "squeezed"),
    ],
)
def test_bad_input_is_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()
