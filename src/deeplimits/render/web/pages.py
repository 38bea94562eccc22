"""The HTML around the figures: an overview of all limits, and a page for each. The same for atlas and explorer."""

import html
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from deeplimits.render.text import brief, tally
from deeplimits.render.web.code import coloured

HERE = Path(__file__).parent
SCRIPTS = ("figure.js", "limit.js", "index.js", "live.js")
"""What is served; a notebook's cell has `bridge.js` and `widget.js` besides."""
TITLES = {
    "online_sgd": "Online SGD",
    "two_layer": "Two-layer networks",
    "bias": "Implicit bias",
    "landscape": "Loss landscape",
    "kernels": "Kernels and wide networks",
    "spectra": "Random-matrix spectra",
    "regression": "Regression and double descent",
    "initialization": "Initialization",
    "attention": "Attention and tokens",
    "bayes": "Bayesian deep linear networks",
    "expressivity": "Expressivity and random ReLU networks",
    "mixtures": "Mixtures and the first step of training",
}
OUTCOMES = ("agrees", "disagrees", "undecided", "failed", "missing")
escape = html.escape


def style() -> str:
    return (HERE / "style.css").read_text(encoding="utf-8")


def script(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


def room_title(room: str) -> str:
    return TITLES.get(room, room.replace("_", " ").capitalize())


def _page(title: str, body: str, *, up: str, scripts: Sequence[str], attributes: str = "", live: bool = False) -> str:
    look = f'<link rel="stylesheet" href="{up}assets/style.css">' if live else f"<style>{style()}</style>"
    loaded = "".join(f'<script defer src="{up}{one}"></script>' for one in scripts)
    # An icon of its own, so that no browser asks for one.
    icon = '<link rel="icon" href="data:,">'
    kind = "explorer" if live else "atlas"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title>{icon}{look}{loaded}</head><body{attributes}>"
        '<a class="skip" href="#content">Skip to the content</a>'
        f'<header class="top"><div><a class="home" href="{up}index.html">deeplimits {kind}</a>'
        '<span class="where">Compute the limit. Simulate the network. See whether they agree.</span></div></header>'
        f'<main id="content" tabindex="-1">{body}</main></body></html>\n'
    )


def badge(outcome: str) -> str:
    word = {"missing": "not run yet", "failed": "could not be run"}.get(outcome, outcome)
    return f'<span class="badge {outcome}">{word}</span>' if outcome else ""


def outcome_of(page: Mapping[str, Any]) -> str:
    """What came out of a limit: its verdict, or that it could not be run; nothing where none was asked for."""
    if "failure" in page:
        return "failed"
    return page.get("found", {}).get("outcome", "")


def overview(pages: Sequence[Mapping[str, Any]], expected: int, version: str, *, live: bool = False) -> str:
    """The overview: what was found, rooms, search and filters, a card for each limit, a table of all verdicts."""
    rooms: dict[str, list[Mapping[str, Any]]] = {}
    for one in pages:
        rooms.setdefault(one["room"], []).append(one)
    rooms = {room: rooms[room] for room in sorted(rooms, key=room_title)}
    links = "".join(
        f'<li><a href="#room-{room}">{room_title(room)}</a> {len(some)}</li>' for room, some in rooms.items()
    )
    cards = "".join(
        f'<section class="room" id="room-{room}"><h2>{room_title(room)}</h2><ul class="limits">'
        f"{''.join(map(_card, some))}</ul></section>"
        for room, some in rooms.items()
    )
    kinds = sorted({finding["kind"] for one in pages for finding in one.get("found", {}).get("findings", {}).values()})
    outcomes = [word for word in OUTCOMES if any(outcome_of(one) == word for one in pages)]
    lead = "Every limit live: move a slider and the theory follows, press a button and finite networks fall on it."
    if not live:
        lead = f"{_summary(pages, expected)}; deeplimits {escape(version)}."
    verdicts = "" if live else f'<div id="verdicts" class="card scroll" hidden>{_verdicts(pages)}</div>'
    body = (
        f'<h1>The limits of deep-learning theory, drawn and checked</h1><p class="lead">{lead}</p>'
        f'<nav aria-label="Rooms"><ul class="rooms">{links}</ul></nav>'
        '<form class="filters" onsubmit="return false" role="search">'
        '<label>Search<input type="search" id="search" autocomplete="off"></label>'
        f"{_select('room', 'Room', [(room, room_title(room)) for room in rooms])}"
        f"{_select('kind', 'Kind of prediction', [(one, one) for one in kinds], not kinds)}"
        f"{_select('verdict', 'Verdict', [(one, one) for one in outcomes if one], not any(outcomes))}</form>"
        '<p class="note" id="count" role="status"></p>'
        f'<div class="tabs"{" hidden" if live else ""}><button type="button" id="as-cards" aria-pressed="true">Cards</button>'
        '<button type="button" id="as-table" aria-pressed="false">Table of verdicts</button></div>'
        f'<div id="cards">{cards}</div>{verdicts or _no_verdicts()}'
        "<footer>Each page opens from disk and asks nothing of any network.</footer>"
    )
    scripts = ("assets/figure.js", "data/index.js", "assets/index.js")
    return _page(f"deeplimits {'explorer' if live else 'atlas'}", body, up="", scripts=scripts, live=live)


