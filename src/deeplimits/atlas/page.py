"""The atlas's page, from the documents about its limits."""

import html
from collections.abc import Sequence
from typing import Any

import deeplimits
from deeplimits.render import page as pages


def page(documents: Sequence[dict[str, Any]], expected: int) -> str:
    """One card for each document, by room; `expected` says how many limits there are in all."""
    rooms: dict[str, list[dict[str, Any]]] = {}
    for document in documents:
        rooms.setdefault(document["room"], []).append(document)
    links = "".join(f'<li><a href="#{one["name"]}">{html.escape(one["title"])}</a></li>' for one in documents)
    sections = "".join(
        f"<h1>{html.escape(room.replace('_', ' ').capitalize())}</h1>" + "".join(map(_card, members))
        for room, members in sorted(rooms.items())
    )
    body = (
        "<h1>deeplimits atlas</h1>"
        '<p class="lead">Compute the limit. Simulate the network. See whether they agree.</p>'
        f"<p>{_summary(documents, expected)}; deeplimits {deeplimits.__version__}.</p>"
        f"<nav><ul>{links}</ul></nav>{sections}"
    )
    return pages.page(body, "deeplimits atlas")


def _summary(documents: Sequence[dict[str, Any]], expected: int) -> str:
    agreeing = sum(bool(one.get("agrees")) for one in documents)
    failed = [one for one in documents if "failure" in one]
    undecided = [one for one in documents if one.get("outcome") == "undecided"]
    text = f"{agreeing} of {len(documents)} limits agree with their simulations"
    if undecided:
        names = ", ".join(f'<a href="#{one["name"]}">{one["name"]}</a>' for one in undecided)
        text += f"; {len(undecided)} undecided: {names}"
    if failed:
        names = ", ".join(f'<a href="#{one["name"]}">{one["name"]}</a>' for one in failed)
        text += f"; {len(failed)} could not be run: {names}"
    if len(documents) < expected:
        text += f"; {expected - len(documents)} are still to be run"
    return text


def _card(document: dict[str, Any]) -> str:
    alt = f"{html.escape(document['title'])}: theory and simulation"
    return pages.card(document, f'<img src="figures/{document["name"]}.svg" alt="{alt}">')
