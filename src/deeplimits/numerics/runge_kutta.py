"""Prince and Dormand's explicit method of order eight with steps of its own choice, written to compile quickly.

The right-hand side is compiled once, inside a loop over the stages inside a loop over the steps; a general solver's
program has it four times or more. Reverse-mode derivatives go through the loop over steps by checkpoints.
"""

from collections.abc import Callable
from typing import NamedTuple

import equinox.internal as eqxi
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

# Prince and Dormand (1981), RK8(7)13M: nodes, stages and both solutions, in the authors' fractions.
_C = np.array(
    [0, 1/18, 1/12, 1/8, 5/16, 3/8, 59/400, 93/200, 5490023248/9719169821, 13/20, 1201146811/1299019798, 1, 1]
)  # fmt: skip
_A = np.zeros((13, 13))
_A[1, 0] = 1/18  # fmt: skip
_A[2, :2] = 1/48, 1/16  # fmt: skip
_A[3, [0, 2]] = 1/32, 3/32  # fmt: skip
_A[4, [0, 2, 3]] = 5/16, -75/64, 75/64  # fmt: skip
_A[5, [0, 3, 4]] = 3/80, 3/16, 3/20  # fmt: skip
_A[6, [0, 3, 4, 5]] = 29443841/614563906, 77736538/692538347, -28693883/1125000000, 23124283/1800000000  # fmt: skip
_A[7, [0, 3, 4, 5, 6]] = (
    16016141/946692911, 61564180/158732637, 22789713/633445777, 545815736/2771057229, -180193667/1043307555,
)  # fmt: skip
_A[8, [0, 3, 4, 5, 6, 7]] = (
    39632708/573591083, -433636366/683701615, -421739975/2616292301, 100302831/723423059, 790204164/839813087,
    800635310/3783071287,
)  # fmt: skip
_A[9, [0, *range(3, 9)]] = (
    246121993/1340847787, -37695042795/15268766246, -309121744/1061227803, -12992083/490766935,
    6005943493/2108947869, 393006217/1396673457, 123872331/1001029789,
)  # fmt: skip
_A[10, [0, *range(3, 10)]] = (
    -1028468189/846180014, 8478235783/508512852, 1311729495/1432422823, -10304129995/1701304382,
    -48777925059/3047939560, 15336726248/1032824649, -45442868181/3398467696, 3065993473/597172653,
)  # fmt: skip
_A[11, [0, *range(3, 11)]] = (
    185892177/718116043, -3185094517/667107341, -477755414/1098053517, -703635378/230739211,
    5731566787/1027545527, 5232866602/850066563, -4093664535/808688257, 3962137247/1805957418, 65686358/487910083,
)  # fmt: skip
_A[12, [0, *range(3, 11)]] = (
    403863854/491063109, -5068492393/434740067, -411421997/543043805, 652783627/914296604,
    11173962825/925320556, -13158990841/6184727034, 3936647629/1978049680, -160528059/685178525,
    248638103/1413531060,
)  # fmt: skip
_B = np.zeros(13)
_B[[0, *range(5, 13)]] = (
    14005451/335480064, -59238493/1068277825, 181606767/758867731, 561292985/797845732, -1041891430/1371343529,
    760417239/1151165299, 118820643/751138087, -528747749/2220607170, 1/4,
)  # fmt: skip
_B_LOWER = np.zeros(13)
_B_LOWER[[0, *range(5, 12)]] = (
    13451932/455176623, -808719846/976000145, 1757004468/5645159321, 656045339/265891186, -3867574721/1518517206,
    465885868/322736535, 53011238/667516719, 2/45,
)  # fmt: skip

SAFETY, SHRINK, GROW = 0.9, 0.2, 8.0
FIRST_STEP = 1e-3
"""The first step tried, as a share of the first time asked for that is not zero."""
LEAST_STEP = 1e-14
"""A step this small in relation to the last time is no step: the solution has ended before."""


class _State(NamedTuple):
    t: Float[Array, ""]
    y: Float[Array, " n"]
    h: Float[Array, ""]
    steps: Int[Array, ""]


def explicit_path(
    slope: Callable[[Array, Array], Array],
    start: Float[Array, " n"],
    times: Float[Array, " times"],
    rtol: float,
    atol: float,
    most_steps: int,
) -> tuple[Float[Array, "times n"], Bool[Array, ""], Int[Array, ""]]:
    """y at increasing times ≥ 0 from y(0) = start, whether the last time was reached, and the number of steps tried.

    A step ends at every time asked for. What was not reached is not a number.
    """
    a, c = jnp.asarray(_A), jnp.asarray(_C)
    b, b_error = jnp.asarray(_B), jnp.asarray(_B - _B_LOWER)
    last = jax.lax.stop_gradient(times[-1])

    def step(end: Array, state: _State) -> _State:
        clipped = state.h >= end - state.t
        h = jnp.where(clipped, end - state.t, state.h)

        def stage(slopes, row):
            weights, node, index = row
            return slopes.at[index].set(slope(state.t + node * h, state.y + h * (weights @ slopes))), None

        slopes, _ = jax.lax.scan(stage, jnp.zeros((len(_B), state.y.size)), (a, c, jnp.arange(len(_B))))
        y = state.y + h * (b @ slopes)
        allowed = atol + rtol * jnp.maximum(jnp.abs(state.y), jnp.abs(y))
        error = jnp.sqrt(jnp.mean((h * (b_error @ slopes) / allowed) ** 2))
        # Where steps end is no part of the solution: derivatives pass by the choice of the step.
        error = jax.lax.stop_gradient(jnp.where(jnp.isfinite(error), error, jnp.inf))
        good = error <= 1
        # The local error of the method of order seven goes like h⁸.
        factor = jnp.clip(SAFETY * jnp.maximum(error, 1e-16) ** (-1 / 8), SHRINK, GROW)
        proposed = jnp.where(clipped & good, jnp.maximum(state.h, factor * h), factor * h)
        return _State(
            jnp.where(good, jnp.where(clipped, end, state.t + h), state.t),
            jnp.where(good, y, state.y),
            jax.lax.stop_gradient(proposed),
            state.steps + 1,
        )

    def to_time(state: _State, end: Array) -> tuple[_State, Array]:
        def unfinished(state):
            return (state.t < end) & (state.h > LEAST_STEP * last) & (state.steps < most_steps)

        state = eqxi.while_loop(
            unfinished, lambda state: step(end, state), state, max_steps=most_steps, kind="checkpointed"
        )
        return state, jnp.where(state.t >= end, state.y, jnp.nan)

    first = FIRST_STEP * jnp.where(times[0] > 0, times[0], times[-1])
    begin = _State(jnp.zeros(()), start, jax.lax.stop_gradient(first), jnp.zeros((), int))
    state, path = jax.lax.scan(to_time, begin, times)
    return path, state.t >= times[-1], state.steps
