"""`Showcase`: how a limit is shown to a reader, apart from how it is tested.

The usual run of a limit (`Limit.usual`) is small, so that a comparison takes seconds. A showcase says at which
parameters, over which range and at which size the phenomenon is seen. What it leaves out is made from the parameter
fields, so that every limit has one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Showcase:
    """Where and how a limit is shown.

    >>> Showcase(parameters={"gamma": 2.0}, see="The risk falls again beyond the threshold.").over
    ''
    """

    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Values of parameters that differ from the defaults."""
    size: int = 0
    """The size of the systems that are drawn beside the theory; 0 is the largest of the usual ones."""
    samples: int = 0
    """How many of them; 0 is as many as take about a second."""
    over: str = ""
    """The continuous parameter over which numbers are drawn; the first one, if none is named."""
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """The part of a parameter's range that is worth seeing, where that is less than all of it."""
    first: str = ""
    """The result that is shown large; the first curve, spectrum or law, or else the first result, if none is named."""
    fine: int = 0
    """Points of a line along its own axis, where the theory takes seconds for each; 0 is as many as look smooth."""
    see: str = ""
    """One sentence: what is to be seen."""


def log_points(first: float, last: float, count: int) -> tuple[float, ...]:
    """So many points at equal ratios, rounded to three digits.

    >>> log_points(0.1, 10.0, 3)
    (0.1, 1.0, 10.0)
    """
    ratio = (last / first) ** (1 / (count - 1))
    return tuple(float(f"{first * ratio**index:.3g}") for index in range(count))
