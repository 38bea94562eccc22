"""A report about a user's network as a page, from its data."""

import html
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deeplimits.predictions.picture import Picture
from deeplimits.render import page, with_matplotlib

URGENT = ("critical", "warning")
HOLDS = {True: "holds", False: "does not hold here", None: "not tested"}


def page_of(report: Mapping[str, Any], cited: Mapping[str, str], severities: Mapping[str, str]) -> str:
    """One self-contained file: every finding with what it is, what was found, what to do, numbers and picture.

    `severities` says what each of those words means.
    """
    escape = html.escape
    body = f"<h1>{escape(report['title'])}</h1><p class='lead'>{escape(report['summary'])}</p>"
    body += _verdict(report["findings"]) + _key(severities) + _contents(report["findings"])
    body += "".join(_card(one, cited) for one in report["findings"])
    for heading, key in (("Not looked at", "left_out"), ("About the model and its data", "notes")):
        if report[key]:
            items = "".join(f"<li>{escape(said)}</li>" for said in report[key])
            body += f"<section class='finding'><h2>{heading}</h2><ul>{items}</ul></section>"
    if cited:
        items = "".join(f"<li>{escape(text)}</li>" for text in cited.values())
        body += f"<section class='finding'><h2>References</h2><ul>{items}</ul></section>"
    style = Path(__file__).with_name("report.css").read_text(encoding="utf-8")
    return page.page(body, report["title"]).replace("</style>", f"{style}</style>", 1)


def _badge(severity: str) -> str:
    return f"<span class='badge {severity}'>{severity}</span>"


def _verdict(findings: list[Mapping[str, Any]]) -> str:
    urgent = [one for one in findings if one["severity"] in URGENT]
    if not urgent:
        return "<p class='found'>Nothing here needs mending.</p>"
    first = urgent[0]
    link = f"<a href='#{html.escape(first['name'])}'>{html.escape(first['title'])}</a>"
    return f"<p class='found'><b>Begin with:</b> {link}. {html.escape(_sentence(first['action']))}</p>"


def _key(severities: Mapping[str, str]) -> str:
    escape = html.escape
    items = "".join(f"<li>{_badge(word)}<span>{escape(said)}</span></li>" for word, said in severities.items())
    return (
        "<details class='key'><summary>How to read this page</summary><p>Each part below measures one thing about "
        "this network and, where theory has an answer, sets beside it what theory expects of a network of exactly "
        "these sizes, weights and data. In the pictures lines are theory and points were measured. The worst comes "
        f"first:</p><ul class='key'>{items}</ul></details>"
    )


def _contents(findings: list[Mapping[str, Any]]) -> str:
    escape = html.escape
    items = "".join(
        f"<li>{_badge(one['severity'])}<span><a href='#{escape(one['name'])}'>{escape(one['title'])}</a>"
        f"{': ' + escape(one['short']) if one['severity'] in URGENT else ''}</span></li>"
        for one in findings
    )
    return f"<nav><ol class='contents'>{items}</ol></nav>" if items else ""


def _card(found: Mapping[str, Any], cited: Mapping[str, str]) -> str:
    escape = html.escape
    action = f"<p class='do'><b>What to do:</b> {escape(found['action'])}</p>" if found["action"] else ""
    meaning = f"<p class='what'>{escape(found['meaning'])}</p>" if found["meaning"] else ""
    return (
        f"<section class='finding {found['severity']}' id='{escape(found['name'])}'><header>"
        f"<h2>{escape(found['title'])}</h2> {_badge(found['severity'])} <code>{escape(found['name'])}</code></header>"
        f"{meaning}<p class='found'>{escape(_sentence(found['sentence']))}</p>{action}{_figure(found)}"
        f"{_numbers(found, cited)}</section>"
    )


def _sentence(said: str) -> str:
    return said[:1].upper() + said[1:]


def _numbers(found: Mapping[str, Any], cited: Mapping[str, str]) -> str:
    escape = html.escape
    if found["measured"] is None and not found["assumptions"] and not found["references"]:
        return ""
    rows = ""
    if found["measured"] is not None:
        error = "" if not found["error"] else f" ± {found['error']:.2g}"
        rows += f"<tr><td>measured: {escape(found['what'])}</td><td>{found['measured']:.5g}{error}</td></tr>"
    if found["theory"] is not None:
        rows += f"<tr><td>theory: {escape(found['theory_what'])}</td><td>{found['theory']:.5g}</td></tr>"
    rows += "".join(
        f"<tr><td>the theory assumes: {escape(one['what'])}</td><td>{HOLDS[one['holds']]}</td></tr>"
        for one in found["assumptions"]
    )
    if found["references"]:
        said = "; ".join(escape(cited.get(key, key).rstrip(".")) for key in found["references"])
        rows += f"<tr><td colspan='2'>read more: {said}.</td></tr>"
    return f"<details><summary>Numbers, assumptions, references</summary><table><tbody>{rows}</tbody></table></details>"


def _figure(found: Mapping[str, Any]) -> str:
    if found["picture"] is None:
        return ""
    picture = Picture.from_json(found["picture"])
    drawn = with_matplotlib.svg_or_nothing(lambda: with_matplotlib.figure("", (), {"": picture}))
    caption = f"<figcaption>{html.escape(found['caption'])}</figcaption>" if found["caption"] else ""
    return f"<figure>{drawn}{caption}</figure>" if drawn else ""
