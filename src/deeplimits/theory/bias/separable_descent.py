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

from deeplimits.errors import NotConverged, OutsideValidity, ParameterError
from deeplimits.numerics import arguments
from deeplimits.numerics.checks import valid
from deeplimits.numerics.shapes import Floats, Scalar
from deeplimits.theory.bias.support_vectors import ZERO_MULTIPLIER, HardMargin, hard_margin


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
    """Whether some point on the margin has multiplier zero, however the multipliers are chosen."""
    eigenvalues: Float[Array, " r"] | None
    """The nonzero eigenvalues of M, increasing; one of them is 1, with eigenvector ŵ. None for degenerate data."""


def log_time_law(x: ArrayLike, y: ArrayLike, *, loss_scale: float | None = None) -> LogTimeLaw:
    """The late-time law of gradient flow on separable data, for the logistic or the exponential loss alike.

    Setting     loss c Σ ℓ(y_i⟨w, x_i⟩), separable data, t → ∞
    Result      ⟨w̃, x̄_i⟩ = −log(a_i/c) on the support, w̃ in its span: c Σ_S x̄_i e^{−⟨w̃, x̄_i⟩} = ŵ, also where support
                vectors are linearly dependent; the deviation decays like t^{−q}; t L → ‖ŵ‖²
    Validity    separable data (otherwise `NotSeparable`); degenerate data are flagged and have no offset
    References  soudry2018 Thm 3, Thm 4

    >>> law = log_time_law([[1.0, 2], [2, 0.5], [3, 3], [4, 1]], [1, 1, 1, 1])
    >>> [round(v, 12) for v in law.offset.tolist()], round(law.rate, 12)
    ([0.115464222384, 0.390311901086], 0.204081632653)
    """
    found = hard_margin(x, y)
    if found.unit != 1.0:
        raise OutsideValidity(
            f"the entries of x reach {found.unit:.3g}, so that multipliers and loss, of size 1/x², are beyond double "
            f"precision; divide x by s = {found.unit:.3g}: the path for x is w(s²t)/s, w that for x/s"
        )
    signed = jnp.asarray(np.asarray(x, float) * np.asarray(y, float)[:, None])
    scale = _scale(len(signed), loss_scale)
    margins = np.asarray(signed) @ found.weights
    outside = np.setdiff1d(np.arange(len(signed)), found.support)
    gap = float(margins[outside].min()) if len(outside) else math.inf
    constant = float(found.weights @ found.weights)
    rows = np.asarray(signed)[found.support]
    multipliers = np.zeros(len(signed))
    # Multipliers of linearly dependent support vectors are not unique: those of the law come from the offset itself.
    if np.linalg.matrix_rank(rows, tol=1e-9 * np.abs(rows).max()) < len(rows):
        if not _can_all_carry(rows, found.weights):
            return LogTimeLaw(found, None, None, constant, gap, True, None)
        offset, multipliers[found.support] = _balanced_offset(rows, found.weights, scale)
    elif len(found.degenerate):
        return LogTimeLaw(found, None, None, constant, gap, True, None)
    else:
        multipliers = found.multipliers
        offset = support_offset(signed, jnp.asarray(multipliers), scale)
    rate = approach_rate(signed, jnp.asarray(found.weights), jnp.asarray(multipliers))
    # The nonzero eigenvalues of M = Σ a_i x̄_i x̄_i' are squares of singular values.
    spread = np.linalg.svd(np.sqrt(multipliers)[:, None] * np.asarray(signed), compute_uv=False)[::-1] ** 2
    eigenvalues = jnp.asarray(spread[spread > 1e-12 * spread[-1]])
    return LogTimeLaw(found, jnp.asarray(offset), float(rate), constant, gap, False, eigenvalues)


