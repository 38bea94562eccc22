"""The atlas: every limit of the catalogue predicted, simulated, compared and drawn, as one static page.

The folder holds `index.html`, and for each limit `data/NAME.json` (everything found) and `figures/NAME.svg`. A limit is
run again only if its code, its parameters, the amount of simulation or the package version changed.
"""

import html
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import deeplimits
from deeplimits.atlas.fingerprint import fingerprint
from deeplimits.catalogue import Entry, catalogue
from deeplimits.errors import ParameterError
from deeplimits.lab import report
from deeplimits.lab.compare import compare

AMOUNTS = {"small": 0.25, "medium": 1.0, "large": 4.0}
"""How the usual number of samples is multiplied."""


def build(out: str | Path, only: Sequence[str] | None = None, size: str = "medium") -> tuple[Path, list[str]]:
    """Write the atlas to the folder `out`; the page's path, and the names of limits that disagree."""
    if size not in AMOUNTS:
        raise ParameterError(f"size = {size!r} is not allowed; it must be one of {', '.join(AMOUNTS)}")
    entries = list(catalogue.limits()) if only is None else [_limit(name) for name in only]
    out = Path(out)
    for folder in ("data", "figures"):
        (out / folder).mkdir(parents=True, exist_ok=True)
    documents = []
    with report.progress(len(entries), "atlas", None) as bar:
        for entry in entries:
            bar.set_postfix_str(entry.name)
            documents.append(_document(out, entry, size))
            bar.update(1)
    page = out / "index.html"
    page.write_text(report.page(_body(documents), "deeplimits atlas"), encoding="utf-8")
    return page, [document["name"] for document in documents if not document["agrees"]]


def _limit(name: str) -> Entry:
    entry = catalogue.entry(name)
    if entry.role != "limit":
        raise ParameterError(f"{name} is a {entry.role}, not a limit of its own; the atlas draws limits")
    return entry


def _document(out: Path, entry: Entry, size: str) -> dict[str, Any]:
    """What is to be said about one limit: read from the folder if nothing changed, else found anew."""
    path, picture = out / "data" / f"{entry.name}.json", out / "figures" / f"{entry.name}.svg"
    limit = entry.load()()
    samples = max(8, round(limit.samples * AMOUNTS[size]))
    key = fingerprint(entry.target, limit.values(), samples, deeplimits.__version__)
    if path.exists() and picture.exists():
        document = json.loads(path.read_text(encoding="utf-8"))
        if document.get("fingerprint") == key:
            return document
    comparison = compare(limit, samples=samples)
    picture.write_text(report.svg(comparison), encoding="utf-8")
    image = f'<img src="figures/{entry.name}.svg" alt="{html.escape(entry.title)}: theory and simulation">'
    document = {
        "fingerprint": key,
        "version": deeplimits.__version__,
        "family": entry.family,
        "title": entry.title,
        "statement": entry.source.sections,
        "references": list(entry.source.references),
        **comparison.to_json(),
        "predictions": {name: kind.to_json() for name, kind in comparison.predictions.items()},
        "card": report.card(comparison, image),
    }
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return document


def _body(documents: Sequence[dict[str, Any]]) -> str:
    agreeing = sum(document["agrees"] for document in documents)
    families: dict[str, list[dict[str, Any]]] = {}
    for document in documents:
        families.setdefault(document["family"], []).append(document)
    links = "".join(
        f'<li><a href="#{document["name"]}">{html.escape(document["title"])}</a></li>' for document in documents
    )
    sections = "".join(
        f"<h1>{html.escape(family.replace('_', ' ').capitalize())}</h1>" + "".join(d["card"] for d in members)
        for family, members in sorted(families.items())
    )
    return (
        "<h1>deeplimits atlas</h1>"
        '<p class="lead">Compute the limit. Simulate the network. See whether they agree.</p>'
        f"<p>{agreeing} of {len(documents)} limits agree with their simulations; "
        f"deeplimits {deeplimits.__version__}.</p><nav><ul>{links}</ul></nav>{sections}"
    )
