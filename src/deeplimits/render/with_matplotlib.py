"""Pictures drawn with matplotlib, which nothing else imports. Theory is a line, simulations are markers."""

import functools
import io
import math
import string
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from deeplimits.errors import MissingExtra, ParameterError, require
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
    Number,
    Picture,
    Points,
    Rule,
    Stem,
)  # fmt: skip
from deeplimits.render.layout import cell_edges, evenly, heading, lines_of, steps_of, typeset

INK = "black"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
MARKERS = "osD^vP"
SHADE = {"facecolor": "#999999", "edgecolor": "#777777", "alpha": 0.25, "linewidth": 0, "hatch": "//"}
WIDTH = {1: 6.4, 2: 4.8}  # inches of a panel, alone and beside another
HEIGHT = 3.3
STEPS = [1, 2, 2.5, 5, 10]
"""The distances of ticks, up to powers of ten."""
LETTERS = 14.5
"""Letters of a legend or label in an inch, about."""
HEADER = ("result", "meaning", "theory")
"""Of the table of numbers that have nothing beside them."""
ROW = 0.17
"""Inches of a row of a legend."""


def figure(
    title: str,
    settings: Sequence[Mapping[str, Any]],
    pictures: Mapping[str, Picture],
    path: str | Path | None = None,
    *,
    ax: Any = None,
    size: tuple[float, float] | None = None,
    dpi: float | None = None,
) -> Any:
    """One panel for each picture, under the title and the settings in words; written to `path` where one is given.

    Numbers with nothing beside them stand in one table. A single picture can be drawn on given axes, `ax`.
    """
    require("matplotlib", "plot")
    if path is not None:
        check_format(path)
    _check_looks(pictures, ax, size, dpi)
    if ax is not None:
        for picture in pictures.values():
            draw(picture, ax)
            if _labelled(picture):
                ax.legend(fontsize=8.5, frameon=False)
        drawn = ax.figure
    else:
        drawn = _panels(title, settings, pictures, size)
    if dpi is not None:
        drawn.set_dpi(dpi)
    if path is not None:
        drawn.savefig(path, dpi=dpi or 150)
    return drawn


def _panels(title: str, settings: Any, pictures: Mapping[str, Picture], size: tuple[float, float] | None) -> Any:
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    numbers = {name: picture for name, picture in pictures.items() if _is_number(picture)}
    shown = {name: picture for name, picture in pictures.items() if name not in numbers}
    count = len(shown) + bool(numbers)
    columns = min(2, count)
    rows = math.ceil(count / columns)
    width = size[0] / columns if size else WIDTH[columns]
    letters = int((12 if columns == 1 else 9.5) * width)
    titles = [
        evenly((f"{name} " if columns > 1 else "") + picture.caption.replace(" = ", "\u00a0=\u00a0"), letters)
        if picture.caption
        else [name.replace("_", " ")]
        for name, picture in shown.items()
    ]
    above = [
        _rows_of_legend(picture, width) + len(said) - 1 for picture, said in zip(shown.values(), titles, strict=True)
    ]
    heights = [HEIGHT + ROW * max(above[i : i + columns]) for i in range(0, len(above), columns)]
    if len(heights) < rows:  # the table stands alone in the last row
        heights.append(ROW * (3 + 2 * len(numbers)))
    caption = heading(title, settings, int(9.4 * width * columns))
    usual = (WIDTH[columns] * columns, sum(heights) + 0.22 * len(caption))
    drawn = _shown()(figsize=size or usual, layout=ConstrainedLayoutEngine(h_pad=0.08, w_pad=0.08))
    panels = drawn.subplots(rows, columns, squeeze=False, height_ratios=heights).ravel()
    for panel, said, picture in zip(panels, titles, shown.values(), strict=False):
        draw(picture, panel)
        _legend(panel, picture, width)
        panel.set_title(
            "\n".join(said),
            fontsize=10 if picture.caption else 11,
            pad=6 + 72 * ROW * _rows_of_legend(picture, width),
        )
        panel.spines[["top", "right"]].set_visible(False)
    if numbers:
        _table(panels[len(shown)], numbers)
    for panel in panels[count:]:
        panel.set_visible(False)
    drawn.suptitle("\n".join(caption), fontsize=12)
    return drawn


def captioned(title: str, pictures: Sequence[Picture]) -> Any:
    """Pictures side by side, each under its caption and, where there are several, a letter."""
    return figure(
        title, (), {f"({letter})": one for letter, one in zip(string.ascii_lowercase, pictures, strict=False)}
    )


@functools.cache
def _shown() -> type:
    """A figure that shows itself in a notebook, with no backend chosen and no window opened."""
    from matplotlib.figure import Figure

    class ShownFigure(Figure):
        def _repr_png_(self) -> bytes:
            buffer = io.BytesIO()
            self.savefig(buffer, format="png", dpi=self.get_dpi())
            return buffer.getvalue()

    return ShownFigure


def check_format(path: str | Path) -> None:
    """Refuse a file whose ending names no format that can be drawn."""
    require("matplotlib", "plot")
    from matplotlib.backend_bases import FigureCanvasBase

    known = FigureCanvasBase.get_supported_filetypes()
    ending = Path(path).suffix.removeprefix(".").lower()
    if ending not in known:
        raise ParameterError(
            f"plot = {str(path)!r} cannot be written: its ending must be one of {', '.join(sorted(known))}"
        )


