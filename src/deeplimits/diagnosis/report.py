"""A report: everything a diagnosis found, worst first, as text, data, page and pictures."""

import shutil
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deeplimits import references
from deeplimits.diagnosis.findings import SEVERITIES, Finding
from deeplimits.errors import ParameterError, UnknownName, require


@dataclass(frozen=True)
class Report:
    """What was found, what was left out and why."""

    title: str
    findings: tuple[Finding, ...]
    """Worst first."""
    left_out: tuple[str, ...]
    """What was not looked at, in sentences."""
    notes: tuple[str, ...]
    """What should be known of the model and its data."""
    seed: int
    seconds: float

    def __getitem__(self, name: str) -> Finding:
        for one in self.findings:
            if one.name == name:
                return one
        found = ", ".join(one.name for one in self.findings) or "nothing"
        raise UnknownName(f"the report holds no finding {name!r}; there is {found}")

    @property
    def worst(self) -> str:
        """The severity of the worst finding."""
        return self.findings[0].severity if self.findings else "fine"

    def __str__(self) -> str:
        """One screen: in full what needs doing, the rest in a line or two, what is fine by name where it is much."""
        size = shutil.get_terminal_size((100, 40))
        width, height = min(max(size.columns, 60), 120), max(size.lines - 2, 24)
        lines = self._lines(width, by_name=False)
        return "\n".join(lines if len(lines) <= height else self._lines(width, by_name=True))

    def _lines(self, width: int, by_name: bool) -> list[str]:
        lines = [f"{self.title}: {self.summary()}", ""]
        for one in self.findings:
            urgent = one.severity in ("critical", "warning")
            if by_name and one.severity == "fine":
                continue
            said = one.sentence if urgent else one.brief or one.sentence
            lines += _wrapped(f"{one.severity:<8}  ", f"{one.name}: {said}", width)
            if one.action and urgent:
                lines += _wrapped(" " * 10, f"→ {one.action}", width)
        fine = [one.name for one in self.findings if one.severity == "fine"]
        if by_name and fine:
            lines += _wrapped(f"{'fine':<8}  ", ", ".join(fine), width)
        for head, some in (("left out", self.left_out), ("note", self.notes)):
            for said in some:
                lines += _wrapped(f"{head:<8}  ", said, width)
        if self.findings:
            lines += ["", "report['name'] has the numbers behind a finding; .to_html(path) explains all, with pictures"]
        return lines

    __repr__ = __str__

    def summary(self) -> str:
        """How many findings of each severity there are."""
        counts = {word: sum(one.severity == word for one in self.findings) for word in SEVERITIES}
        said = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
        return f"{said or 'nothing found'} ({self.seconds:.1f} s, seed {self.seed})"

    def to_json(self) -> dict[str, Any]:
        """Everything, ready for `json.dumps`."""
        return {
            "title": self.title,
            "summary": self.summary(),
            "worst": self.worst,
            "findings": [one.to_json() for one in self.findings],
            "left_out": list(self.left_out),
            "notes": list(self.notes),
            "seed": self.seed,
            "seconds": round(self.seconds, 3),
        }

    def to_frame(self) -> Any:
        """A pandas.DataFrame with a row for each finding."""
        pandas = require("pandas", "data")
        left = ("picture", "caption", "meaning", "short")
        rows = [{key: value for key, value in one.to_json().items() if key not in left} for one in self.findings]
        return pandas.DataFrame(rows)

    def plot(self, name: str, path: str | Path | None = None) -> Any:
        """The picture of one finding; written to `path` where one is given."""
        from deeplimits.render import with_matplotlib

        found = self[name]
        if found.picture is None:
            drawn = ", ".join(one.name for one in self.findings if one.picture is not None)
            raise ParameterError(f"name = {name!r} is not allowed; {name} has no picture. These have: {drawn}")
        return with_matplotlib.figure(self.title, (), {found.title: found.picture}, path)

    def to_html(self, path: str | Path | None = None) -> str:
        """A page that stands by itself, with the pictures."""
        from deeplimits.render import report_page

        page = report_page.page_of(self.to_json(), self.cited(), SEVERITIES)
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return page

    def _repr_html_(self) -> str:
        from deeplimits.render import notebook

        rows = [(one.severity, one.title, one.brief or one.sentence, one.action) for one in self.findings]
        return notebook.fragment(
            f"{self.title}. {self.summary()}", ("", "finding", "what was found", "what to do"), rows
        )

    def cited(self) -> dict[str, str]:
        """The references behind the findings, in one line each."""
        keys = dict.fromkeys(key for one in self.findings for key in one.references)
        return {key: references.short(key) for key in keys}

    def cite(self) -> str:
        """BibTeX of the results used."""
        return references.bibtex(dict.fromkeys(key for one in self.findings for key in one.references))


@dataclass(frozen=True)
class Change:
    """One finding in two reports; None where a report does not have it."""

    name: str
    before: Finding | None
    after: Finding | None

    def __str__(self) -> str:
        before, after = (one.severity if one else "absent" for one in (self.before, self.after))
        return f"{self.name}: {before} → {after}{self._values()}"

    def _values(self) -> str:
        found = [one.measured for one in (self.before, self.after) if one is not None and one.measured is not None]
        return f" ({float(found[0].value):.4g} → {float(found[1].value):.4g})" if len(found) == 2 else ""


def changes(before: Report, after: Report) -> list[Change]:
    """Two reports side by side: the findings of both, those whose severity changed first."""
    names = dict.fromkeys(one.name for report in (before, after) for one in report.findings)
    found = [Change(name, _of(before, name), _of(after, name)) for name in names]

    def same(one: Change) -> bool:
        return one.before is not None and one.after is not None and one.before.severity == one.after.severity

    return sorted(found, key=same)


def compare(before: Report, after: Report) -> list[Change]:
    """Two reports side by side; the same as `changes`."""
    return changes(before, after)


def _wrapped(head: str, said: str, width: int) -> list[str]:
    return textwrap.wrap(said, width, initial_indent=head, subsequent_indent=" " * len(head), break_on_hyphens=False)


def _of(report: Report, name: str) -> Finding | None:
    return next((one for one in report.findings if one.name == name), None)
