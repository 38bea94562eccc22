r"""Weak recovery in the critical window of information exponent k ≥ 3: a race against the retraction to the sphere.

With the largest admissible step, δ = c N^{−(k−2)/2}, and time ϑ = δ²·steps/N = c²·steps/N^{k−1}, u = √N m converges to

    du = [(a_k/c) u^{k−1} − (s(0)/2) u] dϑ + σ dB,

which explodes in finite time; the signal is found when it does.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array

from deeplimits.numerics import arguments
from deeplimits.theory.online_sgd.landscapes import Landscape, check_order

FARTHEST = 6.0
"""How many standard deviations of the linear process, started below, are followed downwards."""


def passage_probability(
    landscape: Landscape, step: ArrayLike, start: ArrayLike, level: ArrayLike, times: ArrayLike, points: int = 64
) -> Array:
    """P(u passes `level` before ϑ) at each of the `times`, from u = `start`; |u| for even k.

    The probability q(u, ϑ) not to have passed solves ∂q/∂ϑ = b(u)q' + ½σ²q'', q = 1 at ϑ = 0, q = 0 at the level, on an
    interval that is reflecting at its lower end: 0 for even k, by symmetry, and for odd k a point so low that it is
    hardly ever seen. q is represented by its values at Chebyshev points, and the generator exponentiated.

    >>> from deeplimits.theory.online_sgd.landscapes import tensor_pca
    >>> [round(float(p), 6) for p in passage_probability(tensor_pca(2.0, 3), 2.0, 1.0, 3.0, [0.5, 1.0])]
    [0.676353, 0.815082]
    """
    check_order(landscape.exponent, least=3)
    c, u0, top = (jnp.asarray(part, float) for part in (step, start, level))
    arguments.whole("points", points, 8)
    times = jnp.atleast_1d(jnp.asarray(times, float))
    zero = jnp.zeros(())
    decay, variance = landscape.squared_gradient(zero) / 2, landscape.directional_variance(zero)
    even = landscape.exponent % 2 == 0
    bottom = zero if even else jnp.minimum(0.0, u0) - FARTHEST * jnp.sqrt(variance / (2 * decay))
    x, first = _chebyshev(points)
    u = bottom + (top - bottom) * (1 + x) / 2
    slope = 2 / (top - bottom) * first
    drift = landscape.drift_constant / c * u ** (landscape.exponent - 1) - decay * u
    generator = drift[:, None] * slope + variance / 2 * slope @ slope
    # The first point is the level, where q = 0; at the last one q' = 0 gives q there from the others.
    inner = slice(1, points)
    reflected = -first[points, inner] / first[points, points]
    inside = generator[inner, inner] + generator[inner, points, None] * reflected
    weights = _interpolation(x, 2 * (u0 - bottom) / (top - bottom) - 1)
    read = weights[inner] + weights[points] * reflected

    def passed(time):
        return 1 - read @ jax.scipy.linalg.expm(time * inside, max_squarings=48) @ jnp.ones(points - 1)

    return jnp.clip(jax.vmap(passed)(times), 0.0, 1.0)


def _chebyshev(points: int) -> tuple[Array, Array]:
    """The points cos(πj/n), j = 0…n, and the matrix that differentiates polynomials through values there."""
    j = np.arange(points + 1)
    x = np.cos(np.pi * j / points)
    scale = np.where((j == 0) | (j == points), 2.0, 1.0) * (-1.0) ** j
    matrix = np.outer(scale, 1 / scale) / (x[:, None] - x[None, :] + np.eye(points + 1))
    return jnp.asarray(x), jnp.asarray(matrix - np.diag(matrix.sum(axis=1)))


def _interpolation(x: Array, place: Array) -> Array:
    """The weights of the values at Chebyshev points in the value of their polynomial at `place` (barycentric)."""
    j = np.arange(len(x))
    signs = jnp.asarray((-1.0) ** j * np.where((j == 0) | (j == len(x) - 1), 0.5, 1.0))
    gap = place - x
    on_point = jnp.abs(gap) < 1e-14
    terms = signs / jnp.where(on_point, 1.0, gap)
    return jnp.where(jnp.any(on_point), on_point.astype(float), terms / jnp.sum(terms))
