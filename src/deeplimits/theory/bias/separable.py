r"""Gradient descent and gradient flow on separable data at late times.

The loss is c Σ_i ℓ(⟨w, x̄_i⟩) with x̄_i = y_i x_i, ℓ logistic or exponential, and c = `loss_scale`, 1/n unless given.
With ŵ the hard-margin predictor, a its multipliers and S its support, w(t) = ŵ log t + w̃ + o(1): everything below is
about the offset w̃ and about how fast it is approached. For gradient descent with step η put t = ηk.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float
from scipy.optimize import linprog

from deeplimits.errors import NotConverged, ParameterError
from deeplimits.numerics import arguments
from deeplimits.theory.bias.hard_margin import ON_MARGIN, ZERO_MULTIPLIER, HardMargin, hard_margin


class LogTimeLaw(NamedTuple):
    """w(t) = ŵ log t + w̃ + O(t^{−q}) on the span of the support vectors."""

    predictor: HardMargin
    offset: Float[Array, " d"] | None
    """w̃ in the span of the support vectors; None for degenerate data, where the residual grows like log log t."""
    rate: float | None
    """q = min(λ_min⁺(M), ψ − 1), M = Σ a_i x̄_i x̄_i'; None for degenerate data."""
    loss_constant: float
    """lim t L(w(t)) = ‖ŵ‖²."""
    gap: float
    """ψ, the smallest functional margin off the support; infinite where every point is a support vector."""
    degenerate: bool
    """Whether no choice of multipliers is positive at every point on the margin."""
    eigenvalues: Float[Array, " r"] | None
    """The nonzero eigenvalues of M, increasing; one of them is 1, with eigenvector ŵ. None for degenerate data."""


def log_time_law(x: ArrayLike, y: ArrayLike, loss_scale: float | None = None) -> LogTimeLaw:
    """The late-time law of gradient flow on separable data, for the logistic or the exponential loss alike.

    Setting     loss c Σ ℓ(y_i⟨w, x_i⟩), separable data, t → ∞
    Result      ⟨w̃, x̄_i⟩ = −log(a_i/c) on the support, w̃ in its span; the deviation decays like t^{−q}; t L → ‖ŵ‖².
                Where support vectors depend on each other w̃ is the root of c Σ_S e^{−⟨w̃, x̄_i⟩} x̄_i = ŵ in their span
    Validity    separable data (otherwise `NotSeparable`); degenerate data are flagged and have no offset
    References  soudry2018 Thm 3, Thm 4

    >>> law = log_time_law([[1.0, 2], [2, 0.5], [3, 3], [4, 1]], [1, 1, 1, 1])
    >>> [round(v, 12) for v in law.offset.tolist()], round(law.rate, 12)
    ([0.115464222384, 0.390311901086], 0.204081632653)
    """
    found = hard_margin(x, y)
    signed = jnp.asarray(np.asarray(x, float) * np.asarray(y, float)[:, None])
    scale = _scale(len(signed), loss_scale)
    margins = np.asarray(signed) @ found.weights
    outside = np.setdiff1d(np.arange(len(signed)), found.support)
    gap = float(margins[outside].min()) if len(outside) else math.inf
    constant = float(found.weights @ found.weights)
    multipliers = _shared_multipliers(np.asarray(signed), found, scale)
    if multipliers is None:
        return LogTimeLaw(found, None, None, constant, gap, True, None)
    weights, multipliers = jnp.asarray(found.weights), jnp.asarray(multipliers)
    spread = jnp.linalg.svd(jnp.sqrt(multipliers)[:, None] * signed, compute_uv=False)[::-1] ** 2
    return LogTimeLaw(
        found,
        support_offset(signed, multipliers, scale),
        float(approach_rate(signed, weights, multipliers)),
        constant,
        gap,
        False,
        spread[spread > 1e-12 * spread[-1]],
    )


