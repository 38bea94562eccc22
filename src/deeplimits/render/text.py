"""Tables and headings for a terminal."""

from collections.abc import Sequence
from typing import Any

from deeplimits.catalogue import catalogue
from deeplimits.limit import Limit, values_of


def heading(limit: Limit) -> str:
    """Name and parameters in one line."""
    values = ", ".join(f"{name} = {brief(value)}" for name, value in values_of(limit).items())
    return f"{catalogue.name_of(type(limit))} ({values})"


def brief(value: Any) -> str:
    if isinstance(value, list):
        return f"[{len(value)} points from {value[0]:.4g} to {value[-1]:.4g}]"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Aligned columns under a line."""
    widths = [max(len(str(row[i])) for row in (header, *rows)) for i in range(len(header))]

    def line(row: Sequence[str]) -> str:
        return "  ".join(str(cell).ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()

    return "\n".join([line(header), "  ".join("─" * width for width in widths), *map(line, rows)])
