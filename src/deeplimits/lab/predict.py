"""`predict`: what the theory says."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from deeplimits.errors import NotConverged, ParameterError, require
from deeplimits.lab import export
from deeplimits.lab.compilation import use_cache
from deeplimits.lab.programs import Program
from deeplimits.limit import Limit, require_valid, speaks_of_draws, to_json, values_of
from deeplimits.numerics.checks import aloud
from deeplimits.predictions import Kind, Picture
from deeplimits.render import notebook, text, with_matplotlib
from deeplimits.statement import Statement


@dataclass(frozen=True, repr=False)
class Prediction(Mapping[str, Kind]):
    """The predictions of one limit, by name: `prediction["risk"].value`."""

    limit: Limit
    results: dict[str, Kind]

    def __getitem__(self, name: str) -> Kind:
        try:
            return self.results[name]
        except KeyError:
            raise ParameterError(f"there is no result {name!r}; there are {', '.join(self.results)}") from None

    def __iter__(self):
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

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

    def plot(self, path: str | Path | None = None):
        """A figure with a panel for each result; written to `path` where one is given."""
        title = Statement.of(type(self.limit)).title
        return with_matplotlib.figure(title, export.settings(self.limit), self.pictures(), path)

    def to_xarray(self):
        """An `xarray.Dataset`, a variable for each result, the parameters as attributes."""
        xarray = require("xarray", "data")
        return xarray.Dataset(export.variables(self.results), attrs=export.attributes(self.limit))

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
    return list(limit.theory().items())


def _stated_of_draw(limit: Limit, realised: Limit, seed: Any, sizes: dict[str, Any]) -> list:
    system = realised.draw(jax.random.key(seed), **sizes)
    return [*limit.theory().items(), *realised.stated(system).items()]


_theory = Program(_stated, level=0)
_theory_of_draw = Program(_stated_of_draw, level=0)


def predict(limit: Limit, seed: int = 0) -> Prediction:
    """Compute what the theory says.

    A limit that speaks of the system that was drawn is shown one, drawn with `seed` at the largest of its usual sizes.
    Raises `OutsideValidity` where the theorem does not cover the parameters. A prediction is compiled once per class
    and choice of static parameters; other values of the continuous ones reuse it.

    >>> import deeplimits as dl
    >>> float(dl.predict(dl.limits.RidgelessDoubleDescent(gamma=2.0, noise=1.0, signal=1.0))["risk"].value)
    1.5
    """
    check_limit(limit)
    require_valid(limit)
    use_cache()
    if speaks_of_draws(limit):
        size = max(limit.usual.sizes)
        require_valid(limit, size)
        sizes, realised = limit.at_size(size)
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


def check_limit(limit: Any) -> None:
    """Refuse what is not a limit; the usual slip is to pass the class."""
    if not isinstance(limit, Limit):
        hint = ""
        if isinstance(limit, type):
            hint = f"; construct it first, as in {limit.__name__}()"
        elif isinstance(limit, str):
            hint = f"; for the limit of that name write dl.catalogue[{limit!r}]()"
        raise ParameterError(f"limit = {limit!r} is not a limit{hint}")
