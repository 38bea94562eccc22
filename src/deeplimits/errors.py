"""The ways things can go wrong, each with a message that says what to do."""

import difflib
from collections.abc import Iterable


class DeeplimitsError(Exception):
    """Base of every error that deeplimits raises on purpose."""


class ParameterError(DeeplimitsError, ValueError):
    """A parameter has a value outside its allowed range, or of the wrong kind."""


class MissingArgument(ParameterError):
    """What was called cannot do without an argument that was not given."""


class OutsideValidity(DeeplimitsError, ValueError):
    """Every parameter is allowed by itself, but the theorem does not speak about their combination."""


class OutsideValidityWarning(UserWarning):
    """A prediction is given although a condition of its theorem looks violated by the data."""


class NotConverged(DeeplimitsError, RuntimeError):
    """An iterative solver stopped with a residual above its tolerance."""


class TooCostly(DeeplimitsError, RuntimeError):
    """What was asked for without saying how much of it would take far longer than anyone expects."""


class UnknownName(DeeplimitsError, LookupError):
    """No limit, result or function of that name is in the catalogue."""


class MissingExtra(DeeplimitsError, ImportError):
    """An optional dependency is not installed."""


def did_you_mean(name: str, names: Iterable[str], count: int = 3, least: float = 0.5) -> str:
    """The end of a sentence about an unknown name: the nearest of those there are, nothing where none is near.

    >>> did_you_mean("gama", ["gamma", "noise"])
    '; did you mean gamma?'
    """
    near = difflib.get_close_matches(name, list(names), n=count, cutoff=least)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def require(module: str, extra: str):
    """Import an optional dependency, or say which extra brings it."""
    import importlib

    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.partition(".")[0] != module.partition(".")[0]:
            raise
        raise MissingExtra(
            f"this needs {module.partition('.')[0]}, which is not installed: pip install 'deeplimits[{extra}]'"
        ) from None
