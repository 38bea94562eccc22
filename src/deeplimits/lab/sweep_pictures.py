"""A sweep as pictures: numbers over one parameter, or a plane of two with the theory's level lines over it.

Over two parameters the simulation is shown by colour and the theory by lines, unless one of the two takes a few values
only: then there is a line and a row of points for each of those. A curve makes a plane with one parameter by itself,
and is looked at where it ends with two.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace as replace_field
from typing import TYPE_CHECKING, Any

import numpy as np

from deeplimits.errors import DeeplimitsError, ParameterError
from deeplimits.lab.predict import theory
from deeplimits.limit import Limit, replace, require_valid, values_of
from deeplimits.parameters import Parameter, parameters_of
from deeplimits.predictions import Curve, Picture, Probability, Trial, Value
from deeplimits.predictions.composing import with_errors
from deeplimits.predictions.contours import level_lines, round_levels
from deeplimits.predictions.picture import SIMULATION, Axis, Field, Line
from deeplimits.statistics import Mean

if TYPE_CHECKING:
    from deeplimits.lab.sweep import Sweep

DENSE = 60
"""At so many values the theory is drawn."""
HALVINGS, POLE = 8, 10.0
"""A result has a pole where so many halvings of the distance to its farthest place bring it so many times as far."""
FEW = 4
"""A parameter with at most so many values has a line for each."""


def pictures(sweep: "Sweep") -> dict[str, Picture]:
    """The pictures of a sweep, by result."""
    limit = sweep.comparisons[0].limit
    count = len(sweep.varying)
    if count == 0:
        return sweep.comparisons[0].pictures()
    if count > 2:
        raise ParameterError(
            f"a figure has two axes, and {', '.join(sweep.varying)} vary; give all but two of them a single value"
        )
    found = _over_one(sweep) if count == 1 else _over_two(sweep)
    if not found:
        raise ParameterError(
            f"no result of {type(limit).__name__} is a number or a curve that can be drawn over "
            f"{' and '.join(sweep.varying)}; compare one value at a time"
        )
    return found


def _over_one(sweep: "Sweep") -> dict[str, Picture]:
    """Every number over the parameter, and every curve as a plane, where values and points are enough for one."""
    (name,) = sweep.varying
    first = sweep.comparisons[0].limit
    parameter = parameters_of(type(first))[name]
    if parameter.kind == "choice":
        raise ParameterError(f"{name} takes words, which have no place on an axis; compare one of them at a time")
    places = [values_of(one.limit)[name] for one in sweep.comparisons]
    found = {}
    numbers = sweep.drawn
    dense, poles = _along(first, parameter, name, places) if numbers else ({}, set())
    for result, kind in numbers.items():
        line = {place: one[result] for place, one in dense.items() if result in one}
        compared = [float(np.asarray(one.predictions[result].arrays()[""][1])) for one in sweep.comparisons]
        line |= zip(places, compared, strict=True)
        means = [one.trials[result][-1].mean for one in sweep.comparisons]
        marks = (
            Line(*zip(*sorted(line.items()), strict=True), label="theory"),
            with_errors(places, means, f"simulation ± 2 s.e., {_sizes(sweep, result)}", 0),
        )
        upright = _upright(kind.axis_of_values, list(line.values()), compared, result in poles)
        found[result] = Picture(_axis(parameter, places), upright, marks)
    if len(places) > FEW or not numbers:
        curves = sweep.comparisons[0].predictions.items()
        found |= {
            result: picture
            for result, kind in curves
            if isinstance(kind, Curve) and (picture := _curves(sweep, result, parameter, places)) is not None
        }
    return found


def _curves(sweep: "Sweep", result: str, parameter: Parameter, places: Sequence[float]) -> Picture | None:
    """A curve at several values of a parameter as a plane; as itself where the parameter leaves it alone.

    None where the curves have different places.
    """
    kinds: list[Any] = [one.predictions[result] for one in sweep.comparisons]
    grids = [np.asarray(kind.x) for kind in kinds]
    if any(grid.shape != grids[0].shape or not np.array_equal(grid, grids[0]) for grid in grids) or len(grids[0]) < FEW:
        return None
    if len(places) < 2:
        return None
    order = np.argsort(places)
    stated = np.stack([np.asarray(kinds[i].y) for i in order], axis=1)
    if np.allclose(stated, stated[:, :1], rtol=1e-12, atol=0):
        return kinds[0].picture(sweep.comparisons[0].trials[result])
    measured = np.stack([sweep.comparisons[i].trials[result][-1].mean.value for i in order], axis=1)
    drawn = kinds[0].picture()
    log = drawn.x.log or (grids[0].min() > 0 and _wide(grids[0].tolist(), 30.0))
    upright = replace_field(drawn.x, low=None, high=None, ticks=None, log=bool(log))
    label = f"{kinds[0].label}: simulation, {_sizes(sweep, result)}"
    across = _axis(parameter, places)
    colour = kinds[0].log_y
    return _plane(across, upright, np.asarray(places)[order], grids[0], stated, measured, label, colour)


def _over_two(sweep: "Sweep") -> dict[str, Picture]:
    """Every number, and every curve where it ends, over two parameters."""
    parameters = parameters_of(type(sweep.comparisons[0].limit))
    (x_name, x_values), (y_name, y_values) = sweep.varying.items()
    if parameters[x_name].kind == "choice" or (len(x_values) <= FEW < len(y_values)):
        (x_name, x_values), (y_name, y_values) = (y_name, y_values), (x_name, x_values)
    if parameters[x_name].kind == "choice":
        raise ParameterError(f"{x_name} and {y_name} take words, which have no place on an axis; fix one of them")
    at = {(_number(values_of(one.limit)[x_name]), _number(values_of(one.limit)[y_name])): one for one in sweep}
    found = {}
    for result in sweep.drawn:
        numbers = {place: _end(one.trials[result][-1]) for place, one in at.items()}
        kind = sweep.comparisons[0].predictions[result]
        if parameters[y_name].kind == "choice" or len(y_values) <= FEW:
            found[result] = _families(sweep, result, kind, parameters, (x_name, x_values), (y_name, y_values), numbers)
            continue
        x, y = sorted({_number(v) for v in x_values}), sorted({_number(v) for v in y_values})
        nothing = (np.nan, Mean(np.array(np.nan), np.array(np.nan), np.array(np.nan), 1.0))
        cells = [[numbers.get((one, other), nothing) for one in x] for other in y]
        stated = np.array([[cell[0] for cell in row] for row in cells])
        measured = np.array([[float(cell[1].value) for cell in row] for row in cells])
        label = f"{kind.label}{_where(kind)}: simulation, {_sizes(sweep, result)}"
        axes = _axis(parameters[x_name], x), _axis(parameters[y_name], y)
        seen = measured[np.isfinite(measured)].tolist()
        log = kind.log_y if isinstance(kind, Curve) else _wide(seen, 30.0)
        found[result] = _plane(*axes, np.array(x), np.array(y), stated, measured, label, bool(log))
    return found


def _families(
    sweep: "Sweep",
    result: str,
    kind: Any,
    parameters: Mapping[str, Parameter],
    across: tuple[str, list[Any]],
    series: tuple[str, list[Any]],
    numbers: Mapping[tuple[Any, Any], tuple[float, Mean]],
) -> Picture:
    """A line and a row of points for each of a few values."""
    (x_name, x_values), (y_name, y_values) = across, series
    marks: list[Any] = []
    stated_all: list[float] = []
    for place, value in enumerate(y_values):
        x = sorted({_number(one) for one in x_values if (_number(one), _number(value)) in numbers})
        if not x:
            continue
        own = [numbers[one, _number(value)] for one in x]
        stated = [one[0] for one in own]
        stated_all += stated
        symbol = parameters[y_name].symbol
        said = value if isinstance(value, str) else f"{value:.4g}"
        marks.append(Line(x, stated, label=f"${symbol} = {said}$" if symbol else f"{y_name} = {said}", series=place))
        marks.append(with_errors(x, [one[1] for one in own], "", place))
    upright = replace_field(kind.axis_of_values, log=bool(_wide(stated_all, 30.0)))
    if isinstance(kind, Curve):
        upright = Axis(f"{kind.label}{_where(kind)}", kind.symbol, log=bool(_wide(stated_all, 30.0)))
    label = replace_field(marks[1], label=f"simulation ± 2 s.e., {_sizes(sweep, result)}")
    return Picture(
        _axis(parameters[x_name], [_number(one) for one in x_values]), upright, (marks[0], label, *marks[2:])
    )


def _plane(
    across: Axis,
    upright: Axis,
    x: np.ndarray,
    y: np.ndarray,
    stated: np.ndarray,
    measured: np.ndarray,
    label: str,
    log: bool,
) -> Picture:
    """The simulation by colour, and the theory by its level lines."""
    levels = round_levels(stated, log)
    heights = np.log(np.where(stated > 0, stated, 1.0)) if log else stated
    heights = np.where(stated > 0, heights, np.nan) if log else heights
    columns, rows = np.log(x) if across.log else x, np.log(y) if upright.log else y
    marks: list[Any] = [Field(x, y, measured, label=label, role=SIMULATION, log=log)]
    reached: list[str] = []
    lines_x: list[float | None] = []
    lines_y: list[float | None] = []
    for level in levels:
        found_x, found_y = level_lines(columns, rows, heights, np.log(level) if log else level)
        reached += [f"{level:g}"] if found_x else []
        lines_x += [None if one is None else float(np.exp(one) if across.log else one) for one in found_x]
        lines_y += [None if one is None else float(np.exp(one) if upright.log else one) for one in found_y]
    if lines_x:
        marks.append(Line(lines_x, lines_y, label=f"theory at {', '.join(reached)}"))
    return Picture(across, upright, tuple(marks))


def _end(trial: Trial) -> tuple[float, Mean]:
    """What is stated and measured of a number, or of a curve at its last place."""
    stated, mean = np.asarray(trial.stated.arrays()[""][1], dtype=float), trial.mean
    if stated.ndim == 0:
        return float(stated), mean
    return float(stated[-1]), Mean(mean.value[-1], mean.variance[-1], mean.skewness[-1], mean.dof)


def _where(kind: Any) -> str:
    """The last place of a curve, in words."""
    if not isinstance(kind, Curve):
        return ""
    return f" at {kind.axis or 'the end'} = {float(np.asarray(kind.x)[-1]):.4g}"


def _sizes(sweep: "Sweep", result: str) -> str:
    sizes = {one.trials[result][-1].size for one in sweep.comparisons}
    return f"n = {min(sizes)}" if len(sizes) == 1 else "the largest sizes"


def _axis(parameter: Parameter, places: Sequence[float]) -> Axis:
    log = bool(getattr(parameter, "log", False) and _wide(places))
    # "features per sample, p/n" and γ: the formula is what the symbol stands for.
    _, comma, formula = parameter.doc.rpartition(", ")
    equal = " =" if comma and "/" in formula and " " not in formula and parameter.symbol else ""
    return Axis(parameter.doc + equal, parameter.symbol, log=log, whole=parameter.kind == "integer")


def _number(value: Any) -> Any:
    """Numbers as a limit keeps them: 1 and 1.0 are one place."""
    return float(value) if isinstance(value, int | float) else value


def _wide(places: Sequence[float], factor: float = 3.0) -> bool:
    return min(places) > 0 and max(places) > factor * min(places)


def of_predictions(predictions: Sequence[Any], name: str) -> dict[str, Picture]:
    """Every number that is predicted, over one parameter: the theory's line, dense between the values asked for."""
    first = predictions[0].limit
    parameter = parameters_of(type(first))[name]
    if parameter.kind == "choice":
        return {}
    places = [values_of(one.limit)[name] for one in predictions]
    (dense, poles), found = _along(first, parameter, name, places), {}
    for result, kind in predictions[0].items():
        if isinstance(kind, Value | Probability):
            line = {place: one[result] for place, one in dense.items() if result in one}
            asked = [float(np.asarray(one[result].value)) for one in predictions]
            line |= zip(places, asked, strict=True)
            upright = _upright(kind.axis_of_values, list(line.values()), asked, result in poles)
            marks = (Line(*zip(*sorted(line.items()), strict=True), label="theory"),)
            found[result] = Picture(_axis(parameter, places), upright, marks)
    return found