def _shared_multipliers(signed: np.ndarray, found: HardMargin, scale: float) -> np.ndarray | None:
    """The multipliers c e^{−⟨w̃, x̄_i⟩} that the flow chooses, or None where none is positive on the whole margin.

    Independent support vectors leave no choice. Others, a repeated point for instance, share their multiplier: w̃
    minimizes c Σ_S e^{−⟨w̃, x̄_i⟩} + ⟨w̃, ŵ⟩ over the span of S, a convex problem.
    """
    rows = signed[found.support]
    basis = np.linalg.svd(rows, full_matrices=False)
    rank = int(np.sum(1e-10 * basis.S[0] < basis.S))
    if rank == len(rows):
        return None if len(found.degenerate) else np.asarray(found.multipliers)
    # Is there a positive solution of Σ a_i x̄_i = ŵ? The largest t with a_i ≥ t for all i decides.
    size = np.max(found.multipliers)
    equations = np.hstack([basis.Vh[:rank] @ rows.T, np.zeros((rank, 1))])
    below = np.hstack([-np.eye(len(rows)), np.ones((len(rows), 1))])
    limits = [(0, None)] * (len(rows) + 1)
    goal = np.append(np.zeros(len(rows)), -1.0)
    target = basis.Vh[:rank] @ found.weights / size
    best = linprog(goal, below, np.zeros(len(rows)), equations, target, [*limits[:-1], (None, 1.0)])
    if not best.success:
        raise NotConverged(f"the multipliers of dependent support vectors were not found: {best.message}")
    if best.x[-1] <= ON_MARGIN:
        return None
    # Newton's method in coordinates of the span, damped until the convex function falls.
    points, pull = rows @ basis.Vh[:rank].T, basis.Vh[:rank] @ found.weights
    place = np.linalg.lstsq(points, -np.log(np.maximum(best.x[:-1], ON_MARGIN) * size / scale), rcond=None)[0]

    def height(w):
        with np.errstate(over="ignore"):
            return scale * np.sum(np.exp(-points @ w)) + w @ pull

    for _ in range(200):
        weight = scale * np.exp(-points @ place)
        slope = pull - weight @ points
        move = np.linalg.lstsq((weight[:, None] * points).T @ points, -slope, rcond=None)[0]
        length = 1.0
        while height(place + length * move) > height(place) + 0.25 * length * (slope @ move) and length > 1e-10:
            length /= 2
        place = place + length * move
        if np.linalg.norm(move) <= 1e-14 * (1 + np.linalg.norm(place)):
            break
    weight = scale * np.exp(-points @ place)
    if np.linalg.norm(pull - weight @ points) > 1e-9 * np.linalg.norm(pull):
        raise NotConverged("the offset of dependent support vectors was not found by Newton's method")
    multipliers = np.zeros(len(signed))
    multipliers[found.support] = weight
    return multipliers


def support_offset(
    signed: Float[Array, "n d"], multipliers: Float[Array, " n"], loss_scale: ArrayLike
) -> Float[Array, " d"]:
    """w̃ in the span of the support vectors, from the rows x̄_i and the multipliers; traceable, non-degenerate data."""
    on = multipliers > ZERO_MULTIPLIER * jnp.max(multipliers)
    rows = jnp.where(on[:, None], signed, 0.0)
    # c e^{−⟨w̃, x̄_i⟩} = a_i for i in S
    wanted = jnp.where(on, -jnp.log(jnp.where(on, multipliers, 1.0) / loss_scale), 0.0)
    return jnp.linalg.pinv(rows) @ wanted


def approach_rate(
    signed: Float[Array, "n d"], weights: Float[Array, " d"], multipliers: Float[Array, " n"]
) -> Float[Array, ""]:
    """q = min(λ_min⁺(Σ a_i x̄_i x̄_i'), ψ − 1): the deviation from the law decays like t^{−q}; traceable."""
    on = multipliers > ZERO_MULTIPLIER * jnp.max(multipliers)
    roots = jnp.where(on, jnp.sqrt(jnp.where(on, multipliers, 1.0)), 0.0)
    eigenvalues = jnp.linalg.svd(roots[:, None] * signed, compute_uv=False) ** 2
    slowest = jnp.min(jnp.where(eigenvalues > 1e-12 * eigenvalues[0], eigenvalues, jnp.inf))
    gap = jnp.min(jnp.where(on, jnp.inf, signed @ weights))
    return jnp.minimum(slowest, gap - 1)


def in_support_span(
    signed: Float[Array, "n d"], multipliers: Float[Array, " n"], vector: Float[Array, "... d"]
) -> Float[Array, "... d"]:
    """The projection of a vector on the span of the support vectors, where the offset is predicted; traceable."""
    on = multipliers > ZERO_MULTIPLIER * jnp.max(multipliers)
    rows = jnp.where(on[:, None], signed, 0.0)
    return vector @ (jnp.linalg.pinv(rows) @ rows).T


def direction_error(
    weights: Float[Array, " d"], offset: Float[Array, " d"], log_time: ArrayLike
) -> Float[Array, "..."]:
    """‖w/‖w‖ − ŵ/‖ŵ‖‖ to leading order, ‖w̃ − (⟨w̃, ŵ⟩/‖ŵ‖²)ŵ‖/(‖ŵ‖ log t); `offset` is the full limit w̃."""
    late = _late(log_time)
    norm = jnp.linalg.norm(weights)
    across = offset - (offset @ weights) / norm**2 * weights
    return jnp.linalg.norm(across) / (norm * late)


