"""Theory at parameters far from the defaults, against numbers found in another way."""

import jax.numpy as jnp
import numpy as np
import pytest

import deeplimits as dl
from deeplimits.limit import values_of
from deeplimits.models.activations import activation
from deeplimits.theory.two_layer import laziness
from deeplimits.theory.two_layer.mean_field import initial_laws, particles


@pytest.mark.parametrize("spread", [0.01, 0.7, 3.0])
def test_graded_points_have_the_moments_of_the_law(spread):
    points, weights = initial_laws.graded_normal(20, 1, spread)
    z = np.asarray(points[:, 0]) / spread
    for power, moment in ((0, 1), (2, 1), (4, 3)):
        assert float(weights @ z**power) == pytest.approx(moment, rel=5e-3)
    for k in (1.0, 2.1):
        assert float(weights @ np.cos(k * z)) == pytest.approx(np.exp(-(k**2) / 2), abs=2e-4)


def test_graded_points_carry_a_wide_law_as_many_more_do():
    def risk(count):
        points, weights = initial_laws.graded_normal(count, 1, 3.0)
        start = particles.Particles(points, jnp.ones(len(points)), weights)
        return particles.wasserstein_flow(start, jnp.eye(1), jnp.array([5.0]), [0.5]).risk[0]

    assert float(risk(20)) == pytest.approx(float(risk(300)), rel=1e-3)


def test_largest_curvature_of_few_neurons():
    # Large labels leave |y| B_p, and sin has σ² + σ'² = 1: the mean of the largest of p curvatures.
    u = np.random.default_rng(0).standard_normal((40_000, 20))
    norms = (np.abs(np.sin(u)) + np.sqrt(np.sin(u) ** 2 + 4 * np.cos(u) ** 2)) / 2
    stated = laziness.expected_laziness(activation("sin"), 20, 1.0, 100.0)
    largest = norms.max(axis=1)
    assert float(stated) == pytest.approx(100 * largest.mean(), abs=500 * largest.std() / 200)


def test_ratios_that_fall_together_on_whole_numbers():
    limit = dl.limits.RidgeGeneralCovariance(gammas=[0.2060, 0.2143, 0.75])
    sizes, realised = limit.at_size(24)
    assert sizes["along"] == (5, 5, 18)
    assert np.asarray(realised.gammas) == pytest.approx([5 / 24, 5 / 24, 0.75])
    assert type(realised) is type(limit)
    assert values_of(realised)["ridge"] == values_of(limit)["ridge"]


def test_slow_learning_is_given_the_steps_it_needs():
    slow, usual = (dl.limits.EscapeFromMediocrity(step=rate).at_size(64)[0] for rate in (0.001, 0.08))
    assert slow["most"] / slow["runs"] == pytest.approx(80 * usual["most"] / usual["runs"], rel=1e-3)
