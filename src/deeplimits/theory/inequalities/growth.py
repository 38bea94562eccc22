"""Discrete inequalities of Gronwall and of Bihari and LaSalle: how fast a correlation grows."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array

from deeplimits.numerics.arguments import NOT_NEGATIVE, POSITIVE, argument, number, whole
from deeplimits.numerics.checks import valid
from deeplimits.theory.online_sgd.landscapes import check_order


class GrowthBounds(NamedTuple):
    """Below and above a growing sequence."""

    lower: Array
    upper: Array


def growth_bounds(order: int, start: ArrayLike, gain: ArrayLike, steps: ArrayLike, slack: ArrayLike) -> GrowthBounds:
    """Lower and upper bound of the sequence m_{t+1} = m_t + b m_t^{k−1}, m_0 = a.

    Setting     m_t = a + b Σ_{j<t} m_j^{k−1}, a, b > 0 (k = `order`, a = `start`, b = `gain`); any sequence that
                is at least its own right-hand side is at least m_t
    Result      k = 1: m_t = a + bt. k = 2: m_t = a(1+b)^t. k ≥ 3, for t < t_* = 1/((k−2) b a^{k−2}):
                a(1 − (k−2)(1+ε)^{−(k−1)} b a^{k−2} t)^{−1/(k−2)} ≤ m_t ≤ a(1 − (k−2) b a^{k−2} t)^{−1/(k−2)},
                the lower bound as long as b m_t^{k−2} ≤ ε (`slack`)
    Validity    a, b > 0, ε ≥ 0, t < t_*; raises beyond
    References  benarous2021; bihari1956

    >>> [round(float(bound), 7) for bound in growth_bounds(3, 0.05, 0.01, 1800, 0.004943422738)]
    [0.4594211, 0.5]
    """
    check_order(order)
    a, b = argument("start", start, POSITIVE), argument("gain", gain, POSITIVE)
    t, eps = argument("steps", steps, NOT_NEGATIVE), argument("slack", slack, NOT_NEGATIVE)
    if order == 1:
        return GrowthBounds(a + b * t, a + b * t)
    if order == 2:
        exact = a * jnp.exp(t * jnp.log1p(b))
        return GrowthBounds(exact, exact)
    end = blow_up_time(order, a, b)
    t = valid(
        t,
        t < end,
        "the steps reach the blow-up time; the bounds hold before it, so take fewer steps",
        lambda: f" (steps = {t}, blow-up at {end})",
    )

    def solution(gain):
        return a * (1 - (order - 2) * gain * a ** (order - 2) * t) ** (-1 / (order - 2))

    steep = b * _last_before(order, a, b, t) ** (order - 2)
    eps = valid(
        eps,
        (eps >= steep * (1 - 1e-12)) | (t == 0),
        "slack is smaller than b m^{k−2} on the way, and the lower bound is false then; take a larger one",
        lambda: f" than {steep}",
    )
    return GrowthBounds(solution(b * (1 + eps) ** (1 - order)), solution(b))


def growth_sequence(order: int, start: ArrayLike, gain: ArrayLike, steps: int) -> Array:
    """m_0 … m_steps of the sequence itself, m_{t+1} = m_t + b m_t^{k−1}: what `growth_bounds` bounds.

    Setting     m_0 = `start` > 0, b = `gain` > 0, k = `order`
    Result      `steps` + 1 numbers, infinite once they leave the range of numbers
    References  benarous2021; bihari1956

    >>> round(float(growth_sequence(3, 0.05, 0.01, 1800)[-1]), 7)
    0.4943423
    """
    check_order(order)
    a, b = number("start", start, POSITIVE), number("gain", gain, POSITIVE)

    def advance(m, _):
        following = m + b * m ** (order - 1)
        return following, following

    _, path = jax.lax.scan(advance, a, length=whole("steps", steps))
    return jnp.concatenate([a[None], path])


def _last_before(order: int, a: Array, b: Array, t: Array) -> Array:
    """m_{t−1}, exactly: the largest member that the lower bound of m_t asks about."""
    shape = jnp.broadcast_shapes(a.shape, b.shape, t.shape)
    steps = jnp.broadcast_to(t, shape)

    def going(state):
        return jnp.any(state[0] < steps - 1)

    def advance(state):
        count, m = state
        return count + 1, jnp.where(count < steps - 1, m + b * m ** (order - 1), m)

    return jax.lax.while_loop(going, advance, (jnp.zeros(()), jnp.broadcast_to(a, shape)))[1]


def blow_up_time(order: int, start: ArrayLike, gain: ArrayLike) -> Array:
    """t_* = 1/((k−2) b a^{k−2}), k ≥ 3: with a = N^{−1/2}, b = a_k δ/N it is N^{k/2}/((k−2) a_k δ).

    >>> float(blow_up_time(3, 0.05, 0.01))
    2000.0
    """
    check_order(order, least=3)
    a, b = argument("start", start, POSITIVE), argument("gain", gain, POSITIVE)
    return 1 / ((order - 2) * b * a ** (order - 2))
