"""The citations: `references.bib` of this package and of those that bring limits, read and written."""

import functools
import importlib.util
import re
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from deeplimits.errors import UnknownName

FILE = "references.bib"
LIBRARY = """@software{{deeplimits,
  author  = {{{{The deeplimits authors}}}},
  title   = {{deeplimits: the limit theorems of deep learning, executable}},
  year    = {{2026}},
  version = {{{version}}},
}}"""


def library() -> str:
    """BibTeX of the library itself."""
    try:
        version = metadata.version("deeplimits")
    except metadata.PackageNotFoundError:
        version = "0+unknown"
    return LIBRARY.format(version=version)


@functools.cache
def entries(package: str = "deeplimits") -> dict[str, str]:
    """Every BibTeX entry of a package's own `references.bib`, by key; none where it has no such file."""
    place = _folder(package)
    if place is None or not (place / FILE).is_file():
        return {}
    return read((place / FILE).read_text(encoding="utf-8"))


def read(text: str) -> dict[str, str]:
    """The entries of a BibTeX file, by key.

    >>> list(read("@book{knuth1984,\\n  title = {The TeXbook},\\n}"))
    ['knuth1984']
    """
    found = re.finditer(r"^@\w+\{(?P<key>[^,]+),.*?^\}", text, re.MULTILINE | re.DOTALL)
    return {match["key"].strip(): match[0] for match in found}


def _folder(package: str) -> Path | None:
    """The folder of an outermost package, which is not imported."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):  # __main__ of a notebook or a script has none
        return None
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    return Path(places[0]) if places else None


def bibtex(keys: Iterable[str], module: str = "deeplimits") -> str:
    """The BibTeX entries of these keys, which are named in `module`."""
    return "\n\n".join(_entry(key, module) for key in dict.fromkeys(keys))


def lines(keys: Iterable[str], module: str = "deeplimits") -> dict[str, str]:
    """A line for people for each key; the key itself where no file has it, so that a page can be made nevertheless."""
    return {key: short(key, module) if _find(key, module) else key for key in keys}


def short(key: str, module: str = "deeplimits") -> str:
    """One line for people: authors, year, title, where."""
    entry = _entry(key, module)
    field = functools.partial(_field, entry)
    names = [name.partition(",")[0].strip() for name in field("author").split(" and ")]
    if len(names) > 3:
        names = [names[0] + " et al."]
    where = field("journal") or field("booktitle") or field("publisher") or field("note")
    return f"{', '.join(names)} ({field('year')}). {field('title')}." + (f" {where}." if where else "")


def _find(key: str, module: str) -> str | None:
    """An entry: the module's own package comes first."""
    return entries(module.partition(".")[0]).get(key) or entries().get(key)


def _entry(key: str, module: str) -> str:
    found = _find(key, module)
    if found is None:
        package = module.partition(".")[0]
        place = package if _folder(package) is not None else "your_package"
        own = "" if package == "deeplimits" else f"; a package brings its own in {FILE}, beside {place}/__init__.py"
        raise UnknownName(f"{FILE} has no entry {key}{own}")
    return found


def _field(entry: str, name: str) -> str:
    match = re.search(rf"^\s*{name}\s*=\s*\{{(.*?)\}},?\s*$", entry, re.MULTILINE)
    return re.sub(r"[{}]", "", match[1]) if match else ""
