"""What the limits about two-layer networks have in common: where they start, their clocks, their curves."""

from itertools import pairwise
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from deeplimits.errors import OutsideValidity
from deeplimits.limit import replace, whole
from deeplimits.models.committees import Overlaps
from deeplimits.numerics.arguments import known, written
from deeplimits.predictions import Curve


def aligned_start(students: int, teachers: int, overlap: Array, norm: Array) -> Overlaps:
    """Each student leans to one teacher, a third as much to the others; outside the teachers they are orthogonal."""
    own = jnp.arange(students)[:, None] % teachers == jnp.arange(teachers)[None, :]
    m = overlap * jnp.where(own, 1.0, 1 / 3)
    return Overlaps(m, m @ m.T + norm * jnp.eye(students))


def in_dimension(limit: Any, size: int) -> tuple[dict[str, int], Any]:
    """Inputs of so many dimensions, in which the weights of students and teachers fit."""
    d = whole(size, "d", limit, least=limit.students + limit.teachers)
    return {"dimension": d}, replace(limit, dimension=d)


def steps_at(times: Array, steps_per_time: float, owner: object) -> tuple[tuple[int, ...], list[float]]:
    """Numbers of SGD steps nearest to the times wanted, and the times they really take."""
    wanted = np.atleast_1d(np.asarray(times)).tolist()
    steps = tuple(round(t * steps_per_time) for t in wanted)
    if steps[0] < 1:
        raise OutsideValidity(
            f"{type(owner).__name__}: time {written(wanted[0])} is less than half a step of {1 / steps_per_time:.3g} "
            "at this size; take a larger size or later times"
        )
    for (time, one), (later, other) in pairwise(zip(wanted, steps, strict=True)):
        if one == other:
            raise OutsideValidity(
                f"{type(owner).__name__}: times {written(time)} and {written(later)} fall on one step of "
                f"{1 / steps_per_time:.3g} at this size; take a larger size, or times further apart"
            )
    return steps, [count / steps_per_time for count in steps]


def time_curve(times: Array, y: Array, label: str, symbol: str) -> Curve:
    """What is followed over time, with a mean that deviates by O(1/size)."""
    return Curve(times, y, axis="time", axis_symbol="t", label=label, symbol=symbol, rate=1.0)


def no_room(limit: Any) -> tuple[str, ...]:
    """The sentence for a dimension in which p + k weight vectors cannot be independent, if it is one."""
    fields = limit.students + limit.teachers
    if not known(limit.dimension) or float(limit.dimension) >= fields:
        return ()
    return (f"dimension = {written(limit.dimension)} is below p + k = {fields}",)
