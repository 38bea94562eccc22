"""Every figure of the gallery at its small size; and that an interrupted one goes on where it was."""

import importlib.util
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from deeplimits import gallery
from deeplimits.catalogue import catalogue
from deeplimits.errors import MissingExtra, ParameterError, UnknownName
from deeplimits.gallery import making
from deeplimits.gallery.figure import Check, Run
from deeplimits.predictions.picture import SIMULATION, THEORY, Picture
from house import run_command

SLOW = {
    "F11": "the theory of ten classes is compiled for its spectra, and nothing else",
    "F14": "the same theory, over time",
    "F16": "the encoder, layer by layer, which tests/attention/test_encoder.py runs as well",
    "F19": "a plateau lasts for tens of thousands of steps, whatever the dimension",
    "F21": "SGD of two kinds of networks, each compiled for two sizes",
}
"""Figures whose small size takes more than some seconds, and why."""


def marked(entry):
    marks = [pytest.mark.slow] if entry.label in SLOW else []
    return pytest.param(entry, id=entry.stem, marks=marks)


@pytest.mark.parametrize("entry", map(marked, gallery.entries()))
def test_figure(entry):
    try:
        made = gallery.make(entry, size="small", progress=False)
    except MissingExtra as error:  # data and weights that are no part of the package
        pytest.skip(str(error))
    assert made.checks, "a figure states the numbers that show its phenomenon"
    assert made.holds, str(made)
    marks = [mark for picture in made.pictures for mark in picture.marks]
    assert {THEORY, SIMULATION} <= {mark.role for mark in marks}, "theory and simulation are both on it"
    for picture in made.pictures:
        assert picture.caption.endswith("."), "a caption is a sentence"
        assert picture.x.label or picture.x.symbol, "an axis says what it is"
    document = json.loads(json.dumps(made.to_json()))
    assert [Picture.from_json(one) for one in document["pictures"]] == list(made.pictures)
    assert made.plot().axes
    assert entry.title in str(made)


@pytest.mark.parametrize("entry", gallery.entries(), ids=lambda entry: entry.stem)
def test_what_a_figure_says_of_itself(entry):
    assert entry.title
    assert entry.about
    assert entry.limits
    assert set(entry.limits) <= set(catalogue), "limits are names of the catalogue"
    assert importlib.util.find_spec(entry.module)


def test_numbers_and_names_are_each_one_figures():
    entries = gallery.entries()
    assert len({entry.number for entry in entries}) == len({entry.name for entry in entries}) == len(entries)
    assert all(gallery.find(entry.label) is gallery.find(entry.name) is entry for entry in entries)
    with pytest.raises(UnknownName, match=r"no figure 'marchenko'; did you mean marchenko-pastur\?"):
        gallery.find("marchenko")
    with pytest.raises(ParameterError, match="size = 'huge' is not allowed; it must be one of full, small"):
        gallery.make("F3", size="huge")


@pytest.mark.parametrize(("error", "threshold"), [(0.1, 4.0), (0.0, 0.4)])
def test_a_check_notices_both_directions_and_what_is_no_number(error, threshold):
    assert Check("x", 1.39, error, 1.0, threshold).holds
    for wrong in (1.41, 0.59, np.nan):
        assert not Check("x", wrong, error, 1.0, threshold).holds


def test_a_step_is_done_once(tmp_path):
    done = []

    def work(number):
        done.append(number)
        return {"double": 2.0 * number, "words": np.array(["a"])}

    for run, count in [
        (Run("small", tmp_path, "code"), 1),
        (Run("small", tmp_path, "code"), 1),
        (Run("full", tmp_path, "code"), 2),
        (Run("small", tmp_path, "other code"), 3),
    ]:
        assert run.step("one", work, number=3)["double"] == 6
        assert len(done) == count
    run.step("one", work, number=4)
    assert len(done) == 4
    with pytest.raises(ParameterError, match="a step's argument"):
        run.step("one", work, number=object())


