"""What figures there are, read from their files without running them."""

import ast
import functools
import importlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deeplimits.errors import UnknownName, did_you_mean

FILES = "f[0-9][0-9]_*.py"


@dataclass(frozen=True)
class Entry:
    """One figure of the gallery."""

    number: int
    name: str
    """As `matrix-pca`."""
    title: str
    about: str
    """What is drawn, with its parameters: the rest of the file's docstring."""
    notes: str
    """Where in the lecture notes its like is found."""
    limits: tuple[str, ...]
    """Names of the catalogue that it shows."""
    module: str

    @property
    def label(self) -> str:
        """As `F8`."""
        return f"F{self.number}"

    @property
    def stem(self) -> str:
        """The name of its files, as `f08-matrix-pca`."""
        return f"f{self.number:02d}-{self.name}"

    @property
    def command(self) -> str:
        """The command that makes it."""
        return f"deeplimits figure {self.name}"

    def load(self) -> Any:
        """The module with `compute`, `draw` and `check`."""
        return importlib.import_module(self.module)


@functools.cache
def entries() -> tuple[Entry, ...]:
    """All figures in order of their numbers.

    >>> [entry.name for entry in entries() if entry.number == 1]
    ['double-descent']
    """
    return tuple(_read(path) for path in sorted(Path(__file__).parent.glob(FILES)))


def find(name: str) -> Entry:
    """The figure of that number or name, as `F8`, `8` or `matrix-pca`.

    >>> find("f1") is find("double-descent")
    True
    """
    wanted = name.strip().lower().replace("_", "-")
    for entry in entries():
        if wanted in (entry.name, entry.label.lower(), str(entry.number), entry.stem):
            return entry
    hint = did_you_mean(wanted, [entry.name for entry in entries()]) or "; `deeplimits figure` lists all"
    raise UnknownName(f"the gallery has no figure {name!r}{hint}")


def _read(path: Path) -> Entry:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    title, _, about = (ast.get_docstring(tree) or "").partition("\n")
    constants = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id in ("NOTES", "LIMITS")
    }
    number, _, name = path.stem.partition("_")
    return Entry(
        int(number[1:]),
        name.replace("_", "-"),
        title.strip().rstrip("."),
        re.sub(r"\n(?!\n)", " ", about.strip()).replace("\n ", "\n\n"),
        constants["NOTES"],
        tuple(constants["LIMITS"]),
        f"deeplimits.gallery.{path.stem}",
    )
