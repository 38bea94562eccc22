"""Tables, headings and numbers in words."""

from collections.abc import Mapping, Sequence
from typing import Any

from deeplimits.parameters import short


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


def setting(given: Mapping[str, Any]) -> str:
    """A parameter by its symbol, between dollar signs, or else by its name."""
    value = given["value"]
    if isinstance(value, str):
        return f"{given['name']}: {value}"
    said = short(value) if f"{value:.3g}" == f"{value:.4g}" else f"{value:.4g}"
    return f"${given['symbol']} = {said}$" if given["symbol"] else f"{given['name']} = {said}"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Aligned columns under a line."""
    widths = [max(len(str(row[i])) for row in (header, *rows)) for i in range(len(header))]

    def line(row: Sequence[str]) -> str:
        return "  ".join(str(cell).ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()

    return "\n".join([line(header), "  ".join("─" * width for width in widths), *map(line, rows)])
