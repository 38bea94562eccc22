"""Pictures drawn with matplotlib. Nothing else in the house imports it.

Theory is a line, simulations are markers, and black and white is enough to tell them.
"""

import io
import math
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from deeplimits.errors import MissingExtra, require
from deeplimits.predictions.picture import (
    EXCLUDED,
    SIMULATION,
    THEORY,
    Axis,
    Band,
    Field,
    Histogram,
    Line,
    Mark,
    Picture,
    Points,
    Rule,
    Stem,
)
from deeplimits.render.text import setting

INK = "black"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
MARKERS = "osD^vP"
SHADE = {"facecolor": "#999999", "edgecolor": "#777777", "alpha": 0.25, "linewidth": 0, "hatch": "//"}
WIDTH = {1: 6.4, 2: 4.8}
"""Inches of a panel, alone and beside another."""
HEIGHT = 3.3
STEPS = [1, 2, 2.5, 5, 10]
"""The distances of ticks, up to powers of ten."""
LETTERS = 14.5
"""Letters of a legend or label in an inch, about."""
ROW = 0.17
"""Inches of a row of a legend."""


def figure(
    title: str, settings: Sequence[Mapping[str, Any]], pictures: Mapping[str, Picture], path: str | Path | None = None
) -> Any:
    """One panel for each picture, under the title and the settings in words; written to `path` where one is given."""
    require("matplotlib", "plot")
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    columns = min(2, len(pictures))
    rows = math.ceil(len(pictures) / columns)
    legends = [_rows_of_legend(picture, columns) for picture in pictures.values()]
    heights = [HEIGHT + ROW * max(legends[i : i + columns]) for i in range(0, len(legends), columns)]
    caption = _caption(title, settings, int(9.4 * WIDTH[columns] * columns))
    size = (WIDTH[columns] * columns, sum(heights) + 0.22 * len(caption))
    drawn = Figure(figsize=size, layout=ConstrainedLayoutEngine(h_pad=0.08, w_pad=0.08))
    panels = drawn.subplots(rows, columns, squeeze=False, height_ratios=heights).ravel()
    for panel, (name, picture) in zip(panels, pictures.items(), strict=False):
        draw(picture, panel)
        _legend(panel, picture, columns)
        panel.set_title(name.replace("_", " "), fontsize=11, pad=6 + 72 * ROW * _rows_of_legend(picture, columns))
        panel.spines[["top", "right"]].set_visible(False)
    for panel in panels[len(pictures) :]:
        panel.set_visible(False)
    drawn.suptitle("\n".join(caption), fontsize=12)
    if path is not None:
        drawn.savefig(path, dpi=150)
    return drawn


def figure_of(document: Mapping[str, Any]) -> Any:
    """The figure of a comparison, from the document about it alone."""
    pictures = {name: Picture.from_json(one) for name, one in document["pictures"].items()}
    return figure(document["title"], document["settings"], pictures)


def svg(drawn: Any) -> str:
    """A figure as an SVG element."""
    require("matplotlib", "plot")
    import matplotlib as mpl

    buffer = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "deeplimits", "svg.fonttype": "path"}):
        drawn.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def svg_or_nothing(plot: Any) -> str:
    """The figure that `plot` draws, as SVG; nothing where matplotlib is not installed."""
    try:
        return svg(plot())
    except MissingExtra:
        return ""


def draw(picture: Picture, panel: Any) -> None:
    """Draw a picture on matplotlib axes."""
    for name, axis in (("x", picture.x), ("y", picture.y)):
        if axis.log:
            panel.set(**{f"{name}scale": "log"})
    open_bands = [mark for mark in picture.marks if isinstance(mark, Band)]
    for mark in picture.marks:
        if not isinstance(mark, Band):
            DRAWN[type(mark)](mark, panel)
    for name, axis in (("x", picture.x), ("y", picture.y)):
        _finish(getattr(panel, f"{name}axis"), axis)
    # What reaches to the end of the panel is drawn when it is known where that is.
    ends = panel.get_ylim()
    for mark in open_bands:
        _band(mark, panel, ends)
    panel.set_ylim(ends)


