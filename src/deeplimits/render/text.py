"""Tables, headings and numbers in words."""

from collections.abc import Mapping, Sequence
from typing import Any


def heading(name: str, values: Mapping[str, Any]) -> str:
    """Name and parameters in one line."""
    return f"{name} ({', '.join(f'{key} = {brief(value)}' for key, value in values.items())})"


def brief(value: Any) -> str:
    if isinstance(value, list):
        return f"[{len(value)} points from {value[0]:.4g} to {value[-1]:.4g}]"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def setting(given: Mapping[str, Any]) -> str:
    """A parameter by its symbol, between dollar signs, or else by its name."""
    value = given["value"]
    if isinstance(value, str):
        return f"{given['name']}: {value}"
    return f"${given['symbol']} = {value:.4g}$" if given["symbol"] else f"{given['name']} = {value:.4g}"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Aligned columns under a line."""
    widths = [max(len(str(row[i])) for row in (header, *rows)) for i in range(len(header))]

    def line(row: Sequence[str]) -> str:
        return "  ".join(str(cell).ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()

    return "\n".join([line(header), "  ".join("─" * width for width in widths), *map(line, rows)])
