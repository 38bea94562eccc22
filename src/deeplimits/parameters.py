"""What a parameter of a limit may be: its default, its range, how it is read and how it is written.

A specification is plain Python and imports nothing heavy, because the command line builds its flags, and `show` its
table, from specifications that stand in the index, without importing JAX.
"""

import dataclasses
import inspect
import itertools
import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from deeplimits.errors import ParameterError

LARGEST = sys.float_info.max


@dataclass(frozen=True, kw_only=True)
class Parameter(ABC):
    """One parameter of a limit."""

    kind: ClassVar[str]
    default: Any
    symbol: str = ""
    doc: str = ""

    @property
    @abstractmethod
    def allowed(self) -> str:
        """The allowed values, as the end of a sentence that begins 'it must be'."""

    @abstractmethod
    def check(self, owner: str, name: str, value: Any) -> None:
        """Raise a ParameterError naming class, field, value and range unless `value` is allowed."""

    @abstractmethod
    def read(self, text: str) -> Any:
        """The value that a user typed."""

    def read_many(self, text: str) -> list[Any]:
        """The values that a user typed, one after the other in a list `a,b,c`."""
        return [self.read(part) for part in text.split(",")]

    def refuse(self, owner: str, name: str, value: Any) -> ParameterError:
        return ParameterError(f"{owner}: {name} = {shown(value)} is not allowed; it must be {self.allowed}")


@dataclass(frozen=True, kw_only=True)
class _Ranged(Parameter):
    low: float
    high: float
    log: bool = False

    @property
    def _interval(self) -> str:
        if math.isinf(self.high):
            return f"at least {shown(self.low)}"
        return f"between {shown(self.low)} and {shown(self.high)}"

    def _inside(self, value: float) -> bool:
        # A whole number may be larger than any that a computer calculates with.
        return -LARGEST <= value <= LARGEST and self.low <= value <= self.high


class Real(_Ranged):
    """A continuous parameter. Traced: gradients pass through it, and a new value does not recompile."""

    kind = "real"

    @property
    def allowed(self) -> str:
        return f"a number {self._interval}"

    def check(self, owner, name, value):
        for entry in _entries(value):
            if not isinstance(entry, float) or not self._inside(entry):
                raise self.refuse(owner, name, entry)

    def read(self, text):
        return float(text)

    def read_many(self, text):
        return list(read_list(text))


class Integer(_Ranged):
    """A count. Static: it decides shapes, so a new value compiles anew."""

    kind = "integer"

    @property
    def allowed(self) -> str:
        return f"a whole number {self._interval}"

    def check(self, owner, name, value):
        if isinstance(value, bool) or not isinstance(value, int) or not self._inside(value):
            raise self.refuse(owner, name, value)

    def read(self, text):
        number = float(text)  # 1e3 is a whole number too
        if not number.is_integer():
            raise ValueError("it is not whole")
        return int(number)

    def read_many(self, text):
        return read_many_whole(text)


@dataclass(frozen=True, kw_only=True)
class Choice(Parameter):
    """One of a few named options. Static."""

    kind = "choice"
    options: tuple[str, ...]

    @property
    def allowed(self) -> str:
        return "one of " + ", ".join(self.options)

    def check(self, owner, name, value):
        if value not in self.options:
            raise self.refuse(owner, name, value)

    def read(self, text):
        return text


class Axis(_Ranged):
    """The points at which a predicted curve is evaluated: increasing numbers within a range. Traced."""

    kind = "axis"

    @property
    def allowed(self) -> str:
        return f"a list of increasing numbers {self._interval}"

    def check(self, owner, name, value):
        entries = _entries(value)
        if getattr(value, "ndim", 1) == 0:
            raise self.refuse(owner, name, value)
        if not entries or not all(isinstance(entry, float) for entry in entries):
            raise self.refuse(owner, name, value)
        for entry in entries:
            if not self._inside(entry):
                raise ParameterError(f"{owner}: {name} contains {shown(entry)}; it must be {self.allowed}")
        if any(right <= left for left, right in itertools.pairwise(entries)):
            raise self.refuse(owner, name, value)

    def read(self, text):
        return read_list(text)

    def read_many(self, text):
        return [self.read(text)]


