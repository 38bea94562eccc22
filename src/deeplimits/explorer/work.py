"""What worker processes do for the explorer. Arguments were checked; answers are plain data."""

import time
from typing import Any

import jax
import numpy as np

from deeplimits.atlas.show import page_about
from deeplimits.catalogue import Entry, catalogue
from deeplimits.errors import TooCostly
from deeplimits.explorer.requests import Asked
from deeplimits.lab import beforehand, panels, points, scan, simulate
from deeplimits.lab.budget import duration
from deeplimits.lab.compilation import use_cache
from deeplimits.lab.predict import predict
from deeplimits.lab.task import Task
from deeplimits.limit import Limit, require_valid, values_of
from deeplimits.predictions.picture import SIMULATION
from deeplimits.render import bars
from deeplimits.render.web import pictures

MOST_SECONDS = 60.0
"""What the simulation of one request may take, as estimated beforehand."""
MOST_MEMORY = 2e9
"""Bytes that a system may need."""
POINTS = 61
"""Values of a parameter over which numbers are drawn."""
PATIENCE = 1.0
"""Seconds after which a line over a parameter gets fewer points."""


def limit_of(asked: Asked) -> Limit:
    """The limit that is asked for, in the showcase's place unless told otherwise."""
    return scan.shown_at(asked.entry.load(), **asked.parameters)


def page(name: str) -> dict[str, Any]:
    """What the page of a limit of the catalogue says and what its controls are made of; nothing is computed."""
    entry = catalogue.entry(name)
    return page_of(entry, scan.shown_at(entry.load()))


def page_of(entry: Entry, limit: Limit) -> dict[str, Any]:
    """The same for any limit, which is shown at these parameters first."""
    use_cache()
    cls = type(limit)
    size = cls.showcase.size or max(limit.usual.sizes)
    sliders = [
        {"name": one.name, "low": one.low, "high": one.high, "log": one.log, "whole": one.whole}
        for one in scan.sliders(limit).values()
    ]
    show = {
        "first": cls.showcase.first,
        "see": cls.showcase.see,
        "over": panels.over_of(limit),
        "panels": [],
        "charts": [],
        "sliders": sliders,
        "spots": [],
        "size": size,
        "samples": 0,
        "values": values_of(limit),
    }
    return {**page_about(entry), "showcase": show}


def theory(asked: Asked) -> dict[str, Any]:
    """The panels of a limit at these parameters."""
    began = time.perf_counter()
    use_cache()
    limit = limit_of(asked)
    found = panels.theory_of(limit)
    found["values"] = values_of(limit)
    found["first"] = panels.first_of(limit, found["panels"], ())
    found["milliseconds"] = round(1000 * (time.perf_counter() - began), 2)
    return found


def sweep(asked: Asked) -> dict[str, Any]:
    """What takes longer than a move of a slider: every number over one parameter, and further pictures."""
    use_cache()
    limit = limit_of(asked)
    require_valid(limit)
    charts = panels.charts_of(limit)
    over = asked.over or panels.over_of(limit)
    slider = scan.sliders(limit).get(over)
    if slider is None or not _numbers(scan.stated_at(limit)):
        return {"over": over, "values": [], "numbers": {}, "charts": charts}
    count = POINTS if not slider.whole else panels.MOST_WHOLE
    values = slider.values(count, float(getattr(limit, over)))
    began = time.monotonic()
    # From the middle of the range outwards in ever finer steps: what there is no time for is between what there is.
    found: dict[float, dict[str, float | None]] = {}
    for place in _coarse_first(len(values)):
        found[values[place]] = _numbers(scan.stated_at(limit, **{over: values[place]}))
        if time.monotonic() - began > PATIENCE and len(found) >= panels.FEWEST:
            break
    places = sorted(found)
    names = sorted({name for one in found.values() for name in one})
    numbers = {name: [found[place].get(name) for place in places] for name in names}
    return {"over": over, "values": pictures.rounded(places), "numbers": numbers, "low": slider.low,
            "high": slider.high, "log": slider.log, "charts": charts}  # fmt: skip


def _coarse_first(count: int) -> list[int]:
    """The numbers below `count`, ends first, then ever finer between them."""
    order, step = [0, count - 1], count
    while step > 1:
        step = (step + 1) // 2
        order += range(0, count, step)
    return [one for one in dict.fromkeys([*order, *range(count)]) if 0 <= one < count]


def _numbers(found: Any) -> dict[str, float | None]:
    if isinstance(found, str):
        return {}
    return {
        name: pictures.rounded(float(np.asarray(kind.arrays()[""][1])))
        for name, kind in found.items()
        if panels.is_drawn_over(kind)
    }


def planned(asked: Asked) -> tuple[int, int]:
    """How many systems one piece of a simulation has, and of all; refused where they take too long or too much."""
    use_cache()
    task = _task(asked, 0, asked.samples)
    needed = simulate.systems.memory(*simulate._block(task))
    if needed > MOST_MEMORY:
        raise TooCostly(
            f"systems of size {asked.size} need at least {beforehand.gigabytes(needed)} of memory, and this page "
            f"allows {beforehand.gigabytes(MOST_MEMORY)}; take a smaller size"
        )
    simulate.check([task], compared=False)
    cost = simulate.seconds(task)
    if cost > MOST_SECONDS:
        raise TooCostly(
            f"{asked.samples} systems of size {asked.size} take about {duration(cost)}, and this page allows "
            f"{MOST_SECONDS:.0f} seconds; take a smaller size or fewer systems"
        )
    block = simulate.chunk_size(task.limit, task.limit.usual.samples)
    # Pieces of about half a second, so that points come soon and a stop is heard.
    pieces = max(1, int(0.5 / max(cost / asked.samples * block, 1e-6)))
    return block * min(pieces, -(-asked.samples // block)), asked.samples


def _task(asked: Asked, first: int, samples: int) -> Task:
    return Task(limit_of(asked), asked.size, samples, asked.seed, first)


def add(asked: Asked, first: int, samples: int, before: Any) -> tuple[Any, dict[str, Any]]:
    """Some more systems: everything measured so far, and what of it is drawn."""
    use_cache()
    task = _task(asked, first, samples)
    with bars.progress(samples, "", False) as bar:
        found = simulate.run(task, bar)
    together = (found.results, found.stated)
    if before is not None:
        together = jax.tree.map(lambda *parts: np.concatenate([np.asarray(part) for part in parts]), before, together)
    results, stated = together
    trials = {name: kind.trial(task.size, results[name]) for name, kind in dict(scan.theory(found.limit)).items()}
    if stated:
        shown = dict(predict(task.limit))  # the system whose statements the page draws
        trials |= {
            name: points.beside(shown[name], kind.trial(task.size, results[name], drawn=True))
            for name, kind in stated.items()
        }
    marks: dict[str, Any] = {}
    measured: dict[str, Any] = {}
    for name, trial in trials.items():
        kind = trial.stated
        if panels.is_drawn_over(kind):
            if kind.kind in points.NUMBERS and (one := points.spot(trial)):
                measured[name] = one
        else:
            drawn = panels.picture_of(kind, [trial]).marks
            marks[name] = [pictures.mark(one) for one in drawn if one.role == SIMULATION]
    done = first + samples
    values = values_of(scan.of_size(task.limit, asked.size))  # a parameter that is the size stands where it really is
    return together, {"marks": marks, "measured": measured, "done": done, "size": asked.size, "seed": asked.seed,
                      "asked": values_of(task.limit), "values": values,
                      "sizes": {k: v for k, v in found.sizes.items() if isinstance(v, int)}}  # fmt: skip
