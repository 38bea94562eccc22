"""`dl.sweep` and `deeplimits sweep`: the same comparisons as `compare`, wherever and however often they are run."""

import csv
import json
import sqlite3
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

import deeplimits as dl
import sweep_limits
from deeplimits.errors import DeeplimitsError, MissingExtra, OutsideValidity, ParameterError
from deeplimits.lab import tables
from deeplimits.lab.plans import Plan, estimate
from deeplimits.lab.store import Store
from deeplimits.predictions import Picture, Value
from deeplimits.predictions.contours import level_lines, round_levels
from house import run_command
from sweep_limits import Cheap, Coin, Drawn

GRID = {"level": [1.0, 2.0], "noise": [0.1, 0.2]}
RUN = {"sizes": (4, 8), "samples": 40, "progress": False}


def identical(left, right):
    """The same combinations with the same bits in every measurement."""
    assert len(left) == len(right)
    for one, other in zip(left, right, strict=True):
        assert repr(one.limit) == repr(other.limit)
        assert one.sizes == other.sizes
        for name, trials in one.trials.items():
            for trial, again in zip(trials, other.trials[name], strict=True):
                assert trial.measured.tobytes() == again.measured.tobytes()
    return True


def bits(path):
    """Everything measured, by key."""
    with sqlite3.connect(path) as file:
        found = file.execute(
            "SELECT key, part, place, name, dtype, shape, data FROM arrays ORDER BY 1, 2, 3"
        ).fetchall()
    file.close()
    return found


@pytest.fixture(scope="module")
def serial():
    return dl.sweep(Cheap, **GRID, **RUN, workers=0)


def test_a_sweep_makes_the_comparisons_that_compare_makes(serial):
    single = [dl.compare(Cheap(level=a, noise=b), (4, 8), 40) for a in GRID["level"] for b in GRID["noise"]]
    assert identical(serial, single)
    assert [one.outcome for one in serial] == [one.outcome for one in single]
    assert identical(dl.compare(Cheap(noise=0.1), level=[1.0, 2.0], **RUN), serial[::2])


def test_blocks_of_seeds_make_no_difference(serial):
    assert identical(dl.sweep(Cheap, **GRID, **RUN, workers=0, per_task=16), serial)


def test_any_executor_and_a_store_make_no_difference(serial, tmp_path):
    with ThreadPoolExecutor(2) as threads:
        assert identical(dl.sweep(Cheap, **GRID, **RUN, executor=threads, store=tmp_path / "a.db"), serial)
    # From the file, with nothing computed again.
    with sqlite3.connect(tmp_path / "a.db") as file:
        before = file.execute("SELECT * FROM results ORDER BY key").fetchall()
    assert len(before) == 4 * 2 * 2
    assert identical(dl.sweep(Cheap, **GRID, **RUN, workers=0, store=tmp_path / "a.db"), serial)
    with sqlite3.connect(tmp_path / "a.db") as file:
        assert file.execute("SELECT * FROM results ORDER BY key").fetchall() == before
    # More values, of which four are there.
    more = dl.sweep(Cheap, level=[1.0, 2.0, 3.0], noise=[0.1, 0.2], **RUN, workers=0, store=tmp_path / "a.db")
    assert identical(more[:4], serial)
    with Store(tmp_path / "a.db", reading=True) as store:
        assert (store.status().done, store.status().tasks, len(store.plans())) == (24, 24, 2)


@pytest.mark.slow
def test_processes_make_no_difference(serial):
    assert identical(dl.sweep(Cheap, **GRID, **RUN, workers=2), serial)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        assert identical(dl.sweep(Cheap, **GRID, **RUN, executor=pool), serial)


def test_statements_about_draws_come_back_from_a_file(tmp_path):
    first = dl.sweep(Drawn, scale=[1.0, 2.0], sizes=(4, 8), samples=16, workers=0, store=tmp_path / "a.db", per_task=8)
    again = dl.sweep(Drawn, scale=[1.0, 2.0], sizes=(4, 8), samples=16, workers=0, store=tmp_path / "a.db", per_task=8)
    assert first.agrees
    assert identical(first, again)
    for one, other in zip(first, again, strict=True):
        assert one.trials["mean"][0].stated.value == other.trials["mean"][0].stated.value