KINDS = {kind.kind: kind for kind in (Real, Integer, Choice, Axis)}


def parameters_of(limit: type) -> dict[str, Parameter]:
    """The specification of every parameter of a limit's class, by field name: its own before those that it shares."""
    found = {field.name: field.metadata for field in dataclasses.fields(limit) if "parameter" in field.metadata}
    ages = {name: age for age, cls in enumerate(limit.__mro__) for name in inspect.get_annotations(cls)}
    return {name: found[name]["parameter"] for name in sorted(found, key=ages.__getitem__)}


LONGEST = 300
"""Letters of a value that an error repeats."""
MOST_POINTS = 1_000_000
"""Points of a range."""


def read_list(text: str) -> list[float]:
    """Read `0,0.5,1` as a list, and `0.1:10:20` or `0.1:10:20log` as a range with that many points."""
    if ":" not in text:
        return [float(part) for part in text.split(",")]
    parts = text.split(":")
    if len(parts) != 3:
        raise ValueError("a range is first:last:points, as 0.1:10:20")
    start_text, stop_text, count_text = parts
    log = count_text.endswith("log")
    start, stop, count = float(start_text), float(stop_text), int(count_text.removesuffix("log"))
    if not 2 <= count <= MOST_POINTS:
        raise ValueError("a range needs at least two points" if count < 2 else "a range has at most 1,000,000 points")
    if not (math.isfinite(start) and math.isfinite(stop)):
        raise ValueError("a range needs finite ends")
    if log and min(start, stop) <= 0:
        raise ValueError("a logarithmic range needs positive ends")
    if log:
        start, stop = math.log(start), math.log(stop)
    points = [start + (stop - start) * i / (count - 1) for i in range(count)]
    if log:
        inner = [math.exp(point) for point in points[1:-1]]
        points = [float(start_text), *inner, float(stop_text)]
    return points


def read_many_whole(text: str) -> list[int]:
    """Read a list or a range of whole numbers, which ratios of a range meet up to rounding.

    >>> read_many_whole("10:40:4"), read_many_whole("40:160:3log"), read_many_whole("1e3")
    ([10, 20, 30, 40], [40, 80, 160], [1000])
    """
    found = read_list(text)
    for number in found:
        if not math.isfinite(number) or abs(number - round(number)) > (1e-12 * abs(number) if ":" in text else 0):
            raise ValueError(f"{short(number)} is not whole")
    return [round(number) for number in found]


def _entries(value: Any) -> list[Any]:
    """The numbers in a scalar, a list or an array, as Python objects; lists in lists as deep as somebody may write."""
    found, waiting = [], [value]
    while waiting:
        one = waiting.pop()
        one = one.tolist() if hasattr(one, "tolist") else one
        if isinstance(one, Sequence) and not isinstance(one, str):
            waiting.extend(reversed(one))
        elif isinstance(one, int) and not isinstance(one, bool) and abs(one) <= LARGEST:
            found.append(float(one))
        else:
            found.append(one)
    return found


def shown(value: Any) -> str:
    """A value as a sentence writes it, whatever it is: never long.

    >>> shown(2.0), shown(10**5000)
    ('2', 'a number of thousands of digits')
    """
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, float):
        # As it was given: a rounded number may be an allowed one.
        return repr(value).removesuffix(".0")
    try:
        said = repr(value)
    except ValueError:  # a whole number of more digits than Python writes
        return "a number of thousands of digits"
    except RecursionError:
        return "lists in lists"
    return said if len(said) <= LONGEST else f"{said[:LONGEST]}..."


def short(value: float) -> str:
    """A number in six digits, or in as many as it takes not to look like a rounder one that it is not.

    >>> short(2 / 3), short(1.0), short(0.9999999)
    ('0.666667', '1', '0.9999999')
    """
    said = f"{value:.6g}"
    return said if f"{value:.3g}" != said or float(said) == float(f"{value:.12g}") else f"{value:.12g}"
