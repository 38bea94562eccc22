"""Linear probes: left-out errors by refitting, the predicted curve on fresh samples, and what a report says of it."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge

from deeplimits import diagnose
from deeplimits.diagnosis.probe import ridge_probe


def drawn(n, p, seed, outputs=2):
    """Gaussian features with a decaying spectrum; targets with noise."""
    rng = np.random.default_rng(seed)
    scale = np.arange(1, p + 1) ** -0.5
    beta = rng.normal(size=(p, outputs)) / np.sqrt(p)
    z = rng.normal(size=(n, p)) * scale + 3.0
    return z, z @ beta + 0.2 * rng.normal(size=(n, outputs)), beta, scale


@pytest.mark.parametrize(("n", "p"), [(30, 12), (20, 35)])
def test_samples_are_left_out_as_by_refitting(n, p):
    z, y, *_ = drawn(n, p, 0)
    ridges = np.array([1e-3, 0.1, 10.0])
    found = ridge_probe(z, y, ridges)
    assert found is not None
    for ridge, measured in zip(ridges, found.measured, strict=True):
        errors = []
        for i in range(n):
            keep = np.arange(n) != i
            # The same sum without one of its terms, still over n; the intercept is not penalized.
            fit = Ridge(alpha=n * ridge, tol=1e-12).fit(z[keep], y[keep])
            errors.append(np.sum((y[i] - fit.predict(z[i : i + 1])[0]) ** 2))
        assert measured * np.mean(np.sum((y - y.mean(axis=0)) ** 2, axis=1)) == pytest.approx(np.mean(errors), rel=1e-8)


def test_the_prediction_holds_on_fresh_samples():
    """Mean over draws of the predicted error, over the true one of the fit, near the peak and away from it."""
    ridges = np.array([0.003, 0.05])
    for n, p in ((120, 100), (120, 240), (240, 60)):
        ratios = []
        for seed in range(40):
            z, y, beta, scale = drawn(n, p, seed)
            found = ridge_probe(z, y, ridges)
            assert found is not None
            variance = np.mean(np.sum((y - y.mean(axis=0)) ** 2, axis=1))
            truth = []
            for ridge in ridges:
                fit = Ridge(alpha=n * ridge).fit(z, y)
                gap = fit.coef_.T - beta
                shift = fit.intercept_ + 3.0 * gap.sum(axis=0)  # the mean of the features is 3
                truth.append(np.sum((scale[:, None] * gap) ** 2) + shift @ shift + 2 * 0.2**2)
            ratios.append(found.predicted * variance / np.array(truth))
        mean, error = np.mean(ratios, axis=0), np.std(ratios, axis=0, ddof=1) / np.sqrt(40)
        # Ratios of one data set have a mean of 1 + O(1/n).
        assert np.all(np.abs(mean - 1) < 5 * error + 5 / n), (n, p, mean, error)


def test_a_report_has_the_probe_and_its_best_ridge():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(30, 90), torch.nn.ReLU(), torch.nn.Linear(90, 3))
    rng = np.random.default_rng(0)
    x = rng.normal(size=(100, 30)).astype("float32")
    labels = np.argmax(x[:, :3] + rng.normal(size=(100, 3)), axis=1)
    found = diagnose(net, torch.nn.CrossEntropyLoss(), (x, labels), only=("linear probe",))["linear-probe"]
    # 90 directions and 100 samples: without a ridge the probe is at its peak.
    assert found.severity == "note"
    assert "91 samples" in found.sentence
    assert found.measured is not None
    assert found.theory == pytest.approx(found.measured.value, rel=0.2)
    real = diagnose(net, lambda z, y: ((z[:, 0] - y) ** 2).mean(), (x, x[:, 0]), only=("linear probe",))
    assert real["linear-probe"].measured is not None
    assert ridge_probe(np.ones((5, 3)), np.ones((5, 1))) is None