def test_what_the_theorem_does_not_cover_is_left_out_and_named():
    found = dl.sweep(Cheap, level=[1.0, 2000.0], **RUN, workers=0)
    assert len(found) == 1
    assert found.missing[0].values == {"level": 2000.0}
    assert "above 1000" in found.missing[0].sentence
    assert not found.missing[0].failed
    assert "1 missing" in repr(found)
    with pytest.raises(OutsideValidity, match=r"none of the 2 .*above 1000"):
        dl.sweep(Cheap, level=[2000.0, 3000.0], **RUN, workers=0)


def test_samples_are_added_until_errors_are_small():
    found = dl.sweep(Coin, level=[20.0, 1.0], sizes=(4,), samples=16, until=0.05, workers=0, progress=False)
    assert found[0].samples < found[1].samples
    for one in found:
        means = [trial.mean for trial in one.trials["mean"]]
        assert all(np.sqrt(mean.variance) / abs(mean.value) <= 0.05 for mean in means)
    # What was drawn first is kept: the first systems are those of a smaller sweep.
    first = dl.sweep(Coin, level=[20.0, 1.0], sizes=(4,), samples=16, workers=0, progress=False)
    assert found[1].trials["mean"][0].measured[:16].tobytes() == first[1].trials["mean"][0].measured.tobytes()


def test_ranges_as_on_the_command_line_and_bad_ones():
    found = dl.sweep("knn-bias-variance", noise="0.5:2:3log", samples=400, workers=0, progress=False)
    assert [round(float(one.limit.noise), 12) for one in found] == [0.5, 1.0, 2.0]
    for arguments, words in (
        ({"noise": "1:2"}, "first:last:points"),
        ({"noise": []}, "has no value"),
        ({"nose": [1.0]}, "has no parameter nose"),
        ({"noise": [1.0, "xyz"]}, "is not allowed"),
        ({"until": -1.0}, "until = -1 "),
        ({"per_task": 0}, "per_task = 0"),
        ({"workers": -1}, "workers = -1"),
        ({"time_limit": 0}, "time_limit = 0"),
        ({"executor": 3}, "executor = 3"),
        ({"store": "/nowhere/at/all.db"}, "there is no folder"),
        ({"noise": np.ones(2_000_000)}, "more than 1,000,000"),
    ):
        with pytest.raises(DeeplimitsError, match=words):
            dl.sweep("knn-bias-variance", **{"progress": False, "workers": 0, **arguments})


def test_a_plan_survives_a_file_and_nothing_else_is_followed():
    plan = Plan.of("knn-bias-variance", {"noise": [0.5, 1.0], "neighbours": 7}, samples=40)
    again = Plan.from_document(json.loads(json.dumps(plan.document())))
    assert [repr(one) for _, one in again.limits()] == [repr(one) for _, one in plan.limits()]
    assert again.document() == plan.document()
    for document in (
        None, 3, {}, {"limit": 3}, {"limit": "os:system"}, {"limit": "sweep_limits.Cheap"},
        {"limit": "knn-bias-variance", "varying": {"noise": 3}},
        {"limit": "knn-bias-variance", "fixed": [1]},
        {"limit": "knn-bias-variance", "sizes": "abc"},
        {"limit": "knn-bias-variance", "seed": "x"},
        {"limit": "knn-bias-variance", "until": "x"},
    ):  # fmt: skip
        with pytest.raises(DeeplimitsError):
            Plan.from_document(document)


def test_an_estimate_runs_nothing():
    points, refused = Plan.of(Cheap, {"level": [1.0, 2.0, 5000.0], "copies": [1, 2]}, samples=40).points()
    found = estimate([point for _, point in points], len(refused))
    assert (found.comparisons, found.refused, found.tasks, found.programs) == (4, 2, 16, 8)
    assert 0 < found.seconds < 60
    assert found.numbers == 4 * 2 * 40 * 8 * 7
    assert "4 comparisons (2 combinations are refused)" in str(found)


# What is shown and written


