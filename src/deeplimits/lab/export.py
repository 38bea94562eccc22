"""Results as plain data, for other programs and for `render`: documents, xarray, BibTeX, a heading."""

from collections.abc import Mapping, Sequence
from typing import Any

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


def variables(results: Mapping[str, Kind]) -> dict[str, Any]:
    """xarray variables of predictions; dimensions carry the result's name, so that grids of two results never mix."""
    found = {}
    for name, kind in results.items():
        for part, (dims, values) in kind.arrays().items():
            label = f"{name}_{part.replace(' ', '_')}" if part else name
            found[label] = (tuple(f"{name}_{dim.replace(' ', '_')}_index" for dim in dims), values)
    return found


def heading(limit: Limit) -> str:
    """Name and parameters in one line."""
    return text.heading(catalogue.name_of(type(limit)), values_of(limit))


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
        "references": {key: references.short(key) for key in statement.references},
        **found,
        "parameter_notes": {
            key: {"symbol": one.symbol, "doc": one.doc} for key, one in parameters_of(type(limit)).items()
        },
        "settings": settings(limit, realised),
        "pictures": {name: picture.to_json() for name, picture in pictures.items()},
    }


def cite(limit: Limit) -> str:
    return references.bibtex(Statement.of(type(limit)).references)
