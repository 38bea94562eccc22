"""Telling whether anything that a limit's result depends on has changed."""

import ast
import functools
import hashlib
import json
from typing import Any

from deeplimits.source import module_path

ALWAYS = ("deeplimits.lab.compare", "deeplimits.predictions")
"""Every comparison runs through these, whether or not a limit imports them."""


def fingerprint(target: str, *rest: Any) -> str:
    """A digest of the source of `package.module:Class`, of all it imports from its own package, and of `rest`."""
    module = target.partition(":")[0]
    names = set()
    for start in (module, *ALWAYS):
        names |= _closure(start, module.partition(".")[0])
    digest = hashlib.sha256(json.dumps(rest, sort_keys=True).encode())
    for name in sorted(names):
        digest.update(name.encode())
        digest.update(_source(name))
    return digest.hexdigest()


@functools.cache
def _closure(module: str, package: str) -> frozenset[str]:
    """A module and everything it imports, directly or not, from `package` or from deeplimits."""
    found, waiting = set(), [module]
    while waiting:
        name = waiting.pop()
        if name in found or module_path(name) is None:
            continue
        found.add(name)
        waiting += [other for other in imports(name) if other.partition(".")[0] in (package, "deeplimits")]
    # The catalogue grows with every limit added elsewhere; it decides names, not numbers.
    return frozenset(found - {"deeplimits", "deeplimits.catalogue", "deeplimits.limits"})


@functools.cache
def imports(module: str) -> frozenset[str]:
    """The modules that a module names in its import statements; names imported from a package may be modules too."""
    named = set()
    for node in ast.walk(ast.parse(_source(module))):
        if isinstance(node, ast.Import):
            named |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
            named.add(node.module)
            named |= {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(named)


def _source(module: str) -> bytes:
    path = module_path(module)
    return path.read_bytes() if path is not None else b""
