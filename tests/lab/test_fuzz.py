"""Whatever is typed, or stands in a file: read, or refused in a sentence, soon.

    DEEPLIMITS_FUZZ=20000 pytest tests/lab/test_fuzz.py

tries that many inputs of each parser.
"""

import functools
import io
import json
import os
import sqlite3
from contextlib import redirect_stderr, redirect_stdout, suppress

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import deeplimits as dl
from deeplimits import flags
from deeplimits.cli import COMMANDS
from deeplimits.errors import DeeplimitsError
from deeplimits.lab import campaign
from deeplimits.lab.clusters import slurm_options
from deeplimits.lab.outcomes import Outcome
from deeplimits.lab.plans import Plan
from deeplimits.lab.salvage import salvage
from deeplimits.lab.store import Store
from deeplimits.limit import Limit, from_json, to_json
from deeplimits.parameters import parameters_of, read_list

COUNT = int(os.environ.get("DEEPLIMITS_FUZZ", "0"))
NAMES = [entry.name for entry in dl.catalogue.limits()]
SOME = NAMES[::5]
# A hang shows as an input that takes longer than any does.
fuzzed = functools.partial(
    settings,
    deadline=120_000,  # of the clock on the wall, on machines that may be busy
    derandomize=not COUNT,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture(scope="module", autouse=True)
def imported():
    """What is imported while an input is made would be part of it."""
    for name in SOME:
        dl.catalogue.entry(name).load()()


def refused(function, *arguments):
    """The sentence with which something is refused; None where it is not."""
    try:
        function(*arguments)
    except DeeplimitsError as error:
        return str(error)
    return None


def examples(usual):
    return fuzzed(max_examples=COUNT or usual)


number = st.one_of(
    st.floats().map(repr),
    st.integers().map(str),
    st.integers(10**17, 10**30).map(str),
    st.sampled_from(
        ["", "inf", "nan", "1e999", "-0", "1_0", "٣", "0x1", "1e-320", "1.7976931348623157e308", "9" * 5000]
    ),
)
range_ = st.builds(lambda *p: ":".join(p[:3]) + p[3], number, number, number, st.sampled_from(["", "log", "logg"]))
typed = st.one_of(st.text(max_size=40), number, range_, st.lists(st.one_of(number, range_), max_size=5).map(",".join))

plain = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.integers(10**300, 10**310),
        st.floats(),
        st.text(max_size=20),
        st.sampled_from(["0.1:10:5", "relu", "gaussian", "__class__", "os:system"]),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=8), inner, max_size=4)),
    max_leaves=12,
)


@examples(100)
@given(typed)
def test_ranges(text):
    for parameter in (*KINDS.values(),):
        try:
            found = parameter.read_many(text)
        except ValueError:
            continue
        assert isinstance(found, list)
        assert len(found) <= 5_000_010
        for value in found[:3]:
            said = refused(parameter.check, "Owner", "name", value)
            assert said is None or len(said) < 10_000


KINDS = {
    kind: next(one for name in NAMES for one in dl.catalogue.entry(name).about.parameters.values() if one.kind == kind)
    for kind in ("real", "integer", "choice", "axis")
}


WORDS = ["sweep", "--gamma", "--store", "--sizes", "--until", "--dask", *NAMES]


@examples(100)
@given(st.lists(st.one_of(typed, st.sampled_from(WORDS)), max_size=6))
def test_command_lines(words):
    """Every line is understood or refused with exit code 1, without doing anything yet."""
    arguments = ["sweep", *(word for word in words if "\0" not in word)]
    run = dict.fromkeys(COMMANDS, lambda options: 0)
    code: object = 0
    with redirect_stderr(io.StringIO()) as said, redirect_stdout(io.StringIO()), suppress(DeeplimitsError):
        try:
            options = flags.read(arguments, run)
            if options.name:
                dict(flags.values(dl.catalogue.entry(options.name), options))
        except SystemExit as end:
            code = end.code
    assert code in (0, 1)
    assert "Traceback" not in said.getvalue()


@st.composite
def documents(draw):
    """A limit as JSON, mostly right."""
    name = draw(st.sampled_from(SOME))
    cls = dl.catalogue.entry(name).load()
    some = draw(st.lists(st.sampled_from([*parameters_of(cls), "nonsense"]), max_size=3))
    values = {one: draw(st.one_of(plain, st.floats(0.1, 3.0), st.integers(1, 20))) for one in some}
    document = {"name": name, "parameters": values}
    if draw(st.booleans()) and draw(st.booleans()):
        document[draw(st.sampled_from(["name", "parameters"]))] = draw(plain)
    return document


@examples(150)
@given(st.one_of(plain, documents()))
def test_limits_as_json(document):
    made: list[Limit] = []
    said = refused(lambda: made.append(from_json(document)))
    if said is not None:
        assert "\n" not in said
        return
    (found,) = made
    assert isinstance(found, Limit)
    again = from_json(json.loads(json.dumps(to_json(found))))
    assert to_json(again) == to_json(found)


@st.composite
def plans(draw):
    limit = draw(documents())
    document = {"limit": limit["name"], "fixed": limit["parameters"], "varying": draw(plain), "sizes": draw(plain),
                "samples": draw(plain), "seed": draw(plain), "until": draw(plain), "per_task": draw(plain)}  # fmt: skip
    for part in draw(st.lists(st.sampled_from(list(document)), max_size=8)):
        document.pop(part, None)
    return document


