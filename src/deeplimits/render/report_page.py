"""A report about a user's network as a page, from its data."""

import html
from collections.abc import Mapping
from typing import Any

from deeplimits.predictions.picture import Picture
from deeplimits.render import page, with_matplotlib


def page_of(report: Mapping[str, Any], cited: Mapping[str, str]) -> str:
    """One self-contained file: every finding with its sentence, numbers, assumptions and picture."""
    escape = html.escape
    body = f"<h1>{escape(report['title'])}</h1>"
    body += "".join(_card(one) for one in report["findings"])
    for heading, key in (("Left out", "left_out"), ("Notes on the model and its data", "notes")):
        if report[key]:
            items = "".join(f"<li>{escape(said)}</li>" for said in report[key])
            body += f"<section class='limit'><h2>{heading}</h2><ul>{items}</ul></section>"
    if cited:
        items = "".join(f"<li>{escape(text)}</li>" for text in cited.values())
        body += f"<section class='limit'><h2>References</h2><ul>{items}</ul></section>"
    return page.page(body, report["title"])


def _card(found: Mapping[str, Any]) -> str:
    escape = html.escape
    action = f"<p class='verdict'><b>What to do:</b> {escape(found['action'])}</p>" if found["action"] else ""
    return (
        f"<section class='limit' id='{escape(found['name'])}'><header>"
        f"<h2>{escape(found['name'].replace('-', ' ').capitalize())}</h2>"
        f"<code>{escape(found['room'])}</code> "
        f"<span class='badge {found['severity']}'>{found['severity']}</span></header>"
        f"<p>{escape(found['sentence'])}</p>{action}{_numbers(found)}{_figure(found)}</section>"
    )


def _numbers(found: Mapping[str, Any]) -> str:
    escape = html.escape
    if found["measured"] is None and not found["assumptions"]:
        return ""
    rows = ""
    if found["measured"] is not None:
        error = "" if not found["error"] else f" ± {found['error']:.2g}"
        rows += f"<tr><td>{escape(found['what'])}, measured</td><td>{found['measured']:.5g}{error}</td></tr>"
    if found["theory"] is not None:
        rows += f"<tr><td>theory, for this network</td><td>{found['theory']:.5g}</td></tr>"
    words = {True: "holds", False: "fails here", None: "not tested"}
    rows += "".join(
        f"<tr><td>assumed: {escape(one['what'])}</td><td>{words[one['holds']]}</td></tr>"
        for one in found["assumptions"]
    )
    return f"<table><tbody>{rows}</tbody></table>"


def _figure(found: Mapping[str, Any]) -> str:
    if found["picture"] is None:
        return ""
    picture = Picture.from_json(found["picture"])
    drawn = with_matplotlib.svg_or_nothing(lambda: with_matplotlib.figure("", (), {found["what"]: picture}))
    return f"<figure>{drawn}</figure>"
