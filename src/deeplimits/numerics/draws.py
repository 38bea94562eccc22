"""Random numbers for long chains: many Gaussian, uniform and χ² variables from one call of the generator.

Compiling a call of JAX's generator takes longer than compiling what is done with its numbers, so everything that the
steps of a chain need is drawn at once. Numbers come from single precision, with steps of 2⁻²³ in the probability (a
Gaussian is below 5.5 in size), which is far below what any statistic of a simulation shows; they are returned as
doubles.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float, PRNGKeyArray

from deeplimits.errors import ParameterError
from deeplimits.numerics.shapes import Floats

_LOWEST = float(np.nextafter(np.float32(-1), np.float32(0)))


class Draws(NamedTuple):
    """Independent variables, of the shape asked for."""

    gaussians: Float[Array, "... gaussians"]
    """Standard Gaussian, a last axis more."""
    uniforms: Float[Array, "... uniforms"]
    """Uniform on (0, 1), a last axis more."""
    chi_square: Floats
    """χ² with the degrees of freedom asked for, 0 where that is none."""


def draw(key: PRNGKeyArray, shape: tuple[int, ...], gaussians: int, uniforms: int = 0, freedom: int = 0) -> Draws:
    """So many Gaussian and uniform variables, and one of law χ²_freedom, at each place of an array of that shape.

    χ² is drawn by Marsaglia and Tsang's method: v = (1 + cx)³, x Gaussian, is proposed for χ²/(2d), where
    d = freedom/2 − 1/3 and c = 1/√(9d), and accepted with probability v^d exp(d − dv + x²/2), which is nearly one. What
    is refused is proposed again, all places in one loop.

    >>> found = draw(jax.random.key(0), (3, 5), 2, uniforms=1, freedom=7)
    >>> found.gaussians.shape, found.uniforms.shape, found.chi_square.shape
    ((3, 5, 2), (3, 5, 1), (3, 5))
    """
    if min(gaussians, uniforms, freedom) < 0:
        raise ParameterError(f"gaussians = {gaussians}, uniforms = {uniforms}, freedom = {freedom}: none may be < 0")
    boost = freedom == 1  # the method needs a shape of at least one: χ²_1 = χ²_3 U²
    d = (freedom + 2 * boost) / 2 - 1 / 3
    normal, flat = gaussians + (freedom > 0), uniforms + (freedom > 0) + boost

    def numbers(attempt):
        # One call for all: uniform on (−1, 1), the first of them made Gaussian.
        both = jax.random.uniform(
            neighbour(key, attempt), (*shape, normal + flat), np.float32, minval=_LOWEST, maxval=1.0
        )
        x = (math.sqrt(2) * jax.lax.erf_inv(both[..., :normal])).astype(float)
        return x, (1 - both[..., normal:].astype(float)) / 2

    if freedom == 0:
        return Draws(*numbers(0), jnp.zeros(shape))

    def propose(carry):
        found, accepted, attempt = carry
        x, u = numbers(attempt)
        proposal = x[..., gaussians]
        v = (1 + proposal / math.sqrt(9 * d)) ** 3
        log_v = jnp.log(jnp.where(v > 0, v, 1.0))
        good = (v > 0) & (jnp.log(u[..., uniforms]) < proposal**2 / 2 + d - d * v + d * log_v)
        value = 2 * d * v * (u[..., -1] ** 2 if boost else 1.0)
        new = Draws(x[..., :gaussians], u[..., :uniforms], value)
        kept = Draws(accepted[..., None], accepted[..., None], accepted)
        return jax.tree.map(jnp.where, kept, found, new), accepted | good, attempt + 1

    empty = Draws(jnp.zeros((*shape, gaussians)), jnp.zeros((*shape, uniforms)), jnp.zeros(shape))
    start = (empty, jnp.zeros(shape, bool), jnp.uint32(0))
    return jax.lax.while_loop(lambda carry: ~jnp.all(carry[1]), propose, start)[0]


def chi_square(key: PRNGKeyArray, freedom: int, shape: tuple[int, ...] = ()) -> Floats:
    """χ² variables: the law of `jax.random.chisquare`, which takes several times longer in a loop over steps."""
    return draw(key, shape, 0, freedom=freedom).chi_square


def neighbour(key: PRNGKeyArray, index: ArrayLike, word: int = -1) -> PRNGKeyArray:
    """The key whose last word is larger by `index`: another stream, as independent as that of any other key.

    `jax.random.fold_in` without its hashing, for keys that are hashes themselves, whose neighbours nobody else uses.
    """
    data = jax.random.key_data(key)
    shifted = data.at[word].add(jnp.asarray(index).astype(data.dtype))
    return jax.random.wrap_key_data(shifted, impl=jax.random.key_impl(key))
