"""What `deeplimits show NAME` prints: the statement, the parameters, what it is computed by, how to call it."""

import re
import textwrap
import unicodedata
from collections.abc import Iterator

from deeplimits import flags, references
from deeplimits.catalogue import Entry, catalogue
from deeplimits.index import Record

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
    if about.statement.references:
        cited = (_filled(references.short(key), "  ", "    ") for key in about.statement.references)
        parts.append("Cited\n" + "\n".join(cited))
    parts.append(f"Source\n  {about.module}")
    parts.append("To call it\n" + "\n".join(f"  {line}" for line in _call(entry, about)))
    return "\n\n".join(parts)


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
        yield f"  from {part.module} import {part.name}"
        yield _filled(part.title, "    ", "    ")


def _call(entry: Entry, about: Record) -> Iterator[str]:
    if entry.role == "function":
        yield f"from {about.module} import {about.name}"
        yield about.signature
        return
    result = f'["{entry.result}"]' if entry.result else ""
    yield "import deeplimits as dl"
    yield f"dl.predict(dl.limits.{about.name}()){result}"
    yield f"deeplimits compare {catalogue.name_of_target(entry.target)}"


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
