"""Parameters may have any name: nothing of the framework stands in their way, in Python or on the command line."""

import json

import jax
import pytest

import deeplimits as dl
from crowded import Crowded
from deeplimits.catalogue import Entry, catalogue
from deeplimits.cli import main
from deeplimits.errors import ParameterError
from deeplimits.flags import COMMANDS, RUNS, WORDS, _parser
from deeplimits.limit import RESERVED, Limit, from_json, real, replace, rounded, to_json, values_of
from deeplimits.parameters import parameters_of
from house import run_command


@pytest.fixture
def crowded(monkeypatch):
    """The limit, in the catalogue."""
    entry = Entry("crowded", "limit", "crowded:Crowded")
    monkeypatch.setattr(catalogue, "_entries", {**catalogue._entries, "crowded": entry})


def test_a_limit_reserves_nothing_but_its_protocol():
    own = {name for name in vars(Limit) if not name.startswith("_")}
    assert own == set(RESERVED)


def test_the_verbs_take_it():
    limit = Crowded(values=1.5, samples=20, seed=0.75)
    assert float(dl.predict(limit)["mean"].value) == 2.5
    found = dl.simulate(limit, size=10, samples=8, seed=3)
    assert found["mean"].shape == (8,)
    attributes = found.to_xarray().attrs
    assert (attributes["limit"], attributes["seed"], attributes["size.samples"]) == ("Crowded", 3, "10")
    assert (attributes["param.seed"], attributes["samples"], attributes["param.limit"]) == (0.75, 10, 0.0)
    comparison = dl.compare(limit)
    assert comparison.agrees
    assert comparison.to_xarray().attrs["param.verdict"] == 0.0
    assert comparison.to_json()["samples"] == 200
    assert comparison.to_json()["parameters"]["samples"] == 20
    comparison.plot()
    assert "samples" in comparison.to_html()


def test_what_is_said_of_it(crowded):
    limit = Crowded(parameters=0.5)
    assert list(values_of(limit)) == list(parameters_of(Crowded))
    assert values_of(replace(limit, values=1.0, rounded=2))["rounded"] == 2
    assert values_of(rounded(limit, limit=1.5))["limit"] == 1.5  # beyond its range: what a rounded ratio may be
    assert values_of(from_json(to_json(limit))) == values_of(limit)
    assert "parameters=0.5, values=2.0" in repr(limit)
    assert "plot='yes'" in repr(limit)
    assert jax.jit(lambda limit: limit.values + 0 * len(repr(limit)))(limit) == 2.0


def test_the_command_line_takes_it(crowded, capsys):
    flags = ("--param.samples", "20", "--param.seed", "0.5", "--values", "1.5", "--param.values", "2.5")
    code, out, _ = run_command(capsys, "predict", "crowded", *flags, "--json")
    found = json.loads(out)
    assert code == 0
    assert (found["parameters"]["samples"], found["parameters"]["seed"], found["parameters"]["values"]) == (
        20,
        0.5,
        2.5,
    )
    code, out, _ = run_command(
        capsys, "simulate", "crowded", *flags, "--samples", "9", "--seed", "4", "--size", "7", "--json"
    )
    found = json.loads(out)
    assert code == 0
    assert (len(found["draws"]["mean"]), found["seed"], found["sizes"]) == (9, 4, {"samples": 7})
    assert (found["parameters"]["samples"], found["parameters"]["seed"]) == (7, 0.5)
    words = ("--samples", "1e2", "--seed", "4", "--sizes", "10:30:3", "--json")
    code, out, _ = run_command(
        capsys, "compare", "crowded", *flags, "--param.sizes", "0.1", "--param.plot", "no", *words
    )
    found = json.loads(out)
    assert code == 0
    assert (found["samples"], found["seed"], found["sizes"]) == (100, 4, [10, 20, 30])
    assert (found["parameters"]["sizes"], found["parameters"]["plot"]) == (0.1, "no")


def test_a_flag_of_another_command_is_not_taken_for_a_parameter(crowded, capsys):
    code, _, err = run_command(capsys, "predict", "crowded", "--samples", "20")
    assert code == 1
    assert "did you mean --param.samples?" in err


def test_help_says_the_rule(crowded, capsys):
    code, out, _ = run_command(capsys, "compare", "crowded", "--help")
    assert code == 0
    assert "--param.samples SAMPLES" in out
    assert "--values VALUES" in out
    assert "--param.values" not in out
    assert "has only that long form" in out


def test_the_words_are_all_the_words():
    _, commands = _parser(None, dict.fromkeys(COMMANDS, main))
    found = {
        flag[2:].replace("-", "_")
        for word in (*RUNS, "sweep")
        for flag in commands[word]._option_string_actions
        if flag.startswith("--")
    }
    assert found == set(WORDS)


def test_the_protocols_own_names_are_refused_when_the_class_is_made():
    with pytest.raises(ParameterError, match="no parameter can be called theory"):

        class Wrong(Limit):
            """A limit."""

            theory: jax.Array = real(1.0, 0.0, 2.0)
