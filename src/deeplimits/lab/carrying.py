"""What a worker does with the tasks of a sweep: carry them out, one after the other, whatever becomes of each."""

import functools
import time
from collections.abc import Sequence
from threading import Event
from typing import Any

import jax
import numpy as np

from deeplimits.errors import DeeplimitsError
from deeplimits.lab.outcomes import Outcome
from deeplimits.lab.task import Task
from deeplimits.lab.workers import TaskTooLarge, TaskTooLong, WorkerDied, Workers


class _NoBar:
    def update(self, count: int) -> None:
        pass


def carry_out(tasks: Sequence[Task], stop: Event | None = None) -> list[Outcome]:
    """The outcome of each task; one that fails costs itself only."""
    return [_outcome(task, stop) for task in tasks]


def _outcome(task: Task, stop: Event | None) -> Outcome:
    from deeplimits.lab.compilation import few_threads
    from deeplimits.lab.simulate import check, run

    began = time.perf_counter()
    try:
        with few_threads(task.size):
            check([task], compared=False)
            found = run(task, _NoBar(), stop)
    except Exception as error:
        return Outcome(sentence=sentence(error), seconds=time.perf_counter() - began)
    stated = tuple(np.asarray(leaf) for leaf in jax.tree.leaves(found.stated))
    return Outcome(dict(found.results), stated, seconds=time.perf_counter() - began)


def sentence(error: BaseException) -> str:
    """What went wrong, in one line."""
    if isinstance(error, MemoryError):
        return "there is not enough memory for this; take a smaller size"
    said = str(error)
    if "Traceback" in said:  # of a function that a compiled program calls: what it raised stands at the end
        said = said.strip().splitlines()[-1]
    said = " ".join(said.split())
    return said[:1000] if isinstance(error, DeeplimitsError) and said else f"{type(error).__name__}: {said}"[:1000]


def carry_out_apart(tasks: Sequence[Task], time_limit: float | None, ceiling: float) -> tuple[str, Any]:
    """`carry_out` in a process of the house beside this one, where another system's worker calls it.

    So a task runs under the same conditions everywhere, with the same bits, and can be ended there too. What ended it
    is returned as a name and a sentence, since the other system may not have the classes to raise.
    """
    try:
        return "", _beside(time_limit, ceiling).submit(carry_out, tasks).result()
    except (TaskTooLarge, TaskTooLong, WorkerDied) as error:
        return type(error).__name__, str(error)


@functools.cache
def _beside(time_limit: float | None, ceiling: float) -> Workers:
    return Workers(1, time_limit=time_limit, ceiling=ceiling)


ENDED = {one.__name__: one for one in (TaskTooLarge, TaskTooLong, WorkerDied)}
