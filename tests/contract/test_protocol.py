"""Every limit of the catalogue obeys the protocol: what needs no simulation."""

import importlib
import json
from importlib import resources

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import deeplimits as dl
from conftest import each_limit
from deeplimits import indexing, references
from deeplimits.errors import DeeplimitsError, OutsideValidity, ParameterError
from deeplimits.index import class_name
from deeplimits.lab.task import imports
from deeplimits.limit import Limit, Run, from_json, speaks_of_draws, to_json, values_of
from deeplimits.parameters import parameters_of


def limit_of(name):
    return dl.catalogue[name]()


def of_another_package(name):
    """Whether an entry point brought it: its functions stand in its own file, whose name is its own affair."""
    return not dl.catalogue.entry(name).target.startswith("deeplimits.")


@each_limit
def test_is_a_final_limit_with_a_complete_docstring(name):
    limit = limit_of(name)
    assert isinstance(limit, Limit)
    assert isinstance(limit.usual, Run)
    assert len(limit.usual.sizes) >= 2
    about = dl.catalogue.entry(name).about
    sections = about.statement.sections
    assert {"Setting", "Result", "Validity", "Finite size", "References"} <= set(sections)
    assert "Computed by" in sections or of_another_package(name)
    validity = " ".join(sections["Validity"].lower().split())
    assert "size counts" in validity, "the docstring must say what a size counts"
    assert about.statement.references
    assert references.bibtex(about.statement.references, about.module)


@each_limit
def test_class_and_file_are_named_like_the_entry(name):
    entry = dl.catalogue.entry(name)
    file = name.replace("-", "_")
    assert entry.target == f"deeplimits.limits.{entry.room}.{file}:{class_name(name)}" or of_another_package(name)
    assert getattr(dl.limits, class_name(name)) is dl.catalogue[name]


@each_limit
def test_rounding_at_a_size_refuses_nothing(name):
    """At the ends of the ranges whole numbers of a finite system lie beyond; a user never gave those values."""
    cls = dl.catalogue[name]
    sizes = {size for usual in cls.usual.sizes for size in (usual, round(1.37 * usual), 2 * usual - 1)}
    for parameter, kind in parameters_of(cls).items():
        for end in (kind.low, kind.high) if kind.kind == "real" else ():
            if not np.isfinite(end):
                continue
            limit = cls(**{parameter: end})
            for size in sizes:
                try:
                    limit.at_size(size)
                except ParameterError as error:
                    raise AssertionError(f"{parameter} = {end} at size {size}: {error}") from error
                except DeeplimitsError:
                    pass  # its own condition


@each_limit
def test_what_it_is_computed_by_is_there(name):
    """`Computed by` names functions of the theory; a limit that calls none says that it needs none."""
    about = dl.catalogue.entry(name).about
    assert [f"{part.name}" for part in about.parts] == [
        named.rpartition(".")[2] for named in about.statement.computed_by
    ]
    for part in about.parts:
        assert callable(getattr(importlib.import_module(part.module), part.name))
        assert part.title
    calls_theory = any(module.startswith("deeplimits.theory") for module in imports(about.module))
    assert about.parts or not calls_theory


@each_limit
def test_the_index_holds_the_parameters(name):
    assert dl.catalogue.entry(name).about.parameters == parameters_of(dl.catalogue[name])


def test_the_index_is_fresh():
    """After a change of a docstring or a parameter: `python -m deeplimits.indexing`."""
    text = resources.files("deeplimits").joinpath("index.json").read_text(encoding="utf-8")
    assert text == indexing.build(), "run `python -m deeplimits.indexing` and commit src/deeplimits/index.json"


@each_limit
def test_every_parameter_is_explained_and_its_default_allowed(name):
    for field, parameter in parameters_of(dl.catalogue[name]).items():
        assert parameter.doc, field
        parameter.check(name, field, parameter.default)


@each_limit
def test_json_round_trip(name):
    limit = limit_of(name)
    document = json.loads(json.dumps(to_json(limit)))
    assert document["name"] == name
    again = from_json(document)
    assert type(again) is type(limit)
    assert values_of(again) == values_of(limit)


@each_limit
def test_sizes_are_integers_and_round_to_the_ratio_they_have(name):
    limit = limit_of(name)
    for size in limit.usual.sizes:
        sizes, realised = limit.at_size(size)
        for value in sizes.values():
            assert all(type(one) is int for one in (value if isinstance(value, tuple) else (value,))), sizes
        again_sizes, again = realised.at_size(size)
        assert again_sizes == sizes
        assert values_of(again) == values_of(realised)


@each_limit
def test_bad_values_are_refused_by_name(name):
    cls = dl.catalogue[name]
    for field, parameter in parameters_of(cls).items():
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


@each_limit
@settings(max_examples=2, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_predictions_are_numbers_over_the_whole_range(name, data):
    check_somewhere(name, data, static=False)


@pytest.mark.slow
@each_limit
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_predictions_are_numbers_over_the_whole_range_at_length(name, data):
    check_somewhere(name, data, static=True)


def check_somewhere(name, data, static):
    cls = dl.catalogue[name]
    limit = cls(
        **{field: data.draw(values_for(parameter, static), field) for field, parameter in parameters_of(cls).items()}
    )
    if limit.validity():
        with pytest.raises(OutsideValidity, match=cls.__name__):
            dl.predict(limit)
        return
    try:
        prediction = dl.predict(limit)
    except OutsideValidity:
        if speaks_of_draws(limit):  # a statement about a drawn system needs a system that can be drawn
            return
        raise
    for kind in prediction.values():
        for part, (_, values) in kind.arrays().items():
            assert not np.any(np.isnan(np.asarray(values))), (kind.label, part)
