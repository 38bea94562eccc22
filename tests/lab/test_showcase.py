"""How limits are shown: each has a place where its phenomenon is seen, and points lie where they were simulated."""

import time

import numpy as np
import pytest

import deeplimits as dl
from deeplimits.lab import panels, points, scan
from deeplimits.lab.task import Task
from deeplimits.limit import Limit, replace
from deeplimits.parameters import parameters_of
from deeplimits.predictions import Bound, Curve, Value
from deeplimits.render.web import pictures

ENTRIES = dl.catalogue.limits()


def test_every_limit_says_where_it_is_seen():
    for entry in ENTRIES:
        cls = entry.load()
        show, known = cls.showcase, parameters_of(cls)
        assert "showcase" in vars(cls), entry.name
        assert show.see.endswith((".", "!")), entry.name
        assert 20 < len(show.see) < 260, entry.name
        assert show.over in (*known, ""), entry.name
        assert set(show.ranges) <= set(known), entry.name
        limit = scan.shown_at(cls)
        assert isinstance(limit, Limit)
        for name, slider in scan.sliders(limit).items():
            # Where it is shown first can be reached by its slider.
            assert slider.low <= float(getattr(limit, name)) <= slider.high, (entry.name, name)
            assert known[name].low <= slider.low < slider.high <= known[name].high, (entry.name, name)


def test_every_showcase_is_within_its_theorem():
    # What the atlas asks of its systems before any is drawn; nothing is simulated. Those that are shown where they are
    # compared anyway are within it, or that comparison's own test fails.
    for entry in ENTRIES:
        cls = entry.load()
        limit = scan.shown_at(cls)
        size = cls.showcase.size or max(cls.usual.sizes)
        if not cls.showcase.parameters and size in cls.usual.sizes:
            continue
        _, realised = Task(limit, size, 8).realised
        assert isinstance(realised, cls), entry.name


@pytest.mark.parametrize(("name", "over"), [("exit-times-search-vs-descent", "dimension"), ("no-free-lunch", "cells")])
def test_points_over_the_size_are_of_that_size(name, over):
    limit = scan.shown_at(dl.catalogue[name])
    slider = scan.Slider(over, 10, 1000, True, whole=True)
    assert scan.is_sized(limit, slider)
    for value in (100, 300):
        moved = scan.replace(limit, **{over: value})
        size = scan.size_at(moved, slider)
        assert size is not None
        assert float(getattr(moved.at_size(size)[1], over)) == pytest.approx(value, rel=0.05)


def test_points_over_the_size_agree_with_the_line(monkeypatch):
    monkeypatch.setattr(points, "FRESH", 600.0)  # however slow this machine is
    limit = scan.shown_at(dl.catalogue["johnson-lindenstrauss"])
    (found,) = [points.spots(limit, scan.Slider("rows", 4, 24, True, whole=True), ["too_short"], 0.2)]
    assert len(found) >= 2
    for spot in found:
        stated = float(dl.predict(scan.replace(limit, rows=int(spot["x"])))["too_short"].value)
        here = spot["numbers"]["too_short"]
        assert here["size"] == spot["x"]
        error = max((here["high"] - here["low"]) / 4, 1e-3)
        assert abs(here["y"] - stated) < 6 * error


def test_where_interpolation_would_mislead_a_slider_steps():
    limit = scan.shown_at(dl.catalogue["catapult-recursion"])
    kinds = scan.dense(limit)
    shown = [panels.panel(key, kind) for key, kind in kinds.items()]
    rows = {row["name"]: row for row in panels.tables(limit, shown, "label", 1.5)[0]}
    assert rows["step"]["error"] > panels.COARSE
    assert rows["step"]["stepped"]
    smooth = scan.shown_at(dl.catalogue["spiked-covariance-bbp"])
    shown = [panels.panel(key, kind) for key, kind in scan.dense(smooth).items()]
    rows = {row["name"]: row for row in panels.tables(smooth, shown, "strength", 0.5)[0]}
    assert not rows["strength"]["stepped"]


def test_densities_are_drawn_over_an_axis_that_is_not_stretched():
    limit = scan.shown_at(dl.catalogue["circle-diffusion"])
    density = panels.panel("density", scan.dense(limit)["density"])
    assert "log" not in density["picture"]["x"]
    assert pictures.compact(scan.dense(limit)["density"].picture())["x"] == density["picture"]["x"]


def test_along_a_slider_no_systems_are_drawn_where_the_theory_says_something_without(monkeypatch):
    limit = scan.shown_at(dl.catalogue["gradient-top-subspace"])
    assert {"gradient", "share"} <= set(scan.dense(limit))
    monkeypatch.setattr(scan, "predict", lambda limit: pytest.fail("a system was drawn"))
    assert set(scan.at(limit, gamma=1.7)) == {"gradient"}


