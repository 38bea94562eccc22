"""The atlas: every limit of the catalogue predicted, simulated, compared and drawn, as one static page.

The folder holds `index.html`, `data/NAME.json` (parameters, statement, everything found, pictures as data) and
`figures/NAME.svg`. Limits run in worker processes; only this process writes. One that raises, hangs or takes its
process down becomes a card that says so, and costs nothing else. A limit is run again only if something its numbers
depend on changed, or if it failed.
"""

import json
import sys
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import deeplimits
from deeplimits.atlas.progress import Progress
from deeplimits.catalogue import Entry, catalogue
from deeplimits.errors import DeeplimitsError, ParameterError
from deeplimits.lab.task import Task, digest
from deeplimits.lab.workers import Workers
from deeplimits.render import page

AMOUNTS = {"small": 0.25, "medium": 1.0, "large": 4.0}
"""How the usual number of samples is multiplied."""
TIME_LIMIT = 300.0
"""Seconds that one limit may take."""


@dataclass
class Atlas:
    """What was built."""

    page: Path
    disagreeing: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    undecided: list[str] = field(default_factory=list)
    interrupted: bool = False


def build(
    out: str | Path,
    only: Sequence[str] | None = None,
    size: str = "medium",
    *,
    executor: Executor | None = None,
    entries: Sequence[Entry] | None = None,
) -> Atlas:
    """Write the atlas to the folder `out`.

    `only` names some limits; `entries` gives entries that need not be in the catalogue. The work is done by `executor`,
    by default one worker process for each core.
    """
    if size not in AMOUNTS:
        raise ParameterError(f"size = {size!r} is not allowed; it must be one of {', '.join(AMOUNTS)}")
    if entries is None:
        entries = list(catalogue.limits()) if only is None else [_limit(name) for name in only]
    out = Path(out)
    for folder in ("data", "figures"):
        (out / folder).mkdir(parents=True, exist_ok=True)
    found: dict[str, dict[str, Any]] = {}
    workers = executor or Workers(time_limit=TIME_LIMIT)
    interrupted = False
    try:
        found |= {entry.name: kept for entry in entries if (kept := _kept(out, entry, size)) is not None}
        waiting = [entry for entry in entries if entry.name not in found]
        _run(workers, waiting, size, out, found)
        if waiting and isinstance(workers, Workers):
            sys.stderr.write(f"atlas: largest process {workers.largest}\n")
    except KeyboardInterrupt:
        interrupted = True
        if isinstance(workers, Workers):
            workers.stop()
    finally:
        if executor is None:
            workers.shutdown(cancel_futures=True)
        documents = [found[entry.name] for entry in entries if entry.name in found]
        (out / "index.html").write_text(page.atlas(documents, len(entries), deeplimits.__version__), encoding="utf-8")
    return Atlas(
        out / "index.html",
        [one["name"] for one in documents if one.get("outcome") == "disagrees"],
        [one["name"] for one in documents if "failure" in one],
        [one["name"] for one in documents if one.get("outcome") == "undecided"],
        interrupted,
    )


def _limit(name: str) -> Entry:
    entry = catalogue.entry(name)
    if entry.role != "limit":
        raise ParameterError(f"{name} is a {entry.role}, not a limit of its own; the atlas draws limits")
    return entry


def _run(workers: Executor, waiting: Sequence[Entry], size: str, out: Path, found: dict[str, dict[str, Any]]) -> None:
    """Run what is missing, writing each answer as it comes."""
    futures: dict[Future, Entry] = {workers.submit(compare_and_draw, entry, size): entry for entry in waiting}
    with Progress(len(waiting), len(found)) as progress:
        while futures:
            done, _ = wait(futures, timeout=0.5, return_when=FIRST_COMPLETED)
            for future in done:
                entry = futures.pop(future)
                document, picture = _answer(future, entry)
                found[entry.name] = document
                text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
                (out / "data" / f"{entry.name}.json").write_text(text, encoding="utf-8")
                if picture:
                    (out / "figures" / f"{entry.name}.svg").write_text(picture, encoding="utf-8")
                progress.finished(entry.name, document)
            progress.running([entry.name for future, entry in futures.items() if future.running()])


def _answer(future: Future, entry: Entry) -> tuple[dict[str, Any], str]:
    try:
        return future.result()
    except Exception as error:
        sentence = str(error) if isinstance(error, DeeplimitsError) else f"{type(error).__name__}: {error}"
        return {**_about(entry), "failure": " ".join(sentence.split())}, ""


def _about(entry: Entry) -> dict[str, Any]:
    """What can be said of a limit without running it."""
    from deeplimits import references

    about = entry.about
    return {
        "name": entry.name,
        "room": entry.room,
        "title": about.statement.title,
        "statement": about.statement.sections,
        "references": references.lines(about.statement.references, about.module),
    }


def compare_and_draw(entry: Entry, size: str) -> tuple[dict[str, Any], str]:
    """One limit: the document about it, and its figure as SVG. This is what a worker does."""
    from deeplimits.lab.compare import compare
    from deeplimits.render import with_matplotlib

    limit = entry.load()()
    comparison = compare(limit, samples=_samples(limit, size), progress=False)
    document = {"key": key(entry, size), "version": deeplimits.__version__, "room": entry.room}
    document |= comparison.document() | {"name": entry.name}
    json.dumps(document, allow_nan=False)  # what is not a number must not come to stand on a page
    return document, with_matplotlib.svg(with_matplotlib.figure_of(document))


def key(entry: Entry, size: str) -> str:
    """The content key of a limit's card."""
    limit = entry.load()()
    samples = _samples(limit, size)
    return digest(deeplimits.__version__, [Task(limit, n, samples).key for n in limit.usual.sizes])


def _samples(limit: Any, size: str) -> int:
    return max(8, round(limit.usual.samples * AMOUNTS[size]))


def _kept(out: Path, entry: Entry, size: str) -> dict[str, Any] | None:
    """What an earlier run found, if nothing it depends on changed."""
    path, picture = out / "data" / f"{entry.name}.json", out / "figures" / f"{entry.name}.svg"
    if not (path.exists() and picture.exists()):
        return None
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        return document if "failure" not in document and document.get("key") == key(entry, size) else None
    except Exception:
        # A damaged file, or a limit that cannot even be made: a worker will find out and say.
        return None
