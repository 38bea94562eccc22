"""Results as plain data, for other programs and for `render`: documents, xarray, BibTeX, a heading."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from deeplimits import references
from deeplimits.catalogue import catalogue
from deeplimits.limit import Limit, values_of
from deeplimits.parameters import parameters_of
from deeplimits.predictions import Kind, Picture
from deeplimits.render import text
from deeplimits.statement import Statement


def attributes(limit: Limit, **run: Any) -> dict[str, Any]:
    """The limit's name, its parameters and what is known of the run, flat as xarray wants it.

    A parameter with the name of another attribute is `param.NAME`, as on the command line.
    """
    own = {"limit": catalogue.name_of(type(limit)), **run}
    values = values_of(limit).items()
    return {**own, **{f"param.{name}" if name in own else name: value for name, value in values}}


@dataclass(frozen=True)
class Labelled:
    """Predictions as xarray wants them: every axis one named dimension, with its values as coordinate."""

    variables: dict[str, Any]
    coordinates: dict[str, Any]
    dims: dict[str, tuple[str, ...]]
    """The dimensions of each result itself."""

    def of(self, name: str, shape: tuple[int, ...]) -> tuple[str, ...]:
        """The dimensions of what is measured of a result: those of the result where it has this shape, or new ones."""
        if name in self.dims and np.shape(self.variables[name][1]) == shape:
            return self.dims[name]
        return tuple(f"{name}_{axis}" for axis in range(len(shape)))


def labelled(results: Mapping[str, Kind]) -> Labelled:
    """Results with the same axis share its dimension; where their grids differ, each has its own, by its name."""
    found = Labelled({}, {}, {})
    for result, kind in results.items():
        arrays = {part: (dims, np.asarray(values)) for part, (dims, values) in kind.arrays().items()}
        names: dict[str, str] = {}
        for dim in dict.fromkeys(dim for dims, _ in arrays.values() for dim in dims):
            grid = arrays[dim][1] if dim in arrays and arrays[dim][0] == (dim,) else None
            names[dim] = _dimension(found, result, dim.replace(" ", "_"), grid)
        for part, (dims, values) in arrays.items():
            if part and dims == (part,):
                continue  # the coordinate
            label = f"{result}_{part.replace(' ', '_')}" if part else result
            found.variables[label] = (tuple(names[dim] for dim in dims), values)
        found.dims[result] = tuple(names[dim] for dim in arrays[""][0])
    return found


def _dimension(found: Labelled, result: str, name: str, grid: np.ndarray | None) -> str:
    """The name of an axis: its own where no other result uses that for another grid."""
    own = f"{result}_{name}"
    if grid is None:
        return own
    if name == "size" or name in found.variables or name in found.dims:
        name = own
    if name in found.coordinates and not np.array_equal(found.coordinates[name][1], grid):
        name = own
    found.coordinates[name] = ((name,), grid)
    return name


def name(limit: Limit) -> str:
    """The catalogue's name of a limit."""
    return catalogue.name_of(type(limit))


def heading(limit: Limit) -> str:
    """Name and parameters in one line."""
    return text.heading(name(limit), values_of(limit))


def settings(limit: Limit, realised: Sequence[Limit] = ()) -> list[dict[str, Any]]:
    """The parameters that a figure is made at, without axes and without the counts that the size decides."""
    values, others = values_of(limit), [values_of(one) for one in realised]
    return [
        {"name": name, "symbol": parameter.symbol, "value": values[name]}
        for name, parameter in parameters_of(type(limit)).items()
        if parameter.kind in ("real", "choice")
        or (parameter.kind == "integer" and all(one[name] == values[name] for one in others))
    ]


def document(
    limit: Limit, realised: Sequence[Limit], pictures: Mapping[str, Picture], found: Mapping[str, Any]
) -> dict[str, Any]:
    """Everything a page says about a comparison, as plain data; `found` is the comparison's own `to_json()`."""
    statement = Statement.of(type(limit))
    return {
        "title": statement.title,
        "statement": statement.sections,
        "references": references.lines(statement.references, type(limit).__module__),
        **found,
        "parameter_notes": {
            key: {"symbol": one.symbol, "doc": one.doc} for key, one in parameters_of(type(limit)).items()
        },
        "settings": settings(limit, realised),
        "pictures": {name: picture.to_json() for name, picture in pictures.items()},
    }


def cite(limit: Limit) -> text.Words:
    return text.Words(references.bibtex(Statement.of(type(limit)).references, type(limit).__module__))
