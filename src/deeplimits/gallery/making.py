"""Making a figure: computed step by step, drawn, checked, written."""

import json
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from deeplimits.errors import ParameterError
from deeplimits.gallery.figure import Arrays, Check, Run, store
from deeplimits.gallery.listing import Entry, find
from deeplimits.lab.task import source_digest, surroundings
from deeplimits.predictions.picture import Picture
from deeplimits.render import bars, with_matplotlib


@dataclass(frozen=True)
class Made:
    """A figure that was made: its numbers, pictures with their captions, and checks."""

    entry: Entry
    size: str
    data: Arrays
    pictures: tuple[Picture, ...]
    checks: tuple[Check, ...]

    @property
    def holds(self) -> bool:
        """Whether every check does."""
        return all(check.holds for check in self.checks)

    def plot(self) -> Any:
        """The matplotlib figure, one panel for each picture under its caption."""
        return with_matplotlib.captioned(self.entry.title, self.pictures)

    def to_json(self) -> dict[str, Any]:
        """Everything needed to draw and judge it again."""
        return {
            **self.summary(),
            "pictures": [picture.to_json() for picture in self.pictures],
        }

    def summary(self) -> dict[str, Any]:
        """What is said of it, without the pictures."""
        entry = self.entry
        return {
            "figure": entry.label,
            "name": entry.name,
            "title": entry.title,
            "about": entry.about,
            "notes": entry.notes,
            "limits": list(entry.limits),
            "size": self.size,
            "captions": [picture.caption for picture in self.pictures],
            "checks": [check.to_json() for check in self.checks],
        }

    def __str__(self) -> str:
        entry = self.entry
        lines = [f"{entry.label}  {entry.title} (lecture notes {entry.notes})", ""]
        letters = "abcdefghijkl" if len(self.pictures) > 1 else ""
        for place, picture in enumerate(self.pictures):
            lines.append(f"({letters[place]}) {picture.caption}" if letters else picture.caption)
        return "\n".join([*lines, "", *map(str, self.checks)])


def make(
    name: str | Entry,
    size: str = "full",
    out: str | Path | None = None,
    progress: bool | None = None,
    computed: str | Path | None = None,
) -> Made:
    """Compute, draw and check a figure; with `out`, a folder, work is kept there and PNG, SVG and JSON are written.

    With `computed`, a folder in which `compute` left the figure's numbers, they are taken from there.

    >>> made = make("marchenko-pastur", size="small")
    >>> made.holds
    True
    """
    entry = name if isinstance(name, Entry) else find(name)
    data = compute(entry, size, out, progress, keep=False) if computed is None else _kept(entry, size, Path(computed))
    module = entry.load()
    made = Made(entry, size, data, tuple(module.draw(data)), tuple(module.check(data)))
    if out is not None:
        write(made, Path(out))
    return made


def compute(
    name: str | Entry,
    size: str = "full",
    out: str | Path | None = None,
    progress: bool | None = None,
    keep: bool = True,
) -> Arrays:
    """The numbers of a figure, neither drawn nor checked; with `out` and `keep` written there for `make(computed=out)`.

    That may be on another machine, and needs no matplotlib.

    >>> sorted(compute("marchenko-pastur", size="small"))
    ['c = 0.01', 'c = 0.5', 'c = 2']
    """
    entry = name if isinstance(name, Entry) else find(name)
    Run(size)  # a wrong size is refused before anything is loaded
    module = entry.load()
    folder = None if out is None else Path(out) / "steps" / entry.stem
    code = source_digest(entry.module) + json.dumps(surroundings(), sort_keys=True)
    with bars.progress(None, entry.label, progress, unit="step") as bar:
        found = module.compute(Run(size, folder, code, bar))
    data = {name: np.asarray(value) for name, value in found.items()}
    if out is not None and keep:
        said = {"size": size, "code": source_digest(entry.module), **surroundings()}
        store(_computed(entry, Path(out)), {**data, SAID: np.asarray(json.dumps(said))})
    return data


SAID = "how it was computed"


def _computed(entry: Entry, folder: Path) -> Path:
    return folder / f"{entry.stem}.npz"


def _kept(entry: Entry, size: str, folder: Path) -> Arrays:
    """What `compute` left in a folder, of this size; with a warning where the figure's code has changed since."""
    path = _computed(entry, folder)
    if not path.is_file():
        raise ParameterError(
            f"computed = {str(folder)!r} holds no {path.name}; `compute({entry.name!r}, out=...)` does"
        )
    with np.load(path, allow_pickle=False) as kept:
        data = dict(kept)
    said = json.loads(str(data.pop(SAID)))
    if said["size"] != size:
        raise ParameterError(f"computed: {path.name} holds size {said['size']!r}; size = {size!r} was asked for")
    if said["code"] != source_digest(entry.module):
        warnings.warn(f"{path.name} was computed with other code than this version's", stacklevel=3)
    return data


def write(made: Made, folder: Path) -> None:
    """PNG, SVG and JSON in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = made.plot()
    drawn.savefig(folder / f"{made.entry.stem}.png", dpi=150)
    (folder / f"{made.entry.stem}.svg").write_text(with_matplotlib.svg(drawn), encoding="utf-8")
    document = json.dumps(made.to_json(), ensure_ascii=False)
    (folder / f"{made.entry.stem}.json").write_text(document, encoding="utf-8")
