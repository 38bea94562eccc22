"""What a docstring states: title, sections and references. Plain Python, for run time and for the light commands."""

import inspect
import re
import textwrap
from dataclasses import dataclass

COLUMN = 12  # where the text of a section begins
SECTIONS = ("Setting", "Limit", "Result", "Validity", "Finite size", "Computed by", "References")


@dataclass(frozen=True)
class Statement:
    """The documentation of a limit or function, read."""

    doc: str

    @classmethod
    def of(cls, documented: object) -> "Statement":
        """The statement in a class's or function's own docstring."""
        return cls(inspect.cleandoc(getattr(documented, "__doc__", None) or ""))

    @property
    def title(self) -> str:
        return self.doc.partition("\n")[0].rstrip(".")

    @property
    def sections(self) -> dict[str, str]:
        """The parts of the docstring that begin with one of the agreed words, by that word."""
        found: dict[str, list[str]] = {}
        current = None
        for line in self.doc.splitlines()[1:]:
            word = line[:COLUMN].rstrip()
            if word in SECTIONS:
                current = word
                found[word] = [line[COLUMN:].strip()]
            elif current is not None and (line.startswith(" ") or not line.strip()):
                found[current].append(line)
            else:
                current = None
        return {word: _dedent(lines) for word, lines in found.items()}

    @property
    def computed_by(self) -> dict[str, tuple[str, ...]]:
        """The functions of the theory behind it: room.function -> the results they give, none named if all.

        >>> Statement("Law.\\n\\nComputed by spectra.edges, spectra.free.sum (one, two)").computed_by
        {'spectra.edges': (), 'spectra.free.sum': ('one', 'two')}
        """
        text = " ".join(self.sections.get("Computed by", "").split())
        found = re.findall(r"\b([a-z_]+(?:\.\w+){1,2})(?: \(([^)]*)\))?", text)
        return {name: tuple(results.split(", ")) if results else () for name, results in found}

    def without(self, section: str) -> str:
        """The docstring after its title, without one of its sections."""
        kept, inside = [], False
        for line in self.doc.splitlines()[1:]:
            inside = line[:COLUMN].rstrip() == section or (inside and line.startswith(" "))
            if not inside:
                kept.append(line)
        return "\n".join(kept).strip("\n")

    @property
    def references(self) -> tuple[str, ...]:
        """The citation keys named in the docstring's References, in order."""
        keys = re.findall(r"\b[a-z]+\d{4}[a-z]?\b", self.sections.get("References", ""))
        return tuple(dict.fromkeys(keys))


def _dedent(lines: list[str]) -> str:
    rest = textwrap.dedent("\n".join(lines[1:])).strip("\n")
    return "\n".join(part for part in (lines[0], rest) if part)
