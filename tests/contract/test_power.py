"""A comparison that was never seen to fail proves nothing: wrong theories must be rejected."""

import functools

import jax.numpy as jnp
import numpy as np
import pytest

import deeplimits as dl
from conftest import each_compared_limit, usual_comparison
from deeplimits.limits.bias.gd_min_norm_least_squares import MinNormLeastSquares
from deeplimits.theory.bias import least_squares
from planting import planted, wrong_rate


def is_zero(kind):
    """A prediction of zero stays zero when multiplied; there is nothing to plant."""
    values = np.asarray(kind.arrays()[""][1])
    return kind.kind in ("Value", "Curve", "Exponent") and not np.any(values)


@each_compared_limit
@pytest.mark.parametrize("factor", [1.05, 1 / 1.05])
def test_five_percent_is_noticed(name, factor, comparison):
    judged = 0
    for result, trials in comparison.trials.items():
        if is_zero(trials[-1].stated):
            continue
        if trials[-1].stated.kind == "Bound":
            factor = max(factor, 1 / factor)  # a bound that is too generous is no error
        finding = trials[-1].stated.compare(planted(trials, factor))
        assert not finding.agrees, (result, finding.verdict)
        judged += 1
    assert judged


@functools.cache
def many_small_systems(name):
    """A comparison at small sizes with many systems, in which the finite-size gap stands far out of the noise."""
    if name == "ridgeless-double-descent":
        limit = dl.limits.RidgelessRegression(gamma=0.5, noise=1.0, gammas=[0.4, 0.5, 2.0])
        return dl.compare(limit, sizes=(24, 48, 96), samples=3000)
    return dl.compare(dl.limits.MarchenkoPastur(), sizes=(20, 40, 80), samples=3000)


RATES = [
    ("ridgeless-double-descent", "variance"),
    ("ridgeless-double-descent", "risk_curve"),
    ("marchenko-pastur-law", "eigenvalues"),
    ("marchenko-pastur-law", "operator_norm_gap"),
    ("marchenko-pastur-law", "frobenius_gap"),
]


@pytest.mark.parametrize(
    ("name", "result"), [pytest.param(*pair, marks=pytest.mark.xdist_group(pair[0])) for pair in RATES]
)
@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_a_finite_size_rate_off_by_two_is_noticed(name, result, factor):
    comparison = many_small_systems(name)
    assert comparison.findings[result].agrees, comparison.findings[result].verdict
    trials = comparison.trials[result]
    assert not trials[-1].stated.compare(wrong_rate(trials, factor)).agrees


def test_a_dropped_factor_two_in_a_decay_rate_is_noticed():
    class Forgetful(MinNormLeastSquares):
        def _closed_form(self, x, y, start, step):
            return least_squares.gradient_descent(x, y, start, step / 2, jnp.arange(self.steps + 1))

    comparison = dl.compare(Forgetful())
    assert not comparison.findings["trajectory"].agrees
    assert comparison.findings["row_space"].agrees


@pytest.mark.xdist_group("nadaraya-watson-singular-kernel")
def test_a_dropped_factor_two_in_an_exponent_is_noticed():
    trials = usual_comparison("nadaraya-watson-singular-kernel").trials["rate"]
    assert not trials[-1].stated.compare(planted(trials, 0.5)).agrees
