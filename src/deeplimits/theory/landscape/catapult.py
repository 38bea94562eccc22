r"""Catapults: gradient descent with a large step on a model that is bilinear in its parameters.

One datum, network z = Σ_i v_i φ(u_i·x)/√m with φ linear, or ReLU on neurons that stay active; loss (z − y)²/2, step η.
With w = |x|²/(md) and the tangent kernel λ = |∇z|² the pair (z, λ) follows an exact recursion.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.numerics import arguments
from deeplimits.numerics.checks import converged, valid
from deeplimits.numerics.shapes import Floats, Scalar

LAZY, LARGEST = 2.0, 4.0
"""Steps in units of 1/λ₀ at which the lazy phase ends, and from which on everything diverges."""
MOST_STEPS = 1_000_000


class CatapultPath(NamedTuple):
    """Output and tangent kernel at every step, the start included."""

    output: Float[Array, " steps"]
    kernel: Float[Array, " steps"]


def catapult_path(
    output: ArrayLike, kernel: ArrayLike, label: ArrayLike, weight: ArrayLike, step: ArrayLike, steps: int
) -> CatapultPath:
    """Output z and kernel λ of a bilinear network under gradient descent, exactly, at every width.

    Setting     `output` z₀, `kernel` λ₀ and `label` y; `weight` w = |x|²/(md); learning rate `step` η
    Result      with r = z − y:  z' = z − ηλr + wη²zr²,  λ' = λ + ηwr(ηλr − 4z)
    Validity    one datum; the set of active neurons does not change
    References  lewkowycz2020

    >>> path = catapult_path(1.0, 1.0, 0.5, 0.01, 2.5, 10)
    >>> round(float(path.output[-1]), 12), round(float(path.kernel[-1]), 12)
    (0.511838613988, 0.522304018658)
    """
    z0 = arguments.number("output", output, arguments.FINITE)
    lambda0 = arguments.number("kernel", kernel, arguments.NOT_NEGATIVE)
    y = arguments.number("label", label, arguments.FINITE)
    w = arguments.number("weight", weight, arguments.POSITIVE)
    eta = arguments.number("step", step, arguments.POSITIVE)

    def advance(state, _):
        z, kernel = state
        r = z - y
        # z' − y = r (1 − ηλ + wη²zr),  λ' = λ + ηwr(ηλr − 4z), without dividing by r, which may vanish
        following = (y + r * (1 - eta * kernel + w * eta**2 * z * r), kernel + eta * w * r * (eta * kernel * r - 4 * z))
        return following, state

    _, seen = jax.lax.scan(advance, (z0, lambda0), length=arguments.whole("steps", steps) + 1)
    return CatapultPath(*seen)


class ReducedPath(NamedTuple):
    """The two numbers that decide everything for y = 0, at every step, the start included."""

    kernel: Float[Array, " steps"]
    """a = ηλ."""
    energy: Float[Array, " steps"]
    """b = η²wz², at most a²/4."""


def reduced_catapult(kernel: ArrayLike, energy: ArrayLike, steps: int) -> ReducedPath:
    """The path for y = 0, of a = ηλ and b = η²wz²: b' = b(1 − a + b)², a' = a + b(a − 4).

    >>> path = reduced_catapult(3.0, 0.01, 5)
    >>> round(float(path.kernel[-1]), 12), round(float(path.energy[-1]), 12)
    (0.711620714559, 0.115453544717)
    """
    start = _reduced_start(kernel, energy)
    _, seen = jax.lax.scan(lambda at, _: (_reduced_step(at), at), start, length=arguments.whole("steps", steps) + 1)
    return ReducedPath(*seen)


def catapult_end(kernel: ArrayLike, energy: ArrayLike) -> Scalar:
    """a_∞ = ηλ(∞) for y = 0: where the curvature comes to rest, below 2.

    Setting     `kernel` a₀ = ηλ₀ < 4 and `energy` b₀ = η²wz₀² ≤ a₀²/4
    Result      the end of a' = a + b(a − 4), b' = b(1 − a + b)²; a falls as long as b > 0
    Validity    a₀ < 4; a_∞ depends on b₀ in a rapidly varying way, so that trajectories are the thing to compare
    References  lewkowycz2020

    >>> round(float(catapult_end(1.5, 0.01)), 12)
    1.467198901629
    """
    start = _reduced_start(kernel, energy)
    sentence = "kernel is not below 4, from which on gradient descent diverges"
    start = valid(start, start[0] < LARGEST, sentence, lambda: f" (ηλ₀ = {float(start[0]):g})")

    def moving(state):
        (a, b), count = state
        # What is left to fall is about b(4 − a)/(a(2 − a)).
        return (count < MOST_STEPS) & ((b > 1e-18 * a) | (a >= LAZY)) & (b > 0) & jnp.isfinite(b)

    (a, b), count = jax.lax.while_loop(moving, lambda s: (_reduced_step(s[0]), s[1] + 1), (start, 0))
    return converged(a, (count < MOST_STEPS) & jnp.isfinite(b), "the catapult has not come to rest in a million steps")


class Phases(NamedTuple):
    """Where the phases of the learning rate meet."""

    lazy: Scalar
    """Below it the loss falls from the first step on and the kernel hardly moves."""
    largest: Scalar
    """Above it training diverges; between the two, a catapult."""


def learning_rate_phases(kernel: ArrayLike, *, samples: int = 1) -> Phases:
    """The two critical learning rates 2/λ₀ and 4/λ₀.

    Setting     loss Σ(z − y)²/(2m) over m = `samples`; `kernel` the largest eigenvalue of the tangent kernel Θ at the
                start, λ₀ = λ_max(Θ)/m
    Result      lazy below 2/λ₀, catapult up to 4/λ₀, divergent beyond
    Validity    2/λ₀: any wide network; 4/λ₀: bilinear models, one datum, exact at every width for y = 0 and as the
                width grows for y ≠ 0. Networks with ReLU bear more (about 12/λ₀ was reported): a measured number
    References  lewkowycz2020

    >>> [float(part) for part in learning_rate_phases(0.8)]
    [2.5, 5.0]
    """
    lambda0 = arguments.number("kernel", kernel, arguments.POSITIVE) / arguments.whole("samples", samples, 1)
    return Phases(LAZY / lambda0, LARGEST / lambda0)


def lazy_kernel_change(kernel: ArrayLike, energy: ArrayLike) -> Floats:
    """How far a = ηλ falls in the lazy phase, to first order in b₀: −b₀(4 − a₀)/(a₀(2 − a₀)).

    The sum of b_t(a − 4) with b_t = b₀(1 − a₀)^{2t}; of order 1/m, as b₀ is.

    >>> round(float(lazy_kernel_change(1.5, 1e-4)) / 1e-4, 6)
    -3.333333
    """
    a = arguments.argument("kernel", kernel, arguments.inside(0.0, LAZY), "the lazy phase ends at 2")
    b = arguments.argument("energy", energy, arguments.NOT_NEGATIVE)
    return -b * (LARGEST - a) / (a * (LAZY - a))


def catapult_time(kernel: ArrayLike, energy: ArrayLike) -> Floats:
    """About how many steps the loss grows in a catapult: log(1/b₀)/(2 log(a₀ − 1)), until b is of order one.

    >>> round(float(catapult_time(3.0, 1e-4)), 4)
    6.6439
    """
    a = arguments.argument("kernel", kernel, arguments.inside(LAZY, LARGEST), "a catapult")
    b = arguments.argument("energy", energy, arguments.inside(0.0, 1.0))
    return -jnp.log(b) / (2 * jnp.log(a - 1))


def _reduced_start(kernel: ArrayLike, energy: ArrayLike) -> tuple[Array, Array]:
    a = arguments.number("kernel", kernel, arguments.NOT_NEGATIVE)
    b = arguments.number("energy", energy, arguments.NOT_NEGATIVE)
    return a, valid(b, b <= a**2 / 4 * (1 + 1e-9), "energy exceeds kernel²/4, which no parameters have")


def _reduced_step(state: tuple[Array, Array]) -> tuple[Array, Array]:
    a, b = state
    return a + b * (a - LARGEST), b * (1 - a + b) ** 2
