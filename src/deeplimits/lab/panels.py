"""What a page shows of a limit: panels of theory and simulation, and the theory along every slider, as plain data.

Atlas and explorer are made of this: the atlas computes it once and writes it down, the explorer computes it when it is
asked for. A panel is a picture of one result. A number is drawn over a parameter, everything else over its own axis.
"""

import dataclasses
import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from deeplimits.lab import points, scan
from deeplimits.limit import Limit, speaks_of_draws
from deeplimits.predictions import Identity, Kind, Picture, Trial
from deeplimits.predictions.picture import SIMULATION, Mark, Number
from deeplimits.render.web import pictures
from deeplimits.render.web.letters import letters

FINE = 90
"""Points of a line that a slider moves."""
MOST, FEWEST = 41, 7
"""How many values a slider has that was computed beforehand; with fewer it is none."""
OVER = 81
"""The same for the parameter over which numbers are drawn."""
MOST_WHOLE = 24
"""The same where it counts something, and every value is compiled anew."""
COARSE = 0.02
"""Where interpolation errs by a larger share of a panel's height, a slider goes from one computed value to the next."""
WHOLE = ("Exponent",)
"""Kinds that say nothing without simulations of several sizes: of these all are drawn."""


def picture_of(kind: Kind, trials: Sequence[Trial] = ()) -> Picture:
    """What is to be seen: dense theory, and the simulations of the largest size."""
    if kind.kind in WHOLE and trials:
        return kind.picture(trials)
    if isinstance(kind, Identity):
        return kind.against(trials[-1:])
    stated = kind.picture()
    if not trials or scan.is_number(kind):
        return stated
    shown = kind.picture(trials[-1:])
    measured = [mark for mark in shown.marks if mark.role == SIMULATION]
    # A histogram lies under the line, points over it.
    under = [mark for mark in measured if mark.name == "histogram"]
    over = [mark for mark in measured if mark.name != "histogram"]
    return Picture(shown.x, shown.y, (*under, *stated.marks, *over))


def panel(name: str, kind: Kind, trials: Sequence[Trial] = ()) -> dict[str, Any]:
    """One result as a page shows it."""
    picture = picture_of(kind, trials)
    if kind.kind == "Probability":
        picture = dataclasses.replace(picture, y=dataclasses.replace(picture.y, low=-0.02, high=1.02))
    found = {
        "name": name,
        "kind": kind.kind,
        "label": kind.label,
        "symbol": letters(kind.symbol),
        "picture": pictures.compact(picture, spread=kind.kind == "Curve"),
        "number": is_drawn_over(kind),
        "said": kind.judge(trials).report.gap if isinstance(kind, Identity) and trials else kind.summary(),
    }
    if found["number"] and trials and kind.kind in points.NUMBERS:
        found["measured"] = points.spot(trials[-1])
    return found


def is_drawn_over(kind: Kind) -> bool:
    """Whether a prediction is a number that is drawn over a parameter."""
    return scan.is_number(kind) and kind.kind not in WHOLE and not isinstance(kind, Identity)


def theory_of(limit: Limit) -> dict[str, Any]:
    """The panels of a limit at its parameters, without simulations."""
    found = scan.dense(limit)
    return {"panels": [panel(name, kind) for name, kind in found.items()], "charted": is_charted(limit)}


def is_charted(limit: Limit) -> bool:
    """Whether the theory draws further pictures."""
    return type(limit).charts is not Limit.charts


def charts_of(limit: Limit) -> list[dict[str, Any]]:
    """Further pictures of the theory."""
    return [{"name": name, "picture": pictures.compact(one)} for name, one in limit.charts().items()]


def first_of(limit: Limit, panels: Sequence[Mapping[str, Any]], charts: Sequence[Mapping[str, Any]]) -> str:
    """The panel that is shown large."""
    named = type(limit).showcase.first
    names = [one["name"] for one in (*charts, *panels)]
    if named in names:
        return named
    if charts:
        return charts[0]["name"]
    drawn = [one["name"] for one in panels if one["kind"] in ("Curve", "Spectrum", "Law")]
    numbers = [one["name"] for one in panels if one["number"]]
    return (drawn or numbers or names)[0]


def over_of(limit: Limit) -> str:
    """The parameter over which numbers are drawn."""
    names = list(scan.sliders(limit))
    wanted = type(limit).showcase.over
    return wanted if wanted in names else (names[0] if names else "")


def tables(
    limit: Limit, panels: Sequence[Mapping[str, Any]], over: str, budget: float
) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """The theory along each slider, in about `budget` seconds: what of every picture changes with its value.

    With it comes the error of interpolation between two of the values, as a share of a panel's height.
    """
    found: list[dict[str, Any]] = []
    sliders = list(scan.sliders(limit).values())
    began = time.process_time()
    once = scan.at(limit)
    spent = max(time.process_time() - began, 1e-5)
    parts = len(sliders) + 1
    base = {one["name"]: one["picture"] for one in panels}
    for slider in sorted(sliders, key=lambda one: one.name != over):
        each = spent if slider.whole else max(spent, _elsewhere(limit, slider))
        count = int(budget / parts / each) * (2 if slider.name == over else 1)
        count = min(count, OVER if slider.name == over else MOST)
        if slider.name == over and count < FEWEST and each * FEWEST < budget:
            count = FEWEST  # rather few values of this one than of none
        if slider.whole:
            count = min(max(count, FEWEST), MOST_WHOLE)
        row: dict[str, Any] = {"name": slider.name, "low": slider.low, "high": slider.high, "log": slider.log}
        if count >= FEWEST and not isinstance(once, str):
            scanned = scan.frames(limit, slider, count | 1)
            row["values"] = scanned.values
            row["frames"] = [_frame(base, one) for one in scanned.found]
            row["error"] = 0.0 if slider.whole else missed(limit, slider, scanned)
            row["whole"] = slider.whole
            row["stepped"] = row["error"] > COARSE
        found.append(row)
    order = [one.name for one in sliders]
    return sorted(found, key=lambda row: order.index(row["name"])), {"theory": spent}