def test_one_parameter_and_two(serial, tmp_path):
    lines = serial.pictures()
    assert set(lines) == {"mean", "positive", "line"}
    assert next(mark.label for mark in lines["mean"].marks if mark.label) == r"$\sigma = 0.1$"
    assert "at multiple = 5" in lines["line"].y.label
    plane = dl.sweep(Cheap, level="1:40:5", noise="0.1:0.5:5", **RUN, workers=0).pictures()["mean"]
    field, levels = plane.marks
    assert np.shape(field.values) == (5, 5)
    assert field.log
    assert set(np.round([x for x in levels.x if x is not None], 9)) == {3.0, 10.0, 30.0} or levels.label
    assert Picture.from_json(json.loads(json.dumps(plane.to_json()))) == plane
    serial.plot(tmp_path / "figure.png")
    with pytest.raises(ParameterError, match="two axes"):
        dl.sweep(Cheap, level=[1.0, 2.0], noise=[0.1, 0.2], copies=[1, 2], **RUN, workers=0).plot()
    words = dl.sweep(Cheap, level=[1.0, 2.0], word=["plain", "fancy"], **RUN, workers=0)
    assert words.pictures()["mean"].marks[0].label == "word = plain"


def test_a_curve_makes_a_plane_with_one_parameter():
    picture = dl.sweep(Cheap, level="1:5:5", **RUN, workers=0).pictures()["line"]
    assert np.shape(picture.marks[0].values) == (5, 5)
    assert picture.y.label == "multiple"


def test_level_lines_against_a_plane_and_a_saddle():
    x, y = np.linspace(0, 2, 5), np.linspace(0, 1, 4)
    across, up = level_lines(x, y, x[None] + y[:, None], 1.3)
    inside = [(a, b) for a, b in zip(across, up, strict=True) if a is not None]
    assert len(inside) > 4
    np.testing.assert_allclose([a + b for a, b in inside], 1.3)
    for centre in (0.9, -0.9):  # the two ways through a saddle do not cross
        corners = np.array([[1.0, centre - 1], [centre - 1, 1.0]])
        across, up = level_lines([0.0, 1.0], [0.0, 1.0], corners, 0.0)
        ends = list(zip(across, up, strict=True))
        pieces = [(ends[0], ends[1]), (ends[3], ends[4])]
        # Lines keep apart from the corners that the middle is connected with.
        joined = {tuple(np.sign([b[0] - a[0], b[1] - a[1]])) for a, b in pieces}
        assert len(ends) == 6
        assert all((one[0] * one[1] < 0) == (centre < 0) for one in joined)
    assert level_lines(x, y, np.full((4, 5), np.nan), 1.0) == ([], [])
    assert round_levels(np.array([np.nan, 1.0, 1.0]), log=True) == []


def test_tables(serial, tmp_path):
    serial.to_file(tmp_path / "a.csv")
    lines = list(csv.DictReader((tmp_path / "a.csv").read_text().splitlines()))
    assert len(lines) == 4 * 2 * (1 + 1 + 5)
    first = lines[0]
    assert (first["level"], first["noise"], first["result"], first["size"]) == ("1.0", "0.1", "mean", "4")
    assert float(first["measured"]) == pytest.approx(serial[0].trials["mean"][0].measured.mean(), rel=1e-12)
    data = serial.to_xarray()
    assert data["line_measured"].dims == ("level", "noise", "size", "multiple")
    found = float(data["mean_measured"].sel(level=2.0, noise=0.1, size=8))
    assert found == pytest.approx(serial[2].trials["mean"][1].measured.mean(), rel=1e-12)
    serial.to_file(tmp_path / "a.nc")
    import xarray

    xarray.testing.assert_allclose(xarray.load_dataset(tmp_path / "a.nc", engine="scipy"), data)
    serial.to_file(tmp_path / "a.json")
    assert len(json.loads((tmp_path / "a.json").read_text())) == 4
    with pytest.raises(ParameterError, match="its ending must be one of"):
        serial.to_file(tmp_path / "a.xls")