def _line(mark: Line, panel: Any) -> None:
    panel.plot(_floats(mark.x), _floats(mark.y), label=mark.label, **_line_style(mark))


def _points(mark: Points, panel: Any) -> None:
    colour = INK if mark.role == THEORY else _colour(mark)
    style = {
        "color": colour,
        "marker": MARKERS[(mark.series or 0) % len(MARKERS)],
        "markerfacecolor": "white",
        "markersize": 5.5,
        "linestyle": "none",
        "zorder": 3,
    }
    x, y = _floats(mark.x), _floats(mark.y)
    if mark.low is None or mark.high is None:
        panel.plot(x, y, label=mark.label, **style)
    else:
        # An interval that does not contain its middle, by rounding, has no length on that side.
        bars = np.maximum([y - _floats(mark.low), _floats(mark.high) - y], 0.0)
        panel.errorbar(x, y, bars, capsize=2.5, elinewidth=1.2, label=mark.label, **style)


def _histogram(mark: Histogram, panel: Any) -> None:
    heights, edges = _floats(mark.heights), _floats(mark.edges)
    panel.stairs(heights, edges, fill=True, color=_colour(mark), alpha=0.3, label=mark.label)
    panel.stairs(heights, edges, color=_colour(mark), linewidth=0.8)


def _rule(mark: Rule, panel: Any) -> None:
    if mark.upright:
        panel.axvline(mark.place, label=mark.label, **{**_line_style(mark), "linestyle": ":"})
    else:
        panel.axhline(mark.place, label=mark.label, **_line_style(mark))


def _stem(mark: Stem, panel: Any) -> None:
    panel.plot(
        [mark.place, mark.place],
        [0.0, mark.height],
        label=mark.label,
        color=INK,
        linestyle="--",
        linewidth=1.2,
        marker="^",
        markevery=[1],
        clip_on=False,
    )


def _field(mark: Field, panel: Any) -> None:
    mesh = panel.pcolormesh(_floats(mark.x), _floats(mark.y), np.array(mark.values, dtype=float), cmap="viridis")
    panel.figure.colorbar(mesh, ax=panel, label="\n".join(_evenly(mark.label, 34)))


def _band(mark: Band, panel: Any, ends: tuple[float, float]) -> None:
    low = ends[0] if mark.low is None else _floats(mark.low)
    high = ends[1] if mark.high is None else _floats(mark.high)
    panel.fill_between(_floats(mark.x), low, high, label=mark.label, zorder=1, **SHADE)


DRAWN = {Line: _line, Points: _points, Histogram: _histogram, Rule: _rule, Stem: _stem, Field: _field}


def _floats(row: Any) -> np.ndarray:
    """A row of numbers, its gaps as not-a-number."""
    return np.array(row, dtype=float)


def _colour(mark: Mark) -> str:
    return COLOURS[(mark.series or 0) % len(COLOURS)]


def _line_style(mark: Mark) -> dict[str, Any]:
    return {"color": INK if mark.series is None else _colour(mark), "linewidth": 1.8, "zorder": 2}


def _finish(axis: Any, given: Axis) -> None:
    """Ends, ticks and label of an axis on which everything is drawn."""
    low, high = axis.get_view_interval()
    low, high = low if given.low is None else given.low, high if given.high is None else given.high
    getattr(axis.axes, f"set_{axis.axis_name}lim")(low, high)
    if given.ticks is not None:
        axis.set_ticks(given.ticks, [f"{tick:g}" for tick in given.ticks])
        axis.set_ticks([], minor=True)
    else:
        _choose_ticks(axis, given, low, high)
    upright = axis.axis_name == "y"
    lines = _lines(given, 36 if upright else 80)
    # A formula cannot be broken, and is shorter on paper than in letters.
    axis.set_label_text("\n".join(lines), fontsize=10 if max(map(len, lines)) <= 60 or not upright else 8)


