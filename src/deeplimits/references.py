"""The citations: `references.bib`, read and written."""

import functools
import re
from collections.abc import Iterable
from importlib import resources

from deeplimits.errors import UnknownName


@functools.cache
def entries() -> dict[str, str]:
    """Every BibTeX entry, by key."""
    text = resources.files("deeplimits").joinpath("references.bib").read_text(encoding="utf-8")
    found = {}
    for match in re.finditer(r"^@\w+\{(?P<key>[^,]+),.*?^\}", text, re.MULTILINE | re.DOTALL):
        found[match["key"].strip()] = match[0]
    return found


def bibtex(keys: Iterable[str]) -> str:
    """The BibTeX entries of these keys."""
    return "\n\n".join(_entry(key) for key in dict.fromkeys(keys))


def short(key: str) -> str:
    """One line for people: authors, year, title, where."""
    entry = _entry(key)
    field = functools.partial(_field, entry)
    names = [name.partition(",")[0].strip() for name in field("author").split(" and ")]
    if len(names) > 3:
        names = [names[0] + " et al."]
    where = field("journal") or field("booktitle") or field("publisher") or field("note")
    return f"{', '.join(names)} ({field('year')}). {field('title')}." + (f" {where}." if where else "")


def _entry(key: str) -> str:
    try:
        return entries()[key]
    except KeyError:
        raise UnknownName(f"references.bib has no entry {key}") from None


def _field(entry: str, name: str) -> str:
    match = re.search(rf"^\s*{name}\s*=\s*\{{(.*?)\}},?\s*$", entry, re.MULTILINE)
    return re.sub(r"[{}]", "", match[1]) if match else ""