def normalized_margin(
    weights: Float[Array, " d"],
    offset: Float[Array, " d"],
    multipliers: Float[Array, " n"],
    log_time: ArrayLike,
    loss_scale: ArrayLike,
) -> Float[Array, "..."]:
    """min_i ⟨w, x̄_i⟩/‖w‖ = {1 − [max_S log(a_i/c) + ⟨ŵ, w̃⟩/‖ŵ‖²]/log t}/‖ŵ‖ + O(1/log² t)."""
    late = _late(log_time)
    norm = jnp.linalg.norm(weights)
    shortfall = jnp.log(jnp.max(multipliers) / loss_scale) + (offset @ weights) / norm**2
    return (1 - shortfall / late) / norm


def largest_step(x: ArrayLike, loss: str = "logistic", initial_loss: float | None = None) -> float:
    """A step size below which gradient descent on the mean loss converges on these data.

    Logistic: 2/(b λ_max(X'X/n)) with b = 1/4. Exponential: 2/(L(w₀) max ‖x_i‖²), which keeps the sharpness below 2/η on
    the whole sublevel set of the start (`initial_loss`, 1 for w₀ = 0).

    >>> largest_step([[1.0, 0.0], [0.0, 1.0]])
    16.0
    """
    points = np.asarray(x, float)
    if loss == "logistic":
        return float(8 / (np.linalg.norm(points, ord=2) ** 2 / len(points)))
    if loss == "exponential":
        start = 1.0 if initial_loss is None else float(initial_loss)
        arguments.argument("initial_loss", start, arguments.POSITIVE)
        return float(2 / (start * np.max(np.sum(points**2, axis=1))))
    raise ParameterError(f"loss = {loss!r} is not allowed; it must be 'logistic' or 'exponential'")


def check_step(x: ArrayLike, step: float, loss: str = "logistic", initial_loss: float | None = None) -> None:
    """Raise a ParameterError unless gradient descent with this step size is guaranteed to converge."""
    largest = largest_step(x, loss, initial_loss)
    if not 0 < step < largest:
        raise ParameterError(
            f"step = {step:g} is not allowed; gradient descent on the {loss} loss converges for "
            f"0 < step < {largest:g} on these data and may diverge beyond"
        )


def degenerate_flow(log_time: ArrayLike) -> Float[np.ndarray, "... 2"]:
    """The exact flow from zero for the degenerate data x̄ = (1, 0), (1, 1) under the mean exponential loss.

    w₂ = log(1 + W(t/2)), w₁ = W(t/2) + w₂ with W Lambert's function; ŵ = (1, 0) and the second point, on the margin
    with multiplier zero, makes w₂ grow like log log t.

    >>> [round(v, 10) for v in degenerate_flow(100.0).tolist()]
    [99.3173509916, 4.5617986147]
    """
    from scipy.special import lambertw

    s = np.asarray(arguments.argument("log_time", log_time, arguments.FINITE))
    logarithm = s - np.log(2)
    # W + log W = log t − log 2; beyond the range of exp, Newton's steps for W from its asymptote.
    small = logarithm < 500
    w = np.where(small, np.real(lambertw(np.exp(np.where(small, logarithm, 0.0)))), 0.0)
    guess = np.where(small, np.maximum(w, 1.0), np.maximum(logarithm - np.log(np.maximum(logarithm, 2.0)), 1.0))
    for _ in range(6):
        guess = guess - (guess + np.log(guess) - logarithm) / (1 + 1 / guess)
    residual = np.max(np.abs(guess + np.log(guess) - logarithm) / np.abs(logarithm), initial=0.0, where=~small)
    if not residual < 1e-14:
        raise NotConverged(f"Newton's method for Lambert's function stopped at the residual {residual:.2g}")
    w = np.where(small, w, guess)
    second = np.log1p(w)
    return np.stack([w + second, second], axis=-1)


def _scale(samples: int, loss_scale: float | None) -> float:
    if loss_scale is None:
        return 1 / samples
    arguments.argument("loss_scale", loss_scale, arguments.POSITIVE)
    return loss_scale


def _late(log_time: ArrayLike) -> Float[Array, "..."]:
    return arguments.argument("log_time", log_time, arguments.POSITIVE, "the law speaks about t > 1")
