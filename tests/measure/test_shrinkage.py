"""Covariance estimators against the truth and against scikit-learn."""

import numpy as np
import pytest

from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.measure import shrinkage


@pytest.mark.parametrize(("p", "n"), [(100, 250), (150, 80)])
def test_estimators_beat_the_sample_covariance(p, n):
    rng = np.random.default_rng(0)
    truth = np.repeat([1.0, 3.0, 10.0], [p // 5, 2 * p // 5, p - p // 5 - 2 * p // 5])
    data = rng.standard_normal((n, p)) * np.sqrt(truth) + 5.0
    sample = np.cov(data.T)
    _, vectors = np.linalg.eigh(sample)
    best = np.linalg.norm(vectors * np.sum(truth[:, None] * vectors**2, axis=0) @ vectors.T - np.diag(truth)) ** 2
    worst = np.linalg.norm(sample - np.diag(truth)) ** 2
    nonlinear = shrinkage.NonlinearShrinkage().fit(data)
    linear = shrinkage.LinearShrinkage().fit(data)
    losses = [np.linalg.norm(found.covariance_ - np.diag(truth)) ** 2 for found in (nonlinear, linear)]
    assert (worst - losses[0]) / (worst - best) > 0.95
    assert losses[0] < losses[1] < worst
    np.testing.assert_allclose(nonlinear.precision_ @ nonlinear.covariance_, np.eye(p), atol=1e-8)


def test_estimators_are_scikit_learns_kind():
    from sklearn.base import clone
    from sklearn.covariance import LedoitWolf

    data = np.random.default_rng(1).standard_normal((60, 20))
    ours = clone(shrinkage.LinearShrinkage(assume_centered=True)).fit(data)
    theirs = LedoitWolf(assume_centered=True).fit(data)
    assert ours.shrinkage_ == pytest.approx(theirs.shrinkage_, rel=1e-9)
    np.testing.assert_allclose(ours.covariance_, theirs.covariance_, rtol=1e-9, atol=1e-12)
    assert shrinkage.NonlinearShrinkage().set_params(assume_centered=True).get_params() == {"assume_centered": True}
    assert ours.n_features_in_ == 20
    for bad, words in ((np.ones(5), "shape"), (np.full((5, 2), np.nan), "finite")):
        with pytest.raises(ParameterError, match=words):
            shrinkage.NonlinearShrinkage().fit(bad)
    with pytest.raises(OutsideValidity, match="degenerate"):
        shrinkage.NonlinearShrinkage().fit(np.ones((20, 3)))
    with pytest.raises(OutsideValidity, match="at least 12"):
        shrinkage.analytical_shrinkage(np.r_[np.zeros(10), np.ones(10)], 10)
