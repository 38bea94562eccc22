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

from deeplimits.errors import DeeplimitsError
from deeplimits.lab import scan
from deeplimits.lab.predict import predict
from deeplimits.lab.simulate import chunk_size, run, seconds
from deeplimits.lab.task import Task
from deeplimits.limit import Limit, replace, speaks_of_draws
from deeplimits.parameters import parameters_of
from deeplimits.predictions import Bound, Identity, Kind, Picture, Trial
from deeplimits.predictions.means import Averaged
from deeplimits.predictions.picture import SIMULATION, Mark, Number, Points
from deeplimits.render import bars
from deeplimits.render.web import pictures
from deeplimits.render.web.letters import letters
from deeplimits.statistics import FEWEST_SAMPLES

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
SPOTS = 7
"""At how many values of that parameter systems are simulated, where one program does it for all or it is their size."""
SAMPLES = 200
"""Systems that are drawn beside the theory, at most."""
LARGER = 2.0
"""How far beyond the largest usual size a point over a parameter that is the size may lie."""


FRESH = 2.0
"""Seconds for systems along a parameter that has other whole numbers, and so another program, at each value."""
WHOLE = ("Exponent",)
"""Kinds that say nothing without simulations of several sizes: of these all are drawn."""
NUMBERS = ("Value", "Probability", "Bound")
"""Kinds of which one number may be drawn over a parameter."""


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
        "said": kind.report(trials, (), None).gap if isinstance(kind, Identity) and trials else kind.summary(),
    }
    if found["number"] and trials and kind.kind in NUMBERS:
        found["measured"] = spot(trials[-1])
    return found


def is_drawn_over(kind: Kind) -> bool:
    """Whether a prediction is a number that is drawn over a parameter."""
    return scan.is_number(kind) and kind.kind not in WHOLE and not isinstance(kind, Identity)


def beside(kind: Kind, trial: Trial) -> Trial:
    """What was measured of drawn systems, each beside its own statement, as it lies beside the one that is shown.

    It keeps its ratio to what was stated of its own draw, or its difference, whichever the two are compared by.
    """
    if not isinstance(kind, Averaged | Bound):
        return trial
    field = kind.states if isinstance(kind, Averaged) else "value"
    own, shown = (np.asarray(getattr(one, field), dtype=float) for one in (trial.stated, kind))
    if own.shape != shown.shape or np.array_equal(own, shown):
        return trial
    if kind.per_draw == "difference":
        moved = trial.measured + (shown - own)
    elif np.all(own != 0):
        moved = trial.measured * (shown / own)
    else:
        return trial
    return Trial(trial.size, dataclasses.replace(trial.stated, **{field: shown}), moved)


def spot(trial: Trial) -> dict[str, Any] | None:
    """The measured value of a number, with its error bar; of what must not cross a bound, the nearest to it."""
    if isinstance(trial.stated, Bound):
        nearest = trial.measured.max() if trial.stated.side == "upper" else trial.measured.min()
        return {"size": trial.size, "y": pictures.rounded(float(nearest)), "nearest": True}
    marks = trial.stated.picture([trial]).marks
    found = [mark for mark in marks if isinstance(mark, Points) and mark.role == SIMULATION and len(mark.x) == 1]
    if not found:
        return None
    middle = found[-1].y
    low, high = found[-1].low or middle, found[-1].high or middle
    y, low, high = (pictures.rounded(one[0]) for one in (middle, low, high))
    return {"size": trial.size, "y": y, "low": low, "high": high}


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


