"""What is to be seen, as data: marks on two axes.

A kind of prediction says what a reader should see and `render` says how it looks: a picture holds numbers, words and
roles, no colours and no drawing library. Its JSON is complete: any renderer, with matplotlib or on a page, can draw
the whole picture from it.
"""

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

THEORY, SIMULATION, EXCLUDED = "theory", "simulation", "excluded"
"""The roles of a mark: what is stated, what was measured, what the statement rules out."""

Row = Any
"""Numbers in a row: given as any array, kept as a tuple of floats, in which None stands for a gap."""


def _row(**rest: Any) -> Any:
    return field(metadata={"row": True}, **rest)


@dataclass(frozen=True)
class Axis:
    """One of the two axes."""

    label: str = ""
    symbol: str = ""
    """In LaTeX, without dollar signs."""
    log: bool = False
    low: float | None = None
    """Where the axis begins; None leaves it to the renderer, which shows all marks."""
    high: float | None = None
    ticks: tuple[float, ...] | None = None
    """Where the axis is ticked; None leaves it to the renderer, and () has none."""
    whole: bool = False
    """Whether only whole numbers have a meaning on it."""


@dataclass(frozen=True)
class Mark:
    """What all marks have in common."""

    name: ClassVar[str]
    """The word for this mark in JSON."""

    label: str = field(default="", kw_only=True)
    """What the legend says; marks without a label are not in it."""
    role: str = field(default=THEORY, kw_only=True)
    series: int | None = field(default=None, kw_only=True)
    """Which of several sizes the mark belongs to, counted from zero: those of one size look alike."""

    def __post_init__(self):
        for one in dataclasses.fields(self):
            value = getattr(self, one.name)
            if one.metadata.get("row") and value is not None:
                object.__setattr__(self, one.name, _numbers(np.asarray(value, dtype=float)))

    def to_json(self) -> dict[str, Any]:
        """The mark, with None for what is left open and in the gaps."""
        return {"mark": self.name, **dataclasses.asdict(self)}


@dataclass(frozen=True)
class Line(Mark):
    """Points joined by a line."""

    name = "line"

    x: Row = _row()
    y: Row = _row()


@dataclass(frozen=True)
class Points(Mark):
    """Points, with bars from `low` to `high` where those are given."""

    name = "points"

    x: Row = _row()
    y: Row = _row()
    low: Row = _row(default=None)
    high: Row = _row(default=None)


@dataclass(frozen=True)
class Band(Mark):
    """What lies between two heights; one that is None is the end of the panel."""

    name = "band"

    x: Row = _row()
    low: Row = _row(default=None)
    high: Row = _row(default=None)


@dataclass(frozen=True)
class Histogram(Mark):
    """Heights between consecutive edges."""

    name = "histogram"

    edges: Row = _row()
    heights: Row = _row()


@dataclass(frozen=True)
class Rule(Mark):
    """A straight line across the whole panel: y = place, or x = place if it is `upright`."""

    name = "rule"

    place: float
    upright: bool = False


@dataclass(frozen=True)
class Stem(Mark):
    """A mass at one point: an arrow from the axis up to a height that means nothing; the label says the mass."""

    name = "stem"

    place: float
    height: float


@dataclass(frozen=True)
class Field(Mark):
    """Numbers over a rectangular grid, shown by colour; `values` has a row for each of `y`."""

    name = "field"

    x: Row = _row()
    y: Row = _row()
    values: Row = _row()
    log: bool = False
    """Whether equal steps of the colour are equal ratios."""


@dataclass(frozen=True)
class Number(Mark):
    """A number with nothing to set it beside: said, not drawn."""

    name = "number"

    value: float


MARKS: dict[str, type[Mark]] = {one.name: one for one in (Line, Points, Band, Histogram, Rule, Stem, Field, Number)}


@dataclass(frozen=True)
class Picture:
    """Marks on two axes; later marks lie over earlier ones."""

    x: Axis
    y: Axis
    marks: tuple[Mark, ...]
    caption: str = ""
    """What is to be seen, in one sentence; without one a renderer says the name of the picture."""

    def to_json(self) -> dict[str, Any]:
        """Everything needed to draw it, ready for `json.dumps`.

        >>> picture = Picture(Axis("time", "t"), Axis("risk", log=True), (Line([0, 1], [2.0, 1.0], label="theory"),))
        >>> picture.to_json()["marks"]
        [{'mark': 'line', 'label': 'theory', 'role': 'theory', 'series': None, 'x': (0.0, 1.0), 'y': (2.0, 1.0)}]
        >>> Picture.from_json(picture.to_json()) == picture
        True
        """
        axes = {"x": dataclasses.asdict(self.x), "y": dataclasses.asdict(self.y)}
        said = {"caption": self.caption} if self.caption else {}
        return {**axes, **said, "marks": [mark.to_json() for mark in self.marks]}

    @staticmethod
    def from_json(document: Any) -> "Picture":
        """The picture that `to_json` described."""
        marks = []
        for described in document["marks"]:
            rest = dict(described)
            marks.append(MARKS[rest.pop("mark")](**rest))
        return Picture(_axis(document["x"]), _axis(document["y"]), tuple(marks), document.get("caption", ""))


def _axis(described: Any) -> Axis:
    ticks = described["ticks"]
    return Axis(**{**described, "ticks": None if ticks is None else tuple(ticks)})


def _numbers(values: np.ndarray) -> tuple:
    if values.ndim > 1:
        return tuple(map(_numbers, values))
    return tuple(value if math.isfinite(value) else None for value in values.tolist())
