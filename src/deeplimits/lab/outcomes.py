"""`Outcome`: what became of a task, and how it stands in a store: rows of plain numbers with a digest."""

import hashlib
import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from deeplimits.errors import DeeplimitsError

DTYPES = ("<f8", "<c16", "<c8", "<f4", "<i8", "<i4", "<u8", "<u4", "|b1", "|i1", "|u1")
"""Numbers that a store holds; nothing else is read from one."""
DONE, FAILED = "done", "failed"
MEASURED, STATED = "measured", "stated"


@dataclass(frozen=True)
class Outcome:
    """What became of a task: its numbers, or a sentence why there are none."""

    measured: dict[str, np.ndarray] = field(default_factory=dict)
    """The measurements by name, a row for each system."""
    stated: tuple[np.ndarray, ...] = ()
    """The arrays of what the theory says of each of these very systems, in the order of their tree."""
    sentence: str = ""
    """Why the task failed; empty where it did not."""
    seconds: float = 0.0
    attempts: int = 1

    @property
    def good(self) -> bool:
        return not self.sentence


def parts_of(outcome: Outcome) -> Iterator[tuple[str, int, str, str, str, bytes]]:
    arrays = [(MEASURED, place, name, one) for place, (name, one) in enumerate(outcome.measured.items())]
    arrays += [(STATED, place, "", one) for place, one in enumerate(outcome.stated)]
    for part, place, name, values in arrays:
        values = np.asarray(values)
        kind = values.dtype.newbyteorder("<").str
        if kind not in DTYPES:
            raise DeeplimitsError(f"{name or 'what is stated'} is of type {values.dtype}, which a store does not hold")
        shape = json.dumps(list(np.shape(values)))
        yield part, place, name, kind, shape, values.astype(kind, copy=False).tobytes()


def digest_of(sentence: str, parts: Iterable[tuple]) -> str:
    found = hashlib.sha256(sentence.encode())
    for part, place, name, kind, shape, data in sorted(parts, key=lambda one: one[:2]):
        found.update(json.dumps([part, place, name, kind, shape, len(data)]).encode())
        found.update(data)
    return found.hexdigest()


def from_rows(row: tuple, parts: list[tuple]) -> Outcome | None:
    """What the rows say; None where they are not what was written."""
    outcome, sentence, seconds, attempts, digest = row
    words = all(isinstance(one, str) for one in (outcome, sentence, digest))
    if not (words and isinstance(seconds, float) and isinstance(attempts, int)):
        return None
    if not all(tuple(map(type, part)) == (str, int, str, str, str, bytes) for part in parts):
        return None
    if digest_of(sentence, parts) != digest or (outcome == DONE) == bool(sentence):
        return None
    measured, stated = {}, []
    for part, _, name, kind, shape, data in parts:
        values = _array(kind, shape, data)
        if values is None:
            return None
        if part == MEASURED:
            measured[name] = values
        else:
            stated.append(values)
    return Outcome(measured, tuple(stated), sentence, seconds, attempts)


def _array(kind: str, shape: str, data: bytes) -> np.ndarray | None:
    if kind not in DTYPES or len(shape) > 200:
        return None
    try:
        sizes = json.loads(shape)
    except (ValueError, RecursionError):
        return None
    if (
        not isinstance(sizes, list)
        or not all(type(one) is int and 0 <= one < 2**40 for one in sizes)
        or len(sizes) > 32
    ):
        return None
    if math.prod(sizes) * np.dtype(kind).itemsize != len(data):
        return None
    return np.frombuffer(data, kind).reshape(sizes).copy()
