r"""How alike inputs become along any network, and how fast: pairs of samples followed through its operations.

With the mean products K(x, x') of two samples at every position, independent centred weights and wide layers make

    affine         C_b + C_w K, a mean over the taps of a convolution     activation   E σ(u)σ(v), (u, v) ~ N(0, K)
    residual sum   the sum of its parts                                   layer norm   γ²K/√((K(x,x) + ε)(K(x',x') + ε))

Near inputs are followed to first order: their squared distance is multiplied by what multiplies squared gradients. Over
the signal's own growth that is the rate at which their cosine leaves 1. In a chain of one kind of layers it is the same
in every layer, and its inverse logarithm the depth scale. Where branches are added to a stream it falls with the depth:
cosines converge like a power of the depth, or slower than any exponential (Yang and Schoenholz); convolutions have the
rate of fully connected layers (Xiao et al.). Where attention or a pooling mixes positions there is no such law: behind
it the cosines that were measured are followed, and there is no rate.
"""

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from deeplimits.diagnosis import backward
from deeplimits.diagnosis.findings import Assumption, Finding, few, times
from deeplimits.diagnosis.propagation import Expected, mixed
from deeplimits.errors import DeeplimitsError
from deeplimits.measure.adapters.architecture import Architecture, Operation
from deeplimits.measure.adapters.pairs import mean_cosine
from deeplimits.measure.estimates import Estimate
from deeplimits.models.activations import activation
from deeplimits.predictions.picture import SIMULATION, Axis, Line, Picture, Points
from deeplimits.theory.gaussian import second_moment

SHAKEN = 24
"""Copies of the recursion that finite widths disturb, each by its own chance: their scatter is the error."""
FEW = 6
"""A depth scale shorter than this share of the depth loses what inputs have to say."""
LEVEL = 0.05
"""Of the logarithm of the rate over all depth: below, near inputs keep their distance."""
FALLS = 0.75
"""Of the rate in the first half: where the second half has less, it is said to fall."""
MERGED = 0.01
"""Of 1 − cosine at the beginning: where less is left, samples have become the same."""
GIVEN = ("input", "embedding")
CENTRED = 0.01
"""Share of the mean in what is normalized, below which taking it off changes nothing."""
WIDTHS = "two standard errors of finite widths"


class Alike(NamedTuple):
    """Mean products of pairs, (pairs, positions), those of both samples in disturbed copies too."""

    first: np.ndarray
    second: np.ndarray
    both: np.ndarray
    """(1 + copies, pairs, positions), the first undisturbed"""
    inner: np.ndarray | None = None
    """The same without what this layer's own units disturb: an activation passes that on in its own way"""
    restarted: bool = False
    """Whether these are measured, as no law is known"""

    @property
    def cosine(self) -> float:
        """The undisturbed mean cosine."""
        return float(mean_cosine(self.first, self.second, self.both[0]))

    @property
    def error(self) -> float:
        """Of the measured cosine about it, from all finite widths below and its own."""
        found = mean_cosine(self.first, self.second, self.both)
        return float(np.sqrt(np.mean((found[1:] - found[0]) ** 2)))

    def each(self, change: Callable[[np.ndarray], np.ndarray]) -> "Alike":
        """With all products of both samples changed."""
        inner = None if self.inner is None else change(self.inner)
        return self._replace(both=change(self.both), inner=inner, restarted=False)


def alike(read: Architecture, stated: list[Expected]) -> list[Alike | None]:
    """The prediction at every operation; None where samples cannot be told apart."""
    random, count = np.random.default_rng(0), followed_pairs(read)
    read = read._replace(
        operations=tuple(one._replace(pairs=one.pairs and one.pairs.of(count)) for one in read.operations)
    )
    found: list[Alike | None] = []
    for one in read.operations:
        given = [found[place] for place in one.sources]
        draws = random.normal(size=SHAKEN)
        made = None
        if one.pairs is not None and not stated[one.place].restarted:
            try:
                made = _followed(one, given, stated, read, (draws - draws.mean()) / draws.std())
            except DeeplimitsError:
                made = None
            if made is not None and not _fits(made, one):
                made = None
        found.append(made or _measured(one))
    return found


def followed_pairs(read: Architecture) -> int:
    """How many pairs were kept of every operation: of large images fewer."""
    return min((len(one.pairs.first) for one in read.operations if one.pairs is not None), default=0)


def _fits(made: Alike, one: Operation) -> bool:
    """Whether positions are those of the result, and all numbers are numbers."""
    shape = None if one.pairs is None else one.pairs.first.shape
    return made.first.shape == shape and bool(np.all(np.isfinite(made.both)) and np.all(made.first >= 0))


def _measured(one: Operation) -> Alike | None:
    if one.pairs is None:
        return None
    found = one.pairs
    return Alike(
        found.first, found.second, np.repeat(found.both[None], 1 + SHAKEN, axis=0), None, one.kind not in GIVEN
    )