def with_points(
    limit: Limit,
    chart: Mapping[str, Any],
    panels: Sequence[Mapping[str, Any]],
    over: str,
    spots: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """A chart with what was measured of it: of a number over the parameter that is its axis, of curves it repeats."""
    picture, marks = chart["picture"], []
    for one in panels:
        for line in picture["marks"]:
            if not one["number"] and line["mark"] == "line" and line.get("label") == one["label"]:
                found = [mark for mark in one["picture"]["marks"] if mark.get("role") == SIMULATION]
                marks += [{**mark, "series": line.get("series", 0)} for mark in found]
    symbol = letters(parameters_of(type(limit))[over].symbol) if over else ""
    same = [one for one in panels if one["number"] and one["symbol"] and one["symbol"] == picture["y"]["symbol"]]
    if symbol and symbol == picture["x"]["symbol"] and same:
        name, measured = same[0]["name"], same[0].get("measured")
        found = [(one["x"], one["numbers"][name]) for one in spots if name in one["numbers"]]
        found += [(pictures.rounded(float(getattr(limit, over))), measured)] if measured else []
        places = [x for mark in picture["marks"] for x in mark.get("x", ()) if x is not None]
        found = [one for one in found if min(places) <= one[0] <= max(places)]
        rows = {part: [one.get(part) for _, one in found] for part in ("y", "low", "high")}
        sizes = ", ".join(str(size) for size in sorted({one["size"] for _, one in found}))
        label = f"simulation, n = {sizes}"
        marks += [{"mark": "points", "role": SIMULATION, "label": label, "x": [x for x, _ in found], **rows}]
    return {**chart, "picture": {**picture, "marks": [*picture["marks"], *marks]}}


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


def simulated(limit: Limit, size: int = 0, samples: int = 0, budget: float = 2.0) -> tuple[dict[str, list[Trial]], int]:
    """A few systems at a limit's own parameters: the trials of each result, and how many systems there are."""
    task = affordable(limit, size or max(limit.usual.sizes), samples, budget)
    return trials_of(task), task.samples


def affordable(limit: Limit, size: int, samples: int, budget: float) -> Task:
    """As many systems as fit the time, at least as many as are simulated at once."""
    block = chunk_size(limit, limit.usual.samples)
    if samples:
        return Task(limit, size, samples)
    cost = seconds(Task(limit, size, block))
    least = -(-FEWEST_SAMPLES // block)  # below which there are no error bars
    blocks = max(least, min(int(budget / max(cost, 1e-9)), -(-SAMPLES // block)))
    return Task(limit, size, blocks * block)


def trials_of(task: Task) -> dict[str, list[Trial]]:
    """The trials of one block of systems."""
    with bars.progress(task.samples, "", False) as bar:
        simulation = run(task, bar)
    stated = dict(scan.theory(simulation.limit))
    found = {name: [kind.trial(task.size, simulation[name])] for name, kind in stated.items()}
    for name, kind in simulation.stated.items():
        found[name] = [kind.trial(task.size, simulation[name], drawn=True)]
    return found


def spots(limit: Limit, slider: scan.Slider, names: Sequence[str], budget: float = 1.5) -> list[dict[str, Any]]:
    """Numbers measured at a few values of a parameter: at all of them where those systems are of one program.

    Elsewhere each value is compiled anew, and it is as many as there is time for, spread over the range.
    """
    if not names:
        return []
    shared = scan.is_sized(limit, slider) or scan.same_systems(limit, slider)
    values = slider.values(SPOTS + 2, slider.low)[1:-1]
    if not shared:
        values = [values[index] for index in spread(len(values))]
    found, began = [], time.process_time()
    largest = max(limit.usual.sizes)
    for value in values:
        before = time.process_time()
        if before - began > 2 * budget:
            break
        try:
            moved = replace(limit, **{slider.name: value})
            size = scan.size_at(moved, slider)
            if size is None or size > LARGER * largest:
                continue
            task = affordable(moved, size, 0, budget / SPOTS)
            if seconds(task) > 2 * budget:
                continue  # walks that take for ever at a weak signal
            measured = trials_of(task)
            if speaks_of_draws(limit):
                stated = dict(predict(moved))
                measured = {name: [beside(stated[name], one) for one in some] for name, some in measured.items()}
        except DeeplimitsError:
            continue  # the theorem does not cover this value; the line has a gap there too
        here = {name: spot(measured[name][-1]) for name in names if name in measured}
        found.append({"x": pictures.rounded(value), "numbers": {name: one for name, one in here.items() if one}})
        now = time.process_time()
        if not shared and now - began + (now - before) > FRESH:
            break  # the next would take about as long as this one
    return sorted(found, key=lambda one: one["x"])


def spread(count: int) -> list[int]:
    """The numbers below `count` in an order in which those that come first lie far apart.

    >>> spread(7)
    [1, 5, 3, 0, 2, 4, 6]
    """
    first = [index for index in (count // 5, count - 1 - count // 5, count // 2) if index < count]
    return list(dict.fromkeys([*first, *range(count)]))


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
    trials = {name: [beside(kinds[name], one) for one in some] for name, some in trials.items() if name in kinds}
    panels = [panel(name, kind, trials.get(name, ())) for name, kind in kinds.items()]
    if speaks_of_draws(limit):
        whatever = set(scan.theory(limit))
        panels = [one if one["name"] in whatever else {**one, "own": True} for one in panels]
    charts = charts_of(limit)
    over = over_of(limit)
    rows, spent = tables(limit, panels, over, budget)
    numbers = [one["name"] for one in panels if one["number"] and one["kind"] in NUMBERS]
    found = spots(limit, scan.sliders(limit)[over], numbers) if over else []
    charts = [with_points(limit, one, panels, over, found) for one in charts]
    return {
        "first": first_of(limit, panels, charts),
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
