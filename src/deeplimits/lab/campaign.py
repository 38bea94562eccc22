"""A campaign: do the verdicts hold away from the defaults? Every limit at random allowed parameters, judged.

A draw must agree, and say within what, be refused in a sentence, or be undecided with its reason. What disagrees
beyond the false-alarm budget, diverges, raises something else or does not end is a fault, of the theory, of the stated
rate, or of the range.
"""

import dataclasses
import json
import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor, as_completed
from dataclasses import dataclass
from typing import Any

import numpy as np

from deeplimits import tails
from deeplimits.catalogue import Entry, catalogue
from deeplimits.errors import DeeplimitsError, NotConverged, OutsideValidity, ParameterError, TooCostly
from deeplimits.lab.workers import TaskTooLong
from deeplimits.parameters import Parameter, parameters_of

FAULTS = ("disagrees", "diverged", "time-out", "error")
OUTCOMES = ("agrees", "undecided", "refused", *FAULTS)
PLANTED = 1.3
"""The factor by which the theory is made wrong, to see whether that is noticed."""
MOST_UNDECIDED, MOST_MISSED = 0.05, 0.05
"""Shares of the draws that may be undecided, and of the planted errors that may go unnoticed."""
LARGEST = 1e6
"""Where a range has no end, it ends here."""
LARGEST_COUNT = 5000
TIME_LIMIT = 300.0
"""Seconds that a case may take: the budget of a comparison, its later rounds, and machines that are busy."""


@dataclass(frozen=True)
class Case:
    """One draw: a limit's name, the parameters that differ from their defaults, and a seed."""

    name: str
    values: dict[str, Any]
    seed: int
    drawn: str = ""
    """The campaign's seed and the number of the draw, as 7/1."""


@dataclass(frozen=True)
class Row:
    """What became of a case."""

    case: Case
    room: str
    outcome: str
    what: str
    """The decisive verdict, or the sentence of the refusal."""
    within: float | None = None
    """The largest error that would not have been noticed in any of its predictions."""
    planted: int = 0
    """Predictions beside which a theory wrong by the factor `PLANTED` was put."""
    rejected: int = 0
    """How many of these were told to disagree."""
    seconds: float = 0.0
    """Time of one core that it took."""

    def to_json(self) -> dict[str, Any]:
        return {**dataclasses.asdict(self.case), **{k: v for k, v in vars(self).items() if k != "case"}}

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> "Row":
        own = {one.name: found[one.name] for one in dataclasses.fields(cls) if one.name in found}
        return cls(_case(found), **own)


def draw(entry: Entry, seed: int, number: int) -> Case:
    """Case `number` of a limit: all parameters at random in every other one, some of them in the rest."""
    words = [ord(letter) for letter in entry.name]
    random = np.random.default_rng([seed, number, *words])
    parameters = parameters_of(entry.load())
    chosen = [name for name in parameters if number % 2 == 0 or random.random() < 0.4]
    chosen = chosen or list(parameters)[:1]
    values = {name: _value(parameters[name], random) for name in chosen}
    return Case(entry.name, values, int(random.integers(2**31)), f"{seed}/{number}")


def _value(parameter: Parameter, random: np.random.Generator) -> Any:
    kind: Any = parameter
    if kind.kind == "choice":
        return str(random.choice(kind.options))
    if kind.kind == "integer":
        high = int(min(kind.high, LARGEST_COUNT))
        if kind.log and kind.low > 0:
            return int(np.clip(round(math.exp(random.uniform(math.log(kind.low), math.log(high)))), kind.low, high))
        return int(random.integers(int(kind.low), high + 1))
    high = min(kind.high, LARGEST)

    def number() -> float:
        if kind.log and kind.low > 0:
            return float(np.clip(math.exp(random.uniform(math.log(kind.low), math.log(high))), kind.low, high))
        return float(random.uniform(kind.low, high))

    return number() if kind.kind == "real" else sorted(number() for _ in range(len(kind.default)))


def judge(case: Case) -> Row:
    """Compare one case. This is what a worker does."""
    began = time.process_time()
    row = _judged(case)
    return dataclasses.replace(row, seconds=round(time.process_time() - began, 2))


