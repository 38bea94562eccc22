"""`Store`: the results of a sweep in one SQLite file, by their content keys.

Only the process that drives a sweep writes; readers look on meanwhile (WAL). A result is there wholly or not at all,
and carries a digest of its numbers, so that one that the disk has damaged is computed again and not believed. A second
driver is refused by a lock that the system takes back when its holder dies.

What stands in a file is data: numbers of known types and JSON. Nothing in it is unpickled, evaluated or imported.
"""

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deeplimits.errors import DeeplimitsError, ParameterError
from deeplimits.lab.outcomes import DONE, FAILED, Outcome, digest_of, from_rows, parts_of

APPLICATION = 0x64_6C_73_77
"""What the file says it belongs to."""
MIGRATIONS: dict[int, tuple[str, ...]] = {}
"""What brings a file of a version to the next one, by the version it has."""
VERSION = 1
SCHEMA = (
    "CREATE TABLE plans (id INTEGER PRIMARY KEY, document TEXT NOT NULL UNIQUE, tasks INTEGER NOT NULL)",
    "CREATE TABLE results (key TEXT PRIMARY KEY, task TEXT NOT NULL, outcome TEXT NOT NULL, sentence TEXT NOT NULL,"
    " seconds REAL NOT NULL, attempts INTEGER NOT NULL, digest TEXT NOT NULL)",
    "CREATE TABLE arrays (key TEXT NOT NULL, part TEXT NOT NULL, place INTEGER NOT NULL, name TEXT NOT NULL,"
    " dtype TEXT NOT NULL, shape TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (key, part, place)) WITHOUT ROWID",
)
FAULTS = (sqlite3.Error, UnicodeDecodeError)
"""What SQLite's module raises over a file; the second where it cannot read what SQLite says of a damaged one."""
TABLES = {"plans", "results", "arrays"}
LONGEST = 1_000_000
"""Letters of a plan that is read."""


class StoreError(DeeplimitsError):
    """A store cannot be used, and the sentence says what to do."""


@dataclass(frozen=True)
class Status:
    """How far a store is."""

    path: str
    plans: list[dict[str, Any]]
    tasks: int
    """How many tasks the last plan has, or has come to."""
    done: int
    failed: dict[str, int]
    """Sentences of failures, and how many tasks each is said of."""
    seconds: float
    driven: bool
    """Whether a driver is at work on it."""

    def __str__(self) -> str:
        failures = sum(self.failed.values())
        said = [f"{self.path}: {self.done} results of {max(self.tasks, self.done)} tasks"]
        said += [f"{failures} failed"] if failures else []
        said += [f"{self.seconds:.0f} seconds of computing", "a driver is at work" if self.driven else "no driver"]
        lines = [", ".join(said)]
        lines += [f"  {named(plan)}" for plan in self.plans]
        lines += [f"  failed, {count} x: {sentence}" for sentence, count in self.failed.items()]
        return "\n".join(lines)


def named(plan: dict[str, Any]) -> str:
    """A plan on a line."""
    varying = plan.get("varying") if isinstance(plan.get("varying"), dict) else {}
    counts = ", ".join(f"{len(v)} of {k}" for k, v in (varying or {}).items() if isinstance(v, list))
    return f"{str(plan.get('limit', '?'))[:200]} along {counts[:200] or 'nothing'}"


