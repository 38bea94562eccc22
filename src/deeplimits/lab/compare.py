"""`compare`: theory against simulation, with a verdict."""

import contextlib
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any, overload

from deeplimits import statistics
from deeplimits.errors import ParameterError
from deeplimits.lab.comparison import Comparison
from deeplimits.lab.compilation import few_threads, threads, use_cache
from deeplimits.lab.predict import MOST_SEED, check_count, limit_of, theory
from deeplimits.lab.rounds import Point
from deeplimits.lab.simulate import Simulation, check, run
from deeplimits.lab.sweep import Sweep, each, listed
from deeplimits.lab.task import Task
from deeplimits.limit import Limit, require_valid
from deeplimits.parameters import read_many_whole
from deeplimits.render import bars

Sizes = Sequence[int | float] | str
"""Whole numbers, as (100, 200, 400); or as on the command line, "100:400:4"."""


@overload
def compare(
    limit: Limit | str,
    sizes: Sizes | None = None,
    samples: int | float | None = None,
    seed: int = 0,
    progress: bool | None = None,
    **parameters: float | str,
) -> Comparison: ...


@overload
def compare(
    limit: Limit | str,
    sizes: Sizes | None = None,
    samples: int | float | None = None,
    seed: int = 0,
    progress: bool | None = None,
    **parameters: Any,
) -> Comparison | Sweep: ...


def compare(
    limit: Limit | str,
    sizes: Sizes | None = None,
    samples: int | float | None = None,
    seed: int = 0,
    progress: bool | None = None,
    **parameters: Any,
) -> Comparison | Sweep:
    """Simulate at several sizes and judge every prediction of the limit.

    The limit may be given by its name in the catalogue, with values of its parameters. A list of values of one
    parameter makes a comparison for each, with one table and one figure over the parameter.
    At each size the theory is evaluated at the ratios the finite system really has. What is left of the gap at
    infinite size is tested against a threshold from the false-alarm budget of the whole catalogue; see
    `deeplimits.statistics`.

    >>> import deeplimits as dl
    >>> dl.compare(dl.limits.KnnBiasVariance(neighbours=5), samples=2000).agrees
    True
    """
    if varying := listed(limit, parameters):
        limits = [limit_of(limit, {**parameters, **one}) for one in each(varying)]
        # A value that is refused is refused before the first is run.
        tasks = [tasks_of(one, sizes, samples, seed) for one in limits]
        chosen = sizes is not None or samples is not None
        found = (compared(one, own, progress, chosen) for one, own in zip(limits, tasks, strict=True))
        return Sweep(tuple(found), varying)
    limit = limit_of(limit, parameters)
    return compared(limit, tasks_of(limit, sizes, samples, seed), progress, sizes is not None or samples is not None)


def tasks_of(limit: Limit, sizes: Sizes | None = None, samples: int | float | None = None, seed: int = 0) -> list[Task]:
    """The simulations of a comparison, as asked for; refused in a sentence where they cannot be made."""
    sizes = check_sizes(limit.usual.sizes if sizes is None else sizes)
    samples = check_count(limit.usual.samples if samples is None else samples, "samples", statistics.FEWEST_SAMPLES)
    seed = check_count(seed, "seed", 0, MOST_SEED)
    require_valid(limit)
    return [Task(limit, size, samples, seed) for size in sizes]


def check_sizes(sizes: Any) -> tuple[int, ...]:
    """Sizes in increasing order, or a sentence about them; "10:40:4" as on the command line is a list, too."""
    asked = sizes
    if isinstance(sizes, str):
        with contextlib.suppress(ValueError, OverflowError):
            sizes = read_many_whole(sizes)
    if isinstance(sizes, str) or not isinstance(sizes, Iterable):
        raise ParameterError(
            f"sizes = {asked!r} is not allowed; it must be a list of whole numbers, as (100, 200, 400) or '100:400:4'"
        )
    found = sorted(check_count(size, "sizes") for size in sizes)
    if not found:
        raise ParameterError("sizes = [] is not allowed; it must have at least one whole number")
    return tuple(found)


WHOLE = 2**63
"""All systems of a size are one block: here they run one after the other anyway."""


def compared(limit: Limit, tasks: list[Task], progress: bool | None, chosen: bool) -> Comparison:
    """The comparison that these tasks make; enlarged, unless `chosen` by the user, until it decides."""
    use_cache()
    return carried_out(Point(limit, tasks, chosen, per_task=WHOLE), progress)


def carried_out(point: Point, progress: bool | None) -> Comparison:
    """Run all that a point needs, in this process."""
    check(point.tasks)
    while missing := point.missing():
        for task, simulation in _run(point, missing, progress):
            point.take(task, simulation)
        point.advance()
    return point.comparison()


def _run(point: Point, missing: Sequence[Task], progress: bool | None) -> list[tuple[Task, Simulation]]:
    """Tasks carried out; their programs, and that of the theory, are compiled side by side."""
    with (
        bars.progress(sum(task.samples for task in missing), "comparing", progress) as bar,
        few_threads(max(task.size for task in missing)),
        ThreadPoolExecutor(min(threads(), len(missing)) + 1) as pool,
    ):
        # The largest size's program first, and the theory beside them. This thread only waits: an interrupt that
        # arrived in the middle of a compilation would end the process.
        stop = Event()
        first = None if point.prediction else pool.submit(theory, point.limit)
        running = [(task, pool.submit(run, task, bar, stop)) for task in reversed(missing)]
        try:
            if first is not None:
                point.prediction = first.result()
            return [(task, future.result()) for task, future in running]
        except BaseException:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
            raise
