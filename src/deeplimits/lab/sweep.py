"""`compare` along a parameter: one comparison for each of its values, and one figure over them."""

import contextlib
import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from deeplimits.catalogue import catalogue
from deeplimits.errors import ParameterError
from deeplimits.lab import export, sweep_pictures, tables
from deeplimits.lab.budget import duration
from deeplimits.lab.results import Drawn
from deeplimits.limit import Limit, values_of
from deeplimits.parameters import parameters_of
from deeplimits.predictions import Curve, Picture, Probability, Value
from deeplimits.predictions.base import AGREES, DISAGREES, UNDECIDED
from deeplimits.render import notebook, text, with_matplotlib
from deeplimits.statement import Statement

if TYPE_CHECKING:
    from deeplimits.lab.comparison import Comparison
    from deeplimits.lab.predict import Prediction


MOST_ROWS = 60
"""Rows of a table that is printed."""


class Missing(NamedTuple):
    """A combination of values without a comparison, and why."""

    values: dict[str, Any]
    sentence: str
    failed: bool = False
    """Whether it was tried; what the theorem does not cover is not."""


@dataclass(frozen=True, repr=False)
class Sweep(Sequence, Drawn):
    """Comparisons of one limit at several values of a parameter, or of a few."""

    comparisons: tuple["Comparison", ...]
    varying: dict[str, list[Any]]
    missing: tuple[Missing, ...] = ()
    """Combinations that the theorem does not cover, or whose simulations failed."""

    def __getitem__(self, index: Any) -> Any:
        return self.comparisons[index]

    def __len__(self) -> int:
        return len(self.comparisons)

    @property
    def outcome(self) -> str:
        """`disagrees` if any comparison does, else `undecided` if any is, else `agrees`."""
        found = {comparison.outcome for comparison in self.comparisons}
        return next(one for one in (DISAGREES, UNDECIDED, AGREES) if one in found)

    @property
    def agrees(self) -> bool:
        return self.outcome == AGREES

    def _table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        rows = []
        for comparison in self.comparisons:
            values = values_of(comparison.limit)
            rows.append((*(text.brief(values[name]) for name in self.varying), comparison.outcome, comparison.verdict))
        if len(rows) > MOST_ROWS:  # what does not agree is what one looks for
            place = len(self.varying)
            told = [row for row in rows if row[place] != AGREES][:MOST_ROWS]
            rest = ("...",) * place
            rows = [*told, (*rest, f"{len(rows) - len(told)} more", "")]
        return (*self.varying, "outcome", "decided by"), rows

    def _heading(self) -> str:
        first = self.comparisons[0]
        values = {name: value for name, value in values_of(first.limit).items() if name not in self.varying}
        counts = [sum(one.outcome == outcome for one in self.comparisons) for outcome in (AGREES, DISAGREES, UNDECIDED)]
        said = ", ".join(f"{n} {w}" for n, w in zip(counts, ("agree", "disagree", "undecided"), strict=True) if n)
        said += f", {len(self.missing)} missing ({self.missing[0].sentence})" if self.missing else ""
        along = f"along {', '.join(self.varying)}: " if self.varying else ""
        return f"{text.heading(export.name(first.limit), values)}\n{along}{said}"

    def __repr__(self) -> str:
        return f"{self._heading()}\n{text.table(*self._table())}"

    def _repr_html_(self) -> str:
        return notebook.fragment(self._heading(), *self._table(), with_matplotlib.svg_or_nothing(self.plot))

    @property
    def drawn(self) -> dict[str, Any]:
        """The results that can be drawn over what varies: numbers, and curves where they make a plane."""
        first = self.comparisons[0].predictions.items()
        kinds = (Value, Probability) if len(self.varying) == 1 else (Value, Probability, Curve)
        return {result: kind for result, kind in first if isinstance(kind, kinds)}

    def pictures(self) -> dict[str, Picture]:
        """What is to be seen of each result over the one or two parameters that vary; see `lab.sweep_pictures`."""
        return sweep_pictures.pictures(self)

    def _caption(self) -> tuple[str, list[dict[str, Any]]]:
        limit = self.comparisons[0].limit
        settings = [one for one in export.settings(limit) if one["name"] not in self.varying]
        return Statement.of(type(limit)).title, settings

    def to_xarray(self):
        """An `xarray.Dataset` with a dimension for each parameter that varies; see `lab.tables.dataset`."""
        return tables.dataset(self)

    def to_file(self, path: str | Path) -> None:
        """Write a table (.csv, .parquet), an array (.nc, netCDF) or everything (.json)."""
        tables.write(self, path)

    def to_json(self) -> list[dict[str, Any]]:
        """Every comparison, ready for `json.dumps`."""
        return [comparison.to_json() for comparison in self.comparisons]

    def cite(self) -> str:
        """BibTeX of the results used."""
        return self.comparisons[0].cite()


@dataclass(frozen=True)
class PredictedAlong(Drawn):
    """Predictions of one limit at several values of one parameter, as one thing to draw."""

    predictions: tuple["Prediction", ...]
    name: str

    def pictures(self) -> dict[str, Picture]:
        """The theory's line of every number over the parameter."""
        return sweep_pictures.of_predictions(self.predictions, self.name)

    def _caption(self) -> tuple[str, list[dict[str, Any]]]:
        limit = self.predictions[0].limit
        settings = [one for one in export.settings(limit) if one["name"] != self.name]
        return Statement.of(type(limit)).title, settings


def listed(limit: Any, given: dict[str, Any]) -> dict[str, list[Any]]:
    """The parameters, of those given, that have a list of values, or a range as text, where the limit takes one."""
    found = {}
    cls = catalogue.entry(limit).load() if isinstance(limit, str) and given else limit
    cls = cls if isinstance(cls, type) else type(cls)
    if not (isinstance(cls, type) and issubclass(cls, Limit)):
        return found
    for name, parameter in parameters_of(cls).items():
        value: Any = given.get(name, 0.0)
        if parameter.kind in ("real", "integer") and isinstance(value, str) and re.search("[:,]", value):
            with contextlib.suppress(ValueError, OverflowError):
                value = parameter.read_many(value)
        if parameter.kind != "axis" and not isinstance(value, str) and np.ndim(value) == 1:
            found[name] = [
                one.item() if isinstance(one, np.generic) else one for one in np.asarray(value, object).tolist()
            ]
            if not found[name]:
                raise ParameterError(f"{cls.__name__}: {name} = [] has no value; it must be {parameter.allowed}")
    return found


def each(varying: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """Every combination of the values."""
    return [dict(zip(varying, values, strict=True)) for values in itertools.product(*varying.values())]


def announced(limits: Sequence[Limit], varying: dict[str, list[Any]], seconds: float) -> str:
    """What is about to be run, on a line: how many comparisons, and how long each simulates, once compiled."""
    limit = limits[0]
    said = [
        f"{len(limits)} comparisons along {', '.join(varying)}: about {duration(seconds * len(limits))} of simulation "
        "on one core, and compiling"
    ]
    for name in varying:
        ways = [axis for axis, one in parameters_of(type(limit)).items() if one.kind == "axis" and axis == f"{name}s"]
        said += [f"one curve over {name} is in a single comparison: --{axis} in place of --{name}" for axis in ways]
    return "; ".join(said)