def _elsewhere(limit: Limit, slider: scan.Slider) -> float:
    """Seconds that the theory takes at another value of a parameter: more than where it was before, if it compiles."""
    middle = slider.values(FEWEST, slider.low)[FEWEST // 2]
    began = time.process_time()
    scan.at(limit, **{slider.name: middle})
    return time.process_time() - began


def _frame(base: Mapping[str, Any], found: Mapping[str, Kind] | str) -> Any:
    if isinstance(found, str):
        return found
    return {
        name: pictures.changes(base[name], picture_of(kind), FINE)
        for name, kind in found.items()
        # Along an identity lies what was measured, which is not computed along a slider.
        if name in base and not isinstance(kind, Identity)
    }


LOOKED_AT = 4
"""Between so many pairs of neighbours it is looked how well interpolation does."""


def missed(limit: Limit, slider: scan.Slider, scanned: scan.Frames) -> float:
    """The largest error of interpolation in the middle between two values, as a share of the range of its result.

    It is looked for where interpolation between every second value misses most.
    """
    values, found = scanned.values, scanned.found
    place = np.log(values) if slider.log else np.asarray(values)
    rows = [_drawn(one) for one in found]
    names = {name for row in rows for name in row}
    reach = {}
    for name in names:
        everything = np.concatenate([row[name][np.isfinite(row[name])] for row in rows if name in row])
        reach[name] = max(float(np.ptp(everything)), 1e-12) if everything.size else 1.0

    def gap(before: int, after: int, here: Mapping[str, np.ndarray], at: float) -> float:
        share, worst = (at - place[before]) / (place[after] - place[before]), 0.0
        for name in set(rows[before]) & set(rows[after]) & set(here):
            first, last, middle = rows[before][name], rows[after][name], here[name]
            if len(first) == len(last) == len(middle):
                one = np.abs((1 - share) * first + share * last - middle)
                worst = max(worst, float(one[np.isfinite(one)].max(initial=0.0)) / reach[name])
        return worst

    coarse = [gap(k - 1, k + 1, rows[k], place[k]) for k in range(1, len(values) - 1)]
    worst = 0.0
    for k in (np.argsort(coarse)[::-1][: LOOKED_AT // 2] + 1).tolist():
        for before in (k - 1, k):
            at = float(place[before] + place[before + 1]) / 2
            here = scan.at(limit, **{slider.name: float(np.exp(at) if slider.log else at)})
            worst = max(worst, gap(before, before + 1, _drawn(here), at))
    return pictures.rounded(worst)


def _drawn(found: Mapping[str, Kind] | str) -> dict[str, np.ndarray]:
    return {} if isinstance(found, str) else {name: _heights(kind) for name, kind in found.items()}


def _heights(kind: Kind) -> np.ndarray:
    """The heights of the theory in a picture, as they are drawn."""
    shown = kind.picture()
    parts = [np.ravel(np.array(one, dtype=float)) for mark in shown.marks for one in _rows(mark)]
    found = np.concatenate(parts) if parts else np.zeros(0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log10(found) if shown.y.log else found


def _rows(mark: Mark) -> list[Any]:
    if isinstance(mark, Number):
        return [[mark.value]]
    y = getattr(mark, "y", None)
    return [[math.nan if one is None else one for one in y]] if y is not None and mark.name != "field" else []


def document(
    limit: Limit, trials: Mapping[str, Sequence[Trial]], size: int, samples: int, budget: float
) -> dict[str, Any]:
    """The showcase of a limit: panels, charts, sliders with their tables, and what was simulated."""
    kinds = scan.dense(limit)
    trials = {name: [points.beside(kinds[name], one) for one in some] for name, some in trials.items() if name in kinds}
    panels = [panel(name, kind, trials.get(name, ())) for name, kind in kinds.items()]
    if speaks_of_draws(limit):
        whatever = set(scan.theory(limit))
        panels = [one if one["name"] in whatever else {**one, "own": True} for one in panels]
    charts = charts_of(limit)
    over = over_of(limit)
    rows, spent = tables(limit, panels, over, budget)
    numbers = [one["name"] for one in panels if one["number"] and one["kind"] in points.NUMBERS]
    first = first_of(limit, panels, charts)
    large = first in numbers or any(one["name"] == first for one in charts)
    found = points.spots(limit, scan.sliders(limit)[over], numbers, anew=large) if over else []
    charts = [points.with_points(limit, one, panels, over, found) for one in charts]
    return {
        "first": first,
        "see": type(limit).showcase.see,
        "over": over,
        "panels": panels,
        "charts": charts,
        "sliders": rows,
        "spots": found,
        "size": size,
        "samples": samples,
        "milliseconds": pictures.rounded(1000 * spent["theory"]),
    }
