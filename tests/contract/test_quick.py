"""The quick grade, for every limit: it agrees with few simulations, notices gross errors, and keeps the protocol."""

import json
import xml.etree.ElementTree

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import deeplimits as dl
from conftest import each_limit, quick_comparison
from deeplimits.lab import predict as predicting
from deeplimits.lab.simulate import chunk_size, systems
from deeplimits.limit import replace, speaks_of_draws
from deeplimits.parameters import parameters_of
from deeplimits.predictions import Kind
from planting import is_zero, planted, total

GROSS = 1.3


@pytest.fixture
def comparison(name):
    return quick_comparison(name)


@each_limit
def test_theory_does_not_disagree_with_simulation(name, comparison):
    """Few simulations may decide nothing; with the usual number they must (the sharp grade)."""
    assert comparison.outcome != "disagrees", str(comparison)


@each_limit
@pytest.mark.parametrize("factor", [GROSS, 1 / GROSS])
def test_a_gross_error_is_noticed(name, factor, comparison):
    """An error of thirty percent in any result; in an exact statement, ten times its tolerance."""
    for result, trials in comparison.trials.items():
        if not is_zero(trials[-1].stated):
            finding = trials[-1].stated.judge(planted(trials, factor))
            assert finding.outcome == "disagrees", (result, finding.verdict)


@each_limit
def test_theory_and_simulation_speak_of_the_same_results(name, comparison):
    assert set(comparison.findings) == set(comparison.predictions)
    for kind in comparison.predictions.values():
        assert isinstance(kind, Kind)
        assert kind.label
        assert kind.summary()
        for _, values in kind.arrays().values():
            assert not np.any(np.isnan(np.asarray(values)))


@each_limit
def test_simulation_is_reproducible(name, comparison):
    """The same seed gives the same systems, another seed others; by the programs that the comparison compiled."""
    limit = comparison.limit
    size, chunk = min(limit.usual.sizes), chunk_size(limit, comparison.samples)
    sizes, realised = limit.at_size(size)

    def first_chunk(seed):
        return systems(realised, np.array([seed, size, 0]), chunk, sizes)[0]

    again, other, same = first_chunk(comparison.seed), first_chunk(comparison.seed + 1), first_chunk(comparison.seed)
    for result in again:
        np.testing.assert_array_equal(again[result], same[result])
    # What a limit compares itself may be made from what its simulations return; the rest is what they return.
    for result, trials in comparison.trials.items():
        raw = np.asarray(again[result])
        if trials[0].measured.shape[1:] == raw.shape[1:] and result not in _reshaped(comparison):
            np.testing.assert_array_equal(trials[0].measured[: len(raw)], raw[: len(trials[0].measured)])
    random = [result for result, draws in again.items() if np.ptp(draws) > 1e-9]
    assert not random or any(not np.array_equal(other[result], again[result]) for result in random)


def _reshaped(comparison):
    """Results whose kind turns what simulations return into something else before comparing."""
    stated = comparison.limit.theory() if speaks_of_draws(comparison.limit) else comparison.predictions
    drawn = set(comparison.predictions) - set(stated)
    centred = {
        name
        for name, kind in comparison.predictions.items()
        if getattr(kind, "about", None) is not None or getattr(kind, "centre", None) is not None
    }
    return drawn | centred


@each_limit
def test_gradients_and_batches_have_their_shapes(name):
    """jax.grad of the predictions with respect to every continuous parameter, of two limits at once, is traced."""
    limit = dl.catalogue[name]()
    if not jax.tree.leaves(limit) or not limit.theory.__func__.__qualname__.startswith(type(limit).__name__):
        pytest.skip("no continuous parameters, or nothing stated that does not depend on the draw")
    stacked = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), limit)
    values, gradients = eqx.filter_eval_shape(jax.vmap(jax.value_and_grad(total)), stacked)
    assert values.shape == (2,)
    for field, parameter in parameters_of(type(limit)).items():
        if parameter.kind == "real":
            assert getattr(gradients, field).shape == (2,)


@each_limit
def test_new_values_do_not_recompile(name, comparison):
    limit = comparison.limit
    compiled = []
    real = {f: p for f, p in parameters_of(type(limit)).items() if p.kind == "real"}
    changed = replace(
        limit,
        **{
            f: float(p.default) * 1.01 if p.default else 0.01 * (min(p.high, 1.0) - p.low)
            for f, p in real.items()
            if p.default < p.high
        },
    )
    # A limit that another test compared was compiled in this process; one that is not is compiled here.
    jax.block_until_ready(jax.tree.leaves(predicting._theory(limit)))
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, *_, **__: compiled.append(event) if "backend_compile" in event else None
    )
    try:
        jax.block_until_ready(jax.tree.leaves(predicting._theory(changed)))
        assert compiled == []
    finally:
        jax.monitoring.clear_event_listeners()


@each_limit
def test_results_can_be_exported(name, comparison, tmp_path):
    assert dl.Prediction(comparison.limit, comparison.predictions).to_xarray().attrs["limit"] == name
    assert set(comparison.findings) <= set(comparison.to_xarray().data_vars)
    document = json.loads(json.dumps(comparison.to_json(), allow_nan=False))
    assert {"name", "parameters", "sizes", "statistic", "threshold", "verdict"} <= set(document)
    page = comparison.to_html(tmp_path / "page.html")
    assert name in page
    svg = page[page.index("<svg") : page.index("</svg>") + 6]
    xml.etree.ElementTree.fromstring(svg)
    assert "@" in comparison.cite()
    assert str(comparison).count("\n") >= len(comparison.findings)


@each_limit
def test_what_is_drawn_can_be_predicted(name, comparison):
    """`predict` of a limit that speaks of draws shows one, and says something."""
    if not speaks_of_draws(comparison.limit):
        pytest.skip("its prediction does not depend on the draw")
    prediction = dl.predict(comparison.limit)
    assert set(prediction) == set(comparison.findings)
    json.dumps(prediction.to_json(), allow_nan=False)
    assert "nan" not in str(prediction)
