"""Networks that are more than a chain of layers: residual branches, normalizations, attention, and what was read."""

import collections
import math
from collections.abc import Iterator

import numpy as np

from deeplimits.diagnosis import backward, correlations
from deeplimits.diagnosis.findings import Assumption, Finding, few, graded, times
from deeplimits.diagnosis.propagation import Expected
from deeplimits.measure.adapters.architecture import Architecture, Operation
from deeplimits.measure.estimates import Estimate
from deeplimits.predictions.picture import Axis, Line, Picture, Points

SIGNAL = (1e2, 1e4)
"""By which factor signals, or gradients, may change along the network: a warning, critical."""
BRANCH = (10.0, 100.0)
"""How much more than the stream it is added to a branch may carry, where the other branches carry far less."""
APART = 10.0
"""How far from the other branches that is."""
DEPARTS = 4.0
"""Standard errors beyond which the prediction and the measurement are not taken to agree."""
PLURAL = {
    "affine": "affine layers", "activation": "activations", "layer norm": "normalizations", "batch norm": "batch norms",
    "embedding": "embeddings", "sum": "residual sums", "attention": "attentions", "pooling": "poolings",
    "concatenation": "concatenations", "dropout": "dropouts", "product": "signal products",
}  # fmt: skip


def reading(read: Architecture, stated: list[Expected]) -> Finding:
    """What the network was read to be, and where prediction begins anew."""
    counts = collections.Counter(one.kind for one in read.operations)
    said = ", ".join(f"{counts[kind]} {_words(kind, counts[kind])}" for kind in PLURAL if counts[kind])
    again = [one for one, line in zip(read.operations, stated, strict=True) if line.restarted]
    after = collections.Counter(one.what or one.kind for one in again)
    sentence = f"read: {said or 'no layer'}"
    if read.idle:
        sentence += f"; idle in evaluation: {', '.join(read.idle[:3])}{' …' if len(read.idle) > 3 else ''}"
    if again:
        words = ", ".join(f"{name} ({count})" for name, count in after.most_common(5))
        sentence += (
            f". No law of wide layers is used for: {words}; behind them prediction goes on from what is measured"
        )
    return Finding(
        "architecture",
        "initialization",
        "fine",
        f"{sentence}.",
        measured=Estimate(len(read.operations), None),
        what="operations",
        references=("schoenholz2017", "yang2017", "xiao2018"),
        brief=f"read: {said or 'no layer'}.",
    )


def _words(kind: str, count: int) -> str:
    """'1 pooling', '2 poolings'."""
    return PLURAL[kind] if count > 1 else PLURAL[kind].removesuffix("s")


def stream(read: Architecture) -> list[Operation]:
    """Where signals are looked at along the network: its residual sums, or the affine layers but the last."""
    trunk = read.trunk
    if len(trunk) >= 2:
        return trunk
    affine = read.of("affine")
    return affine[:-1] if len(affine) > 2 else affine


def signal_size(read: Architecture, stated: list[Expected], independent: bool) -> Iterator[Finding]:
    """Mean squares along the network, beside what wide layers of these variances have."""
    places = stream(read)
    if len(places) < 2 or not all(float(one.moment.mean()) > 0 for one in places):
        return
    measured = np.array([float(one.moment.mean()) for one in places])
    lines = [stated[one.place] for one in places]
    predicted = np.array([line.mean for line in lines])
    error = np.array([math.sqrt(line.spread) for line in lines])
    away = np.maximum(measured / measured[0], measured[0] / measured)
    worst = int(np.argmax(away))
    factor, theory = measured[worst] / measured[0], predicted[worst] / predicted[0]
    severity = graded(float(away[worst]), *SIGNAL)
    what = "residual sums" if places[0].kind == "sum" else "layers"
    begun = sum(line.restarted for line in stated)
    yield Finding(
        "signal-size",
        "initialization",
        severity,
        f"signals {'grow' if factor > 1 else 'shrink'} {times(factor)} in mean square along {len(places)} {what}, at "
        f"most until {places[worst].name}; theory expects {times(theory)} of wide layers with these weights.",
        "" if severity == "fine" else _mending(places[0].kind == "sum", len(places)),
        Estimate(factor, factor * float(error[worst])),
        "mean square at its farthest over that at the first place",
        theory,
        (
            Assumption("weights are independent and centred, as at initialization", independent),
            Assumption("layers are wide", None),
            Assumption("every operation has a law (where not, measured moments are taken)", begun == 0),
        ),
        ("roberts2022", "schoenholz2017"),
        picture(places, measured, predicted, error),
    )


def _mending(residual: bool, count: int) -> str:
    if residual:
        return (
            f"multiply what enters each residual sum by 1/√{count} = {count**-0.5:.2g} (or start the last layers of "
            "branches so), or put a normalization at the beginning of each branch."
        )
    return "initialize with the critical variances of the activation, or put a normalization between the layers."


def picture(places: list[Operation], measured: np.ndarray, predicted: np.ndarray, error: np.ndarray) -> Picture:
    """Measured and predicted mean squares in order."""
    order = np.arange(1, len(places) + 1)
    low, high = predicted * np.exp(-2 * error), predicted * np.exp(2 * error)
    what = "residual sum" if places[0].kind == "sum" else "layer"
    return Picture(
        Axis(what, whole=True),
        Axis("mean square of what leaves it", log=bool(np.all(low > 0))),
        (
            Line(order, predicted, label="wide layers of these variances"),
            Points(order, predicted, low, high, label="two standard errors of finite widths"),
            Points(order, measured, label="measured", role="simulation", series=0),
        ),
    )


