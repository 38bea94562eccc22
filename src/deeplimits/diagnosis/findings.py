"""What a diagnosis finds: a measurement, the theory's line beside it, a sentence, and what to do."""

import dataclasses
from dataclasses import dataclass
from typing import Any

from deeplimits.diagnosis import meanings
from deeplimits.measure.estimates import Estimate
from deeplimits.predictions.picture import Picture

SEVERITIES = {
    "critical": "training fails, or will fail: mend this first.",
    "warning": "training is likely to suffer.",
    "note": "worth knowing; nothing is wrong.",
    "fine": "looked at, and as it should be.",
}
"""Worst first, and what each means."""
RANKS = {word: rank for rank, word in enumerate(SEVERITIES)}


@dataclass(frozen=True)
class Assumption:
    """What the theory's value rests on, and whether this network has it; None where that was not looked at."""

    what: str
    holds: bool | None = None


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    >>> found = Finding("step-size", "learning rate", "critical", "the step is 3 times too large.", "take 0.1.",
    ...                 measured=Estimate(20.0, 0.1), theory=6.7)
    >>> print(found)
    critical  step-size: the step is 3 times too large.
              → take 0.1.
    """

    name: str
    room: str
    severity: str
    sentence: str
    """What was found, in plain words."""
    action: str = ""
    """What to do about it; nothing where all is well."""
    measured: Estimate | None = None
    what: str = ""
    """What `measured` and `theory` are a value of."""
    theory: float | None = None
    """The theory's value for this very network."""
    assumptions: tuple[Assumption, ...] = ()
    references: tuple[str, ...] = ()
    picture: Picture | None = dataclasses.field(default=None, repr=False)
    seconds: float = 0.0
    urgency: float = 0.0
    """Orders findings of one severity: causes before what they bring about."""
    brief: str = ""
    """The sentence in fewer words, where it is long."""
    theory_what: str = "the same, expected of this network"
    """What `theory` is a value of."""

    def __str__(self) -> str:
        lines = [f"{self.severity:<8}  {self.name}: {self.sentence}"]
        return "\n".join([*lines, *([f"          → {self.action}"] if self.action else [])])

    @property
    def rank(self) -> int:
        """0 for the worst."""
        return RANKS[self.severity]

    @property
    def title(self) -> str:
        """What it is about, in a few plain words."""
        return meanings.of(self.name).title

    @property
    def meaning(self) -> str:
        """What it is and why it matters, for a reader who knows none of the theory."""
        return meanings.of(self.name).what

    @property
    def caption(self) -> str:
        """How to read its picture; nothing where there is none."""
        return meanings.of(self.name).picture if self.picture is not None else ""

    def to_json(self) -> dict[str, Any]:
        """Everything, ready for `json.dumps`."""
        measured = self.measured
        return {
            "name": self.name,
            "room": self.room,
            "severity": self.severity,
            "title": self.title,
            "meaning": self.meaning,
            "sentence": self.sentence,
            "short": self.brief or self.sentence,
            "action": self.action,
            "what": self.what,
            "measured": None if measured is None else number(measured.value),
            "error": None if measured is None else number(measured.error),
            "theory": number(self.theory),
            "theory_what": self.theory_what,
            "assumptions": [dataclasses.asdict(one) for one in self.assumptions],
            "references": list(self.references),
            "picture": None if self.picture is None else self.picture.to_json(),
            "caption": self.caption,
            "seconds": round(self.seconds, 3),
        }


def number(value: Any) -> float | None:
    """A float for JSON, None for what is not finite."""
    import math

    return None if value is None or not math.isfinite(float(value)) else float(value)


def graded(value: float, warning: float, critical: float) -> str:
    """The severity of a value that should be small."""
    return "critical" if not value <= critical else "warning" if value > warning else "fine"


def few(value: float, digits: int = 2) -> str:
    """A number of so many digits, written out where it is not very large.

    >>> few(213.4), few(0.0123), few(-1960.0), few(3.2e9)
    ('210', '0.012', '-2,000', '3.2e+09')
    """
    short = f"{value:.{digits}g}"
    return f"{float(short):,.0f}" if 10**digits <= abs(value) < 1e6 else short


def times(factor: float) -> str:
    """A factor in words that do not depend on its direction: 1/50 and 50 are '50 times'.

    >>> times(1 / 50), times(32_441.0)
    ('50 times', '32,400 times')
    """
    away = max(factor, 1 / factor) if factor > 0 else float("inf")
    short = f"{away:.3g}"
    return f"{float(short):,.0f} times" if 1e3 <= away < 1e9 else f"{short} times"
