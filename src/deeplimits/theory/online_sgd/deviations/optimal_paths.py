r"""The likeliest way of SGD with small steps to somewhere else than the gradient flow leads.

The cheapest path solves Hamilton's equations ẋ = H_p, ṗ = −H_x from x(0) = x_0 to where it must end. Both are
polynomials through values at Chebyshev points, found by Newton's method, and followed from the gradient flow, which
costs nothing, to the end asked for.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from deeplimits.errors import DeeplimitsError, NotConverged, OutsideValidity, ParameterError
from deeplimits.numerics import arguments, chebyshev
from deeplimits.theory.online_sgd.deviations.hamiltonian import Hamiltonian, as_vector

POINTS = (16, 24, 36, 54, 80)
"""Chebyshev points of the path, tried in this order until two give one rate."""
CERTAIN = 1e-8
NEWTON = 30
STAGES = 8
"""How many ends between that of the gradient flow and the one asked for are visited, at first."""


class Deviation(NamedTuple):
    """A rate I: probabilities are exp(−(I + o(1))/δ) for steps δ → 0. And the path that does it."""

    rate: float
    times: np.ndarray
    path: np.ndarray
    """The likeliest path at those times, one point in each row."""
    momentum: np.ndarray
    residual: float
    """How far the rate of two thirds of the points is away."""


class _Problem(NamedTuple):
    """The equations at n + 1 points, compiled: residual and Jacobian in (x, p, μ), and the action of a solution."""

    times: np.ndarray
    both: Callable
    action: Callable


def deviation_to(hamiltonian: Hamiltonian, start: ArrayLike, end: ArrayLike, horizon: float) -> Deviation:
    """The rate I at which SGD with small steps is at `end` at time T: P = exp(−(I + o(1))/δ).

    Setting     X_l = X_{l−1} − δ∇L(X_{l−1}, Y_l) in fixed dimension, X_0 = `start`, t = δl ≤ T (`horizon`)
    Limit       δ → 0
    Result      I = min ∫(⟨p, ẋ⟩ − H(x, p))dt over paths from start to end, H(x, p) = log E exp(−⟨p, ∇L(x, Y)⟩)
    Validity    E exp(−⟨p, ∇L⟩) finite along the path; H smooth and strictly convex in p; the local minimum that is
                reached from the gradient flow by moving its end straight to `end`
    References  freidlin2012; kushner2003

    >>> linear = deviation_to(lambda x, p: p @ p / 2 - p @ x, [0.0], [0.5], 1.0)
    >>> round(linear.rate, 8)  # ε²/(1 − e^{−2T})
    0.28912941
    """
    x0, target = as_vector("start", start), as_vector("end", end)
    if target.shape != x0.shape:
        raise ParameterError(f"end has shape {target.shape}; start has {x0.shape}")
    time = float(arguments.number("horizon", horizon, arguments.POSITIVE))

    def found(points):
        problem = _equations(hamiltonian, len(x0), points, False)(x0, time)
        free = _gradient_flow(problem, x0)
        there = free[: (points + 1) * len(x0)].reshape(-1, len(x0))[-1]
        return problem, _followed(problem, free, lambda share: there + share * (target - there))

    return _settled(found, len(x0))


def tube_exit(
    hamiltonian: Hamiltonian, start: ArrayLike, deviation: float, horizon: float, *, moments: int = 8
) -> Deviation:
    """The rate I(ε) at which SGD with small steps leaves the tube of radius ε around the gradient flow before T.

    Setting     as in `deviation_to`; x̄ the gradient flow, ε = `deviation`
    Limit       δ → 0
    Result      P(sup_{t≤T}|X_t − x̄_t| > ε) = exp(−(I + o(1))/δ), I the least rate to any point at distance ε from x̄_t
                at any t ≤ T
    Validity    as in `deviation_to`; of the points at distance ε those are tried that are reached from both ends of
                every principal axis of the Gaussian fluctuations, at `moments` times and between
    References  freidlin2012; kushner2003

    >>> exit = tube_exit(lambda x, p: p @ p / 2 - p @ x, [0.3], 0.5, 1.0)
    >>> round(exit.rate, 8), round(float(exit.times[-1]), 6)
    (0.28912941, 1.0)
    """
    x0 = as_vector("start", start)
    radius = float(arguments.number("deviation", deviation, arguments.POSITIVE))
    time = float(arguments.number("horizon", horizon, arguments.POSITIVE))
    arguments.whole("moments", moments, 2)
    equations = functools.cache(lambda points: _equations(hamiltonian, len(x0), points, True))
    ways = [(axis, side) for axis in range(len(x0)) for side in (1.0, -1.0)]

    def at(way, moment, last=POINTS[1]):
        def found(points):
            problem = equations(points)(x0, moment)
            return problem, _to_the_tube(problem, x0, radius, *way)

        return _settled(found, len(x0), last)

    grid = time * np.arange(1, moments + 1) / moments
    best, where, first = np.inf, None, None
    for way in ways:
        for moment in grid:
            try:
                rate = at(way, moment).rate
            except DeeplimitsError as error:
                # One way may be closed, as where no sample pushes; all of them are not.
                first = first or error
                continue
            if rate < best:
                best, where = rate, (way, moment)
    if where is None:
        assert first is not None
        raise first
    way, moment = where
    if moment < time:
        moment = _least(lambda t: at(way, t).rate, max(moment - time / moments, 1e-3 * moment), moment + time / moments)
    return at(way, moment, POINTS[-1])


def _least(function: Callable[[float], float], low: float, high: float) -> float:
    from scipy.optimize import minimize_scalar  # here, because few tubes are left before their end

    found: Any = minimize_scalar(function, bounds=(low, high), method="bounded", options={"xatol": 1e-6 * high})
    return float(found.x)


def _equations(hamiltonian: Hamiltonian, dimension: int, points: int, tube: bool) -> Callable[..., _Problem]:
    """The equations on so many points, compiled once for all starts and times: a function of these."""
    rule = chebyshev.collocation(points)
    # From the first point to the last in time: reversed.
    derivative, weights = jnp.asarray(2 * rule.derivative[::-1, ::-1]), jnp.asarray(rule.weights / 2)
    size = points + 1
    h_p = jax.vmap(jax.grad(hamiltonian, 1))
    h_x = jax.vmap(jax.grad(hamiltonian, 0))

    def residual(vector, goal, x0, time):
        x, p = vector[: 2 * size * dimension].reshape(2, size, dimension)
        moving = (derivative @ x / time - h_p(x, p))[1:]
        pushed = (derivative @ p / time + h_x(x, p))[:-1]
        if tube:
            # p_T = μ(x_T − x̄_T) at |x_T − x̄_T| = ε: no point of the sphere is cheaper near this one.
            out, multiplier = x[-1] - goal[:-1], vector[-1]
            end = jnp.concatenate([p[-1] - multiplier * out, (out @ out - goal[-1] ** 2)[None]])
        else:
            end = x[-1] - goal
        return jnp.concatenate([x[0] - x0, moving.ravel(), pushed.ravel(), end])

    @jax.jit
    def both(vector, goal, x0, time):
        return residual(vector, goal, x0, time), jax.jacfwd(residual)(vector, goal, x0, time)

    @jax.jit
    def action(vector, time):
        x, p = vector[: 2 * size * dimension].reshape(2, size, dimension)
        cost = jax.vmap(lambda x, p: p @ jax.grad(hamiltonian, 1)(x, p) - hamiltonian(x, p))(x, p)
        return time * weights @ cost

    def problem(x0, time):
        return _Problem(
            time * (1 - rule.points) / 2,
            lambda vector, goal: both(vector, goal, x0, time),
            lambda vector: action(vector, time),
        )

    return problem


def _newton(problem: _Problem, vector: np.ndarray, goal: np.ndarray) -> np.ndarray | None:
    """The solution near `vector`, or None where Newton's method with halved steps does not find one."""
    with np.errstate(all="ignore"):
        value, slope = (np.asarray(part) for part in problem.both(vector, goal))
        size = np.max(np.abs(value))
        for _ in range(NEWTON):
            if size <= 1e-10 * (1 + np.max(np.abs(vector))):
                return vector
            if not np.all(np.isfinite(slope)):
                return None
            step = np.linalg.lstsq(slope, -value, rcond=1e-14)[0]
            for halving in range(6):
                trial = vector + step / 2**halving
                new, new_slope = (np.asarray(part) for part in problem.both(trial, goal))
                if np.max(np.abs(new)) < size:
                    break
            else:
                return None
            vector, value, slope, size = trial, new, new_slope, np.max(np.abs(new))
    return None


