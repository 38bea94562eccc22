"""The functions of `work` by name: the process that serves passes names on, and never imports what computes."""

import importlib
from typing import Any

PAGE = "page"
KNOWN = ("page", "theory", "sweep", "planned", "add")


def call(function: str, *arguments: Any) -> Any:
    """Run one of the known functions in this process, which is a worker's."""
    if function not in KNOWN:
        raise ValueError(f"{function} is none of {', '.join(KNOWN)}")
    return getattr(importlib.import_module("deeplimits.explorer.work"), function)(*arguments)
