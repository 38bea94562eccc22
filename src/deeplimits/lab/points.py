"""What was simulated, as a page draws it: beside the theory of one system, along a parameter, on a chart."""

import dataclasses
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
from deeplimits.predictions import Bound, Kind, Trial
from deeplimits.predictions.means import Averaged
from deeplimits.predictions.picture import SIMULATION, Points
from deeplimits.render import bars
from deeplimits.render.web import pictures
from deeplimits.render.web.letters import letters
from deeplimits.statistics import FEWEST_SAMPLES

SPOTS = 7
"""At how many values of that parameter systems are simulated, where one program does it for all or it is their size."""
SAMPLES = 200
"""Systems that are drawn beside the theory, at most."""
LARGER = 2.0
"""How far beyond the largest usual size a point over a parameter that is the size may lie."""


FRESH = 2.0
"""Seconds for systems along a parameter that has other whole numbers, and so another program, at each value."""
NUMBERS = ("Value", "Probability", "Bound")
"""Kinds of which one number may be drawn over a parameter."""


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


def simulated(limit: Limit, size: int = 0, samples: int = 0, budget: float = 2.0) -> tuple[dict[str, list[Trial]], int]:
    """A few systems at a limit's own parameters: the trials of each result, and how many systems there are."""
    task = affordable(limit, size or scan.size_of(limit), samples, budget)
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


def spots(
    limit: Limit, slider: scan.Slider, names: Sequence[str], budget: float = 1.5, anew: bool = True
) -> list[dict[str, Any]]:
    """Numbers measured at a few values of a parameter: at all of them where those systems are of one program.

    Elsewhere each value is compiled anew, or the theory of its own draw is computed: at as many as there is time for,
    spread over the range, if `anew`.
    """
    shared = bool(names) and (scan.is_sized(limit, slider) or scan.same_systems(limit, slider))
    if not names or not (anew or (shared and not speaks_of_draws(limit))):
        return []
    values = slider.values(SPOTS + 2, slider.low)[1:-1]
    if not shared:
        values = [values[index] for index in spread(len(values))]
    found, began = [], time.process_time()
    largest = scan.size_of(limit)
    for value in values:
        before = time.process_time()
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
        # What is compiled anew takes about as long the next time; of one program the first was the longest.
        if (now - began > 2 * budget) if shared else (now - began + (now - before) > FRESH):
            break
    return sorted(found, key=lambda one: one["x"])


def spread(count: int) -> list[int]:
    """The numbers below `count` in an order in which those that come first lie far apart.

    >>> spread(7)
    [1, 5, 3, 0, 2, 4, 6]
    """
    first = [index for index in (count // 5, count - 1 - count // 5, count // 2) if index < count]
    return list(dict.fromkeys([*first, *range(count)]))
