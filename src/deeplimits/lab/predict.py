"""`predict`: what the theory says."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from deeplimits.catalogue import catalogue
from deeplimits.errors import NotConverged, ParameterError, require
from deeplimits.lab import beforehand, export
from deeplimits.lab.compilation import use_cache
from deeplimits.lab.programs import Program
from deeplimits.lab.results import Drawn, _Results, chosen
from deeplimits.limit import Limit, replace, require_valid, speaks_of_draws, to_json, values_of
from deeplimits.numerics.checks import aloud
from deeplimits.parameters import parameters_of
from deeplimits.predictions import Kind, Picture
from deeplimits.render import notebook, text, with_matplotlib
from deeplimits.statement import Statement


@dataclass(frozen=True, repr=False)
class Prediction(_Results[Kind], Drawn):
    """The predictions of one limit, by name: `prediction["risk"].value`."""

    limit: Limit
    results: dict[str, Kind]

    def _table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        rows = [(name, kind.kind, kind.label, kind.summary()) for name, kind in self.results.items()]
        return ("result", "kind", "meaning", "prediction"), rows

    def __repr__(self) -> str:
        return f"{export.heading(self.limit)}\n{text.table(*self._table())}"

    def _repr_html_(self) -> str:
        return notebook.fragment(export.heading(self.limit), *self._table(), with_matplotlib.svg_or_nothing(self.plot))

    def pictures(self) -> dict[str, Picture]:
        """What is to be seen of each result, as data."""
        return {name: kind.picture() for name, kind in self.results.items()}

    def _caption(self) -> tuple[str, list[dict[str, Any]]]:
        return Statement.of(type(self.limit)).title, export.settings(self.limit)

    def to_xarray(self):
        """An `xarray.Dataset`: a variable for each result, coordinates for its axes, the parameters as attributes."""
        xarray = require("xarray", "data")
        found = export.labelled(self.results)
        return xarray.Dataset(found.variables, found.coordinates, export.attributes(self.limit))

    def to_json(self) -> dict[str, Any]:
        """Name, parameters and every result, ready for `json.dumps`."""
        return {**to_json(self.limit), "predictions": {name: kind.to_json() for name, kind in self.results.items()}}

    def to_file(self, path: str | Path) -> None:
        """Write `to_json()` to a file."""
        Path(path).write_text(json.dumps(self.to_json(), indent=1) + "\n", encoding="utf-8")

    def cite(self) -> str:
        """BibTeX of the results used."""
        return export.cite(self.limit)


def _stated(limit: Limit) -> list[tuple[str, Kind]]:
    # As a list, because JAX sorts dictionaries and the order in which a limit states its results is meant.
    return list(beforehand.stated(limit, "theory", limit.theory()).items())


def _stated_of_draw(limit: Limit, realised: Limit, seed: Any, sizes: dict[str, Any]) -> list:
    system = realised.draw(jax.random.key(seed), **sizes)
    whatever = beforehand.stated(limit, "theory", limit.theory())
    return [*whatever.items(), *beforehand.stated(limit, "stated", realised.stated(system)).items()]


_theory = Program(_stated, level=0)
_theory_of_draw = Program(_stated_of_draw, level=0)


def predict(limit: Limit | str, seed: int = 0, **parameters: Any) -> Prediction:
    """Compute what the theory says.

    The limit may be given by its name in the catalogue, with values of its parameters.

    A limit that speaks of the system that was drawn is shown one, drawn with `seed` at the largest of its usual sizes.
    Raises `OutsideValidity` where the theorem does not cover the parameters. A prediction is compiled once per class
    and choice of static parameters; other values of the continuous ones reuse it.

    >>> import deeplimits as dl
    >>> float(dl.predict(dl.limits.RidgelessDoubleDescent(gamma=2.0, noise=1.0, signal=1.0))["risk"].value)
    1.5
    >>> float(dl.predict("ridgeless-double-descent", gamma=2.0, noise=1.0)["risk"].value)
    1.5
    """
    limit, seed = limit_of(limit, parameters), check_count(seed, "seed", 0, MOST_SEED)
    require_valid(limit)
    use_cache()
    if speaks_of_draws(limit):
        size = max(limit.usual.sizes)
        require_valid(limit, size)
        sizes, realised = beforehand.finite(limit, limit.at_size(size))
        with aloud(type(limit).__name__):
            found = _theory_of_draw(limit, realised, np.asarray(seed), sizes)
        return checked(limit, dict(found))
    return theory(limit)


def theory(limit: Limit) -> Prediction:
    """What the theory says whatever the draw, with the parameters checked."""
    with aloud(type(limit).__name__):
        found = _theory(limit)
    return checked(limit, dict(found))


def checked(limit: Limit, results: dict[str, Kind]) -> Prediction:
    """A prediction without a NaN in it."""
    for name, kind in results.items():
        for part, (_, values) in kind.arrays().items():
            if np.any(np.isnan(np.asarray(values))):
                raise NotConverged(
                    f"{type(limit).__name__}: the prediction {name} {part} is not a number at {values_of(limit)}; "
                    "please report these parameters"
                )
    return Prediction(limit, results)


def stated_shapes(limit: Limit) -> dict[str, Kind]:
    """What the theory will say whatever the draw, without its numbers."""
    with aloud(type(limit).__name__):
        return dict(_theory.shapes(limit))


def check_results(limit: Limit, only: Sequence[str] | str | None) -> None:
    """Refuse results that the limit does not have, before anything is computed."""
    require_valid(limit)
    names = dict(stated_shapes(limit))
    if speaks_of_draws(limit):
        sizes, realised = beforehand.finite(limit, limit.at_size(max(limit.usual.sizes)))
        names = dict(_theory_of_draw.shapes(limit, realised, np.asarray(0), sizes))
    chosen(names, only)


def limit_of(limit: Any, parameters: Mapping[str, Any]) -> Limit:
    """The limit that is meant: itself, or the one of that name in the catalogue, with these parameters."""
    if isinstance(limit, str):
        entry = catalogue.entry(limit)
        if entry.role == "function":
            raise ParameterError(
                f"{entry.name} is a function and no limit; `deeplimits show {entry.name}` says how to call it"
            )
        limit = entry.load()(**parameters)
    elif parameters and isinstance(limit, Limit):
        limit = replace(limit, **parameters)
    check_limit(limit)
    return limit


def check_limit(limit: Any) -> None:
    """Refuse what is not a limit; the usual slip is to pass the class."""
    if not isinstance(limit, Limit):
        hint = ""
        if isinstance(limit, type):
            hint = f"; construct it first, as in {limit.__name__}()"
        raise ParameterError(f"limit = {limit!r} is not a limit{hint}")
    for name, parameter in parameters_of(type(limit)).items():
        value = getattr(limit, name)
        if parameter.kind == "real" and np.ndim(value) > 0:
            raise ParameterError(
                f"{type(limit).__name__}: {name} = {values_of(limit)[name]} is more than one number; give "
                f"{name}=[...] to `compare`, which takes them one after the other, or use jax.vmap"
            )


MOST_SEED = 2**63 - 1


def check_count(value: Any, name: str, least: int = 1, most: int | None = None) -> int:
    """A whole number of at least `least`, or a sentence about it. 1e3 is a whole number, too."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    whole = whole or (isinstance(value, float | np.floating) and float(value).is_integer())
    if not whole or value < least or (most is not None and value > most):
        allowed = f"of at least {least}" if most is None else f"between {least} and {most}"
        raise ParameterError(f"{name} = {value!r} is not allowed; it must be a whole number {allowed}")
    return int(value)
