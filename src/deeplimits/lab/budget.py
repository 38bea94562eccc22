"""What a comparison may take unasked: as many systems as the time allows, at sizes that the parameters allow."""

import dataclasses
from collections.abc import Sequence

from deeplimits.errors import OutsideValidity, TooCostly
from deeplimits.lab.simulate import seconds
from deeplimits.lab.task import Task

BUDGET = 60.0
"""Seconds on one core that a comparison may take unasked."""
FEWEST_UNASKED = 60
"""Below so many systems a comparison says little, and is not made unasked."""
MOST_DOUBLINGS = 4
"""How often the usual sizes are doubled for parameters that need larger ones."""


def large_enough(tasks: Sequence[Task]) -> list[Task]:
    """The same tasks within the time, at sizes doubled as often as the parameters need it.

    Some parameters ask for larger systems than the usual ones (`validity_at`). Where no allowed time suffices for
    those, the sentence about the usual sizes is the answer.
    """
    first: OutsideValidity | None = None
    for factor in (2**power for power in range(MOST_DOUBLINGS + 1)):
        try:
            return within_budget([dataclasses.replace(task, size=factor * task.size) for task in tasks])
        except OutsideValidity as error:
            first = first or error
        except TooCostly:
            if first is None:
                raise
            break
    raise first or TooCostly("no sizes were tried")


def within_budget(tasks: Sequence[Task]) -> list[Task]:
    """The same tasks with as many samples as the time allows, or a sentence about how long they would take.

    At the usual parameters a comparison takes seconds. Others may need a thousand times as many steps: then fewer
    systems are simulated, and the verdict says with what power.
    """
    took = sum(seconds(task) for task in tasks)
    if took <= BUDGET:
        return list(tasks)
    limit, samples, sizes = tasks[0].limit, tasks[0].samples, [task.size for task in tasks]
    fewer = int(samples * BUDGET / took)
    if fewer < min(FEWEST_UNASKED, samples):
        least = min(FEWEST_UNASKED, samples) * took / samples
        raise TooCostly(
            f"{type(limit).__name__} at these parameters takes about {duration(least)} for {FEWEST_UNASKED} systems of "
            f"each of the sizes {', '.join(map(str, sizes))}; to run it nevertheless, give sizes or samples"
        )
    return [dataclasses.replace(task, samples=fewer) for task in tasks]


def duration(seconds: float) -> str:
    """A time in words: 40 seconds, 12 minutes, 3 hours."""
    for unit, name in ((3600.0, "hours"), (60.0, "minutes")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.0f} {name}"
    return f"{max(seconds, 1.0):.0f} seconds"