def _no_verdicts() -> str:
    return '<div id="verdicts" hidden></div>'


def _select(name: str, label: str, options: Sequence[tuple[str, str]], hidden: bool = False) -> str:
    rows = "".join(f'<option value="{escape(value)}">{escape(said)}</option>' for value, said in options)
    return f'<label{" hidden" if hidden else ""}>{label}<select id="{name}"><option value="">all</option>{rows}</select></label>'


def _words(page: Mapping[str, Any]) -> str:
    said = " ".join((page["name"], page["title"], page["room"], *page.get("references", {}).values(),
                     *page.get("statement", {}).values()))  # fmt: skip
    return " ".join(said.lower().split())[:1500]


def _kinds(page: Mapping[str, Any]) -> str:
    return " ".join(sorted({one["kind"] for one in page.get("found", {}).get("findings", {}).values()}))


def _data(page: Mapping[str, Any]) -> str:
    return (
        f'data-name="{escape(page["name"])}" data-room="{page["room"]}" data-kinds="{_kinds(page)}" '
        f'data-outcome="{outcome_of(page)}" data-words="{escape(_words(page))}"'
    )


def _card(page: Mapping[str, Any]) -> str:
    name = escape(page["name"])
    failure = f'<p class="note">Could not be run: {escape(page["failure"])}</p>' if "failure" in page else ""
    return (
        f'<li id="{name}" {_data(page)}><div class="thumb"></div><a href="limits/{name}.html">{escape(page["title"])}</a>'
        f'{failure}<div class="foot"><span class="id">{name}</span>{badge(outcome_of(page))}</div></li>'
    )


COLUMNS = ("limit", "result", "kind", "verdict", "z", "p", "would notice", "gap closes as", "theory", "simulation")


def _verdicts(pages: Sequence[Mapping[str, Any]]) -> str:
    heads = "".join(f'<th scope="col" aria-sort="none"><button type="button">{one}</button></th>' for one in COLUMNS)
    lines = "".join(
        f"<tr {_data(page)}>{_verdict(page, name, one)}</tr>"
        for page in pages
        for name, one in page.get("found", {}).get("findings", {}).items()
    )
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table>"


def _verdict(page: Mapping[str, Any], name: str, found: Mapping[str, Any]) -> str:
    rate = found.get("rate")
    closes = "exact" if rate is None else "1/n" if rate == 1 else f"n^−{rate:.3g}"
    noticed = found.get("noticed")
    cells = (
        f'<td><a href="limits/{escape(page["name"])}.html">{escape(page["name"])}</a></td>',
        f"<td>{escape(name.replace('_', ' '))}</td>",
        f"<td>{found['kind']}</td>",
        f"<td>{badge(found['outcome'])}</td>",
        _number(found["statistic"]),
        _number(found["p_value"]),
        _number(noticed, "" if noticed is None else f"{100 * noticed:.2g} %"),
        _number(
            math.inf if rate is None else rate,
            closes if found["kind"] in ("Value", "Curve", "Spectrum", "Law") else "–",
        ),
        f"<td>{escape(found['stated'])}</td>",
        f"<td>{escape(found['measured'])}</td>",
    )
    return "".join(cells)


