"""Theory for looking at: dense along every axis, and along every parameter. Atlas and explorer draw what this computes.

A limit states its curves at the few points that are simulated. Here the same theory is evaluated at many points between
them: along an axis that is a parameter, by giving it more points; along an axis that a parameter ends (times up to a
horizon), by moving that end.
"""

import dataclasses
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from deeplimits.errors import DeeplimitsError
from deeplimits.lab import beforehand
from deeplimits.lab.predict import predict, theory
from deeplimits.limit import Limit, replace, require_valid, rounded, speaks_of_draws
from deeplimits.parameters import Integer, Parameter, Real, parameters_of
from deeplimits.predictions import Kind
from deeplimits.predictions.curve import Curve

DENSE = 96
"""Points of a line that is drawn."""
TRACED = 24
"""How many values of a parameter that ends an axis are tried, each giving a few points of the line."""
PATIENCE = 3.0
"""Seconds that a line may take which is drawn for its looks."""
QUICK = 0.05
"""The same where many are drawn."""


def shown_at(limit_class: type[Limit], **changes: Any) -> Limit:
    """A limit as its showcase shows it, with some parameters changed."""
    return limit_class(**{**limit_class.showcase.parameters, **changes})


def size_of(limit: Limit) -> int:
    """The size of the systems that a limit is shown with."""
    return type(limit).showcase.size or max(limit.usual.sizes)


LEAST_MOVED = 0.05
"""A parameter that changes by a smaller share from one size to another was only rounded."""


def of_size(limit: Limit, size: int) -> Limit:
    """A limit whose theory speaks of systems of this size: with the counts that the size decides.

    What is only rounded, as a ratio of whole numbers, stays as it was asked for.
    """
    try:
        realised = beforehand.finite(limit, limit.at_size(size))[1]
    except DeeplimitsError:
        return limit
    found = {}
    for name, parameter in parameters_of(type(limit)).items():
        if parameter.kind in ("real", "integer"):
            asked, real = float(getattr(limit, name)), float(getattr(realised, name))
            if abs(real - asked) > LEAST_MOVED * max(abs(asked), abs(real)):
                found[name] = getattr(realised, name)
    return rounded(limit, **found) if found else limit


def dense(limit: Limit, patience: float = PATIENCE, drawn: bool = True) -> dict[str, Kind]:
    """Everything a limit predicts, with its curves dense. Raises what `predict` raises.

    Lines for which the theory must be evaluated at many parameters are made dense if that takes no more than
    `patience` seconds. Without `drawn`, what is said of one drawn system is left out where there is anything else.

    >>> import deeplimits as dl
    >>> curve = dense(dl.limits.DeepLinearWidthCkSpectrum(), patience=60.0)["transform"]
    >>> len(curve.x) > 90
    True
    """
    require_valid(limit)
    began = time.process_time()
    try:
        found = dict(theory(finer(limit)))
    except DeeplimitsError:
        found = dict(theory(limit))  # some points between those asked for are not covered; those asked for must be
    took = time.process_time() - began
    if speaks_of_draws(limit) and (drawn or not found):
        found = {**dict(predict(limit)), **found}
    if TRACED * took < 3 * patience:  # the first evaluation may have compiled, the others do not
        found = _traced(limit, found)
    return found


def finer(limit: Limit, points: int = DENSE) -> Limit:
    """The same limit with many points on each of its axes, evenly spread in value and in ratio; not checked again."""
    points = type(limit).showcase.fine or points
    axes = {}
    for name, parameter in parameters_of(type(limit)).items():
        if parameter.kind == "axis":
            given = np.asarray(getattr(limit, name))
            if len(given) > 1:
                axes[name] = between(float(given[0]), float(given[-1]), points)
    return rounded(limit, **axes) if axes else limit


def between(low: float, high: float, points: int) -> np.ndarray:
    """Increasing points from one number to another: half of them at equal distances, and half at equal ratios."""
    if low <= 0:
        # From zero on, ratios begin a thousandth of the way.
        start = low + (high - low) / 1000 if low == 0 else None
        if start is None:
            return np.linspace(low, high, points)
        return np.concatenate([[low], between(start, high, points - 1)])
    half = points // 2
    steps = np.linspace(low, high, half + 2)[1:-1]
    ratios = np.geomspace(low, high, points - half)
    found = np.unique(np.concatenate([steps, ratios]))
    found[0], found[-1] = low, high
    missing = points - len(found)
    if missing:  # two of them coincided: split the widest gaps
        gaps = np.argsort(np.diff(found))[-missing:]
        found = np.sort(np.concatenate([found, (found[gaps] + found[gaps + 1]) / 2]))
    return found