@examples(100)
@given(st.one_of(plain, plans()))
def test_plans_of_stores(document):
    with suppress(DeeplimitsError):
        plan = Plan.from_document(document)
        plan.limits()


@examples(200)
@given(st.one_of(st.text(max_size=60), typed.map("queue={},jobs=2".format), typed.map("jobs={}".format)))
def test_options_of_slurm(text):
    try:
        found = slurm_options(text)
    except DeeplimitsError:
        return
    assert all("\n" not in str(value) and '"' not in str(value) for value in found.values())


@examples(100)
@given(st.one_of(st.text(max_size=60), plain.map(json.dumps), st.lists(plain, max_size=2).map(json.dumps)))
def test_cases_of_campaigns(text):
    with suppress(DeeplimitsError):
        campaign.load(text)


LARGE = {"large": 10**309, "negative": -(10**309), "unwritable": 10**5000, "among": [1.0, 10**309]}
TAKING = {"real": "expected-breakpoints", "integer": "knn-bias-variance", "axis": "equiangular-reduction"}


@pytest.mark.parametrize("size", LARGE)
def test_numbers_larger_than_all(size):
    """Whole numbers of Python and of JSON have no largest; those of a computer have."""
    for kind, name in TAKING.items():
        known = parameters_of(dl.catalogue.entry(name).load())
        parameter = next(one for one, about in known.items() if about.kind == kind)
        said = refused(from_json, {"name": name, "parameters": {parameter: LARGE[size]}})
        assert said is not None
        assert parameter in said
        assert len(said) < 1000
    said = refused(Plan.from_document, {"limit": NAMES[0], "until": LARGE[size]})
    assert said is not None
    assert "until" in said


def test_lists_in_lists_are_looked_through():
    deep = [1.0]
    for _ in range(900):
        deep = [deep]
    assert refused(from_json, {"name": "knn-bias-variance", "parameters": {"neighbours": deep}}) is not None
    assert refused(from_json, {"name": "knn-bias-variance", "parameters": {"noise": [deep, -1.0]}}) is not None


def test_a_name_from_a_file_keeps_to_its_line():
    said = refused(from_json, {"name": NAMES[0], "parameters": {"\n\x1b[31m" + 999 * "x": None}})
    assert said is not None
    assert said.isprintable()
    assert len(said) < 500


def test_a_range_is_not_endless():
    for text in ("0:1:1000000000000", "0:1:" + "9" * 4000):
        with pytest.raises(ValueError, match=r"at most 1,000,000|Exceeds"):
            read_list(text)
    assert read_list("1:1.7976931348623157e308:3log")[-1] == 1.7976931348623157e308


class Whole(bytes):
    """A file, not shown where a test fails."""

    def __repr__(self):
        return "WHOLE"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("fuzz") / "whole.db"
    with Store(path) as store:
        store.put({f"k{i}": ({"size": i}, Outcome({"risk": np.arange(40.0) + i})) for i in range(8)})
        store.put({"bad": ({}, Outcome(sentence="no"))})
        store.plan({"limit": NAMES[0], "varying": {}}, 9)
    return Whole(path.read_bytes())


@st.composite
def damages(draw):
    """Bytes changed at some places, a piece cut out, or other bytes altogether."""
    changes = draw(st.lists(st.tuples(st.floats(0, 1), st.binary(min_size=1, max_size=40)), max_size=6))
    head = draw(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 255)), max_size=3))
    cut = draw(st.one_of(st.none(), st.floats(0, 1)))
    return changes, head, cut, draw(st.one_of(st.none(), st.none(), st.binary(max_size=200)))


@examples(60)
@given(damages())
def test_files_of_stores(whole, tmp_path, damage):
    changes, head, cut, other = damage
    data = bytearray(whole)
    for place, piece in changes:
        start = int(place * (len(data) - len(piece)))
        data[start : start + len(piece)] = piece
    for place, value in head:
        data[place] = value
    data = data[: int(cut * len(data))] if cut is not None else data
    path = tmp_path / "fuzzed.db"
    for ending in ("-wal", "-shm", "-journal"):
        (tmp_path / f"fuzzed.db{ending}").unlink(missing_ok=True)
    path.write_bytes(bytes(data) if other is None else other)
    try:
        with Store(path, reading=True) as store:
            assert isinstance(str(store.status()), str)
        with Store(path) as store:
            for key in [*store.keys(), "k3", "none"]:
                found = store.get(key)
                if found is not None and found.good and key in {f"k{i}" for i in range(8)}:
                    # What is believed is what was written.
                    assert found.measured["risk"].tolist() == (np.arange(40.0) + int(key[1:])).tolist()
            store.put({"new": ({}, Outcome({"risk": np.ones(2)}))})
    except DeeplimitsError:
        pass
    try:
        salvage(path)
        with Store(path, reading=True) as store:
            store.status()
    except DeeplimitsError:
        pass
    except sqlite3.Error as error:
        raise AssertionError(f"a raw error of the database: {error}") from error
    for made in tmp_path.glob("fuzzed.db.damaged*"):
        made.unlink()
