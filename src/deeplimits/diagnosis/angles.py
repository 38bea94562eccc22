"""How alike inputs become through the depth: mean cosines beside the recursion of pairs for wide layers."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from deeplimits.diagnosis import correlations
from deeplimits.diagnosis.correlations import FEW
from deeplimits.diagnosis.findings import Assumption, Finding
from deeplimits.diagnosis.propagation import mixed
from deeplimits.diagnosis.subject import Subject
from deeplimits.errors import DeeplimitsError
from deeplimits.measure.adapters.data import arrays, host
from deeplimits.measure.adapters.signals import LayerSignal
from deeplimits.measure.estimates import Estimate
from deeplimits.models.activations import activation
from deeplimits.predictions.picture import SIMULATION, Axis, Line, Picture, Points
from deeplimits.theory import initialization as theory
from deeplimits.theory.gaussian import second_moment

PAIRS = 24
"""Pairs of samples, of evenly spaced ranks in their cosine, whose recursion is followed; others move with them."""


class Angles(NamedTuple):
    """Mean cosines of two samples after each layer of a chain, and their predicted values."""

    measured: np.ndarray
    predicted: np.ndarray
    error: np.ndarray
    """of the measured ones about the prediction, from the finite widths of all layers below"""


def examine(subject: Subject, chain: tuple[LayerSignal, ...], independent: bool, mending: str) -> Iterator[Finding]:
    """The phase, the depth scale and the cosines, where all layers have one activation."""
    names = {one.before or "" for one in chain[1:]}
    if len(chain) < 4 or len(names) != 1 or math.isnan(chain[-2].cosine):
        return
    (name,) = names
    c_w = float(np.mean([one.weight_variance for one in chain[1:-1]]))
    c_b = float(np.mean([one.bias_variance for one in chain[1:-1]]))
    try:
        phase, scales = theory.phase(name, c_w, c_b), theory.depth_scales(name, c_w, c_b)
    except DeeplimitsError:
        return
    found = angles(chain, rows_of(subject, chain[0])) or by_position(subject, chain)
    last, first, depth = chain[-2], chain[0], len(chain) - 1
    merged = 1 - last.cosine < 0.01 * (1 - first.cosine)
    lost = scales.correlation_scale < depth / FEW
    severity = "critical" if merged and lost else "warning" if merged or lost else "fine"
    end = "become the same" if phase.name == "ordered" else "lose their resemblance"
    forever = math.isinf(scales.correlation_scale)
    keeps = "keep their angle" if forever else f"{end} within {scales.correlation_scale:.3g} layers or so"
    two = f"two samples have a cosine of {first.cosine:.3f} after the first layer, {last.cosine:.3f} before the output"
    line = None if found is None else float(found.predicted[-2])
    yield Finding(
        "depth-scale",
        "initialization",
        severity,
        f"weights of variance {c_w:.3g}/fan-in, biases of {c_b:.3g}: {name} networks of these are {phase.name}: inputs "
        f"{keeps}, and the network is {depth} deep; {two}"
        + (f", where theory expects {line:.3f}." if line is not None else "."),
        "" if severity == "fine" else mending,
        Estimate(
            last.cosine if found is None else float(found.measured[-2]),
            None if found is None else float(found.error[-2]),
        ),
        "mean cosine of two samples before the output",
        line,
        (
            Assumption("weights are independent and centred, as at initialization", independent),
            Assumption("layers are wide", None),
        ),
        ("schoenholz2017", "poole2016", *(["xiao2018"] if any(one.kind != "Linear" for one in chain) else [])),
        None if found is None else _picture(found),
        brief=f"{two} ({phase.name} phase)",
    )


def rows_of(subject: Subject, first: LayerSignal) -> np.ndarray | None:
    """The inputs as rows, where the first layer takes them whole."""
    found = arrays(next(iter(subject.model.data)).inputs)
    if len(found) != 1:
        return None
    values = host(found[0])[: len(first.leaving)]
    rows = values.reshape(len(values), -1)
    return rows.astype(float) if values.dtype.kind == "f" and rows.shape[1] == first.fan_in else None


def angles(chain: tuple[LayerSignal, ...], rows: np.ndarray | None) -> Angles | None:
    """K(x, x') = C_b + C_w E σ(u)σ(v) from layer to layer, (u, v) with the K of the layer below."""
    if rows is None:
        return None
    first = chain[0]
    every = np.triu_indices(len(rows), 1)
    a, b, c = _first(first, rows, *every)
    whole, order = _mean(a, b, c), np.argsort(c / np.sqrt(a * b))
    kept = order[((np.arange(PAIRS) + 0.5) / PAIRS * len(order)).astype(int)]
    a, b, c = a[kept], b[kept], c[kept]
    cosines, shift = [whole], whole - _mean(a, b, c)
    below, variance = 0.0, [first.cosine_error**2]
    for layer in chain[1:]:
        if not np.all(a > 0) or not np.all(b > 0):
            return None
        # The same from cosines that are a little larger all over: how errors are passed on.
        moved = c + 1e-3 * np.sqrt(a * b) * (1 - c / np.sqrt(a * b))
        step = _mean(a, b, moved) - _mean(a, b, c)
        one, other, after, after_moved = next_kernels(layer, a, b, c, moved)
        if not np.all(one > 0) or not np.all(other > 0):
            return None
        passed = (_mean(one, other, after_moved) - _mean(one, other, after)) / step if step > 0 else 1.0
        a, b, c, shift = one, other, after, passed * shift
        cosines.append(_mean(a, b, c) + shift)
        # What the finite layers below do to the kernel, and the layer's own units, which the next sees in its input.
        below = passed**2 * below + layer.passed_error**2
        variance.append(below + layer.cosine_error**2)
    return Angles(np.array([one.cosine for one in chain]), np.array(cosines), np.sqrt(variance))


def _first(layer: LayerSignal, rows: np.ndarray, left: np.ndarray, right: np.ndarray) -> list[np.ndarray]:
    pairs = ((left, left), (right, right), (left, right))
    return [
        layer.bias_variance + layer.weight_variance * np.sum(rows[i] * rows[j], axis=1) / layer.fan_in for i, j in pairs
    ]


def _mean(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> float:
    return float(np.mean(c / np.sqrt(a * b)))


def by_position(subject: Subject, chain: tuple[LayerSignal, ...]) -> Angles | None:
    """The same where layers are convolutions, or take tokens: pairs of samples at every position."""
    read = subject.architecture
    place = {one.name: one.place for one in reversed(read.of("affine"))}
    if not all(one.name in place for one in chain):
        return None
    count, places = correlations.followed_pairs(read), [place[one.name] for one in chain]
    made = [subject.alike[i] for i in places]
    seen = [read.operations[i].pairs for i in places]
    if any(one is None or one.restarted for one in made) or any(one is None for one in seen):
        return None
    lines = [(one.cosine, one.error) for one in made if one is not None]
    measured = np.array([one.of(count).cosine for one in seen if one is not None])
    predicted, error = (np.array(column) for column in zip(*lines, strict=True))
    return Angles(measured, predicted, error) if np.all(np.isfinite([measured, predicted])) else None


def next_kernels(layer: LayerSignal, a: np.ndarray, b: np.ndarray, *covariances: np.ndarray) -> list[np.ndarray]:
    """Both variances one layer on, and each of the covariances."""
    name, bound = layer.before or "identity", np.sqrt(a * b)
    inside = np.concatenate([np.clip(c, -bound, bound) for c in covariances])
    squares = np.asarray(second_moment(activation(name), np.concatenate([a, b])))
    count = len(covariances)
    products = mixed(name, np.tile(a, count), np.tile(b, count), inside)
    passed = (*np.split(squares, 2), *np.split(products, count))
    return [layer.bias_variance + layer.weight_variance * one for one in passed]


def _picture(found: Angles) -> Picture:
    hidden = slice(0, len(found.measured) - 1)
    order = np.arange(1, len(found.measured))
    line, error = found.predicted[hidden], found.error[hidden]
    return Picture(
        Axis("layer", whole=True),
        Axis("mean cosine of two samples"),
        (
            Line(order, line, label="wide layers of these variances"),
            Points(order, line, line - 2 * error, line + 2 * error, label="two standard errors of finite widths"),
            Points(order, found.measured[hidden], label="measured", role=SIMULATION, series=0),
        ),
    )
