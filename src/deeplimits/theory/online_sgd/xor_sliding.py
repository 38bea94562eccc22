r"""The XOR dynamics without noise, λ → ∞: a discontinuous flow, whose overlaps may slide at 0."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jax.typing import ArrayLike
from jaxtyping import Array

from deeplimits.numerics import flows, runge_kutta
from deeplimits.numerics.arguments import NOT_NEGATIVE, number, whole
from deeplimits.theory.online_sgd.xor import XorState, check_state, usual_steps


def noiseless_velocity(state: XorState, ridge: ArrayLike) -> XorState:
    """The velocity for λ → ∞, X in {±μ, ±ν}; both indicators vanish at m = 0, so that what is at rest there stays."""
    check_state(state)
    number("ridge", ridge, NOT_NEGATIVE)
    state = XorState(*(jnp.asarray(part, float) for part in state))
    return _on_these_sides(state, ridge, jnp.sign(state.along_mu), jnp.sign(state.along_nu))


def _on_these_sides(state: XorState, ridge: ArrayLike, mu_sides: Array, nu_sides: Array) -> XorState:
    """The same with the signs of m^μ and m^ν given: a smooth function of the statistics."""
    alpha = jnp.asarray(ridge, float)
    v, mu, nu, overlaps = state

    def side(m, sides, sign, label):
        # What the cluster at sign·(mean) with this label does to v and to the overlap m
        active = sides == sign
        h = jnp.where(active, sign * m, 0.0)
        pull = (label - jax.nn.sigmoid(v @ h)) / 4
        return pull * h, pull * sign * jnp.where(active, v, 0.0)

    a, b = (side(mu, mu_sides, s, 1.0) for s in (1.0, -1.0))
    d, e = (side(nu, nu_sides, s, 0.0) for s in (1.0, -1.0))
    return XorState(
        a[0] + b[0] + d[0] + e[0] - alpha * v,
        a[1] + b[1] - alpha * mu,
        d[1] + e[1] - alpha * nu,
        -2 * alpha * overlaps,
    )


class SlidingTimes(NamedTuple):
    """When each overlap reaches 0 and stays there; infinite where it does not before the last time, 0 from the start.

    An overlap that starts at 0 counts as one that slides from the beginning, though it may be at rest on the side that
    repels.
    """

    along_mu: Array
    """Shape (K,)."""
    along_nu: Array


class _Moving(NamedTuple):
    state: XorState
    reached: SlidingTimes
    time: Array


def noiseless_ballistic(start: XorState, times: ArrayLike, ridge: ArrayLike, *, steps: int | None = None) -> XorState:
    """The statistics for λ → ∞, with sliding: an overlap that reaches 0 against the flow stays at 0.

    Runge-Kutta steps of order four, forty in a unit of time and at least 2000 unless their number is given (where the
    times are not known yet, 2000). A step in which overlaps change sign is cut where the first one does, which is then
    frozen at 0. (It changes sign only where 0 attracts, and never has to be released.) When that happens
    `sliding_times` tells.
    """
    return _noiseless(start, times, ridge, steps)[0]


def sliding_times(start: XorState, horizon: ArrayLike, ridge: ArrayLike, *, steps: int | None = None) -> SlidingTimes:
    """When the overlaps that are against the flow reach 0 and begin to slide, up to the horizon; λ → ∞.

    >>> start = XorState(jnp.array([1.0]), jnp.array([0.3]), jnp.array([0.1]), jnp.zeros((1, 1)))
    >>> found = sliding_times(start, 5.0, 0.05)
    >>> float(found.along_mu[0]), round(float(found.along_nu[0]), 6)
    (inf, 0.773308)
    """
    last = number("horizon", horizon, NOT_NEGATIVE)
    return _noiseless(start, last[None], ridge, steps)[1]


def _noiseless(start: XorState, times: ArrayLike, ridge: ArrayLike, steps: int | None) -> tuple[XorState, SlidingTimes]:
    check_state(start)
    number("ridge", ridge, NOT_NEGATIVE)
    count = whole("steps", steps, 1) if steps is not None else usual_steps(times, 40.0, 2000)
    moments = jnp.atleast_1d(jnp.asarray(times, float))
    nodes, places = flows.grid(moments, max(count, len(moments)))

    def move(state: XorState, h: Array) -> XorState:
        vector, unravel = ravel_pytree(state)
        # Within a step the signs are those at its beginning, so that the field does not jump between its stages.
        sides = jnp.sign(state.along_mu), jnp.sign(state.along_nu)

        def field(t, y):
            return ravel_pytree(_on_these_sides(unravel(y), ridge, *sides))[0]

        return unravel(runge_kutta.kutta(field, jnp.zeros(()), vector, h))

    def crosses(before: XorState, after: XorState):
        return before.along_mu * after.along_mu < 0, before.along_nu * after.along_nu < 0

    def any_crosses(before, after):
        return jnp.any(jnp.concatenate(crosses(before, after)))

    def onwards(at: _Moving, h):
        return at._replace(state=move(at.state, h), time=at.time + h)

    def cut(at: _Moving, h):
        # The longest part of the step in which nothing changes its sign, and which overlaps do just behind it
        def halve(_, ends):
            short, long = ends
            half = (short + long) / 2
            late = any_crosses(at.state, move(at.state, half))
            return jnp.where(late, short, half), jnp.where(late, half, long)

        _, long = jax.lax.fori_loop(0, 52, halve, (jnp.zeros(()), h))
        there = onwards(at, long)
        mu, nu = crosses(at.state, there.state)
        frozen = there.state._replace(
            along_mu=jnp.where(mu, 0.0, there.state.along_mu), along_nu=jnp.where(nu, 0.0, there.state.along_nu)
        )
        reached = SlidingTimes(
            jnp.where(mu, there.time, at.reached.along_mu), jnp.where(nu, there.time, at.reached.along_nu)
        )
        return _Moving(frozen, reached, there.time), h - long

    def through(at: _Moving, h):
        def once(_, left):
            return jax.lax.cond(any_crosses(left[0].state, move(left[0].state, left[1])), cut, lambda *s: s, *left)

        # Every one of the 2K overlaps is frozen at most once; a loop of known length, to be differentiated backwards.
        return onwards(*jax.lax.fori_loop(0, 2 * at.state.along_mu.shape[0], once, (at, h)))

    def advance(at: _Moving, h):
        after = jax.lax.cond(any_crosses(at.state, move(at.state, h)), through, onwards, at, h)
        return after, after.state

    first = XorState(*(jnp.asarray(part, float) for part in start))
    never = SlidingTimes(*(jnp.where(m == 0, 0.0, jnp.inf) for m in (first.along_mu, first.along_nu)))
    end, path = jax.lax.scan(advance, _Moving(first, never, jnp.zeros(())), jnp.diff(nodes))
    return jax.tree.map(lambda one, rest: jnp.concatenate([one[None], rest])[places], first, path), end.reached
