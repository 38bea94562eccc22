"""`sweep`: comparisons over a grid of parameters, on many processes or machines, kept in a file."""

import threading
from collections.abc import Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from deeplimits.errors import DeeplimitsError, ParameterError
from deeplimits.lab.compilation import use_cache
from deeplimits.lab.driver import Counts, Driver, interrupts
from deeplimits.lab.lanes import Lanes, chosen_lanes
from deeplimits.lab.plans import Plan
from deeplimits.lab.simulate import check
from deeplimits.lab.store import Store
from deeplimits.lab.sweep import Missing, Sweep
from deeplimits.lab.workers import CEILING
from deeplimits.limit import Limit
from deeplimits.render import sweeping

TIME_LIMIT = 3600.0
"""Seconds that a task may take."""


def sweep(
    limit: Limit | type[Limit] | str,
    *,
    sizes: Sequence[int] | None = None,
    samples: int | None = None,
    seed: int = 0,
    store: str | Path | None = None,
    executor: Executor | Lanes | None = None,
    workers: int | None = None,
    until: float | None = None,
    per_task: int | None = None,
    time_limit: float | None = TIME_LIMIT,
    memory: float = CEILING,
    progress: bool | None = None,
    **parameters: Any,
) -> Sweep:
    """Compare a limit at every combination of values of its parameters.

    A parameter takes a value, a list, an array, or a range as on the command line, `"0.1:10:50log"`. Each combination
    is compared as `compare` does it; what the theorem does not cover is left out, and stands in `.missing`. Results are
    kept in the SQLite file `store` as they come: the same call, made again, computes only what is not there.

    The work is done by `workers` processes (one a core; 0: in this process), or by any `concurrent.futures.Executor`.
    With `until`, samples are added wherever the standard error of a number or a curve, relative to it, or of a
    probability, is above that. Tasks have `per_task` systems (the usual number); one that takes more than `time_limit`
    seconds or `memory` bytes is ended, and costs its combination only.

    >>> import deeplimits as dl
    >>> found = dl.sweep("knn-bias-variance", neighbours=[3, 5], noise=[0.5, 1.0], samples=400, workers=0)
    >>> len(found), found.outcome
    (4, 'agrees')
    """
    run = {"sizes": sizes, "samples": samples, "seed": seed, "until": until, "per_task": per_task}
    plan = Plan.of(limit, parameters, **run)
    check_bounds(time_limit, memory, workers)
    return swept(plan, store, lambda: chosen_lanes(executor, workers, time_limit, memory, plan.cls), progress)


def check_bounds(time_limit: float | None, memory: float, workers: int | None) -> None:
    """Refuse bounds that are none."""
    for name, value, what in (("time_limit", time_limit, "seconds"), ("memory", memory, "bytes")):
        if value is not None and not (isinstance(value, int | float) and value > 0):
            raise ParameterError(f"{name} = {value!r} is not allowed; it must be a positive number of {what}")
    if workers is not None and not (isinstance(workers, int) and 0 <= workers <= 10_000):
        raise ParameterError(f"workers = {workers!r} is not allowed; it must be a whole number, 0 for this process")


def swept(plan: Plan, path: str | Path | None, lanes: Any, progress: bool | None) -> Sweep:
    """Carry a plan out on the lanes that `lanes()` makes, once everything that can be refused is looked at."""
    use_cache()
    store = None if path is None else Store(path)
    try:
        points, refused = plan.points()
        check(points[0][1].tasks)
        stop = threading.Event()
        with sweeping.Progress(progress) as shown:

            def told(counts: Counts) -> None:
                shown.update(counts.tasks, counts.restored, counts.done, counts.failed, counts.left)
                if store is not None:
                    store.plan(document, counts.tasks)

            document = plan.document() if store is not None else {}
            driver = Driver([point for _, point in points], lanes(), store, told, stop)
            with interrupts(stop):
                driver.run()
        return _sweep(plan, points, refused, driver)
    finally:
        if store is not None:
            store.close()


def _sweep(plan: Plan, points: Sequence[tuple[dict[str, Any], Any]], refused: list[Missing], driver: Driver) -> Sweep:
    comparisons = []
    for values, point in points:
        why = driver.failures.get(id(point))
        if why is None:
            try:
                comparisons.append(point.comparison())
                continue
            except DeeplimitsError as error:
                why = str(error)
        refused.append(Missing(values, why, failed=True))
    if not comparisons:
        raise DeeplimitsError(f"all {len(refused)} combinations failed; the first one: {refused[0].sentence}")
    return Sweep(tuple(comparisons), plan.varying, tuple(refused))
