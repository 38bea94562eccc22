"""Signals and gradients through the depth: what arrives, beside what the recursion for wide layers says."""

import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from deeplimits.diagnosis import angles, blocks, units, weight_scales
from deeplimits.diagnosis.findings import Assumption, Finding, few, graded, times
from deeplimits.diagnosis.propagation import squared, squared_slope
from deeplimits.diagnosis.subject import Subject
from deeplimits.errors import DeeplimitsError
from deeplimits.measure.adapters.signals import LayerSignal, Signals
from deeplimits.measure.estimates import Estimate
from deeplimits.models.activations import activation
from deeplimits.predictions.picture import SIMULATION, Axis, Line, Picture, Points
from deeplimits.theory import initialization as theory
from deeplimits.theory.gaussian import second_moment, slope_moment

SIGNAL = (1e2, 1e4)
"""By which factor signals, or gradients, may change from the first layer to the last: a warning, critical."""
KEPT = 1.2
"""Factors below which a size is said to be kept."""
OUTPUT = (25.0, 2500.0)
"""Second moments of the outputs of a classifier: logits of 5 and of 50."""
FLUCTUATES = (1.0, 2.0)
"""Scatter of the log of squared gradients from which a note, a warning."""
CERTAIN = 5.0
"""Standard errors beyond which weights are not taken to be independent any more."""


class Path(NamedTuple):
    """Second moments along the chain of layers that was read."""

    names: list[str]
    measured: np.ndarray
    predicted: np.ndarray
    error: np.ndarray
    """of the measured moments around the prediction, relative, from the finite widths of all layers below"""


def examine(subject: Subject) -> Iterator[Finding]:
    """All findings about initialization."""
    signals = subject.signals
    independent = independent_weights(signals)
    found = list(_propagation(subject, signals, independent))
    found += units.examine(subject)
    if signals.layers and subject.classes:
        found.append(_output_size(signals.layers[-1], independent))
    yield from weight_scales.examine(signals, independent, found)
    yield from found
    yield blocks.reading(subject.architecture, subject.expected)


def _propagation(subject: Subject, signals: Signals, independent: bool) -> Iterator[Finding]:
    """Signals and gradients along the chain of layers, or along the operations where the network is more than that."""
    chain = signals.chain
    if len(chain) >= 2 and len(chain) == len(signals.layers):
        if len(chain) >= 3:  # with one hidden layer nothing can grow from layer to layer
            yield _signal_size(chain, independent)
        found = _gradient_size(chain, independent)
        if found is not None:
            yield found
        yield from _fluctuations(chain, independent)
        yield from angles.examine(subject, chain, independent, recommended(chain))
        return
    yield from blocks.signal_size(subject.architecture, subject.expected, independent)
    yield from blocks.gradient_size(subject.architecture, subject.expected, independent)
    yield from blocks.branches(subject.architecture, subject.expected)
    yield from blocks.depth_scale(subject.architecture, subject.expected, subject.alike, independent)


def independent_weights(signals: Signals) -> bool:
    """Whether every layer treats its input as independent weights would, up to chance."""
    return all(abs(one.ratio.value - 1) <= CERTAIN * one.ratio.error + 1e-6 for one in signals.layers)


def _change(factor: float) -> str:
    """A factor in words, with its direction."""
    if max(factor, 1 / factor if factor > 0 else math.inf) < KEPT:
        return "no change"
    return f"growth by {times(factor)}" if factor > 1 else f"a fall by {times(factor)}"


def predicted_path(chain: tuple[LayerSignal, ...]) -> Path:
    """K^(l) = C_b + C_w E σ(√K^(l−1) z)² from the first layer's own input on, and how far finite widths scatter it."""
    kernel = chain[0].expected
    predicted, spread = [float(kernel.mean())], [chain[0].chance ** 2]
    for below, layer in itertools.pairwise(chain):
        sigma = activation(layer.before or "identity")
        # One expectation for every sample: inputs differ in length.
        square = np.asarray(second_moment(sigma, kernel))
        fourth = np.asarray(second_moment(squared(sigma), kernel))
        following = layer.bias_variance + layer.weight_variance * square
        # Relative variance: that of the layer below, passed on, plus that of a mean over its neurons, plus the own.
        passed = _elasticity(sigma, kernel, below, layer) ** 2 * spread[-1]
        mean = float(following.mean())
        fresh = layer.weight_variance**2 * float(np.mean(fourth - square**2)) / below.width / mean**2 if mean else 0.0
        spread.append(passed + fresh + layer.chance**2)
        predicted.append(mean)
        kernel = following
    return Path(
        [one.name for one in chain],
        np.array([float(one.leaving.mean()) for one in chain]),
        np.array(predicted),
        np.sqrt(spread),
    )


