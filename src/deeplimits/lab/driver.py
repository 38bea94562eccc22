"""The driver of a sweep: hands out what is missing, keeps what comes back, and knows what to do when nothing does.

Only the driver writes to the store. A result is kept when it arrives, by its key, so that a driver that dies loses what
was in flight and nothing else, and a result that arrives twice is one result.
"""

import contextlib
import signal
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from dataclasses import dataclass, field
from typing import Any

import jax

from deeplimits.errors import DeeplimitsError
from deeplimits.lab.carrying import sentence
from deeplimits.lab.lanes import Lanes
from deeplimits.lab.outcomes import Outcome
from deeplimits.lab.rounds import Point
from deeplimits.lab.simulate import Simulation, stated_structure
from deeplimits.lab.store import Store
from deeplimits.lab.task import Task, digest
from deeplimits.lab.workers import TaskTooLarge, TaskTooLong, WorkerDied
from deeplimits.limit import values_of
from deeplimits.parameters import parameters_of

TARGET = 1.0
"""Seconds that a bundle should take."""
LARGEST_BUNDLE = 64
DEEP = 2
"""Bundles given to a lane at once: one that it works on, and one that waits."""
MOST_ATTEMPTS = 2
"""How often a task is tried whose worker dies."""
LOOK = 0.2
"""Seconds between two looks at what came back."""
SAY = 0.5
"""Seconds between two words about how far it is."""


class SweepStopped(DeeplimitsError):
    """A sweep ended before it was done; what it found is kept, and the sentence says how to go on."""

    interrupted = False


@dataclass
class Job:
    """A task on its way, with everybody who waits for it."""

    task: Task
    key: str
    group: str
    waiting: list[tuple[Point, Task]]
    attempts: int = 0


@dataclass
class Counts:
    """How far a sweep is."""

    tasks: int = 0
    restored: int = 0
    done: int = 0
    failed: int = 0
    systems: int = 0
    seconds: float = 0.0
    """Of computing, summed over workers."""
    left: float | None = None
    """About how many seconds the rest will take; None where nothing is known yet."""


class _Means:
    """Mean seconds of a task, by group and overall."""

    def __init__(self):
        self._sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0])

    def add(self, group: str, seconds: float) -> None:
        for place in (group, ""):
            self._sums[place][0] += seconds
            self._sums[place][1] += 1

    def of(self, group: str) -> float | None:
        total, count = self._sums.get(group) or self._sums.get("") or (0.0, 0)
        return total / count if count else None