def _judged(case: Case) -> Row:
    from deeplimits.lab.compare import compare

    entry = catalogue.entry(case.name)
    try:
        limit = entry.load()(**case.values)
        found = compare(limit, seed=case.seed, progress=False)
    except (OutsideValidity, ParameterError, TooCostly) as error:
        return Row(case, entry.room, "refused", str(error))
    except NotConverged as error:
        return Row(case, entry.room, "error", f"NotConverged: {error}")
    except DeeplimitsError as error:
        return Row(case, entry.room, "diverged", str(error))
    decided = {name: finding for name, finding in found.findings.items() if finding.agrees and finding.noticed}
    decided = {name: finding for name, finding in decided.items() if finding.kind != "Identity"}
    rejected = 0
    for name in decided:
        wrong = [trial.beside(trial.stated.wrong_by(PLANTED) or trial.stated) for trial in found.trials[name]]
        rejected += wrong[-1].stated.judge(wrong).outcome == "disagrees"
    within = max((finding.noticed or 0.0 for finding in decided.values()), default=None)
    what = (
        found.verdict
        if found.agrees
        else "; ".join(
            f"{name} {finding.verdict}" for name, finding in found.findings.items() if finding.outcome == found.outcome
        )
    )
    return Row(case, entry.room, found.outcome, what, within, len(decided), rejected)


def run(cases: Iterable[Case], workers: Executor) -> Iterator[Row]:
    """Rows, as they come."""
    waiting = {workers.submit(judge, case): case for case in cases}
    for future in as_completed(waiting):
        case = waiting[future]
        try:
            yield future.result()
        except TaskTooLong as error:
            yield Row(case, catalogue.entry(case.name).room, "time-out", str(error))
        except Exception as error:
            sentence = " ".join(f"{type(error).__name__}: {error}".split())
            yield Row(case, catalogue.entry(case.name).room, "error", sentence[:400])


def table(rows: Sequence[Row]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Counts of outcomes by room, and of planted errors that were rejected."""
    heading = ("room", "draws", *OUTCOMES, f"planted x {PLANTED:g} rejected")
    lines = []
    for room in (*sorted({row.room for row in rows}), "all"):
        own = [row for row in rows if room in ("all", row.room)]
        counts = Counter(row.outcome for row in own)
        planted = f"{sum(row.rejected for row in own)} of {sum(row.planted for row in own)}"
        lines.append((room, str(len(own)), *(str(counts[outcome]) for outcome in OUTCOMES), planted))
    return heading, lines


def complaints(rows: Sequence[Row]) -> list[str]:
    """What a campaign finds wrong, a sentence each: every fault, and shares that are not due to chance."""
    found = [
        f"{row.outcome}: {row.case.name} {row.case.values} seed {row.case.seed}: {row.what}"
        for row in rows
        if row.outcome in FAULTS
    ]
    undecided = sum(row.outcome == "undecided" for row in rows)
    if beyond_chance(undecided, len(rows), MOST_UNDECIDED):
        found.append(f"{undecided} of {len(rows)} draws are undecided, more than {MOST_UNDECIDED:.0%}")
    planted, missed = sum(row.planted for row in rows), sum(row.planted - row.rejected for row in rows)
    if beyond_chance(missed, planted, MOST_MISSED):
        found.append(
            f"{missed} of {planted} theories wrong by {PLANTED - 1:.0%} were not rejected, more than {MOST_MISSED:.0%}"
        )
    return found


def shares() -> dict[str, str]:
    """What a campaign asks for, in words, for its page."""
    return {"wrong": f"{PLANTED - 1:.0%}", "undecided": f"{MOST_UNDECIDED:.0%}", "missed": f"{MOST_MISSED:.0%}"}


def beyond_chance(count: int, total: int, share: float) -> bool:
    """Whether so many of a total are more than a share, at the level of one in a thousand."""
    return total > 0 and tails.binomial_tail(count, total, share) < 1e-3


def load(text: str) -> list[Case]:
    """Cases written as JSON, a line each, with `name`, `values` and `seed`; an array of them as well."""
    text = text.strip()
    try:
        found = json.loads(text) if text.startswith("[") else [json.loads(line) for line in text.splitlines()]
    except (ValueError, RecursionError) as error:
        raise ParameterError(f"the cases cannot be read ({error}); write one as JSON on each line") from None
    return [_case(one) for one in found]


def _case(found: Any) -> Case:
    about = found if isinstance(found, dict) else {}
    parts = about.get("name"), about.get("values"), about.get("seed")
    if not all(isinstance(part, kind) for part, kind in zip(parts, (str, dict, int), strict=True)):
        raise ParameterError(
            'a case has "name", "values" and "seed", as {"name": "bai-yin-edges", "values": {}, "seed": 0}'
        )
    return Case(found["name"], found["values"], found["seed"], found.get("drawn", ""))
