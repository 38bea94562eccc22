"""The sharp grade, for every limit (slow): agreement at the usual samples with a fresh seed, five percent noticed."""

import dataclasses
import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import deeplimits as dl
from conftest import each_limit, usual_comparison
from deeplimits.limit import speaks_of_draws
from deeplimits.limits.bias.gd_min_norm_least_squares import GdMinNormLeastSquares
from deeplimits.parameters import parameters_of
from deeplimits.theory.bias import least_squares
from planting import is_zero, planted, total, wrong_rate

SHARP = 1.05


@pytest.fixture
def comparison(name):
    return usual_comparison(name)


@pytest.mark.slow
@each_limit
def test_theory_agrees_with_simulation(name, comparison):
    assert comparison.agrees, str(comparison)


@pytest.mark.slow
@each_limit
@pytest.mark.parametrize("factor", [SHARP, 1 / SHARP])
def test_five_percent_is_noticed(name, factor, comparison):
    judged = 0
    for result, trials in comparison.trials.items():
        if not is_zero(trials[-1].stated):
            finding = trials[-1].stated.judge(planted(trials, factor))
            assert finding.outcome == "disagrees", (result, finding.verdict)
            judged += 1
    assert judged


@pytest.mark.slow
@each_limit
def test_gradients_are_numbers(name, comparison):
    """jax.grad of the predictions with respect to every continuous parameter, of two limits at once by jax.vmap."""
    limit = comparison.limit
    if not jax.tree.leaves(limit) or speaks_of_draws(limit):
        pytest.skip("no continuous parameters, or nothing stated that does not depend on the draw")
    stacked = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), limit)
    values, gradients = jax.jit(jax.vmap(jax.value_and_grad(total)))(stacked)
    leaves = jax.tree.leaves(eqx.filter(list(comparison.predictions.values()), eqx.is_inexact_array))
    alone = sum(float(jnp.sum(leaf)) for leaf in leaves)
    np.testing.assert_allclose(values, alone, rtol=1e-6, atol=1e-9)
    for field, parameter in parameters_of(type(limit)).items():
        if parameter.kind == "real":
            assert np.all(np.isfinite(getattr(gradients, field))), field


@functools.cache
def many_small_systems(name):
    """A comparison at small sizes with many systems, in which the finite-size gap stands far out of the noise."""
    if name == "ridgeless-double-descent":
        limit = dl.limits.RidgelessDoubleDescent(gamma=0.5, noise=1.0, gammas=[0.4, 0.5, 2.0])
        return dl.compare(limit, sizes=(24, 48, 96), samples=3000)
    return dl.compare(dl.limits.MarchenkoPasturLaw(), sizes=(20, 40, 80), samples=8000)


RATES = [
    ("ridgeless-double-descent", "variance"),
    ("ridgeless-double-descent", "risk_curve"),
    ("marchenko-pastur-law", "eigenvalues"),
    ("marchenko-pastur-law", "operator_norm_gap"),
    ("marchenko-pastur-law", "frobenius_gap"),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "result"), [pytest.param(*pair, marks=pytest.mark.xdist_group(pair[0])) for pair in RATES]
)
@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_a_finite_size_rate_off_by_two_is_noticed(name, result, factor):
    comparison = many_small_systems(name)
    assert comparison.findings[result].agrees, comparison.findings[result].verdict
    trials = comparison.trials[result]
    assert not trials[-1].stated.judge(wrong_rate(trials, factor)).agrees


def test_a_dropped_factor_two_in_a_decay_rate_is_noticed():
    class Forgetful(GdMinNormLeastSquares):
        def stated(self, system):
            right = GdMinNormLeastSquares.stated(self, system)
            halved = least_squares.gradient_descent(
                *system.design, system.start, system.step / 2, jnp.arange(self.steps + 1)
            )
            return {**right, "trajectory": dataclasses.replace(right["trajectory"], value=halved)}

    comparison = dl.compare(Forgetful())
    assert not comparison.findings["trajectory"].agrees
    assert comparison.findings["row_space"].agrees


@pytest.mark.slow
@pytest.mark.xdist_group("nadaraya-watson-singular-kernel")
def test_a_dropped_factor_two_in_an_exponent_is_noticed():
    trials = usual_comparison("nadaraya-watson-singular-kernel").trials["rate"]
    assert not trials[-1].stated.judge(planted(trials, 0.5)).agrees