def _gradient_flow(problem: _Problem, x0: np.ndarray) -> np.ndarray:
    """The path with p = 0, which solves ẋ = H_p(x, 0): from x_0 at rest, by Newton's method in growing pieces of it."""
    size, dimension = len(problem.times), len(x0)
    vector = np.concatenate([np.tile(x0, size), np.zeros(size * dimension)])
    # Momentum rows and columns are left out: p = 0 solves them.
    rows, columns = slice(0, size * dimension), slice(0, size * dimension)
    for _ in range(100):
        value, slope = (np.asarray(part) for part in problem.both(vector, vector[:dimension]))
        if not np.all(np.isfinite(value[rows])):
            break
        step = np.linalg.solve(slope[rows, columns], -value[rows])
        vector[columns] += step
        if np.max(np.abs(step)) <= 1e-11 * (1 + np.max(np.abs(vector))):
            return vector
    raise NotConverged("the gradient flow was not found on the points of the path; take a shorter horizon")


def _followed(problem: _Problem, vector: np.ndarray, goal: Callable[[float], np.ndarray]) -> np.ndarray:
    """The solution for goal(1), followed from that for goal(0), with steps that are halved where one fails."""
    share, stride, before = 0.0, 1 / STAGES, None
    while share < 1:
        ahead = min(1.0, share + stride)
        # Straight on from the last two solutions
        guess = vector if before is None else vector + (vector - before[1]) * (ahead - share) / (share - before[0])
        found = _newton(problem, guess, goal(ahead))
        if found is None:
            stride /= 2
            if stride < 1e-4:
                raise OutsideValidity(
                    f"no path was found to more than {share:.2g} of the way: beyond it the samples may not carry that "
                    "far in this time; take a nearer end or a longer horizon"
                )
            continue
        before, vector, share = (share, vector), found, ahead
        stride = min(1.4 * stride, 0.25)
    return vector


