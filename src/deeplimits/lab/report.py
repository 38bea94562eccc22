"""Tables, figures and pages, the same for every limit."""

import contextlib
import html
import io
import math
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deeplimits import references
from deeplimits.catalogue import catalogue
from deeplimits.errors import require
from deeplimits.limit import Limit
from deeplimits.predictions import Kind, Trial
from deeplimits.statement import Statement

if TYPE_CHECKING:
    from deeplimits.lab.compare import Comparison


def heading(limit: Limit) -> str:
    """Name and parameters in one line."""
    values = ", ".join(f"{name} = {_brief(value)}" for name, value in limit.values().items())
    return f"{catalogue.name_of(type(limit))} ({values})"


def _brief(value: Any) -> str:
    if isinstance(value, list):
        return f"[{len(value)} points from {value[0]:.4g} to {value[-1]:.4g}]"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Aligned columns under a line."""
    widths = [max(len(str(row[i])) for row in (header, *rows)) for i in range(len(header))]

    def line(row: Sequence[str]) -> str:
        return "  ".join(str(cell).ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()

    return "\n".join([line(header), "  ".join("─" * width for width in widths), *map(line, rows)])


def attributes(limit: Limit) -> dict[str, Any]:
    return {"limit": catalogue.name_of(type(limit)), **limit.values()}


def variables(results: Mapping[str, Kind]) -> dict[str, Any]:
    """xarray variables of predictions; dimensions carry the result's name, so that grids of two results never mix."""
    found = {}
    for name, kind in results.items():
        for part, (dims, values) in kind.arrays().items():
            label = f"{name}_{part.replace(' ', '_')}" if part else name
            found[label] = (tuple(f"{name}_{dim.replace(' ', '_')}_index" for dim in dims), values)
    return found


def cite(limit: Limit) -> str:
    return references.bibtex(Statement.of(type(limit)).references)


@contextlib.contextmanager
def progress(total: int, what: str, shown: bool | None) -> Iterator[Any]:
    """A progress bar on standard error, for work of more than a second, where that is a terminal."""
    from tqdm import tqdm

    hidden = not (sys.stderr.isatty() if shown is None else shown)
    with tqdm(
        total=total, desc=what, unit="system", disable=hidden, delay=1.0 if shown is None else 0.0, leave=False
    ) as bar:
        yield bar


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
    realised = [limit.at_size(size)[1].values() for size in sizes]
    shown = []
    for name, parameter in limit.parameters().items():
        value = limit.values()[name]
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


def svg(comparison: "Comparison") -> str:
    """The comparison's figure as an SVG element."""
    require("matplotlib", "plot")
    import matplotlib as mpl

    buffer = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "deeplimits", "svg.fonttype": "path"}):
        comparison.plot().savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def document(comparison: "Comparison") -> dict[str, Any]:
    """Everything a page says about a comparison, as plain data."""
    limit, statement = comparison.limit, Statement.of(type(comparison.limit))
    values = limit.values()
    return {
        "title": statement.title,
        "statement": statement.sections,
        "references": {key: references.short(key) for key in statement.references},
        **comparison.to_json(),
        "parameter_notes": {key: [_brief(values[key]), spec.doc] for key, spec in limit.parameters().items()},
        "predictions": {name: kind.to_json() for name, kind in comparison.predictions.items()},
    }


def card(found: Mapping[str, Any], picture: str) -> str:
    """One limit as an HTML section: statement, verdict, figure, table, references; from a `document` and a figure."""
    escape = html.escape
    statement = "".join(
        f"<dt>{escape(word)}</dt><dd><pre>{escape(text if word == 'Result' else ' '.join(text.split()))}</pre></dd>"
        for word, text in found["statement"].items()
        if word != "References"
    )
    cited = "".join(f"<li>{escape(text)}</li>" for text in found["references"].values())
    if "failure" in found:
        word, body = "failed", f'<p class="verdict">Could not be run: {escape(found["failure"])}</p>'
    else:
        word, body = "agrees" if found["agrees"] else "disagrees", _findings(found, picture)
    return (
        f'<section class="limit" id="{escape(found["name"])}"><header><h2>{escape(found["title"])}</h2>'
        f'<code>{escape(found["name"])}</code> <span class="badge {word}">{word}</span></header>'
        f"<dl>{statement}</dl>{body}"
        f'<details open class="references"><summary>References</summary><ul>{cited}</ul></details></section>'
    )


def _findings(found: Mapping[str, Any], picture: str) -> str:
    escape = html.escape
    rows = "".join(
        f'<tr class="{"agrees" if finding["agrees"] else "disagrees"}"><td>{escape(key.replace("_", " "))}</td>'
        f"<td>{finding['kind']}</td><td>{escape(finding['stated'])}</td><td>{escape(finding['measured'])}</td>"
        f"<td>{escape(finding['verdict'])}</td></tr>"
        for key, finding in found["findings"].items()
    )
    parameters = "".join(
        f"<tr><td>{escape(key)}</td><td>{escape(value)}</td><td>{escape(doc)}</td></tr>"
        for key, (value, doc) in found["parameter_notes"].items()
    )
    sizes = ", ".join(map(str, found["sizes"]))
    return (
        f'<figure>{picture}</figure><p class="verdict">{escape(found["verdict"])}</p>'
        f"<table><thead><tr><th>result</th><th>kind</th><th>theory</th><th>simulation</th><th>verdict</th></tr></thead>"
        f"<tbody>{rows}</tbody></table>"
        f"<details><summary>Parameters: sizes n = {sizes}, {found['samples']} samples each, seed {found['seed']}"
        f"</summary><table>{parameters}</table></details>"
    )


def page(body: str, title: str = "deeplimits") -> str:
    """A complete HTML document with the house's style inlined."""
    style = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{style}</style></head><body><main>{body}</main></body></html>\n"
    )
