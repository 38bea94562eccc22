"""Pages and parts of pages, from plain data: the documents that comparisons make of themselves."""

import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from deeplimits.render.text import brief, tally


def card(found: Mapping[str, Any], picture: str) -> str:
    """One limit as an HTML section: statement, verdict, figure, table, references; from its document and a figure."""
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
        f"<tr><td>{escape(key)}</td><td>{escape(brief(value))}</td>"
        f"<td>{escape(found['parameter_notes'][key]['doc'])}</td></tr>"
        for key, value in found["parameters"].items()
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


def atlas(documents: Sequence[Mapping[str, Any]], expected: int, version: str) -> str:
    """One card for each document, by room; `expected` says how many limits there are in all."""
    rooms: dict[str, list[Mapping[str, Any]]] = {}
    for document in documents:
        rooms.setdefault(document["room"], []).append(document)
    links = "".join(f'<li><a href="#{one["name"]}">{html.escape(one["title"])}</a></li>' for one in documents)
    sections = "".join(
        f"<h1>{html.escape(room.replace('_', ' ').capitalize())}</h1>" + "".join(map(_with_image, members))
        for room, members in sorted(rooms.items())
    )
    body = (
        "<h1>deeplimits atlas</h1>"
        '<p class="lead">Compute the limit. Simulate the network. See whether they agree.</p>'
        f"<p>{_summary(documents, expected)}; deeplimits {version}.</p>"
        f"<nav><ul>{links}</ul></nav>{sections}"
    )
    return page(body, "deeplimits atlas")


def _summary(documents: Sequence[Mapping[str, Any]], expected: int) -> str:
    agreeing = sum(bool(one.get("agrees")) for one in documents)
    undecided = [one["name"] for one in documents if one.get("outcome") == "undecided"]
    failed = [one["name"] for one in documents if "failure" in one]
    others = {"undecided": undecided, "could not be run": failed}
    links = {words: [f'<a href="#{name}">{name}</a>' for name in some] for words, some in others.items()}
    return tally(agreeing, len(documents), expected, links)


def _with_image(document: Mapping[str, Any]) -> str:
    alt = f"{html.escape(document['title'])}: theory and simulation"
    return card(document, f'<img src="figures/{document["name"]}.svg" alt="{alt}">')