def _along(limit: Limit, parameter: Parameter, name: str, places: Sequence[Any]) -> tuple[dict[Any, dict], set[str]]:
    """What the theory says at many values between the first and the last, and which results have a pole there."""
    if parameter.kind != "real":
        return {}, set()

    def said(place: float) -> dict[str, float] | None:
        try:
            there = replace(limit, **{name: place})
            require_valid(there)
            found = theory(there)
        except DeeplimitsError:
            return None
        numbers = {result: kind.value for result, kind in found.items() if isinstance(kind, Value | Probability)}
        return {result: float(np.asarray(value)) for result, value in numbers.items()}

    log = _wide(places) and getattr(parameter, "log", False)
    space = np.geomspace if log else np.linspace
    found = {place: said(place) for place in space(min(places), max(places), DENSE).tolist()}
    coarse = _highest(found)
    for result in coarse:
        _approach(found, result, said)
    poles = {result for result, height in _highest(found).items() if height > POLE * coarse[result]}
    return {place: one for place, one in found.items() if one is not None}, poles


def _highest(found: Mapping[float, Mapping[str, float] | None]) -> dict[str, float]:
    """How far each result goes from zero."""
    said = [one for one in found.values() if one is not None]
    return {result: max(abs(one.get(result, 0.0)) for one in said) for result in said[0]} if said else {}


def _approach(
    found: dict[float, dict[str, float] | None], result: str, said: Callable[[float], dict[str, float] | None]
) -> None:
    """Add places nearer and nearer to the one that is farthest from zero, as long as that brings something."""
    before = 0.0
    for _ in range(HALVINGS):
        places = sorted(found)
        heights = [abs(one.get(result, 0.0)) if (one := found[place]) is not None else -1.0 for place in places]
        top = int(np.argmax(heights))
        if not np.isfinite(heights[top]) or heights[top] <= 1.01 * before:
            return
        before = heights[top]
        for other in places[max(top - 1, 0) : top] + places[top + 1 : top + 2]:
            middle = (places[top] + other) / 2
            found[middle] = said(middle)


def _upright(given: Axis, line: Sequence[float], compared: Sequence[float], pole: bool) -> Axis:
    """The axis of the values; a pole leaves it, and does not flatten everything else."""
    low, high = min(compared), max(compared)
    log = bool(_wide(list(line), 30.0))
    if not pole:
        return replace_field(given, log=log)
    low, high = (low / 3, high * 3) if log else (2 * low - high, 2 * high - low)
    ends = (low if min(line) < low else None), (high if max(line) > high else None)
    return replace_field(given, log=log, low=ends[0], high=ends[1])
