"""What `deeplimits show NAME` and `cite NAME` print: the statement, the parameters, what it is computed by, how to call
it, also on one's own data; and whom to cite.
"""

import re
import textwrap
import unicodedata
from collections.abc import Iterator
from typing import Any

from deeplimits import flags, index, references
from deeplimits.catalogue import Entry, catalogue
from deeplimits.errors import ParameterError
from deeplimits.index import Record
from deeplimits.render.text import Words

WIDTH = 100


def page(entry: Entry) -> str:
    """Everything there is to say about a name."""
    about = entry.about
    parts = [f"{entry.name}\n{about.statement.title}."]
    if entry.role == "result":
        parts.append(f"This is the result `{entry.result}` of the limit {catalogue.name_of_target(entry.target)}.")
    parts.append(about.statement.without("Computed by"))
    if about.parameters:
        parts.append("Parameters\n" + "\n".join(_parameters(about)))
    if entry.role != "function":
        parts.append("Computed by\n" + "\n".join(_computed_by(about, entry.result)))
        own = list(_own_data(about, entry.result))
        if own:
            parts.append("On your own data\n" + "\n".join(f"  {line}" if line else "" for line in own))
    if about.statement.references:
        lines = references.lines(about.statement.references, about.module)
        cited = (_filled(line, "  ", "    ") for line in lines.values())
        parts.append("Cited\n" + "\n".join(cited))
    parts.append(f"Source\n  {about.module}")
    parts.append("To call it\n" + "\n".join(f"  {line}" for line in _call(entry, about)))
    if entry.role != "function":
        parts.append("To look at it\n" + "\n".join(f"  {line}" for line in _to_look_at(entry)))
    return "\n\n".join(parts)


def show(what: Any) -> Words:
    """What a name of the catalogue states, takes and is computed by; also that of a limit, or of a limit's class.

    >>> import deeplimits as dl
    >>> "Marchenko" in dl.show("marchenko-pastur-law")
    True
    """
    return Words(page(_entry(what)))


def cite(what: Any = None) -> Words:
    """BibTeX of what a name, a limit or a result of the verbs rests on; of the library itself, where nothing is given.

    >>> import deeplimits as dl
    >>> print(dl.cite("ridgeless-double-descent").partition("\\n")[0])
    @article{hastie2022,
    """
    if what is None:
        return Words(references.library())
    about = _entry(what).about
    return Words(references.bibtex(about.statement.references, about.module))


def _entry(what: Any) -> Entry:
    if isinstance(what, str):
        return catalogue.entry(what)
    if not isinstance(what, type) and not hasattr(what, "at_size"):
        what = getattr(what, "limit", what)  # of a prediction, simulation or comparison
    cls = what if isinstance(what, type) else type(what)
    if not hasattr(cls, "at_size"):
        raise ParameterError(
            f"{what!r} is neither a name of the catalogue nor a limit; `deeplimits list` shows all names"
        )
    name = catalogue.name_of(cls)
    return catalogue.entry(name) if name in catalogue else Entry(name, "limit", f"{cls.__module__}:{cls.__qualname__}")


def _parameters(about: Record) -> Iterator[str]:
    wide = max(12, *(len(name) for name in about.parameters)) + 2
    for name, parameter in about.parameters.items():
        symbol = plain(parameter.symbol)
        said = f"{symbol}, {parameter.doc}" if symbol and symbol not in parameter.doc.split() else parameter.doc
        text = f"{said}; {parameter.allowed} (default {flags.default_of(parameter)})"
        yield _filled(text, f"  {name:<{wide}}", " " * (wide + 2))


def _computed_by(about: Record, result: str) -> Iterator[str]:
    parts = about.parts_of(result)
    if not parts:
        yield f"  a formula of one line in {about.module}"
    for part in parts:
        yield _filled(f"{part.called}: {part.title}", "  ", "    ")


MOST_EXAMPLES = 3
"""So many functions are shown at work; the others are named."""


def _own_data(about: Record, result: str) -> Iterator[str]:
    """The general functions behind a limit, each with lines that run."""
    parts = [index.offered()[part.called] for part in about.parts_of(result) if part.called in index.offered()]
    for part in parts[:MOST_EXAMPLES]:
        yield from (*part.example, "")
    for part in parts[MOST_EXAMPLES:]:
        yield f"# deeplimits show {part.called}"
    for room in dict.fromkeys(part.called.partition(".")[0] for part in parts):
        yield f"# all that there is in this room: deeplimits list {room}"


def _call(entry: Entry, about: Record) -> Iterator[str]:
    if entry.role == "function":
        called = index.Part(about.name, about.module, "").called
        example = index.offered()[called].example if called in index.offered() else ()
        yield from example or (f"from {about.module} import {about.name}",)
        yield about.signature
        return
    result = f'["{entry.result}"]' if entry.result else ""
    yield "import deeplimits as dl"
    yield f"dl.predict(dl.limits.{about.name}()){result}"
    yield f'dl.compare("{catalogue.name_of_target(entry.target)}")'
    yield f"deeplimits compare {catalogue.name_of_target(entry.target)}"


def _to_look_at(entry: Entry) -> Iterator[str]:
    """The commands that draw it; where it is no limit of the catalogue, the call that does."""
    name = catalogue.name_of_target(entry.target)
    if name not in catalogue:
        yield f"dl.explore({entry.about.name})"
        return
    pictures = [picture for picture in index.pictures() if {entry.name, name} & set(picture.limits)]
    commands = {f"deeplimits explore {name}": "sliders, in the browser", **{one.command: one.title for one in pictures}}
    wide = max(map(len, commands))
    for command, sentence in commands.items():
        yield _filled(sentence, f"{command:<{wide}}  ", " " * (wide + 2))


def _filled(text: str, first: str, rest: str) -> str:
    return textwrap.fill(text, WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)


def plain(symbol: str) -> str:
    r"""A symbol of TeX in letters.

    >>> plain(r"\eta\lambda_{\max}/2"), plain(r"\|w_0\|")
    ('ηλ_max/2', '‖w_0‖')
    """

    def letter(found: re.Match[str]) -> str:
        word = str(found[1]).removeprefix("var")
        word = {"lambda": "lamda", "Lambda": "Lamda"}.get(word, word)  # as Unicode spells it
        try:
            return unicodedata.lookup(f"GREEK {'CAPITAL' if word[0].isupper() else 'SMALL'} LETTER {word.upper()}")
        except KeyError:
            return {"ell": "ℓ", "sqrt": "√"}.get(word, word)

    return re.sub(r"\\([A-Za-z]+)", letter, symbol.replace(r"\|", "‖")).replace("{", "").replace("}", "")
