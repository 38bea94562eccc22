"""How far a sweep is: a bar on a terminal, a line now and then in a log file."""

import sys
import time
from typing import Any

EVERY = 10.0
"""Seconds between two lines in a log."""


class Progress:
    """Shows counts of tasks and about how long the rest takes; on a terminal, or where `shown` says so."""

    def __init__(self, shown: bool | None):
        self._terminal = sys.stderr.isatty()
        self._shown = self._terminal if shown is None else shown
        self._bar: Any = None
        self._last = self._began = time.monotonic()
        self._line = ""

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_: Any) -> None:
        if self._bar is not None:
            self._bar.close()
        elif self._line:
            self._write(f"{self._line} in {clock(time.monotonic() - self._began)}")

    def update(self, tasks: int, restored: int, done: int, failed: int, left: float | None) -> None:
        """So many tasks there are, were there already, are done, have failed; about so many seconds are left."""
        if not self._shown:
            return
        rest = tasks - restored - done - failed
        said = f"{restored + done} of {tasks} tasks"
        said += f", {restored} of them restored" if restored else ""
        said += f", {failed} failed" if failed else ""
        said += f", about {clock(left)} left" if left is not None and rest else ""
        if self._terminal:
            self._on_terminal(tasks, restored + done + failed, said)
        elif time.monotonic() - self._last >= EVERY:
            self._last, self._line = time.monotonic(), ""
            self._write(said)
        else:
            self._line = said

    def _on_terminal(self, tasks: int, done: int, said: str) -> None:
        from tqdm import tqdm

        if self._bar is None:
            self._bar = tqdm(total=tasks, leave=False, bar_format="{desc} |{bar}| {elapsed}")
        self._bar.total, self._bar.n = tasks, done
        self._bar.set_description_str(f"sweep: {said}")

    def _write(self, said: str) -> None:
        sys.stderr.write(f"sweep: {said}\n")
        sys.stderr.flush()


def clock(seconds: float) -> str:
    """
    >>> clock(3.2), clock(75), clock(7500)
    ('0:03', '1:15', '2:05:00')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
