"""Pictures as the page's script draws them: the same marks, in few characters."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from deeplimits.predictions.picture import THEORY, Axis, Line, Mark, Picture
from deeplimits.render.web.letters import letters

DIGITS = 5
"""Significant digits of numbers that are drawn."""
MOST = 240
"""Points of a line beyond which some are left out."""
FAR = 50.0
"""Positive places whose ratio is larger are drawn on a logarithmic axis."""
ROWS = ("x", "y", "low", "high", "edges", "heights", "place", "height", "value", "values")


def compact(picture: Picture, *, spread: bool = False, most: int = MOST) -> dict[str, Any]:
    """A picture for the page's script. With `spread` its x-axis is logarithmic where that shows more."""
    x = picture.x
    if spread and not x.log and not x.whole and _far(picture):
        x = Axis(x.label, x.symbol, True, x.low, x.high, x.ticks, x.whole)
    return {"x": _axis(x), "y": _axis(picture.y), "marks": [mark(one, most) for one in picture.marks]}


def mark(one: Mark, most: int = MOST) -> dict[str, Any]:
    """A mark with what is not said left out."""
    found: dict[str, Any] = {"mark": one.name}
    if one.label:
        found["label"] = one.label
    if one.role != THEORY:
        found["role"] = one.role
    if one.series is not None:
        found["series"] = one.series
    found |= numbers(one, most)
    if getattr(one, "upright", False):
        found["upright"] = True
    return found


def numbers(one: Mark, most: int = MOST) -> dict[str, Any]:
    """The numbers of a mark, rounded; of long lines as many points as can be seen."""
    kept = slice(None)
    if isinstance(one, Line) and len(one.x) > most:
        kept = np.unique(np.linspace(0, len(one.x) - 1, most).round().astype(int)).tolist()
    found = {}
    for name in ROWS:
        value = getattr(one, name, None)
        if value is not None:
            if isinstance(kept, list) and name in ("x", "y"):
                value = [value[index] for index in kept]
            found[name] = rounded(value)
    return found


def rounded(value: Any) -> Any:
    """Numbers to as many digits as are drawn; None for what is not finite."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [rounded(one) for one in value]
    if value is None or isinstance(value, str) or not math.isfinite(value):
        return None
    short = float(f"{value:.{DIGITS}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


def _axis(axis: Axis) -> dict[str, Any]:
    found: dict[str, Any] = {"label": axis.label, "symbol": letters(axis.symbol)}
    for name in ("log", "whole"):
        if getattr(axis, name):
            found[name] = True
    for name in ("low", "high", "ticks"):
        if getattr(axis, name) is not None:
            found[name] = rounded(getattr(axis, name))
    return found


def _far(picture: Picture) -> bool:
    places = [x for one in picture.marks for x in (getattr(one, "x", None) or ()) if x is not None]
    return len(places) > 1 and min(places) > 0 and max(places) > FAR * min(places)


def changes(base: Mapping[str, Any], picture: Picture, most: int = MOST) -> Any:
    """What of the theory in a picture differs from a base picture, mark by mark; all marks where they are not alike."""
    marks = [one for one in picture.marks if one.role != "simulation"]
    before = [one for one in base["marks"] if one.get("role") != "simulation"]
    now = [mark(one, most) for one in marks]
    alike = len(now) == len(before) and all(
        a["mark"] == b["mark"] and all(_length(a.get(name)) == _length(b.get(name)) for name in ROWS)
        for a, b in zip(now, before, strict=True)
    )
    if not alike:
        return {"marks": now}
    return [
        {name: new[name] for name in ROWS if name in new and new[name] != old[name]}
        for new, old in zip(now, before, strict=True)
    ]


def _length(value: Any) -> int:
    return len(value) if isinstance(value, list) else 0


SMALL = 48
"""Points of a line in a thumbnail."""


def thumbnail(page: Mapping[str, Any]) -> dict[str, Any] | None:
    """The picture shown large on a limit's page, in few points."""
    show = page.get("showcase")
    if not show:
        return None
    everything = [*show["charts"], *show["panels"]]
    found = next((one for one in everything if one["name"] == show["first"]), None)
    if found is None:
        return None
    picture = found["picture"]
    if found.get("number"):
        picture = _over_parameter(show, found) or page.get("trends", {}).get(found["name"]) or picture
    return {**picture, "marks": [_thinned(one) for one in picture["marks"]]}


def _over_parameter(show: Mapping[str, Any], panel: Mapping[str, Any]) -> dict[str, Any] | None:
    """A number as a line over the parameter it is drawn over."""
    row = next((one for one in show["sliders"] if one["name"] == show["over"] and "frames" in one), None)
    if row is None:
        return None
    base = panel["picture"]["marks"][0].get("value")
    y = [None if isinstance(frame, str) else _value(frame.get(panel["name"]), base) for frame in row["frames"]]
    there = [one for one in y if one is not None]
    if len(there) < 3:
        return None
    marks: list[dict[str, Any]] = [{"mark": "line", "x": rounded(row["values"]), "y": y}]
    spots = [
        (spot["x"], spot["numbers"][panel["name"]]["y"]) for spot in show["spots"] if panel["name"] in spot["numbers"]
    ]
    if spots:
        marks.append({"mark": "points", "role": "simulation", "x": [x for x, _ in spots], "y": [y for _, y in spots]})
    wide = panel["kind"] != "Probability" or max(there) < 0.5
    log = wide and min(there) > 0 and max(there) > FAR * min(there)
    return {
        "x": {"label": "", "symbol": "", "log": row["log"]},
        "y": {"label": "", "symbol": "", "log": log},
        "marks": marks,
    }


def _value(frame: Any, base: float | None) -> float | None:
    if isinstance(frame, dict):
        return frame["marks"][0].get("value")
    return frame[0].get("value", base) if frame else base


def _thinned(one: Mapping[str, Any]) -> dict[str, Any]:
    """A mark with at most as many points as a thumbnail shows."""
    found = dict(one)
    length = len(found.get("x") or ())
    if length > SMALL and found["mark"] in ("line", "points", "band"):
        kept = np.unique(np.linspace(0, length - 1, SMALL).round().astype(int)).tolist()
        for name in ("x", "y", "low", "high"):
            if isinstance(found.get(name), list):
                found[name] = [found[name][index] for index in kept]
    if found["mark"] == "field":
        found["x"], found["y"] = found["x"][::2], found["y"][::2]
        found["values"] = [row[::2] for row in found["values"][::2]]
    dropped = {"label", "low", "high"} if found["mark"] == "points" else {"label"}
    return {name: value for name, value in found.items() if name not in dropped}
