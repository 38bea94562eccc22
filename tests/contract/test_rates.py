"""The finite-size rates that limits state are measured."""

import numpy as np
import pytest

import deeplimits as dl


def test_ridgeless_variance_approaches_its_limit_like_one_over_n():
    limit = dl.limits.RidgelessDoubleDescent(gamma=0.5, noise=1.0, gammas=[0.5])
    finding = dl.compare(limit, sizes=(24, 48, 96), samples=4000).findings["variance"]
    rate, error = finding.report.record.measured_rate
    assert error < 0.1
    assert abs(rate - 1) < 5 * error + 0.1  # 1/n + O(1/n²) over a factor four in n
    # E V = p/(n − p − 1) exactly: the gap at n = 24 is known.
    gap, noise = finding.report.record.gaps[0], finding.report.record.standard_errors[0]
    assert abs(gap - (12 / 11 - 1)) < 5 * noise


def test_spectral_distance_and_edges_close_at_their_rates():
    comparison = dl.compare(dl.limits.MarchenkoPasturLaw(), sizes=(25, 50, 100, 200), samples=300)
    distances = np.array(comparison.findings["eigenvalues"].report.record.kolmogorov_distances)
    scaled = distances * np.array(comparison.sizes)
    assert np.all(scaled > 1)
    assert np.all(scaled < 4)  # 2.3/N to 2.9/N, growing like a power of log N
    rate, error = comparison.findings["operator_norm_gap"].report.record.measured_rate
    assert abs(rate - 2 / 3) < 5 * error + 0.05
    rate, error = comparison.findings["frobenius_gap"].report.record.measured_rate
    assert abs(rate - 1) < 5 * error


def test_universality_of_the_entries():
    """The law does not depend on the law of the entries; the exact Frobenius error does, through the fourth moment."""
    for entries, kurtosis in (("rademacher", 1.0), ("uniform", 9 / 5)):
        limit = dl.limits.MarchenkoPasturLaw(gamma=0.5, entries=entries)
        assert dl.compare(limit, sizes=(25, 50, 100), samples=100).agrees
        draws = dl.simulate(limit, size=20, samples=2000)["frobenius_gap"]
        exact = (20 + kurtosis - 2) / 40
        assert abs(draws.mean() - exact) < 5 * draws.std() / np.sqrt(len(draws))


def test_more_dimensions_than_samples():
    comparison = dl.compare(dl.limits.MarchenkoPasturLaw(gamma=4.0), sizes=(32, 64, 128), samples=100)
    assert comparison.agrees, str(comparison)
    eigenvalues = comparison.trials["eigenvalues"][-1].measured
    assert np.all(np.sum(eigenvalues == 0, axis=1) == 128 - 32)


@pytest.mark.slow
def test_other_shapes_of_the_interpolating_estimators():
    assert dl.compare(dl.limits.KnnBiasVariance(target="linear", dimension=3, neighbours=10), samples=4000).agrees
    assert dl.compare(dl.limits.KnnBiasVariance(neighbours=50), sizes=(50, 60), samples=4000).agrees
    smoother = dl.limits.NadarayaWatsonSingularKernel(
        dimension=1, singularity=0.25, smoothness=0.5, slope=2.0, noise=0.5
    )
    assert dl.compare(smoother, sizes=(50, 100, 200, 400), samples=4000).agrees


@pytest.mark.slow
def test_random_weights_stay_far_below_the_linearization_bound():
    finding = dl.compare(dl.limits.SmoothLinearizationBound(case="random")).findings["remainder"]
    assert finding.agrees
    assert max(finding.report.record.tightness) < 0.5
    attained = dl.compare(dl.limits.SmoothLinearizationBound(activation="quadratic")).findings["remainder"]
    assert attained.agrees
    assert attained.report.record.tightness == [1.0] * 3 or min(attained.report.record.tightness) > 1 - 1e-9


def test_separability_jumps_at_two_points_per_dimension():
    below = dl.predict(dl.limits.HardMarginPredictor(points=1800, dimension=1000))["separable"].value
    above = dl.predict(dl.limits.HardMarginPredictor(points=2200, dimension=1000))["separable"].value
    middle = dl.predict(dl.limits.HardMarginPredictor(points=2000, dimension=1000))["separable"].value
    assert float(below) > 1 - 1e-5
    assert float(above) < 1e-5
    assert abs(float(middle) - 0.5) < 1e-12


@pytest.mark.slow
def test_gradient_descent_also_below_the_interpolation_threshold():
    for gamma in (0.4, 1.0, 5.0):
        assert dl.compare(dl.limits.GdMinNormLeastSquares(gamma=gamma, step=0.95, steps=500)).agrees
