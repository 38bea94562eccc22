"""Where the tasks of a sweep run: lanes, each of which works on one bundle of tasks at a time.

Tasks of one shape are sent along one lane as far as possible, so that they are compiled once. Lanes are processes of
the house, the workers of a dask cluster, the threads or processes of any `concurrent.futures.Executor`, or this one.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from threading import Event
from typing import Any

from deeplimits.errors import ParameterError
from deeplimits.lab.carrying import carry_out
from deeplimits.lab.outcomes import Outcome
from deeplimits.lab.task import Task
from deeplimits.lab.workers import CEILING, Workers, cores


class Lanes(ABC):
    """Some lanes, numbered from 0."""

    @abstractmethod
    def count(self) -> int:
        """How many there are now; there may be more or fewer later."""

    @abstractmethod
    def submit(self, lane: int, tasks: Sequence[Task]) -> Future:
        """Have a lane carry out a bundle."""

    def outcomes(self, future: Future) -> list[Outcome]:
        """What became of a bundle; raises what ended it."""
        return future.result()

    def lost(self) -> str:
        """Why nothing more can be expected from any lane; empty while all is well."""
        return ""

    @abstractmethod
    def close(self, now: bool) -> None:
        """End the lanes: `now`, with whatever they are doing, or when they are done."""


class Processes(Lanes):
    """Spawned, recycled processes of one thread each."""

    def __init__(self, count: int | None = None, time_limit: float | None = None, ceiling: float = CEILING):
        number = cores() if count is None else count
        if number < 1:
            raise ParameterError(f"workers = {count} is not allowed; it must be a whole number of at least 1")
        self._lanes = [Workers(1, time_limit=time_limit, ceiling=ceiling) for _ in range(number)]

    def count(self) -> int:
        return len(self._lanes)

    def submit(self, lane: int, tasks: Sequence[Task]) -> Future:
        return self._lanes[lane].submit(carry_out, tasks)

    def close(self, now: bool) -> None:
        for lane in self._lanes:
            lane.stop() if now else lane.shutdown()


class AnyExecutor(Lanes):
    """An executor that the user gives, and keeps. Which of its workers a bundle goes to is its own affair."""

    def __init__(self, executor: Executor):
        if not isinstance(executor, Executor):
            raise ParameterError(
                f"executor = {executor!r} is not allowed; it must be a concurrent.futures.Executor, as "
                "ProcessPoolExecutor(4) or client.get_executor() of dask"
            )
        self._executor = executor

    def count(self) -> int:
        return max(1, int(getattr(self._executor, "_max_workers", 0) or cores()))

    def submit(self, lane: int, tasks: Sequence[Task]) -> Future:
        return self._executor.submit(carry_out, tasks)

    def close(self, now: bool) -> None:
        pass


class Here(Lanes):
    """One lane in this process: for a GPU, where seeds run side by side, and for classes only this process knows."""

    def __init__(self):
        self._stop = Event()
        self._thread = ThreadPoolExecutor(1)

    def count(self) -> int:
        return 1

    def submit(self, lane: int, tasks: Sequence[Task]) -> Future:
        return self._thread.submit(carry_out, tasks, self._stop)

    def close(self, now: bool) -> None:
        if now:
            self._stop.set()
        self._thread.shutdown(cancel_futures=now)


def usual_lanes(workers: int | None, time_limit: float | None, ceiling: float, cls: type) -> Lanes:
    """Processes, unless the device is shared or the class cannot be found from another process."""
    import jax

    only_here = cls.__module__ == "__main__" or "<locals>" in cls.__qualname__
    if workers == 0 or (workers is None and (only_here or jax.default_backend() != "cpu")):
        return Here()
    return Processes(workers, time_limit, ceiling)


def chosen_lanes(executor: Any, workers: int | None, time_limit: float | None, ceiling: float, cls: type) -> Lanes:
    """The lanes that were asked for."""
    if isinstance(executor, Lanes):
        return executor
    if executor is not None:
        return AnyExecutor(executor)
    return usual_lanes(workers, time_limit, ceiling, cls)
