"""`Plan`: which comparisons a sweep makes, as data: what stands in a store, and what a command line asks for."""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from deeplimits.catalogue import catalogue
from deeplimits.errors import OutsideValidity, ParameterError, TooCostly, UnknownName
from deeplimits.lab import beforehand
from deeplimits.lab.compare import check_sizes, tasks_of
from deeplimits.lab.driver import group_of
from deeplimits.lab.predict import MOST_SEED, check_count, limit_of
from deeplimits.lab.rounds import Point
from deeplimits.lab.simulate import memory, numbers, seconds
from deeplimits.lab.sweep import Missing, each, listed
from deeplimits.lab.task import Task
from deeplimits.limit import Limit, values_of
from deeplimits.parameters import LARGEST, parameters_of, shown

MOST_POINTS = 1_000_000
LOOKED_AT = 24
"""Of so many programs the cost is read; that of the others is taken to be the same in the mean."""


@dataclass(frozen=True)
class Plan:
    """A limit at every combination of the values of some parameters."""

    cls: type[Limit]
    fixed: dict[str, Any]
    varying: dict[str, list[Any]]
    sizes: tuple[int, ...] | None = None
    samples: int | None = None
    seed: int = 0
    until: float | None = None
    per_task: int | None = None

    @classmethod
    def of(cls, limit: Any, parameters: dict[str, Any], **run: Any) -> "Plan":
        """The plan for a limit, its class or its name, with values, lists of values, or ranges as 0.1:10:20log."""
        found, fixed = _class_of(limit)
        known = parameters_of(found)
        read = {name: _read(found, known, name, value) for name, value in parameters.items()}
        varying = listed(found, read)
        fixed |= {name: value for name, value in read.items() if name not in varying}
        plan = cls(found, fixed, varying, **run)
        return plan._checked()

    def _checked(self) -> "Plan":
        if math.prod(map(len, self.varying.values())) > MOST_POINTS:
            raise ParameterError(f"more than {MOST_POINTS:,} combinations were asked for; take fewer values")
        sizes = None if self.sizes is None else check_sizes(self.sizes)
        check_count(self.seed, "seed", 0, MOST_SEED)
        if self.per_task is not None:
            check_count(self.per_task, "per_task", 1)
        until = self.until
        if until is not None and not (isinstance(until, int | float) and 0 < until <= LARGEST):
            raise ParameterError(f"until = {shown(until)} is not allowed; it must be a positive number, as 0.01")
        return dataclasses.replace(self, sizes=sizes)

    @property
    def chosen(self) -> bool:
        """Whether the user said how much is simulated."""
        return self.sizes is not None or self.samples is not None or self.until is not None

    def limits(self) -> list[tuple[dict[str, Any], Limit]]:
        """The limits, each with the values that it is one of a sweep by."""
        return [(one, limit_of(self.cls(**{**self.fixed, **one}), {})) for one in each(self.varying)]

    def points(self) -> tuple[list[tuple[dict[str, Any], Point]], list[Missing]]:
        """The comparisons, and the combinations that the theorem does not cover, with the sentence about each."""
        found, refused = [], []
        for values, limit in self.limits():
            try:
                found.append((values, self.point(limit)))
            except (OutsideValidity, TooCostly) as error:
                refused.append(Missing(values, str(error)))
        if not found:
            first = refused[0]
            raise OutsideValidity(f"none of the {len(refused)} combinations can be compared; {first.sentence}")
        return found, refused

    def point(self, limit: Limit) -> Point:
        tasks = tasks_of(limit, self.sizes, self.samples, self.seed)
        for task in tasks:
            _ = task.realised
        return Point(limit, tasks, self.chosen, until=self.until, per_task=self.per_task)

    # As data

    def document(self) -> dict[str, Any]:
        """What `from_document` reads, for a store."""
        limit = self.limits()[0][1] if self.varying else self.cls(**self.fixed)
        values = values_of(limit)
        fixed = {name: values[name] for name in values if name not in self.varying}
        run = {name: getattr(self, name) for name in ("sizes", "samples", "seed", "until", "per_task")}
        run["sizes"] = None if self.sizes is None else list(self.sizes)
        return {"limit": catalogue.name_of(self.cls), "fixed": fixed, "varying": self.varying, **run}

    @classmethod
    def from_document(cls, document: Any) -> "Plan":
        """The plan in a store. Only names of the catalogue are followed: a file says what to compute, not what
        to run.

        What cannot be read is refused in a sentence.
        """
        if not isinstance(document, dict) or not isinstance(document.get("limit"), str):
            raise ParameterError("the store has no plan that can be read; give the limit and its parameters again")
        name = document["limit"]
        if name not in catalogue or catalogue.entry(name).role != "limit":
            raise UnknownName(
                f"the store is about {name[:200]!r}, which is no limit of the catalogue; for a limit of your own call "
                "dl.sweep with its class and the same store"
            )
        parts = {part: document.get(part) or {} for part in ("fixed", "varying")}
        if not all(isinstance(part, dict) for part in parts.values()):
            raise ParameterError("the plan in the store cannot be read; give the limit and its parameters again")
        if not all(isinstance(values, list) for values in parts["varying"].values()):
            raise ParameterError("the plan in the store cannot be read; give the limit and its parameters again")
        found = catalogue.entry(name).load()
        plan = cls(found, parts["fixed"], parts["varying"], document.get("sizes"), document.get("samples"),
                   document.get("seed", 0), document.get("until"), document.get("per_task"))  # fmt: skip
        return plan._checked()


