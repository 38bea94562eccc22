"""A verdict knows its own power: what it would have noticed, what it cannot decide, and what would decide it."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import deeplimits as dl
from deeplimits.errors import DeeplimitsError, OutsideValidity, TooCostly
from deeplimits.lab import budget, cost, rounds
from deeplimits.lab.task import Task
from deeplimits.limit import Run
from deeplimits.predictions import Curve, Trial, Value
from planting import planted

MarchenkoPastur = dl.catalogue["marchenko-pastur-law"]


def trials_of(stated, law, sizes, noise=1e-3, samples=400, rate=1.0, seed=0):
    rng = np.random.default_rng(seed)
    kind = Value(jnp.asarray(stated), label="v", rate=rate)
    return [Trial(n, kind, law(n) + noise * rng.standard_normal(samples)) for n in sizes]


@pytest.mark.parametrize("noise", [1e-3, 0.1, 0.5])
def test_agreement_says_what_it_would_have_noticed(noise):
    """An error a little larger than stated is rejected, in both directions; one half as large is not in one of them."""
    trials = trials_of(2.0, lambda n: 2 + 1 / n, (50, 100, 200), noise)
    finding = Value.judge(trials)
    assert finding.outcome == "agrees"
    assert "to within" in finding.verdict
    for factor in (1 + 1.06 * finding.noticed, 1 / (1 + 1.06 * finding.noticed)):
        assert Value.judge(planted(trials, factor)).outcome == "disagrees"
    half = [
        Value.judge(planted(trials, factor)).outcome for factor in (1 + finding.noticed / 2, 1 - finding.noticed / 2)
    ]
    assert set(half) != {"disagrees"}


def test_noise_that_hides_a_fifth_decides_nothing_and_asks_for_samples():
    finding = Value.judge(trials_of(1.0, lambda n: 1.0, (50, 100, 200), noise=5.0, samples=100))
    assert (finding.outcome, finding.lacks) == ("undecided", "samples")
    assert "samples or more" in finding.advice


def operator_norms(n, samples=100):
    """‖S − I‖ of sample covariances of n dimensions and 2n samples: 1/2 + √2 in the limit, far from it at n = 10."""
    rng = np.random.default_rng(n)
    x = rng.standard_normal((samples, n, 2 * n))
    return np.abs(np.linalg.eigvalsh(x @ x.transpose(0, 2, 1) / (2 * n)) - 1).max(axis=1)


@pytest.mark.parametrize("factor", [1.0, 1.5])
def test_two_small_sizes_decide_nothing(factor):
    """Neither for the right theory nor for one that is wrong by a half, which was once told to agree."""
    kind = Value(factor * (0.5 + jnp.sqrt(2.0)), label="norm", rate=2 / 3)
    trials = [Trial(n, kind, operator_norms(n)) for n in (10, 20)]
    finding = Value.judge(trials)
    assert (finding.outcome, finding.lacks) == ("undecided", "sizes")
    assert "three sizes" in finding.advice


def test_three_sizes_reject_what_two_could_not():
    kind = Value(0.5 + jnp.sqrt(2.0), label="norm", rate=2 / 3)
    trials = [Trial(n, kind, operator_norms(n, 400)) for n in (10, 20, 40)]
    assert Value.judge(trials).outcome == "agrees"
    assert Value.judge(planted(trials, 1.5)).outcome == "disagrees"


def test_a_wrong_theory_gets_no_allowance_for_being_wrong():
    """The allowance is made from what changes with the size; a constant error leaves it as it is."""
    trials = trials_of(1.0, lambda n: 1 / (1 - 4 / n), (20, 40, 80), noise=1e-3)
    assert Value.judge(trials).outcome == "agrees"
    for factor in (1.05, 1.5, 3.0, 0.5):
        assert Value.judge(planted(trials, factor)).outcome == "disagrees"


def test_sizes_far_from_the_limit_decide_nothing():
    """A correction of two thirds that does not go like 1/n: nobody can say what it tends to."""
    trials = trials_of(1.0, lambda n: 1 + 4 / n - 60 / n**2, (8, 16, 32), noise=1e-4)
    assert Value.judge(trials).outcome == "undecided"
    # Larger sizes decide.
    assert Value.judge(trials_of(1.0, lambda n: 1 + 4 / n - 60 / n**2, (80, 160, 320), noise=1e-4)).outcome == "agrees"


def test_a_wrong_rate_is_still_noticed():
    trials = trials_of(1.0, lambda n: 1 + n**-0.5, (100, 200, 400), noise=1e-3)
    assert Value.judge(trials).outcome == "disagrees"
    assert Value.judge(trials_of(1.0, lambda n: 1 + n**-0.5, (100, 200, 400), noise=1e-3, rate=0.5)).agrees


def test_a_statement_of_zero_has_no_relative_error():
    finding = Value.judge(trials_of(0.0, lambda n: 0.0, (50, 100, 200), noise=0.1))
    assert finding.outcome == "agrees"
    assert finding.noticed is None


def test_an_undecided_comparison_is_made_again_larger():
    """At γ = 0.51 the smallest eigenvalue is far from its edge at the usual sizes."""
    found = dl.compare(dl.limits.BaiYinEdges(gamma=0.51))
    assert found.outcome == "agrees", str(found)
    assert max(found.sizes) > max(found.limit.usual.sizes)
    # What the user chose is not changed.
    assert dl.compare(dl.limits.BaiYinEdges(gamma=0.51), sizes=(20, 40), samples=60).sizes == (20, 40)


def too_large(**changes):
    """The law of Marchenko and Pastur with one of its statements half as large again."""

    class Wrong(MarchenkoPastur):
        usual = Run(sizes=(20, 40, 80), samples=60)

        def theory(self):
            found = MarchenkoPastur.theory(self)
            gap = found["frobenius_gap"]
            return {**found, "frobenius_gap": dataclasses.replace(gap, value=1.5 * gap.value, **changes)}

    return Wrong()


def test_a_disagreement_about_the_limit_must_stay_at_larger_sizes(monkeypatch):
    """What is wrong stays wrong, and is told after sizes were doubled; what is stated of every size is told at once."""
    monkeypatch.setattr(rounds, "MOST_ROUNDS", 1)
    found = dl.compare(too_large())
    assert found.outcome == "disagrees"
    assert found.sizes[0] > 20
    assert dl.compare(too_large(rate=None)).sizes == (20, 40, 80)


def test_two_sizes_that_decide_nothing_get_a_third():
    assert rounds._three([24, 144]) == [24, 59, 144]
    kind = Value(0.5 + jnp.sqrt(2.0), label="norm", rate=2 / 3)
    assert Value.judge([Trial(n, kind, operator_norms(n, 400)) for n in (10, 20, 40)]).outcome == "agrees"


def test_sizes_are_doubled_where_the_parameters_need_larger_ones():
    """At p = 0.3 the scale α² = m^0.6 of 32 neurons is 8, too small to be lazy."""
    limit = dl.catalogue["ntk-vs-mean-field-scaling"](exponent=0.3)
    tasks = [Task(limit, n, 60) for n in (32, 128, 512)]
    assert [task.size for task in budget.large_enough(tasks)] == [256, 1024, 4096]
    with pytest.raises(OutsideValidity, match=r"exponent = 0.3 gives m = 32 neurons"):
        dl.compare(limit, sizes=(32, 128, 512), samples=60)


def test_a_second_order_larger_than_assumed_is_fitted():
    """A first order of three percent makes the assumption expect a second of two in a thousand; it is one percent."""
    trials = trials_of(1.0, lambda n: 1 + 0.6 / n + 4 / n**2, (20, 40, 80), noise=2e-3)
    assert Value.judge(trials).outcome != "disagrees"
    assert Value.judge(planted(trials, 1.02)).outcome == "disagrees"


def test_points_of_a_curve_share_their_relative_correction():
    """Where the first order cancels at one point, the next is no smaller there."""
    rng = np.random.default_rng(0)
    x = jnp.array([1.0, 2.0])
    kind = Curve(x, jnp.ones(2), axis="x", label="curve", rate=1.0)

    def mean(n):
        return np.array([1 + 8 / n, 1 + 0.3 / n + 3 / n**2])

    trials = [Trial(n, kind, mean(n) + 0.02 * rng.standard_normal((400, 2))) for n in (20, 40, 80)]
    assert Curve.judge(trials).outcome == "agrees"


def test_costs_are_known_before():
    few, many = (
        jax.make_jaxpr(lambda x, n=n: jax.lax.scan(lambda c, _: (jnp.sin(c), None), x, None, length=n)[0])(
            jnp.ones(1000)
        )
        for n in (10, 10_000)
    )
    assert cost.seconds(many) == pytest.approx(1000 * cost.seconds(few))
    square = jax.make_jaxpr(jnp.linalg.eigh)
    assert cost.seconds(square(jnp.eye(400))) > 10 * cost.seconds(square(jnp.eye(100)))


def test_what_takes_too_long_is_made_smaller_or_refused_with_an_estimate(monkeypatch):
    tasks = [Task(dl.limits.BaiYinEdges(), n, 600) for n in (20, 40, 80)]
    monkeypatch.setattr(budget, "seconds", lambda task: 40.0 * task.samples / 600)
    assert [task.samples for task in budget.within_budget(tasks)] == [300] * 3
    monkeypatch.setattr(budget, "seconds", lambda task: 4000.0 * task.samples / 600)
    with pytest.raises(TooCostly, match=r"20 minutes for 60 systems .* give sizes or samples"):
        budget.within_budget(tasks)


def test_a_statement_that_is_zero_at_some_sizes_is_judged():
    noise = np.random.default_rng(0).standard_normal((3, 200))
    stated = [Value(jnp.asarray(value), label="a value") for value in (0.0, 1.0, 2.0)]
    measured = [value + 0.1 * value * row for value, row in zip((0.0, 1.0, 2.0), noise, strict=True)]
    found = Value.judge([kind.trial(size, row) for kind, size, row in zip(stated, (10, 20, 40), measured, strict=True)])
    assert found.agrees
    assert found.noticed is not None
    assert found.noticed < 0.2


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("spiked-covariance-bbp", {"strength": 0.05449196814865688}),
        ("gd-linear-stability", {"gamma": 0.9922816745332091}),
        ("marchenko-pastur-law", {"gamma": 100.00000001}),
        ("no-free-lunch", {"seen": 848, "cells": 623}),
    ],
)
def test_a_refusal_names_the_number_that_was_given(name, values):
    given, value = next(iter(values.items()))
    with pytest.raises(DeeplimitsError, match=rf"{given} = {value}\b"):
        dl.compare(name, **values)
