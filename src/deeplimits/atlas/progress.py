"""How far the atlas is: a bar on a terminal, a line for each limit in a log file."""

import sys
import time
from collections.abc import Sequence
from typing import Any


class Progress:
    """Counts finished limits, and says what is running and about how long the rest will take."""

    def __init__(self, total: int, kept: int):
        from tqdm import tqdm

        self.total, self.kept, self.count = total, kept, 0
        self.began = time.monotonic()
        self.shown: tuple[str, ...] = ()
        terminal = sys.stderr.isatty()
        # Written by hand in a log: a bar redrawn with carriage returns cannot be read there.
        self.bar = tqdm(total=total, desc="atlas", unit="limit", leave=False) if terminal and total else None

    def __enter__(self) -> "Progress":
        kept = f", {self.kept} unchanged" if self.kept else ""
        self._say(f"atlas: {self.total} limits to run{kept}")
        return self

    def __exit__(self, *_: Any) -> None:
        if self.bar is not None:
            self.bar.close()
        self._say(f"atlas: {self.count} of {self.total} done in {_clock(time.monotonic() - self.began)}")

    def finished(self, name: str, document: dict[str, Any]) -> None:
        self.count += 1
        if self.bar is not None:
            self.bar.update(1)
        if "failure" in document:
            outcome = f"could not be run: {document['failure']}"
        else:
            outcome = "agrees" if document["agrees"] else f"{document['outcome'].upper()}: {document['verdict']}"
        spent = time.monotonic() - self.began
        left = spent / self.count * (self.total - self.count)
        if self.bar is None or outcome != "agrees":
            self._say(f"[{self.count}/{self.total}, about {_clock(left)} left] {name} {outcome}")

    def running(self, names: Sequence[str]) -> None:
        if self.bar is not None and tuple(names) != self.shown:
            self.shown = tuple(names)
            self.bar.set_postfix_str(", ".join(names))

    def _say(self, line: str) -> None:
        if self.bar is not None:
            self.bar.write(line, file=sys.stderr)
        else:
            sys.stderr.write(line + "\n")
            sys.stderr.flush()


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"
