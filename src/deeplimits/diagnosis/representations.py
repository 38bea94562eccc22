"""What enters the last layer: how far its classes have collapsed; and how far the tokens of a sequence have."""

import itertools
import math
from collections.abc import Iterator

import numpy as np

from deeplimits.diagnosis.findings import Assumption, Finding, graded
from deeplimits.diagnosis.subject import Subject
from deeplimits.errors import DeeplimitsError
from deeplimits.measure.adapters.architecture import Architecture, Operation
from deeplimits.measure.classes import measure_collapse
from deeplimits.measure.estimates import Estimate
from deeplimits.predictions.picture import Axis, Line, Picture, Points, Rule
from deeplimits.theory.attention import equiangular_cosine

MERGED = (0.9, 0.99)
"""Mean cosines of two tokens of a sequence from which a note, a warning."""


def examine(subject: Subject) -> Iterator[Finding]:
    """Neural collapse, and how tokens come together where there are any."""
    yield from _tokens(subject)
    yield from _collapse(subject)


def _tokens(subject: Subject) -> Iterator[Finding]:
    read = subject.architecture
    attention = read.of("attention")
    stream = [one for one in read.trunk if one.tokens is not None and one.tokens.shape[1] > 2]
    if not attention or len(stream) < 2:
        return
    tokens = stream[0].tokens.shape[1]  # type: ignore[union-attr]
    before = [
        one
        for one in read.operations[: stream[0].place]
        if one.tokens is not None and one.tokens.shape == stream[0].tokens.shape  # type: ignore[union-attr]
    ]
    places = [*before[-1:], *stream]
    cosines = np.array([mean_cosine(one.tokens) for one in places])  # type: ignore[arg-type]
    last = np.asarray(places[-1].tokens)
    if not np.all(np.isfinite(cosines)):
        return
    elapsed = _times(read, places, cosines)
    start = float(np.clip(cosines[0], -1 / (tokens - 1) + 1e-6, 1 - 1e-9))
    # Sums to which no attention adds take no time: the flow is solved at each time once.
    times, place = np.unique(elapsed, return_inverse=True)
    path = np.array(equiangular_cosine(start, times, tokens, 0.0).cosine) if len(times) > 1 else np.array([start])
    line = path[place]
    value = float(cosines[-1])
    severity = graded(value, *MERGED) if value > MERGED[0] else "fine"
    severity = {"warning": "note", "critical": "warning"}.get(severity, severity)
    sentence = (
        f"two tokens of a sequence have a mean cosine of {cosines[0]:.2f} before the first residual and {value:.2f} "
        f"after the last, where theory expects {line[-1]:.2f} of tokens that see all others alike"
    )
    order = np.arange(len(places))
    yield Finding(
        "token-clustering",
        "representations",
        severity,
        f"{sentence}: tokens have become nearly the same, and attention has nothing to tell apart."
        if severity == "warning"
        else f"{sentence}.",
        "weaken the attention branches (a smaller scale at the start), or put a normalization before them."
        if severity == "warning"
        else "",
        Estimate(
            value,
            float(np.std([mean_cosine(one[None]) for one in last]) / math.sqrt(len(last))),
        ),
        "mean cosine of two tokens after the last residual sum",
        float(line[-1]),
        (
            Assumption("values act as the identity, and every token sees all others alike", False),
            Assumption("a branch as long as what it is added to moves by one unit of time", None),
        ),
        ("geshkovski2025",),
        Picture(
            Axis("residual sum", whole=True),
            Axis("mean cosine of two tokens"),
            (
                Line(order, line, label="equal angles, uniform attention"),
                Points(order, cosines, label="measured", role="simulation", series=0),
            ),
        ),
    )


def mean_cosine(tokens: np.ndarray) -> float:
    """Mean cosine of two tokens of one sequence, over sequences (samples, tokens, features)."""
    lengths = np.linalg.norm(tokens, axis=2, keepdims=True)
    if not np.all(lengths > 0):
        return float("nan")
    x = tokens / lengths
    n = x.shape[1]
    return float(np.mean((np.sum(np.sum(x, axis=1) ** 2, axis=1) - n) / (n * (n - 1))))


def _times(read: Architecture, places: list[Operation], cosines: np.ndarray) -> np.ndarray:
    """Time up to each place: what an attention adds, over the length of the mean of all tokens."""
    mixing = {one.place for one in read.of("attention")}
    elapsed, n = [0.0], places[-1].tokens.shape[1]  # type: ignore[union-attr]
    for (before, one), cosine in zip(itertools.pairwise(places), cosines, strict=False):
        own = read.above(one.place) - read.above(before.place) - {before.place}
        branch = min(one.sources, key=lambda p: (p == before.place, -len(read.above(p))))
        added = 0.0
        if own & mixing:
            carried = float(before.moment.mean())
            mean = math.sqrt(max((1 + (n - 1) * cosine) / n, 1e-12))
            added = math.sqrt(float(read.operations[branch].moment.mean()) / carried) / mean if carried > 0 else 0.0
        elapsed.append(elapsed[-1] + added)
    return np.array(elapsed)


def _collapse(subject: Subject) -> Iterator[Finding]:
    """The four measures of neural collapse, where there are classes and a last linear layer."""
    if not subject.classes:
        return
    try:
        found = measure_collapse(subject.model)
    except DeeplimitsError:
        return
    parts = [f"NC1 {float(found.nc1):.2g} (scatter within classes over that between)"]
    parts.append(f"NC2 {float(found.nc2_angles):.2g} (angles of class means, from a simplex)")
    if found.nc3 is not None:
        parts.append(f"NC3 {float(found.nc3):.2g} (classifier against class means)")
    if found.nc4 is not None:
        parts.append(f"NC4 {float(found.nc4):.2g} (samples that the nearest mean calls otherwise)")
    yield Finding(
        "neural-collapse",
        "representations",
        "note",
        f"features before the last layer: {'; '.join(parts)}. All four vanish where training ends, if it goes on long "
        "after the last error.",
        measured=Estimate(float(found.within_over_between), None),
        what="tr Σ_W/tr Σ_B",
        theory=0.0,
        assumptions=(Assumption("training goes on after the training error is zero, with weight decay", None),),
        references=("papyan2020b",),
        picture=_measures(found),
        urgency=-1.0,
        brief=f"classes scatter {float(found.within_over_between):.2g} times as much within as between them; 0 after "
        "long training.",
        theory_what="at the end of training",
    )


def _measures(found) -> Picture:
    values = [found.nc1, found.nc2_angles, found.nc3, found.nc4]
    shown = [(i + 1, float(value)) for i, value in enumerate(values) if value is not None and math.isfinite(value)]
    places, heights = (np.array(row) for row in zip(*shown, strict=True))
    return Picture(
        Axis("1 scatter within classes, 2 angles, 3 classifier, 4 disagreement", whole=True, low=0.5, high=4.5),
        Axis("distance from collapse", low=0.0),
        (
            Points(places, heights, label="measured", role="simulation", series=0),
            Rule(0.0, label="collapsed"),
        ),
    )