def _choose_ticks(axis: Any, given: Axis, low: float, high: float) -> None:
    """Ticks in plain numbers; on a logarithmic axis at 1, 2, 5, 10, ... where those are few enough to be read."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    plain = FuncFormatter(lambda value, _: f"{value:g}")
    if given.log:
        axis.set_minor_formatter(NullFormatter())
        if high / low < 300:
            half = () if given.whole else (1.5,)
            finer = LogLocator(subs=(1.0, *half, 2.0, 3.0, 5.0, 7.0)) if high / low > 2 else MaxNLocator(5, steps=STEPS)
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)) if high / low > 8 else finer)
            axis.set_major_formatter(plain)
        return
    axis.set_major_locator(MaxNLocator(7, integer=given.whole, steps=STEPS))
    if 1e-3 <= max(abs(low), abs(high)) < 1e5:
        axis.get_major_formatter().set_useOffset(False)
    else:
        axis.set_major_formatter(plain)


def _lines(given: Axis, letters: int) -> list[str]:
    """Label and symbol in lines of at most so many letters."""
    if len(given.label) + len(given.symbol) <= letters:
        return [f"{given.label} ${given.symbol}$" if given.symbol else given.label]
    lines = _evenly(given.label, letters - 2)
    return [*lines, f"${given.symbol}$"] if given.symbol else lines


def _legend(panel: Any, picture: Picture, columns: int) -> None:
    """The labels in rows above the panel, where they hide nothing: theory first."""
    rows = _rows_of_legend(picture, columns)
    if not rows:
        return
    handles = dict(zip(*reversed(panel.get_legend_handles_labels()), strict=True))
    labels = [mark.label for mark in _labelled(picture)]
    panel.legend(
        [handles[label] for label in labels],
        labels,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        ncols=math.ceil(len(labels) / rows),
        fontsize=8.5,
        frameon=False,
        borderpad=0.1,
        borderaxespad=0.2,
        handlelength=1.6,
        columnspacing=1.2,
        labelspacing=0.3,
    )


def _labelled(picture: Picture) -> list[Mark]:
    """The marks of the legend, in its order. A field says by its colours what it is."""
    marks = [mark for mark in picture.marks if mark.label and not isinstance(mark, Field)]
    return sorted(marks, key=lambda mark: (THEORY, SIMULATION, EXCLUDED).index(mark.role))


def _rows_of_legend(picture: Picture, columns: int) -> int:
    labels = [mark.label for mark in _labelled(picture)]
    room = LETTERS * (WIDTH[columns] - 0.8)
    for rows in range(1, len(labels) + 1):
        # Columns are filled one after the other; a handle takes the room of six letters.
        if sum(6 + max(map(len, labels[i : i + rows])) for i in range(0, len(labels), rows)) <= room:
            return rows
    return len(labels)


def _caption(title: str, settings: Sequence[Mapping[str, Any]], letters: int) -> list[str]:
    """The title, and the settings in words, in lines of even length."""
    words = [setting(one) for one in settings]
    lines = math.ceil(len(words) / (3 if letters < 70 else 6))
    per_line = math.ceil(len(words) / lines) if words else 1
    return [*_evenly(title, letters), *(", ".join(words[i : i + per_line]) for i in range(0, len(words), per_line))]


def _evenly(text: str, letters: int) -> list[str]:
    """A text in as few lines of at most so many letters as can be, of about the same length."""
    lines = textwrap.wrap(text, letters, break_on_hyphens=False) or [""]
    widths = range(max(1, len(text) // len(lines)), letters)
    shorter = (textwrap.wrap(text, width, break_on_hyphens=False) for width in widths)
    return next((found for found in shorter if len(found) == len(lines)), lines)
