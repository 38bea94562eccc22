r"""Units that pass nothing on, and units without a slope: how many there are, and how many chance alone would make.

What enters a unit of a wide layer of independent weights is Gaussian over the draw of its weights, with covariance
K(x, x') = C_b + C_w M(x, x') between two samples. A ReLU unit is idle where all of them are below zero,

    P(u(x) ≤ 0 for all x),   u ~ N(0, K),

which equal signs of the correlations make far more likely than 2^(−samples); a unit of tanh is saturated at a sample
with the probability that |u| is beyond where its slope has fallen to 1 % (Lu, Shin, Su and Karniadakis 2020).
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from deeplimits.diagnosis import correlations
from deeplimits.diagnosis.angles import angles, next_kernels, rows_of
from deeplimits.diagnosis.findings import Assumption, Finding, graded
from deeplimits.diagnosis.subject import Subject
from deeplimits.measure.adapters.signals import LayerSignal, is_flat
from deeplimits.measure.estimates import Estimate
from deeplimits.models.activations import activation
from deeplimits.predictions.picture import SIMULATION, Axis, Picture, Points, Rule

IDLE = (0.5, 0.95)
SATURATED = (0.3, 0.8)
POINTS, SHIFTS = 512, 8
"""Of the lattice by which orthants are integrated, and how often it is moved at random."""
GRID = 400_001
"""Places at which slopes are looked at."""
LAYERS = 12
"""Layers of a chain whose idle units are computed, the first and the last among them."""


class Share(NamedTuple):
    """The expected share of units, and how far finite layers may scatter it."""

    value: float
    error: float


class Kernels(NamedTuple):
    """Predicted covariances of what leaves a layer at all samples, with the error of their mean cosine."""

    whole: np.ndarray
    cosine_error: float


def orthant(kernel: np.ndarray, seed: int = 0) -> Estimate:
    """P(u_1 ≤ 0, …, u_n ≤ 0) of centred Gaussians, one after another given those before (Genz), on a random lattice.

    >>> found = orthant(np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> bool(abs(found.value - 1 / 3) < 1e-3)  # 1/4 + arcsin(1/2)/2π
    True
    """
    size = np.sqrt(np.diag(kernel))
    n = len(kernel)
    # Equal samples are one condition; what is added keeps their matrix invertible.
    root = np.linalg.cholesky(kernel / np.outer(size, size) + 1e-7 * np.eye(n))
    random = np.random.default_rng([seed, 17])
    lattice = np.arange(1, POINTS + 1)[:, None] * np.sqrt(_primes(n))[None]
    found = []
    for shift in random.random((SHIFTS, n)):
        # The tent makes what is integrated periodic.
        w = np.abs(2 * ((lattice + shift) % 1.0) - 1)
        y, chance = np.zeros((POINTS, n)), np.ones(POINTS)
        for i in range(n):
            below = ndtr(-(y[:, :i] @ root[i, :i]) / root[i, i])
            chance *= below
            y[:, i] = ndtri(np.clip(w[:, i] * below, 1e-300, 1 - 1e-16))
        found.append(chance.mean())
    return Estimate(float(np.mean(found)), float(np.std(found, ddof=1) / math.sqrt(SHIFTS)), SHIFTS * POINTS, seed=seed)


def _primes(count: int) -> np.ndarray:
    found: list[int] = []
    number = 2
    while len(found) < count:
        if all(number % one for one in found if one * one <= number):
            found.append(number)
        number += 1
    return np.array(found, float)


def flat_share(name: str, variances: np.ndarray) -> float:
    """P(|σ'(u)| below 1 % of its largest) of u ~ N(0, K), a mean over the variances K.

    >>> round(flat_share("tanh", np.array([9.0])), 4)  # |u| > 2.993
    0.3184
    """
    sizes = np.sqrt(np.asarray(variances, float).ravel())
    reach = 9.0 * max(float(sizes.max()), 1e-3)
    u = np.linspace(-reach, reach, GRID)
    flat = np.concatenate([[False], np.asarray(is_flat(name, u)), [False]])
    # Where flat stretches begin and end, half a step before what was looked at; those at the ends go on.
    edges = -reach + (np.flatnonzero(flat[1:] != flat[:-1]) - 0.5) * (u[1] - u[0])
    edges[edges < -reach], edges[edges > reach] = -np.inf, np.inf
    starts, ends = (ndtr(part[None] / np.maximum(sizes, 1e-300)[:, None]) for part in (edges[::2], edges[1::2]))
    return float(np.mean((ends - starts).sum(axis=1)))


def examine(subject: Subject) -> Iterator[Finding]:
    """Both findings, where there are activations that can be idle, or saturate."""
    layers = subject.signals.layers
    rectified = [one for one in layers if one.after == "relu"]
    bounded = [one for one in layers if one.after is not None and activation(one.after).bounded]
    if rectified:
        yield _finding(subject, layers, rectified, "idle")
    if bounded:
        yield _finding(subject, layers, bounded, "saturated")


def _finding(subject: Subject, layers: tuple[LayerSignal, ...], some: list[LayerSignal], share: str) -> Finding:
    idle = share == "idle"
    limits = IDLE if idle else SATURATED
    worst = max(some, key=lambda one: getattr(one, share))
    value = float(getattr(worst, share))
    lines = expected_idle(subject, some, worst) if idle else expected_saturated(subject, some)
    line = lines.get(worst.name)
    severity = graded(value, *limits)
    error = math.sqrt(value * (1 - value) / worst.width) if idle else worst.saturated_error
    what = (
        f"pass nothing on for any of {subject.signals.samples} samples"
        if idle
        else "are saturated (their slope is below 1 % of the largest)"
    )
    theory = (
        f"theory expects {line.value:.1%} of independent weights and inputs as alike as these"
        if line is not None and idle
        else f"theory expects {line.value:.1%} of weights of these variances"
        if line is not None
        else "theory has no line here, as units stand at many places of an image or see what no law is known of"
    )
    said = f"{value:.1%} of the units of layer {worst.name} {what}; {theory}."
    action = (
        "a smaller step early on, zero biases or a leaky activation bring them back; a network that starts like "
        "this needs another initialization."
        if idle
        else "smaller weights, or a normalization before the activation, bring them back to where they slope."
    )
    return Finding(
        f"{share}-units",
        "initialization",
        severity,
        said if severity == "fine" else f"{said} No gradient goes through them.",
        action if severity != "fine" else "",
        Estimate(value, error),
        "share of the layer's units" if idle else "share of the layer's units and samples",
        None if line is None else line.value,
        (
            Assumption("weights are independent and centred, as at initialization", _independent(some)),
            Assumption("layers are wide: what enters units is Gaussian", None),
        ),
        ("lu2020", "poole2016") if idle else ("poole2016", "roberts2022"),
        _picture(layers, lines, share, limits[0]),
        urgency=2.0 if idle and severity != "fine" else 0.0,
        brief=f"{value:.1%} of the units of layer {worst.name} are {share}"
        + ("." if line is None else f" ({line.value:.1%} expected)."),
    )


def _independent(some: list[LayerSignal]) -> bool:
    return all(abs(one.ratio.value - 1) <= 5 * one.ratio.error + 1e-6 for one in some)


def expected_idle(subject: Subject, some: list[LayerSignal], worst: LayerSignal) -> dict[str, Share]:
    """By layer: from the data on along a chain, else behind what enters the layer; layers with a row for each sample.

    Of many layers some are left out, but not the one that is to be judged.
    """
    chain = subject.signals.chain
    predicted = _along(subject, chain) if len(chain) == len(subject.signals.layers) else {}
    kept = {some[int(i)].name for i in np.linspace(0, len(some) - 1, min(LAYERS, len(some)))} | {worst.name}
    found: dict[str, Share] = {}
    for one in some:
        if one.name not in kept:
            continue
        if one.name in predicted:
            kernels = predicted[one.name]
        elif one.gram is not None:
            kernels = Kernels(one.bias_variance + one.weight_variance * one.gram, 0.0)
        else:
            continue
        found[one.name] = _idle(kernels, one.width)
    return found


def _idle(kernels: Kernels, width: int) -> Share:
    size = np.sqrt(np.diag(kernels.whole))
    if not np.all(size > 0) or not np.all(np.isfinite(kernels.whole)):
        return Share(math.nan, math.nan)
    cosines = kernels.whole / np.outer(size, size)
    value = float(orthant(cosines).value)
    moved = value
    room = 1 - (cosines.sum() - len(size)) / (len(size) * (len(size) - 1))
    if kernels.cosine_error and room > 1e-9:
        # A little towards equal samples, which keeps the matrix positive.
        shift = min(kernels.cosine_error / room, 1.0)
        moved = float(orthant(cosines + shift * (1 - cosines)).value)
    return Share(value, math.hypot(math.sqrt(max(value * (1 - value), 0.0) / width), moved - value))


def _along(subject: Subject, chain: tuple[LayerSignal, ...]) -> dict[str, Kernels]:
    """K(x, x') at all pairs of samples from layer to layer, from the data on."""
    rows = rows_of(subject, chain[0]) if chain else None
    if rows is None:
        return {}
    errors = angles(chain, rows)
    i, j = np.triu_indices(len(rows), 1)
    whole = chain[0].bias_variance + chain[0].weight_variance * (rows @ rows.T) / chain[0].fan_in
    found = {}
    for place, layer in enumerate(chain):
        if place:
            variances = np.diag(whole)
            if not np.all(variances > 0):
                break
            a, b, c = next_kernels(layer, variances[i], variances[j], whole[i, j])
            whole = np.zeros_like(whole)
            whole[i, j] = whole[j, i] = c
            whole[i, i], whole[j, j] = a, b
        # The layer's own units are what is counted; the error is that of the layers below.
        below = 0.0 if errors is None else math.sqrt(max(errors.error[place] ** 2 - layer.cosine_error**2, 0.0))
        found[layer.name] = Kernels(whole.copy(), below)
    return found


def expected_saturated(subject: Subject, some: list[LayerSignal]) -> dict[str, Share]:
    """By layer, from the variances that theory expects from the data on, at every position of an image."""
    names = {one.name for one in some}
    stated = subject.expected
    pairs = subject.alike
    found: dict[str, Share] = {}
    for one in subject.architecture.of("affine"):
        followed = pairs[one.place]
        if one.name not in names or one.name in found or followed is None or followed.restarted:
            continue
        name = next(layer.after for layer in some if layer.name == one.name)
        share = correlations.variances(followed)
        value = flat_share(str(name), share)
        spread = math.sqrt(max(stated[one.place].spread - one.chance**2, 0.0))
        moved = flat_share(str(name), share * math.exp(spread))
        layer = next(layer for layer in some if layer.name == one.name)
        found[one.name] = Share(value, math.hypot(moved - value, layer.saturated_error))
    return found


def _picture(layers: tuple[LayerSignal, ...], lines: dict[str, Share], share: str, limit: float) -> Picture:
    order = np.arange(1, len(layers) + 1)
    kept = [i for i, one in enumerate(layers) if one.name in lines and math.isfinite(lines[one.name].value)]
    stated = [lines[layers[i].name] for i in kept]
    measured = np.array([getattr(one, share) for one in layers])
    value, error = np.array([one.value for one in stated]), np.array([one.error for one in stated])
    line = (
        (Points(order[kept], value, value - 2 * error, value + 2 * error, label="expected, two standard errors"),)
        if kept
        else ()
    )
    return Picture(
        Axis("layer", whole=True),
        Axis(f"share of {share} units", low=-0.02, high=1.02),
        (
            *line,
            Points(order, measured, label="measured", role=SIMULATION, series=0),
            Rule(limit, label="a warning from here on"),
        ),
    )
