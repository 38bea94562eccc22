"""The command line: flags from fields, one line for bad input, exit codes that mean something."""

import json
import xml.etree.ElementTree

import pytest

import deeplimits as dl
from deeplimits.cli import main
from house import run_command


def test_list_and_search(capsys):
    code, out, _ = run_command(capsys, "list")
    assert code == 0
    assert len(out.splitlines()) == len(dl.catalogue)
    code, out, _ = run_command(capsys, "list", "--json", "separable")
    found = [entry["name"] for entry in json.loads(out)]
    assert "hard-margin-predictor" in found
    assert len(found) < len(dl.catalogue) / 2


@pytest.mark.parametrize("name", list(dl.catalogue))
def test_show_every_name(capsys, name):
    code, out, _ = run_command(capsys, "show", name)
    assert code == 0
    for word in (name, "Result", "Validity", "Cited", "Source", "To call it"):
        assert word in out
    assert ("\nComputed by\n  " in out) == (dl.catalogue.entry(name).role != "function")


def test_names_of_parameters_stand_apart_from_what_they_mean(capsys):
    _, out, _ = run_command(capsys, "show", "ntk-recursion")
    assert "parametrization  what is trained" in out
    assert "C_w, weight variance" in out


def test_cite(capsys):
    code, out, _ = run_command(capsys, "cite", "ridgeless-double-descent")
    assert code == 0
    assert "@article{hastie2022," in out


def test_predict_one_value_and_many(capsys, tmp_path):
    code, out, _ = run_command(capsys, "predict", "ridgeless-double-descent", "--gamma", "2", "--noise", "1", "--json")
    assert code == 0
    assert json.loads(out)["predictions"]["risk"]["value"] == pytest.approx(1.5)
    code, out, _ = run_command(capsys, "predict", "ridgeless-double-descent", "--gamma", "2:8:3log", "--noise", "0,1")
    assert code == 0
    assert len(out.splitlines()) == 2 + 6
    figure = tmp_path / "figure.svg"
    assert run_command(capsys, "predict", "ridgeless-double-descent", "--plot", str(figure))[0] == 0
    xml.etree.ElementTree.parse(figure)


def test_predictions_over_a_range_are_one_figure(capsys, tmp_path):
    figure = tmp_path / "figure.svg"
    words = ("predict", "ridgeless-double-descent", "--gamma", "0.5,2,4", "--plot", str(figure), "--only", "risk")
    assert run_command(capsys, *words)[0] == 0
    assert [path.name for path in tmp_path.iterdir()] == ["figure.svg"]


def test_simulate(capsys):
    code, out, _ = run_command(capsys, "simulate", "knn-bias-variance", "--size", "20", "--samples", "9", "--json")
    assert code == 0
    assert len(json.loads(out)["draws"]["risk"]) == 9
    assert run_command(capsys, "simulate", "knn-bias-variance", "--size", "20", "--samples", "9")[1].startswith("knn")


def test_compare_as_in_the_readme(capsys, tmp_path):
    page = tmp_path / "page.html"
    arguments = ("compare", "ridgeless-double-descent", "--gamma", "2", "--noise", "0.5", "--gammas", "0.5,2")
    few = ("--sizes", "40,80", "--samples", "40")
    code, out, _ = run_command(capsys, *arguments, *few, "--html", str(page))
    assert code == 0
    assert out.strip().splitlines()[-1].startswith("AGREES")
    assert "ridgeless-double-descent" in page.read_text()
    code, out, _ = run_command(capsys, *arguments, *few, "--json", "--seed", "1")
    document = json.loads(out)
    assert code == 0
    assert {"name", "parameters", "sizes", "statistic", "threshold", "verdict"} <= set(document)
    assert document["sizes"] == [40, 80]


def test_a_disagreement_exits_with_two(capsys, monkeypatch):
    from deeplimits.theory.regression import smoothing

    right = smoothing.nearest_neighbours_bias_cone
    monkeypatch.setattr(smoothing, "nearest_neighbours_bias_cone", lambda *a: 1.3 * right(*a))
    code, out, _ = run_command(capsys, "compare", "knn-bias-variance", "--dimension", "3", "--samples", "3000")
    assert code == 2
    assert "DISAGREES" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("compare", "marchenko-pastur-law", "--gamma", "-1"), ("gamma = -1", "between 0.01 and 100")),
        (("compare", "marchenko-pastur-law", "--gamma", "nan"), ("gamma = nan", "between 0.01 and 100")),
        (("predict", "marchenko-pastur-law", "--gamma", "big"), ("gamma = 'big'", "a number between")),
        (("predict", "marchenko-pastur-law", "--gamma", "1:2"), ("gamma = '1:2'", "first:last:points")),
        (("predict", "marchenko-pastur-law", "--gamma", "0:2:3log"), ("positive ends",)),
        (("predict", "marchenko-pastur-law", "--entries", "cauchy"), ("entries = 'cauchy'", "gaussian, rademacher")),
        (("predict", "knn-bias-variance", "--neighbours", "2.5"), ("neighbours = '2.5'", "whole number")),
        (("predict", "knn-bias-variance", "--neighbours", "0"), ("neighbours = 0", "between 1 and")),
        (("predict", "marchenko-pastur-low"), ("did you mean marchenko-pastur-law",)),
        (("predict", "ridgeless-finite-sample"), ("is a function",)),
        (("compare", "marchenko-pastur"), ("is a function", "marchenko-pastur-law")),
        (("compare", "marchenko-pastur-law", "--sizes", "a,b"), ("--sizes", "'a,b'", "whole numbers")),
        (("compare", "marchenko-pastur-law", "--bogus", "1"), ("--bogus",)),
        (("compare", "marchenko-pastur-law", "--gama", "1"), ("--gama", "did you mean --gamma?")),
        (("compare", "marchenko-pastur-law", "--size", "9"), ("--size", "did you mean --sizes")),
        (("compare", "--gamma", "1", "marchenko-pastur-law"), ("no entry '1'", "NAME stands before")),
        (("compare",), ("NAME",)),
        (("predict", "marchenko-pastur-law", "--plot", "figure.xyz"), ("figure.xyz",)),
        (("atlas", "--only", "ridgeless-finite-sample"), ("not a limit of its own",)),
        (("nonsense",), ("nonsense",)),
    ],
)
def test_bad_input_is_one_line_and_exit_code_one(capsys, arguments, words):
    code, _, err = run_command(capsys, *arguments)
    assert code == 1
    assert len(err.strip().splitlines()) == 1
    assert all(word in err for word in words), err


def test_debug_shows_the_traceback(capsys):
    from deeplimits.errors import ParameterError

    with pytest.raises(ParameterError):
        main(["--debug", "predict", "marchenko-pastur-law", "--gamma", "-1"])


def test_help_teaches(capsys):
    code, out, _ = run_command(capsys, "--help")
    assert code == 0
    assert "deeplimits compare marchenko-pastur-law" in out
    code, out, _ = run_command(capsys, "compare", "marchenko-pastur-law", "--help")
    assert "--gamma" in out
    assert "dimension per sample" in out
    assert "between 0.01 and" in " ".join(out.split())
