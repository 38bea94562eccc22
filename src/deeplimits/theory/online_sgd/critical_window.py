r"""Weak recovery in the critical window of information exponent k ≥ 3: a race against the retraction to the sphere.

With the largest admissible step, δ = c N^{−(k−2)/2}, and time ϑ = δ²·steps/N = c²·steps/N^{k−1}, u = √N m converges to

    du = [(a_k/c) u^{k−1} − (s(0)/2) u] dϑ + σ dB,

which explodes in finite time; the signal is found when it does.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array

from deeplimits.numerics import chebyshev
from deeplimits.numerics.arguments import FINITE, NOT_NEGATIVE, POSITIVE, argument, known, number, of_kind, whole
from deeplimits.numerics.checks import converged, valid
from deeplimits.theory.online_sgd.landscapes import Landscape, check_order

FARTHEST = 6.0
"""How many standard deviations of the linear process, started below, are followed downwards."""
UNCERTAIN = 1e-6
POINTS = (64, 112, 192, 320)
"""Numbers of points that are tried, until five sixths of them agree: the error falls geometrically."""
TRACED_POINTS = 320
"""Where the arguments are traced, and nothing can be tried."""


def passage_probability(
    landscape: Landscape,
    step: ArrayLike,
    start: ArrayLike,
    level: ArrayLike,
    times: ArrayLike,
    *,
    points: int | None = None,
) -> Array:
    """P(u passes `level` before ϑ) at each of the `times`, from u = `start`; |u| for even k.

    The probability q(u, ϑ) not to have passed solves ∂q/∂ϑ = b(u)q' + ½σ²q'', q = 1 at ϑ = 0, q = 0 at the level, on an
    interval that is reflecting at its lower end: 0 for even k, by symmetry, and for odd k a point so low that it is
    hardly ever seen. q is represented by its values at Chebyshev points of x, u = A sinh(Bx + C), which lie densely
    where the noise decides and sparsely on the way out, and the generator exponentiated. As many points are taken as
    it needs, unless their number is given; `NotConverged` is raised where five sixths of them give another answer.

    >>> from deeplimits.theory.online_sgd.landscapes import tensor_pca
    >>> [round(float(p), 5) for p in passage_probability(tensor_pca(2.0, 3), 2.0, 1.0, 3.0, [0.5, 1.0])]
    [0.67635, 0.81508]
    """
    of_kind("landscape", landscape, Landscape)
    check_order(landscape.exponent, least=3)
    c, top = number("step", step, POSITIVE), number("level", level, POSITIVE)
    even = landscape.exponent % 2 == 0
    u0 = number("start", start, FINITE)
    u0 = jnp.abs(u0) if even else u0
    u0 = valid(u0, u0 <= top, "start lies above level, which is then passed already; take a higher level")
    moments = jnp.atleast_1d(argument("times", times, NOT_NEGATIVE))
    zero = jnp.zeros(())
    rates = landscape.drift_constant / c, landscape.squared_gradient(zero) / 2, landscape.directional_variance(zero)
    given = landscape.exponent, *rates, u0, top, moments
    if points is not None:
        tried = (whole("points", points, 24),)
    else:
        tried = POINTS if known(given) else (TRACED_POINTS,)
    fine, good = moments, jnp.zeros(moments.shape, bool)
    for count in tried:
        fine, coarse = _passed(count, *given), _passed(5 * count // 6, *given)
        good = jnp.abs(fine - coarse) <= UNCERTAIN
        if known(good) and bool(jnp.all(good)):
            break
    sentence = f"the probability of passage is uncertain by more than {UNCERTAIN:g}; take a lower level, or more points"
    return converged(jnp.clip(fine, 0.0, 1.0), good, sentence)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _passed(
    points: int, order: int, growth: Array, decay: Array, variance: Array, u0: Array, top: Array, times: Array
) -> Array:
    """P(u passes `top`) for du = [growth·u^{k−1} − decay·u]dϑ + √variance dB, from this many points."""
    spread = jnp.sqrt(variance / (2 * decay))
    bottom = jnp.zeros(()) if order % 2 == 0 else jnp.minimum(0.0, u0) - FARTHEST * spread
    x, first = (jnp.asarray(part) for part in chebyshev.collocation(points)[:2])
    # u = A sinh(w), with w at Chebyshev points between the ends
    scale = 2 * spread
    ends = jnp.arcsinh(bottom / scale), jnp.arcsinh(top / scale)
    w = ends[0] + (ends[1] - ends[0]) * (1 + x) / 2
    u, stretch = scale * jnp.sinh(w), scale * jnp.cosh(w) * (ends[1] - ends[0]) / 2
    slope = first / stretch[:, None]
    drift = growth * u ** (order - 1) - decay * u
    generator = drift[:, None] * slope + variance / 2 * slope @ slope
    # The first point is the level, where q = 0; at the last one q' = 0 gives q there from the others.
    inner = slice(1, points)
    reflected = -first[points, inner] / first[points, points]
    inside = generator[inner, inner] + generator[inner, points, None] * reflected[None, :]
    weights = _interpolation(x, 2 * (jnp.arcsinh(u0 / scale) - ends[0]) / (ends[1] - ends[0]) - 1)
    read = weights[inner] + weights[points] * reflected

    def passed(time):
        return 1 - read @ jax.scipy.linalg.expm(time * inside, max_squarings=80) @ jnp.ones(points - 1)

    return jax.lax.map(passed, times)


def _interpolation(x: Array, place: Array) -> Array:
    """The weights of the values at Chebyshev points in the value of their polynomial at `place` (barycentric)."""
    j = np.arange(len(x))
    signs = jnp.asarray((-1.0) ** j * np.where((j == 0) | (j == len(x) - 1), 0.5, 1.0))
    gap = place - x
    on_point = jnp.abs(gap) < 1e-14
    terms = signs / jnp.where(on_point, 1.0, gap)
    return jnp.where(jnp.any(on_point), on_point.astype(float), terms / jnp.sum(terms))
