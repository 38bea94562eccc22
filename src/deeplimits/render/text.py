"""Tables, headings and numbers in words."""

import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from deeplimits.parameters import short

INDENT = 4


class Words(str):
    """A text that shows itself as it is, in several lines, at a prompt and in a notebook."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def heading(name: str, values: Mapping[str, Any]) -> str:
    """Name and parameters in one line."""
    return f"{name} ({', '.join(f'{key} = {brief(value)}' for key, value in values.items())})"


def brief(value: Any) -> str:
    if isinstance(value, list):
        return f"[{len(value)} points from {value[0]:.4g} to {value[-1]:.4g}]"
    return short(value) if isinstance(value, float) else str(value)


def tally(agreeing: int, done: int, expected: int, others: Mapping[str, Sequence[str]]) -> str:
    """How many limits agree, how many and which do not, by what is said of them, and how many are still to be run.

    >>> tally(2, 3, 5, {"undecided": ["bai-yin-edges"], "could not be run": []})
    '2 of 3 limits agree with their simulations; 1 undecided: bai-yin-edges; 2 are still to be run'
    """
    said = [f"{agreeing} of {done} limits agree with their simulations"]
    said += [f"{len(some)} {words}: {', '.join(some)}" for words, some in others.items() if some]
    return "; ".join([*said, *([f"{expected - done} are still to be run"] if done < expected else [])])


def setting(given: Mapping[str, Any]) -> str:
    """A parameter by its symbol, between dollar signs, or else by its name."""
    value = given["value"]
    if isinstance(value, str):
        return f"{given['name']}: {value}"
    said = short(value) if f"{value:.3g}" == f"{value:.4g}" else f"{value:.4g}"
    return f"${given['symbol']} = {said}$" if given["symbol"] else f"{given['name']} = {said}"


def columns() -> int:
    """How wide the terminal is; what is written elsewhere, into a pipe or a page, is as wide as one likes."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Aligned columns under a line."""
    head, *lines = aligned([header, *rows])
    if "\n" in head:  # too narrow for columns: a heading over them says nothing
        return "\n".join(lines)
    widths = [max(len(str(row[i])) for row in (header, *rows)) for i in range(len(header))]
    return "\n".join([head, "  ".join("─" * width for width in widths), *lines])


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows in columns; on a terminal too narrow for them, the last cell of each stands under the others.

    >>> aligned([("a", "one"), ("bcd", "two")])
    ['a    one', 'bcd  two']
    """
    widths = [max(len(str(row[i])) for row in rows) for i in range(len(rows[0]))] if rows else []
    narrow = columns()
    if sum(widths) + 2 * (len(widths) - 1) <= narrow:
        return [
            "  ".join(str(cell).ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
        ]

    def under(row: Sequence[str]) -> str:
        *first, last = map(str, row)
        cells = textwrap.wrap("  ".join(first), narrow, subsequent_indent=INDENT * " ")
        return "\n".join([*cells, textwrap.indent(textwrap.fill(last, narrow - INDENT), INDENT * " ")])

    return [under(row) for row in rows]
