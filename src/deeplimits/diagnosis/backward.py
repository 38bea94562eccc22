r"""What theory expects of gradients at every operation of a network: sums of squares, from the outputs back.

With independent centred weights, and wide layers, the squared derivatives S = Σ (∂l/∂h)² by what enters an operation
are those by what leaves it, times

    affine   C_w (that of the taps inside the image)    activation     E σ'(√K z)²       residual sum   1, for each part
    scale    its square                                 normalization  ⟨γ²⟩/(v + ε)      mean pooling   outputs/inputs

and add up over all that take the same signal. Behind what has no such law (attention, products) they begin anew, from
what is measured at the next affine layer or residual sum.
"""

import math

import numpy as np

from deeplimits.diagnosis.propagation import Expected, squared_slope
from deeplimits.errors import DeeplimitsError
from deeplimits.measure.adapters.architecture import Architecture, Operation
from deeplimits.models.activations import activation
from deeplimits.theory.gaussian import second_moment, slope_moment


def expected_slopes(read: Architecture, stated: list[Expected]) -> np.ndarray:
    """Σ of squared derivatives by each operation's result, the last one's as measured; NaN where nothing is known."""
    operations = read.operations
    found = np.zeros(len(operations))
    for one in reversed(operations):
        place = one.place
        takers = [other for other in operations[place + 1 :] if place in other.sources]
        if takers:
            found[place] = sum(
                law(taker, one, stated[place], read) * found[taker.place] * taker.sources.count(place)
                for taker in takers
            )
        if not takers or not math.isfinite(found[place]):
            found[place] = one.slope
    return found


def scatter(read: Architecture, stated: list[Expected], slopes: np.ndarray, first: Operation, last: Operation) -> float:
    """Relative variance of the squared derivatives at `first` over those at `last`, over draws of the weights.

    A layer of width n of independent weights adds 2/n, an activation 3 (E σ'⁴/(E σ'²)² − 1)/n, and parts that meet in
    a place of width n the product of their shares, 4 s (1 − s)/n: one sample's; many samples have less.
    """
    found = np.zeros(len(read.operations))
    for one in reversed(read.operations[first.place : last.place]):
        takers = [other for other in read.operations[one.place + 1 : last.place + 1] if one.place in other.sources]
        parts = np.array([law(taker, one, stated[one.place], read) * slopes[taker.place] for taker in takers])
        if not takers or not np.all(np.isfinite(parts)) or not parts.sum() > 0:
            continue
        shares = parts / parts.sum()
        own = np.array([_fresh(taker, one, stated[one.place]) for taker in takers])
        passed = np.array([found[taker.place] for taker in takers])
        found[one.place] = float(shares**2 @ (own + passed) + 2 * (1 - shares @ shares) / features(one))
    return float(found[first.place])


def features(one: Operation) -> int:
    """Of channels first where there are places."""
    return int(one.shape[1 if len(one.shape) > 3 else -1]) if one.shape else 1


def _fresh(taker: Operation, one: Operation, given: Expected) -> float:
    """Relative variance that one operation adds."""
    if taker.kind == "affine":
        return 2 / features(one)
    if taker.kind == "activation" and taker.what:
        sigma = activation(taker.what)
        square = float(np.mean(np.asarray(slope_moment(sigma, given.moment))))
        fourth = float(np.mean(np.asarray(second_moment(squared_slope(sigma), given.moment))))
        return 3 * max(fourth / square**2 - 1, 0.0) / features(one) if square > 0 else 0.0
    return 0.0


def law(taker: Operation, one: Operation, given: Expected, read: Architecture) -> float:
    """By what squared derivatives are multiplied from what leaves `taker` to what it takes from `one`."""
    c = taker.constants
    if taker.kind == "affine" and len(taker.sources) == 1:
        return c["weight_variance"] * c["taps"]
    if taker.kind in ("sum", "shift", "concatenation"):
        return 1.0
    if taker.kind in ("scale", "dropout"):
        return c["factor"]
    if taker.kind == "pooling":
        return pooled(taker, read)
    if taker.kind == "activation" and taker.what and given.gaussian:
        try:
            return float(np.mean(np.asarray(slope_moment(activation(taker.what), given.moment))))
        except DeeplimitsError:
            return math.nan
    if taker.kind == "batch norm" and "factor" in c:
        return c["factor"]
    if taker.kind == "layer norm":
        share = 0.0 if given.gaussian else one.centre
        variance = given.moment * (1 - c["mean"] * min(share, 1.0))
        return float(np.mean(c["gain"] / (variance + c["epsilon"]))) if np.all(variance > 0) else math.nan
    return math.nan


def pooled(one: Operation, read: Architecture) -> float:
    """What a pooling makes of squared derivatives: means share them out, a largest value passes them on to one."""
    (source,) = one.sources[:1] or (one.place,)
    taken, left = (float(np.prod(operation.shape)) for operation in (read.operations[source], one))
    if "avg" in one.what or one.what == "mean":
        return left / taken
    if "max" in one.what:
        return 1.0
    if one.what in ("sum", "reduce_sum"):
        return taken / left
    return math.nan


def shared_out(read: Architecture, first: Operation, last: Operation) -> float:
    """The part of that from one operation to another that poolings alone bring about: it is no fault of the start."""
    between = [
        one
        for one in read.of("pooling")
        if one.place in read.above(last.place) and first.place in read.above(one.place)
    ]
    total = 1.0
    for one in between:
        after = [other for other in read.operations if other.sources == (one.place,)]
        # A mean may be a sum and a division.
        divided = one.what == "reduce_sum" and len(after) == 1 and after[0].kind == "scale"
        factor = pooled(one, read) * (after[0].constants["factor"] if divided else 1.0)
        total *= factor if math.isfinite(factor) else 1.0
    return total
