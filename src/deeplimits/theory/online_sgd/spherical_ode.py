r"""Spherical online SGD at the critical step: the ODE of the correlation with the signal.

x̃ = x − (δ/N) ∇L(x, Y), x' = x̃/|x̃|, one fresh sample a step, ∇ the spherical gradient. With τ = steps/N,

    dm/dτ = −δ(1 − m²) φ'(m) − (δ²/2) s(m) m,

the second term being the retraction to the sphere, which gradient flow on φ leaves out.
"""

import functools

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array

from deeplimits.errors import OutsideValidity
from deeplimits.numerics.arguments import NOT_NEGATIVE, POSITIVE, argument, between, inside, number, of_kind
from deeplimits.numerics.roots import on_host
from deeplimits.theory.online_sgd.effective import EffectiveDynamics, solve_ode
from deeplimits.theory.online_sgd.landscapes import Landscape

STEPS = 300
"""Of the Runge-Kutta method for the equations of a large deviation."""


def velocity(landscape: Landscape, m: ArrayLike, step: ArrayLike) -> Array:
    """dm/dτ.

    >>> from deeplimits.theory.online_sgd.landscapes import online_pca
    >>> round(float(velocity(online_pca(1.0), 0.5, 0.3)), 10)
    0.1125
    """
    of_kind("landscape", landscape, Landscape)
    m, delta = argument("m", m, between(-1, 1)), argument("step", step, POSITIVE)
    return -delta * (1 - m**2) * landscape.slope(m) - delta**2 / 2 * landscape.squared_gradient(m) * m


def correlation(landscape: Landscape, start: ArrayLike, step: ArrayLike, times: Array) -> Array:
    """m(τ) at increasing times from m(0) = start, by integration.

    >>> import jax.numpy as jnp
    >>> from deeplimits.theory.online_sgd.landscapes import online_pca
    >>> round(float(correlation(online_pca(1.0), 0.2, 0.3, jnp.array([5.0]))[0]), 7)
    0.6735598
    """
    of_kind("landscape", landscape, Landscape)
    # The velocity is linear in the state that the engine sees: −f is the population part, g the retraction.
    delta = number("step", step, POSITIVE)
    m0 = number("start", start, between(-1, 1))
    dynamics = EffectiveDynamics(
        drift=lambda u: delta * (1 - u**2) * landscape.slope(u),
        corrector=lambda u: -(delta**2) / 2 * landscape.squared_gradient(u) * u,
    )
    return solve_ode(dynamics, m0[None], times)[:, 0]


def plateau(landscape: Landscape, start: ArrayLike, step: ArrayLike) -> float:
    """Where the correlation comes to rest from m(0) = start at a constant step: strong recovery is 1, weak any m > 0.

    Setting     dm/dτ = −δ(1 − m²)φ'(m) − (δ²/2)E‖∇‖² m, the ballistic limit of spherical SGD on `landscape`, δ = `step`
    Result      the first zero of this velocity above a start from which m rises, or below one from which it falls;
                1 − O(δ) for noisy labels, 1 itself where the gradient vanishes at the signal
    Validity    −1 ≤ start ≤ 1; a start at rest stays there
    References  benarous2021

    >>> from deeplimits.theory.online_sgd.landscapes import online_pca
    >>> round(plateau(online_pca(1.0), 0.1, 0.3), 10)
    0.7337993857
    """
    of_kind("landscape", landscape, Landscape)
    m0 = float(number("start", start, between(-1, 1)))
    number("step", step, POSITIVE)
    here = float(velocity(landscape, m0, step))
    if here == 0 or abs(m0) == 1:
        return m0
    # Zeros may crowd at the end: points that come close to it geometrically.
    end = 1.0 if here > 0 else -1.0
    shares = np.concatenate([np.linspace(0.0, 0.9, 361), 1 - 0.1 * 2.0 ** -np.arange(0.25, 45.0, 0.25)])
    grid = m0 + (end - m0) * shares
    values = np.asarray(velocity(landscape, jnp.asarray(grid), step))
    change = np.flatnonzero(values[1:] * np.sign(here) <= 0)
    if not len(change):
        return end
    low, high = grid[change[0]], grid[change[0] + 1]
    return float(
        on_host(lambda m: np.asarray(velocity(landscape, jnp.asarray(m), step)), np.asarray(low), np.asarray(high))
    )