def gradient_size(read: Architecture, stated: list[Expected], independent: bool) -> Iterator[Finding]:
    """Squared gradients at the beginning of the stream over those at its end, beside what wide layers have."""
    last = len(read.operations) - 1
    places = [one for one in stream(read) if math.isfinite(one.slope) and one.slope > 0 and one.place < last]
    if len(places) < 2:
        return
    measured = np.array([one.slope for one in places])
    slopes = backward.expected_slopes(read, stated)
    line = slopes[[one.place for one in places]]
    known = bool(np.all(np.isfinite(line)) and np.all(line > 0))
    factor, theory = float(measured[0] / measured[-1]), float(line[0] / line[-1]) if known else None
    shared = backward.shared_out(read, places[0], places[-1])
    severity = graded(max(factor / shared, shared / factor), *SIGNAL)
    order = np.arange(1, len(places) + 1)
    said = f"gradients are {_beside(factor)} in square at {places[0].name} than at {places[-1].name}"
    if theory is not None:
        said += f"; theory expects {_beside(theory)} of independent weights of these variances"
    if max(shared, 1 / shared) > 1 + 1e-9:
        said += f" (poolings between them account for {_beside(shared)}, which is no fault)"
    points = Points(order, measured / measured[-1], label="measured", role="simulation", series=0)
    lines = (Line(order, line / line[-1], label="wide layers of these variances"),) if known else ()
    yield Finding(
        "gradient-size",
        "initialization",
        severity,
        f"{said}.",
        "" if severity == "fine" else _mending(places[0].kind == "sum", len(places)),
        Estimate(factor, factor * math.sqrt(backward.scatter(read, stated, slopes, places[0], places[-1]))),
        "squared gradient at the beginning over that at the end",
        theory,
        (
            Assumption("weights are independent and centred, as at initialization", independent),
            Assumption("layers are wide", None),
        ),
        references=("schoenholz2017",),
        picture=Picture(
            Axis("residual sum" if places[0].kind == "sum" else "layer", whole=True),
            Axis("squared gradient over that at the last", log=True),
            (*lines, points),
        ),
    )


def _beside(factor: float) -> str:
    return f"{times(factor)} {'larger' if factor > 1 else 'smaller'}"


def branches(read: Architecture, stated: list[Expected]) -> Iterator[Finding]:
    """How much each residual branch adds to the stream: one that adds far more than the others is named."""
    trunk = read.trunk
    if len(trunk) < 2:
        return
    shares, lines, names, errors = [], [], [], []
    for before, one in zip([None, *trunk], trunk, strict=False):
        inside = read.above(one.place) if before is None else {before.place}
        own = [p for p in one.sources if before is not None and (p in inside or before.place in read.above(p))]
        # The stream is the source that is nearest to the sum before; the rest is the branch.
        main = min(own or one.sources, key=lambda p: len(read.above(p)))
        rest = [p for p in one.sources if p != main]
        if not rest:
            continue
        carried = float(read.operations[main].moment.mean())
        shares.append(sum(float(read.operations[p].moment.mean()) for p in rest) / max(carried, 1e-300))
        lines.append(sum(stated[p].mean for p in rest) / max(stated[main].mean, 1e-300))
        names.append(_layer(read, rest[0]))
        errors.append(shares[-1] * math.sqrt(sum(stated[p].spread for p in (*rest, main))))
    if len(shares) < 2:
        return
    worst = int(np.argmax(shares))
    others = float(np.median(np.delete(shares, worst)))
    alone = shares[worst] > APART * max(others, 1e-12)
    severity = graded(shares[worst], *BRANCH) if alone else "fine"
    sentence = (
        f"of {len(shares)} residual branches the one that ends in {names[worst]} adds most: {shares[worst]:.3g} times "
        f"the mean square of the stream (the others {few(others)}; theory expects {lines[worst]:.3g} of its weights)"
    )
    order = np.arange(1, len(shares) + 1)
    yield Finding(
        "residual-branches",
        "initialization",
        severity,
        f"{sentence}: what was there before is lost in it." if severity != "fine" else f"{sentence}.",
        ""
        if severity == "fine"
        else f"divide the weights of {names[worst]} by about {few(math.sqrt(shares[worst] / max(others, 1e-12)))}.",
        Estimate(shares[worst], errors[worst]),
        "mean square of a branch over that of the stream",
        lines[worst],
        (Assumption("weights are independent and centred, as at initialization", None),),
        ("roberts2022",),
        Picture(
            Axis("residual sum", whole=True),
            Axis("mean square of the branch over that of the stream", log=bool(min(shares) > 0 and min(lines) > 0)),
            (
                Line(order, np.array(lines), label="wide layers of these variances"),
                Points(order, np.array(shares), label="measured", role="simulation", series=0),
            ),
        ),
        urgency=2.0,
    )


def depth_scale(
    read: Architecture, stated: list[Expected], made: list[correlations.Alike | None], independent: bool
) -> Iterator[Finding]:
    """How alike two samples become along the stream."""
    places = stream(read)
    if places:
        mending = _mending(places[0].kind == "sum", len(places))
        yield from correlations.examine(read, stated, made, places, independent, mending)


def _layer(read: Architecture, place: int) -> str:
    """The last affine layer of a branch, or the operation itself."""
    one = read.operations[place]
    while one.kind != "affine" and len(one.sources) == 1:
        one = read.operations[one.sources[0]]
    return one.name if one.kind == "affine" else read.operations[place].name
