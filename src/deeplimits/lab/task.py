"""`Task`: a piece of simulation that can be run anywhere, and the content key by which its result is known again.

Comparisons, atlas and sweeps are made of the same tasks. A key changes with anything the numbers depend on: the code of
the limit and of all it imports, its parameters, the size, the block of seeds, the versions of what computes.
"""

import ast
import functools
import hashlib
import importlib.metadata
import importlib.util
import inspect
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from deeplimits.lab import beforehand
from deeplimits.limit import Limit, require_valid, values_of

ALWAYS = ("deeplimits.lab.simulate", "deeplimits.lab.predict", "deeplimits.predictions")
"""Every result runs through these, whether or not a limit imports them."""
COMPUTING = ("jax", "jaxlib", "numpy", "scipy", "equinox", "diffrax")
"""Packages whose version may change a digit."""


class Realised(NamedTuple):
    """The integers of finite systems, and the limit at the ratios that they have."""

    sizes: dict[str, Any]
    limit: Limit


@dataclass(frozen=True)
class Task:
    """Systems number `first`, ..., `first + samples - 1` of a seed, at one size of a limit."""

    limit: Limit
    size: int
    samples: int
    seed: int = 0
    first: int = 0

    @property
    def key(self) -> str:
        """The content key."""
        cls = type(self.limit)
        block = [self.size, self.samples, self.seed, self.first]
        return digest(code_of(cls), cls.__qualname__, values_of(self.limit), block, surroundings())

    @functools.cached_property
    def realised(self) -> Realised:
        """The systems of this size, or a sentence why there are none; found once, for their cost and for the run."""
        require_valid(self.limit, self.size)
        realised = Realised(*beforehand.finite(self.limit, self.limit.at_size(self.size)))
        require_valid(realised.limit)
        return realised

    def blocks(self, samples: int) -> list["Task"]:
        """The same work in blocks of at most that many systems."""
        return [
            Task(self.limit, self.size, min(samples, self.first + self.samples - first), self.seed, first)
            for first in range(self.first, self.first + self.samples, samples)
        ]


def digest(*parts: Any) -> str:
    """One key for plain data."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@functools.cache
def surroundings() -> dict[str, str]:
    """Versions, precision and device: what computes, besides the code."""
    import jax

    versions = {name: importlib.metadata.version(name) for name in COMPUTING}
    return {**versions, "x64": str(jax.config.jax_enable_x64), "backend": jax.default_backend()}  # pyright: ignore[reportAttributeAccessIssue]


@functools.cache
def code_of(cls: type) -> str:
    """A digest of the source of a class and of all that its module imports from its own package or from deeplimits."""
    module = cls.__module__
    if module_path(module) is None:  # written in a notebook or a script: its own text must do
        try:
            return hashlib.sha256(inspect.getsource(cls).encode()).hexdigest()
        except (OSError, TypeError):
            return f"no source of {cls.__qualname__}"
    return _digest_of_modules((module, *ALWAYS), module.partition(".")[0])


def source_digest(module: str) -> str:
    """A digest of the source of a module and of all that it imports from deeplimits."""
    return _digest_of_modules((module,), "deeplimits")


def _digest_of_modules(starts: Iterable[str], package: str) -> str:
    found = hashlib.sha256()
    for name in sorted(frozenset().union(*(_closure(start, package) for start in starts))):
        found.update(name.encode())
        found.update(_source(name))
    return found.hexdigest()


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
    """The modules that a module names in its import statements; names imported from a package may be modules too.

    A door imports nothing by itself: what is imported through it comes from the files behind it.
    """
    named = set()
    for node in ast.walk(ast.parse(_source(module))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                named |= _behind(alias.name)
        elif isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
            offered = {} if node.module == module else offers(node.module)
            if not offered:
                named.add(node.module)
            for alias in node.names:
                named |= _behind(offered.get(alias.name, f"{node.module}.{alias.name}"))
    return frozenset(named)


def _behind(module: str) -> frozenset[str]:
    """The module itself, or everything behind it where it is a door."""
    offered = offers(module)
    return frozenset().union(*(_behind(one) for one in offered.values())) if offered else frozenset({module})


@functools.cache
def offers(module: str) -> dict[str, str]:
    """What a door offers, and the module that each of its names comes from; nothing where a module is not a door."""
    path = module_path(module)
    if path is None or path.name != "__init__.py":
        return {}
    found = {}
    for block in ast.parse(_source(module)).body:
        if isinstance(block, ast.With) and ast.unparse(block.items[0].context_expr) == "door(__name__)":
            for node in block.body:
                if isinstance(node, ast.ImportFrom) and node.module is not None:
                    inner = f"{module}." if node.module == module else ""
                    found |= {a.asname or a.name: f"{inner}{a.name}" if inner else node.module for a in node.names}
    return found


def _source(module: str) -> bytes:
    path = module_path(module)
    return path.read_bytes() if path is not None else b""


@functools.cache
def module_path(module: str) -> Path | None:
    """The source file of a module, found without importing it or the packages it lies in."""
    top, *rest = module.split(".")
    try:
        spec = importlib.util.find_spec(top)
    except ValueError:  # __main__ of a notebook or a script has none
        return None
    if spec is None:
        return None
    if not rest:
        return Path(spec.origin) if spec.origin else None
    for root in spec.submodule_search_locations or ():
        place = Path(root, *rest)
        for path in (place.with_suffix(".py"), place / "__init__.py"):
            if path.is_file():
                return path
    return None
