"""The log-time law of separable data: reference values, degenerate data, errors."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

import deeplimits as dl
from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.limits.bias import gd_separable_max_margin
from deeplimits.limits.bias.gd_separable_max_margin import GdSeparableMaxMargin
from deeplimits.theory.bias import separable_descent

SHEET = [[1.0, 2], [2, 0.5], [3, 3], [4, 1]]
LECTURE = [[1.0, 0.5], [0.3, 1.2], [2.0, 2.0], [1.5, -0.2]]


def test_reference_values():
    law = separable_descent.log_time_law(SHEET, np.ones(4))
    np.testing.assert_allclose(law.offset, [0.11546422238385, 0.39031190108639], rtol=1e-12)
    assert law.loss_constant == pytest.approx(13 / 49, rel=1e-14)
    assert law.rate == pytest.approx(10 / 49, rel=1e-12)
    assert law.gap == pytest.approx(2, rel=1e-13)
    summed = separable_descent.log_time_law(SHEET, np.ones(4), loss_scale=1.0)
    np.testing.assert_allclose(summed.offset, [0.70959037714952, 0.78639600426350], rtol=1e-12)
    other = separable_descent.log_time_law(LECTURE, np.ones(4), loss_scale=1.0)
    np.testing.assert_allclose(other.offset, [0.67633467901598, 0.25490389836017], rtol=1e-12)
    assert other.loss_constant == pytest.approx(0.98277257486415, rel=1e-12)


def test_degenerate_data_are_flagged_and_have_a_closed_form():
    law = separable_descent.log_time_law([[1.0, 0.0], [1.0, 1.0]], [1, 1])
    assert law.degenerate
    assert law.offset is None
    assert law.rate is None
    hundred, thousand = separable_descent.degenerate_flow([100.0, 1000.0])
    assert hundred[1] == pytest.approx(4.5617986146501, rel=1e-13)
    np.testing.assert_allclose(thousand, [999.30785996348, 6.9011401670921], rtol=1e-13)
    for log_time in (0.5, 30.0, 499.0, 502.0, 3000.0):
        with mpmath.workdps(40):
            w = mpmath.lambertw(mpmath.exp(log_time) / 2).real
            exact = [float(w + mpmath.log1p(w)), float(mpmath.log1p(w))]
        np.testing.assert_allclose(separable_descent.degenerate_flow(log_time), exact, rtol=1e-13)


def test_step_sizes():
    x = np.random.default_rng(0).standard_normal((20, 3))
    assert separable_descent.largest_separable_step(x) == pytest.approx(
        8 / np.linalg.eigvalsh(x.T @ x / 20)[-1], rel=1e-12
    )
    separable_descent.check_step(x, 0.9 * separable_descent.largest_separable_step(x))
    assert separable_descent.largest_separable_step(x, loss="exponential", initial_loss=2.0) == pytest.approx(
        1 / np.max(np.sum(x**2, axis=1))
    )
    for bad in (0.0, -1.0, 1e3, float("nan")):
        with pytest.raises(ParameterError, match="may diverge beyond"):
            separable_descent.check_step(x, bad)
    with pytest.raises(ParameterError, match="one of logistic, exponential"):
        separable_descent.largest_separable_step(x, loss="hinge")
    with pytest.raises(ParameterError, match="positive"):
        separable_descent.largest_separable_step(x, loss="exponential", initial_loss=0.0)


def test_bad_input():
    with pytest.raises(OutsideValidity, match="not separable"):
        separable_descent.log_time_law([[1.0], [1.0]], [1, -1])
    with pytest.raises(ParameterError, match="loss_scale = 0"):
        separable_descent.log_time_law(SHEET, np.ones(4), loss_scale=0.0)
    law = separable_descent.log_time_law(SHEET, np.ones(4))
    with pytest.raises(ParameterError, match="t > 1"):
        separable_descent.direction_error(law.offset, law.offset, 0.0)
    with pytest.raises(ParameterError, match="finite"):
        separable_descent.degenerate_flow(float("nan"))


HARD = {"gamma": 0.18212027551168883, "loss": "exponential", "spread": 5.822596575070882}


def test_nearly_degenerate_data_are_not_followed():
    # Few samples per dimension: one data set in ten pulls back a hundred thousand times faster than it forgets.
    limit = GdSeparableMaxMargin(**HARD)
    keys = jax.random.split(jax.random.key(706047002), 300)
    drawn = jax.jit(jax.vmap(lambda key: limit.draw(key, points=16, dimension=3)))(keys)
    _, fastest = jax.jit(jax.vmap(gd_separable_max_margin._rates))(drawn.signed)
    assert float(jnp.max(fastest * drawn.log_time)) < 2e4


@pytest.mark.slow
def test_few_samples_per_dimension_agree():
    found = dl.compare("gd-separable-max-margin", **HARD, seed=706047002)
    assert found.agrees, found.verdict
    assert dl.compare("gd-separable-max-margin", gamma=0.1, sizes=[32], samples=8).agrees  # d = 3 is a ratio of 0.094
