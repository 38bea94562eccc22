"""Progress bars."""

import contextlib
import sys
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def progress(total: int, what: str, shown: bool | None, unit: str = "system") -> Iterator[Any]:
    """A progress bar on standard error, for work of more than a second, where that is a terminal or a notebook."""
    from tqdm import tqdm

    hidden = not (sys.stderr.isatty() or in_notebook() if shown is None else shown)
    with tqdm(
        total=total, desc=what, unit=unit, disable=hidden, delay=1.0 if shown is None else 0.0, leave=False
    ) as bar:
        yield bar


def in_notebook() -> bool:
    """Whether what is written to standard error is shown below a notebook's cell."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"
