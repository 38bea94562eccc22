r"""One quadratic neuron that learns one quadratic neuron: escape from mediocrity (phase retrieval).

σ = x², p = k = 1, a = a* = 1; M the overlap with the teacher, Q the student's norm, P the teacher's:

    Ṁ = 6M(P − Q),   Q̇ = 4(PQ + 2M² − 3Q²) + 4γ[3P²Q + 12PM² − 6PQ² − 24QM² + 15Q³ + ΔQ]
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
from numpy.typing import ArrayLike

from deeplimits.numerics import flows
from deeplimits.numerics.arguments import NOT_NEGATIVE, POSITIVE, argument
from deeplimits.numerics.checks import valid
from deeplimits.numerics.shapes import Scalar

EULER_GAMMA = 0.5772156649015329
SPAN = 12.0
"""How far below the level, in ln M, the way to it begins: what is left out is of the order of e⁻²⁴."""


class Mediocrity(NamedTuple):
    """The plateau M = 0: its norm Q, the growth rate of M on it, and the noise that drives M away from 0."""

    norm: Scalar
    growth: Scalar
    diffusion: Scalar
    """D in Var(dM) = D (γ/d) dt."""
    upper: Scalar
    """The upper root Q on M = 0: a student that starts with a larger norm diverges there; infinite at γ = 0."""


def discriminant(step: Any, *, noise_variance: Any = 0.0, teacher: Any = 1.0) -> Any:
    """9 − 24γP − 144γ²P² − 60γ²Δ: where it is negative there is no plateau and SGD diverges. Numbers or arrays."""
    g, delta = argument("step", step, NOT_NEGATIVE), argument("noise_variance", noise_variance, NOT_NEGATIVE)
    p = argument("teacher", teacher, POSITIVE)
    return 9 - 24 * g * p - 144 * g**2 * p**2 - 60 * g**2 * delta


def mediocrity(step: ArrayLike, *, noise_variance: ArrayLike = 0.0, teacher: ArrayLike = 1.0) -> Mediocrity:
    """The plateau on M = 0: the lower root of 15γQ² − (3 + 6γP)Q + (P + 3γP² + γΔ) = 0.

    >>> round(float(mediocrity(0.05).norm), 12)
    0.381575773735
    """
    g = argument("step", step, NOT_NEGATIVE)
    delta = argument("noise_variance", noise_variance, NOT_NEGATIVE)
    p = argument("teacher", teacher, POSITIVE)
    inside = discriminant(g, noise_variance=delta, teacher=p)
    inside = valid(
        inside,
        inside >= 0,
        "the step leaves no plateau, and the student's norm diverges; without noise and with a teacher of norm one it "
        "must be at most 0.18019",
        lambda: f" (step = {g}, teacher = {p}, noise_variance = {delta})",
    )
    # The smaller root as c/(the larger one), which is finite also at γ = 0.
    norm = 2 * (p + 3 * g * p**2 + g * delta) / (3 + 6 * g * p + jnp.sqrt(jnp.maximum(inside, 0.0)))
    # Var(E σ' λ*) at M = 0 by Wick: 4 E[(λ*² − λ²)² λ² λ*²] + 4ΔPQ
    strength = 4 * p * norm * (15 * p**2 - 18 * p * norm + 15 * norm**2 + delta)
    moves = g > 0
    upper = (3 + 6 * g * p + jnp.sqrt(jnp.maximum(inside, 0.0))) / (30 * jnp.where(moves, g, 1.0))
    return Mediocrity(norm, 6 * (p - norm), strength, jnp.where(moves, upper, jnp.inf))


class EscapeTime(NamedTuple):
    """t_esc ≃ (ln d)/(2λ) + (centre − ln|N|)/λ in law, N a standard normal variable."""

    growth: Scalar
    centre: Scalar

    def mean(self, dimension: ArrayLike) -> Scalar:
        """E t_esc, with E ln|N| = −(γ_E + ln 2)/2."""
        d = jnp.asarray(dimension, float)
        return (jnp.log(d) / 2 + self.centre + (EULER_GAMMA + jnp.log(2.0)) / 2) / self.growth


def escape_time(
    step: ArrayLike, noise_variance: ArrayLike, teacher: ArrayLike, level: ArrayLike, *, alignment: ArrayLike = 1.0
) -> EscapeTime:
    r"""When |M| first exceeds `level`, from a start on the plateau with M₀ = alignment × √(PQ/d) × a standard normal.

    On the plateau M is an Ornstein-Uhlenbeck process run backwards: M e^{−λt} → √(s/d) N with
    s = alignment² PQ + γD/(2λ). From there the deterministic equations carry it to the level, which takes
    (1/λ) ln(c/M) when M is small; c comes from those equations. Samples: d t/γ = O(d ln d).

    >>> law = escape_time(0.0, 0.0, 1.0, 0.5)
    >>> round(float(law.growth), 8)
    4.0
    """
    g, delta, p = (jnp.asarray(value, float) for value in (step, noise_variance, teacher))
    level = argument("level", level, POSITIVE)
    level = valid(
        level, level < p, "level is not below the teacher's norm, which |M| does not exceed; take a smaller one"
    )
    start = mediocrity(g, noise_variance=delta, teacher=p)
    s = jnp.asarray(alignment, float) ** 2 * p * start.norm + g * start.diffusion / (2 * start.growth)
    return EscapeTime(start.growth, _travel(g, delta, p, level, start) - jnp.log(s) / 2)


def _travel(g, delta, p, level, start: Mediocrity) -> Scalar:
    """lim_{M₀→0} λ t(M₀ → level) + ln M₀, by integrating dt/d ln M − 1/λ over ln M: the integrand vanishes like M²."""
    first = jnp.log(level) - SPAN

    def slope(u, y):
        # y = (Q, λ t − ln M), u = ln M − its first value
        m, q = jnp.exp(first + u), y[0]
        speed = 6 * (p - q)
        dq = 4 * (p * q + 2 * m**2 - 3 * q**2) + 4 * g * (
            3 * p**2 * q + 12 * p * m**2 - 6 * p * q**2 - 24 * q * m**2 + 15 * q**3 + delta * q
        )
        return jnp.stack([dq / speed, start.growth / speed - 1])

    at_rest = jnp.stack([start.norm, jnp.zeros(())])
    sentence = "the student's norm diverges before it escapes; take a smaller learning rate"
    found = flows.solve(slope, at_rest, [SPAN], rtol=1e-9, atol=1e-11, most_steps=20_000, otherwise=sentence)
    return found.states[0, 1] + jnp.log(level)
