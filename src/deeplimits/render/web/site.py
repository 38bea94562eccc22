"""A folder that is a site: what is written where. A process killed at any moment leaves nothing half written."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from deeplimits.render.web import pages
from deeplimits.render.web.pictures import thumbnail

FOLDERS = ("assets", "data", "limits")
DRAWN = ("name", "made", "parameters_about", "showcase", "trends")
"""What of a limit its script needs; the rest stands on the page."""
SAID = ("see", "size", "samples", "values")
"""What of a showcase stands on the page."""


def prepare(out: Path) -> None:
    """Folders and scripts."""
    for folder in FOLDERS:
        (out / folder).mkdir(parents=True, exist_ok=True)
    for name in ("figure.js", "limit.js", "index.js"):
        _write(out / "assets" / name, pages.script(name))


def write_limit(out: Path, document: dict[str, Any], page: Mapping[str, Any]) -> None:
    """The files of one limit; the document last, because it says that the others are there.

    The document gets a `card`: what page and overview say of a limit where it is not run again.
    """
    name = page["name"]
    drawn = {key: page[key] for key in DRAWN if key in page}
    _write(out / "data" / f"{name}.js", script_of(name, drawn))
    write_page(out, page)
    card = {key: value for key, value in page.items() if key == "name" or key not in (*DRAWN, "code", "bibtex")}
    if "showcase" in page:
        card["showcase"] = {key: page["showcase"][key] for key in SAID}
    document["card"] = {**card, "thumb": thumbnail(page)}
    _write(out / "data" / f"{name}.json", json.dumps(document, ensure_ascii=False) + "\n")


def write_page(out: Path, page: Mapping[str, Any]) -> None:
    """The page of one limit, which needs none of the data that its script draws."""
    _write(out / "limits" / f"{page['name']}.html", pages.limit(page))


def script_of(name: str, drawn: Mapping[str, Any]) -> str:
    """Data as a script: what a page that was opened from disk may read."""
    text = json.dumps(drawn, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # No data can end the script or the line.
    text = text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return f"deeplimits.limits[{json.dumps(name)}]={text};\n"


def complete(out: Path, name: str) -> bool:
    return all((out / place).exists() for place in (f"limits/{name}.html", f"data/{name}.js"))


def write_overview(out: Path, documents: Sequence[Mapping[str, Any]], expected: int, version: str) -> None:
    """The overview of what there is."""
    cards = [document.get("card", document) for document in documents]
    thumbs = {card["name"]: card["thumb"] for card in cards if card.get("thumb")}
    text = json.dumps(thumbs, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    _write(out / "data" / "index.js", f"deeplimits.thumbs={text};\n")
    _write(out / "index.html", pages.overview(cards, expected, version))


def _write(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)
