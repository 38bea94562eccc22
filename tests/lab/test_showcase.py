"""How limits are shown: each has a place where its phenomenon is seen, and points lie where they were simulated."""

import time

import pytest

import deeplimits as dl
from deeplimits.lab import panels, points, scan
from deeplimits.lab.task import Task
from deeplimits.limit import Limit
from deeplimits.parameters import parameters_of
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


def test_points_over_the_size_agree_with_the_line():
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
