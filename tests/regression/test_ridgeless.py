"""Minimum-norm least squares: values, special points, and the exact mean at finite size."""

import jax.numpy as jnp
import numpy as np
import pytest

from deeplimits.errors import ParameterError
from deeplimits.theory.regression import ridgeless


def test_reference_values():
    assert float(ridgeless.ridgeless_risk(0.9, 1.0, 1.0).total) == pytest.approx(9.0)
    risk = ridgeless.ridgeless_risk(2.0, 5.0, 1.0)
    assert (float(risk.bias), float(risk.variance)) == (2.5, 1.0)
    gamma, best = ridgeless.best_overparametrization(5.0, 1.0)
    assert float(gamma) == pytest.approx(1.8090169943749, rel=1e-13)
    assert float(best) == pytest.approx(3.4721359549996, rel=1e-13)
    assert float(ridgeless.ridgeless_finite_sample_risk(40, 20, 1.0, 1.0).variance) == pytest.approx(20 / 19)
    over = ridgeless.ridgeless_finite_sample_risk(20, 40, 1.0, 1.0)
    assert float(over.variance) == pytest.approx(20 / 19)
    assert float(over.bias) == pytest.approx(0.5)


def test_the_best_overparametrization_is_a_minimum():
    gammas = jnp.linspace(1.01, 20.0, 200_001)
    for signal in (2.0, 5.0, 50.0):
        risks = ridgeless.ridgeless_risk(gammas, signal, 1.0).total
        gamma, best = ridgeless.best_overparametrization(signal, 1.0)
        assert float(gammas[jnp.argmin(risks)]) == pytest.approx(float(gamma), abs=2e-4)
        assert float(jnp.min(risks)) == pytest.approx(float(best), rel=1e-7)
    assert float(ridgeless.best_overparametrization(0.5, 1.0)[0]) == np.inf
    assert float(ridgeless.best_overparametrization(0.5, 1.0)[1]) == 0.5
    assert [float(v) for v in ridgeless.best_overparametrization(1.0, 0.0)] == [1.0, 0.0]


def test_infinite_at_the_threshold():
    for gamma in (1.0, 1 + 1e-16, 1 - 1e-15):
        assert float(ridgeless.ridgeless_risk(gamma, 1.0, 1.0).total) == np.inf
    for p in (19, 20, 21):
        assert float(ridgeless.ridgeless_finite_sample_risk(20, p, 1.0, 1.0).variance) == np.inf
    assert float(ridgeless.ridgeless_finite_sample_risk(20, 20, 1.0, 0.0).variance) == 0


@pytest.mark.parametrize("gamma", [0.3, 0.8, 1.5, 4.0])
def test_finite_samples_approach_the_limit_like_one_over_n(gamma):
    limit = float(ridgeless.ridgeless_risk(gamma, 1.0, 1.0).total)
    gaps = [
        float(ridgeless.ridgeless_finite_sample_risk(n, round(gamma * n), 1.0, 1.0).total) - limit
        for n in (200, 2000, 20000)
    ]
    np.testing.assert_allclose([gaps[0] / gaps[1], gaps[1] / gaps[2]], 10, rtol=0.1)


def test_norm_and_training_error():
    assert float(ridgeless.ridgeless_norm(0.5, 2.0, 1.0)) == pytest.approx(3.0)
    assert float(ridgeless.ridgeless_norm(2.0, 2.0, 1.0)) == pytest.approx(2.0)
    assert float(ridgeless.ridgeless_training_error(0.25, 2.0)) == pytest.approx(1.5)
    assert float(ridgeless.ridgeless_training_error(3.0, 2.0)) == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [((0, 5, 1.0, 1.0), "n = 0"), ((5, 0, 1.0, 1.0), "p = 0"), ((5, 9, -1.0, 1.0), "signal = -1"),
     ((5, 9, 1.0, float("nan")), "noise_variance = nan")],
)  # fmt: skip
def test_bad_input(arguments, words):
    with pytest.raises(ParameterError, match=words):
        ridgeless.ridgeless_finite_sample_risk(*arguments)
