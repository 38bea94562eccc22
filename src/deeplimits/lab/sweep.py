"""`compare` along a parameter: one comparison for each of its values, and one figure over them."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from dataclasses import replace as replace_field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from deeplimits.catalogue import catalogue
from deeplimits.errors import DeeplimitsError, ParameterError
from deeplimits.lab import export
from deeplimits.lab.budget import duration
from deeplimits.lab.predict import theory
from deeplimits.lab.results import Drawn
from deeplimits.limit import Limit, replace, require_valid, values_of
from deeplimits.parameters import Parameter, parameters_of
from deeplimits.predictions import Picture, Probability, Value
from deeplimits.predictions.base import AGREES, DISAGREES, UNDECIDED
from deeplimits.predictions.composing import with_errors
from deeplimits.predictions.picture import Axis, Line
from deeplimits.render import notebook, text, with_matplotlib
from deeplimits.statement import Statement

if TYPE_CHECKING:
    from deeplimits.lab.comparison import Comparison

DENSE = 60
"""At so many values the theory is drawn."""


class Missing(NamedTuple):
    """A combination of values without a comparison, and why."""

    values: dict[str, Any]
    sentence: str


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
        return (*self.varying, "outcome", "decided by"), rows

    def _heading(self) -> str:
        first = self.comparisons[0]
        values = {name: value for name, value in values_of(first.limit).items() if name not in self.varying}
        counts = [sum(one.outcome == outcome for one in self.comparisons) for outcome in (AGREES, DISAGREES, UNDECIDED)]
        said = ", ".join(f"{n} {w}" for n, w in zip(counts, ("agree", "disagree", "undecided"), strict=True) if n)
        said += f", {len(self.missing)} missing ({self.missing[0].sentence})" if self.missing else ""
        return f"{text.heading(export.name(first.limit), values)}\nalong {', '.join(self.varying)}: {said}"

    def __repr__(self) -> str:
        return f"{self._heading()}\n{text.table(*self._table())}"

    def _repr_html_(self) -> str:
        return notebook.fragment(self._heading(), *self._table(), with_matplotlib.svg_or_nothing(self.plot))

    @property
    def drawn(self) -> dict[str, Any]:
        """The results that are numbers, which can be drawn over the parameter."""
        first = self.comparisons[0].predictions.items()
        return {result: kind for result, kind in first if isinstance(kind, Value | Probability)}

    def pictures(self) -> dict[str, Picture]:
        """Every number among the results over the parameter: theory as a line, simulations at the largest size."""
        if len(self.varying) != 1:
            raise ParameterError(
                f"a figure has one axis, and {' and '.join(self.varying)} vary; give one of them a single value"
            )
        (name,) = self.varying
        first = self.comparisons[0].limit
        parameter = parameters_of(type(first))[name]
        places = [values_of(one.limit)[name] for one in self.comparisons]
        found = self.drawn
        if not found:
            raise ParameterError(
                f"no result of {type(first).__name__} is a number, so that nothing can be drawn over {name}; "
                "compare one value at a time"
            )
        dense = dict(_along(first, parameter, name, places))
        pictures = {}
        for result, kind in found.items():
            line = {place: float(one[result]) for place, one in dense.items() if result in one}
            for place, one in zip(places, self.comparisons, strict=True):
                line[place] = float(np.asarray(one.predictions[result].arrays()[""][1]))
            across = Axis(parameter.doc, parameter.symbol, log=bool(getattr(parameter, "log", False) and _wide(places)))
            sizes = {one.trials[result][-1].size for one in self.comparisons}
            label = f"n = {min(sizes)}" if len(sizes) == 1 else "the largest sizes"
            means = [one.trials[result][-1].mean for one in self.comparisons]
            marks = (
                Line(*zip(*sorted(line.items()), strict=True), label="theory"),
                with_errors(places, means, f"simulation ± 2 s.e., {label}", 0),
            )
            heights = list(line.values())
            upright = replace_field(kind.axis_of_values, log=bool(_wide(heights, 30.0)))
            pictures[result] = Picture(across, upright, marks)
        return pictures

    def _caption(self) -> tuple[str, list[dict[str, Any]]]:
        limit = self.comparisons[0].limit
        settings = [one for one in export.settings(limit) if one["name"] not in self.varying]
        return Statement.of(type(limit)).title, settings

    def to_json(self) -> list[dict[str, Any]]:
        """Every comparison, ready for `json.dumps`."""
        return [comparison.to_json() for comparison in self.comparisons]

    def cite(self) -> str:
        """BibTeX of the results used."""
        return self.comparisons[0].cite()


def _wide(places: Sequence[float], factor: float = 3.0) -> bool:
    return min(places) > 0 and max(places) > factor * min(places)


def _along(limit: Limit, parameter: Parameter, name: str, places: Sequence[Any]) -> Iterator[tuple[Any, dict]]:
    """What the theory says at many values between the first and the last, where it says anything."""
    if parameter.kind != "real":
        return
    space = np.geomspace if _wide(places) and getattr(parameter, "log", False) else np.linspace
    for place in space(min(places), max(places), DENSE).tolist():
        try:
            there = replace(limit, **{name: place})
            require_valid(there)
            said = theory(there)
        except DeeplimitsError:
            continue
        yield place, {result: kind.value for result, kind in said.items() if isinstance(kind, Value | Probability)}


def listed(limit: Any, given: dict[str, Any]) -> dict[str, list[Any]]:
    """The parameters, of those given, that have a list of values where the limit takes one."""
    found = {}
    cls = catalogue.entry(limit).load() if isinstance(limit, str) and given else limit
    cls = cls if isinstance(cls, type) else type(cls)
    if not (isinstance(cls, type) and issubclass(cls, Limit)):
        return found
    for name, parameter in parameters_of(cls).items():
        value: Any = given.get(name, 0.0)
        if parameter.kind != "axis" and not isinstance(value, str) and np.ndim(value) == 1:
            found[name] = [one.item() if isinstance(one, np.generic) else one for one in np.asarray(value, object).tolist()]
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
