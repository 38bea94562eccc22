"""What the command line diagnoses: a function of the user's that makes the model, its loss and its data."""

import importlib
import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from deeplimits.errors import ParameterError

FLAGS = {"budget": "--budget", "only": "--only", "seed": "--seed", "dry_run": "--dry-run", "memory": "--most-memory"}
"""Arguments of `diagnose` that the command line has flags for."""


class Given(NamedTuple):
    """What the user's function returned."""

    model: Any
    loss: Any
    data: Any
    optimizer: Any = None
    others: Mapping[str, Any] = MappingProxyType({})
    """Other arguments of `diagnose`, as the parameters of a JAX function."""


def loaded(place: str, data: str | None = None) -> Given:
    """What `file.py:name` or `package.module:name`, called, returns; its data from elsewhere where `data` says so.

    `data` is a file of two NumPy arrays (`numpy.savez`), inputs and targets, or a place like the first: a function that
    makes the data, or the data.

    >>> loaded("nothing")
    Traceback (most recent call last):
    deeplimits.errors.ParameterError: 'nothing' is not allowed; give FILE.py:NAME or module:NAME, as my_model.py:make
    """
    make = _named(place)
    if not callable(make):
        kind = type(make).__name__
        raise ParameterError(f"{place} is of type {kind}; give a function that returns (model, loss, data)")
    found = _called(make, place)
    if isinstance(found, dict):
        return _of_names(found, place, data)
    needed = (2, 3, 4) if data is not None else (3, 4)
    if not isinstance(found, tuple) or len(found) not in needed:
        raise ParameterError(
            f"{place} returned a {type(found).__name__}; it must return (model, loss, data) or (model, loss, data, "
            "optimizer), or (model, loss) where --data is given; or a dictionary of these names and others that "
            "deeplimits.diagnose takes, as parameters"
        )
    return Given(*found) if data is None else Given(found[0], found[1], _data(data), *found[3:])


def _of_names(found: dict[Any, Any], place: str, data: str | None) -> Given:
    """Arguments of `diagnose` by their names."""
    given = found if data is None else {**found, "data": _data(data)}
    for name in Given._fields[:3]:
        if name not in given:
            raise ParameterError(f"{place} returned a dictionary without {name!r}; it must have model, loss and data")
    for name in given:
        if name in FLAGS:
            raise ParameterError(f"{place} returned a {name!r}; give it on the command line, as {FLAGS[name]}")
    others = {name: value for name, value in given.items() if name not in Given._fields[:4]}
    return Given(given["model"], given["loss"], given["data"], given.get("optimizer"), others)


def _data(place: str) -> Any:
    """Inputs and targets from a file of arrays, or what a name in a Python file is, or makes."""
    if not place.endswith(".npz"):
        found = _named(place)
        return _called(found, place) if callable(found) else found
    try:
        with np.load(place, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
    except FileNotFoundError as error:
        raise ParameterError(f"there is no file {place}") from error
    except Exception as error:
        raise ParameterError(f"{place} cannot be read: {type(error).__name__}: {error}") from error
    for names in (("x", "y"), ("inputs", "targets")):
        if all(name in arrays for name in names):
            return tuple(arrays[name] for name in names)
    if len(arrays) != 2:
        raise ParameterError(
            f"{place} holds {', '.join(arrays) or 'nothing'}; give two arrays, inputs and targets, best called x and y"
        )
    return tuple(arrays.values())


def _named(place: str) -> Any:
    """What a name in a file or module is."""
    where, colon, name = place.rpartition(":")
    if not colon or not where or not name:
        raise ParameterError(f"{place!r} is not allowed; give FILE.py:NAME or module:NAME, as my_model.py:make")
    module = _module(where)
    if not hasattr(module, name):
        raise ParameterError(f"{where} has no function {name!r}")
    return getattr(module, name)


def _called(make: Any, place: str) -> Any:
    try:
        return make()
    except Exception as error:
        raise ParameterError(f"{place} failed: {type(error).__name__}: {error}") from error


def _module(where: str) -> Any:
    try:
        if not where.endswith(".py"):
            sys.path.insert(0, "")
            return importlib.import_module(where)
        path = Path(where)
        if not path.is_file():
            raise ParameterError(f"there is no file {where}")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        if spec is None or spec.loader is None:
            raise ParameterError(f"{where} cannot be imported")
        module = importlib.util.module_from_spec(spec)
        sys.path.insert(0, str(path.parent.resolve()))
        sys.modules.setdefault(path.stem, module)
        spec.loader.exec_module(module)
    except ParameterError:
        raise
    except Exception as error:
        raise ParameterError(f"{where} cannot be imported: {type(error).__name__}: {error}") from error
    return module
