r"""What theory expects to leave every operation of a network: mean squares, from the data on, layer by layer.

With independent centred weights of variance C_w/fan-in and wide layers, signals h are Gaussian in affine layers and

    affine         K = C_b + C_w M                      activation   M = E σ(√K z)²
    residual sum   K = K₁ + K₂, as what a fresh layer adds is independent of what it is added to
    normalization  M = ⟨γ²⟩ v/(v + ε) + ⟨β²⟩, v the variance;   in evaluation, batch norm is affine in every channel

An embedding begins with the mean square of its table. What mixes positions by more than weights (attention, pooling),
or multiplies signals, has no such law here: prediction goes on behind it from what is measured, and says so.
"""

import functools
import math
from typing import Any, NamedTuple

import jax
import numpy as np

from deeplimits.errors import DeeplimitsError
from deeplimits.measure.adapters.architecture import Architecture, Operation
from deeplimits.models.activations import Activation, activation, from_function
from deeplimits.theory.gaussian import dual, has_dual, second_moment
from deeplimits.theory.gaussian.duals.numerical import Series
from deeplimits.theory.gaussian.pairs import pair

DEGREE = 40
"""Of the series for activations without a closed form: what it leaves out is below the errors of finite widths."""


class Expected(NamedTuple):
    """What is expected of one operation's result."""

    moment: np.ndarray
    """Mean square, one for each sample."""
    spread: float
    """Relative variance about it, from finite widths below."""
    gaussian: bool
    """Whether its entries are those of many independent centred Gaussians."""
    restarted: bool
    """Whether this is what was measured: no law is known of this operation."""

    @property
    def mean(self) -> float:
        return float(self.moment.mean())


def expected(read: Architecture) -> list[Expected]:
    """The prediction for every operation, in order."""
    found: list[Expected] = []
    for one in read.operations:
        try:
            made = _followed(one, [found[place] for place in one.sources], read)
        except DeeplimitsError:
            made = None
        if made is None or not np.all(np.isfinite(made.moment)):
            made = Expected(one.moment, 0.0, False, True)
        found.append(made)
    return found


def _followed(one: Operation, given: list[Expected], read: Architecture) -> Expected | None:
    c = one.constants
    if one.kind == "input":
        return Expected(one.moment, 0.0, False, False)
    if one.kind == "embedding":
        return Expected(np.full(read.samples, c["variance"]), one.chance**2, True, False)
    if not given:
        return None
    first = given[0]
    if one.kind == "affine":
        kernel = c["bias_variance"] + c["weight_variance"] * c["taps"] * first.moment
        mean = float(kernel.mean())
        passed = (1 - c["bias_variance"] / mean) ** 2 * first.spread if mean > 0 else 0.0
        return Expected(kernel, passed + one.chance**2, True, False)
    if one.kind == "activation":
        return _activated(one, first, _alike(read, one)) if one.what and first.gaussian else None
    if one.kind == "layer norm":
        return _normalized(one, first, read.operations[one.sources[0]])
    if one.kind == "batch norm" and "factor" not in c:
        return _normalized(one, first, read.operations[one.sources[0]])
    if one.kind == "batch norm":
        if not first.gaussian:
            return None
        kernel = c["factor"] * first.moment + c["offset"]
        return Expected(kernel, first.spread, c["offset"] < 1e-6 * float(kernel.mean()), False)
    if one.kind == "sum":
        # One of them must be fresh: centred whatever the other is.
        if not any(part.gaussian for part in given):
            return None
        total = np.sum([part.moment for part in given], axis=0)
        # Branches hang on the trunk, so that their errors add up; and there is the cross term of finite widths.
        roots = sum(part.mean * math.sqrt(part.spread) for part in given) / max(float(total.mean()), 1e-300)
        chances = [read.operations[place].chance for place in one.sources]
        return Expected(total, roots**2 + max(chances) ** 2, all(part.gaussian for part in given), False)
    if one.kind in ("scale", "dropout"):
        return Expected(c["factor"] * first.moment, first.spread, first.gaussian and one.kind == "scale", False)
    if one.kind == "shift":
        return Expected(first.moment + c["shift"], first.spread, first.gaussian, False) if first.gaussian else None
    if one.kind == "concatenation":
        shapes = [np.prod(read.operations[place].shape) for place in one.sources]
        weights = np.array(shapes, float) / np.sum(shapes)
        return Expected(
            np.sum([w * part.moment for w, part in zip(weights, given, strict=True)], axis=0),
            max(part.spread for part in given),
            all(part.gaussian for part in given),
            False,
        )
    return None


def _alike(read: Architecture, one: Operation) -> float:
    """Root mean square of the cosines between inputs, in the layer below: means over unlike inputs scatter less."""
    below = one
    while below.sources and not below.chance:
        below = read.operations[below.sources[0]]
    width = below.constants.get("width", 0.0)
    return min(1.0, math.sqrt(below.chance**2 * width / 2)) if below.chance and width else 1.0


def _activated(one: Operation, first: Expected, alike: float) -> Expected:
    sigma = activation(one.what)
    kernel = first.moment
    square = np.asarray(second_moment(sigma, kernel))
    up, down = (float(np.mean(np.asarray(second_moment(sigma, kernel * factor)))) for factor in (1.01, 1 / 1.01))
    elastic = math.log(up / down) / (2 * math.log(1.01)) if min(up, down) > 0 else 1.0
    fourth = np.asarray(second_moment(squared(sigma), kernel))
    # A mean over this many neurons, each with its own draw.
    axis = 1 if len(one.shape) > 3 else -1
    width = one.shape[axis]
    mean = float(square.mean())
    fresh = alike * float(np.mean(fourth - square**2)) / width / mean**2 if mean > 0 else 0.0
    return Expected(square, elastic**2 * first.spread + fresh, False, False)


@functools.cache
def squared(sigma: Activation) -> Activation:
    """σ², the same object each time, so that what is compiled of it serves again."""
    return from_function(lambda u: sigma.value(u) ** 2, sigma.kinks, f"{sigma.name}²")


@functools.cache
def squared_slope(sigma: Activation) -> Activation:
    """σ'²."""
    return from_function(lambda u: sigma.derivative(u) ** 2, sigma.kinks, f"({sigma.name}')²")


def _normalized(one: Operation, first: Expected, below: Operation) -> Expected | None:
    c = one.constants
    # What is taken off with the mean is a share of the signal; a Gaussian signal has none.
    share = 0.0 if first.gaussian else below.centre
    variance = first.moment * (1 - c["mean"] * min(share, 1.0))
    if not np.all(variance > 0):
        return None
    kept = variance / (variance + c["epsilon"])
    elastic = float(np.mean(1 - kept))
    return Expected(c["gain"] * kept + c["shift"], elastic**2 * first.spread + 1e-6, first.gaussian, False)


def mixed(name: str, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """E σ(u)σ(v). Of smooth activations without a closed form a series is enough, and far faster than quadrature."""
    sigma = activation(name)
    if has_dual(sigma) or not sigma.smooth:
        return np.asarray(dual(name, a, b, c))
    # A power of two, so that layers share one compiled program.
    largest = 2.0 ** math.ceil(math.log2(max(float(a.max()), float(b.max()), 1.0)))
    return np.asarray(_series(Series(sigma, DEGREE, largest), a, b, c))


@functools.partial(jax.jit, static_argnums=0)
def _series(of: Series, a: Any, b: Any, c: Any) -> Any:
    return of.value(pair(a, b, c))
