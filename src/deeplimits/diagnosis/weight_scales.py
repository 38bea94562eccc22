"""The scale of each layer's weights: beside the critical one, and beside the network's other layers."""

import math
from collections.abc import Iterator

import numpy as np

from deeplimits.diagnosis.findings import RANKS, SEVERITIES, Assumption, Finding
from deeplimits.errors import DeeplimitsError
from deeplimits.measure.adapters.signals import LayerSignal, Signals
from deeplimits.measure.estimates import Estimate
from deeplimits.predictions.picture import Axis, Line, Picture, Points
from deeplimits.theory import initialization as theory

FAR = 3.0
"""Factors in the variance of weights below which a departure from criticality is left to what it does."""
ODD = 3.0
"""Factors by which one layer's variance may differ from that of the others."""
CAUSED = ("signal-size", "gradient-size", "depth-scale", "saturated-units", "idle-units", "output-size")
"""Findings that a wrong scale of the weights brings about."""
PEERS = 3


def examine(signals: Signals, independent: bool, others: list[Finding]) -> Iterator[Finding]:
    """One finding: the layer that differs from the others, or all of them where all are off."""
    hidden = [one for one in signals.layers[:-1] if min(one.fan_in, one.width) >= 8 and one.weight_variance > 0]
    if not hidden:
        return
    wanted = np.array([critical_variance(one.before) or math.nan for one in hidden])
    # The first layer may start like the others, or as what keeps the size of the data.
    inner = [value for value, one in zip(wanted, hidden, strict=True) if one.before != "data" and math.isfinite(value)]
    if inner and hidden[0].before == "data":
        usual = (1.0, float(np.median(inner)))
        wanted[0] = min(usual, key=lambda value: abs(math.log(hidden[0].weight_variance / value)))
    have = np.array([one.weight_variance for one in hidden])
    # Beside the critical variance where there is one, so that layers after different activations can be compared.
    ratio = have / np.where(np.isfinite(wanted), wanted, 1.0)
    if len(hidden) > PEERS:
        middle = float(np.median(ratio))
        gaps = np.abs(np.log(ratio / middle))
        place = int(np.argmax(gaps))
        rest = np.delete(gaps, place)
        if gaps[place] > math.log(ODD) and gaps[place] > 2 * float(np.max(rest)):
            yield _odd(hidden, ratio, place, middle, independent, others)
            return
    yield from _all(signals, hidden, ratio, wanted, independent, others)


def critical_variance(name: str | None) -> float | None:
    """C_w of a network of this activation whose signals neither grow nor fade; None where there is none."""
    if name is None:
        return None
    if name in ("data", "identity"):
        return 1.0
    try:
        return float(theory.criticality(name).weight_variance)
    except DeeplimitsError:
        return None


def _odd(hidden: list[LayerSignal], ratio: np.ndarray, place: int, middle: float, independent, others) -> Finding:
    one, factor = hidden[place], float(ratio[place] / middle)
    word = "large" if factor > 1 else "small"
    away = math.sqrt(max(factor, 1 / factor))
    severity = _raised("warning", others) if independent else "note"
    return Finding(
        "weight-scale",
        "initialization",
        severity,
        f"the weights of layer {one.name} are {away:.3g} times too {word} beside those of the other {len(hidden) - 1} "
        f"layers: a variance of {one.weight_variance:.3g}/fan-in.",
        f"multiply the weights of {one.name} by {factor**-0.5:.3g}.",
        Estimate(factor, factor * math.sqrt(2 / (one.fan_in * one.width))),
        "variance of the layer's weights over that of the others, each beside the critical one",
        1.0,
        (Assumption("weights are independent and centred, as at initialization", independent),),
        ("poole2016", "roberts2022"),
        _picture(hidden, ratio),
        urgency=3.0,
    )


def _all(signals: Signals, hidden, ratio, wanted, independent: bool, others) -> Iterator[Finding]:
    chain = signals.chain
    known = np.isfinite(wanted)
    # The first layer's own scale is that of the data; what is repeated is what matters.
    inner = [i for i, one in enumerate(hidden) if known[i] and one.before not in ("data", None)]
    if len(chain) < 3 or not inner or len(chain) < len(signals.layers):
        return
    factor = float(np.exp(np.mean(np.log(ratio[inner]))))
    away = max(factor, 1 / factor)
    name = hidden[inner[0]].before
    severity = "fine" if away < FAR else _raised("note", others) if independent else "note"
    sentence = (
        f"weights have a variance of {float(np.median([hidden[i].weight_variance for i in inner])):.3g}/fan-in, where "
        f"{name} networks keep their signals at {float(wanted[inner[0]]):.3g}/fan-in"
    )
    word = "large" if factor > 1 else "small"
    yield Finding(
        "weight-scale",
        "initialization",
        severity,
        f"{sentence}: {math.sqrt(away):.3g} times too {word}." if severity != "fine" else f"{sentence}.",
        "" if severity == "fine" else f"multiply the weights of all layers by {factor**-0.5:.3g}, and set biases to 0.",
        Estimate(factor, factor * math.sqrt(2 / sum(hidden[i].fan_in * hidden[i].width for i in inner))),
        "variance of weights over the critical one",
        1.0,
        (Assumption("weights are independent and centred, as at initialization", independent),),
        ("poole2016", "roberts2022"),
        _picture(hidden, ratio),
        urgency=2.5,
    )


def _raised(severity: str, others: list[Finding]) -> str:
    """The severity of what this causes, where that is worse."""
    ranks = [RANKS[severity], *(one.rank for one in others if one.name in CAUSED)]
    return list(SEVERITIES)[min(ranks)]


def _picture(hidden: list[LayerSignal], ratio: np.ndarray) -> Picture:
    order = np.arange(1, len(hidden) + 1)
    return Picture(
        Axis("layer", whole=True),
        Axis("variance of the weights over the critical one", log=True),
        (
            Line(order, np.ones(len(hidden)), label="critical"),
            Points(order, ratio, label="measured", role="simulation", series=0),
        ),
    )
