"""Every limit of the catalogue obeys the protocol."""

import json
import xml.etree.ElementTree

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import deeplimits as dl
from conftest import each_compared_limit, each_limit, one_limit_of_each_family
from deeplimits import references, source
from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.lab.predict import _theory
from deeplimits.lab.simulate import _simulate_many, chunk_size
from deeplimits.limit import Limit
from deeplimits.predictions import Kind


def limit_of(name):
    return dl.catalogue[name]()


@each_limit
def test_is_a_final_limit_with_a_complete_docstring(name):
    limit = limit_of(name)
    assert isinstance(limit, Limit)
    sections = dl.catalogue.entry(name).source.sections
    assert {"Setting", "Result", "Validity", "Finite size", "References"} <= set(sections)
    assert "size counts" in sections["Validity"], "the docstring must say what a size counts"
    assert dl.catalogue.entry(name).source.references
    assert all(key in references.entries() for key in dl.catalogue.entry(name).source.references)


@each_limit
def test_source_reads_the_same_parameters_as_python(name):
    cls = dl.catalogue[name]
    assert source.read(f"{cls.__module__}:{cls.__name__}").parameters == cls.parameters()


@each_limit
def test_every_parameter_is_explained_and_its_default_allowed(name):
    for field, parameter in dl.catalogue[name].parameters().items():
        assert parameter.doc, field
        parameter.check(name, field, parameter.default)


@each_limit
def test_json_round_trip(name):
    limit = limit_of(name)
    document = json.loads(json.dumps(limit.to_json()))
    assert document["name"] == name
    again = Limit.from_json(document)
    assert type(again) is type(limit)
    assert again.values() == limit.values()


@each_limit
def test_sizes_round_to_the_ratio_they_have(name):
    limit = limit_of(name)
    for size in limit.sizes:
        sizes, realised = limit.at_size(size)
        assert all(isinstance(value, int | tuple) for value in sizes.values())
        again_sizes, again = realised.at_size(size)
        assert again_sizes == sizes
        assert again.values() == realised.values()


@each_compared_limit
def test_theory_and_simulation_speak_of_the_same_results(name, comparison):
    assert set(comparison.findings) == set(comparison.predictions)
    for kind in comparison.predictions.values():
        assert isinstance(kind, Kind)
        assert kind.label
        assert kind.summary()
        for _, values in kind.arrays().values():
            assert not np.any(np.isnan(np.asarray(values)))


@each_compared_limit
def test_theory_agrees_with_simulation(name, comparison):
    assert comparison.agrees, str(comparison)


@each_compared_limit
def test_simulation_is_reproducible(name, comparison):
    """The same seed gives the same systems, another seed others; by the programs that the comparison compiled."""
    limit = comparison.limit
    size, chunk = min(limit.sizes), chunk_size(limit, comparison.samples)
    sizes, realised = limit.at_size(size)

    def first_chunk(seed):
        keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), size), comparison.samples)
        return _simulate_many(realised, keys[:chunk], sizes)

    again, other = first_chunk(comparison.seed), first_chunk(comparison.seed + 1)
    earlier = {result: trials[0].measured[:chunk] for result, trials in comparison.trials.items()}
    for result, draws in earlier.items():
        np.testing.assert_array_equal(again[result], draws)
    random = {result for result, draws in earlier.items() if np.ptp(draws) > 1e-9}
    assert not random or any(not np.array_equal(other[result], earlier[result]) for result in random)


@one_limit_of_each_family
def test_gradients_and_batches(name, comparison):
    """jax.grad of the predictions with respect to every continuous parameter, of two limits at once by jax.vmap."""
    limit = comparison.limit
    if not jax.tree.leaves(limit):
        pytest.skip("no continuous parameters")

    def total(limit):
        leaves = jax.tree.leaves(eqx.filter(list(limit.theory().values()), eqx.is_inexact_array))
        return sum((jnp.sum(leaf) for leaf in leaves), jnp.zeros(()))

    stacked = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), limit)
    values, gradients = jax.jit(jax.vmap(jax.value_and_grad(total)))(stacked)
    leaves = jax.tree.leaves(eqx.filter(list(comparison.predictions.values()), eqx.is_inexact_array))
    alone = sum(float(jnp.sum(leaf)) for leaf in leaves)
    np.testing.assert_allclose(values, alone, rtol=1e-6, atol=1e-9)
    for field, parameter in limit.parameters().items():
        if parameter.kind == "real":
            assert np.all(np.isfinite(getattr(gradients, field))), field


