"""What is checked before anything is simulated: what a limit's methods return, sizes, and memory."""

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax

from deeplimits import statistics
from deeplimits.errors import DeeplimitsError, TooCostly
from deeplimits.limit import Limit
from deeplimits.predictions import Kind


def stated(limit: Limit, method: str, found: Any) -> dict[str, Kind]:
    """What `theory` or `stated` returned, if it is what they must return."""
    owner = f"{type(limit).__name__}.{method}"
    if not isinstance(found, Mapping):
        raise DeeplimitsError(
            f"{owner} returns {_what(found)}; it must return a dictionary from names of results to predictions, as "
            '{"risk": Value(..., label="risk")}'
        )
    for name, kind in found.items():
        if not isinstance(kind, Kind):
            raise DeeplimitsError(
                f"{owner} returns {_what(kind)} for {name!r}; it must be a prediction, as Value(..., label=...)"
            )
    return dict(found)


def measured(limit: Limit, method: str, found: Any) -> dict[str, Any]:
    """What `simulate` or `measured` returned, if it is what they must return."""
    owner = f"{type(limit).__name__}.{method}"
    if not isinstance(found, Mapping):
        raise DeeplimitsError(
            f"{owner} returns {_what(found)}; it must return a dictionary from names of results to arrays"
        )
    for name, value in found.items():
        if isinstance(value, str | Kind) or not _numeric(value):
            raise DeeplimitsError(f"{owner} returns {_what(value)} for {name!r}; it must be a number or an array")
    return {name: jax.numpy.asarray(value) for name, value in found.items()}


def finite(limit: Limit, found: Any) -> tuple[dict[str, Any], Limit]:
    """What `at_size` returned, if it is what it must return."""
    if not (
        isinstance(found, tuple)
        and len(found) == 2
        and isinstance(found[0], Mapping)
        and isinstance(found[1], type(limit))
    ):
        raise DeeplimitsError(
            f"{type(limit).__name__}.at_size returns {_what(found)}; it must return two things: a dictionary of whole "
            "numbers for simulate, and the limit at the ratios that these have (self, where they have the same)"
        )
    return dict(found[0]), found[1]


def fitting(limit: Limit, said: Mapping[str, Kind], shapes: Mapping[str, Any]) -> None:
    """Refuse simulations whose results are not those that are stated, by name and by shape.

    `shapes` are those of many systems at once.
    """
    owner = type(limit).__name__
    if set(said) != set(shapes):
        raise DeeplimitsError(f"{owner} predicts {sorted(said)} but simulates {sorted(shapes)}")
    for name, kind in said.items():
        wanted, given = kind.shape_of_one, tuple(shapes[name].shape[1:])
        if wanted is not None and given != wanted:
            raise DeeplimitsError(
                f"{owner}: {name} of one simulation has shape {given}, but the {kind.kind} that is stated has shape "
                f"{wanted}; simulate must return {'a number' if wanted == () else 'as many numbers'}"
            )


def several_sizes(said: Mapping[str, Kind], sizes: Sequence[int]) -> None:
    """Refuse a single size where a finite-size gap must be told from an error."""
    for kind in said.values():
        rate = getattr(kind, "rate", None)
        if rate is not None:
            statistics.require_sizes(sizes, rate)


SHARE = 0.9
"""The share of the free memory that a program may need."""


def enough_memory(limit: Limit, size: int, needed: float, smaller: tuple[int, float] | None = None) -> None:
    """Refuse what does not fit into memory; `smaller` is another size and its need, from which the rest follows."""
    free = SHARE * free_memory()
    if needed <= free or jax.default_backend() != "cpu":
        return
    hint = "take a smaller size"
    if smaller is not None and 0 < smaller[1] < needed:
        power = max(1.0, jax.numpy.log(needed / smaller[1]).item() / jax.numpy.log(size / smaller[0]).item())
        hint = f"a size of about {_rounded_down(size * (free / needed) ** (1 / power))} would fit"
    raise TooCostly(
        f"{type(limit).__name__}: systems of size {size} need at least {gigabytes(needed)} of memory, and "
        f"{gigabytes(free / SHARE)} are free; {hint}"
    )


@contextlib.contextmanager
def in_memory(limit: Limit, size: int) -> Iterator[None]:
    """Say in a sentence what ran out of memory nevertheless."""
    try:
        yield
    except (MemoryError, jax.errors.JaxRuntimeError) as error:
        if isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error) or "Out of memory" in str(error):
            raise TooCostly(
                f"{type(limit).__name__}: systems of size {size} do not fit into memory; take a smaller size"
            ) from None
        raise


def gigabytes(count: float) -> str:
    return f"{count / 1e9:.3g} GB"


def free_memory() -> float:
    """Bytes that this process may still take; without bound where the system does not tell."""
    found = [float("inf")]
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        found += [1024.0 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable")]
    except (OSError, ValueError, IndexError):
        pass
    try:  # a container's own bound
        most, used = (Path("/sys/fs/cgroup", name).read_text().strip() for name in ("memory.max", "memory.current"))
        found += [] if most == "max" else [float(most) - float(used)]
    except (OSError, ValueError):
        pass
    if len(found) == 1:
        with contextlib.suppress(AttributeError, OSError, ValueError):
            found.append(float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES"))
    return min(found)


def _rounded_down(value: float) -> int:
    places = 10 ** max(0, len(str(int(value))) - 2)
    return max(1, int(value) // places * places)


def _numeric(value: Any) -> bool:
    try:
        about = jax.numpy.asarray(value).dtype
    except (TypeError, ValueError):
        return False
    return jax.numpy.issubdtype(about, jax.numpy.number) or jax.numpy.issubdtype(about, jax.numpy.bool_)


def _what(value: Any) -> str:
    if value is None:
        return "nothing"
    return f"a {type(value).__name__}" + (f" of {len(value)}" if isinstance(value, tuple | list) else "")
