"""Gradient descent and gradient flow on least squares, solved exactly.

The loss is c‖Xθ − y‖² with c = `loss_scale`, 1/n unless given; every step size and time depends on that normalization.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.errors import ParameterError
from deeplimits.numerics import arguments
from deeplimits.numerics.checks import valid
from deeplimits.numerics.ranks import same_rank
from deeplimits.numerics.shapes import Floats, Scalar


class _Modes(NamedTuple):
    """Compact singular value decomposition; directions below the rank threshold are marked, not cut."""

    left: Float[Array, "n r"]
    values: Float[Array, " r"]
    right: Float[Array, "r d"]
    kept: Array


def _modes(x: Float[Array, "n d"]) -> _Modes:
    left, values, right = jnp.linalg.svd(x, full_matrices=False)
    kept = values > max(x.shape) * jnp.finfo(values.dtype).eps * values[0]
    return _Modes(left, values, right, kept)


def critical_step(x: ArrayLike, *, loss_scale: float | None = None) -> Scalar:
    """The step size 1/(c s_max²) from which on gradient descent diverges.

    >>> round(float(critical_step(jnp.diag(jnp.array([1.0, 2.0])), loss_scale=0.5)), 12)
    0.5
    """
    x = _matrix(x)
    largest = jnp.linalg.norm(x, ord=2)
    return 1 / (_scale(x, loss_scale) * largest**2)


def optimal_step(x: ArrayLike, *, loss_scale: float | None = None) -> Scalar:
    """The constant step size 1/(c(s_max² + s_min²)) of fastest convergence, s_min the smallest nonzero one.

    >>> round(float(optimal_step(jnp.diag(jnp.array([1.0, 3.0])), loss_scale=0.5)), 12)
    0.2
    """
    x = _matrix(x)
    modes = _modes(x)
    smallest = jnp.min(jnp.where(modes.kept, modes.values, jnp.inf))
    return 1 / (_scale(x, loss_scale) * (modes.values[0] ** 2 + smallest**2))


def gradient_descent(
    x: ArrayLike,
    y: ArrayLike,
    start: ArrayLike,
    step: ArrayLike,
    steps: ArrayLike,
    *,
    loss_scale: float | None = None,
) -> Float[Array, "... d"]:
    """The iterate after `steps` steps (an integer or an array of integers), without iterating.

    θ_t = θ₀ + V diag([1 − (1 − 2ηc s²)^t]/s) U'(y − Xθ₀)

    >>> x, y = jnp.array([[1.0, 2, 0, 1], [0, 1, 1, 3]]), jnp.array([1.0, 2])
    >>> [round(v, 8) for v in gradient_descent(x, y, jnp.zeros(4), 0.1, 10).tolist()]
    [0.02626404, 0.22207737, 0.16954929, 0.53491191]
    """
    x, y, start = _checked(x, y, start)
    eta, steps = (
        arguments.argument("step", step, arguments.POSITIVE),
        arguments.argument("steps", steps, arguments.COUNT),
    )
    critical = critical_step(x, loss_scale=loss_scale)
    sentence = "step is not below the critical one, at and above which gradient descent diverges on these data"
    eta = valid(eta, eta < critical, sentence, lambda: f" (step = {float(eta):g}, critical {float(critical):g})")
    return _follow(x, y, start, lambda s: _one_minus_power(2 * _scale(x, loss_scale) * eta * s**2, steps))


def gradient_flow(
    x: ArrayLike,
    y: ArrayLike,
    start: ArrayLike,
    times: ArrayLike,
    *,
    loss_scale: float | None = None,
) -> Float[Array, "... d"]:
    """The solution of dθ/dt = −∇(c‖Xθ − y‖²) at the given times.

    >>> found = gradient_flow(jnp.eye(1), jnp.ones(1), jnp.zeros(1), jnp.log(2.0), loss_scale=0.5)
    >>> round(float(found[0]), 12)  # 1 − e^{−t}
    0.5
    """
    x, y, start = _checked(x, y, start)
    times = arguments.argument("times", times, arguments.NOT_NEGATIVE)

    def progress(s):
        rates, t = same_rank(-2 * _scale(x, loss_scale) * s**2, times[..., None])
        return -jnp.expm1(rates * t)

    return _follow(x, y, start, progress)


def closest_minimizer(x: ArrayLike, y: ArrayLike, start: ArrayLike) -> Float[Array, " d"]:
    """The limit θ₀ + X⁺(y − Xθ₀): of all minimizers the one closest to the start; from zero, the one of least norm.

    >>> x, y = jnp.array([[1.0, 1.0]]), jnp.array([2.0])
    >>> [round(float(part), 12) for part in closest_minimizer(x, y, jnp.array([1.0, 0.0]))]
    [1.5, 0.5]
    """
    return _follow(*_checked(x, y, start), jnp.ones_like)


def in_row_space(x: ArrayLike, vector: Float[Array, "... d"]) -> Float[Array, "... d"]:
    """The projection X⁺X of a vector on the row space of X, where every gradient lies."""
    rows = _matrix(x)
    modes, vector = _modes(rows), arguments.argument("vector", vector, arguments.FINITE)
    if vector.shape[-1:] != rows.shape[1:]:
        raise ParameterError(
            f"vector has shape {vector.shape}; its last axis must have the {rows.shape[1]} columns of x"
        )
    return (jnp.where(modes.kept, vector @ modes.right.T, 0.0)) @ modes.right


def _matrix(x: ArrayLike) -> Float[Array, "n d"]:
    return arguments.array("x", x, ("n", "d"), why="one sample in each row")


def _checked(x: ArrayLike, y: ArrayLike, start: ArrayLike):
    """Finite data of matching shapes, lists welcome."""
    rows = _matrix(x)
    targets = arguments.array("y", y, (rows.shape[0],), why="one target for each row of x")
    return rows, targets, arguments.array("start", start, (rows.shape[1],), why="one weight for each column of x")


def _follow(x, y, start, progress):
    """θ₀ + Σ_i progress(s_i)/s_i ⟨u_i, y − Xθ₀⟩ v_i over the nonzero singular values."""
    modes = _modes(x)
    safe = jnp.where(modes.kept, modes.values, 1.0)
    done, safe, missing, kept = same_rank(progress(safe), safe, modes.left.T @ (y - x @ start), modes.kept)
    return jnp.add(*same_rank(start, jnp.where(kept, done / safe * missing, 0.0) @ modes.right))


def _one_minus_power(x: Float[Array, " r"], power: Floats) -> Float[Array, "... r"]:
    """1 − (1 − x)^power for whole powers, without cancellation for small x; 1 − x may be negative."""
    x, power = same_rank(x, power[..., None])
    below = x < 1
    small = -jnp.expm1(power * jnp.log1p(-jnp.where(below, x, 0.0)))
    sign = jnp.where(power % 2 == 0, 1.0, -1.0)
    distance = jnp.where(below, 2.0, x) - 1
    large = 1 - sign * jnp.where(distance > 0, jnp.exp(power * jnp.log(jnp.where(distance > 0, distance, 1.0))), 0.0)
    return jnp.where(power == 0, 0.0, jnp.where(below, small, large))


def _scale(x: Float[Array, "n d"], loss_scale: float | None) -> float:
    if loss_scale is None:
        return 1 / x.shape[0]
    arguments.argument("loss_scale", loss_scale, arguments.POSITIVE)
    return loss_scale
