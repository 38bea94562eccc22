"""What an object shows in a notebook's cell."""

import html
from collections.abc import Sequence


def fragment(heading: str, header: Sequence[str], rows: Sequence[Sequence[str]], picture: str = "") -> str:
    """A table and a figure for a notebook's cell, which has a style of its own."""
    escape = html.escape
    head = "".join(f"<th style='text-align:left'>{escape(str(cell))}</th>" for cell in header)
    body = "".join(
        "<tr>" + "".join(f"<td style='text-align:left'>{escape(str(cell))}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div><p>{escape(heading)}</p>{table}{picture}</div>"
