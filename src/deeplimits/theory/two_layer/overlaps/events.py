"""When something happens along a trajectory: the plateau is left, a student specializes."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp

from deeplimits.errors import ParameterError
from deeplimits.models.committees import Overlaps, Task
from deeplimits.numerics import arguments, flows
from deeplimits.theory.two_layer.overlaps import equations, integration


class Event(NamedTuple):
    """When it happened, and the state then."""

    time: float
    state: Overlaps


def first_time(task: Task, start: Overlaps, condition: Callable[[Overlaps], object], latest: float) -> Event:
    """The first time at which a function of the state, positive at the start, becomes zero; found to rounding.

    >>> task = Task(teacher=[[1.0]], step=0.4, activation="identity")
    >>> half = first_time(task, Overlaps([[0.0]], [[0.5]]), lambda state: 0.5 - state.m[0, 0], latest=10.0)
    >>> round(half.time, 9)  # M = 1 − exp(−t)
    0.693147181
    """
    arguments.of_kind("task", task, Task)
    arguments.of_kind("start", start, Overlaps)
    equations.check(task, start)
    end = float(arguments.number("latest", latest, arguments.POSITIVE))
    if not float(jnp.asarray(condition(start))) > 0:
        raise ParameterError("condition is not positive at the start; what is waited for has happened already")
    students, teachers = start.students, start.teachers
    found = flows.solve_until(
        integration.packed_velocity(task, students),
        integration.pack(start),
        lambda t, y: jnp.asarray(condition(integration.unpack(y, students, teachers))) <= 0,
        latest=end,
        exactly=True,
        rtol=1e-11,
        atol=1e-13,
        most_steps=integration.MOST_STEPS,
        otherwise=f"nothing happened before t = {end:g}; raise latest, change the condition, or take a smaller rate "
        "if the overlaps diverge",
    )
    return Event(float(found.t), integration.unpack(found.state, students, teachers))


def plateau_exit(task: Task, start: Overlaps, plateau_risk: float, latest: float, *, fraction: float = 0.5) -> Event:
    """When the risk falls below a fraction of its plateau value; the start must lie above.

    >>> start = Overlaps([[0.4]], [[0.16]])
    >>> found = plateau_exit(Task([[1.0]], 0.0, activation="identity"), start, 0.18, latest=10.0, fraction=0.25)
    >>> round(found.time, 6)  # R = (1 − M)²/2 falls like e^{−2t}
    0.693147
    """
    arguments.of_kind("task", task, Task)
    arguments.of_kind("start", start, Overlaps)
    if not 0 < fraction < 1:
        raise ParameterError(f"fraction = {fraction} is not allowed; it must lie between 0 and 1")
    return first_time(task, start, lambda state: equations.risk(task, state) - fraction * plateau_risk, latest)


def specialization_time(task: Task, start: Overlaps, latest: float, *, threshold: float = 0.5) -> Event:
    """When some student's largest teacher overlap exceeds its second largest by a fraction of the largest.

    >>> start = Overlaps([[0.3, 0.2], [0.2, 0.3]], [[0.13, 0.12], [0.12, 0.13]])
    >>> found = specialization_time(Task([[1.0, 0.0], [0.0, 1.0]], 0.01), start, latest=100.0)
    >>> largest, second = (float(part) for part in found.state.m[0])
    >>> round((largest - second) / largest, 6)
    0.5
    """
    arguments.of_kind("task", task, Task)
    arguments.of_kind("start", start, Overlaps)
    if task.teachers < 2:
        raise ParameterError("teacher has one unit: there is nothing to specialize on; take two or more")

    def undecided(state: Overlaps):
        ordered = jnp.sort(jnp.abs(state.m), axis=1)
        return threshold - jnp.max((ordered[:, -1] - ordered[:, -2]) / (ordered[:, -1] + 1e-300))

    return first_time(task, start, undecided, latest)
