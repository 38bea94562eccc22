"""What can be read of a damaged store goes into a new one."""

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from deeplimits.errors import ParameterError
from deeplimits.lab.outcomes import Outcome, from_rows
from deeplimits.lab.store import APPLICATION, FAULTS, VERSION, Store, StoreError, document, locked


def salvage(path: str | Path) -> tuple[int, Path]:
    """Keep what can be read of a damaged store: how many results, and where the damaged file stands now.

    Every result whose digest is right goes into a new file in its place. A file in which there is none, or that a newer
    deeplimits has written, is left as it is.
    """
    path = Path(path)
    if not path.is_file():
        raise ParameterError(f"salvage = {str(path)!r}: there is no such file")
    lock = locked(path)
    fresh = path.with_name(f"{path.name}-salvaged-{os.getpid()}")
    _remove(fresh)
    try:
        aside = _free_name(path)
        address = f"{path.absolute().as_uri()}?mode=rw"
        with contextlib.closing(sqlite3.connect(address, uri=True, isolation_level=None)) as old, Store(fresh) as new:
            old.text_factory = lambda raw: raw.decode("utf-8", "replace")
            _refuse_newer(old, path)
            count = _copied(old, new)
            kept = count + len(new.plans())
        if not kept:
            raise StoreError(f"nothing of a sweep can be read in {path}, and it is left as it is; give another file")
        for ending in ("", "-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                os.replace(f"{path}{ending}", f"{aside}{ending}")
        os.replace(fresh, path)
        return count, aside
    finally:
        _remove(fresh)
        lock.close()


def _copied(old: sqlite3.Connection, new: Store) -> int:
    """How many results of a damaged file went into a new one."""
    count = 0
    found: dict[str, tuple[dict[str, Any], Outcome]] = {}
    for key, task, outcome in _readable(old):
        found[key] = (task, outcome)
        if len(found) >= 100:
            count, found = count + len(found), new.put(found) or {}
    new.put(found)
    for text, tasks in _rows(old, "plans", "document, tasks"):
        if (plan := document(text)) is not None and isinstance(tasks, int):
            new.plan(plan, tasks)
    return count + len(found)


def _refuse_newer(old: sqlite3.Connection, path: Path) -> None:
    with contextlib.suppress(*FAULTS):
        version = old.execute("PRAGMA user_version").fetchone()[0]
        ours = old.execute("PRAGMA application_id").fetchone()[0] == APPLICATION
        if ours and version > VERSION and old.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok":
            raise StoreError(f"{path} was written by a newer deeplimits, and is left as it is; upgrade deeplimits")


def _free_name(path: Path) -> Path:
    number = 1
    while (found := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    return found


def _remove(path: Path) -> None:
    for ending in ("", "-wal", "-shm", "-lock"):
        with contextlib.suppress(FileNotFoundError):
            os.remove(f"{path}{ending}")


def _readable(old: sqlite3.Connection) -> Iterator[tuple[str, dict[str, Any], Outcome]]:
    for key, task, *row in _rows(old, "results", "key, task, outcome, sentence, seconds, attempts, digest"):
        parts = list(_rows(old, "arrays", "part, place, name, dtype, shape, data", "WHERE key = ?", (key,)))
        outcome = from_rows(tuple(row), parts)
        words = document(task)
        if outcome is not None and outcome.good and words is not None and isinstance(key, str):
            yield key, words, outcome


def _rows(old: sqlite3.Connection, table: str, columns: str, where: str = "", values: tuple = ()) -> Iterator[tuple]:
    """Rows of a damaged table: from the front, and where that ends, from the back."""
    seen = set()
    for order in ("ASC", "DESC") if not where else ("ASC",):
        place = "rowid" if not where else "place"
        try:
            for row in old.execute(f"SELECT {columns} FROM {table} {where} ORDER BY {place} {order}", values):
                if where or row[0] not in seen:
                    seen.add(row[0])
                    yield row
            return
        except FAULTS:
            continue