def test_a_table_of_parquet(serial, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    serial.to_file(tmp_path / "a.parquet")
    found = parquet.read_table(tmp_path / "a.parquet")
    assert found.column_names == tables.columns(serial)
    assert list(zip(*found.to_pydict().values(), strict=True)) == [tuple(line) for line in tables.rows(serial)]


def test_a_missing_combination_is_a_gap_and_a_line(tmp_path):
    found = dl.sweep(Cheap, level=[1.0, 2000.0], noise=[0.1, 0.2], **RUN, workers=0)
    assert np.isnan(found.to_xarray()["mean"].sel(level=2000.0)).all()
    assert "missing: Cheap: level is above 1000" in list(tables.rows(found))[-1][4]


def test_an_extra_that_is_missing_is_named(serial, tmp_path, monkeypatch):
    def without(name):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr("importlib.import_module", without)
    for ending, extra in ((".parquet", "parquet"), (".nc", "data")):
        with pytest.raises(MissingExtra, match=rf"pip install 'deeplimits\[{extra}\]'"):
            serial.to_file(tmp_path / f"a{ending}")


# The command line


def test_the_command_line(capsys, tmp_path):
    store, figure, table = tmp_path / "a.db", tmp_path / "a.png", tmp_path / "a.csv"
    asked = ("knn-bias-variance", "--noise", "0.5:1:2", "--neighbours", "3,5", "--samples", "400", "--workers", "0")
    code, out, _ = run_command(capsys, "sweep", *asked, "--store", str(store), "--plot", str(figure))
    assert code == 0, out
    assert "along neighbours, noise: 4 agree" in out
    assert figure.exists()
    code, out, _ = run_command(capsys, "sweep", "--status", str(store))
    assert code == 0
    assert "results of" in out
    assert "no driver" in out
    began = time.monotonic()
    code, again, _ = run_command(capsys, "sweep", "--resume", str(store), "--export", str(table), "--json")
    assert (code, len(json.loads(again))) == (0, 4)
    assert table.exists()
    assert time.monotonic() - began < 60
    code, out, _ = run_command(capsys, "sweep", *asked, "--estimate")
    assert (code, out.startswith("4 comparisons")) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "a sweep needs the NAME"),
        (("knn-bias-varianc",), "knn-bias-variance"),
        (("knn-bias-variance", "--status", "x"), "ask for different things"),
        (("knn-bias-variance", "--dask", "local", "--slurm", "jobs=1"), "two places"),
        (("--status", "nothing.db"), "no such file"),
        (("--resume", "nothing.db"), "no such file"),
        (("--resume", "nothing.db", "--store", "a.db"), "leave --store out"),
        (("--salvage", "nothing.db"), "no such file"),
        (("--diagram", "catapul"), "did you mean catapult"),
        (("knn-bias-variance", "--noise", "1:2"), "first:last:points"),
        (("knn-bias-variance", "--noise", "1e999"), "is not allowed"),
        (("knn-bias-variance", "--export", "a.xls"), "its ending must be one of"),
        (("knn-bias-variance", "--only", "risk"), "give --plot FILE"),
        (("knn-bias-variance", "--until", "0"), "give a positive number"),
        (("knn-bias-variance", "--workers", "-1"), "cannot be read"),
        (("knn-bias-variance", "--workers", "x"), "cannot be read"),
        (("knn-bias-variance", "--slurm", "queue=a b;rm"), "is not allowed"),
        (("knn-bias-variance", "--slurm", "quene=a"), "did you mean queue"),
        (("knn-bias-variance", "--nose", "1"), "did you mean --noise"),
    ],
)
def test_bad_words_are_one_line(capsys, arguments, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = run_command(capsys, "sweep", *arguments)
    assert code == 1
    assert words in err
    assert len(err.strip().splitlines()) == 1
    assert "Traceback" not in out + err


def test_the_diagrams_are_allowed(capsys):
    from deeplimits.lab.diagrams import DIAGRAMS

    code, out, _ = run_command(capsys, "sweep", "--diagram", "list")
    assert (code, len(out.splitlines())) == (0, len(DIAGRAMS))
    # Other values than the diagram's own, after a blank as after a sign of equality.
    for words in (("--beta", "1,2"), ("--beta=1,2",)):
        code, out, _ = run_command(capsys, "sweep", "--diagram", "attention", *words, "--estimate")
        assert (code, out.startswith("2 comparisons")) == (0, True)
    for one in DIAGRAMS.values():
        plan = Plan.of(one.limit, one.values, sizes=one.sizes, samples=one.samples)
        limits = [limit for _, limit in plan.limits()]
        assert len(plan.varying) <= 2
        assert set(one.results) <= {*limits[-1].theory()}


def test_a_limit_that_only_this_process_knows(serial):
    class Mine(sweep_limits.Cheap):
        def theory(self):
            return {**super().theory(), "mean": Value(self.level, label="mean")}

    assert dl.sweep(Mine, **GRID, **RUN).outcome == serial.outcome