def _followed(one: Operation, given: list[Alike | None], stated: list[Expected], read: Architecture, draws: np.ndarray):
    c, pairs = one.constants, one.pairs
    if not given or pairs is None or any(part is None for part in given):
        return None
    parts = [part for part in given if part is not None]
    first, source = parts[0], read.operations[one.sources[0]]
    gaussian = stated[source.place].gaussian
    if one.kind == "affine":
        return _affine(one, first, source, draws)
    if one.kind == "activation" and one.what and gaussian:
        return _activated(one, first, pairs.error, draws)
    if one.kind == "layer norm" and "group" not in one.what and len(one.shape) < 4:
        return _normalized(first, c) if gaussian or source.centre < CENTRED else None
    if one.kind == "batch norm" and "factor" in c:
        return _linear(first, c["factor"], c["offset"])
    if one.kind == "sum" and len({part.first.shape for part in parts}) == 1:
        return _summed(parts, pairs.error, draws)
    if one.kind in ("scale", "shift"):
        return _linear(first, c.get("factor", 1.0), c.get("shift", 0.0))
    return None


def _linear(one: Alike, factor: float, offset: float) -> Alike:
    return one._replace(first=factor * one.first + offset, second=factor * one.second + offset).each(
        lambda both: factor * both + offset
    )


def _normalized(one: Alike, c: dict[str, float]) -> Alike:
    left, right = one.first + c["epsilon"], one.second + c["epsilon"]
    size = np.sqrt(left * right)
    return one._replace(
        first=c["gain"] * one.first / left + c["shift"], second=c["gain"] * one.second / right + c["shift"]
    ).each(lambda both: c["gain"] * both / size + c["shift"])


def _affine(one: Operation, first: Alike, source: Operation, draws: np.ndarray) -> Alike | None:
    c, pairs = one.constants, one.pairs
    maps = np.stack([first.first, first.second, *first.both])
    if pairs is None:
        return None
    if one.spread is not None:
        made = one.spread(maps.reshape(-1, maps.shape[-1]))
        if made is None:
            return None
        maps = made.reshape(*maps.shape[:2], -1)
    elif maps.shape[2] != pairs.first.shape[1]:
        # All positions enter, or it is not known which.
        if pairs.first.shape[1] != 1 or c["fan_in"] != np.prod(source.shape[1:]):
            return None
        maps = maps.mean(axis=2, keepdims=True)
    maps = c["bias_variance"] + c["weight_variance"] * maps
    return _shaken(Alike(maps[0], maps[1], maps[2:], maps[2:]), pairs.error, draws)


def _activated(one: Operation, first: Alike, error: float, draws: np.ndarray) -> Alike:
    least = 1e-9 * max(float(first.first.mean()), 1e-300)
    a, b = np.maximum(first.first, least), np.maximum(first.second, least)
    squares = np.asarray(second_moment(activation(one.what), np.concatenate([a.ravel(), b.ravel()])))
    entering = first.both if first.inner is None else first.inner
    copies = len(entering)
    products = mixed(one.what, np.tile(a.ravel(), copies), np.tile(b.ravel(), copies), _bounded(entering, a, b).ravel())
    left, right = (part.reshape(a.shape) for part in np.split(squares, 2))
    return _shaken(Alike(left, right, products.reshape(entering.shape)), error, draws)


def _summed(parts: list[Alike], error: float, draws: np.ndarray) -> Alike:
    """With what products of different parts, zero in wide layers, add to the scatter: 1 − Σ shares² of it."""
    first, second, both = (np.sum([part[i] for part in parts], axis=0) for i in range(3))  # type: ignore[arg-type]
    shares = np.array([part.first.mean() for part in parts]) / max(float(first.mean()), 1e-300)
    return _shaken(Alike(first, second, both), error * math.sqrt(max(1 - float(np.sum(shares**2)), 0.0)), draws)


def _shaken(one: Alike, error: float, draws: np.ndarray) -> Alike:
    """Disturbed copies moved towards or away from equal samples, so that mean cosines scatter by this error."""
    root = np.sqrt(one.first * one.second)
    size = np.sqrt(one.first.sum(axis=1) * one.second.sum(axis=1))
    room = float(np.mean((root - one.both[0]).sum(axis=1) / size)) if np.all(size > 0) else 0.0
    if not error or room <= 1e-12:
        return one
    both = one.both.copy()
    both[1:] += (error / room) * draws[:, None, None] * (root - both[1:])
    return one._replace(both=_bounded(both, one.first, one.second))


