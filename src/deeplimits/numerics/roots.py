"""Zeros of functions that change sign once, many at a time.

One iteration, Chandrupatla's, in two drivers: `bracketed` in JAX, traceable and differentiable, and `on_host` in NumPy.
Every zero is certified: the ends of its bracket have opposite signs and are neighbours in floating point, and the
function is small between them, which it is at a zero and is not at a jump or a pole. What has no such certificate
raises `NotConverged`, inside `jit` too.

On the host also: `newton` where the slope is known and a good start saves calls, `switch` where there is a condition
and no number, `peak` for the maximum of a concave function.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from numpy.typing import NDArray

from deeplimits.numerics.checks import converged
from deeplimits.numerics.shapes import Floats

MOST_STEPS = 360
BISECT_EVERY = 3
"""Among the steps that interpolate: where rounding shakes the function these may creep, and bisections never do."""
NEIGHBOURS = 4.0
"""Ends of a bracket this many rounding errors apart are one number."""
FLAT = 1e-6
"""At a zero the function must be this much smaller than at the ends of the first bracket."""
SENTENCE = "no zero was found: the function does not change its sign between the ends, or jumps where it does"


class _Bracket(NamedTuple):
    """The last point looked at, the one before, and the end that lay beyond the zero from there, with the values."""

    last: Any
    at_last: Any
    before: Any
    at_before: Any
    other: Any
    at_other: Any
    done: Any


def bracketed(
    function: Callable[..., Floats],
    low: ArrayLike,
    high: ArrayLike,
    *parameters: Any,
    where: ArrayLike = True,
    optional: bool = False,
    sentence: str = SENTENCE,
) -> Floats:
    """The x between `low` and `high` with function(x, *parameters) = 0, entry by entry; differentiable in `parameters`.

    Setting     f(x, θ) continuous in x, one zero between the ends, signs opposite there (±∞ is a sign too); the ends
                and f broadcast to one shape, and every entry of f depends on its own x alone
    Result      x(θ) to rounding; dx = −∂_θf dθ/∂_xf, forward and reverse, and further derivatives
    Validity    a simple zero for the derivatives. Entries with `where` false are not looked for and come back as `low`,
                and so do, where a zero is `optional`, those in which the function does not change its sign

    Pass everything the function needs as `parameters` (trees of arrays), and the function itself from the top level
    of a module: then a second call outside `jit` compiles nothing, and gradients reach all that they should.

    >>> f = lambda x, a: x**2 - a
    >>> [round(float(root), 12) for root in bracketed(f, 0.0, 2.0, jnp.array([2.0, 3.0]))]
    [1.414213562373, 1.732050807569]
    >>> round(float(jax.grad(lambda a: bracketed(f, 0.0, 2.0, a))(2.0)), 12)
    0.353553390593
    """
    ends = jnp.asarray(low, float), jnp.asarray(high, float)
    asked = jnp.asarray(where, bool)
    parameters = jax.tree.map(jnp.asarray, parameters)
    return _root(function, sentence, optional, *jax.lax.stop_gradient(ends), asked, parameters)


# Derivatives are computed from the checked zero: of a program that wants nothing but them the check is part too.
@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1, 2))
def _root(function, sentence, optional, low, high, asked, parameters):
    root, certain = _search(function, optional, low, high, asked, parameters)
    return converged(root, certain, sentence)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _search(function, optional, low, high, asked, parameters):
    ends = jnp.broadcast_shapes(low.shape, high.shape, asked.shape)
    of_values = jax.eval_shape(function, jax.ShapeDtypeStruct(ends, low.dtype), *parameters).shape
    low, high, asked = (jnp.broadcast_to(part, jnp.broadcast_shapes(ends, of_values)) for part in (low, high, asked))
    values = function(low, *parameters), function(high, *parameters)
    if optional:
        # Decided here and not by the caller: two programs may round a value near zero to different signs.
        asked = asked & (jnp.sign(values[0]) * jnp.sign(values[1]) < 0)
    narrow = _narrow(low, high)
    first = _first(jnp, low, high, *values)
    first = first._replace(done=first.done | ~asked)

    def going(state):
        return (state[1] < MOST_STEPS) & ~jnp.all(state[0].done)

    def step(state):
        return _step(jnp, lambda x: function(x, *parameters), state[0], narrow, state[1]), state[1] + 1

    last, _ = jax.lax.while_loop(going, step, (first, 0))
    root, certain = _certified(jnp, last, *values)
    return jnp.where(asked, root, low), certain | ~asked


@_root.defjvp
def _root_jvp(function, sentence, optional, primals, tangents):
    root = _root(function, sentence, optional, *primals)
    low, _, asked, parameters = primals
    # The zero moves so that f stays 0: ∂_xf dx + ∂_θf dθ = 0.
    _, slope = jax.jvp(lambda x: function(x, *parameters), (root,), (jnp.ones_like(root),))
    _, push = jax.jvp(lambda *given: function(root, *given), parameters, tangents[3])
    moves = jnp.broadcast_to(asked, root.shape)
    moves = moves & (root != low) if optional else moves
    return root, jnp.where(moves, -push / jnp.where(moves, slope, 1.0), 0.0)


def on_host(
    function: Callable[[NDArray], NDArray], low: NDArray, high: NDArray, sentence: str = SENTENCE
) -> NDArray[np.floating]:
    """The zeros of a NumPy function that acts entry by entry, between `low` and `high`; as `bracketed`, untraced.

    >>> on_host(lambda x: x**3 - np.array([8.0, 27.0]), np.zeros(2), np.full(2, 10.0)).round(12).tolist()
    [2.0, 3.0]
    """
    low, high = np.broadcast_arrays(np.asarray(low, float), np.asarray(high, float))
    if not low.size:
        return low.copy()
    with np.errstate(all="ignore"):
        values = np.asarray(function(low), float), np.asarray(function(high), float)
        narrow, state = _narrow(low, high), _first(np, low, high, *values)
        for count in range(MOST_STEPS):
            if np.all(state.done):
                break
            state = _step(np, function, state, narrow, count)
        root, certain = _certified(np, state, *values)
    return converged(root, certain, sentence)


def newton(
    function: Callable[[NDArray], tuple[NDArray, NDArray]],
    low: NDArray,
    high: NDArray,
    start: NDArray | None = None,
    *,
    rest: float = 0.0,
    noise: ArrayLike = 0.0,
    sentence: str = SENTENCE,
) -> NDArray[np.floating]:
    """The zeros of an increasing NumPy function, which gives its values and slopes, by Newton's method in a bracket.

    A step that leaves the bracket, and every fourth one, halves it instead. An entry is found when a step moves it by
    no more than rounding or `rest`, or its value is no larger than `noise`, the rounding of the function itself.

    >>> newton(lambda x: (x**3 - 8.0, 3 * x**2), np.zeros(1), np.full(1, 10.0)).tolist()
    [2.0]
    """
    low, high = np.array(low, float), np.array(high, float)
    x = (low + high) / 2 if start is None else np.array(start, float)
    moves, below, above, largest = np.ones(x.shape, bool), *(np.zeros(x.shape) for _ in range(3))
    value = slope = np.full(x.shape, np.nan)
    with np.errstate(all="ignore"):
        for count in range(MOST_STEPS):
            value, slope = function(x)
            below, above, largest = below + (value < 0), above + (value > 0), np.fmax(largest, abs(value))
            low, high = np.where(value < 0, x, low), np.where(value > 0, x, high)
            step = x - value / slope
            inside = (step >= low) & (step <= high) & (count % 4 != 3)
            new = np.where(inside, step, (low + high) / 2)
            # A point that is as good as its value stays.
            new = np.where(abs(value) <= noise, x, new)
            moves = ~(abs(new - x) <= rest + np.finfo(float).eps * np.maximum(abs(new), abs(x)))
            x = new
            if not np.any(moves):
                break
        # Two neighbouring numbers may take turns for ever.
        rounding = rest + NEIGHBOURS**2 * np.finfo(float).eps * np.maximum(abs(low), abs(high))
        ended = ~moves | (high - low <= rounding)
        # A zero has values of both signs beside it, or is at an end, where the value itself must show it.
        small = (abs(value) <= np.maximum(noise, FLAT * largest)) | (abs(value / slope) <= rounding)
    return converged(x, ended & ((below > 0) & (above > 0) | small), sentence)


def switch(
    condition: Callable[[NDArray], NDArray], off: NDArray, on: NDArray, halvings: int = 200
) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """The last place towards `off` at which a condition does not hold and the first towards `on` at which it does.

    By bisection, entry by entry, until they are neighbours or so many halvings are done; where the condition changes
    more than once, at one of the changes. Nothing is asked at the ends, which are taken at their word.

    >>> dark, bright = switch(lambda x: x > 0.3, np.zeros(1), np.ones(1))
    >>> dark.round(12).tolist(), bool(bright[0] - dark[0] < 1e-15)
    ([0.3], True)
    """
    off, on = np.array(off, float), np.array(on, float)
    for _ in range(halvings):
        if np.all(abs(on - off) <= 2 * np.finfo(float).eps * np.maximum(abs(on), abs(off))):
            break
        middle = (off + on) / 2
        holds = np.asarray(condition(middle), bool)
        off, on = np.where(holds, off, middle), np.where(holds, middle, on)
    return off, on


def peak(function: Callable[[NDArray], NDArray], low: NDArray, high: NDArray) -> NDArray[np.floating]:
    """Where functions with one maximum between `low` and `high` are largest, entry by entry, by golden section.

    To half of the digits of the width, as every method that compares values. The ends are not looked at.

    >>> peak(lambda x: -((x - 0.3) ** 2), np.zeros(1), np.ones(1)).round(7).tolist()
    [0.3]
    """
    golden = (np.sqrt(5) - 1) / 2
    left, right = np.array(low, float), np.array(high, float)
    for _ in range(80):
        width = right - left
        one, two = right - golden * width, left + golden * width
        rises = np.asarray(function(one)) < np.asarray(function(two))
        left, right = np.where(rises, one, left), np.where(rises, right, two)
    return (left + right) / 2


def _narrow(low, high):
    # A zero at 0 has no relative accuracy: there the width of the first bracket is the scale.
    return np.finfo(float).eps ** 2 * abs(high - low)


def _first(xp, low, high, at_low, at_high) -> _Bracket:
    # Without two different signs there is nothing to look for.
    done = ~(xp.sign(at_low) * xp.sign(at_high) < 0)
    return _Bracket(high, at_high, high, at_high, low, at_low, done)


def _step(xp, function, at: _Bracket, narrow, count) -> _Bracket:
    """One step of Chandrupatla's method: inverse quadratic interpolation where it is safe, otherwise a bisection.

    What was computed in the step before is sorted in here, and not there: a compiler may compute one value twice, for
    two purposes, with two roundings, and near a zero with two signs. What a step hands on has one value.
    """
    x, value = at.last, at.at_last
    same = xp.sign(value) == xp.sign(at.at_before)
    old, at_old = xp.where(same, at.before, at.other), xp.where(same, at.at_before, at.at_other)
    other, at_other = xp.where(same, at.other, at.before), xp.where(same, at.at_other, at.at_before)
    width = abs(other - x)
    least = NEIGHBOURS * np.finfo(float).eps * xp.minimum(abs(x), abs(other)) + narrow
    done = at.done | (value == 0) | (width <= least)
    # The point lies between ξ of the way and φ of the height: the parabola through the three is monotone there.
    xi, phi = (x - other) / (old - other), (value - at_other) / (at_old - at_other)
    safe = (phi**2 < xi) & ((1 - phi) ** 2 < 1 - xi)
    guess = value / (at_other - value) * at_old / (at_other - at_old)
    guess = guess + (old - x) / (other - x) * value / (at_old - value) * at_other / (at_old - at_other)
    share = xp.where(safe & xp.isfinite(guess) & (count % BISECT_EVERY != BISECT_EVERY - 1), guess, 0.5)
    edge = xp.minimum(0.5, 0.5 * least / xp.where(width > 0, width, 1.0))
    share = xp.minimum(xp.maximum(share, edge), 1 - edge)
    following = xp.where(done, x, x + share * (other - x))
    return _Bracket(following, xp.where(done, value, function(following)), x, value, other, at_other, done)


def _certified(xp, last: _Bracket, at_low, at_high):
    """The end of the last bracket at which the function is smaller, and whether that is a zero."""
    nearer = abs(last.at_last) <= abs(last.at_other)
    root, value = xp.where(nearer, last.last, last.other), xp.where(nearer, last.at_last, last.at_other)
    changes = xp.sign(at_low) * xp.sign(at_high) <= 0
    small = abs(value) <= FLAT * xp.maximum(abs(at_low), abs(at_high))
    return root, last.done & changes & small