def test_the_command_lists_makes_and_refuses(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, _ = run_command(capsys, "figure")
    assert code == 0
    assert "F3   marchenko-pastur" in out
    code, out, _ = run_command(capsys, "figure", "F3", "--size", "small")
    assert code == 0
    assert "holds: c = 2: largest eigenvalue" in out
    made = {path.suffix for path in (tmp_path / "figures").glob("f03-marchenko-pastur.*")}
    assert made == {".png", ".svg", ".json"}
    code, _, err = run_command(capsys, "figure", "F99")
    assert (code, err.count("\n")) == (1, 1)
    figure = gallery.find("F3").load()
    monkeypatch.setattr(figure, "check", lambda data: [Check("wrong", 2.0, 0.1, 1.0, 3.0)])
    code, out, _ = run_command(capsys, "figure", "F3", "--size", "small")
    assert code == 2
    assert "FAILS: wrong" in out


def test_a_figure_is_computed_in_one_place_and_drawn_in_another(capsys, tmp_path, monkeypatch):
    there, here = tmp_path / "there", tmp_path / "here"
    code, out, _ = run_command(capsys, "figure", "F3", "--size", "small", "--compute-only", "--out", str(there))
    assert (code, {path.name for path in there.glob("*.*")}) == (0, {"f03-marchenko-pastur.npz"})
    assert "marchenko-pastur --computed" in out
    directly = gallery.make("F3", "small")
    figure = gallery.find("F3").load()
    monkeypatch.setattr(figure, "compute", None)
    code, out, _ = run_command(capsys, "figure", "F3", "--size", "small", "--computed", str(there), "--out", str(here))
    assert (code, out.partition("\nwrote")[0]) == (0, str(directly))
    assert (here / "f03-marchenko-pastur.png").exists()
    with pytest.raises(ParameterError, match="holds size 'small'; size = 'full' was asked for"):
        gallery.make("F3", computed=there)
    with pytest.raises(ParameterError, match=r"holds no f01-double-descent\.npz"):
        gallery.make("F1", computed=there)
    monkeypatch.setattr(making, "source_digest", lambda module: "changed")
    with pytest.warns(UserWarning, match=r"computed with other code"):
        assert gallery.make("F3", "small", computed=there).holds


KILLED = """
import os, signal, sys
from deeplimits import gallery
figure = gallery.find("F3").load()
work = figure.eigenvalues
def dies(p, n):
    if p > n:
        os.kill(os.getpid(), signal.SIGKILL)
    return work(p, n)
figure.eigenvalues = dies
gallery.make("F3", "small", sys.argv[1])
"""


def test_a_killed_figure_goes_on_where_it_was(tmp_path):
    ended = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False, capture_output=True)
    assert ended.returncode == -signal.SIGKILL
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.npz")}
    assert len(kept) == 2
    time.sleep(0.01)
    assert gallery.make("F3", "small", tmp_path).holds
    after = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.npz")}
    assert len(after) == 3
    assert kept.items() <= after.items()


def test_the_page_lists_every_figure(tmp_path):
    page = tmp_path / "gallery.md"
    gallery.write_page(page, tmp_path / "gallery")
    text = page.read_text(encoding="utf-8")
    assert all(f"`{entry.command}`" in text for entry in gallery.entries())


KEPT = Path(__file__).parents[2] / "docs" / "gallery"


@pytest.mark.parametrize("entry", gallery.entries(), ids=lambda entry: entry.stem)
def test_the_documentation_has_an_image_of_it(entry):
    image, summary = KEPT / f"{entry.stem}.png", KEPT / f"{entry.stem}.json"
    assert image.read_bytes().startswith(b"\x89PNG")
    assert image.stat().st_size < 150_000
    found = json.loads(summary.read_text(encoding="utf-8"))
    # What stands on the page is what the file says of itself now.
    assert [found[key] for key in ("figure", "title", "limits")] == [entry.label, entry.title, list(entry.limits)]
    assert found["checks"]
    assert all(check["holds"] for check in found["checks"])
