"""The fluctuation-dissipation recorder, margins of homogeneous networks, and the split of errors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from deeplimits.ensembles import estimators
from deeplimits.ensembles.two_layer_networks import TwoLayer, two_layer_model
from deeplimits.errors import ParameterError, UnknownName
from deeplimits.measure import fluctuation_dissipation as fd
from deeplimits.measure import margins
from deeplimits.measure.error_parts import error_split
from deeplimits.theory.bias.support_vectors import hard_margin


class Tensor:
    """What a tensor of another framework looks like from outside."""

    def __init__(self, values):
        self.values = np.asarray(values)

    def detach(self):
        return self

    def cpu(self):
        return self.values


def test_recorder_and_pure_function_agree_for_any_framework():
    rng = np.random.default_rng(0)
    recorders = [fd.Recorder(0.1, centre=np.zeros(5)) for _ in range(3)]
    rows = []
    for _ in range(80):
        theta, full, batch, bent = rng.standard_normal((4, 5))
        point, whole, part, turned = (jnp.asarray(v) for v in (theta, full, batch, bent))
        rows.append(fd.observe(point, whole, part, 0.1, jnp.zeros(5), hessian_times_batch_gradient=turned))
        recorders[0](theta, full, batch, bent)
        nested = [{"b": v[2:].reshape(3, 1), "a": [v[:2]]} for v in (theta, full, batch, bent)]
        recorders[1](*nested)
        recorders[2](*({"a": Tensor(v[:2]), "b": Tensor(v[2:])} for v in (theta, full, batch, bent)))
    stacked = fd.Observation(*(np.array(part) for part in zip(*rows, strict=True)))
    reports = [fd.report(stacked), *(recorder.report() for recorder in recorders)]
    for found in reports[1:]:
        np.testing.assert_allclose(jax.tree.leaves(found.first), jax.tree.leaves(reports[0].first), rtol=1e-12)
        np.testing.assert_allclose(jax.tree.leaves(found.second), jax.tree.leaves(reports[0].second), rtol=1e-12)
    assert fd.report(stacked._replace(curvature_side=np.zeros(80))).second is None


def test_recorder_sees_a_run_that_is_not_stationary():
    recorder = fd.Recorder(0.1)
    theta = np.array([10.0])
    rng = np.random.default_rng(0)
    for _ in range(200):
        gradient = 0.05 * theta
        batch = gradient + 0.01 * rng.standard_normal(1)
        recorder(theta, gradient, batch)
        theta = theta - 0.1 * batch
    assert abs(recorder.report().first.z) > 5


def test_recorder_errors():
    with pytest.raises(ParameterError, match="step = 0"):
        fd.Recorder(0.0)
    recorder = fd.Recorder(0.1)
    with pytest.raises(ParameterError, match="0 steps were recorded"):
        recorder.report()
    with pytest.raises(ParameterError, match="same structure"):
        recorder(np.zeros(3), np.zeros(3), np.zeros(2))


def test_margins_of_homogeneous_networks():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((6, 4))
    y = np.where(x[:, 0] > 0, 1.0, -1.0)
    found = hard_margin(x, y)

    def linear(theta):
        return jnp.asarray(x * y[:, None]) @ theta

    at = margins.criticality(linear, jnp.asarray(found.weights))
    assert at.stationarity < 1e-9
    np.testing.assert_allclose(at.multipliers, found.multipliers, atol=1e-9)
    away = margins.criticality(linear, jnp.asarray(found.weights) + 0.3 * jnp.eye(4)[0])
    assert away.stationarity > 1e-3
    margin = margins.normalized_margin(linear(jnp.asarray(found.weights)), jnp.linalg.norm(found.weights))
    assert float(margin) == pytest.approx(found.margin, rel=1e-12)

    def apply(parameters, inputs):
        return jax.nn.relu(inputs @ parameters["w"]) @ parameters["v"]

    parameters = {"w": jnp.asarray(rng.standard_normal((4, 5))), "v": jnp.asarray(rng.standard_normal(5))}
    outputs, theta = margins.flat_outputs(apply, parameters, jnp.asarray(x), jnp.asarray(y))
    assert margins.degree_of(outputs, theta) == 2
    with pytest.raises(ParameterError, match="not homogeneous"):
        margins.degree_of(lambda theta: outputs(theta) + 1.0, theta)
    with pytest.raises(ParameterError, match="classified rightly"):
        margins.criticality(lambda theta: -jnp.abs(outputs(theta)), theta)


def test_interior_point_method_against_the_exact_solution():
    rng = np.random.default_rng(0)
    for n, d in ((9, 3), (4, 20), (60, 30)):
        x = rng.standard_normal((n, d))
        signed = x * np.where(x[:, :1] > 0, 1.0, -1.0)
        weights, multipliers = estimators.max_margin(jnp.asarray(signed))
        exact = hard_margin(signed, np.ones(n))
        np.testing.assert_allclose(weights, exact.weights, atol=1e-7 * np.abs(exact.weights).max())
        np.testing.assert_allclose(multipliers, exact.multipliers, atol=1e-6 * exact.multipliers.max())


def test_error_split():
    rng = np.random.default_rng(0)
    target, best, fit, found = rng.standard_normal((4, 50, 2))
    weights = rng.uniform(size=50)
    split = error_split(target, best, fit, found, weights)
    exact = np.sqrt(np.average(np.sum((target - best) ** 2, axis=1), weights=weights))
    assert split.approximation == pytest.approx(exact)
    assert split.total <= split.approximation + split.generalization + split.optimization
    with pytest.raises(ParameterError, match="share one shape"):
        error_split(target, best[:3], fit, found)
    with pytest.raises(ParameterError, match="not finite"):
        error_split(target * np.nan, best, fit, found)
    with pytest.raises(ParameterError, match="nonnegative"):
        error_split(target, best, fit, found, -weights)


def test_two_layer_model():
    model = TwoLayer(
        jnp.array([[1.0, -1.0], [2.0, 0.0]]), jnp.array([0.5, -1.0]), jnp.array([[1.0, 2.0]]), jnp.array([3.0])
    )
    x = jnp.array([[1.0, 2.0], [0.0, -3.0]])
    hidden = {
        "identity": [[-0.5, 1.0], [3.5, -1.0]],
        "relu": [[0.0, 1.0], [3.5, 0.0]],
        "step": [[0.0, 1.0], [1.0, 0.0]],
    }
    for name, values in hidden.items():
        np.testing.assert_allclose(two_layer_model(model, x, activation=name)[:, 0], np.array(values) @ [1, 2] + 3)
    np.testing.assert_allclose(two_layer_model(model, x, activation="relu", output="step")[:, 0], 1.0)
    with pytest.raises(UnknownName, match="no activation 'tan'"):
        two_layer_model(model, x, activation="tan")