def _class_of(limit: Any) -> tuple[type[Limit], dict[str, Any]]:
    """The class that is meant, and the values it has already."""
    if isinstance(limit, str):
        entry = catalogue.entry(limit)
        if entry.role == "function":
            raise ParameterError(f"{entry.name} is a function and no limit; `deeplimits show {entry.name}` says more")
        return entry.load(), {}
    if isinstance(limit, type) and issubclass(limit, Limit):
        return limit, {}
    limit = limit_of(limit, {})
    return type(limit), {name: getattr(limit, name) for name in parameters_of(type(limit))}


def _read(cls: type, known: dict[str, Any], name: str, value: Any) -> Any:
    """A value, a list, or what a command line would say: 0.1:10:20log."""
    parameter = known.get(name)
    if parameter is None or not isinstance(value, str) or parameter.kind == "choice":
        return value
    try:
        found = parameter.read_many(value)
    except ValueError as error:
        raise ParameterError(
            f"{cls.__name__}: {name} = {value!r} cannot be read ({error}); it must be {parameter.allowed}"
        ) from None
    return found if len(found) > 1 else found[0]


class Estimate(NamedTuple):
    """What a sweep would take."""

    comparisons: int
    refused: int
    tasks: int
    programs: int
    seconds: float
    """Of simulation on one core, without compiling."""
    memory: float
    """Bytes that the largest program needs at least."""
    numbers: float
    """Bytes of results."""

    def __str__(self) -> str:
        from deeplimits.lab.budget import duration

        refused = f" ({self.refused} combinations are refused)" if self.refused else ""
        return (
            f"{self.comparisons} comparisons{refused}, {self.tasks} tasks, {self.programs} programs to compile: about "
            f"{duration(self.seconds)} of simulation on one core; at least {beforehand.gigabytes(self.memory)} of "
            f"memory a process; {beforehand.gigabytes(self.numbers)} of results"
        )


def estimate(points: Sequence[Point], refused: int = 0) -> Estimate:
    """What the first round of some comparisons would take; nothing is compiled."""
    groups: dict[str, list[Task]] = {}
    for point in points:
        for task in point.missing():
            groups.setdefault(group_of(task), []).append(task)
    looked = list(groups.values())
    every = max(1, len(looked) // LOOKED_AT)
    total = size = most = 0.0
    share = 0
    for tasks in looked[::every]:
        share += len(tasks)
        total += seconds(tasks[0]) * len(tasks)
        size += numbers(tasks[0]) * len(tasks)
        most = max(most, memory(tasks[0]))
    count = sum(map(len, looked))
    scale = count / share if share else 1.0
    return Estimate(len(points), refused, count, len(groups), total * scale, most, size * scale)