def _elasticity(sigma, kernel: np.ndarray, below: LayerSignal, layer: LayerSignal) -> float:
    """d log K'/d log K, by a small change."""
    up, down = (float(np.mean(np.asarray(second_moment(sigma, kernel * factor)))) for factor in (1.01, 1 / 1.01))
    total = [layer.bias_variance + layer.weight_variance * one for one in (up, down)]
    if min(total) <= 0:
        return 1.0
    return math.log(total[0] / total[1]) / (2 * math.log(1.01))


def _signal_size(chain: tuple[LayerSignal, ...], independent: bool) -> Finding:
    path = predicted_path(chain)
    hidden = slice(0, max(len(chain) - 1, 1))
    first, last = path.measured[hidden][0], path.measured[hidden][-1]
    factor = last / first if first > 0 else float("inf")
    stated = path.predicted[hidden][-1] / path.predicted[hidden][0]
    away = max(factor, 1 / factor) if factor > 0 else float("inf")
    severity = graded(away, *SIGNAL)
    verb = "keep their size" if away < KEPT else f"{'grow' if factor > 1 else 'shrink'} {times(factor)} in mean square"
    sentence = (
        f"signals {verb} from the first of {len(chain) - 1} hidden layers to the last; "
        f"theory expects {_change(stated)} of wide layers with these weights."
    )
    return Finding(
        "signal-size",
        "initialization",
        severity,
        sentence,
        "" if severity == "fine" else recommended(chain),
        Estimate(factor, factor * float(path.error[hidden][-1])),
        "mean square in the last hidden layer over that in the first",
        stated,
        _assumptions(independent),
        ("roberts2022", "poole2016"),
        _picture(path),
    )


def _assumptions(independent: bool) -> tuple[Assumption, ...]:
    return (
        Assumption("weights are independent and centred, as at initialization", independent),
        Assumption("layers are wide", None),
    )


def recommended(chain: tuple[LayerSignal, ...]) -> str:
    """The critical variances of the network's activation, in words."""
    names = [one.before for one in chain[1:] if one.before]
    if not names:
        return "initialize every layer with weights of variance 1/fan-in."
    name = max(set(names), key=names.count)
    try:
        point = theory.criticality(name)
    except DeeplimitsError:
        return f"{name} networks have no critical initialization: put a normalization between the layers, or change it."
    biases = "biases 0" if point.bias_variance == 0 else f"biases of variance {point.bias_variance:.3g}"
    own = float(np.median([one.weight_variance for one in chain]))
    return (
        f"initialize with weights of variance {point.weight_variance:.3g}/fan-in and {biases}, which {name} networks "
        f"keep at every depth (now {own:.3g}/fan-in)."
    )


def _picture(path: Path) -> Picture:
    layers = np.arange(1, len(path.names) + 1)
    low, high = path.predicted * np.exp(-2 * path.error), path.predicted * np.exp(2 * path.error)
    return Picture(
        Axis("layer", whole=True),
        Axis("mean square of what leaves it", log=bool(np.all(path.predicted > 0) and np.all(path.measured > 0))),
        (
            Line(layers, path.predicted, label="wide layers of these variances"),
            Points(layers, path.predicted, low, high, label="two standard errors of finite widths"),
            Points(layers, path.measured, label="measured", role="simulation", series=0),
        ),
    )


