"""Results for other programs: attributes and variables for xarray, BibTeX."""

from collections.abc import Mapping
from typing import Any

from deeplimits import references
from deeplimits.catalogue import catalogue
from deeplimits.limit import Limit, values_of
from deeplimits.predictions import Kind
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


def cite(limit: Limit) -> str:
    return references.bibtex(Statement.of(type(limit)).references)