def growth_rate(landscape: Landscape, step: ArrayLike) -> Array:
    """κ = δ a_2 − δ² s(0)/2: the rate at which the correlation leaves the equator when k = 2."""
    of_kind("landscape", landscape, Landscape)
    if landscape.exponent != 2:
        raise OutsideValidity(
            f"landscape has information exponent {landscape.exponent}; only with exponent 2 does the correlation leave "
            "the equator at a rate"
        )
    delta = argument("step", step, POSITIVE)
    return delta * landscape.drift_constant - delta**2 * landscape.squared_gradient(jnp.zeros(())) / 2


def pca_correlation(signal: ArrayLike, start: ArrayLike, step: ArrayLike, times: ArrayLike) -> Array:
    """Online PCA in closed form: m² = m_*²/(1 + (m_*²/m_0² − 1) e^{−2κτ}), κ = 2δ(λ − δ), m_*² = (λ − δ)/(λ(1 + δ)).

    Written so that it also holds at and above the critical step δ = λ, where m decays.

    >>> round(float(pca_correlation(1.0, 0.2, 0.3, 5.0)), 8)
    0.67355977
    """
    lam, delta = argument("signal", signal, POSITIVE), argument("step", step, POSITIVE)
    m0, tau = argument("start", start, between(-1, 1)), argument("times", times, NOT_NEGATIVE)
    kappa = 2 * delta * (lam - delta)
    # m^{-2} solves a linear equation: m^{-2} = e^{−2κτ}/m_0² + 4δλ(1+δ) ∫_0^τ e^{−2κ(τ−s)} ds
    return _inverse_square(m0, 2 * kappa * tau, 4 * delta * lam * (1 + delta) * tau)


def _inverse_square(m0: Array, x: Array, source: Array) -> Array:
    """m with m^{-2} = e^{−x}/m_0² + source·(1 − e^{−x})/x, whatever overflows on the way."""
    size = jnp.abs(x)
    safe = jnp.where(size < 1e-8, 1.0, size)
    mean = jnp.where(size < 1e-8, 1 - size / 2, -jnp.expm1(-safe) / safe)
    # For x < 0 the whole is e^{|x|}(1/m_0² + source·(1 − e^{−|x|})/|x|).
    away = m0 != 0
    log = jnp.log(jnp.where(away, jnp.abs(m0), 1.0))
    below = jnp.exp(jnp.where(x >= 0, -size, 0.0) - 2 * log) + source * mean
    found = jnp.sign(m0) * jnp.exp(jnp.where(x >= 0, 0.0, -size / 2)) / jnp.sqrt(jnp.where(away, below, 1.0))
    return jnp.where(away, found, 0.0)


def pca_plateau(signal: ArrayLike, step: ArrayLike) -> Array:
    """m_* = √((λ − δ)/(λ(1 + δ))), 0 where δ ≥ λ: what a constant step recovers.

    >>> round(float(pca_plateau(1.0, 0.3)), 10)
    0.7337993857
    """
    lam, delta = argument("signal", signal, POSITIVE), argument("step", step, POSITIVE)
    excess = jnp.maximum(lam - delta, 0.0)
    inside = excess > 0
    return jnp.where(inside, jnp.sqrt(jnp.where(inside, excess, 1.0) / (lam * (1 + delta))), 0.0)


def phase_retrieval_correlation(
    start: ArrayLike, step: ArrayLike, times: ArrayLike, *, noise: ArrayLike = 0.0
) -> Array:
    """The link z² in closed form: dm/dτ = m[κ(1 − m²) − 8δ²σ²], κ = 8δ − 96δ², σ = `noise` the labels' deviation.

    >>> round(float(phase_retrieval_correlation(0.1, 0.03, 20.0)), 10)
    0.9081585389
    """
    m0, delta = argument("start", start, between(-1, 1)), argument("step", step, POSITIVE)
    tau, sigma = argument("times", times, NOT_NEGATIVE), argument("noise", noise, NOT_NEGATIVE)
    kappa = 8 * delta - 96 * delta**2
    rate = kappa - 8 * delta**2 * sigma**2
    # m^{-2} solves a linear equation with rate 2·rate and source 2κ
    return _inverse_square(m0, 2 * rate * tau, 2 * kappa * tau)


