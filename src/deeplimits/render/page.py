"""Pages and parts of pages, from plain data."""

import html
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deeplimits import references
from deeplimits.limit import Limit, values_of
from deeplimits.parameters import parameters_of
from deeplimits.predictions import Kind
from deeplimits.render.text import brief
from deeplimits.statement import Statement


def document(limit: Limit, predictions: Mapping[str, Kind], found: Mapping[str, Any]) -> dict[str, Any]:
    """Everything a page says about a comparison, as plain data; `found` is the comparison's own `to_json()`."""
    statement = Statement.of(type(limit))
    values = values_of(limit)
    return {
        "title": statement.title,
        "statement": statement.sections,
        "references": {key: references.short(key) for key in statement.references},
        **found,
        "parameter_notes": {key: [brief(values[key]), spec.doc] for key, spec in parameters_of(type(limit)).items()},
        "predictions": {name: kind.to_json() for name, kind in predictions.items()},
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
        word, body = found["outcome"], _findings(found, picture)
    return (
        f'<section class="limit" id="{escape(found["name"])}"><header><h2>{escape(found["title"])}</h2>'
        f'<code>{escape(found["name"])}</code> <span class="badge {word}">{word}</span></header>'
        f"<dl>{statement}</dl>{body}"
        f'<details open class="references"><summary>References</summary><ul>{cited}</ul></details></section>'
    )


def _findings(found: Mapping[str, Any], picture: str) -> str:
    escape = html.escape
    rows = "".join(
        f'<tr class="{finding["outcome"]}"><td>{escape(key.replace("_", " "))}</td>'
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