@each_compared_limit
def test_new_values_do_not_recompile(name):
    limit = limit_of(name)
    compiled = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, *_, **__: compiled.append(event) if "backend_compile" in event else None
    )
    try:
        real = {f: p for f, p in limit.parameters().items() if p.kind == "real"}
        changed = limit.replace(
            **{
                f: float(p.default) * 1.01 if p.default else 0.01 * (p.high - p.low)
                for f, p in real.items()
                if p.default < p.high
            }
        )
        jax.block_until_ready(jax.tree.leaves(_theory(limit)))
        compiled.clear()
        jax.block_until_ready(jax.tree.leaves(_theory(changed)))
        assert compiled == []
    finally:
        jax.monitoring.clear_event_listeners()


@one_limit_of_each_family
def test_results_can_be_exported(name, comparison, tmp_path):
    prediction = dl.predict(comparison.limit)
    assert prediction.to_xarray().attrs["limit"] == name
    assert set(comparison.findings) <= set(comparison.to_xarray().data_vars)
    document = json.loads(json.dumps(comparison.to_json(), allow_nan=False))
    assert {"name", "parameters", "sizes", "statistic", "threshold", "verdict"} <= set(document)
    json.dumps(prediction.to_json(), allow_nan=False)
    page = comparison.to_html(tmp_path / "page.html")
    assert name in page
    assert "<svg" in page
    prediction.plot(tmp_path / "prediction.svg")
    xml.etree.ElementTree.parse(tmp_path / "prediction.svg")
    assert "@" in comparison.cite()
    assert str(comparison).count("\n") >= len(comparison.findings)


@each_limit
def test_bad_values_are_refused_by_name(name):
    cls = dl.catalogue[name]
    for field, parameter in cls.parameters().items():
        bad = {
            "real": (float("nan"), "much", True, parameter.default * 0 + 1e300 if parameter.kind == "real" else 0),
            "integer": (2.5, "many", -(10**9)),
            "choice": ("no such option",),
            "axis": ([], [2.0, 1.0], [float("nan")]),
        }[parameter.kind]
        for value in bad:
            with pytest.raises(ParameterError, match=field) as caught:
                cls(**{field: value})
            assert cls.__name__ in str(caught.value)


def values_for(parameter, static):
    if parameter.kind in ("choice", "integer") and not static:
        return st.just(parameter.default)  # another value would compile anew
    if parameter.kind == "choice":
        return st.sampled_from(parameter.options)
    if parameter.kind == "integer":
        return st.integers(parameter.low, min(int(parameter.high), 5000))
    if parameter.kind == "real":
        high = min(parameter.high, 1e6)
        if parameter.log:
            return st.floats(np.log(parameter.low), np.log(high)).map(
                lambda u: float(np.clip(np.exp(u), parameter.low, high))
            )
        return st.floats(parameter.low, high)
    return st.just(parameter.default)


@each_compared_limit
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_predictions_are_numbers_over_the_whole_range(name, data):
    check_somewhere(name, data, static=False)


@pytest.mark.slow
@each_limit
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_predictions_are_numbers_over_the_whole_range_at_length(name, data):
    check_somewhere(name, data, static=True)


def check_somewhere(name, data, static):
    cls = dl.catalogue[name]
    limit = cls(
        **{field: data.draw(values_for(parameter, static), field) for field, parameter in cls.parameters().items()}
    )
    if limit.validity():
        with pytest.raises(OutsideValidity, match=cls.__name__):
            dl.predict(limit)
        return
    prediction = dl.predict(limit)
    for kind in prediction.values():
        for part, (_, values) in kind.arrays().items():
            assert not np.any(np.isnan(np.asarray(values))), (kind.label, part)