def _can_all_carry(rows: Float[np.ndarray, "s d"], weights: Float[np.ndarray, " d"]) -> bool:
    """Whether ŵ = Σ a_i x̄_i with all a_i > 0: then none is idle. The largest smallest a_i, by a linear program."""
    from scipy.optimize import linprog  # here, because only dependent support vectors need it

    count, size = len(rows), float(weights @ weights)
    # Maximize t with a_i ≥ t, Σ a_i x̄_i = ŵ
    equations = np.hstack([rows.T, np.zeros((rows.shape[1], 1))])
    found = linprog(
        np.append(np.zeros(count), -1.0),
        A_ub=np.hstack([-np.eye(count), np.ones((count, 1))]),
        b_ub=np.zeros(count),
        A_eq=equations,
        b_eq=weights,
        bounds=[(0, None)] * count + [(None, None)],
    )
    if found.status != 0:
        raise NotConverged(f"the multipliers of the support vectors were not found ({found.message}); rescale x")
    return float(-found.fun) > ZERO_MULTIPLIER * size


def _balanced_offset(
    rows: Float[np.ndarray, "s d"], weights: Float[np.ndarray, " d"], scale: float
) -> tuple[Float[np.ndarray, " d"], Float[np.ndarray, " s"]]:
    """w̃ in the span with c Σ_S x̄_i e^{−⟨w̃, x̄_i⟩} = ŵ, the minimum of a convex function, and a_i = c e^{−⟨w̃, x̄_i⟩}."""
    _, sizes, basis = np.linalg.svd(rows, full_matrices=False)
    basis = basis[sizes > 1e-9 * sizes[0]]
    reduced, target = rows @ basis.T, basis @ weights
    z, a = np.zeros(len(basis)), np.full(len(rows), scale)

    def value(z):
        return scale * np.sum(np.exp(-reduced @ z)) + target @ z

    for _ in range(200):
        a = scale * np.exp(-reduced @ z)
        gradient = target - reduced.T @ a
        step = np.linalg.solve((reduced.T * a) @ reduced, -gradient)
        # Newton's method with halved steps: the function is strictly convex on the span.
        length = 1.0
        with np.errstate(over="ignore"):
            while not value(z + length * step) <= value(z) + 1e-4 * length * (gradient @ step) and length > 1e-12:
                length /= 2
        if np.linalg.norm(gradient) <= 1e-13 * np.linalg.norm(target):
            break
        z = z + length * step
    residual = float(np.linalg.norm(reduced.T @ a - target) / np.linalg.norm(target))
    if not residual < 1e-9:
        raise NotConverged(f"the offset of the law was found with residual {residual:.2g} only; rescale x")
    return basis.T @ z, a


def support_offset(
    signed: Float[Array, "n d"], multipliers: Float[Array, " n"], loss_scale: ArrayLike
) -> Float[Array, " d"]:
    """w̃ in the span of the support vectors, from the rows x̄_i and the multipliers; traceable, non-degenerate data."""
    signed, multipliers, on = _support(signed, multipliers)
    rows = jnp.where(on[:, None], signed, 0.0)
    # c e^{−⟨w̃, x̄_i⟩} = a_i for i in S
    scale = arguments.argument("loss_scale", loss_scale, arguments.POSITIVE)
    wanted = jnp.where(on, -jnp.log(jnp.where(on, multipliers, 1.0) / scale), 0.0)
    return jnp.linalg.pinv(rows) @ wanted


def approach_rate(signed: Float[Array, "n d"], weights: Float[Array, " d"], multipliers: Float[Array, " n"]) -> Scalar:
    """q = min(λ_min⁺(Σ a_i x̄_i x̄_i'), ψ − 1): the deviation from the law decays like t^{−q}; traceable."""
    signed, multipliers, on = _support(signed, multipliers)
    roots = jnp.where(on, jnp.sqrt(jnp.where(on, multipliers, 1.0)), 0.0)
    eigenvalues = jnp.linalg.svd(roots[:, None] * signed, compute_uv=False) ** 2
    slowest = jnp.min(jnp.where(eigenvalues > 1e-12 * eigenvalues[0], eigenvalues, jnp.inf))
    weights = arguments.array("weights", weights, (signed.shape[1],))
    gap = jnp.min(jnp.where(on, jnp.inf, signed @ weights))
    return jnp.minimum(slowest, gap - 1)


