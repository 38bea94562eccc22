"""The results of a campaign as a page of the documentation."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

PAGE = """\
# The campaign

Do the verdicts hold away from the defaults? Every limit is compared at random parameters inside its ranges, as
`compare` does it unless told otherwise. A draw *agrees*, and says within what; is *undecided*, and says what would
decide; or is *refused*, in a sentence, before anything is simulated. To disagree, to diverge, to raise anything else
or not to end is a fault. Every prediction that agrees and has a power is judged once more beside a theory wrong by
{wrong}, which must be rejected. What these words mean stands in [Concepts](concepts.md). This page is written by

    deeplimits campaign --page docs/campaign.md

which draws fresh parameters from a seed that it prints, runs what is missing in its file of outcomes, and ends with
an exit code other than 0 where it finds a fault, more than {undecided} undecided, or more than {missed} of the planted
errors unnoticed.

## Counts

{draws} draws, from the seeds {seeds}.

{table}

## Undecided

{reasons}

## Faults

{faults}

## Refused

One sentence for each limit that refused a draw, and how many it refused.

{refusals}
"""


def page(rows: Sequence[Any], counts: tuple[Sequence[str], Sequence[Sequence[str]]], shares: dict[str, str]) -> str:
    """The page, from the rows of a campaign, its table of counts, and the shares that it asks for in words."""
    seeds = sorted({row.case.drawn.partition("/")[0] for row in rows if row.case.drawn}, key=int)

    def own(outcomes: Sequence[str]) -> list[tuple[str, ...]]:
        chosen = [row for row in rows if row.outcome in outcomes]
        return sorted((f"`{row.case.name}`", row.outcome, row.case.drawn, row.what) for row in chosen)

    refused: dict[str, list[str]] = {}
    for row in rows:
        if row.outcome == "refused":
            refused.setdefault(f"`{row.case.name}`", []).append(row.what)
    faults = own(("disagrees", "diverged", "time-out", "error"))
    undecided = [(name, drawn, what) for name, _, drawn, what in own(("undecided",))]
    return PAGE.format(
        **shares,
        draws=len(rows),
        seeds=", ".join(seeds) or "of the cases given",
        table=_table(*counts),
        reasons=_table(("limit", "draw", "why"), undecided) if undecided else "None.",
        faults=_table(("limit", "found", "draw", "what"), faults) if faults else "None.",
        refusals=_table(
            ("limit", "draws", "for example"),
            [(name, str(len(said)), said[0]) for name, said in sorted(refused.items())],
        ),
    )


def write(rows: Sequence[Any], counts: Any, shares: dict[str, str], path: Path) -> None:
    """Write the page to a file."""
    path.write_text(page(rows, counts, shares), encoding="utf-8")


def _table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    def line(cells: Sequence[str]) -> str:
        # What is an operator in a sentence must not become markup, nor a bar a column.
        plain = [cell if cell.startswith("`") else _plain(cell) for cell in cells]
        return f"| {' | '.join(plain)} |"

    return "\n".join([line(heading), line(["---"] * len(heading)), *map(line, rows)])


def _plain(cell: str) -> str:
    if set(cell) == {"-"}:
        return cell
    for mark in "\\*_`|<$[":
        cell = cell.replace(mark, f"\\{mark}")
    return " ".join(cell.split())