@functools.cache
def pca_deviation_rate(signal: float, start: float, step: float, time: float, level: float) -> float:
    """I in P(m_N(τ) is beyond `level`) = exp(−N(I + o(1))) for online PCA, `level` not being where the ODE leads.

    N times what a step adds to m is, to leading order, z(2δqe − 2δ²mz), with z = ⟨x, Y⟩ and e across: a quadratic form
    of two Gaussians, so that log E exp(p·) = H(m, p) = −½ log(1 − 2pv(m) − 4p²D(m)), v the velocity of the ODE and
    D = δ²(1 − m²)(1 + λ). I is the action ∫(p dm − H dτ) of the solution of Hamilton's equations from m_0 to the level
    in the time τ. Of a long time only the last twelve relaxation times matter, before which the path is the ODE's.

    >>> round(pca_deviation_rate(1.0, 0.6, 0.3, 4.0, 0.3), 3)
    0.12
    """
    lam, delta = (float(number(name, value, POSITIVE)) for name, value in (("signal", signal), ("step", step)))
    number("time", time, POSITIVE)
    for name, value in (("start", start), ("level", level)):
        number(name, value, inside(-1, 1))
    rate = max(4 * delta * (lam - delta), 2 * delta * (delta - lam))
    if rate * time > 12:
        start = float(pca_correlation(lam, start, delta, time - 12 / rate))
        time = 12 / rate
    end = float(pca_correlation(lam, start, delta, time))
    if level == end:
        return 0.0
    side = -1.0 if level < end else 1.0

    def flow(state):
        m, p, _ = state
        q2, square = 1 - m**2, m**2
        v = 2 * delta * m * (lam * q2 - delta * (1 + lam * square))
        v_slope = 2 * delta * (lam * (1 - 3 * square) - delta * (1 + 3 * lam * square))
        noise, noise_slope = delta**2 * (1 + lam) * q2, -2 * delta**2 * (1 + lam) * m
        inside = 1 - 2 * p * v - 4 * p**2 * noise
        inside = np.where(inside > 0, inside, np.nan)
        speed = (v + 4 * p * noise) / inside
        return np.stack([speed, -(p * v_slope + 2 * p**2 * noise_slope) / inside, p * speed + np.log(inside) / 2])

    def ends(p):
        state, h = np.stack([np.full_like(p, start), p, np.zeros_like(p)]), time / STEPS
        for _ in range(STEPS):
            first = flow(state)
            second = flow(state + h / 2 * first)
            third = flow(state + h / 2 * second)
            fourth = flow(state + h * third)
            state = state + h / 6 * (first + 2 * second + 2 * third + fourth)
        return state

    # p_0 from its largest possible size, where H ends, down to nothing; a path that leaves the sphere has gone too far.
    # The action of the last one that stays short of the level is returned: no more than I.
    v = 2 * delta * start * (lam * (1 - start**2) - delta * (1 + lam * start**2))
    noise = delta**2 * (1 + lam) * (1 - start**2)
    most = (-v + side * np.sqrt(v**2 + 4 * noise)) / (4 * noise)
    shares = np.concatenate([np.geomspace(1e-14, 0.5, 130), 1 - np.geomspace(0.5, 1e-6, 40)[1:]])
    tried, action = most * shares, 0.0
    with np.errstate(all="ignore"):
        for _ in range(3):
            m, _, cost = ends(tried)
            short = (side * (m - level) < 0) & (np.abs(m) <= 1)
            first = int(np.argmin(short)) if not short.all() else len(tried)
            action = max(action, float(cost[first - 1])) if first > 0 else action
            if first == len(tried):
                break
            tried = np.linspace(tried[max(first - 1, 0)], tried[first], 60)
    return action
