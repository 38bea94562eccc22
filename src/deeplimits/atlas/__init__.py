"""The atlas: every limit of the catalogue predicted, simulated, compared and drawn, as a site that opens from disk.

The folder holds `index.html`, a page for each limit in `limits/`, and `data/`: `NAME.json` with everything that was
found (parameters, statement, verdicts, pictures as data), `NAME.js` with what the page draws, which is the same kind of
data in a form that a page opened from disk may read. Limits run in worker processes; only this process writes. One that
raises, hangs or takes its process down becomes a page that says so, and costs nothing else. A limit is run again only
if something its numbers depend on changed, or if it failed.
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
from deeplimits.atlas.show import AMOUNTS, about, compare_and_show, key, page_about
from deeplimits.catalogue import Entry, catalogue
from deeplimits.errors import DeeplimitsError, ParameterError
from deeplimits.lab.workers import Workers
from deeplimits.render.web import site

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
    site.prepare(out)
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
        site.write_overview(out, documents, len(entries), deeplimits.__version__)
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
    futures: dict[Future, Entry] = {workers.submit(compare_and_show, entry, size): entry for entry in waiting}
    with Progress(len(waiting), len(found)) as progress:
        while futures:
            done, _ = wait(futures, timeout=0.5, return_when=FIRST_COMPLETED)
            for future in done:
                entry = futures.pop(future)
                document, shown = _answer(future, entry)
                found[entry.name] = document
                site.write_limit(out, document, shown)
                progress.finished(entry.name, document)
            progress.running([entry.name for future, entry in futures.items() if future.running()])


def _answer(future: Future, entry: Entry) -> tuple[dict[str, Any], dict[str, Any]]:
    try:
        return future.result()
    except Exception as error:
        sentence = str(error) if isinstance(error, DeeplimitsError) else f"{type(error).__name__}: {error}"
        failed = {**about(entry), "failure": " ".join(sentence.split())}
        return failed, failed


def _kept(out: Path, entry: Entry, size: str) -> dict[str, Any] | None:
    """What an earlier run found, if nothing it depends on changed."""
    path = out / "data" / f"{entry.name}.json"
    if not (path.exists() and site.complete(out, entry.name)):
        return None
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if "failure" in document or document.get("key") != key(entry, size):
            return None
        # The page itself is written anew: how it looks may have changed.
        site.write_page(out, {**document["card"], **page_about(entry)})
        return document
    except Exception:
        # A damaged file, or a limit that cannot even be made: a worker will find out and say.
        return None
