"""What a figure of the gallery is made of: units of work that are kept, and numbers that are checked."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from deeplimits.errors import ParameterError

SIZES = ("full", "small")
Arrays = dict[str, np.ndarray]
Number = Any
"""A number, or an array of one."""


@dataclass(frozen=True)
class Check:
    """A number that shows the phenomenon: measured, with its standard error, beside what theory says.

    >>> Check("risk", 1.02, 0.01, 1.0, 3.0).holds
    True
    >>> Check("risk", 1.05, 0.01, 1.0, 3.0).holds
    False
    """

    label: str
    measured: Number
    error: Number
    """Standard error; 0 for what is not random, where `threshold` is the allowed difference itself."""
    theory: Number
    threshold: float
    """How many standard errors the two may differ by."""

    def __post_init__(self):
        for name in ("measured", "error", "theory", "threshold"):
            object.__setattr__(self, name, float(getattr(self, name)))

    @property
    def allowed(self) -> float:
        """The difference that is allowed."""
        return self.threshold * self.error if self.error > 0 else self.threshold

    @property
    def holds(self) -> bool:
        """Whether measurement and theory agree."""
        return bool(abs(self.measured - self.theory) <= self.allowed)

    def __str__(self) -> str:
        spread = f" ± {self.error:.2g}" if self.error > 0 else ""
        verdict = "holds" if self.holds else "FAILS"
        return (
            f"{verdict}: {self.label}: {self.measured:.4g}{spread}, theory {self.theory:.4g} "
            f"(allowed difference {self.allowed:.2g})"
        )

    def to_json(self) -> dict[str, Any]:
        """The check as plain data."""
        return {
            "label": self.label,
            "measured": self.measured,
            "error": self.error,
            "theory": self.theory,
            "threshold": self.threshold,
            "holds": self.holds,
        }


class Run:
    """One making of a figure: its size, and the units of work that are done once and kept.

    `step` keeps what a unit of work returned in `folder`, under a key of all that it depends on, so that an interrupted
    figure goes on where it was; without a folder nothing is kept.
    """

    def __init__(self, size: str = "full", folder: Path | None = None, code: str = "", bar: Any = None):
        if size not in SIZES:
            raise ParameterError(f"size = {size!r} is not allowed; it must be one of {', '.join(SIZES)}")
        self.size, self.folder, self.code, self._bar = size, folder, code, bar

    @property
    def small(self) -> bool:
        """Whether the reduced size is made."""
        return self.size == "small"

    def pick(self, full: Any, small: Any) -> Any:
        """The one of the two that belongs to the size."""
        return small if self.small else full

    def expect(self, steps: int) -> None:
        """Say how many steps there will be, for the progress bar."""
        if self._bar is not None:
            self._bar.total = steps
            self._bar.refresh()

    def step(self, key: str, function: Callable[..., Mapping[str, Any]], **kwargs: Any) -> Arrays:
        """What `function(**kwargs)` returns, a dictionary of arrays; done once and kept.

        `kwargs` are plain data (numbers, words, arrays), because they are part of the key.
        """
        path = None if self.folder is None else self.folder / f"{self._digest(key, kwargs)}.npz"
        if path is not None and path.exists():
            with np.load(path, allow_pickle=False) as kept:
                found = dict(kept)
        else:
            found = {name: np.asarray(value) for name, value in function(**kwargs).items()}
            if path is not None:
                store(path, found)
        if self._bar is not None:
            self._bar.update(1)
        return found

    def _digest(self, key: str, kwargs: Mapping[str, Any]) -> str:
        plain = json.dumps([self.code, self.size, key, kwargs], sort_keys=True, default=_plain)
        return hashlib.sha256(plain.encode()).hexdigest()[:32]


def store(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays as .npz, at once: a killed run leaves no half of a result."""
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_suffix(".part")
    with half.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)  # pyright: ignore[reportArgumentType]
    half.replace(path)


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    raise ParameterError(f"a step's argument {value!r} is not allowed; it must be numbers, words or arrays")