@dataclass
class Driver:
    """Carries out all that some points need.

    `told` is called with the counts whenever something arrived. After `run`, `failures` has a sentence for each point
    that could not be completed.
    """

    points: Sequence[Point]
    lanes: Lanes
    store: Store | None = None
    told: Callable[[Counts], None] = lambda counts: None
    stop: threading.Event = field(default_factory=threading.Event)
    most_in_flight: int = DEEP

    def __post_init__(self):
        self.counts = Counts()
        self.failures: dict[int, str] = {}
        self._open: dict[int, int] = {}
        """How many tasks each point waits for."""
        self._jobs: dict[str, Job] = {}
        self._queues: dict[str, deque[Job]] = defaultdict(deque)
        self._alone: deque[Job] = deque()
        self._flying: dict[Future, tuple[int, list[Job]]] = {}
        self._last: dict[int, str] = {}
        self._means = _Means()
        self._said = 0.0
        self._kept: dict[str, Outcome] = {}
        """Results of this run, where there is no store."""

    def run(self) -> Counts:
        """Until all is done, or `stop` is set; then `SweepStopped` says so."""
        finished = False
        try:
            for point in self.points:
                self._ask(point)
                if self.stop.is_set():
                    break
            self._say(now=True)
            while (self._flying or self._waiting) and not self.stop.is_set():
                if why := self.lanes.lost():
                    raise SweepStopped(f"{why}; {self._kept_so_far()}")
                self._feed()
                done, _ = wait(self._flying, timeout=LOOK, return_when=FIRST_COMPLETED)
                self._land(done)
            if self.stop.is_set():
                stopped = SweepStopped(f"interrupted; {self._kept_so_far()}")
                stopped.interrupted = True
                raise stopped
            finished = True
        finally:
            self.lanes.close(now=not finished)
        return self.counts

    def _kept_so_far(self) -> str:
        found = self.counts.done + self.counts.restored
        if self.store is None:
            return "nothing is kept without a store: give store=FILE"
        return (
            f"{found} of {self.counts.tasks} results are in {self.store.path}, and the same command goes on from there"
        )

    @property
    def _waiting(self) -> int:
        return len(self._alone) + sum(map(len, self._queues.values()))

    # Points

    def _ask(self, point: Point) -> None:
        """Queue what a point needs; what is known already is not computed again."""
        place = id(point)
        while place not in self.failures:
            try:
                missing = [(task, task.key, group_of(task)) for task in point.missing()]
            except DeeplimitsError as error:
                self._give_up(point, str(error))
                return
            queued = [self._ask_for(point, *one) for one in missing]
            self._open[place] = sum(queued)
            if any(queued) or not self._advance(point):
                return

    def _ask_for(self, point: Point, task: Task, key: str, group: str) -> bool:
        """Whether a task must be waited for."""
        if key in self._jobs:
            self._jobs[key].waiting.append((point, task))
            return True
        known = self._kept.get(key) if self.store is None else self.store.get(key)
        if known is not None and known.good:
            self.counts.tasks += 1
            self.counts.restored += 1
            point.take(task, _simulation(task, known))
            return False
        self.counts.tasks += 1
        self._jobs[key] = Job(task, key, group, [(point, task)])
        self._queues[group].append(self._jobs[key])
        return True

    def _advance(self, point: Point) -> bool:
        """Whether a point that has all it asked for asks for more."""
        try:
            return point.advance()
        except DeeplimitsError as error:
            self._give_up(point, str(error))
            return False

    def _give_up(self, point: Point, why: str) -> None:
        self.failures.setdefault(id(point), why)

    # Bundles

    def _feed(self) -> None:
        """Give every lane enough to do."""
        lanes = self.lanes.count()
        loads: dict[int, int] = defaultdict(int)
        for lane, _ in self._flying.values():
            loads[lane] += 1
        for depth in range(1, self.most_in_flight + 1):
            for lane in range(lanes):
                if loads[lane] < depth and self._waiting:
                    bundle = self._bundle(lane, lanes)
                    self._flying[self._submitted(lane, bundle)] = (lane, bundle)
                    loads[lane] += 1

    def _submitted(self, lane: int, bundle: list[Job]) -> Future:
        try:
            return self.lanes.submit(lane, [job.task for job in bundle])
        except Exception as error:  # a class that no other process can find, an executor that was shut down
            failed: Future = Future()
            failed.set_exception(error)
            return failed

    def _bundle(self, lane: int, lanes: int) -> list[Job]:
        """The next tasks of a lane, of the shape it had last if there are any: what is compiled there is used there."""
        if self._alone:
            return [self._alone.popleft()]
        group = self._last.get(lane, "")
        if not self._queues.get(group):
            taken = set(self._last.values())
            free = [name for name, queue in self._queues.items() if queue and name not in taken]
            group = max(
                free or [name for name, queue in self._queues.items() if queue], key=lambda n: len(self._queues[n])
            )
        self._last[lane] = group
        queue = self._queues[group]
        mean = self._means.of(group)
        count = 1 if mean is None else int(min(LARGEST_BUNDLE, max(1.0, TARGET / max(mean, 1e-6))))
        count = max(1, min(count, len(queue), -(-self._waiting // (2 * lanes))))
        bundle = [queue.popleft() for _ in range(count)]
        if not queue:
            del self._queues[group]
        return bundle

    def _land(self, futures: Any) -> None:
        """Take what came back."""
        results: dict[str, tuple[dict[str, Any], Outcome]] = {}
        landed: list[tuple[Job, Outcome]] = []
        for future in futures:
            _, jobs = self._flying.pop(future)
            for job in jobs:
                job.attempts += 1
            try:
                outcomes = self.lanes.outcomes(future)
            except (WorkerDied, TaskTooLong, TaskTooLarge) as error:
                once_more = len(jobs) > 1 or (isinstance(error, WorkerDied) and jobs[0].attempts < MOST_ATTEMPTS)
                if once_more:  # one by one, so that the culprit shows
                    self._alone.extend(jobs)
                    continue
                outcomes = [Outcome(sentence=str(error))]
            except (BrokenExecutor, CancelledError) as error:
                why = self.lanes.lost() or f"the workers are gone ({sentence(error)})"
                self._keep(results, landed)
                raise SweepStopped(f"{why}; {self._kept_so_far()}") from None
            except Exception as error:
                if why := self.lanes.lost():
                    self._keep(results, landed)
                    raise SweepStopped(f"{why}; {self._kept_so_far()}") from None
                outcomes = [Outcome(sentence=sentence(error)) for _ in jobs]
            for job, outcome in zip(jobs, outcomes, strict=True):
                found = Outcome(outcome.measured, outcome.stated, outcome.sentence, outcome.seconds, job.attempts)
                results[job.key] = (_described(job.task), found)
                landed.append((job, found))
        if landed:
            self._keep(results, landed)
            self._say()

    def _keep(self, results: dict[str, tuple[dict[str, Any], Outcome]], landed: list[tuple[Job, Outcome]]) -> None:
        """Write results down, then let those who wait for them have them."""
        if self.store is not None and results:
            self.store.put(results)
        complete: list[Point] = []
        for job, outcome in landed:
            del self._jobs[job.key]
            if self.store is None and outcome.good:
                self._kept[job.key] = outcome
            self.counts.seconds += outcome.seconds
            self.counts.done += outcome.good
            self.counts.failed += not outcome.good
            if outcome.good:
                self._means.add(job.group, outcome.seconds)
                self.counts.systems += job.task.samples
            for point, task in job.waiting:
                if outcome.good:
                    point.take(task, _simulation(task, outcome))
                else:
                    self._give_up(point, outcome.sentence)
                self._open[id(point)] -= 1
                if self._open[id(point)] == 0:
                    complete.append(point)
        for point in complete:
            if id(point) not in self.failures and self._advance(point):
                self._ask(point)

    def _say(self, now: bool = False) -> None:
        if not now and self._jobs and time.monotonic() - self._said < SAY:
            return
        self._said = time.monotonic()
        left, known = 0.0, True
        for job in self._jobs.values():
            mean = self._means.of(job.group)
            known, left = known and mean is not None, left + (mean or 0.0)
        self.counts.left = left / max(1, self.lanes.count()) if known else None
        self.told(self.counts)


def _described(task: Task) -> dict[str, Any]:
    """A task in words, for whoever reads the store."""
    cls = type(task.limit)
    return {"limit": f"{cls.__module__}.{cls.__qualname__}", "values": values_of(task.limit), "size": task.size,
            "samples": task.samples, "seed": task.seed, "first": task.first}  # fmt: skip


def group_of(task: Task) -> str:
    """What tasks have in common that run in one compiled program."""
    cls, values = type(task.limit), values_of(task.limit)
    static = {name: values[name] for name, one in parameters_of(cls).items() if one.kind not in ("real", "axis")}
    axes = {name: len(values[name]) for name, one in parameters_of(cls).items() if one.kind == "axis"}
    sizes = {name: repr(value) for name, value in task.realised.sizes.items()}
    return digest(cls.__module__, cls.__qualname__, static, axes, sizes, task.samples, task.size)


def _simulation(task: Task, outcome: Outcome) -> Simulation:
    """A block's simulation, from the numbers that were kept of it."""
    sizes, realised = task.realised
    stated = {}
    if outcome.stated:
        stated = jax.tree.unflatten(stated_structure(task), outcome.stated)
    return Simulation(realised, sizes, task.seed, outcome.measured, stated)


@contextlib.contextmanager
def interrupts(stop: threading.Event) -> Iterator[None]:
    """Inside, an interrupt sets `stop`; a second one ends the process as usual."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def first(*_: Any) -> None:
        stop.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)

    usual = signal.signal(signal.SIGINT, first)
    # Who else listens (see `guard`) would end the process at once.
    listening = signal.set_wakeup_fd(-1)
    try:
        yield
    finally:
        signal.set_wakeup_fd(listening)
        signal.signal(signal.SIGINT, usual)