def _traced(limit: Limit, found: dict[str, Kind]) -> dict[str, Kind]:
    """Curves over an axis that a parameter ends, dense: each value of the parameter gives a few points of the line."""
    sparse = [name for name, kind in found.items() if isinstance(kind, Curve) and _is_sparse(kind)]
    for name, parameter in parameters_of(type(limit)).items():
        if not sparse:
            break
        value = float(getattr(limit, name)) if isinstance(parameter, Real) else 0.0
        if value <= 0 or value <= parameter.low:  # pyright: ignore[reportAttributeAccessIssue]
            continue
        other = max(value / 2, parameter.low)  # pyright: ignore[reportAttributeAccessIssue]
        moved = _at(limit, name, other)
        ended = [key for key in sparse if moved and _scales(found[key], moved[key], other / value)]
        if not ended:
            continue
        first = max(parameter.low, 1e-3 * value)  # pyright: ignore[reportAttributeAccessIssue]
        places = np.concatenate([np.geomspace(first, value, TRACED // 2), np.linspace(first, value, TRACED // 2)])
        along = [one for place in np.unique(places) if (one := _at(limit, name, float(place)))]
        for key in ended:
            joined = _joined(found[key], [one[key] for one in along])
            found[key] = joined or found[key]
        sparse = [key for key in sparse if key not in ended]
    return found


def _is_sparse(curve: Curve) -> bool:
    x = np.asarray(curve.x)
    return curve.dense_x is None and x.ndim == 1 and 1 < len(x) < DENSE // 2


def _at(limit: Limit, name: str, value: float) -> dict[str, Kind] | None:
    try:
        changed = replace(limit, **{name: value})
        require_valid(changed)
        return dict(theory(changed))
    except DeeplimitsError:
        return None


def _scales(curve: Any, other: Any, factor: float) -> bool:
    """Whether an axis shrinks with the parameter."""
    return bool(np.allclose(np.asarray(other.x), factor * np.asarray(curve.x), rtol=1e-9, atol=0))


def _joined(curve: Any, parts: Sequence[Any]) -> Curve | None:
    """The points of several curves as one line; None where they do not lie on one."""
    x, y = (np.concatenate([np.asarray(getattr(part, field)) for part in (curve, *parts)]) for field in "xy")
    order = np.argsort(x, kind="stable")
    x, y = x[order], y[order]
    kept = np.concatenate([[True], np.diff(x) > 1e-9 * x[-1]])
    own = np.interp(np.asarray(curve.x), x[kept], y[kept])
    near = np.abs(own - np.asarray(curve.y)) < 1e-6 + 0.01 * np.ptp(np.asarray(curve.y))
    # A line that depends on where it ends jumps up and down between the points of its parts.
    turns = np.abs(np.diff(np.sign(np.diff(y[kept])))).sum() / 2
    if not np.all(near) or turns > 12:
        return None
    return dataclasses.replace(curve, dense_x=x[kept], dense_y=y[kept])


class Frames(NamedTuple):
    """What the theory says along one parameter, the others staying where they are."""

    values: list[float]
    found: list[dict[str, Kind] | str]
    """At each value the predictions, or the sentence that says why there are none."""
    seconds: float
    """What one of them took."""


@dataclass(frozen=True)
class Slider:
    """The part of a continuous parameter's range that is scanned."""

    name: str
    low: float
    high: float
    log: bool
    whole: bool = False

    def values(self, count: int, through: float) -> list[float]:
        """So many values from end to end, the one that is shown among them."""
        if self.log:
            found = np.geomspace(self.low, self.high, count)
        else:
            found = np.linspace(self.low, self.high, count)
        found[0], found[-1] = self.low, self.high  # without rounding, which could leave the range
        if self.low <= through <= self.high:
            found = np.unique(np.append(found, through))
        return [int(one) for one in np.unique(found.round())] if self.whole else found.tolist()


WIDEST = 1e4
"""The ratio between the ends of a slider whose parameter has no range of its own to see."""


def sliders(limit: Limit) -> dict[str, Slider]:
    """The continuous parameters, each with the range that is worth seeing around its value.

    A whole number is among them if the limit's numbers are shown over it: every value of it is compiled anew.
    """
    found = {}
    for name, parameter in parameters_of(type(limit)).items():
        if isinstance(parameter, Real) or (isinstance(parameter, Integer) and name == type(limit).showcase.over):
            found[name] = slider_of(name, parameter, float(getattr(limit, name)), type(limit).showcase.ranges)
    return found


def slider_of(name: str, parameter: Any, value: float, ranges: Mapping[str, tuple[float, float]]) -> Slider:
    """The range of one slider: as the showcase says, or the allowed one, cut where it is very wide."""
    whole = isinstance(parameter, Integer)
    if name in ranges:
        low, high = ranges[name]
        return Slider(name, low, high, parameter.log and low > 0, whole)
    low, high = parameter.low, parameter.high
    if parameter.log and low > 0:
        middle = value if value > 0 else (low * min(high, 1.0)) ** 0.5
        low, high = max(low, middle / WIDEST**0.5), min(high, middle * WIDEST**0.5)
        return Slider(name, round(low) if whole else low, round(high) if whole else high, True, whole)
    reach = 4 * max(abs(value), 0.25)
    return Slider(name, max(low, -reach if low < 0 else low), min(high, reach), False, whole)


def frames(limit: Limit, slider: Slider, count: int) -> Frames:
    """Theory at `count` values along one parameter."""
    found: list[dict[str, Kind] | str] = []
    values = slider.values(count, float(getattr(limit, slider.name)))
    began = time.process_time()
    for value in values:
        found.append(at(limit, **{slider.name: value}))
    return Frames(values, found, (time.process_time() - began) / len(values))


def at(limit: Limit, **changes: Any) -> dict[str, Kind] | str:
    """What the theory says with some parameters changed, along dense axes; or why it says nothing there.

    It is asked for many values in turn: a drawn system has other whole numbers at each, and would be compiled anew.
    """
    try:
        return dense(replace(limit, **changes), QUICK, drawn=False)
    except DeeplimitsError as error:
        return " ".join(str(error).split())


def stated_at(limit: Limit, **changes: Any) -> dict[str, Kind] | str:
    """The same at the points asked for only, which is faster."""
    try:
        return dict(predict(replace(limit, **changes)))
    except DeeplimitsError as error:
        return " ".join(str(error).split())


def same_systems(limit: Limit, slider: Slider) -> bool:
    """Whether systems along a parameter have the same whole numbers, so that one compiled program simulates them."""
    size = size_of(limit)
    try:
        found = [
            beforehand.finite(limit, replace(limit, **{slider.name: value}).at_size(size))[0]
            for value in slider.values(3, slider.low)
        ]
    except DeeplimitsError:
        return False
    return all(one == found[0] for one in found)


def is_sized(limit: Limit, slider: Slider) -> bool:
    """Whether a parameter follows the size: then systems of different sizes lie along it."""
    size = size_of(limit)
    try:
        low, high = (float(getattr(limit.at_size(one)[1], slider.name)) for one in (min(limit.usual.sizes), size))
    except DeeplimitsError:
        return False
    return abs(high - low) > LEAST_MOVED * max(abs(high), abs(low))


def size_at(limit: Limit, slider: Slider) -> int | None:
    """The size of systems that have the limit's own value of a parameter; None where there is none."""
    size, wanted = size_of(limit), float(getattr(limit, slider.name))

    def misses(one: int) -> bool:
        real = float(getattr(limit.at_size(one)[1], slider.name))
        return abs(real - wanted) > LEAST_MOVED * max(abs(real), abs(wanted))

    if not misses(size):
        return size
    if not is_sized(limit, slider):
        return None
    proportional = round(size * wanted / float(getattr(limit.at_size(size)[1], slider.name)))
    return None if proportional < 1 or misses(proportional) else proportional


def is_number(kind: Kind) -> bool:
    """Whether a prediction is one number, drawn over a parameter."""
    found = kind.arrays()[""][1]
    return np.ndim(found) == 0


def continuous(limit: Limit) -> list[tuple[str, Parameter]]:
    """The continuous parameters."""
    return [(name, one) for name, one in parameters_of(type(limit)).items() if one.kind == "real"]
