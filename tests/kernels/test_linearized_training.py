"""Gradient flow of a linearized model, against matrix exponentials and plain iteration."""

import numpy as np
import pytest
from scipy.linalg import expm

from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.theory.kernels.linearized_training import linearized_descent, linearized_flow

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(("n", "p"), [(3, 6), (6, 3)])
def test_flow_is_the_matrix_exponential(n, p):
    j, f0, y, theta = (
        RNG.standard_normal((n, p)),
        RNG.standard_normal(n),
        RNG.standard_normal(n),
        RNG.standard_normal(p),
    )
    times = np.array([0.0, 0.7, 20.0])
    found = linearized_flow(j, f0, y, theta, times)
    for index, t in enumerate(times):
        np.testing.assert_allclose(found.outputs[index], y + expm(-j @ j.T * t / n) @ (f0 - y), atol=1e-10)
    np.testing.assert_allclose(found.outputs, f0 + (np.asarray(found.parameters) - theta) @ j.T, atol=1e-10)
    end = linearized_flow(j, f0, y, theta, np.inf)
    np.testing.assert_allclose(end.parameters, theta + np.linalg.pinv(j) @ (y - f0), atol=1e-10)
    np.testing.assert_allclose(end.interpolant, end.parameters, atol=1e-10)
    # As a regression: the minimizer of ‖ỹ − J₀θ‖ closest to θ₀.
    closest = theta + np.linalg.pinv(j) @ (np.asarray(found.regression_targets) - j @ theta)
    np.testing.assert_allclose(end.parameters, closest, atol=1e-10)


def test_descent_is_the_iteration_and_refuses_to_diverge():
    j, f0, y, theta = (
        RNG.standard_normal((4, 5)),
        RNG.standard_normal(4),
        RNG.standard_normal(4),
        RNG.standard_normal(5),
    )
    top = np.linalg.norm(j, 2) ** 2 / 4
    for step in (0.3 / top, 1.9 / top):
        w = theta.copy()
        for _ in range(7):
            w = w + step * j.T @ (y - f0 - j @ (w - theta)) / 4
        np.testing.assert_allclose(linearized_descent(j, f0, y, theta, step, 7).parameters, w, atol=1e-12)
    with pytest.raises(OutsideValidity, match="diverges"):
        linearized_descent(j, f0, y, theta, 2.1 / top, 7)
    with pytest.raises(ParameterError, match="targets"):
        linearized_flow(j, f0, y[:2], theta, 1.0)
    with pytest.raises(ParameterError, match="times"):
        linearized_flow(j, f0, y, theta, -1.0)
