"""`Point`: one comparison, and which simulations it still needs.

A comparison is made of blocks of seeds. What it needs may depend on what was found: more samples where it decided
nothing, or where a standard error is still too large. What was drawn is kept: system number i of a seed and a size is
the same, whatever was drawn beside it.
"""

import dataclasses
import math
from collections.abc import Sequence

import jax
import numpy as np

from deeplimits import statistics
from deeplimits.errors import DeeplimitsError
from deeplimits.lab.budget import large_enough, within_budget
from deeplimits.lab.comparison import Comparison, judge
from deeplimits.lab.predict import Prediction, theory
from deeplimits.lab.simulate import Simulation, chunk_size
from deeplimits.lab.task import Task
from deeplimits.limit import Limit
from deeplimits.predictions import Curve, Kind, Probability, Trial, Value
from deeplimits.predictions.base import DISAGREES

MOST_ROUNDS = 3
"""How often a comparison that decided nothing is made again, larger."""


def enlarged(found: Comparison, tasks: Sequence[Task]) -> list[Task] | None:
    """What may decide a comparison that did not: four times the samples, a third size, or sizes twice as large.

    A limit is refuted by what stays as the size grows. So a disagreement with what is stated of the limit only is
    looked at again at sizes twice as large, with no fewer samples. None where nothing of this fits the time, or the
    limit has no such sizes.
    """
    disagreeing = [found.predictions[name] for name, one in found.findings.items() if one.outcome == DISAGREES]
    if any(kind.exact for kind in disagreeing):
        return None
    lacks = {"sizes"} if disagreeing else {finding.lacks for finding in found.findings.values()}
    samples = tasks[0].samples * (4 if "samples" in lacks else 1)
    sizes = [task.size for task in tasks]
    if "sizes" in lacks:
        sizes = _three(sizes) if len(set(sizes)) < 3 and not disagreeing else [2 * size for size in sizes]
    larger = [dataclasses.replace(tasks[0], size=size, samples=samples) for size in sizes]
    try:
        larger = within_budget(larger)
    except DeeplimitsError:
        return None
    least = tasks[0].samples + ("samples" in lacks) if disagreeing or "samples" in lacks else 0
    return larger if larger[0].samples >= least else None


def _three(sizes: Sequence[int]) -> list[int]:
    """Two sizes, and their geometric mean between them."""
    low, high = min(sizes), max(sizes)
    return sorted({low, round((low * high) ** 0.5), high})


MOST_TIMES = 64
"""So many times the samples asked for are drawn at most to bring a standard error down."""


class Point:
    """A limit to be compared: `tasks` one for each size, all from system 0 on.

    Where sizes and samples are not `chosen` by the user they are enlarged until the comparison decides. With `until`,
    samples are added while a standard error is above it (see `error_of`). Blocks have `per_task` systems, or the usual
    number.
    """

    def __init__(
        self,
        limit: Limit,
        tasks: Sequence[Task],
        chosen: bool,
        *,
        until: float | None = None,
        per_task: int | None = None,
    ):
        self.limit, self.until, self.per_task = limit, until, per_task
        self.chosen = chosen or until is not None
        self.tasks = list(tasks) if self.chosen else large_enough(tasks)
        self.prediction: Prediction | None = None
        self.asked = self.tasks[0].samples
        self.rounds = 0
        self._done: dict[int, dict[int, Simulation]] = {}
        self._comparison: Comparison | None = None

    def missing(self) -> list[Task]:
        """The blocks of seeds that are not there yet."""
        found = []
        for task in self.tasks:
            first = sum(map(_count, self._done.get(task.size, {}).values()))
            if first < task.samples:
                rest = dataclasses.replace(task, first=first, samples=task.samples - first)
                found += self._blocks(rest)
        return found

    def _blocks(self, task: Task) -> list[Task]:
        """Blocks of one length, so that they share a program; what is left over goes with the last one."""
        if self.per_task is None:
            length = chunk_size(self.limit, self.limit.usual.samples)
            length *= max(1, round(self.limit.usual.samples / length))
        else:
            length = self.per_task
        *whole, last = task.blocks(length)
        if whole and last.samples < length:
            last = dataclasses.replace(whole.pop(), samples=length + last.samples)
        return [*whole, last]

    def take(self, task: Task, simulation: Simulation) -> None:
        """What came of a block; blocks may come in any order."""
        self._done.setdefault(task.size, {})[task.first] = simulation
        self._comparison = None

    def advance(self) -> bool:
        """Once all is there: whether more is wanted after all, which is then missing."""
        larger = None
        if self.until is not None:
            larger = self._more_precise(self.until)
        elif not self.chosen and self.rounds < MOST_ROUNDS and not self.comparison().agrees:
            larger = enlarged(self.comparison(), self.tasks)
        if larger is None:
            return False
        self.rounds += 1
        self.tasks, self._comparison = larger, None
        return bool(self.missing())

    def comparison(self) -> Comparison:
        """What the simulations say; all must be there."""
        if self._comparison is None:
            self.prediction = self.prediction or theory(self.limit)
            self._comparison = judge(self.prediction, self.tasks, [self._simulation(task) for task in self.tasks])
        return self._comparison

    def _simulation(self, task: Task) -> Simulation:
        """All systems of a task in one piece, in their order."""
        parts = [part for _, part in sorted(self._done[task.size].items())]
        if len(parts) == 1 and _count(parts[0]) == task.samples:
            return parts[0]

        def joined(*arrays):
            return np.concatenate([np.asarray(one) for one in arrays])[: task.samples]

        results = {name: joined(*(part[name] for part in parts)) for name in parts[0]}
        stated = jax.tree.map(joined, *(part.stated for part in parts)) if parts[0].stated else {}
        return dataclasses.replace(parts[0], results=results, stated=stated)

    def _more_precise(self, until: float) -> list[Task] | None:
        """The same tasks with as many samples as bring the largest standard error down, at most four times as many."""
        error = self.error()
        most = MOST_TIMES * self.asked
        samples = self.tasks[0].samples
        if error <= until or samples >= most:
            return None
        wanted = samples * min(4.0, 1.1 * (error / until) ** 2)
        # In steps of what was asked for, so that blocks have one length.
        samples = min(most, math.ceil(wanted / self.asked) * self.asked)
        return [dataclasses.replace(task, samples=samples) for task in self.tasks]

    def error(self) -> float:
        """The largest standard error of all numbers and curves, at any size; see `error_of`."""
        trials = self.comparison().trials.values()
        return max((error_of(trial) for group in trials for trial in group), default=0.0)


def _count(simulation: Simulation) -> int:
    return len(next(iter(simulation.results.values())))


def error_of(trial: Trial) -> float:
    """The standard error of what was measured: of a number relative to it, of a curve relative to its largest value.

    That of a probability is counted as it is. It is estimated as if it had happened once more, and once more not, so
    that eight successes of eight are not certainty. Other kinds have none, and ask for no samples.
    """
    kind: Kind = trial.stated
    if isinstance(kind, Probability) or (isinstance(kind, Curve) and kind.event):
        count = len(trial.measured)
        share = (trial.measured.sum(axis=0) + 1) / (count + 2)
        return float(np.max(np.sqrt(share * (1 - share) / (count + 2))))
    if not isinstance(kind, Value | Curve) or len(trial.measured) < statistics.FEWEST_SAMPLES:
        return 0.0
    mean = statistics.mean_of(trial.measured)
    largest = float(np.max(np.abs(mean.value)))
    error = float(np.sqrt(np.max(mean.variance)))
    return error / largest if largest > 0 else 0.0