def _number(value: float | None, said: str | None = None) -> str:
    if value is None:
        return '<td class="num" data-value="">–</td>'
    text = f"{value:.2g}" if said is None else said
    return f'<td class="num" data-value="{value:.6g}">{text}</td>'


def _summary(pages: Sequence[Mapping[str, Any]], expected: int) -> str:
    done = [one for one in pages if outcome_of(one)]
    agreeing = sum(outcome_of(one) == "agrees" for one in pages)
    words = {"disagrees": "disagree", "undecided": "undecided", "failed": "could not be run"}
    links: dict[str, list[str]] = {said: [] for said in words.values()}
    for one in done:
        if outcome_of(one) in words:
            name = escape(one["name"])
            links[words[outcome_of(one)]].append(f'<a href="limits/{name}.html">{name}</a>')
    return tally(agreeing, len(done), expected, links)


def limit(page: Mapping[str, Any], *, live: bool = False) -> str:
    """The page of one limit."""
    name, room = page["name"], page["room"]
    where = f'<p class="id"><a href="../index.html#room={room}">{room_title(room)}</a> / {escape(name)} {badge(outcome_of(page))}</p>'
    body = f"{where}<h1>{escape(page['title'])}</h1>"
    if "failure" in page:
        body += f'<p class="message">Could not be run: {escape(page["failure"])}</p>{_statement(page)}'
        return _page(f"{page['title']} · deeplimits", body, up="../", scripts=(), live=live)
    body += _stage(page, live) + _statement(page)
    if page.get("found"):
        body += _found(page) + '<h2>As the systems grow</h2><div class="panels" id="trends"></div>'
    body += _parameters(page) + _reproduced() + _cited(page) + _code(page)
    scripts = ["assets/figure.js", f"data/{name}.js", *(["assets/live.js"] if live else []), "assets/limit.js"]
    attributes = f' data-limit="{escape(name)}"' + (' data-live="1"' if live else "")
    return _page(f"{page['title']} · deeplimits", body, up="../", scripts=scripts, attributes=attributes, live=live)


def alone(page: Mapping[str, Any], data: str) -> str:
    """The live page of one limit for a notebook's cell: everything it needs in one text, and no links."""
    body = f"<h1>{escape(page['title'])}</h1>{_stage(page, True)}"
    body += (
        f"<details><summary>Statement and code</summary>{_statement(page)}{_parameters(page)}{_reproduced()}</details>"
    )
    names = ("figure.js", "", "bridge.js", "live.js", "limit.js")
    scripts = "".join(f"<script>{script(name) if name else data}</script>" for name in names)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(page["title"])}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{style()}</style></head>'
        f'<body data-limit="{escape(page["name"])}" data-live="1"><main>{body}</main>{scripts}</body></html>'
    )


def _stage(page: Mapping[str, Any], live: bool) -> str:
    show = page["showcase"]
    see = f'<p class="see">{escape(show["see"])}</p>' if show.get("see") else ""
    drawn = ""
    if show.get("samples"):
        systems = "system" if show["samples"] == 1 else "systems"
        drawn = f'<p class="note" id="points">Points: {show["samples"]} simulated {systems} of size n = {show["size"]}; bars are two standard errors.</p>'
    simulate = _simulate(show) if live else ""
    heading = "Parameters" if live else "Move a parameter"
    return (
        '<div class="stage"><section class="card" aria-label="Figure"><h2 class="small" id="shown" tabindex="-1"></h2>'
        '<div class="plot" id="stage"></div><output class="value" id="said"></output>'
        f'<p class="working" id="working" role="status"></p>{see}{drawn}'
        '<div class="buttons" id="downloads" role="group" aria-label="Download"><span class="note">Download</span></div>'
        '<details id="numbers"><summary>The numbers of this figure</summary><div class="scroll"><table></table></div></details>'
        f'</section><section class="card controls" aria-label="{heading}"><h2 class="small">{heading}</h2><div id="controls"></div>{simulate}'
        '<p class="message" id="message" role="alert"></p></section></div><div class="panels" id="others"></div>'
        "<noscript><p>The figures are drawn by a script of this page; statement and verdicts stand below.</p></noscript>"
    )


