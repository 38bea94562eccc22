r"""Metastability: which clusters form first out of the uniform distribution, and how long they wait to merge."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jax.typing import ArrayLike

from deeplimits.errors import ParameterError
from deeplimits.numerics import arguments, panels
from deeplimits.numerics.arguments import known
from deeplimits.numerics.shapes import Floats, Scalar
from deeplimits.theory.attention.equiangular import KINDS, LARGEST_EXPONENT

LARGEST_BETA = 1e4
STEPS = 1500
"""Of the recursion for ratios of Bessel functions; e^{−steps²/β} is what is left of its start."""
NODES = 400


class FastestMode(NamedTuple):
    """The degree of the harmonic that grows fastest, about the number of clusters that form, and its rate."""

    degree: Scalar
    growth: Scalar


def harmonic_growth(degree: int, beta: ArrayLike, dimension: ArrayLike, *, kind: str = "softmax") -> Floats:
    """Growth rate λ_k of a spherical harmonic of degree k on the uniform density, B = V = I.

    SA: λ_k = k(k+d−2)/β · I_{k+d/2−1}(β)/I_{d/2−1}(β); USA: times the uniform mean of e^{β⟨x,y⟩}. At β = 0 only k = 1
    grows, at (d−1)/d. On the circle, β ≫ 1: λ_k ≈ (k²/β)e^{−k²/2β}, largest at k ≈ √(2β), where it is 2/e.

    >>> round(float(harmonic_growth(3, 4.0, 2)), 12), round(float(harmonic_growth(1, 10.0, 128)), 12)
    (0.664388812208, 0.986294400053)
    """
    arguments.choice("kind", kind, KINDS)
    k = arguments.whole("degree", degree, 1)
    most = LARGEST_BETA if kind == "softmax" else LARGEST_EXPONENT
    b = arguments.argument("beta", beta, arguments.between(0.0, most))
    d = arguments.argument("dimension", dimension, arguments.at_least(2))
    rates = _growths(k, b, d)[-1]
    return rates if kind == "softmax" else rates * uniform_partition(b, d)


def fastest_mode(beta: ArrayLike, dimension: ArrayLike) -> FastestMode:
    """The degree k ≤ 4√β + 8 with the largest growth rate under SA.

    >>> found = fastest_mode(25.0, 2)
    >>> int(found.degree), round(float(found.growth), 12)
    (7, 0.72579651319)
    """
    b = arguments.number("beta", beta, arguments.between(0.0, LARGEST_BETA))
    d = arguments.number("dimension", dimension, arguments.at_least(2))
    most = int(4 * np.sqrt(float(b))) + 8
    rates = _growths(most, b, d)
    best = jnp.argmax(rates)
    return FastestMode(best.astype(float) + 1.0, rates[best])


def _growths(most, beta, d):
    """λ_1 … λ_most."""
    order = d / 2 - 1

    # ρ_ν = I_{ν+1}/I_ν = 1/(2(ν+1)/β + ρ_{ν+1}) downwards, as βρ so that β = 0 is no exception
    def down(i, carry):
        scaled, kept = carry
        index = STEPS + most - 1 - i
        nu = order + index
        scaled = beta**2 / (2 * (nu + 1) + scaled)
        slot = jnp.minimum(index, most)
        return scaled, kept.at[slot].set(scaled)

    shape = jnp.broadcast_shapes(jnp.shape(beta), jnp.shape(order))
    top = order + STEPS + most
    # uniformly in ν: βρ ≈ √((ν+1)² + β²) − (ν+1)
    scaled = jnp.broadcast_to(beta**2 / (jnp.sqrt((top + 1) ** 2 + beta**2) + top + 1), shape)
    _, kept = jax.lax.fori_loop(0, STEPS + most, down, (scaled, jnp.zeros((most + 1, *shape))))
    # λ_k = k(k+d−2) (ρ_{d/2−1}/β) Π_{0<m<k} ρ_{d/2−1+m}
    upper = kept[1] if most > 0 else scaled
    first = 1 / (2 * (order + 1) + upper)
    ratios = jnp.where(beta > 0, kept[1:most] / jnp.where(beta > 0, beta, 1.0), 0.0)
    ones = jnp.ones((1, *shape))
    products = jnp.concatenate([ones, jnp.cumprod(ratios, axis=0)]) if most > 1 else ones
    degree = jnp.arange(1.0, most + 1).reshape((most,) + (1,) * len(shape))
    return degree * (degree + d - 2) * first * products


def uniform_partition(beta: ArrayLike, dimension: ArrayLike) -> Floats:
    """The mean of e^{β⟨x,y⟩} over uniform y on the sphere of R^d.

    >>> round(float(uniform_partition(2.0, 3)), 12), round(float(np.sinh(2.0) / 2.0), 12)
    (1.813430203924, 1.813430203924)
    """
    b = arguments.argument("beta", beta, arguments.between(0.0, LARGEST_EXPONENT))
    d = arguments.argument("dimension", dimension, arguments.at_least(2))
    # ∫ e^{β cos φ} sin^{d−2}φ dφ over ∫ sin^{d−2}φ dφ
    rule = panels.even(0.0, np.pi, 16, NODES // 16)
    log_measure = (d - 2)[..., None] * np.log(np.sin(rule.nodes)) + np.log(rule.weights)
    raised = logsumexp(b[..., None] * np.cos(rule.nodes) + log_measure, axis=-1)
    return jnp.exp(raised - logsumexp(log_measure, axis=-1))


def merge_time(
    cosine: ArrayLike, start: ArrayLike, beta: ArrayLike, *, mass: ArrayLike = 0.5, kind: str = "softmax"
) -> Floats:
    """log of the time in which two clusters of masses m and 1 − m come from ⟨x₁, x₂⟩ = `start` to `cosine`.

    SA: ċ = (1−c²)[m₂/(m₁e^{β(1−c)} + m₂) + m₁/(m₂e^{β(1−c)} + m₁)], USA: ċ = (1−c²)e^{βc}. About e^{β(1−c₀)} for large
    β: clusters at different distances merge at times that differ exponentially, and the energy is a staircase.

    >>> round(float(jnp.exp(merge_time(0.99, np.cos(1.2), 4.0, mass=0.625))), 10)
    3.9118760612
    >>> round(float(jnp.exp(merge_time(0.9, np.cos(1.0), 10.0, mass=0.25))), 10)
    5.7889627826
    """
    arguments.choice("kind", kind, KINDS)
    b = arguments.argument("beta", beta, arguments.NOT_NEGATIVE)
    m = arguments.argument("mass", mass, arguments.inside(0.0, 1.0))
    begin = arguments.argument("start", start, arguments.inside(-1.0, 1.0))
    end = arguments.argument("cosine", cosine, arguments.inside(-1.0, 1.0))
    if known(begin, end) and not bool(jnp.all(end >= begin)):
        raise ParameterError(f"cosine = {end} is not reached from start = {begin}: clusters attract each other")
    low, high = jnp.arctanh(begin), jnp.arctanh(end)
    # in v = artanh c: dt = dv/[…]; fine panels at the beginning, where e^{β(1−c)} is largest
    rule = panels.composite(np.concatenate([[0.0], 2.0 ** np.arange(-24.0, 0.5)]), 16)
    width = (high - low)[..., None]
    c = jnp.tanh(low[..., None] + width * rule.nodes)
    if kind == "unnormalized":
        log_slowness = -b[..., None] * c
    else:
        w = b[..., None] * (1 - c)
        one, two = m[..., None], 1 - m[..., None]
        shrunk = jnp.exp(-w)
        log_slowness = w - jnp.log(two / (one + two * shrunk) + one / (two + one * shrunk))
    return logsumexp(log_slowness + np.log(rule.weights), axis=-1) + jnp.log(width[..., 0])
