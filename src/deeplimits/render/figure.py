"""Figures with matplotlib: one panel for each result, theory as lines, simulations as markers."""

import io
import math
import textwrap
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from deeplimits.errors import MissingExtra, require
from deeplimits.limit import Limit, values_of
from deeplimits.parameters import parameters_of
from deeplimits.predictions import Kind, Trial
from deeplimits.statement import Statement


def figure(
    limit: Limit, results: Mapping[str, Kind], trials: Mapping[str, list[Trial]], path: str | Path | None
) -> Any:
    """One panel for each result, theory as lines, simulations as markers."""
    sizes = {trial.size for found in trials.values() for trial in found}
    require("matplotlib", "plot")
    from matplotlib.figure import Figure

    columns = min(2, len(results))
    lines = math.ceil(len(results) / columns)
    drawn = Figure(figsize=(4.8 * columns if columns > 1 else 6.4, 3.6 * lines), layout="constrained")
    panels = drawn.subplots(lines, columns, squeeze=False).ravel()
    for panel, (name, kind) in zip(panels, results.items(), strict=False):
        kind.draw(panel, trials.get(name, []))
        panel.set_title(name.replace("_", " "), fontsize=11)
        panel.spines[["top", "right"]].set_visible(False)
        panel.legend(fontsize=8.5, frameon=False)
    for panel in panels[len(results) :]:
        panel.set_visible(False)
    drawn.suptitle(_caption(limit, sizes, columns), fontsize=12)
    if path is not None:
        drawn.savefig(path, dpi=150)
    return drawn


def _caption(limit: Limit, sizes: Iterable[int], columns: int) -> str:
    """Title of the limit, and its scalar parameters by symbol, without those that the size decides."""
    realised = [values_of(limit.at_size(size)[1]) for size in sizes]
    shown = []
    for name, parameter in parameters_of(type(limit)).items():
        value = values_of(limit)[name]
        if parameter.kind == "integer" and any(values[name] != value for values in realised):
            continue
        if parameter.kind in ("real", "integer"):
            shown.append(f"${parameter.symbol} = {value:.4g}$" if parameter.symbol else f"{name} = {value:.4g}")
        elif parameter.kind == "choice":
            shown.append(f"{name}: {value}")
    title = textwrap.fill(Statement.of(type(limit)).title, 60 if columns == 1 else 90)
    per_line = 3 if columns == 1 else 6
    lines = [", ".join(shown[i : i + per_line]) for i in range(0, len(shown), per_line)]
    return "\n".join([title, *lines])


def svg(drawn: Any) -> str:
    """A figure as an SVG element."""
    require("matplotlib", "plot")
    import matplotlib as mpl

    buffer = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "deeplimits", "svg.fonttype": "path"}):
        drawn.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def svg_or_nothing(plot: Callable[[], Any]) -> str:
    """The figure that `plot` draws, as SVG; nothing where matplotlib is not installed."""
    try:
        return svg(plot())
    except MissingExtra:
        return ""
