"""What a request may say: a limit of the catalogue, values of its parameters, a size, a number of systems, a seed.

Everything is text until it was read by the parameter's own field and found to be allowed. What is not is answered with
a sentence.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from deeplimits.catalogue import Entry, catalogue
from deeplimits.errors import ParameterError, UnknownName, did_you_mean
from deeplimits.parameters import Parameter

MOST_TEXT = 4_000
"""Characters of a value."""
MOST_POINTS = 400
"""Points of an axis."""
MOST_SIZE = 10_000_000
MOST_SAMPLES = 100_000
MOST_SEED = 2**63 - 1
RUN = ("size", "samples", "seed")
"""What a request for simulations says besides parameters; in an address it stands behind a minus sign."""


@dataclass(frozen=True)
class Asked:
    """A request that was read and found to be allowed."""

    entry: Entry
    values: tuple[tuple[str, Any], ...]
    """The parameters that were given, in the order of the fields."""
    over: str = ""
    size: int = 0
    samples: int = 0
    seed: int = 0

    @property
    def name(self) -> str:
        return self.entry.name

    @property
    def parameters(self) -> dict[str, Any]:
        return dict(self.values)


def entry_of(name: str) -> Entry:
    """The limit of that name."""
    entry = catalogue.entry(name) if name in catalogue else None
    if entry is None or entry.role != "limit":
        limits = [one.name for one in catalogue.limits()]
        raise UnknownName(f"there is no limit {name[:80]!r}{did_you_mean(name[:80], limits)}")
    return entry


def read(name: str, given: Iterable[tuple[str, str]]) -> Asked:
    """A request to a limit of the catalogue, from the pairs of its address.

    >>> asked = read("marchenko-pastur-law", [("gamma", "2"), ("-size", "50")])
    >>> asked.parameters, asked.size
    ({'gamma': 2.0}, 50)
    """
    return read_for(entry_of(name), given)


def read_for(entry: Entry, given: Iterable[tuple[str, str]]) -> Asked:
    """The same for any limit."""
    fields = entry.about.parameters
    found: dict[str, Any] = {}
    run = {"size": 0, "samples": 0, "seed": 0}
    over = ""
    seen: set[str] = set()
    for key, text in given:
        if key in seen:
            raise ParameterError(f"{key[:80]} is given twice; give it once")
        seen.add(key)
        if len(text) > MOST_TEXT:
            raise ParameterError(f"{key[:80]} is {len(text)} characters long; it may have at most {MOST_TEXT}")
        if key == "-over":
            if text not in fields or fields[text].kind not in ("real", "integer"):
                raise ParameterError(f"numbers cannot be drawn over {text[:80]!r}; name a parameter that is a number")
            over = text
        elif key.startswith("-") and key[1:] in RUN:
            run[key[1:]] = _count(key[1:], text)
        elif key in fields:
            found[key] = _value(entry.about.name, key, fields[key], text)
        else:
            hint = did_you_mean(key[:80], fields)
            raise ParameterError(
                f"{entry.name} has no parameter {key[:80]!r}; it has {', '.join(fields) or 'none'}{hint}"
            )
    return Asked(entry, tuple((key, found[key]) for key in fields if key in found), over, **run)


def _value(owner: str, name: str, parameter: Parameter, text: str) -> Any:
    try:
        if parameter.kind == "axis":
            _check_points(text)
        value = parameter.read(text)
    except (ValueError, OverflowError) as error:
        raise ParameterError(
            f"{owner}: {name} = {text[:80]!r} cannot be read ({error}); it must be {parameter.allowed}"
        ) from None
    parameter.check(owner, name, value)
    return tuple(value) if isinstance(value, list) else value


def _check_points(text: str) -> None:
    """Refuse a list of too many points before it is made."""
    count = text.count(",") + 1
    if ":" in text:
        count = int(text.rpartition(":")[2].removesuffix("log"))
    if count > MOST_POINTS:
        raise ValueError(f"it has {count} points, more than {MOST_POINTS}")


def _count(name: str, text: str) -> int:
    most = {"size": MOST_SIZE, "samples": MOST_SAMPLES, "seed": MOST_SEED}[name]
    least = 0 if name == "seed" else 1
    try:
        value = int(text)
    except ValueError:
        value = -1
    if not least <= value <= most:
        raise ParameterError(
            f"{name} = {text[:80]!r} is not allowed; it must be a whole number between {least} and {most}"
        )
    return value
