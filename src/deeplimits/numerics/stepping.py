"""Ordinary differential equations by two methods that compile quickly, an explicit one and one for stiff equations.

Compiling an equation costs more than solving it once: these take a third of a second where a general library takes one
or two. What must be differentiated backwards goes through `deeplimits.numerics.flows`.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from deeplimits.numerics.checks import converged

Slope = Callable[[Float[Array, ""], Float[Array, "*shape"]], Float[Array, "*shape"]]

# Tsitouras' pair of orders five and four (2011): the stages' coefficients, their times, and the error's weights.
_ROWS = (
    (0.161,),
    (-0.008480655492356989, 0.335480655492357),
    (2.8971530571054935, -6.359448489975075, 4.3622954328695815),
    (5.325864828439257, -11.748883564062828, 7.4955393428898365, -0.09249506636175525),
    (5.86145544294642, -12.92096931784711, 8.159367898576159, -0.071584973281401, -0.028269050394068383),
    (0.09646076681806523, 0.01, 0.4798896504144996, 1.379008574103742, -3.290069515436081, 2.324710524099774),
)
_STAGES = np.array([[0.0] * 7, *([*row, *[0.0] * (7 - len(row))] for row in _ROWS)])
_TIMES = np.array([0.0, 0.161, 0.327, 0.9, 0.9800255409045097, 1.0, 1.0])
_ERROR = np.array(
    [
        -0.00178001105222577714,
        -0.0008164344596567469,
        0.007880878010261995,
        -0.1447110071732629,
        0.5823571654525552,
        -0.45808210592918697,
        1 / 66,
    ]
)

# Extrapolation of j = 1, …, 4 steps of order one to order four, and to order three without the first.
_COUNTS = np.arange(1, 5)


def _extrapolation(counts: np.ndarray) -> np.ndarray:
    """Weights Π_{i≠j} n_j/(n_j − n_i), which remove the errors of order h, h², … of results with n_j steps of h/n_j."""
    return np.array([np.prod([n / (n - m) for m in counts if m != n]) for n in counts])


_BEST = _extrapolation(_COUNTS)
_SECOND_BEST = np.append(0.0, _extrapolation(_COUNTS[1:]))


class Followed(NamedTuple):
    """A solution at the times asked for, and where it ended."""

    states: Float[Array, "times *shape"]
    end: Float[Array, "*shape"]
    steps: Int[Array, ""]


def follow(
    slope: Slope,
    start: Float[Array, "*shape"],
    times: Float[Array, " times"],
    *,
    rtol: float,
    atol: float,
    most_steps: int = 200_000,
) -> Followed:
    """dy/dt = slope(t, y) from y(0) = start, at increasing times ≥ 0, by Tsitouras' explicit method of order five.

    Steps end at the times asked for, so that nothing is interpolated. Raises `NotConverged`, traced or not, where the
    end is not reached. Differentiable forwards (`jax.jvp`) only.

    >>> found = follow(lambda t, y: -y, jnp.ones(()), jnp.array([0.5, 1.0]), rtol=1e-10, atol=1e-12)
    >>> round(float(found.states[1]), 9)
    0.367879441
    """
    stages, shifts, weights = jnp.asarray(_STAGES), jnp.asarray(_TIMES), jnp.asarray(_ERROR)

    def step(t, y, h):
        def stage(i, found):
            slopes, _ = found
            place = y + h * jnp.tensordot(stages[i], slopes, 1)
            return slopes.at[i].set(slope(t + shifts[i] * h, place)), place

        # The last stage stands where the step ends. It could serve as the next step's first: a seventh of the work, and
        # one more copy of `slope` to compile.
        slopes, following = jax.lax.fori_loop(0, len(_TIMES), stage, (jnp.zeros((len(_TIMES), *y.shape)), y))
        return following, h * jnp.tensordot(weights, slopes, 1)

    return _follow(step, 5, start, times, rtol, atol, most_steps, None)


def follow_stiff(
    slope: Callable[[Float[Array, " d"]], Float[Array, " d"]],
    start: Float[Array, " d"],
    until: Callable[[Float[Array, " d"]], Array],
    *,
    rtol: float,
    atol: float,
    most_steps: int = 20_000,
) -> Followed:
    """dy/dt = slope(y) from y(0) = start until until(y) is true, by the extrapolated linearly implicit Euler method.

    Of order four, with the Jacobian and its factors at every step: for a few hundred unknowns at most. A linear
    function of y that the equation preserves is preserved up to rounding, whatever the tolerances.

    >>> rates = jnp.array([1e6, 1.0])
    >>> found = follow_stiff(lambda y: -rates * y, jnp.ones(2), lambda y: y[1] < 1e-3, rtol=1e-6, atol=1e-9)
    >>> int(found.steps) < 200
    True
    """
    best, second, eye = jnp.asarray(_BEST), jnp.asarray(_SECOND_BEST), jnp.eye(start.shape[0])

    def step(t, y, h):
        jacobian = jax.jacfwd(slope)(y)

        def several(j, found):
            short = h / (j + 1)
            factors = jax.scipy.linalg.lu_factor(eye - short * jacobian)

            def one(_, moved):
                # (1 − hJ)(y' − y) = h f(y)
                return moved + jax.scipy.linalg.lu_solve(factors, short * slope(y + moved))

            moved = jax.lax.fori_loop(0, j + 1, one, jnp.zeros_like(y))
            return found[0] + best[j] * moved, found[1] + second[j] * moved

        moved, less = jax.lax.fori_loop(0, len(_COUNTS), several, (jnp.zeros_like(y), jnp.zeros_like(y)))
        return y + moved, moved - less

    return _follow(step, 4, start, jnp.full(1, jnp.inf), rtol, atol, most_steps, until)


def _follow(step, order, start, times, rtol, atol, most_steps, until) -> Followed:
    """Steps of the right length: step(t, y, h) gives the next state and the error, of this order, that it has."""
    count = times.shape[0]

    def unfinished(state):
        _, _, _, index, steps, _, over = state
        return (index < count) & (steps < most_steps) & ~over

    def advance(state):
        t, y, proposed, index, steps, states, over = state
        goal = times[index]
        last = t + proposed >= goal
        h = jnp.where(last, goal - t, proposed)
        following, error = step(t, y, h)
        error = jnp.sqrt(jnp.mean((error / (atol + rtol * jnp.maximum(jnp.abs(y), jnp.abs(following)))) ** 2))
        good = error <= 1
        # An error that is not a number calls for a much shorter step.
        factor = jnp.clip(0.9 * jnp.maximum(error, 1e-12) ** (-1 / order), 0.2, 10.0)
        factor = jnp.where(jnp.isnan(error), 0.2, factor)
        reached = good & last
        return (
            jnp.where(good, jnp.where(last, goal, t + h), t),
            jnp.where(good, following, y),
            # A step that was cut short to end at a time says nothing against the one proposed before.
            jnp.where(reached, jnp.maximum(proposed, h * factor), h * factor),
            jnp.where(reached, index + 1, index),
            steps + 1,
            jnp.where(reached, states.at[index].set(following), states),
            over if until is None else good & until(following),
        )

    zero = jnp.zeros((), int)
    # Whatever the first step, a few more find the right one.
    state = (jnp.zeros(()), start, jnp.asarray(1e-3), zero, zero, jnp.zeros((count, *start.shape)), jnp.asarray(False))
    _, end, _, index, steps, states, over = jax.lax.while_loop(unfinished, advance, state)
    sentence = f"the flow did not reach its end within {most_steps} steps; it is stiff or diverges"
    return converged(Followed(states, end, steps), (index == count) | over, sentence)