def _bounded(both: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    bound = np.sqrt(first * second)
    return np.clip(both, -bound, bound)


def variances(one: Alike) -> np.ndarray:
    """Of what leaves an operation, at the samples and positions that are followed."""
    return np.concatenate([one.first.ravel(), one.second.ravel()])


def near(read: Architecture, stated: list[Expected], start: Operation, end: Operation) -> float:
    """By how much the squared distance of near inputs grows from one place to another, beside the signal; NaN unknown.

    Its logarithm over the number of layers between is −1 over the depth scale of the ordered phase.
    """
    found = np.zeros(len(read.operations))
    found[start.place] = 1.0
    for one in read.operations[start.place + 1 : end.place + 1]:
        # A pooling, or parts put side by side, multiply distances by more than they do gradients.
        if any(found[place] for place in one.sources) and one.kind in ("pooling", "concatenation"):
            found[one.place] = math.nan
            continue
        found[one.place] = sum(
            backward.law(one, read.operations[place], stated[place], read) * found[place]
            for place in one.sources
            if found[place]
        )
    grown = stated[end.place].mean / stated[start.place].mean if stated[start.place].mean > 0 else math.nan
    return float(found[end.place] / grown) if grown > 0 else math.nan


def examine(
    read: Architecture,
    stated: list[Expected],
    made: list[Alike | None],
    places: list[Operation],
    independent: bool,
    mending: str,
) -> Iterator[Finding]:
    """How alike two samples are along the stream, beside the recursion, and the rate or depth scale of theory."""
    if len(places) < 2 or any(one.pairs is None for one in places):
        return
    lines = [one for one in (made[place.place] for place in places) if one is not None]
    count = followed_pairs(read)
    measured = np.array([one.pairs.of(count).cosine for one in places if one.pairs is not None])
    predicted, error = np.array([one.cosine for one in lines]), np.array([one.error for one in lines])
    if len(lines) < len(places) or not np.all(np.isfinite([measured, predicted])):
        return
    between = read.above(places[-1].place) - read.above(places[0].place)
    whole = not any(one is not None and one.restarted for one in (made[place] for place in between))
    rate = near(read, stated, places[0], places[-1])
    merged = 1 - measured[-1] < MERGED * (1 - measured[0])
    lost = rate > 0 and abs(math.log(rate)) > FEW
    severity = "critical" if merged and lost else "warning" if merged or lost else "fine"
    what = "residual sum" if places[0].kind == "sum" else "layer"
    begun = lines[-1].restarted
    said = (
        f"two samples have a cosine of {measured[0]:.3f} after {what} {places[0].name} and {measured[-1]:.3f} after "
        f"{places[-1].name}, {len(places) - 1} {what}s on"
    ) + ("" if begun else f", where theory expects {predicted[-1]:.3f}")
    order = np.arange(1, len(places) + 1)
    yield Finding(
        "depth-scale",
        "initialization",
        severity,
        f"{said}; {_rate(read, stated, places)}.",
        "" if severity == "fine" else mending,
        Estimate(float(measured[-1]), float(error[-1])),
        f"mean cosine of two samples at the last {what}",
        None if begun else float(predicted[-1]),
        (
            Assumption("weights are independent and centred, as at initialization", independent),
            Assumption("layers are wide", None),
            Assumption("every operation on the way has a law for pairs (else measured cosines are followed)", whole),
        ),
        ("yang2017", "schoenholz2017") if places[0].kind == "sum" else ("xiao2018", "schoenholz2017"),
        Picture(
            Axis(what, whole=True),
            Axis("mean cosine of two samples"),
            (
                Line(order, predicted, label="wide layers of these variances"),
                Points(order, predicted, predicted - 2 * error, predicted + 2 * error, label=WIDTHS),
                Points(order, measured, label="measured", role=SIMULATION, series=0),
            ),
        ),
        brief=f"{said}.",
    )


def _rate(read: Architecture, stated: list[Expected], places: list[Operation]) -> str:
    """The rate of theory at which near inputs come together or part, in words."""
    count, rate = len(places) - 1, near(read, stated, places[0], places[-1])
    if not rate > 0:
        return "theory has no depth scale here, as attention or pooling mixes positions on the way"
    log = math.log(rate)
    if abs(log) < LEVEL:
        return (
            "theory knows no depth scale here: near inputs keep their distance beside the signal, and others come "
            "together like a power of the depth"
        )
    word = "come together" if log < 0 else "are driven apart"
    said = (
        f"in theory near inputs {word} on the way by {times(math.exp(abs(log)))} in squared distance beside the signal"
    )
    middle = places[count // 2]
    halves = [near(read, stated, *ends) for ends in ((places[0], middle), (middle, places[-1]))]
    steps = count // 2, count - count // 2
    if count > 1 and min(halves) > 0:
        early, late = (abs(math.log(half)) / step for half, step in zip(halves, steps, strict=True))
        if late < FALLS * early:
            return f"{said}, ever more slowly: like a power of the depth, without a depth scale"
    return f"{said}, a depth scale of {few(count / abs(log))} {'sums' if places[0].kind == 'sum' else 'layers'}"