def _check_looks(pictures: Mapping[str, Picture], ax: Any, size: Any, dpi: Any) -> None:
    if ax is not None and len(pictures) > 1:
        raise ParameterError(f"ax takes one result; choose it with only=..., of {', '.join(pictures)}")
    if ax is not None and not hasattr(ax, "errorbar"):
        raise ParameterError(f"ax = {ax!r} is not allowed; it must be matplotlib axes, as of plt.subplots()")
    good = isinstance(size, tuple | list) and len(size) == 2
    if size is not None and not (good and all(isinstance(one, int | float) and 0 < one < 200 for one in size)):
        raise ParameterError(f"size = {size!r} is not allowed; it must be width and height in inches, as (6, 4)")
    if dpi is not None and not (isinstance(dpi, int | float) and 0 < dpi <= 5000):
        raise ParameterError(f"dpi = {dpi!r} is not allowed; it must be dots an inch, as 150")


def _is_number(picture: Picture) -> bool:
    return all(isinstance(mark, Number) for mark in picture.marks)


def _table(panel: Any, numbers: Mapping[str, Picture]) -> None:
    """Numbers with nothing beside them, a row each: result, meaning, value."""
    panel.axis("off")
    rows = [
        [name.replace("_", " "), "\n".join(lines_of(picture.y, 44)), f"{mark.value:.6g}"]
        for name, picture in numbers.items()
        for mark in picture.marks
        if isinstance(mark, Number)
    ]
    table = panel.table(
        rows, colLabels=["result", "meaning", "theory"], cellLoc="left", colLoc="left", loc="center", edges="B"
    )
    table.auto_set_font_size(False)
    table.set_fontsize(9.5)
    table.auto_set_column_width([0, 1, 2])
    table.scale(1, 1.7)


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
    from matplotlib.colors import LogNorm

    values = np.array(mark.values, dtype=float)
    edges = [
        cell_edges(_floats(row), scale == "log")
        for row, scale in ((mark.x, panel.get_xscale()), (mark.y, panel.get_yscale()))
    ]
    norm = LogNorm() if mark.log and np.nanmin(values) > 0 else None
    mesh = panel.pcolormesh(*edges, values, cmap="viridis", norm=norm, alpha=0.85)
    panel.figure.colorbar(mesh, ax=panel, label="\n".join(evenly(mark.label, 34)), ticks=steps_of(values))


def _band(mark: Band, panel: Any, ends: tuple[float, float]) -> None:
    low = ends[0] if mark.low is None else _floats(mark.low)
    high = ends[1] if mark.high is None else _floats(mark.high)
    panel.fill_between(_floats(mark.x), low, high, label=mark.label, zorder=1, **SHADE)


def _number(mark: Number, panel: Any) -> None:
    panel.text(0.5, 0.5, f"{mark.label}: {mark.value:.6g}", ha="center", va="center", transform=panel.transAxes)


DRAWN = {Number: _number, Line: _line, Points: _points, Histogram: _histogram, Rule: _rule, Stem: _stem, Field: _field}


def _floats(row: Any) -> np.ndarray:
    """A row of numbers, its gaps as not-a-number."""
    return np.array(row, dtype=float)


def _colour(mark: Mark) -> str:
    return COLOURS[(mark.series or 0) % len(COLOURS)]


def _line_style(mark: Mark) -> dict[str, Any]:
    style = {"color": INK if mark.series is None else _colour(mark), "linewidth": 1.8, "zorder": 2}
    # A line through what was measured is a fit.
    return style if mark.role == THEORY else {**style, "linestyle": "--", "linewidth": 1.2, "color": _colour(mark)}


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
    lines = lines_of(given, 36 if upright else 80)
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
            plainly = LogLocator(subs=(1.0, 2.0, 5.0) if high < 1e5 else (1.0,))  # where numbers are not too long
            axis.set_major_locator(plainly if high / low > 8 else finer)
            axis.set_major_formatter(plain)
        return
    axis.set_major_locator(MaxNLocator(7, integer=given.whole, steps=STEPS))
    if 1e-3 <= max(abs(low), abs(high)) < 1e5:
        axis.get_major_formatter().set_useOffset(False)
    else:
        axis.set_major_formatter(plain)


def _legend(panel: Any, picture: Picture, width: float) -> None:
    """The labels in rows above the panel, where they hide nothing: theory first."""
    rows = _rows_of_legend(picture, width)
    if not rows:
        return
    handles = dict(zip(*reversed(panel.get_legend_handles_labels()), strict=True))
    labels = [mark.label for mark in _labelled(picture)]
    panel.legend(
        [handles[label] for label in labels],
        [typeset(label) for label in labels],
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


def _rows_of_legend(picture: Picture, width: float) -> int:
    labels = [mark.label for mark in _labelled(picture)]
    room = LETTERS * (width - 0.8)
    for rows in range(1, len(labels) + 1):
        # Columns are filled one after the other; a handle takes the room of six letters.
        if sum(6 + max(map(len, labels[i : i + rows])) for i in range(0, len(labels), rows)) <= room:
            return rows
    return len(labels)
