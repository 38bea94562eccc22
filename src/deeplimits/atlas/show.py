"""What a worker of the atlas does for one limit: the usual comparison, the showcase, and all that its page says."""

import importlib
import inspect
import json
import time
from collections.abc import Mapping
from typing import Any

import deeplimits
from deeplimits import references
from deeplimits.catalogue import Entry
from deeplimits.lab import panels, points, scan
from deeplimits.lab.compare import compare
from deeplimits.lab.task import Task, digest, module_path
from deeplimits.limit import values_of
from deeplimits.render.web import pictures
from deeplimits.render.web.letters import letters

AMOUNTS = {"small": 0.25, "medium": 1.0, "large": 4.0}
"""How the usual number of samples is multiplied."""
PATIENCE = {"small": 2.0, "medium": 4.0, "large": 8.0}
"""Seconds for the theory along the sliders of a limit."""
OWN = ("deeplimits.atlas.show", "deeplimits.lab.panels", "deeplimits.lab.points", "deeplimits.lab.scan",
       "deeplimits.render.web.pictures")  # fmt: skip
"""What shapes a page's data, besides what shapes the numbers."""


def samples_of(limit: Any, size: str) -> int:
    return max(8, round(limit.usual.samples * AMOUNTS[size]))


def key(entry: Entry, size: str) -> str:
    """The content key of a limit's page: it changes with everything that its data depend on."""
    cls = entry.load()
    limit, shown = cls(), scan.shown_at(cls)
    samples = samples_of(limit, size)
    tasks = [Task(limit, n, samples).key for n in limit.usual.sizes]
    own = [digest(path.read_text(encoding="utf-8")) for path in map(module_path, OWN) if path is not None]
    return digest(deeplimits.__version__, size, tasks, Task(shown, max(limit.usual.sizes), 1).key, own)


def about(entry: Entry) -> dict[str, Any]:
    """What can be said of a limit without running it."""
    record = entry.about
    return {
        "name": entry.name,
        "room": entry.room,
        "title": record.statement.title,
        "statement": record.statement.sections,
        "references": references.lines(record.statement.references, record.module),
    }


def page_about(entry: Entry) -> dict[str, Any]:
    """What a page says of a limit besides what was found: parameters, code, citation, how to call it."""
    record = entry.about
    module = importlib.import_module(record.module)
    try:
        bibtex = references.bibtex(record.statement.references, record.module)
    except deeplimits.errors.DeeplimitsError:
        bibtex = ""
    try:
        code = inspect.getsource(module)
    except (OSError, TypeError):
        code = ""
    return {**about(entry), "module": record.module, "class": record.name, "bibtex": bibtex, "code": code,
            "parameters_about": parameters_about(entry)}  # fmt: skip


def parameters_about(entry: Entry) -> list[dict[str, Any]]:
    """The parameter fields as a page's controls are made from them."""
    found = []
    for name, one in entry.about.parameters.items():
        row: dict[str, Any] = {"name": name, "kind": one.kind, "symbol": letters(one.symbol), "doc": one.doc,
                               "allowed": one.allowed, "default": one.default}  # fmt: skip
        for field in ("low", "high", "log", "options"):
            value = getattr(one, field, None)
            if value is not None:
                row[field] = None if value == float("inf") else value
        found.append(row)
    return found


def compare_and_show(entry: Entry, size: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """One limit: the document about its usual comparison, and the data of its page."""
    cls = entry.load()
    limit, shown = cls(), scan.shown_at(cls)
    began = time.process_time()
    comparison = compare(limit, samples=samples_of(limit, size), progress=False)
    document = {"key": key(entry, size), "version": deeplimits.__version__, "room": entry.room}
    document |= comparison.document() | {"name": entry.name}
    json.dumps(document, allow_nan=False)  # what is not a number must not come to stand on a page
    compared = time.process_time() - began
    showcase = cls.showcase
    if showcase.parameters or showcase.size or showcase.samples:
        trials, samples = points.simulated(shown, showcase.size, showcase.samples)
        count = showcase.size or max(limit.usual.sizes)
        kept = {name: found for name, found in comparison.trials.items() if found[0].stated.kind in panels.WHOLE}
        trials = {**trials, **(kept if not showcase.parameters else {})}
    else:
        trials, samples, count = comparison.trials, comparison.samples, comparison.sizes[-1]
    shown = scan.of_size(shown, count)
    data = panels.document(shown, trials, count, samples, PATIENCE[size])
    data["values"] = values_of(shown)
    page = {**page_about(entry), "showcase": data, "trends": trends(comparison), "found": found_of(document)}
    page["seconds"] = [pictures.rounded(compared), pictures.rounded(time.process_time() - began - compared)]
    json.dumps(page, allow_nan=False)
    return document, page


def trends(comparison: Any) -> dict[str, Any]:
    """How each result comes nearer as the systems grow: the picture of all sizes that were compared."""
    return {name: pictures.compact(one) for name, one in comparison.pictures().items()}


FOUND = ("sizes", "samples", "seed", "statistic", "threshold", "outcome", "verdict", "agrees", "parameters")
OF_EACH = ("kind", "outcome", "verdict", "statistic", "threshold", "p_value", "noticed", "stated", "measured")


def found_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """The verdicts, without the numbers behind them but with the rate at which each gap closes."""
    found = {name: document[name] for name in FOUND}
    found["findings"] = {
        name: {**{one: finding[one] for one in OF_EACH}, "rate": finding["details"].get("rate")}
        for name, finding in document["findings"].items()
    }
    return found
