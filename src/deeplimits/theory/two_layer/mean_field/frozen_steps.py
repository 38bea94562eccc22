r"""The flow of a density in its own potential on many points, without a Jacobian.

For the length of a step the potential Ψ is frozen. What is left, ∂_τ ρ = A(Ψ)ρ, is linear, tridiagonal and stiff, and
an implicit Euler step solves it; how Ψ moves with ρ is smooth and not stiff. The error of n equal steps is a series in
1/n, which Richardson's extrapolation over n = 1 … 6 removes up to order six.
"""

import itertools
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from deeplimits.numerics import arguments
from deeplimits.numerics.checks import converged

ORDER = 6
RTOL = 1e-8
MOST_STEPS = 5_000
Densities = Float[Array, " n"]


def density_path(
    potential: Callable[[Densities], Densities], start: Densities, times: ArrayLike, spacing: Array, temperature: Array
) -> Float[Array, "times n"]:
    """ρ at increasing times ≥ 0 for the finite volumes of `fokker_planck`, with an error of 1e-8 of the largest ρ."""
    moments = arguments.times("times", times)
    states, good = _followed(potential, jnp.asarray(start, float), moments, spacing, temperature)
    sentence = "the density needs more steps than allowed; ask for earlier times or take a coarser grid"
    return converged(states, good, sentence)


def bernoulli(x: Array) -> Array:
    """x/(e^x − 1), smooth through x = 0.

    >>> float(bernoulli(jnp.zeros(())))
    1.0
    """
    small = jnp.abs(x) < 1e-5
    safe = jnp.where(small, 1.0, x)
    return jnp.where(small, 1 - x / 2 + x**2 / 12, safe / jnp.expm1(safe))


def _followed(potential, start, moments, spacing, temperature):
    rate = temperature / spacing**2

    def euler(density, length):
        difference = jnp.diff(potential(density)) / temperature
        up, down = rate * bernoulli(difference), rate * bernoulli(-difference)
        # (1 − hA)ρ' = ρ, A from the fluxes up·ρ_i − down·ρ_{i+1} between neighbours
        diagonal = 1 + length * (jnp.pad(up, (0, 1)) + jnp.pad(down, (1, 0)))
        below, above = -length * jnp.pad(up, (1, 0)), -length * jnp.pad(down, (0, 1))
        return jax.lax.linalg.tridiagonal_solve(below, diagonal, above, density[:, None])[:, 0]

    def step(density, length):
        rows = [
            jax.lax.fori_loop(0, count, lambda _, state, count=count: euler(state, length / count), density)
            for count in range(1, ORDER + 1)
        ]
        # Neville's scheme: T_{j,k} = T_{j,k−1} + (T_{j,k−1} − T_{j−1,k−1})/(n_j/n_{j−k+1} − 1)
        before = rows[-1]
        for k in range(1, ORDER):
            before = rows[-1]
            rows = [
                above + (above - below) / ((k + place + 1) / (place + 1) - 1)
                for place, (below, above) in enumerate(itertools.pairwise(rows))
            ]
        error = jnp.max(jnp.abs(rows[-1] - before)) / (RTOL * jnp.max(jnp.abs(density)))
        return rows[-1], error

    def towards(state, end):
        def going(at):
            t, _, _, count = at
            return (t < end) & (count < MOST_STEPS)

        def advance(at):
            t, density, length, count = at
            cut = jnp.minimum(length, end - t)
            following, error = step(density, cut)
            good = error <= 1
            factor = jnp.clip(0.9 * jnp.maximum(error, 1e-12) ** (-1 / ORDER), 0.2, 5.0)
            # A step that was cut to end at a time says nothing about longer ones.
            longer = jnp.where(good & (cut < length), jnp.maximum(length, cut * factor), cut * factor)
            arrived = jnp.where(cut == end - t, end, t + cut)
            return jnp.where(good, arrived, t), jnp.where(good, following, density), longer, count + 1

        state = jax.lax.while_loop(going, advance, state)
        return state, (state[1], state[0] >= end)

    first = jnp.zeros(()), start, 1e-4 * jnp.maximum(moments[-1], 1e-300), jnp.zeros((), int)
    _, (states, reached) = jax.lax.scan(towards, first, moments)
    return states, jnp.all(reached & jnp.all(jnp.isfinite(states), axis=1))
