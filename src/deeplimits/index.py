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
from dataclasses import asdict, dataclass
from importlib import resources
from typing import Any

from deeplimits.errors import UnknownName
from deeplimits.parameters import KINDS, Parameter, parameters_of
from deeplimits.statement import Statement


@dataclass(frozen=True)
class Record(Statement):
    """What is known of a limit or function without importing it."""

    target: str
    """Full path `package.module:Name`."""
    parameters: dict[str, Parameter]
    signature: str = ""

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
        doc = Statement.of(found).doc
        if isinstance(found, type):
            return cls(doc, target, parameters_of(found))
        # Names of arguments and defaults; types and shapes are in the docstring's words.
        arguments = [one.replace(annotation=one.empty) for one in inspect.signature(found).parameters.values()]
        return cls(doc, target, {}, f"{name}{inspect.Signature(arguments)}")

    def to_json(self) -> dict[str, Any]:
        parameters = {
            name: {"kind": parameter.kind, **{key: _finite(value) for key, value in asdict(parameter).items()}}
            for name, parameter in self.parameters.items()
        }
        return {"doc": self.doc, "target": self.target, "parameters": parameters, "signature": self.signature}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> "Record":
        parameters = {name: _parameter(dict(spec)) for name, spec in document["parameters"].items()}
        return cls(document["doc"], document["target"], parameters, document["signature"])


def _finite(value: Any) -> Any:
    return "inf" if isinstance(value, float) and math.isinf(value) else value


def _parameter(spec: dict[str, Any]) -> Parameter:
    kind: Any = KINDS[spec.pop("kind")]
    plain: dict[str, Any] = {key: math.inf if value == "inf" else value for key, value in spec.items()}
    return kind(**{key: tuple(value) if isinstance(value, list) else value for key, value in plain.items()})


@functools.cache
def records() -> dict[str, Record]:
    """Every record of the index, by target."""
    text = resources.files("deeplimits").joinpath("index.json").read_text(encoding="utf-8")
    return {record["target"]: Record.from_json(record) for record in json.loads(text)}


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