def _simulate(show: Mapping[str, Any]) -> str:
    size = show.get("size", 100)
    return (
        '<fieldset id="simulate"><h3>Finite systems</h3>'
        f'<div class="row"><label for="size">size n</label><input type="number" id="size" min="1" step="1" value="{size}"></div>'
        '<div class="row"><label for="samples">how many</label><input type="number" id="samples" min="1" step="1" value="40"></div>'
        '<div class="row"><label for="seed">seed</label><input type="number" id="seed" min="0" step="1" value="0"></div>'
        '<div class="buttons"><button type="button" class="main" id="go">Simulate</button>'
        '<button type="button" id="stop" disabled>Stop</button><button type="button" id="clear">Clear</button></div>'
        '<p class="working" id="progress" role="status"></p></fieldset>'
    )


def _statement(page: Mapping[str, Any]) -> str:
    rows = "".join(
        f"<dt>{escape(word)}</dt><dd>{f'<pre>{escape(text)}</pre>' if word == 'Result' else escape(' '.join(text.split()))}</dd>"
        for word, text in page["statement"].items()
        if word != "References"
    )
    cited = "".join(f"<li>{escape(text)}</li>" for text in page["references"].values())
    sources = f"<dt>References</dt><dd><ul>{cited}</ul></dd>" if cited else ""
    return f'<h2>Statement</h2><div class="card"><dl class="statement">{rows}{sources}</dl></div>'


def _found(page: Mapping[str, Any]) -> str:
    found = page["found"]
    lines = "".join(
        f"<tr><td>{escape(name.replace('_', ' '))}</td><td>{one['kind']}</td><td>{badge(one['outcome'])}</td>"
        f"<td>{escape(one['stated'])}</td><td>{escape(one['measured'])}</td><td>{escape(one['verdict'])}</td></tr>"
        for name, one in found["findings"].items()
    )
    sizes = ", ".join(map(str, found["sizes"]))
    heads = "".join(
        f'<th scope="col">{one}</th>' for one in ("result", "kind", "outcome", "theory", "simulation", "verdict")
    )
    at = ", ".join(f"{key} = {brief(value)}" for key, value in found["parameters"].items())
    return (
        f'<h2>Verdict</h2><div class="card"><p class="verdict">{escape(found["verdict"])}</p>'
        f'<p class="note">Sizes n = {sizes}, {found["samples"]} systems each, seed {found["seed"]}; {escape(at)}.</p>'
        f'<div class="scroll"><table><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table></div></div>'
    )


def _parameters(page: Mapping[str, Any]) -> str:
    values = page["showcase"].get("values", {})
    lines = "".join(
        f"<tr><td><code>{escape(one['name'])}</code></td><td>{escape(one['doc'])}</td><td>{escape(one['allowed'])}</td>"
        f"<td>{escape(brief(values.get(one['name'], one['default'])))}</td></tr>"
        for one in page["parameters_about"]
    )
    heads = "".join(f'<th scope="col">{one}</th>' for one in ("name", "meaning", "may be", "shown at"))
    return (
        '<h2>Parameters</h2><div class="card scroll"><table>'
        f"<thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table></div>"
    )


def _block(name: str, text: str) -> str:
    return (
        f'<div class="copied"><pre class="block" id="{name}" tabindex="0">{text}</pre>'
        f'<button type="button" data-copy="{name}">Copy</button></div>'
    )


def _reproduced() -> str:
    return f"<h2>Reproduce it</h2>{_block('command', '')}<p></p>{_block('python', '')}"


def _cited(page: Mapping[str, Any]) -> str:
    if not page.get("bibtex"):
        return ""
    return f"<h2>Citation</h2>{_block('bibtex', escape(page['bibtex']))}"


def _code(page: Mapping[str, Any]) -> str:
    if not page.get("code"):
        return ""
    return (
        f"<h2>Code</h2><details><summary>{escape(page['module'])}</summary>"
        f'<pre class="block" tabindex="0">{coloured(page["code"])}</pre></details>'
    )
