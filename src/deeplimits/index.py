"""The index: what every name of the catalogue states and takes, as plain data that needs no JAX to be read.

`python -m deeplimits.indexing` imports everything once and writes `index.json`. `deeplimits list`, `show` and every
`--help` answer from that file; a test sees to it that it is fresh. What is not in it, a limit of another package or of
a notebook, is read off its class when it is asked for.
"""

import functools
import importlib
import inspect
import json
import math
import pkgutil
from dataclasses import asdict, dataclass
from importlib import resources
from typing import Any

from deeplimits.errors import UnknownName
from deeplimits.parameters import KINDS, Parameter, parameters_of
from deeplimits.statement import Statement


@dataclass(frozen=True)
class Part:
    """A function of the theory that a limit is computed by."""

    name: str
    module: str
    title: str
    results: tuple[str, ...] = ()
    """The results it gives; none are named if it is behind all."""
    example: tuple[str, ...] = ()
    """Lines that run: its imports and its docstring's example; only for what a door offers."""

    @property
    def called(self) -> str:
        """`room.function`, as `Computed by` names it."""
        return f"{self.module.removeprefix('deeplimits.').removeprefix('theory.')}.{self.name}"


@dataclass(frozen=True)
class PictureOf:
    """A figure of the gallery, or a ready diagram: the command that makes it, and the limits that it shows."""

    command: str
    title: str
    limits: tuple[str, ...]


@dataclass(frozen=True)
class Record:
    """What is known of a limit or function without importing it."""

    statement: Statement
    target: str
    """Full path `package.module:Name`."""
    parameters: dict[str, Parameter]
    signature: str = ""
    parts: tuple[Part, ...] = ()

    def parts_of(self, result: str) -> tuple[Part, ...]:
        """The functions behind one of the limit's results; all of them where none is asked for."""
        return tuple(part for part in self.parts if not result or not part.results or result in part.results)

    @property
    def module(self) -> str:
        return self.target.partition(":")[0]

    @property
    def name(self) -> str:
        return self.target.partition(":")[2]

    @classmethod
    def of_target(cls, target: str) -> "Record":
        """The record of what stands at `package.module:Name`, imported."""
        module, _, name = target.partition(":")
        try:
            found = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise UnknownName(f"{target} cannot be imported: {error}") from None
        statement = Statement.of(found)
        if isinstance(found, type):
            parts = [part_of(*named) for named in statement.computed_by.items()]
            return cls(statement, target, parameters_of(found), parts=tuple(parts))
        # Names of arguments and defaults; types and shapes are in the docstring's words.
        arguments = [one.replace(annotation=one.empty) for one in inspect.signature(found).parameters.values()]
        return cls(statement, target, {}, f"{name}{inspect.Signature(arguments)}")

    def to_json(self) -> dict[str, Any]:
        parameters = {
            name: {"kind": parameter.kind, **{key: _finite(value) for key, value in asdict(parameter).items()}}
            for name, parameter in self.parameters.items()
        }
        return {"doc": self.statement.doc, "target": self.target, "parameters": parameters, "signature": self.signature,
                "parts": [asdict(part) for part in self.parts]}  # fmt: skip

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> "Record":
        parameters = {name: _parameter(dict(spec)) for name, spec in document["parameters"].items()}
        parts = tuple(map(_part, document["parts"]))
        return cls(Statement(document["doc"]), document["target"], parameters, document["signature"], parts)


def part_of(name: str, results: tuple[str, ...] = ()) -> Part:
    """What `room.function` means: what a door of the room offers, or else the one function of that name in its files.

    Where there are several, `room.file.function` or `room.inner_room.function` says which. `measure` is a room, too.
    """
    room, *file, function = name.split(".")
    top = importlib.import_module("deeplimits.measure" if room == "measure" else f"deeplimits.theory.{room}")
    below = [importlib.import_module(info.name) for info in pkgutil.walk_packages(top.__path__, f"{top.__name__}.")]
    meant = [module for module in (top, *below) if file in ([], [_file_of(module)])]
    found = [door for door in meant if hasattr(door, "__path__") and callable(getattr(door, function, None))]
    found = found or [home for home in meant if _defines(home, function)]
    if len(found) != 1:
        places = " and in ".join(module.__name__ for module in found) or "no file of its room"
        raise UnknownName(f"theory.{name} is in {places}; name a function that is in one")
    return Part(function, found[0].__name__, Statement.of(getattr(found[0], function)).title, results)


def _defines(module: Any, name: str) -> bool:
    found = vars(module).get(name)
    return callable(found) and found.__module__ == module.__name__


def _file_of(module: Any) -> str:
    return module.__name__.rpartition(".")[2]


def _finite(value: Any) -> Any:
    return "inf" if isinstance(value, float) and math.isinf(value) else value


def _parameter(spec: dict[str, Any]) -> Parameter:
    kind: Any = KINDS[spec.pop("kind")]
    plain: dict[str, Any] = {key: math.inf if value == "inf" else value for key, value in spec.items()}
    return kind(**{key: tuple(value) if isinstance(value, list) else value for key, value in plain.items()})


def _part(document: dict[str, Any]) -> Part:
    lists: dict[str, Any] = {key: tuple(value) for key, value in document.items() if isinstance(value, list)}
    return Part(**{**document, **lists})


@functools.cache
def _document() -> dict[str, Any]:
    return json.loads(resources.files("deeplimits").joinpath("index.json").read_text(encoding="utf-8"))


@functools.cache
def records() -> dict[str, Record]:
    """Every record of the index, by target."""
    return {record["target"]: Record.from_json(record) for record in _document()["names"]}


@functools.cache
def offered() -> dict[str, Part]:
    """What the doors of `theory` and `measure` offer, by `room.function`."""
    parts = map(_part, _document()["doors"])
    return {part.called: part for part in parts}


@functools.cache
def pictures() -> tuple[PictureOf, ...]:
    """What there is to look at ready-made."""
    return tuple(PictureOf(one["command"], one["title"], tuple(one["limits"])) for one in _document()["pictures"])


@functools.cache
def record(target: str) -> Record:
    """The record of a target: from the index, or else from the imported class."""
    found = records().get(target)
    return Record.of_target(target) if found is None else found


def class_name(name: str) -> str:
    """The class of the limit with this name in the catalogue.

    >>> class_name("ridgeless-double-descent")
    'RidgelessDoubleDescent'
    """
    return "".join(word.capitalize() for word in name.split("-"))


def limits() -> dict[str, str]:
    """Name -> target of every limit of the house. A limit is named like its file, and its class is named like it."""
    found = {}
    for target in records():
        if target.startswith("deeplimits.limits."):
            found[target.partition(":")[0].rpartition(".")[2].replace("_", "-")] = target
    return found
