r"""The spiked matrix and k-tensor model under online SGD.

Y = λ v^{⊗k} + W with independent standard Gaussian entries (not symmetrized), L = |Y − x^{⊗k}|², δ = c/N, t = δ·steps.
Statistics m = ⟨x, v⟩ and r = |x|² − m² (a square), R² = m² + r.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array

from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.numerics import panels, roots
from deeplimits.numerics.arguments import FINITE, NOT_NEGATIVE, POSITIVE, argument, array, known, number
from deeplimits.numerics.checks import valid
from deeplimits.theory.online_sgd.effective import EffectiveDynamics, Fluctuations, fluctuations, solve_ode
from deeplimits.theory.online_sgd.landscapes import check_order


class RestPoint(NamedTuple):
    """A rest point of the ballistic limit, in closed form."""

    overlap: float
    radius: float
    """r, a square."""
    eigenvalues: tuple[float, float]
    """Linear rates in the m and the r direction; 0 where the point is degenerate."""
    stable: bool


def spiked_dynamics(
    signal: ArrayLike, order: int, step: ArrayLike, *, dimension: float | None = None
) -> EffectiveDynamics:
    """Drift, corrector and diffusion of u = (m, r).

    −f = (2k m(λm^{k−2} − R^{2k−2}), −4k R^{2k−2} r), g = (0, 4k c R^{2k−2}); Σ = D/N before the limit, where a
    `dimension` is given, and none in it.

    >>> import jax.numpy as jnp
    >>> spiked = spiked_dynamics(2.0, 2, 1.0)
    >>> [round(float(x), 10) for x in spiked.drift(jnp.array([0.3, 0.7]))]
    [-1.452, 4.424]
    """
    check_order(order, least=2)
    lam, c, k = argument("signal", signal, FINITE), argument("step", step, NOT_NEGATIVE), order

    def drift(u):
        m, r = u
        power = (m**2 + r) ** (k - 1)
        return jnp.stack([-2 * k * m * (lam * m ** (k - 2) - power), 4 * k * power * r])

    def corrector(u):
        m, r = u
        return jnp.stack([jnp.zeros_like(m), 4 * k * c * (m**2 + r) ** (k - 1)])

    diffusion = None if dimension is None else lambda u: path_noise(u, k, c) / dimension
    return EffectiveDynamics(drift, corrector, diffusion)


def path_noise(u: Array, order: int, step: ArrayLike) -> Array:
    """D(u) = lim N δ J V Jᵀ = 4c [[kR^{2k−2} + q m², 2qmr], [2qmr, 4kR^{2k−2} r + 4q r²]], q = k(k−1)R^{2k−4}."""
    m, r = _state("u", u)
    check_order(order, least=2)
    k, c, square = order, argument("step", step, NOT_NEGATIVE), m**2 + r
    p, q = k * square ** (k - 1), k * (k - 1) * square ** (k - 2)
    return 4 * c * jnp.array([[p + q * m**2, 2 * q * m * r], [2 * q * m * r, 4 * p * r + 4 * q * r**2]])


def spiked_ballistic(signal: ArrayLike, order: int, step: ArrayLike, start: ArrayLike, times: ArrayLike) -> Array:
    """(m, r) at the given times: dm/dt = 2km(λm^{k−2} − R^{2k−2}), dr/dt = −4kR^{2k−2}(r − c).

    >>> path = spiked_ballistic(2.0, 2, 1.0, [0.3, 0.7], [0.5])
    >>> [round(float(x), 8) for x in path[0]]
    [0.94270114, 0.99900626]
    """
    u = _state("start", start)
    return solve_ode(spiked_dynamics(signal, order, step), u, times, stiff=_stiff(signal, order, step, u, times))


def spiked_loss(u: ArrayLike, signal: ArrayLike, order: int) -> Array:
    """Φ(m, r) = E|Y − x^{⊗k}|² but for a constant: −2λm^k + R^{2k}; f = (∂Φ/∂m, 4r ∂Φ/∂r).

    >>> round(float(spiked_loss([0.3, 0.7], 2.0, 2)), 10)
    0.2641
    """
    m, r = _state("u", u)
    check_order(order, least=2)
    return -2 * argument("signal", signal, FINITE) * m**order + (m**2 + r) ** order


def spiked_gradient_covariance(x: ArrayLike, order: int) -> Array:
    """V(x) = 4[kR^{2k−2} I + k(k−1)R^{2k−4} xxᵀ], the covariance (N, N) of ∇L at x (N,), whatever the signal.

    >>> spiked_gradient_covariance([1.0, 0.0], 3).tolist()
    [[36.0, 0.0], [0.0, 12.0]]
    """
    x = array("x", x, ("N",), why="a point")
    check_order(order, least=2)
    square = x @ x
    # R^{2k−4} is 1 for k = 2, also at x = 0
    inner = jnp.ones(()) if order == 2 else square ** (order - 2)
    return 4 * order * (square ** (order - 1) * jnp.eye(x.shape[0]) + (order - 1) * inner * jnp.outer(x, x))


def _state(name: str, value: ArrayLike) -> Array:
    u = array(name, value, (2,), why="m and r")
    return valid(u, u[1] >= 0, f"{name} has a negative r, which is a square; take r ≥ 0")


def _stiff(signal: ArrayLike, order: int, step: ArrayLike, start: Array, times: ArrayLike) -> bool:
    """Whether an explicit method would need thousands of steps, as far as it is known now: 4kR^{2k−2} is the rate."""
    if not known(signal, step, start, times):
        return False
    lam, c = float(np.asarray(signal)), float(np.asarray(step))
    square = max(abs(lam) ** (2 / order), c, float(start[0] ** 2 + start[1]))
    return 4 * order * square ** (order - 1) * float(np.max(np.asarray(times, float), initial=0.0)) > 3000


def ballistic_with_fluctuations(
    signal: ArrayLike, order: int, step: ArrayLike, start: ArrayLike, times: ArrayLike
) -> Fluctuations:
    """(m, r) and lim N Cov(m, r) at the given times, from a fixed start."""
    dynamics, u = spiked_dynamics(signal, order, step), _state("start", start)
    stiff = _stiff(signal, order, step, u, times)
    return fluctuations(dynamics, lambda u: path_noise(u, order, step), u, times, stiff=stiff)


def critical_signal(order: int, step: ArrayLike) -> ArrayLike:
    """λ_c(k, c) = c^{k/2} (2(k−1)/k)^{k−1} (k/(k−2))^{(k−2)/2}, λ_c(2, c) = c: above it m ≠ 0 can rest.

    >>> round(float(critical_signal(3, 1.0)), 10)
    3.0792014357
    """
    check_order(order, least=2)
    k, c = order, argument("step", step, NOT_NEGATIVE)
    last = 1.0 if k == 2 else (k / (k - 2)) ** ((k - 2) / 2)
    return c ** (k / 2) * (2 * (k - 1) / k) ** (k - 1) * last


class OverlapRoots(NamedTuple):
    """m_† ≤ m_*, where the overlap rests."""

    saddle: Array
    stable: Array


def overlap_roots(signal: ArrayLike, order: int, step: ArrayLike) -> OverlapRoots:
    """The positive roots m_† ≤ m_* of λm^{k−2} = (m² + c)^{k−1}, for λ above `critical_signal`; for k = 2 (0, √(λ−c)).

    They lie on both sides of √((k−2)c/k), which is what both are at the critical signal and below it.

    >>> [round(float(m), 10) for m in overlap_roots(4.0, 3, 1.0)]
    [0.2955977425, 1.0]
    """
    check_order(order, least=2)
    lam, c, k = argument("signal", signal, POSITIVE), argument("step", step, POSITIVE), order
    if k == 2:
        positive = lam > c
        root = jnp.where(positive, jnp.sqrt(jnp.where(positive, lam - c, 1.0)), 0.0)
        return OverlapRoots(jnp.zeros_like(lam * c), root)
    lam = valid(
        lam,
        lam >= critical_signal(k, c),
        "signal is below the threshold, where no overlap but 0 can rest; take a stronger one",
        lambda: f" than {float(np.max(np.asarray(critical_signal(k, c)))):g}",
    )
    middle = jnp.log((k - 2) * c / k) / 2
    # The gap is positive between the roots; far below and above it is negative.
    low = jnp.minimum(((k - 1) * jnp.log(c) - jnp.log(lam)) / (k - 2), middle) - 1.0
    high = jnp.maximum(jnp.log(lam) / k, middle) + 1.0
    ends = jnp.stack([low, high])
    found = roots.bracketed(_gap, jnp.broadcast_to(middle, ends.shape), ends, lam, c, float(k), optional=True)
    saddle, rest = jnp.exp(found)
    return OverlapRoots(saddle, rest)


def _gap(log_m, lam, c, k):
    """log λm^{k−2} − log (m² + c)^{k−1}."""
    return (k - 2) * log_m + jnp.log(lam) - (k - 1) * jnp.log(jnp.exp(2 * log_m) + c)


_roots_on_the_host = jax.jit(overlap_roots, static_argnums=1)  # as one program


def spiked_rest_points(signal: float, order: int, step: float) -> list[RestPoint]:
    """All rest points of the ballistic limit, with linear rates and stability; for even orders ±m, +m first.

    >>> [(round(p.overlap, 6), p.radius, p.stable) for p in spiked_rest_points(2.0, 2, 1.0)]
    [(0.0, 0.0, False), (0.0, 1.0, False), (1.0, 1.0, True), (-1.0, 1.0, True)]
    """
    points = _upper_rest_points(signal, order, step)
    # x^{⊗k} does not know the sign of x for even k; for odd k the signal's does not rest at −m
    return [side for point in points for side in (point, *_mirrored(point, order))]


def _mirrored(point: RestPoint, order: int) -> tuple[RestPoint, ...]:
    return (point._replace(overlap=-point.overlap),) if order % 2 == 0 and point.overlap > 0 else ()


def _upper_rest_points(signal: float, order: int, step: float) -> list[RestPoint]:
    """Those with m ≥ 0."""
    check_order(order, least=2)
    lam, c, k = float(signal), float(step), order
    if not lam >= 0 or not c >= 0:
        raise ParameterError(f"signal = {lam:g}, step = {c:g}: both must be at least 0 (turn v around for λ < 0)")
    if c == 0:
        # Population gradient flow: only the spike itself and the origin rest.
        rate = -2 * k * k * lam ** (2 * (k - 1) / k)
        spike = RestPoint(lam ** (1 / k), 0.0, (rate, -4 * k * lam ** (2 * (k - 1) / k)), lam > 0)
        return [RestPoint(0.0, 0.0, (4 * lam if k == 2 else 0.0, 0.0), False), spike]
    points = [RestPoint(0.0, 0.0, (4 * lam, 8 * c) if k == 2 else (0.0, 0.0), False)]
    rate = 4 * (lam - c) if k == 2 else -2 * k * c ** (k - 1)
    points.append(RestPoint(0.0, c, (rate, -4 * k * c ** (k - 1)), rate < 0))
    if lam > float(np.asarray(critical_signal(k, c))):
        overlaps = [float(root) for root in _roots_on_the_host(lam, k, c)]
        for m in overlaps[1:] if k == 2 else overlaps:
            square = m**2 + c
            rate = 2 * k * square ** (k - 2) * ((k - 2) * c - k * m**2)
            points.append(RestPoint(m, c, (rate, -4 * k * square ** (k - 1)), rate < 0))
    return points


class EscapeActions(NamedTuple):
    """V in the time exp(NV) over the saddle: from m = 0, and from m_*."""

    from_zero: float
    from_signal: float


def escape_actions(signal: float, order: int, step: float) -> EscapeActions:
    """V in the time exp(NV) that noise takes to carry SGD over the saddle m_†, from (0, c) and from (m_*, c).

    With r = c, m follows dm = b dt + √(D/N) dB, b = 2km(λm^{k−2} − R^{2k−2}), D = 4c(kR^{2k−2} + k(k−1)R^{2k−4}m²): V
    is ∫ 2|b|/D dm between the rest point and the saddle. For a matrix, k = 2, the saddle is (0, c) itself.

    >>> [round(v, 6) for v in escape_actions(4.0, 3, 1.0)]
    [0.012001, 0.052898]
    """
    lam, c = (float(number(name, value, POSITIVE)) for name, value in (("signal", signal), ("step", step)))
    k = order
    critical = float(np.asarray(critical_signal(k, c)))
    if lam <= critical:
        raise OutsideValidity(f"signal = {lam:g} is not above the threshold {critical:g}: there is no saddle")
    saddle, rest = (float(m) for m in _roots_on_the_host(lam, k, c))

    def action(rule: panels.Rule) -> float:
        m, square = rule.nodes, rule.nodes**2 + c
        # 2|b|/D, divided by the powers of R² that both have
        drift = m * (lam * m ** (k - 2) / square ** (k - 2) - square)
        noise = c * (square + (k - 1) * m**2)
        return abs(float(np.sum(rule.weights * drift / noise)))

    # Between the scales on which b/D changes may lie many powers of ten: panels of one e-folding at most.
    near = saddle if saddle > 0 else min(math.sqrt(c), rest / 2)
    outer = action(panels.composite(np.geomspace(near, rest, math.ceil(math.log(rest / near)) + 2), 20))
    inner = action(panels.even(0.0, near, 1, 60))
    return EscapeActions(inner, outer) if saddle > 0 else EscapeActions(0.0, inner + outer)


class Microscopic(NamedTuple):
    """Var u, u = √N m, and the radius r."""

    variance: Array
    radius: Array


def microscopic_variance(
    signal: ArrayLike, step: ArrayLike, times: ArrayLike, variance: ArrayLike = 1.0, *, radius: ArrayLike = 1.0
) -> Microscopic:
    """Var u(t) and r(t), k = 2, u = √N m: du = 4u(λ − r) dt + √(8cr) dB, dr/dt = −8r(r − c), from V_0 and r_0.

    r = r_0 e^{8ct}/D, Var u = (e^{8λt}/D)[V_0 + c r_0 (e^{8(c−λ)t} − 1)/(c − λ)], D = 1 + (r_0/c)(e^{8ct} − 1).

    >>> round(float(microscopic_variance(0.5, 1.0, 0.6, 1.0, radius=0.6).variance), 10)
    1.9590125637
    """
    lam = argument("signal", signal, FINITE)
    named = {"step": step, "times": times, "variance": variance, "radius": radius}
    c, t, v0, r0 = (argument(name, value, NOT_NEGATIVE) for name, value in named.items())
    # Everything divided by e^{8ct}, so that nothing overflows before the answer does; (1 − e^{−8ct})/c is 8t at c = 0.
    moves = c > 0
    share = jnp.where(moves, -jnp.expm1(-8 * c * t) / jnp.where(moves, c, 1.0), 8 * t)
    scaled = jnp.exp(-8 * c * t) + r0 * share
    x = 8 * (c - lam) * t
    small = jnp.abs(x) < 1e-6
    safe = jnp.where(small, 1.0, x)
    # e^{8(λ−c)t}(e^{8(c−λ)t} − 1)/(c − λ) = 8t (1 − e^{−x})/x
    integral = 8 * t * jnp.where(small, 1 - x / 2, -jnp.expm1(-safe) / safe)
    found = (v0 * jnp.exp(-x) + c * r0 * integral) / scaled
    found = valid(found, jnp.isfinite(found), "the variance exceeds what double precision holds; take earlier times")
    return Microscopic(found, r0 / scaled)


def tensor_microscopic_variance(
    order: int, step: ArrayLike, times: ArrayLike, variance: ArrayLike = 1.0, *, radius: ArrayLike = 1.0
) -> Microscopic:
    """Var u and r for k ≥ 3, where the signal is invisible: du = −2k r^{k−1}u dt + √(4kc r^{k−1}) dB.

    >>> v, r = tensor_microscopic_variance(4, 0.5, [0.7], 2.0, radius=1.0)
    >>> round(float(v[0]), 9), round(float(r[0]), 9)
    (0.591639929, 0.530546643)
    """
    check_order(order, least=3)
    k, c = order, number("step", step, NOT_NEGATIVE)

    def velocity(state):
        v, r = state
        power = r ** (k - 1)
        return jnp.stack([-4 * k * power * v + 4 * k * c * power, -4 * k * power * (r - c)])

    joint = EffectiveDynamics(drift=lambda u: -velocity(u), corrector=jnp.zeros_like)
    given = (("variance", variance), ("radius", radius))
    start = jnp.stack([number(name, value, NOT_NEGATIVE) for name, value in given])
    path = solve_ode(joint, start, times, stiff=_stiff(0.0, k, c, start, times))
    return Microscopic(path[:, 0], path[:, 1])


def exit_offset(signal: float, step: float, threshold: float, variance: float = 1.0) -> float:
    """b in 4(λ−c)t_η − ½ log N → b − log|G|, for k = 2, λ > c, r_0 = c: the time at which |m| exceeds η.

    >>> round(exit_offset(2.0, 1.0, 0.5) + 0.635181422730739, 8)
    -0.26069831
    """
    given = {"signal": signal, "step": step, "threshold": threshold}
    lam, c, eta = (float(number(name, value, POSITIVE)) for name, value in given.items())
    number("variance", variance, NOT_NEGATIVE)
    if lam <= c:
        raise OutsideValidity(
            f"signal = {lam:g} is not above step = {c:g}: the correlation never leaves; raise the signal"
        )
    if not 0 < eta < np.sqrt(lam - c):
        raise OutsideValidity(f"threshold = {eta:g} is never reached; it must be below √(λ−c) = {np.sqrt(lam - c):g}")
    final = float(variance) + c**2 / (lam - c)
    return float(np.log(eta) - np.log1p(-(eta**2) / (lam - c)) / 2 - np.log(final) / 2)
