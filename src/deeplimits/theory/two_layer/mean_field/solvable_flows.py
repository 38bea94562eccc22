r"""Mean-field flows that close: linear neurons with noise, and quadratic neurons."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.numerics import arguments, flows
from deeplimits.numerics.shapes import Floats


class Gaussian(NamedTuple):
    """Mean and variance of a normal law."""

    mean: Floats
    variance: Floats


def noisy_linear_neuron(
    start: Gaussian, times: ArrayLike, target: ArrayLike, ridge: ArrayLike, inverse_temperature: ArrayLike
) -> Gaussian:
    """Φ = θx with x ~ N(0, 1), y = cx, noisy flow dθ = −∇(Ψ + λθ²/2) dτ + √(2/β) dB: a Gaussian law stays Gaussian.

    m(τ) = c/(1+λ) + (m₀ − c/(1+λ)) e^{−(1+λ)τ},  v(τ) = 1/(βλ) + (v₀ − 1/(βλ)) e^{−2λτ}

    >>> law = noisy_linear_neuron(Gaussian(jnp.zeros(()), jnp.ones(())), 0.7, 2.0, 0.5, 10.0)
    >>> round(float(law.mean), 12), round(float(law.variance), 12)
    (0.866749667852, 0.597268243033)
    """
    arguments.of_kind("start", start, Gaussian)
    tau, c, lam, beta = (jnp.asarray(value, float) for value in (times, target, ridge, inverse_temperature))
    check_temperature(lam, beta)
    arguments.argument("times", tau, arguments.NOT_NEGATIVE)
    arguments.argument("target", c, arguments.FINITE)
    arguments.argument("start.mean", start.mean, arguments.FINITE)
    arguments.argument("start.variance", start.variance, arguments.NOT_NEGATIVE)
    settled = c / (1 + lam)
    spread = 1 / (beta * lam)
    return Gaussian(
        settled + (start.mean - settled) * jnp.exp(-(1 + lam) * tau),
        spread + (start.variance - spread) * jnp.exp(-2 * lam * tau),
    )


def check_temperature(ridge: ArrayLike, inverse_temperature: ArrayLike) -> None:
    """Raise where noise has no normalizable stationary law."""
    arguments.argument("inverse_temperature", inverse_temperature, arguments.POSITIVE)
    lam = arguments.argument("ridge", ridge, arguments.NOT_NEGATIVE)
    if arguments.known(lam) and np.any(np.asarray(lam) == 0):
        raise OutsideValidity("ridge = 0 with noise leaves no normalizable stationary law; take λ > 0")


class QuadraticFlow(NamedTuple):
    """A = ∫θθᵀdρ and the risk, at the times asked for."""

    second_moment: Float[Array, "times d d"]
    risk: Float[Array, " times"]


def quadratic_neurons(second_moment: ArrayLike, target: ArrayLike, times: ArrayLike) -> QuadraticFlow:
    r"""Φ = ⟨θ, x⟩², teacher xᵀA*x: the flow closes on A = ∫θθᵀdρ, at any number of neurons.

    θ̇ = −Gθ, Ȧ = −(GA + AG), G = 4D + 2 tr(D) I, D = A − A*; R = tr D² + ½ (tr D)². Answers A and R at each time.

    >>> a, r = quadratic_neurons([[0.5]], [[2.0]], [0.1])  # A*/(1 + (A*/A₀ − 1) e^{−12A*τ})
    >>> round(float(a[0, 0, 0]), 7)
    1.5721369
    """
    start, goal = jnp.asarray(second_moment, float), jnp.asarray(target, float)
    if start.ndim != 2 or start.shape != goal.shape or start.shape[0] != start.shape[1]:
        raise ParameterError(
            f"second_moment and target have shapes {start.shape} and {goal.shape}; both must be (d, d)"
        )
    identity = jnp.eye(start.shape[0])

    def slope(t, a):
        gap = a - goal
        pull = 4 * gap + 2 * jnp.trace(gap) * identity
        moved = pull @ a
        return -(moved + moved.T)

    sentence = "the flow of quadratic neurons diverges or needs too many steps; ask for earlier times"
    # From a small start the growth is exponential, and an error of its own size would be multiplied.
    least = float(jnp.max(jnp.abs(start))) if arguments.known(start) else 1.0
    found = flows.solve(slope, start, times, atol=max(1e-12 * min(least, 1.0), 1e-300), otherwise=sentence)
    gaps = found.states - goal[None]
    traces = jnp.trace(gaps, axis1=1, axis2=2)
    return QuadraticFlow(found.states, jnp.sum(gaps**2, axis=(1, 2)) + traces**2 / 2)
