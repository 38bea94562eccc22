"""Pictures hold everything there is to see, and drawing computes nothing."""

import json
import re

import numpy as np
import pytest

import deeplimits as dl
from deeplimits import statistics
from deeplimits.limit import Limit
from deeplimits.predictions import Picture
from deeplimits.predictions.picture import MARKS, Axis, Band, Field, Histogram, Line, Number, Points, Rule, Stem
from deeplimits.render import page, with_matplotlib

EVERY_MARK = Picture(
    Axis("place", "x"),
    Axis("height", "y", low=0.0),
    (
        Band([0, 2], low=[3, 4], label="excluded", role="excluded"),
        Band([0, 2], low=[1, 1], high=[2, 2]),
        Histogram([0, 1, 2], [1, 2], role="simulation"),
        Line([0, 1, 2], [1, np.inf, 2], label="theory"),
        Points([0, 1], [1, 2], [0.5, 1.5], [1.5, 2.5], label="simulation", role="simulation", series=1),
        Rule(1.5, upright=True),
        Rule(0.5, label="level"),
        Stem(1.0, 2.0, label="atom"),
        Field([0, 1], [0, 1], [[1, 2], [3, 4]]),
        Number(0.75, label="theory"),
    ),
)


@pytest.fixture(scope="module")
def comparison():
    # The number of neighbours is fixed, the number of points is the size.
    return dl.compare(dl.limits.KnnBiasVariance(neighbours=5), samples=200)


def test_every_mark_can_be_drawn():
    assert {type(mark) for mark in EVERY_MARK.marks} == set(MARKS.values())
    with_matplotlib.svg(with_matplotlib.figure("every mark", [], {"panel": EVERY_MARK}))


def test_what_is_not_finite_is_a_gap():
    described = json.loads(json.dumps(EVERY_MARK.to_json(), allow_nan=False))
    (line,) = (mark for mark in described["marks"] if mark["mark"] == "line")
    assert line["y"] == [1.0, None, 2.0]
    assert Picture.from_json(described) == EVERY_MARK


def test_the_figure_can_be_drawn_from_the_document_alone(comparison):
    document = json.loads(json.dumps(comparison.document(), allow_nan=False))
    drawn = with_matplotlib.svg(with_matplotlib.figure_of(document))
    assert drawn == with_matplotlib.svg(comparison.plot())
    assert page.page(page.card(document, drawn)) == comparison.to_html()


def test_documents_hold_data_and_no_pages(comparison):
    text = json.dumps(comparison.document())
    assert not re.search(r"<(svg|p|div|table|img|section|pre|span)\b", text)
    assert not re.search(r"#[0-9a-f]{6}\b", text)


def test_drawing_computes_nothing(comparison, monkeypatch):
    def forbidden(*_, **__):
        raise AssertionError("drawing computes")

    monkeypatch.setattr(statistics, "mean_of", forbidden)
    for method in ("at_size", "theory", "simulate"):
        monkeypatch.setattr(type(comparison.limit), method, forbidden)
    comparison.plot()


def test_captions_leave_out_what_the_size_decides(comparison):
    shown = [one["name"] for one in comparison.document()["settings"]]
    assert "neighbours" in shown
    assert "points" not in shown
    prediction = dl.predict(comparison.limit)
    assert isinstance(prediction.limit, Limit)
    assert "points = " in prediction.plot().get_suptitle() or "n = " in prediction.plot().get_suptitle()


def test_legends_are_complete_and_titles_balanced():
    picture = Picture(Axis("x"), Axis("y"), tuple(Line([0, 1], [i, i], label=f"line {i}", series=i) for i in range(5)))
    title = "A title that is much longer than what fits into a single line above a panel that stands alone"
    drawn = with_matplotlib.figure(title, [], {"panel": picture})
    assert [text.get_text() for text in drawn.axes[0].get_legend().get_texts()] == [f"line {i}" for i in range(5)]
    lines = drawn.get_suptitle().split("\n")
    assert len(lines) == 2
    assert abs(len(lines[0]) - len(lines[1])) < 15


def test_captions_stay_over_their_panel():
    field = Field(
        [0, 1, 2], [0, 1], [[0.0, 1.0, 3.0]] * 2, label="0: nothing is proven, 1: one cluster, 3: all of them"
    )
    said = "The exact evidence (lines) is the average likelihood of networks drawn from the prior (points)."
    axes = Axis("place"), Axis("height of a long name")
    coloured, plain = Picture(*axes, (field,), said), Picture(*axes, (Line([0, 1], [0.0, 100.0]),), said)
    drawn = with_matplotlib.captioned("Title", [coloured, plain, plain])
    drawn.draw_without_rendering()
    for panel in drawn.axes[:3]:
        title, frame = panel.title.get_window_extent(), panel.get_window_extent()
        assert frame.x0 < title.x0 < title.x1 < frame.x1
    # Colours that tell cases apart are marked at the cases.
    (scale,) = {tuple(panel.get_yticks()) for panel in drawn.axes if panel.get_label() == "<colorbar>"}
    assert scale == (0.0, 1.0, 3.0)
