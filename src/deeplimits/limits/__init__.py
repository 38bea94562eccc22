"""The limits, each a class in a file of its own; the folders are the rooms of the theory.

A class is named like its entry: `ridgeless-double-descent` is `deeplimits.limits.RidgelessDoubleDescent`, and asking
for it imports just that one.
"""

import difflib
from typing import Any

from deeplimits.catalogue import Entry, catalogue


def __getattr__(name: str) -> Any:
    entries = _by_class()
    if name in entries:
        return entries[name].load()
    near = difflib.get_close_matches(name, entries, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else "`deeplimits list` shows all names"
    raise AttributeError(f"there is no limit class {name!r}; {hint}")


def __dir__() -> list[str]:
    return sorted(_by_class())


def _by_class() -> dict[str, Entry]:
    return {entry.target.rpartition(":")[2]: entry for entry in catalogue.limits()}
