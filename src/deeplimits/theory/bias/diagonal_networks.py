r"""Diagonal linear networks: which interpolating solution gradient flow picks, and the way there.

The network is β = w₊^D − w₋^D (entrywise) with w₊ = w₋ = αθ₀ at the start, trained by gradient flow on ½‖Xβ − y‖².
At every time β_i = c_i h(k_i (X'ν)_i) with c = (αθ₀)^D, k = θ₀^{D−2}, an n-dimensional ν, and

    h(s) = 2 sinh s for D = 2,    h(s) = (1 − s)^{−D/(D−2)} − (1 + s)^{−D/(D−2)} for D > 2.

Where the flow interpolates, β minimizes Q(β) = Σ (c_i/k_i) q(β_i/c_i) with q' = h^{−1} under Xβ = y.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.numerics import arguments, flows, panels
from deeplimits.numerics.checks import converged
from deeplimits.numerics.ranks import same_rank
from deeplimits.numerics.roots import bracketed
from deeplimits.numerics.shapes import Floats, Scalar

TOLERANCE = 1e-10
_NOT_ZERO = arguments.Allowed(lambda x: (x != 0) & np.isfinite(x), "finite and not 0")
_RULE = panels.gauss(20, 0.0, 1.0)
MOST_STEPS = 2000


class Interpolant(NamedTuple):
    """The solution that gradient flow picks."""

    beta: Float[Array, " d"]
    dual: Float[Array, " n"]
    """ν with β_i = c_i h(k_i (X'ν)_i)."""
    residual: Scalar
    """max |Xβ − y| relative to max |y|."""


def diagonal_potential(z: ArrayLike, *, depth: int = 2) -> Floats:
    """q(z) = ∫_0^z h^{−1}, of which q(z) = 2 − √(4 + z²) + z arcsinh(z/2) is that of depth two.

    For D > 2, with h(s) = z: q = sz − ((D−2)/2)[(1−s)^{−2/(D−2)} + (1+s)^{−2/(D−2)} − 2], by Legendre's transform.

    >>> round(float(diagonal_potential(1.0)), 14), round(float(diagonal_potential(1.0, depth=3)), 10)
    (0.24514384755981, 0.0799434978)
    """
    z = arguments.argument("z", z, arguments.FINITE)
    if arguments.whole("depth", depth, 2) > 2:
        return _deep_potential(jnp.abs(z), depth)
    small = jnp.abs(z) < 0.05
    s = jnp.where(small, z, 0.0)
    # The three terms cancel for small z: z²/4 − z⁴/192 + z⁶/2560 − 5z⁸/114688 + 7z¹⁰/1179648
    series = s**2 / 4 - s**4 / 192 + s**6 / 2560 - 5 * s**8 / 114688 + 7 * s**10 / 1179648
    u = jnp.where(small, 1.0, z)
    return jnp.where(small, series, 2 - jnp.hypot(2.0, u) + u * jnp.arcsinh(u / 2))


def _deep_potential(z: Floats, depth: int) -> Floats:
    power = 2 / (depth - 2)
    # h(s) = z for s = 1 − e^{−a}: near 1 the distance from it has the digits
    ends = jnp.zeros_like(z), jnp.full_like(z, 400.0 * (depth - 2))
    positive = z > 0
    a = bracketed(_link_excess, *ends, z, float(depth), where=positive, sentence="h(s) = z was not solved")
    s, rest = -jnp.expm1(-a), jnp.exp(-a)
    closed = s * z - (depth - 2) / 2 * (rest**-power + (1 + s) ** -power - 2)
    # For small z the terms cancel: q = ∫_0^s t h'(t) dt by a Gauss rule
    nodes, weights, at = same_rank(_RULE.nodes, _RULE.weights, s[..., None])
    t = at * nodes
    slopes = depth / (depth - 2) * ((1 - t) ** (-power - 2) + (1 + t) ** (-power - 2))
    small = jnp.sum(weights * t * slopes, axis=-1) * s
    return jnp.where(positive, jnp.where(s < 0.2, small, closed), 0.0)


def _link_excess(a, z, depth):
    """log h(1 − e^{−a}) − log z, which is −∞ at a = 0"""
    exponent = depth / (depth - 2)
    s = -jnp.expm1(-a)
    # (1 − s)^{−p}(1 − ((1 − s)/(1 + s))^p) with p = D/(D − 2)
    ratio = -jnp.expm1(-exponent * (a + jnp.log1p(s)))
    return exponent * a + jnp.log(ratio) - jnp.log(jnp.where(z > 0, z, 1.0))


def diagonal_regularizer(beta: ArrayLike, alpha: ArrayLike, start: ArrayLike, *, depth: int = 2) -> Scalar:
    """Q(β) = Σ (c_i/k_i) q(β_i/c_i), c = (αθ₀)^D, k = θ₀^{D−2}, which gradient flow minimizes among interpolants.

    D = 2: Q → Σ β_i²/(4α²θ_{0,i}²) as α → ∞ and Q/log(1/α²) → ‖β‖₁ as α → 0.

    >>> round(float(diagonal_regularizer([1.0, -0.5], 0.1, [1.0, 2.0])), 12)
    4.464744666794
    """
    alpha = arguments.number("alpha", alpha, arguments.POSITIVE)
    beta = arguments.argument("beta", beta, arguments.FINITE)
    theta = jnp.abs(arguments.argument("start", start, _NOT_ZERO))
    depth = arguments.whole("depth", depth, 2)
    if theta.shape not in ((), beta.shape):
        raise ParameterError(f"start has shape {theta.shape}; it must be {beta.shape}, as beta is, or one number")
    if depth > 2:
        c = (alpha * theta) ** depth
        return jnp.sum(c / theta ** (depth - 2) * diagonal_potential(beta / c, depth=depth))
    # Far out c q(β/c) = |β|(log|β| − log c − 1) + 2c + O(c³/β²), which needs no c that is a number
    log_c = 2 * (jnp.log(alpha) + jnp.log(theta))
    c, size = jnp.exp(log_c), jnp.abs(beta)
    far = size > 1e6 * c
    near = c * diagonal_potential(jnp.where(far, 0.0, size) / jnp.where(far, 1.0, jnp.where(c > 0, c, 1.0)))
    return jnp.sum(jnp.where(far, size * (jnp.log(jnp.where(far, size, 1.0)) - log_c - 1) + 2 * c, near))


def diagonal_interpolant(
    x: ArrayLike, y: ArrayLike, alpha: ArrayLike, *, start: ArrayLike = 1.0, depth: int = 2
) -> Interpolant:
    """The limit of gradient flow from w± = αθ₀: the minimizer of Q among the solutions of Xβ = y.

    Setting     β = w₊^D − w₋^D, gradient flow on ½‖Xβ − y‖² from w± = αθ₀; `x` (n, d), `y` (n,), `start` = θ₀ (d,)
    Result      β = c h(k X'ν) with Xβ = y, by Newton's method on the dual; from the ℓ1 norm (α → 0) to a weighted ℓ2
                norm (α → ∞)
    Validity    α > 0, no zero in θ₀, y in the column space of X; inside `jit` the rows of X are independent
    References  woodworth2020 Thm 1, Thm 3

    >>> x = [[1, 2, 0.5, -1, 0.3], [0.2, -1, 1.5, 0.7, 2]]
    >>> found = diagonal_interpolant(x, [1.0, 2.0], 0.5, start=[1, 0.5, 2, 1, 1.5])
    >>> [round(v, 10) for v in found.beta.tolist()]
    [0.1926612603, 0.072092158, 0.8045747836, -0.1238573505, 0.456698938]
    """
    alpha = _check(x, y, alpha, start, depth)
    x, y = jnp.asarray(x, float), jnp.asarray(y, float)
    start = jnp.broadcast_to(jnp.asarray(start, float), x.shape[1:])
    rows, labels, back = _independent(np.asarray(x), np.asarray(y)) if arguments.known(x, y) else (x, y, None)
    found = _newton(rows, labels, alpha, start, depth)
    sentence = "Newton's method for the diagonal network did not fit the labels; take a larger alpha"
    found = converged(found, found.residual <= TOLERANCE, sentence)
    return found if back is None else found._replace(dual=back @ found.dual)


class _Equations(NamedTuple):
    """Independent equations with the same solutions, and the way back from their multipliers."""

    x: Float[Array, "r d"]
    y: Float[Array, " r"]
    back: Float[Array, "n r"]


def _independent(x: Float[np.ndarray, "n d"], y: Float[np.ndarray, " n"]) -> _Equations:
    """Dependent equations are dropped, so that Newton's matrix is invertible."""
    left, values, right = np.linalg.svd(x, full_matrices=False)
    kept = values > max(x.shape) * np.finfo(float).eps * values[0]
    projected = left[:, kept].T @ y
    if np.max(np.abs(left[:, kept] @ projected - y), initial=0.0) > TOLERANCE * max(np.max(np.abs(y)), 1e-300):
        raise OutsideValidity("X β = y has no solution, so no interpolant exists; remove the contradicting samples")
    return _Equations(jnp.asarray(values[kept, None] * right[kept]), jnp.asarray(projected), jnp.asarray(left[:, kept]))


@partial(jax.jit, static_argnames="depth")
def _newton(x, y, alpha, start, depth) -> Interpolant:
    scale, stretch = _scales(alpha, start, depth)

    size = jnp.maximum(jnp.max(jnp.abs(y)), jnp.finfo(float).tiny)

    def look(nu):
        s = stretch * (nu @ x)
        beta = scale * _link(s, depth)
        left = y - x @ beta
        # Newton's matrix X diag(c k h') X' is symmetric and positive.
        matrix = (x * (scale * stretch * _link_slope(s, depth))[None, :]) @ x.T
        move = jax.scipy.linalg.solve(matrix, left, assume_a="pos")
        return s, beta, jnp.max(jnp.abs(left)) / size, move

    def unfinished(state):
        _, steps, error, previous = state
        # Rounding is reached where the error no longer shrinks.
        return (steps < MOST_STEPS) & (error > 1e-15) & ~((error < 1e-12) & (error >= previous))

    def advance(state):
        nu, steps, previous, _ = state
        s, _, error, move = look(nu)
        return nu + _damping(s, stretch * (move @ x), depth) * move, steps + 1, error, previous

    nu, _, _, _ = jax.lax.while_loop(unfinished, advance, (jnp.zeros_like(y), 0, jnp.inf, jnp.inf))
    nu = jax.lax.stop_gradient(nu)
    # One more step: it changes nothing but carries the derivative with respect to every argument.
    nu = nu + look(nu)[-1]
    beta = scale * _link(stretch * (nu @ x), depth)
    return Interpolant(beta, nu, jnp.max(jnp.abs(x @ beta - y)) / size)


def diagonal_trajectory(
    x: ArrayLike, y: ArrayLike, alpha: ArrayLike, times: ArrayLike, *, start: ArrayLike = 1.0, depth: int = 2
) -> Float[Array, "times d"]:
    """β(t) along gradient flow, from the n-dimensional flow of the dual.

    dν/dt = 4(y − Xβ(ν)) for D = 2 and D(D−2)α^{D−2}(y − Xβ(ν)) for D > 2.

    `times` is an increasing array of times, the first of which may be 0.

    >>> path = diagonal_trajectory(np.array([[1.0, 2.0]]), np.array([1.0]), 0.1, np.array([0.0, 100.0]))
    >>> [[round(float(part), 4) for part in beta] for beta in path]
    [[0.0, 0.0], [0.0669, 0.4666]]
    """
    x, y = jnp.asarray(x, float), jnp.asarray(y, float)
    start = jnp.broadcast_to(jnp.asarray(start, float), x.shape[1:])
    alpha = _check(x, y, alpha, start, depth)
    scale, stretch = _scales(alpha, start, depth)
    # D = 2: ν = 4 ∫(y − Xβ); D > 2: ν = D(D−2) α^{D−2} ∫(y − Xβ)
    speed = 4.0 if depth == 2 else depth * (depth - 2) * alpha ** (depth - 2)

    def field(t, nu):
        return speed * (y - x @ (scale * _link(stretch * (nu @ x), depth)))

    solved = flows.solve(field, jnp.zeros_like(y), times, rtol=1e-13, atol=1e-15)
    return scale[None, :] * _link(stretch[None, :] * (solved.states @ x), depth)


def kernel_solution(x: ArrayLike, y: ArrayLike, *, start: ArrayLike = 1.0, depth: int = 2) -> Float[np.ndarray, " d"]:
    """The limit α → ∞: argmin Σ β_i²/θ_{0,i}^{2D−2} : Xβ = y, approached like α^{−2D}.

    >>> kernel_solution([[1.0, 2.0]], [5.0])
    array([1., 2.])
    """
    x, y = np.asarray(x, float), np.asarray(y, float)
    _check(x, y, 1.0, np.broadcast_to(np.asarray(start, float), x.shape[1:]), depth)
    weights = np.broadcast_to(np.asarray(start, float), x.shape[1:]) ** (depth - 1)
    found = weights * (np.linalg.pinv(x * weights) @ y)
    if np.max(np.abs(x @ found - y), initial=0.0) > 1e-8 * max(np.max(np.abs(y)), 1e-300):
        raise OutsideValidity("X β = y has no solution, so no interpolant exists; remove the contradicting samples")
    return found


def sparse_solution(x: ArrayLike, y: ArrayLike) -> Float[np.ndarray, " d"]:
    """The limit α → 0: argmin ‖β‖₁ : Xβ = y, by linear programming (where it is unique).

    >>> sparse_solution([[1.0, 2.0]], [5.0]).tolist()
    [0.0, 2.5]
    """
    from scipy.optimize import linprog

    x, y = (np.asarray(part) for part in arguments.samples(x, y))
    found = linprog(np.ones(2 * x.shape[1]), A_eq=np.hstack([x, -x]), b_eq=y, bounds=(0, None), method="highs")
    if not found.success:
        raise OutsideValidity("X β = y has no solution, so no interpolant exists; remove the contradicting samples")
    positive, negative = np.split(found.x, 2)
    return positive - negative


def _scales(alpha, start, depth):
    return (alpha * start) ** depth, start ** (depth - 2)


def _link(s, depth):
    if depth == 2:
        return 2 * jnp.sinh(s)
    power = depth / (depth - 2)
    # (1 − s)^{−p} − (1 + s)^{−p} = 2(1 − s²)^{−p/2} sinh(p artanh s), without cancellation for small s
    return 2 * ((1 - s) * (1 + s)) ** (-power / 2) * jnp.sinh(power * jnp.arctanh(s))


def _link_slope(s, depth):
    if depth == 2:
        return 2 * jnp.cosh(s)
    power = depth / (depth - 2)
    return power * ((1 - s) ** (-power - 1) + (1 + s) ** (-power - 1))


def _damping(s, move, depth):
    """How much of a Newton step to take: a step may change no cosh by more than a factor e, and leave no domain."""
    if depth == 2:
        return jnp.minimum(1.0, 1 / jnp.max(jnp.abs(move)))
    # h lives on (−1, 1): go at most half of the way to its ends.
    room = jnp.where(move > 0, 1 - s, 1 + s)
    return jnp.minimum(1.0, 0.5 / jnp.max(jnp.abs(move) / room))


def _check(x: ArrayLike, y: ArrayLike, alpha: ArrayLike, start: ArrayLike, depth: int) -> Scalar:
    """The scale α, if all arguments are possible."""
    arguments.samples(x, y)
    arguments.whole("depth", depth, 2)
    if arguments.known(x) and not np.any(np.asarray(x)):
        raise ParameterError("x is zero, and says nothing of β; give samples that are not")
    why = "a coordinate that starts at zero stays there: remove its column instead"
    arguments.argument("start", start, arguments.POSITIVE, why)
    return arguments.argument("alpha", alpha, arguments.POSITIVE, "the scale of the initialization")