class Store:
    """The file at `path`; made where there is none, unless it is opened only `reading`.

    >>> import tempfile
    >>> import numpy as np
    >>> path = tempfile.mkdtemp() + "/sweep.db"
    >>> with Store(path) as store:
    ...     store.put({"key": ({"size": 3}, Outcome({"risk": np.array([0.5, 0.25])}))})
    >>> with Store(path, reading=True) as store:
    ...     store.get("key").measured["risk"].tolist(), store.status().done
    ([0.5, 0.25], 1)
    """

    def __init__(self, path: str | Path, *, reading: bool = False):
        self.path = Path(path)
        self._lock: sqlite3.Connection | None = None
        if self.path.is_dir():
            raise ParameterError(f"store = {str(path)!r} is a folder; give a file, as {self.path / 'sweep.db'}")
        if reading and not self.path.exists():
            raise ParameterError(f"store = {str(path)!r}: there is no such file")
        if not self.path.parent.is_dir():
            raise ParameterError(f"store = {str(path)!r} cannot be made: there is no folder {self.path.parent}")
        if not reading:
            self._lock = locked(self.path)
        try:
            with self._told():
                address = f"{self.path.absolute().as_uri()}?mode={'ro' if reading else 'rwc'}"
                self._file = sqlite3.connect(address, uri=True, timeout=10.0, isolation_level=None)
                self._file.text_factory = _readable
                self._open(reading)
        except BaseException:
            self.close()
            raise

    def _open(self, reading: bool) -> None:
        run = self._file.execute
        # What a file from elsewhere brings along (views, triggers, generated columns) is not run.
        run("PRAGMA trusted_schema = OFF")
        run("PRAGMA cell_size_check = ON")
        found = {
            name: kind for name, kind in run("SELECT name, type FROM sqlite_schema") if not name.startswith("sqlite_")
        }
        version = run("PRAGMA user_version").fetchone()[0]
        if not found and version == 0 and not reading:
            run("PRAGMA journal_mode = WAL")
            run("PRAGMA synchronous = FULL")
            with self._whole():
                for statement in SCHEMA:
                    run(statement)
                run(f"PRAGMA application_id = {APPLICATION}")
                run(f"PRAGMA user_version = {VERSION}")
            return
        if run("PRAGMA application_id").fetchone()[0] != APPLICATION:
            raise StoreError(f"{self.path} is a database of another program, and left as it is; give another file")
        if version > VERSION:
            raise StoreError(
                f"{self.path} was written by a newer deeplimits (its form is {version}, this one reads up to "
                f"{VERSION}), and is left as it is; upgrade deeplimits, or give another file"
            )
        if any(kind in ("view", "trigger") for kind in found.values()) or not set(found) >= TABLES:
            raise StoreError(f"{self.path} does not have the tables of a store; give another file")
        if reading:
            if version < VERSION:
                raise StoreError(f"{self.path} has the older form {version}; any sweep on it brings it up to date")
            return
        run("PRAGMA journal_mode = WAL")
        run("PRAGMA synchronous = FULL")
        for step in range(version, VERSION):
            with self._whole():
                for statement in MIGRATIONS[step]:
                    run(statement)
                run(f"PRAGMA user_version = {step + 1}")

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        for connection in (getattr(self, "_file", None), self._lock):
            if connection is not None:
                with contextlib.suppress(sqlite3.Error):
                    connection.close()
        self._lock = None

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """What SQLite says, as a sentence with what to do."""
        try:
            yield
        except FAULTS as error:
            said = "what it is made of cannot be read" if isinstance(error, UnicodeDecodeError) else str(error)
            code = getattr(error, "sqlite_errorname", "") or ""
            if code.startswith("SQLITE_FULL") or "full" in said:
                raise StoreError(
                    f"there is no room left for {self.path}; what it holds is safe: make room and run the same again"
                ) from None
            if code.startswith("SQLITE_IOERR"):
                raise StoreError(
                    f"{self.path} cannot be written ({said}); what it holds is safe: look at the disk and run the same "
                    "again"
                ) from None
            if code.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
                raise StoreError(f"{self.path} cannot be opened ({said})") from None
            if code.startswith("SQLITE_BUSY"):
                raise StoreError(f"{self.path} is held by another program; end that, or give another file") from None
            raise StoreError(
                f"{self.path} is damaged ({said}); `deeplimits sweep --salvage {self.path}` keeps what can be read"
            ) from None

    @contextlib.contextmanager
    def _whole(self) -> Iterator[None]:
        """Everything inside is written, or nothing."""
        self._file.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._file.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                self._file.execute("ROLLBACK")
            raise

    # Results

    def put(self, results: dict[str, tuple[dict[str, Any], Outcome]]) -> None:
        """Keep results: by key, what the task was, in words for a reader, and what became of it."""
        with self._told(), self._whole():
            for key, (task, outcome) in results.items():
                parts = list(parts_of(outcome))
                row = (key, json.dumps(task), DONE if outcome.good else FAILED, outcome.sentence, outcome.seconds,
                       outcome.attempts, digest_of(outcome.sentence, parts))  # fmt: skip
                self._file.execute("DELETE FROM arrays WHERE key = ?", (key,))
                self._file.execute("INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?, ?, ?, ?)", row)
                self._file.executemany("INSERT INTO arrays VALUES (?, ?, ?, ?, ?, ?, ?)", ((key, *p) for p in parts))

    def get(self, key: str) -> Outcome | None:
        """What became of a task; None where it is not here, or not as it was written."""
        with self._told():
            row = self._file.execute(
                "SELECT outcome, sentence, seconds, attempts, digest FROM results WHERE key = ?", (key,)
            ).fetchone()
            if row is None:
                return None
            parts = self._file.execute(
                "SELECT part, place, name, dtype, shape, data FROM arrays WHERE key = ? ORDER BY part, place", (key,)
            ).fetchall()
        return from_rows(row, parts)

    def keys(self) -> set[str]:
        """The keys of all tasks that are done."""
        with self._told():
            return {key for (key,) in self._file.execute("SELECT key FROM results WHERE outcome = ?", (DONE,))}

    def __len__(self) -> int:
        return len(self.keys())

    # Plans

    def plan(self, document: dict[str, Any], tasks: int) -> None:
        """Say what is being computed, and of how many tasks it consists now; the last plan is the current one."""
        text = json.dumps(document, sort_keys=True)
        with self._told(), self._whole():
            newest = self._file.execute("SELECT id, document FROM plans ORDER BY id DESC LIMIT 1").fetchone()
            if newest is not None and newest[1] == text:
                self._file.execute("UPDATE plans SET tasks = ? WHERE id = ?", (tasks, newest[0]))
                return
            self._file.execute("DELETE FROM plans WHERE document = ?", (text,))
            self._file.execute("INSERT INTO plans (document, tasks) VALUES (?, ?)", (text, tasks))

    def plans(self) -> list[dict[str, Any]]:
        """All plans, the current one last."""
        with self._told():
            rows = self._file.execute("SELECT document FROM plans ORDER BY id").fetchall()
        found = [document(text) for (text,) in rows]
        return [one for one in found if one is not None]

    def status(self) -> Status:
        """How far it is; also while a driver is at work."""
        plans = self.plans()
        with self._told():
            run = self._file.execute
            tasks = run("SELECT tasks FROM plans ORDER BY id DESC LIMIT 1").fetchone()
            done, seconds = run("SELECT count(*), total(seconds) FROM results WHERE outcome = ?", (DONE,)).fetchone()
            failed = run(
                "SELECT sentence, count(*) FROM results WHERE outcome = ? GROUP BY sentence ORDER BY 2 DESC LIMIT 20",
                (FAILED,),
            ).fetchall()
        count = tasks[0] if tasks and isinstance(tasks[0], int) else 0
        return Status(
            str(self.path), plans, count, done, {_clean(sentence): n for sentence, n in failed}, seconds,
            self._lock is not None or driven(self.path),
        )  # fmt: skip


