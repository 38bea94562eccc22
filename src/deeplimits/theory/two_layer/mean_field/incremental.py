r"""Single-index targets: a wide network learns their Hermite components one degree after the other.

y = φ(⟨u*, x⟩), neurons a_i σ(⟨u_i, x⟩) with ‖u_i‖ = 1, s_i = ⟨u_i, u*⟩; φ_l, σ_l normalized Hermite coefficients,
V(s) = Σ φ_l σ_l s^l, U(r) = Σ σ_l² r^l; ε = 1/ρ_a is the time scale of the second layer over that of the first:

    ε ȧ_i = V(s_i) − Σ_j ω_j a_j U(s_i s_j),   ṡ_i = a_i (1 − s_i²) [V'(s_i) − Σ_j ω_j a_j s_j U'(s_i s_j)]
"""

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float
from numpy.typing import ArrayLike

from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.numerics import arguments, flows
from deeplimits.numerics.checks import converged
from deeplimits.numerics.shapes import Scalar

UNREACHED = "the equations need more steps than allowed; raise epsilon or ask for earlier times"


class SingleIndex(eqx.Module):
    """The problem: Hermite coefficients of the target and of the activation, lowest degree first, and ε."""

    target: Float[Array, " degrees"]
    activation_coefficients: Float[Array, " degrees"]
    epsilon: Scalar

    def __init__(self, target: ArrayLike, activation_coefficients: ArrayLike, epsilon: ArrayLike):
        self.target = arguments.argument("target", target, arguments.FINITE)
        self.activation_coefficients = arguments.argument(
            "activation_coefficients", activation_coefficients, arguments.FINITE
        )
        self.epsilon = arguments.argument("epsilon", epsilon, arguments.POSITIVE)
        if self.target.ndim != 1 or self.target.shape != self.activation_coefficients.shape or self.target.size == 0:
            raise ParameterError(
                f"target and activation_coefficients have shapes {self.target.shape} and "
                f"{self.activation_coefficients.shape}; give as many "
                "Hermite coefficients of one as of the other"
            )


class Learning(NamedTuple):
    """Neurons, components and risk at each time."""

    times: Float[Array, " times"]
    a: Float[Array, "times n"]
    s: Float[Array, "times n"]
    residuals: Float[Array, "times degrees"]
    """φ_l − σ_l Σ_i ω_i a_i s_i^l: what is left of each component."""
    risk: Float[Array, " times"]
    converged: Bool[Array, ""]


def residuals(problem: SingleIndex, a: Array, s: Array, weights: Array) -> Float[Array, " degrees"]:
    """What is left of each Hermite component."""
    return problem.target - problem.activation_coefficients * (_powers(s, len(problem.target)) @ (weights * a))


def _powers(s: Array, count: int) -> Float[Array, "degrees n"]:
    powers = [jnp.ones_like(s)]
    for _ in range(1, count):
        powers.append(powers[-1] * s)
    return jnp.stack(powers)


def learning_time(problem: SingleIndex, a: ArrayLike, degree: int, latest: float, *, share: float = 0.5) -> float:
    """When a component is learnt: the first time at which `share` of φ_l is left of it, found to rounding.

    From amplitudes `a` and s = 0, equal weights. As ε → 0 these times are those of `incremental_time_scales`, up to
    constants for degrees of two or more.

    >>> problem = SingleIndex([0.5, 1.0, 0.8], [0.7, 1.0, 0.6], 1e-4)
    >>> round(learning_time(problem, [1.0], 1, 10.0), 5)
    0.43328
    """
    arguments.of_kind("problem", problem, SingleIndex)
    degrees = len(problem.target)
    place = arguments.whole("degree", degree, 0)
    if place >= degrees:
        raise ParameterError(f"degree = {place} is not allowed; the target has degrees 0 to {degrees - 1}")
    part = float(arguments.number("share", share, arguments.inside(0, 1)))
    end = float(arguments.number("latest", latest, arguments.POSITIVE))
    start = arguments.array("a", a, ("n",))
    weights = jnp.full(start.shape, 1 / start.size)
    wanted = problem.target[place]
    if not float(wanted) * float(problem.activation_coefficients[place]) != 0:
        raise OutsideValidity(f"degree = {place} is not in the target or not in the activation, and is never learnt")
    there = residuals(problem, start, jnp.zeros_like(start), weights)[place]
    if not abs(float(there)) > part * abs(float(wanted)):
        raise ParameterError(f"degree = {place} is learnt to more than the share {part:g} already at the start")
    found = flows.solve_until(
        lambda t, y: tuple(velocity(problem, y[0], y[1], weights)),
        (start, jnp.zeros_like(start)),
        lambda t, y: jnp.abs(residuals(problem, y[0], y[1], weights)[place]) <= part * jnp.abs(wanted),
        latest=end,
        first_step=1e-3 * float(problem.epsilon),
        exactly=True,
        rtol=1e-9,
        atol=1e-11,
        stiff=True,
        most_steps=50_000,
        otherwise=f"the component of degree {place} is not learnt before t = {end:g}; raise latest",
    )
    return float(found.t)