def _to_the_tube(problem: _Problem, x0: np.ndarray, radius: float, axis: int, side: float) -> np.ndarray:
    size, dimension = len(problem.times), len(x0)
    free = np.append(_gradient_flow(_without_end(problem), x0), 0.0)
    centre = free[: size * dimension].reshape(size, -1)[-1]
    # How x_T answers to p_T along the gradient flow is the covariance of the Gaussian fluctuations: its axes.
    slope = np.asarray(problem.both(free, np.append(centre, 0.0))[1])[: 2 * size * dimension, : 2 * size * dimension]
    forced = np.zeros((2 * size * dimension, dimension))
    forced[-dimension:] = np.eye(dimension)
    answers = np.linalg.solve(slope, forced)
    covariance = answers[: size * dimension].reshape(size, dimension, dimension)[-1]
    values, axes = np.linalg.eigh((covariance + covariance.T) / 2)
    if not values[axis] > 0:
        raise OutsideValidity("the samples do not move SGD across the gradient flow in one direction; leave it out")
    small = radius / STAGES
    guess = free.copy()
    guess[:-1] += side * small / values[axis] * (answers @ axes[:, axis])
    guess[-1] = 1 / values[axis]
    first = _newton(problem, guess, np.append(centre, small))
    if first is None:
        raise NotConverged("no path to a small deviation was found; take a shorter horizon")
    return _followed(problem, first, lambda share: np.append(centre, small + share * (radius - small)))


def _without_end(problem: _Problem) -> _Problem:
    """The same equations for vectors without the multiplier; their last rows are not looked at."""

    def both(vector, goal):
        value, slope = problem.both(np.append(vector, 0.0), np.append(goal, 1.0))
        return value, np.asarray(slope)[:, :-1]

    return problem._replace(both=both)


def _settled(found: Callable, dimension: int, last: int = POINTS[-1]) -> Deviation:
    """More and more points, until the rate stays; at most `last` of them."""
    rate, gap = np.nan, np.inf
    for points in POINTS:
        if points > last:
            break
        problem, vector = found(points)
        before, rate = rate, float(problem.action(vector))
        gap = abs(rate - before)
        if gap <= CERTAIN * (1e-3 + abs(rate)):
            size = len(problem.times) * dimension
            path, momentum = (part.reshape(-1, dimension) for part in (vector[:size], vector[size : 2 * size]))
            return Deviation(rate, problem.times, path, momentum, gap)
    raise NotConverged(f"the rate is uncertain by {gap:.2g}, the path being too steep; take a shorter horizon")
