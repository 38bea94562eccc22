r"""Gaussian expectations of any function of one or two Gaussian variables, with a reported error.

The line is cut into panels with Gauss-Legendre nodes: ends at the kinks, panels that shrink geometrically towards the
kinks and towards 0 (where activations do what they do, however large the variance), and none wider than 1.5 standard
deviations. Smooth, kinked and jumping functions all converge like their smooth pieces.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array

from deeplimits.numerics import panels
from deeplimits.numerics.arguments import POSITIVE, argument, function
from deeplimits.numerics.checks import converged, valid
from deeplimits.numerics.shapes import Floats
from deeplimits.theory.gaussian.pairs import Pair, check_covariance, pair

REACH = 13.5
"""Standard deviations after which the Gaussian weight, exp(−91), is below any rounding."""
_WIDEST = 1.5
_LEVELS = 24
NODES = 14
COARSE = 12
OUTSKIRTS = 0.9 * REACH
LARGEST_OUTSKIRTS = 1e-3
"""If more than this part of E|f| lies beyond 0.9·REACH deviations, the integral is held not to exist."""


class Expectation(NamedTuple):
    """A number and a bound on its quadrature error."""

    value: Floats
    error: Floats


def expect(
    f: Callable[[Array], Array], variance: ArrayLike = 1.0, *, kinks: tuple[float, ...] = (), tolerance: float = 1e-10
) -> Expectation:
    """E f(u) for u ~ N(0, variance), by quadrature; `variance` may be an array.

    `f` is a JAX function applied to arrays. Name the points where f or f' jumps in `kinks`; f should vary on scales
    of order one near them and near 0, and be smooth elsewhere.

    >>> import jax.numpy as jnp
    >>> round(float(expect(lambda u: jnp.maximum(u, 0.0) ** 2, 3.0, kinks=(0.0,)).value), 12)
    1.5

    Raises `NotConverged` where two rules differ by more than `tolerance` (relative to E|f|), and `OutsideValidity`
    where the integral does not exist.
    """
    f, variance = function("f", f), jnp.asarray(variance, float)
    check_covariance(variance, variance, 0.0)

    def both(a):
        fine, size, outskirts = _line(f, a, kinks, NODES)
        coarse, _, _ = _line(f, a, kinks, COARSE)
        return fine, jnp.abs(fine - coarse) + 1e-15 * size + outskirts, size, outskirts

    found = jax.lax.map(both, jnp.ravel(variance), batch_size=64)
    value, error, size, outskirts = (part.reshape(variance.shape) for part in found)
    return _checked(value, error, size, outskirts, tolerance)


def expect_pair(
    f: Callable[[Array], Array],
    g: Callable[[Array], Array],
    a: ArrayLike,
    b: ArrayLike,
    c: ArrayLike,
    *,
    kinks: tuple[float, ...] = (),
    tolerance: float = 1e-9,
) -> Expectation:
    """E f(u)g(v) for centred Gaussian u, v with variances a, b and covariance c, by quadrature; a, b, c may be arrays.

    >>> import jax.numpy as jnp
    >>> round(float(expect_pair(jnp.sin, jnp.sin, 1.3, 0.7, 0.5).value), 12)
    0.191700249782

    Raises as `expect` does.
    """
    f, g = function("f", f), function("g", g)
    a, b, c = jnp.broadcast_arrays(*(jnp.asarray(value, float) for value in (a, b, c)))
    check_covariance(a, b, c)
    where = pair(a, b, c)
    value, size, outskirts = pair_rule(f, g, where, kinks, order=NODES)
    coarse, _, _ = pair_rule(f, g, where, kinks, order=COARSE)
    return _checked(value, jnp.abs(value - coarse) + 1e-15 * size + outskirts, size, outskirts, tolerance)


def expect_jointly(
    joint: Callable, a: ArrayLike, b: ArrayLike, c: ArrayLike, *also: ArrayLike,
    kinks: tuple[float, ...] = (), tolerance: float = 1e-9,
) -> Expectation:  # fmt: skip
    """As `expect_pair`, of joint(u, v, *also), `also` being numbers that may differ from pair to pair.

    >>> round(float(expect_jointly(lambda u, v, s: (u + s * v) ** 2, 1.0, 1.0, 0.5, 2.0).value), 12)
    7.0
    """
    arrays = jnp.broadcast_arrays(*(jnp.asarray(value, float) for value in (a, b, c, *also)))
    check_covariance(*arrays[:3])
    found = _both_rules(function("joint", joint), kinks, tuple(jnp.ravel(part) for part in arrays))
    value, coarse, size, outskirts = (part.reshape(arrays[0].shape) for part in found)
    return _checked(value, jnp.abs(value - coarse) + 1e-15 * size + outskirts, size, outskirts, tolerance)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _both_rules(joint: Callable, kinks: tuple[float, ...], arrays: tuple[Floats, ...]):
    def one(numbers):
        where, also = pair(*numbers[:3]), numbers[3:]

        def at(u, v):
            return joint(u, v, *also)

        value, size, outskirts = _plane(at, where, kinks, NODES)
        return value, _plane(at, where, kinks, COARSE)[0], size, outskirts

    return jax.lax.map(one, arrays)


def pair_rule(f: Callable, g: Callable, where: Pair, kinks: tuple[float, ...], *, order: int = NODES):
    """E f(u)g(v), E|f(u)g(v)| and its part far out, for each pair, unchecked; the inner rule is conditional on u."""
    return joint_rule(lambda u, v: f(u) * g(v), where, kinks, order=order)


def joint_rule(joint: Callable, where: Pair, kinks: tuple[float, ...], *, order: int = NODES):
    """As `pair_rule`, of `joint`(u, v) for a number u and many v, which is smooth but for u or v at a kink."""
    shape = jnp.broadcast_shapes(*(part.shape for part in where))
    flat = [jnp.ravel(jnp.broadcast_to(part, shape)) for part in where]

    def one(arguments):
        return _plane(joint, Pair(*arguments), kinks, order)

    return tuple(found.reshape(shape) for found in jax.lax.map(one, tuple(flat)))


class Nodes(NamedTuple):
    """A quadrature rule: Σ weights · f(points)."""

    points: Floats
    weights: Floats


def line_nodes(a: Floats, *, kinks: tuple[float, ...] = (), order: int = NODES, mean: Floats | None = None) -> Nodes:
    """Nodes u and weights, with Σ weights = 1, for a Gaussian of variance a (a scalar), centred unless given a mean."""
    centre = jnp.zeros(()) if mean is None else mean
    deviation = _positive_root(a)
    special = jnp.asarray(sorted({0.0, *kinks}))
    finest = jnp.minimum(1.0, deviation) / 4
    u, width = _panels(centre, deviation, special, finest, order)
    weight = width * jnp.exp(-(((u - centre) / deviation) ** 2) / 2)
    return Nodes(jnp.where(a > 0, u, centre), weight / jnp.sum(weight))


def _line(f, a, kinks, order):
    u, weight = line_nodes(a, kinks=kinks, order=order)
    values = jnp.broadcast_to(f(u), u.shape)
    sizes = weight * jnp.abs(values)
    outside = jnp.abs(u) > OUTSKIRTS * _positive_root(a)
    return jnp.sum(weight * values), jnp.sum(sizes), jnp.sum(jnp.where(outside, sizes, 0.0))


def _plane(joint, where: Pair, kinks, order):
    deviation = jnp.where(where.root_a > 0, where.root_a, 1.0)
    # v = μ(u) + s z: μ = ρ √b u/√a, s² = b(1 − ρ²)
    slope = where.root_b * (where.cogap - where.gap) / 2 / deviation
    # A spread that rounding cannot tell from none is none: panels that narrow would have no width.
    apart = where.gap * where.cogap > 1e-26
    spread = jnp.where(apart, where.root_b * jnp.sqrt(jnp.where(apart, where.gap * where.cogap, 1.0)), 0.0)
    # A kink of g, seen from u, is at κ/slope and is smoothed on the scale s/slope.
    steep = jnp.where(jnp.abs(slope) > 1e-8, slope, 1.0)
    images = [jnp.where(jnp.abs(slope) > 1e-8, kink / steep, 0.0) for kink in kinks if kink != 0]
    special = jnp.stack([jnp.asarray(kink) for kink in sorted({0.0, *kinks})] + images)
    finest = jnp.minimum(1.0, deviation) / 4
    if kinks:
        blurred = jnp.where(jnp.abs(slope) > 1e-8, spread / jnp.abs(steep), deviation)
        finest = jnp.minimum(finest, jnp.maximum(blurred / 4, 1e-9 * deviation))
    u, width = _panels(jnp.zeros(()), deviation, special, finest, order)
    weight = width * jnp.exp(-((u / deviation) ** 2) / 2)
    weight = weight / jnp.sum(weight)
    u = jnp.where(where.root_a > 0, u, 0.0)
    steps = jnp.asarray(sorted({0.0, *kinks}))
    safe = jnp.where(spread > 0, spread, 1.0)

    def conditional(u):
        mean = slope * u
        v, own = _panels(mean, safe, steps, jnp.minimum(1.0, safe) / 4, order)
        density = own * jnp.exp(-(((v - mean) / safe) ** 2) / 2)
        density = density / jnp.sum(density)
        values = jnp.broadcast_to(joint(u, jnp.where(spread > 0, v, mean)), v.shape)
        sizes = density * jnp.abs(values)
        outside = jnp.abs(v - mean) > OUTSKIRTS * safe
        return jnp.sum(density * values), jnp.sum(sizes), jnp.sum(jnp.where(outside, sizes, 0.0))

    inner, size, beyond = jax.vmap(conditional)(u)
    sizes = weight * size
    outside = jnp.abs(u) > OUTSKIRTS * deviation
    outskirts = jnp.sum(jnp.where(outside, sizes, weight * jnp.where(spread > 0, beyond, 0.0)))
    return jnp.sum(weight * inner), jnp.sum(sizes), outskirts


def _panels(centre, deviation, special, finest, order):
    """Gauss-Legendre nodes on panels that cover centre ± REACH·deviation and shrink to `finest` at special points."""
    low, high = centre - REACH * deviation, centre + REACH * deviation
    # No panel is wider than 1.5 deviations, and none longer than its distance from the nearest special point.
    widest = _WIDEST * deviation
    levels = jnp.linspace(0.0, 1.0, _LEVELS)
    shrinking = finest * (jnp.maximum(widest, finest) / finest) ** levels
    steps = jnp.concatenate([shrinking, widest * jnp.arange(2.0, 2 * REACH / _WIDEST + 1)])
    around = jnp.concatenate([-steps[::-1], jnp.zeros(1), steps])
    # A special point outside is as good as none: the nearest end of the range takes its place.
    ends = jnp.clip(jnp.clip(special, low, high)[:, None] + around[None, :], low, high)
    ends = ends[0] if special.shape == (1,) else jnp.sort(jnp.ravel(ends))
    half = jnp.diff(ends) / 2
    nodes, weights = panels.gauss(order)
    u = (ends[:-1] + half)[:, None] + half[:, None] * jnp.asarray(nodes)[None, :]
    return jnp.ravel(u), jnp.ravel(half[:, None] * jnp.asarray(weights)[None, :])


def _positive_root(a):
    return jnp.sqrt(jnp.where(a > 0, a, 1.0))


def _checked(value, error, size, outskirts, tolerance) -> Expectation:
    argument("tolerance", tolerance, POSITIVE)
    scale = jnp.maximum(size, 1e-300)
    value = valid(
        value,
        jnp.isfinite(size) & (outskirts <= LARGEST_OUTSKIRTS * scale),
        f"the expectation is not finite, or comes from beyond {REACH:g} deviations: the function grows too fast "
        "for the Gaussian weight, or is not a number somewhere; take slower growth or a smaller variance",
    )
    value = converged(
        value,
        error <= tolerance * scale,
        f"the quadrature is uncertain by more than {tolerance:g} of its size; name the points where the function or "
        "its derivative jumps in `kinks`, or raise the tolerance",
    )
    return Expectation(value, error)