def _gradient_size(chain: tuple[LayerSignal, ...], independent: bool) -> Finding | None:
    hidden = chain[:-1]
    sums = [0.0 if one.gradient is None else one.width * float(np.mean(one.gradient)) for one in hidden]
    if len(hidden) < 2 or not min(sums) > 0:
        return None
    factor = sums[0] / sums[-1]
    stated = 1.0
    for below, layer in itertools.pairwise(chain[:-1]):
        # Σ_j (∂l/∂h_j)² = Σ_j σ'(h_j)² (Σ_i W_ij ∂l/∂h'_i)², Σ_i over n' rows of variance C_w/n
        slope = float(np.mean(np.asarray(slope_moment(activation(layer.before or "identity"), below.leaving))))
        stated *= layer.weight_variance * slope
    away = max(factor, 1 / factor)
    severity = graded(away, *SIGNAL)
    have, had = (
        "as large" if max(one, 1 / one) < KEPT else f"{times(one)} {'larger' if one > 1 else 'smaller'} in square"
        for one in (factor, stated)
    )
    return Finding(
        "gradient-size",
        "initialization",
        severity,
        f"gradients are {have} at the first hidden layer {'as' if have == 'as large' else 'than'} at the last; theory "
        f"expects {had} of independent weights of these variances.",
        "" if severity == "fine" else recommended(chain),
        Estimate(factor, factor * math.sqrt(log_scatter(chain))),
        "squared gradient at the first hidden layer over that at the last",
        stated,
        _assumptions(independent),
        ("schoenholz2017", "roberts2022"),
        _slopes(chain, sums),
    )


def _slopes(chain: tuple[LayerSignal, ...], sums: list[float]) -> Picture:
    """Squared gradients at the hidden layers over that at the last, beside the products of χ."""
    line = [1.0]
    for below, layer in reversed(list(itertools.pairwise(chain[:-1]))):
        slope = float(np.mean(np.asarray(slope_moment(activation(layer.before or "identity"), below.leaving))))
        line.append(line[-1] * layer.weight_variance * slope)
    order, measured = np.arange(1, len(sums) + 1), np.array(sums) / sums[-1]
    return Picture(
        Axis("layer", whole=True),
        Axis("squared gradient over that at the last hidden layer", log=bool(min(line) > 0)),
        (
            Line(order, np.array(line[::-1]), label="independent weights of these variances"),
            Points(order, measured, label="measured", role=SIMULATION, series=0),
        ),
    )


def log_scatter(chain: tuple[LayerSignal, ...]) -> float:
    """Variance of the log of a squared gradient over draws of the weights, from the first hidden layer to the last.

    Each layer of width n adds (3 E σ'⁴/(E σ'²)² − 1)/n: 5/n for ReLU, 2/n where the slope is constant.
    """
    total = 0.0
    for below, layer in itertools.pairwise(chain[:-1]):
        sigma = activation(layer.before or "identity")
        square = float(np.mean(np.asarray(slope_moment(sigma, below.leaving))))
        fourth = float(np.mean(np.asarray(second_moment(squared_slope(sigma), below.leaving))))
        total += (3 * fourth / square**2 - 1) / below.width if square > 0 else 0.0
    return total


def _fluctuations(chain: tuple[LayerSignal, ...], independent: bool) -> Iterator[Finding]:
    if len(chain) < 3:
        return
    ratio = sum(1 / one.width for one in chain[:-1])
    scatter = math.sqrt(log_scatter(chain))
    severity = "warning" if scatter > FLUCTUATES[1] else "note" if scatter > FLUCTUATES[0] else "fine"
    widest = math.ceil(sum(1 for _ in chain[:-1]) / ratio * (scatter / FLUCTUATES[0]) ** 2)
    yield Finding(
        "depth-to-width",
        "initialization",
        severity,
        f"depth over width is {ratio:.2g} (the sum of 1/width over the hidden layers): from one draw of the weights to "
        f"the next, squared gradients at the first layer differ by a factor of about {few(math.exp(scatter))}.",
        "" if severity == "fine" else f"layers of width {widest}, or fewer of them, make starts alike.",
        Estimate(ratio, None),
        "Σ 1/n over the hidden layers",
        scatter,
        _assumptions(independent),
        ("hanin2018", "roberts2022"),
        theory_what="the scatter of the logarithm of squared gradients that it brings",
    )


def _output_size(last: LayerSignal, independent: bool) -> Finding:
    value = float(last.leaving.mean())
    severity = graded(value, *OUTPUT)
    return Finding(
        "output-size",
        "initialization",
        severity,
        f"the outputs are {math.sqrt(value):.3g} in size (root mean square); 1 or so is usual at the start.",
        ""
        if severity == "fine"
        else "a classifier that starts with such logits is certain of arbitrary classes: scale the last layer down.",
        Estimate(value, value * last.chance),
        "mean square of the outputs",
        float(last.expected.mean()),
        (Assumption("weights are independent and centred, as at initialization", independent),),
        ("roberts2022",),
        theory_what="that of a last layer of independent weights of these variances, behind what enters it",
    )
