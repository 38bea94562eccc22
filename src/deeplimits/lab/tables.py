"""What a sweep found as one table or one array, for other programs: CSV, Parquet, netCDF."""

import csv
import itertools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from deeplimits.errors import ParameterError, require
from deeplimits.lab import export
from deeplimits.limit import values_of
from deeplimits.predictions import Kind, Trial

if TYPE_CHECKING:
    from deeplimits.lab.sweep import Sweep

FORMATS = (".csv", ".nc", ".parquet", ".json")
COLUMNS = ("result", "kind", "outcome", "place", "size", "samples", "theory", "measured", "error")
"""What stands beside the parameters; `place` is where on its axis a curve is looked at."""


def check_format(path: str | Path) -> None:
    """Refuse, before the work, a file that could not be written after it."""
    ending = Path(path).suffix.lower()
    if ending not in FORMATS:
        raise ParameterError(f"export = {str(path)!r}: its ending must be one of {', '.join(FORMATS)}")
    if ending == ".nc":
        require("xarray", "data")
    if ending == ".parquet":
        require("pyarrow", "parquet")


def write(sweep: "Sweep", path: str | Path) -> None:
    """Write a sweep to a file in the format that its ending names."""
    check_format(path)
    ending = Path(path).suffix.lower()
    if ending == ".json":
        Path(path).write_text(json.dumps(sweep.to_json(), indent=1) + "\n", encoding="utf-8")
    elif ending == ".nc":
        # The form that SciPy writes, which every reader of netCDF knows.
        dataset(sweep).to_netcdf(path, engine="scipy")
    elif ending == ".parquet":
        pyarrow, parquet = require("pyarrow", "parquet"), require("pyarrow.parquet", "parquet")
        names, lines = columns(sweep), list(rows(sweep))
        found = {name: [line[place] for line in lines] for place, name in enumerate(names)}
        parquet.write_table(pyarrow.table(found), path)
    else:
        with Path(path).open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(columns(sweep))
            writer.writerows(["" if cell is None else cell for cell in line] for line in rows(sweep))


def columns(sweep: "Sweep") -> list[str]:
    """Names of the columns; a parameter called like one of the others is `param.NAME`."""
    return [*(f"param.{name}" if name in COLUMNS else name for name in sweep.varying), *COLUMNS]


def rows(sweep: "Sweep") -> Iterator[list[Any]]:
    """A row for each number that was measured: its combination, result, size, theory, mean and standard error.

    A combination that is missing has one row with the sentence that says why.
    """
    for comparison in sweep:
        values = values_of(comparison.limit)
        combination = [values[name] for name in sweep.varying]
        for name, trials in comparison.trials.items():
            finding = comparison.findings[name]
            for trial in trials:
                yield from (
                    [
                        *combination,
                        name,
                        finding.kind,
                        finding.outcome,
                        place,
                        trial.size,
                        len(trial.measured),
                        *numbers,
                    ]
                    for place, *numbers in _numbers(trial)
                )
    for one in sweep.missing:
        rest = [None] * (len(COLUMNS) - 3)
        yield [*(one.values[name] for name in sweep.varying), "", "", f"missing: {one.sentence}", *rest]


def _numbers(trial: Trial) -> Iterator[tuple[float | None, float | None, float, float]]:
    """Place, theory, mean and standard error of each number of a trial; nothing of what is no number or curve."""
    dims, stated = _stated(trial.stated)
    if len(dims) > 1 or trial.measured.ndim - 1 > 1:
        return
    mean = trial.mean
    value, error = np.atleast_1d(mean.value), np.atleast_1d(np.sqrt(mean.variance))
    fits = np.shape(stated) == np.shape(mean.value)
    stated = np.atleast_1d(stated)
    grid = trial.stated.arrays().get(dims[0], ((), None))[1] if dims and fits else None
    for place in range(len(value)):
        yield (
            None if grid is None or not fits else float(np.asarray(grid)[place]),
            float(stated[place]) if fits else None,
            float(value[place]),
            float(error[place]),
        )


def _stated(kind: Kind) -> tuple[tuple[str, ...], np.ndarray]:
    dims, values = kind.arrays()[""]
    return dims, np.asarray(values)


def dataset(sweep: "Sweep") -> Any:
    """An `xarray.Dataset`: a dimension for each parameter that varies, NaN where a combination is missing.

    `risk` is the theory, `risk_measured` and `risk_error` are means and standard errors by size.
    """
    xarray = require("xarray", "data")
    names = list(sweep.varying)
    lengths = [len(values) for values in sweep.varying.values()]
    grid = {
        tuple(map(_plain, values)): place
        for values, place in zip(itertools.product(*sweep.varying.values()), np.ndindex(*lengths), strict=True)
    }
    at = [grid[tuple(_plain(values_of(one.limit)[name]) for name in names)] for one in sweep]
    sizes = sorted({size for one in sweep for size in one.sizes})
    labelled = [export.labelled(one.predictions) for one in sweep]
    variables: dict[str, Any] = {}
    coordinates: dict[str, Any] = {
        f"param.{name}" if name in labelled[0].variables or name == "size" else name: values
        for name, values in sweep.varying.items()
    }
    dims = list(coordinates)
    for name in labelled[0].dims:
        arrays = [np.asarray(one.variables[name][1], dtype=float) for one in labelled]
        if len({array.shape for array in arrays}) > 1:
            continue  # one of its own length at every combination does not stack
        own = labelled[0].dims[name]
        for dim in own:
            places = [one.coordinates[dim][1] for one in labelled if dim in one.coordinates]
            if len(places) == len(labelled) and all(np.array_equal(places[0], one) for one in places):
                coordinates[dim] = places[0]
        variables[name] = ((*dims, *own), _filled(arrays, at, lengths))
        trials = [one.trials.get(name, []) for one in sweep]
        shapes = {trial.measured.shape[1:] for group in trials for trial in group}
        if shapes != {arrays[0].shape}:
            continue
        for ending, pick in (("measured", 0), ("error", 1)):
            blocks = [_by_size(group, sizes, arrays[0].shape, pick) for group in trials]
            variables[f"{name}_{ending}"] = ((*dims, "size", *own), _filled(blocks, at, lengths))
    first = sweep[0].limit
    fixed = {name: value for name, value in export.attributes(first).items() if name not in names}
    plain = {name: str(value) if isinstance(value, list | bool) else value for name, value in fixed.items()}
    return xarray.Dataset(variables, {**coordinates, "size": sizes}, plain)


def _by_size(trials: Sequence[Trial], sizes: Sequence[int], shape: tuple[int, ...], pick: int) -> np.ndarray:
    found = np.full((len(sizes), *shape), np.nan)
    for trial in trials:
        mean = trial.mean
        found[sizes.index(trial.size)] = (mean.value, np.sqrt(mean.variance))[pick]
    return found


def _filled(arrays: Sequence[np.ndarray], places: Sequence[tuple[int, ...]], lengths: Sequence[int]) -> np.ndarray:
    found = np.full((*lengths, *arrays[0].shape), np.nan)
    for place, array in zip(places, arrays, strict=True):
        found[place] = array
    return found


def _plain(value: Any) -> Any:
    """Numbers as the limit keeps them: 1 and 1.0 are one value."""
    return float(value) if isinstance(value, int | float) else value
