"""Gradient flows of finite systems, integrated numerically, also to astronomically late times."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from deeplimits.numerics import arguments, flows
from deeplimits.numerics.shapes import Scalar

MOST_STEPS = 200_000


def gradient_flow(
    loss: Callable[[Float[Array, " d"]], Scalar],
    start: Float[Array, " d"],
    times: Float[Array, " points"],
    *,
    rtol: float = 1e-10,
    atol: float = 1e-12,
    stiff: bool = False,
) -> Float[Array, "points d"]:
    """dw/dt = −∇L(w), at increasing `times`.

    Where fast directions have settled long before the slow ones, they limit the step of an explicit method: then
    `stiff=True` takes an implicit one.

    >>> round(float(gradient_flow(lambda w: w @ w / 2, jnp.ones(1), jnp.log(jnp.array([2.0])))[0, 0]), 9)
    0.5
    """
    gradient = jax.grad(loss)
    solved = flows.solve(
        lambda t, w: -gradient(w), start, times, rtol=rtol, atol=atol, stiff=stiff, most_steps=MOST_STEPS
    )
    return solved.states


def classification_flow(
    scores: Callable[[Float[Array, " d"]], Float[Array, " n"]],
    start: Float[Array, " d"],
    log_times: Float[Array, " points"],
    *,
    loss: str = "exponential",
    loss_scale: float = 1.0,
    rtol: float = 1e-11,
    atol: float = 1e-12,
) -> Float[Array, "points d"]:
    """Gradient flow on c Σ ℓ(q_i(w)), ℓ = e^{−q} or log(1 + e^{−q}), at s = log(1 + t) as late as one likes.

    `scores` gives q_i = y_i f(x_i; w). e^s and ℓ' are combined in one exponent, so that nothing overflows: t = e^4000
    is no harder than t = e^40.

    >>> float(classification_flow(lambda w: w, jnp.zeros(1), jnp.array([4000.0]))[0, 0].round(6))  # w = log(1 + t)
    4000.0
    """
    arguments.choice("loss", loss, ("logistic", "exponential"))

    def field(s, w):
        q, pull = jax.vjp(scores, w)
        # e^s e^{−q}, or e^s/(1 + e^q) = e^{s − log(1 + e^q)}
        exponent = s - (q if loss == "exponential" else jax.nn.softplus(q))
        return pull(loss_scale * jnp.exp(exponent))[0]

    return flows.solve(field, start, log_times, rtol=rtol, atol=atol, most_steps=MOST_STEPS).states


def separable_flow(
    signed: Float[Array, "n d"],
    start: Float[Array, " d"],
    log_times: Float[Array, " points"],
    *,
    loss: str = "exponential",
    loss_scale: float | None = None,
    rtol: float = 1e-11,
) -> Float[Array, "points d"]:
    """`classification_flow` of a linear classifier on the rows x̄_i = y_i x_i, c = 1/n unless given.

    >>> float(separable_flow(jnp.ones((1, 1)), jnp.zeros(1), jnp.array([20.0]))[0, 0].round(9))  # w = log(1 + t)
    20.0
    """
    scale = 1 / signed.shape[0] if loss_scale is None else loss_scale
    return classification_flow(lambda w: signed @ w, start, log_times, loss=loss, loss_scale=scale, rtol=rtol)


def log_loss_along(
    signed: Float[Array, "n d"], weights: Float[Array, " d"], loss: str, *, loss_scale: float | None = None
) -> Scalar:
    """log of c Σ ℓ(⟨w, x̄_i⟩), which underflows nowhere."""
    scale = 1 / signed.shape[0] if loss_scale is None else loss_scale
    margins = signed @ weights
    # log ℓ(u) = −u, or log log(1 + e^{−u}) = −u + log(log1p(e^{−u})/e^{−u}), whose last term vanishes for large u
    if loss == "exponential":
        logs = -margins
    else:
        tail = jnp.exp(-margins)
        tiny = tail < 1e-8
        logs = jnp.where(tiny, -margins - tail / 2, jnp.log(jnp.log1p(jnp.where(tiny, 1.0, tail))))
    return jnp.log(scale) + jax.scipy.special.logsumexp(logs)


class DiagonalPath(NamedTuple):
    """A diagonal network during training, and where training ends."""

    path: Float[Array, "points d"]
    limit: Float[Array, " d"]


def diagonal_network_flow(
    x: Float[Array, "n d"],
    y: Float[Array, " n"],
    alpha: Scalar,
    start: Float[Array, " d"],
    depth: int,
    times: Float[Array, " points"],
    *,
    precision: float = 1e-11,
) -> DiagonalPath:
    """β = w₊^D − w₋^D along gradient flow on ½‖Xβ − y‖² from w± = αθ₀, in all 2d parameters, and its limit.

    The limit is β once max |Xβ − y| has fallen below `precision` times max |y|: beyond that only rounding errors would
    be integrated.

    >>> found = diagonal_network_flow(jnp.eye(1), jnp.ones(1), jnp.asarray(0.1), jnp.ones(1), 2, jnp.zeros(1))
    >>> round(float(found.path[0, 0]), 9), round(float(found.limit[0]), 9)
    (0.0, 1.0)
    """
    beginning = jnp.concatenate([alpha * start, alpha * start])

    def weights(place):
        begun = jnp.broadcast_to(beginning, place.shape)
        # In u = log(w/w(0)), or (w/w(0))^{2−D} − 1 for D > 2, w stays positive and its relative precision counts:
        # parameters far below the others decide later what grows.
        if depth == 2:
            return begun * jnp.exp(place)
        # A step beyond w = ∞ is not a number, and is taken back.
        return begun * jnp.where(place > -1, 1 + place, jnp.nan) ** (-1 / (depth - 2))

    def coefficients(place):
        plus, minus = jnp.split(weights(place) ** depth, 2, axis=-1)
        return plus - minus

    def field(t, place):
        pull = (y - x @ coefficients(place)) @ x
        # dw±/dt = ±D w±^{D−1} X'(y − Xβ), so that du/dt does not depend on w except through β
        speed = depth * beginning ** (depth - 2) * (1.0 if depth == 2 else 2.0 - depth)
        return speed * jnp.concatenate([pull, -pull])

    def interpolates(place):
        return jnp.max(jnp.abs(x @ coefficients(place) - y)) < precision * jnp.max(jnp.abs(y))

    begin = jnp.zeros_like(beginning)
    path = flows.solve(field, begin, times, rtol=1e-13, atol=1e-15, most_steps=MOST_STEPS).states
    end = flows.solve_until(
        field,
        begin,
        lambda t, place: interpolates(place),
        rtol=1e-6,
        atol=1e-9,
        stiff=True,
        most_steps=20_000,
        otherwise="the network did not interpolate the labels; they contradict each other, or alpha is too small",
    )
    return DiagonalPath(coefficients(path), coefficients(end.state))