def _readable(raw: bytes) -> str:
    """Text, also where a file has something else in its place."""
    return raw.decode("utf-8", "replace")


def driven(path: str | Path) -> bool:
    """Whether a driver is at work on this store."""
    if not lock_of(Path(path)).exists():
        return False
    try:
        locked(Path(path), 0.0).close()
    except StoreError:
        return True
    return False


def lock_of(path: Path) -> Path:
    return path.with_name(path.name + "-lock")


def locked(path: Path, patience: float = 1.0) -> sqlite3.Connection:
    """A lock beside the file, by SQLite's own means: the system takes it back when its process ends, in any way."""
    address = f"{lock_of(path).absolute().as_uri()}?mode=rwc"
    lock = None
    try:
        lock = sqlite3.connect(address, uri=True, timeout=patience, isolation_level=None, check_same_thread=False)
        lock.execute("PRAGMA journal_mode = OFF")
        lock.execute("BEGIN EXCLUSIVE")
    except FAULTS as error:
        if lock is not None:
            lock.close()
        if (getattr(error, "sqlite_errorname", "") or "").startswith("SQLITE_BUSY"):
            raise StoreError(
                f"another sweep is writing to {path}; wait for it, or give another file "
                f"(`deeplimits sweep --status {path}` says how far it is)"
            ) from None
        raise StoreError(f"{path} cannot be locked ({error}): look at {lock_of(path)}") from None
    return lock


def document(text: Any) -> dict[str, Any] | None:
    """A plan, if it is one; nothing in it is believed yet."""
    if not isinstance(text, str) or len(text) > LONGEST:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _clean(sentence: Any) -> str:
    """A sentence from a file, without what a terminal would obey."""
    return "".join(letter if letter.isprintable() else " " for letter in str(sentence)[:500])