def test_a_slider_has_fewer_values_where_each_is_compiled_anew(monkeypatch):
    limit = scan.shown_at(dl.catalogue["spiked-covariance-bbp"])
    at, kinds = scan.at, scan.dense(limit)

    def slow(limit, **changes):
        until = time.process_time() + (0.03 if changes else 0.0)
        while time.process_time() < until:
            pass
        return at(limit, **changes)

    monkeypatch.setattr(scan, "at", slow)
    shown = [panels.panel(key, kind) for key, kind in kinds.items()]
    rows = panels.tables(limit, shown, "strength", 0.45)[0]
    assert all(len(row.get("values", ())) <= 14 for row in rows)


def planted(kind, per_draw, stated, shown, measured):
    """What was stated of two drawn systems and measured of them, and what is stated of the one that is shown."""
    both = kind(np.array(stated), label="x", per_draw=per_draw).trial(10, np.array(measured), drawn=True)
    return points.beside(kind(shown, label="x", per_draw=per_draw), both)


@pytest.mark.parametrize("kind", [Value, Bound])
def test_what_is_measured_of_drawn_systems_lies_beside_the_theory_of_the_one_that_is_shown(kind):
    # Twice and three times as large as stated of each, and one and two more than that.
    found = planted(kind, "ratio", [1.0, 3.0], 10.0, [2.0, 9.0])
    assert found.measured.tolist() == pytest.approx([20.0, 30.0])
    found = planted(kind, "difference", [1.0, 3.0], 10.0, [2.0, 5.0])
    assert found.measured.tolist() == pytest.approx([11.0, 12.0])
    assert float(found.stated.value) == 10.0


def test_a_point_of_a_drawn_system_lies_on_its_line():
    # Exact for every draw: whatever is drawn, what the page shows is on the line.
    limit = scan.shown_at(dl.catalogue["gd-linear-stability"])
    stated = dict(dl.predict(limit))
    found = points.trials_of(points.affordable(limit, 20, 16, 0.1))
    drawn = [name for name, kind in stated.items() if isinstance(kind, Value)]
    assert drawn
    for name in drawn:
        trial = points.beside(stated[name], found[name][-1])
        assert float(trial.stated.value) == pytest.approx(float(stated[name].value))


def test_where_each_value_is_compiled_anew_there_are_as_many_points_as_there_is_time_for(monkeypatch):
    limit = scan.shown_at(dl.catalogue["bai-yin-edges"])
    slider = scan.sliders(limit)["gamma"]
    assert not scan.same_systems(limit, slider)
    assert points.spots(limit, slider, ["largest"], anew=False) == []
    monkeypatch.setattr(points, "FRESH", 0.0)
    (spot,) = points.spots(limit, slider, ["largest"], 0.05)
    stated = float(dl.predict(replace(limit, gamma=spot["x"]))["largest"].value)
    assert spot["numbers"]["largest"]["y"] == pytest.approx(stated, rel=0.1)


def test_no_point_is_waited_for_that_takes_for_ever(monkeypatch):
    limit = scan.shown_at(dl.catalogue["sample-complexity-thresholds"])
    weak = scan.Slider("signal", 0.1, 0.4, True)
    monkeypatch.setattr(points, "trials_of", lambda task: pytest.fail("it was simulated"))
    assert points.spots(limit, weak, ["too_few"]) == []


def test_a_chart_over_the_parameter_that_numbers_are_drawn_over_has_their_points():
    limit = scan.shown_at(dl.catalogue["spiked-covariance-bbp"])
    shown = [panels.panel(name, kind) for name, kind in scan.dense(limit).items()]
    (chart,) = [one for one in panels.charts_of(limit) if one["name"] == "transition"]
    far = max(max(mark["x"]) for mark in chart["picture"]["marks"] if "x" in mark) + 1
    spots = [{"x": x, "numbers": {"eigenvalue": {"size": 60, "y": 3.0, "low": 2.0, "high": 4.0}}} for x in (1.0, far)]
    marks = points.with_points(limit, chart, shown, "strength", spots)["picture"]["marks"]
    (found,) = [mark for mark in marks if mark.get("role") == "simulation"]
    assert (found["x"], found["y"], found["low"]) == ([1.0], [3.0], [2.0])
    assert points.with_points(limit, chart, shown, "gamma", spots)["picture"] == chart["picture"]


def test_a_line_that_takes_seconds_a_point_has_few():
    limit = scan.shown_at(dl.catalogue["mean-field-wasserstein-flow"])
    assert len(scan.finer(limit).times) == type(limit).showcase.fine == 24


def test_a_line_is_cut_at_a_pole_and_nowhere_else():
    def ends(dense):
        x = np.array([1.0, 2.0])
        shown = Curve(x, x, axis="x", label="y", dense_x=np.array([0.5, 1.0, 2.0]), dense_y=np.array([dense, 1.0, 2.0]))
        return shown.picture().y.low, shown.picture().y.high

    assert ends(-1.5) == ends(4.5) == (None, None)
    assert ends(400.0) == (None, 3.0)
    assert ends(-400.0) == (0.0, None)
