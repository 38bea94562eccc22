"""The statistics: calibrated under the null, whatever the shape of the noise, and sharp against errors."""

import numpy as np
import pytest
from scipy import stats

from deeplimits import statistics, tails
from deeplimits.errors import ParameterError

SHAPES = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "squared normal": lambda rng, shape: rng.chisquare(1, shape) - 1,
    "exponential, mirrored": lambda rng, shape: 1 - rng.exponential(size=shape),
    "uniform": lambda rng, shape: rng.uniform(-1, 1, shape),
}


def deviation_of(draws_by_size, sizes, stated, rate):
    means = [statistics.mean_of(draws) for draws in draws_by_size]
    return statistics.largest_deviation(statistics.extrapolate(sizes, means, [stated] * len(sizes), rate))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("rate", [None, 1.0])
def test_p_values_are_calibrated(shape, rate):
    """P(p < 0.01) is 1 % for means of 60 draws of any shape: within what 4000 repetitions allow, or below."""
    rng = np.random.default_rng(0)
    sizes, repetitions = (50, 100, 200), 4000
    draws = [SHAPES[shape](rng, (60, repetitions)) for _ in sizes]
    means = [statistics.mean_of(d) for d in draws]
    fit = statistics.extrapolate(sizes, means, [np.zeros(repetitions)] * 3, rate)
    p_values = [
        statistics.largest_deviation(statistics.Extrapolation(*(part[i : i + 1] for part in fit))).p_value
        for i in range(repetitions)
    ]
    for level in (0.05, 0.01, 0.001):
        count = int(np.sum(np.array(p_values) < level))
        # At most 1.5 times the level: skewness is corrected to first order, not exactly.
        assert stats.binom.sf(count - 1, repetitions, 1.5 * level) > 1e-6, (level, count)


def test_without_the_skewness_correction_the_test_would_be_wrong():
    """The plain t statistic of squared normals rejects several times too often: the correction is needed."""
    rng = np.random.default_rng(1)
    draws = rng.chisquare(1, (60, 20_000)) - 1
    t = np.sqrt(60) * draws.mean(axis=0) / draws.std(axis=0, ddof=1)
    plain = np.mean(2 * stats.t.sf(np.abs(t), 59) < 0.001)
    skewness = statistics.mean_of(draws)
    corrected = tails.hall_transform(t, skewness.skewness)
    hall = np.mean(2 * stats.t.sf(np.abs(corrected), 59) < 0.001)
    assert plain > 5 * 0.001
    assert hall < 1.5 * 0.001


def test_the_gap_at_finite_size_is_not_held_against_the_theory():
    rng = np.random.default_rng(2)
    sizes = (50, 100, 200)
    draws = [1 + 3 / n + 0.05 * rng.standard_normal(400) for n in sizes]
    assert deviation_of(draws, sizes, 1.0, 1.0).agrees
    assert not deviation_of(draws, sizes, 1.0, None).agrees
    assert not deviation_of(draws, sizes, 1.0, 0.25).agrees
    assert not deviation_of(draws, sizes, 1.05, 1.0).agrees


def test_second_order_terms_are_allowed_for():
    rng = np.random.default_rng(3)
    sizes = (20, 40, 80)
    exact = [1 / (1 - 4 / n) for n in sizes]  # 1 + 4/n + 16/n² + ...
    draws = [value + 1e-4 * rng.standard_normal(400) for value in exact]
    assert deviation_of(draws, sizes, 1.0, 1.0).agrees
    assert not deviation_of(draws, sizes, 1.05, 1.0).agrees


def test_one_statistic_judges_many_correlated_points():
    rng = np.random.default_rng(4)
    shared = rng.standard_normal((40, 1))
    draws = [shared + 0.1 * rng.standard_normal((40, 25)) for _ in range(2)]
    many = deviation_of(draws, (10, 20), np.zeros(25), None)
    single = deviation_of([d[:, :1] for d in draws], (10, 20), np.zeros(1), None)
    assert many.agrees
    assert many.threshold > single.threshold


def test_thresholds_come_from_the_budget():
    means = [statistics.Mean(np.zeros(1), np.ones(1), np.zeros(1), np.inf)]
    threshold = statistics.largest_deviation(statistics.extrapolate((10,), means, [np.zeros(1)], None)).threshold
    assert 2 * stats.norm.sf(threshold) * statistics.TESTS_IN_BUDGET == pytest.approx(statistics.FALSE_ALARM_BUDGET)
    assert threshold == pytest.approx(4.708, abs=1e-3)


def test_the_whole_catalogue_fits_in_the_budget():
    import equinox as eqx

    import deeplimits as dl

    # Shapes only: nothing is compiled.
    stated = [eqx.filter_eval_shape(lambda limit: limit.theory(), entry.load()()) for entry in dl.catalogue.limits()]
    tests = sum(map(len, stated))
    assert tests < statistics.TESTS_IN_BUDGET


def test_measured_rate():
    rng = np.random.default_rng(5)
    sizes = np.array([50, 100, 200, 400])
    gaps = 3 * sizes**-0.5 + 1e-3 * rng.standard_normal(4)
    rate, error = statistics.measured_rate(sizes.tolist(), gaps, np.full(4, 1e-3))
    assert abs(rate - 0.5) < 5 * error
    assert statistics.measured_rate(sizes.tolist(), 0 * gaps, np.full(4, 1e-3)) is None


def test_binomial_p_value_is_exact():
    # P(0 or 10 heads in 10 fair throws)
    assert tails.binomial_p_value(0, 10, 0.5) == pytest.approx(2 / 2**10)


def test_too_little_to_judge_is_refused():
    with pytest.raises(ParameterError, match=r"samples = 3.*at least 8"):
        statistics.mean_of(np.ones(3))
    with pytest.raises(ParameterError, match="one distinct size"):
        statistics.fit_weights([100], 1.0)


def test_lines_through_points_of_very_unlike_certainty():
    x, y = np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.0, 2.0])
    coefficients, covariance = statistics.weighted_line(x, y, np.array([1e-13, 1.0, 1.0]))
    np.testing.assert_allclose(coefficients, [-1.0, 1.0], atol=1e-9)
    # Through the first point, which is certain: the slope's variance is 1/Σ (x − 1)².
    assert covariance[1, 1] == pytest.approx(1 / 5, rel=1e-6)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("unit", [1e-120, 1e120])
def test_a_verdict_does_not_depend_on_the_unit(unit):
    """Cubes of 1e120 are no numbers, and third powers of variances of 1e-240 are zero; it was 'overflow in power'."""
    rng = np.random.default_rng(5)
    draws = [1 + 2 / n + rng.exponential(size=(60, 3)) for n in (50, 100, 200)]
    usual = deviation_of(draws, (50, 100, 200), np.full(3, 2.0), 1.0)
    found = deviation_of([unit * d for d in draws], (50, 100, 200), np.full(3, 2.0) * unit, 1.0)
    np.testing.assert_allclose(found, usual, rtol=1e-9)
    wrong = deviation_of([d + 1e130 for d in draws], (50, 100, 200), np.full(3, 2.0), None)
    assert wrong.p_value < 1e-6
