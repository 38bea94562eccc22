"""Factors of the output at which training is lazy, against the condition itself, a search and the trained model."""

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.theory.kernels import lazy_range, lazy_scaling, tangent_interpolant


def allowed(alpha, f, y, slow, low, high, sharp):
    """The theorem's own condition, with R₀(α) = ½‖αf₀ − y‖²."""
    risk = np.sum((alpha * f - y) ** 2) / 2
    try:
        lazy_scaling(float(alpha), slow, low, high, float(risk), sharp=sharp)
    except OutsideValidity:
        return False
    return True


@pytest.mark.parametrize("sharp", [True, False])
@pytest.mark.parametrize("seed", range(12))
def test_the_range_is_where_the_condition_holds(seed, sharp):
    rng = np.random.default_rng(seed)
    f, y = 0.3 * rng.uniform() * rng.standard_normal(3), rng.standard_normal(3)
    slow, low, high = 0.5 * rng.uniform() ** 2, 0.7, 1.3
    grid = np.geomspace(1e-4, 1e6, 400)
    holds = np.array([allowed(alpha, f, y, slow, low, high, sharp) for alpha in grid])
    try:
        found = lazy_range(f, y, slow, low, high, sharp=sharp)
    except OutsideValidity:
        assert not holds.any()
        return
    np.testing.assert_array_equal(holds, (grid > found.least) & (grid < found.largest))


def test_the_sheet_s_intervals():
    found = lazy_range([0.2], [1.0], 1.0, 1.0, 1.0, sharp=False)
    assert found == pytest.approx((24 / 5.8, 24 / 3.8), rel=1e-13)
    assert lazy_range([0.02], [1.0], 1.0, 1.0, 1.0, sharp=False) == pytest.approx((24 / 1.48, math.inf), rel=1e-13)
    assert lazy_range([0.0], [1.0], 1.0, 1.0, 1.0, sharp=False) == (24.0, math.inf)
    assert float(found.risk(5.0, [0.2], [1.0])) == 0
    with pytest.raises(OutsideValidity, match="no factor makes training lazy"):
        lazy_range([-0.2], [1.0], 1.0, 1.0, 1.0, sharp=False)
    with pytest.raises(ParameterError, match="singular values of one matrix"):
        lazy_range([0.0], [1.0], 1.0, 2.0, 1.0)


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_the_range_at_extreme_scales(scale):
    # α has the unit of y/f: a range for targets that are larger is larger by the same factor.
    least, largest = lazy_range([0.2], [1.0], 1.0, 1.0, 1.0, sharp=False)
    found = lazy_range([0.2], [scale], 1.0, 1.0, 1.0, sharp=False)
    assert found == pytest.approx((scale * least, scale * largest), rel=1e-12)


@pytest.mark.parametrize("alpha", [6.0, 24.0, 96.0])
def test_displacement_and_distance_of_a_trained_model(alpha):
    # f(w) = sin w from 0: w_∞ = arcsin(1/α), u_∞ = 1/α
    end = solve_ivp(
        lambda t, w: -alpha * np.cos(w) * (alpha * np.sin(w) - 1), (0, 60 / alpha**2), [0.0], rtol=1e-12, atol=1e-14
    ).y[0, -1]
    tangent = tangent_interpolant([[1.0]], [0.0], [1.0], [0.0], alpha=alpha)
    assert end == pytest.approx(math.asin(1 / alpha), rel=1e-9)
    assert float(tangent.parameters[0]) == pytest.approx(1 / alpha, rel=1e-14)
    bounds = lazy_scaling(alpha, 1.0, 1.0, 1.0, 0.5)
    assert end <= bounds.displacement
    assert float(tangent.displacement) <= bounds.linear_displacement * (1 + 1e-12)
    assert abs(end - 1 / alpha) <= bounds.distance


def test_bounds_from_a_start_at_which_the_model_vanishes():
    small, large = (lazy_scaling(alpha, 1.0, 1.0, 1.0, 0.5) for alpha in (400.0, 800.0))
    assert small.displacement / large.displacement == pytest.approx(2, rel=1e-12)
    assert small.distance / large.distance == pytest.approx(4, rel=1e-12)


def test_the_tangent_model_ends_at_the_nearest_solution():
    rng = np.random.default_rng(0)
    j, f, y, w = rng.standard_normal((3, 6)), rng.standard_normal(3), rng.standard_normal(3), rng.standard_normal(6)
    end = tangent_interpolant(j, f, y, w, alpha=2.0)
    move = np.asarray(end.parameters) - w
    np.testing.assert_allclose(2.0 * (f + j @ move), y, atol=1e-12)
    # Nearest: orthogonal to what J does not see.
    null = np.linalg.svd(j)[2][3:]
    np.testing.assert_allclose(null @ move, 0, atol=1e-12)
    assert float(end.residual) < 1e-12
    # Two equations that contradict each other are met halfway.
    halfway = tangent_interpolant([[1.0], [1.0]], [0.0, 0.0], [0.0, 1.0], [0.0])
    assert float(halfway.parameters[0]) == pytest.approx(0.5, rel=1e-14)
    assert float(halfway.residual) == pytest.approx(math.sqrt(0.5), rel=1e-14)
    for size in (1e-200, 1e200):
        assert float(tangent_interpolant([[size]], [0.0], [1.0], [0.0]).displacement) == pytest.approx(1 / size)
