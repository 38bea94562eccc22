"""The hard-margin predictor against a general optimizer and scikit-learn, its certificates and its errors."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.svm import SVC

from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.theory.bias.support_vectors import NotSeparable, hard_margin, is_separable, multiclass_hard_margin

SHEET = np.array([[1.0, 2], [2, 0.5], [3, 3], [4, 1]])


def separable(n, d, seed=0, shift=0.0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d))
    return x + shift, np.where(x @ rng.standard_normal(d) > 0.0, 1, -1)


def test_reference_values():
    found = hard_margin(SHEET, np.ones(4))
    np.testing.assert_allclose(found.weights, [3 / 7, 2 / 7], rtol=1e-14)
    np.testing.assert_allclose(found.multipliers, [5 / 49, 8 / 49, 0, 0], atol=1e-15)
    assert found.support.tolist() == [0, 1]
    assert found.degenerate.size == 0
    assert found.margin == pytest.approx(7 / np.sqrt(13), rel=1e-14)
    np.testing.assert_allclose(SHEET @ found.weights, [1, 1, 15 / 7, 2], rtol=1e-14)
    other = hard_margin([[1.0, 0.5], [0.3, 1.2], [2.0, 2.0], [1.5, -0.2]], np.ones(4))
    np.testing.assert_allclose(other.weights, [0.75268817204301, 0.64516129032258], rtol=1e-13)
    assert other.margin == pytest.approx(1.0087266288568, rel=1e-13)


@pytest.mark.parametrize("shape", [(12, 3), (6, 9), (300, 5), (2500, 12)])
@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e5])
def test_optimality_conditions(shape, scale):
    x, y = separable(*shape)
    found = hard_margin(scale * x, y)
    signed = scale * x * y[:, None]
    assert found.residual < 1e-9
    assert np.min(signed @ found.weights) > 1 - 1e-9
    assert np.all(found.multipliers >= 0)
    np.testing.assert_allclose(signed.T @ found.multipliers, found.weights, rtol=1e-7)
    assert found.multipliers.sum() == pytest.approx(found.weights @ found.weights, rel=1e-8)
    assert len(found.support) <= shape[1]


def test_against_a_general_optimizer():
    x, y = separable(15, 4, seed=3)
    rows = x * y[:, None]
    constraint = {"type": "ineq", "fun": lambda w: rows @ w - 1, "jac": lambda w: rows}
    start = 1000 * np.linalg.lstsq(x, y, rcond=None)[0]
    exact = minimize(
        lambda w: w @ w / 2, start, jac=lambda w: w, constraints=[constraint], options={"ftol": 1e-15, "maxiter": 500}
    )
    np.testing.assert_allclose(hard_margin(x, y).weights, exact.x, rtol=1e-6)


@pytest.mark.parametrize(("n", "d", "shift"), [(30, 3, 0.0), (30, 3, 5.0), (100, 10, -2.0)])
def test_intercept_against_scikit_learn(n, d, shift):
    x, y = separable(n, d, seed=1, shift=shift)
    found = hard_margin(x, y, intercept=True)
    peer = SVC(kernel="linear", C=1e10, tol=1e-10).fit(x, y)
    margins = y * (x @ found.weights + found.intercept)
    assert margins.min() == pytest.approx(1, abs=1e-8)
    assert abs(found.multipliers @ y) < 1e-8 * found.multipliers.sum()
    assert found.margin >= hard_margin(x - shift, y).margin * (1 - 1e-10)
    peer_margin = np.min(y * (x @ peer.coef_[0] + peer.intercept_[0])) / np.linalg.norm(peer.coef_)
    assert found.margin == pytest.approx(peer_margin, rel=1e-3)
    assert found.margin >= peer_margin * (1 - 1e-9)


def test_several_classes():
    rng = np.random.default_rng(0)
    centres = 4 * rng.standard_normal((3, 5))
    y = np.repeat(np.arange(3), 8)
    x = centres[y] + rng.standard_normal((24, 5))
    found = multiclass_hard_margin(x, y)
    scores = x @ found.weights.T
    gaps = scores[np.arange(24), y][:, None] - scores
    gaps[np.arange(24), y] = np.inf
    assert gaps.min() == pytest.approx(1, abs=1e-9)
    np.testing.assert_allclose(found.weights.sum(axis=0), 0, atol=1e-12)
    # stationarity: w_k = Σ_i x_i (1[y_i = k] Σ_l a_il − a_ik)
    rebuilt = np.zeros((3, 5))
    for i, label in enumerate(y):
        rebuilt[label] += found.multipliers[i].sum() * x[i]
        rebuilt -= np.outer(found.multipliers[i], x[i])
    np.testing.assert_allclose(rebuilt, found.weights, atol=1e-10)
    shifted = multiclass_hard_margin(x + 3.0, y, intercept=True)
    scores = (x + 3.0) @ shifted.weights.T + shifted.intercept
    assert np.all(scores.argmax(axis=1) == y)
    two = multiclass_hard_margin(SHEET * np.array([[1], [1], [-1], [1]]), [1, 1, 0, 1])
    np.testing.assert_allclose(two.weights[1] - two.weights[0], [3 / 7, 2 / 7], rtol=1e-12)


@pytest.mark.parametrize("intercept", [False, True])
def test_certificates_of_inseparability(intercept):
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((60, 4)), np.where(rng.standard_normal(60) > 0, 1, -1)
    with pytest.raises(NotSeparable, match="not separable: ") as caught:
        hard_margin(x, y, intercept=intercept)
    weights = caught.value.certificate
    assert np.all(weights >= 0)
    assert weights.sum() == pytest.approx(1)
    assert np.max(np.abs((weights * y) @ x)) < 1e-9
    if intercept:
        assert abs(weights @ y) < 1e-9
    assert isinstance(caught.value, OutsideValidity)
    assert not is_separable(x, y, intercept=intercept)
    assert len(weights) == 60


def test_degenerate_support_is_flagged():
    found = hard_margin([[1.0, 0.0], [1.0, 1.0]], [1, 1])
    assert found.support.tolist() == [0, 1]
    assert found.degenerate.tolist() == [1]


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (SHEET, [1, 0, 1, 1], "labels must be"),
        (SHEET, [1, 2, 1, 1], "labels must be"),
        (SHEET, [1, 1, 1], "one label for each row of x"),
        (np.zeros((0, 2)), [], "at least one"),
        (SHEET * np.nan, np.ones(4), "must be finite"),
        (np.zeros((3, 2)), np.ones(3), "only zeros"),
    ],
)
def test_bad_input(x, y, message):
    with pytest.raises((ParameterError, OutsideValidity), match=message):
        hard_margin(x, y)


def test_bad_classes_and_one_class():
    with pytest.raises(ParameterError, match="numbered 0"):
        multiclass_hard_margin(SHEET, [1, 2, 3, 1])
    with pytest.raises(OutsideValidity, match="one class"):
        hard_margin(SHEET, np.ones(4), intercept=True)
    with pytest.raises(NotSeparable, match="coincide"):
        hard_margin(np.ones((2, 2)), [1, -1], intercept=True)
