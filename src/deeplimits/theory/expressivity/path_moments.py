r"""Moments of the Jacobian of a random ReLU network, exact at every width, for every symmetric law of the weights.

J^{2k} is a sum over 2k paths from the output back to one input. At each layer what matters is how many of them meet in
the same neuron: a list of even numbers with the sum 2k. One step back, the m paths at a neuron go on to neurons below,
e_j of them to neuron j, in m!/Π e_j! ways with the weight Π μ_{e_j}; each neuron that is met at all has its gate open
with probability 1/2. So the expectation is a product of small transfer matrices between partitions of k.
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import digamma, gammaln, polygamma
from jax.typing import ArrayLike

from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.numerics.arguments import POSITIVE, array, whole
from deeplimits.numerics.shapes import Floats
from deeplimits.theory.expressivity.paths import hidden_widths

State = tuple[int, ...]
HIGHEST = 12
"""The highest moment: its transfer matrices have a row for each partition of 6."""


def jacobian_moment(
    order: int, inputs: int, hidden: Sequence[int], *, weight_moments: Sequence[float] | None = None
) -> Floats:
    r"""E J_qp^{order}, the moments of one entry of the Jacobian of a random ReLU network.

    Setting     no biases, W^(l) = √(2/n_{l−1}) Ŵ^(l) with independent symmetric entries of variance 1 without atoms;
                n_0 = `inputs`, n_1 … n_L = `hidden`; `weight_moments` E Ŵ⁴, E Ŵ⁶, … up to the order (Gaussian if not
                given)
    Result      E J² = 2/n_0 for every law; E J⁴ = (12/n_0²) Π(1 + 5/n_l) for Gaussian weights; odd moments vanish
    Validity    exact at every width; even orders up to 12
    References  hanin2020

    >>> round(float(jacobian_moment(4, 3, [5, 4, 6])), 10), round(float(jacobian_moment(2, 3, [5, 4, 6])), 10)
    (11.0, 0.6666666667)
    >>> round(float(jacobian_moment(4, 3, [5, 4, 6], weight_moments=[9 / 5])), 10)  # uniform weights
    5.11904
    """
    total = whole("order", order, 1)
    if total > HIGHEST:
        raise ParameterError(f"order = {total} is not allowed; it must be at most {HIGHEST}")
    n0, widths = whole("inputs", inputs, 1), hidden_widths(hidden)
    moments = _moments(total, weight_moments)
    if total % 2:
        return jnp.zeros(())
    k = total // 2
    # The weights of the matrices, 2/n each, are taken along so that nothing overflows in between.
    below: dict[State, float] = {(total,): 1.0}
    for n in reversed(widths):
        above, below = below, {}
        for state, value in above.items():
            for reached, ways in _steps(state, n, moments):
                below[reached] = below.get(reached, 0.0) + value * ways * 0.5 ** len(reached) * (2.0 / n) ** k
    # All paths end in one input.
    found = sum(value * math.prod(moments[m] for m in state) for state, value in below.items())
    found *= (2.0 / n0) ** k
    if not math.isfinite(found):
        raise OutsideValidity(
            f"E J^{total} of {len(widths)} layers is beyond double precision; take fewer layers, wider ones or a lower "
            "order, or jacobian_log_moments"
        )
    return jnp.asarray(found)


def _moments(order: int, given: Sequence[float] | None) -> dict[int, float]:
    """E Ŵ^m for even m up to the order."""
    even = range(4, order + 1, 2)
    if given is None:
        return {2: 1.0, **{m: float(math.prod(range(m - 1, 0, -2))) for m in even}}
    if len(given):
        array("weight_moments", given, ("moments",), allowed=POSITIVE)
    values = np.asarray(given, float)
    if len(values) < len(even):
        raise ParameterError(
            f"weight_moments has {len(values)} entries; the moments of order 4, 6, … up to {order} are needed"
        )
    found = {2: 1.0, **{m: float(values[place]) for place, m in enumerate(even)}}
    for m in even:
        # E Ŵ^m ≥ (E Ŵ²)^{m/2} = 1
        if found[m] < 1:
            raise ParameterError(
                f"weight_moments[{m // 2 - 2}] = {found[m]:g} is not allowed; a variable of variance 1 has no moment "
                f"of order {m} below 1"
            )
    return found


def _steps(state: State, width: int, moments: dict[int, float]) -> Iterator[tuple[State, float]]:
    """Where the paths at the neurons of one layer go in the layer below, and the weight of it."""
    # What has been distributed so far: the loads of the neurons of the layer below that were met.
    found: dict[State, float] = {(): 1.0}
    for m in state:
        following: dict[State, float] = {}
        for loads, weight in found.items():
            for added, ways in _distributed(m, loads, width, moments):
                following[added] = following.get(added, 0.0) + weight * ways
        found = following
    merged: dict[State, float] = {}
    for loads, weight in found.items():
        key = tuple(sorted(loads))
        merged[key] = merged.get(key, 0.0) + weight
    yield from merged.items()


def _distributed(m: int, loads: State, width: int, moments: dict[int, float]) -> Iterator[tuple[State, float]]:
    """m paths from one neuron, evenly many to each neuron below: to those in `loads`, and to new ones."""

    def onto(place: int, left: int, so_far: list[int], weight: float) -> Iterator[tuple[State, float]]:
        if place < len(loads):
            for e in range(0, left + 1, 2):
                factor = moments[e] / math.factorial(e) if e else 1.0
                yield from onto(place + 1, left - e, [*so_far, loads[place] + e], weight * factor)
            return
        for parts in _even_parts(left, left):
            free, factor = width - len(loads), 1.0
            for e in parts:
                factor *= moments[e] / math.factorial(e)
            for place_of in range(len(parts)):
                factor *= max(free - place_of, 0)
            for e in set(parts):
                factor /= math.factorial(parts.count(e))
            if factor:
                yield (*so_far, *parts), weight * factor

    yield from onto(0, m, [], float(math.factorial(m)))


def _even_parts(total: int, largest: int) -> Iterator[tuple[int, ...]]:
    """Partitions of an even number into even parts."""
    if total == 0:
        yield ()
        return
    for first in range(min(total, largest) // 2 * 2, 0, -2):
        for rest in _even_parts(total - first, first):
            yield (first, *rest)


class LayerFactor(NamedTuple):
    """The factor by which one hidden layer changes the squared length of a gradient, given that it is not off."""

    mean: Floats
    """E log X"""
    variance: Floats
    """Var log X"""
    third: Floats
    """E(log X − E log X)³"""
    off: Floats
    """P(X = 0), all neurons off"""


def layer_factor(width: ArrayLike) -> LayerFactor:
    r"""log X, X = (2/n) Σ_i ξ_i g_i², of a layer of n ReLU neurons: exact moments, given that some neuron is on.

    Setting     ξ_i fair coins, g_i standard normal, all independent; n = `width`
    Result      X is (2/n) χ²_k with k binomial, given k ≥ 1: E log X and its central moments as mixtures of digamma and
                polygamma functions at k/2. E X = 1 and Var X = 5/n without the condition
    Validity    Gaussian weights
    References  hanin2020

    >>> found = layer_factor(50)
    >>> round(float(found.mean), 6), round(float(found.variance), 6), round(5 / 50, 6)
    (-0.051739, 0.108168, 0.1)
    """
    n = whole("width", int(width) if isinstance(width, float) and width.is_integer() else width, 1)
    # Far from the middle of the binomial law, weights are below rounding.
    middle, spread = n / 2, 20 * math.sqrt(n) + 40
    k = jnp.arange(max(1, math.floor(middle - spread)), min(n, math.ceil(middle + spread)) + 1, dtype=float)
    logs = gammaln(n + 1.0) - gammaln(k + 1) - gammaln(n - k + 1) - n * math.log(2)
    p = jnp.exp(logs)
    p = p / jnp.sum(p)
    # E log χ²_k = ψ(k/2) + log 2, and its cumulants are polygamma functions
    each = digamma(k / 2) + math.log(2) + math.log(2 / n)
    mean = jnp.sum(p * each)
    around = each - mean
    second, third = polygamma(1, k / 2), polygamma(2, k / 2)
    variance = jnp.sum(p * (second + around**2))
    return LayerFactor(
        mean, variance, jnp.sum(p * (third + 3 * around * second + around**3)), jnp.asarray(2.0 ** -min(n, 1000))
    )


class LogNormal(NamedTuple):
    """Mean and variance of a logarithm."""

    mean: Floats
    variance: Floats


def jacobian_log_moments(inputs: int, hidden: Sequence[int]) -> LogNormal:
    r"""Mean and variance of log J_qp² of a random ReLU network, exact, given that no layer is off.

    Setting     as `jacobian_moment`, Gaussian weights
    Result      J² = (2/n_0) g² Π_l X_l with independent factors: g² adds −γ − log 2 to the mean and π²/2 to the
                variance, each layer what `layer_factor` says. For large widths Π X_l → exp N(−β/2, β), β = 5 Σ 1/n_l
    Validity    exact at every width; given that the network is not dead at the input
    References  hanin2020

    >>> found = jacobian_log_moments(3, [100] * 10)
    >>> round(float(found.mean), 4), round(float(found.variance), 4)
    (-1.93, 5.4542)
    """
    n0 = whole("inputs", inputs, 1)
    parts = [layer_factor(n) for n in hidden_widths(hidden)]
    start = math.log(2 / n0) - float(np.euler_gamma) - math.log(2)
    return LogNormal(
        jnp.asarray(start) + sum(one.mean for one in parts),
        jnp.asarray(math.pi**2 / 2) + sum(one.variance for one in parts),
    )
