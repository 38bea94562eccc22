"""What the command line diagnoses: a function of the user's that makes the model, its loss and its data."""

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any, NamedTuple

from deeplimits.errors import ParameterError


class Given(NamedTuple):
    """What the user's function returned."""

    model: Any
    loss: Any
    data: Any
    optimizer: Any = None


def loaded(place: str) -> Given:
    """What `file.py:name` or `package.module:name`, called, returns.

    >>> loaded("nothing")
    Traceback (most recent call last):
    deeplimits.errors.ParameterError: 'nothing' is not allowed; give FILE.py:NAME or module:NAME, as my_model.py:make
    """
    where, colon, name = place.rpartition(":")
    if not colon or not where or not name:
        raise ParameterError(f"{place!r} is not allowed; give FILE.py:NAME or module:NAME, as my_model.py:make")
    make = getattr(_module(where), name, None)
    if not callable(make):
        raise ParameterError(f"{where} has no function {name!r}")
    try:
        found = make()
    except Exception as error:
        raise ParameterError(f"{place} failed: {type(error).__name__}: {error}") from error
    if not isinstance(found, tuple) or len(found) not in (3, 4):
        raise ParameterError(
            f"{place} returned a {type(found).__name__}; it must return (model, loss, data) or (model, loss, data, "
            "optimizer)"
        )
    return Given(*found)


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
