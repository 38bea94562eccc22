"""The limits, each a class in a file of its own; the folders are the rooms of the theory.

`deeplimits.limits.RidgelessRegression` imports just that one.
"""

from typing import Any

from deeplimits.catalogue import catalogue


def __getattr__(name: str) -> Any:
    for entry in catalogue.limits():
        if entry.target.endswith(f":{name}"):
            return entry.load()
    raise AttributeError(f"there is no limit class {name!r}; there are {', '.join(__dir__())}")


def __dir__() -> list[str]:
    return sorted(entry.target.rpartition(":")[2] for entry in catalogue.limits())