def _support(signed: ArrayLike, multipliers: ArrayLike):
    """Both as arrays, and which multipliers are not zero."""
    signed = arguments.array("signed", signed, ("n", "d"), why="the rows y_i x_i")
    multipliers = arguments.array("multipliers", multipliers, (signed.shape[0],), allowed=arguments.NOT_NEGATIVE)
    largest = jnp.max(multipliers)
    largest = valid(largest, largest > 0, "multipliers are all 0, and nothing is a support vector; take hard_margin's")
    return signed, multipliers, multipliers > ZERO_MULTIPLIER * largest


def in_support_span(
    signed: Float[Array, "n d"], multipliers: Float[Array, " n"], vector: Float[Array, "... d"]
) -> Float[Array, "... d"]:
    """The projection of a vector on the span of the support vectors, where the offset is predicted; traceable."""
    signed, multipliers, on = _support(signed, multipliers)
    vector = arguments.argument("vector", vector, arguments.FINITE)
    if vector.shape[-1:] != signed.shape[1:]:
        raise ParameterError(
            f"vector has shape {vector.shape}; its last axis must have the {signed.shape[1]} columns of signed"
        )
    rows = jnp.where(on[:, None], signed, 0.0)
    return vector @ (jnp.linalg.pinv(rows) @ rows).T


def direction_error(weights: Float[Array, " d"], offset: Float[Array, " d"], log_time: ArrayLike) -> Floats:
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
) -> Floats:
    """min_i ⟨w, x̄_i⟩/‖w‖ = {1 − [max_S log(a_i/c) + ⟨ŵ, w̃⟩/‖ŵ‖²]/log t}/‖ŵ‖ + O(1/log² t)."""
    late = _late(log_time)
    norm = jnp.linalg.norm(weights)
    shortfall = jnp.log(jnp.max(multipliers) / loss_scale) + (offset @ weights) / norm**2
    return (1 - shortfall / late) / norm


def largest_separable_step(x: ArrayLike, *, loss: str = "logistic", initial_loss: float | None = None) -> float:
    """A step size below which gradient descent on the mean loss converges on these data.

    Logistic: 2/(b λ_max(X'X/n)) with b = 1/4. Exponential: 2/(L(w₀) max ‖x_i‖²), which keeps the sharpness below 2/η on
    the whole sublevel set of the start (`initial_loss`, 1 for w₀ = 0).

    >>> largest_separable_step([[1.0, 0.0], [0.0, 1.0]])
    16.0
    """
    points = np.asarray(arguments.array("x", x, ("n", "d")))
    if not np.any(points):
        raise ParameterError("x contains only zeros: the loss does not depend on the weights; give other points")
    if arguments.choice("loss", loss, ("logistic", "exponential")) == "logistic":
        return float(8 / (np.linalg.norm(points, ord=2) ** 2 / len(points)))
    start = 1.0 if initial_loss is None else float(initial_loss)
    arguments.argument("initial_loss", start, arguments.POSITIVE)
    return float(2 / (start * np.max(np.sum(points**2, axis=1))))


def check_step(x: ArrayLike, step: float, *, loss: str = "logistic", initial_loss: float | None = None) -> None:
    """Raise a ParameterError unless gradient descent with this step size is guaranteed to converge."""
    largest = largest_separable_step(x, loss=loss, initial_loss=initial_loss)
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
    large = np.maximum(logarithm, 500.0)
    guess = large - np.log(large)
    for _ in range(6):
        guess = guess - (guess + np.log(guess) - large) / (1 + 1 / guess)
    residual = np.max(np.abs(guess + np.log(guess) - large) / large, initial=0.0)
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


def _late(log_time: ArrayLike) -> Floats:
    return arguments.argument("log_time", log_time, arguments.POSITIVE, "the law speaks about t > 1")