class Velocity(NamedTuple):
    """(ȧ, ṡ)."""

    a: Array
    s: Array


def velocity(problem: SingleIndex, a: Array, s: Array, weights: Array) -> Velocity:
    """(ȧ, ṡ), through the residuals: Σ_l σ_l r_l s^l and its derivative."""
    count = len(problem.target)
    left = problem.activation_coefficients * residuals(problem, a, s, weights)
    powers = _powers(s, count)
    slopes = jnp.concatenate([jnp.zeros((1, *s.shape)), powers[:-1] * jnp.arange(1.0, count)[:, None]])
    return Velocity(left @ powers / problem.epsilon, a * (1 - s**2) * (left @ slopes))


def incremental_learning(
    problem: SingleIndex,
    a: ArrayLike,
    times: ArrayLike,
    *,
    s: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    method: str = "implicit",
) -> Learning:
    """Solve the equations from a(0) and s(0), zero by default; stiff when ε is small, hence an implicit method.

    ``method="explicit"`` compiles three times faster and serves for ε of 0.01 or more.

    >>> problem = SingleIndex([0.5, 1.0, 0.8], [0.7, 1.0, 0.6], 1e-3)
    >>> round(float(incremental_learning(problem, [1.0], [1.0]).risk[0]), 9)
    0.165764453
    """
    a = jnp.asarray(a, float)
    times = arguments.times("times", times)
    s = jnp.zeros_like(a) if s is None else jnp.asarray(s, float)
    weights = jnp.full(a.shape, 1 / max(a.size, 1)) if weights is None else jnp.asarray(weights, float)
    if a.ndim != 1 or a.size == 0 or s.shape != a.shape or weights.shape != a.shape:
        raise ParameterError(f"a, s and weights have shapes {a.shape}, {s.shape}, {weights.shape}; all must be (n,)")
    arguments.argument("a", a, arguments.FINITE)
    arguments.argument("s", s, arguments.between(-1, 1), "a cosine")
    arguments.probabilities("weights", weights, len(a))
    arguments.choice("method", method, ("explicit", "implicit"))
    found = _solve(problem, a, s, weights, times, method)
    return converged(found, found.converged, UNREACHED)


@eqx.filter_jit
def _solve(problem: SingleIndex, a, s, weights, times, method: str) -> Learning:
    def slope(t, y):
        return velocity(problem, y[0], y[1], weights)

    stiff = method == "implicit"
    found = flows.solve(
        slope, (a, s), times, rtol=1e-9, atol=1e-11, stiff=stiff, most_steps=50_000, throw=False, otherwise=UNREACHED
    )
    amplitudes, alignments = found.states
    left = jax.vmap(lambda a, s: residuals(problem, a, s, weights))(amplitudes, alignments)
    risk = jnp.sum(left**2, axis=1) / 2
    return Learning(times, amplitudes, alignments, left, risk, found.converged)


def incremental_time_scales(problem: SingleIndex) -> np.ndarray:
    """Leading order, as ε → 0, of the time at which each degree is learnt; infinite where the activation lacks it.

    Degree 0: ε ln 2/σ₀². Degree 1: √ε ln(1/ε)/(4|φ₁σ₁|). Degree l ≥ 2: ε^{1/(2l)}, up to a constant left out.

    >>> [round(float(t), 6) for t in incremental_time_scales(SingleIndex([1.0, 1.0, 1.0], [1.0, 0.5, 0.0], 1e-4))]
    [6.9e-05, 0.046052, inf]
    """
    arguments.of_kind("problem", problem, SingleIndex)
    arguments.argument("epsilon", problem.epsilon, arguments.inside(0, 1), "the leading order as ε → 0")
    epsilon, phi, sigma = (
        float(problem.epsilon),
        np.asarray(problem.target),
        np.asarray(problem.activation_coefficients),
    )
    scales = []
    for degree, (p, s) in enumerate(zip(phi, sigma, strict=True)):
        if p * s == 0:
            scales.append(math.inf)
        elif degree == 0:
            scales.append(epsilon * math.log(2) / s**2)
        elif degree == 1:
            scales.append(math.sqrt(epsilon) * math.log(1 / epsilon) / (4 * abs(p * s)))
        else:
            scales.append(epsilon ** (1 / (2 * degree)))
    return np.array(scales)
