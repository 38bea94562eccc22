r"""The edge of stability: how much curvature gradient descent bears, with and without momentum."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array

from deeplimits.numerics import arguments
from deeplimits.numerics.checks import valid
from deeplimits.numerics.shapes import Floats, Scalar

METHODS = ("gd", "heavy-ball", "nesterov")


class ProductEnd(NamedTuple):
    """Where training of (⟨u, v⟩ − 1)²/2 ends."""

    u: Floats
    v: Floats

    @property
    def sharpness(self) -> Scalar:
        """The largest eigenvalue of the Hessian at a minimum, |u|² + |v|²."""
        return jnp.sum(self.u**2) + jnp.sum(self.v**2)


def stability_threshold(step: ArrayLike, *, method: str = "gd", momentum: ArrayLike = 0.0) -> Floats:
    """The largest curvature at which a method with this learning rate is stable on a quadratic.

    Setting     curvature h, learning rate `step` η, `momentum` β; heavy ball θ' = θ + β(θ − θ₋) − ηhθ; Nesterov
                y = θ + β(θ − θ₋), θ' = y − ηhy
    Result      gd 2/η; heavy-ball 2(1 + β)/η; nesterov (2/η)(1 + β)/(1 + 2β)
    Validity    0 ≤ β < 1; sharpness of the loss that is descended, averaged as it is there
    References  cohen2021; polyak1964

    >>> [round(float(stability_threshold(0.1, method=method, momentum=0.9)), 6) for method in METHODS]
    [20.0, 38.0, 13.571429]
    """
    eta = arguments.argument("step", step, arguments.POSITIVE)
    beta = _momentum(momentum)
    arguments.choice("method", method, METHODS)
    factor = {"gd": 1.0, "heavy-ball": 1 + beta, "nesterov": (1 + beta) / (1 + 2 * beta)}[method]
    return 2 / eta * factor


def growth_factor(curvature: ArrayLike, step: ArrayLike, *, method: str = "gd", momentum: ArrayLike = 0.0) -> Floats:
    """By which factor a method multiplies its distance from the minimum of a quadratic, a step, after many of them.

    Setting     as `stability_threshold`; `curvature` h
    Result      the modulus of the larger root of z² − τz + δ: gd τ = 1 − ηh, δ = 0; heavy-ball τ = 1 + β − ηh, δ = β;
                nesterov τ = (1 + β)(1 − ηh), δ = β(1 − ηh)
    References  polyak1964

    >>> edges = [stability_threshold(0.1, method=one, momentum=0.9) for one in METHODS]
    >>> [round(float(growth_factor(h, 0.1, method=one, momentum=0.9)), 9) for one, h in zip(METHODS, edges)]
    [1.0, 1.0, 1.0]
    """
    h = arguments.argument("curvature", curvature, arguments.FINITE)
    eta = arguments.argument("step", step, arguments.POSITIVE)
    beta = _momentum(momentum)
    arguments.choice("method", method, METHODS)
    kept = 1 - eta * h
    trace, determinant = {
        "gd": (kept, 0 * kept),
        "heavy-ball": (kept + beta, beta + 0 * kept),
        "nesterov": ((1 + beta) * kept, beta * kept),
    }[method]
    discriminant = trace**2 - 4 * determinant
    apart = (jnp.abs(trace) + jnp.sqrt(jnp.maximum(discriminant, 0.0))) / 2
    # A complex pair has the modulus √δ.
    return jnp.where(discriminant >= 0, apart, jnp.sqrt(jnp.abs(determinant)))


def product_flow(u: ArrayLike, v: ArrayLike) -> ProductEnd:
    """Where gradient flow on (⟨u, v⟩ − 1)²/2 ends, for numbers or vectors u, v.

    Result      u + v and u − v keep their directions and the product of their lengths; at the end ⟨u, v⟩ = 1 and
                |u|² + |v|² = √(|u₀ + v₀|²|u₀ − v₀|² + 4), the final sharpness, at least 2
    Validity    u₀ + v₀ ≠ 0 (else the flow ends in the saddle at 0)
    References  zhu2023

    >>> round(float(product_flow(3.0, 0.1).sharpness), 10)  # √((u₀² − v₀²)² + 4)
    9.2097828422
    """
    u0 = arguments.array("u", u, (), ("d",))
    v0 = arguments.array("v", v, u0.shape, why="as many numbers as u has")
    total, apart = u0 + v0, u0 - v0
    plus, minus = jnp.sqrt(jnp.sum(total**2)), jnp.sqrt(jnp.sum(apart**2))
    sentence = "u + v = 0: the flow ends in the saddle at the origin; start elsewhere"
    plus = valid(plus, plus > 0, sentence)
    sharpness = jnp.hypot(plus * minus, 2.0)
    # |u + v|² = S + c, |u − v|² = S − c with c = 2⟨u, v⟩ = 2; S − 2 = (|u₀+v₀||u₀−v₀|)²/(S + 2) without cancellation
    along = total / plus * jnp.sqrt(sharpness + 2)
    across = apart * plus / jnp.sqrt(sharpness + 2)
    return ProductEnd((along + across) / 2, (along - across) / 2)


def product_descent(u: ArrayLike, v: ArrayLike, step: ArrayLike, steps: int) -> ProductEnd:
    """Gradient descent on (⟨u, v⟩ − 1)²/2 after so many steps, by its two invariant lengths.

    u + v and u − v are multiplied by 1 ∓ η(⟨u, v⟩ − 1) at every step.

    >>> end = product_descent(3.0, 0.1, 0.2, 2000)
    >>> round(0.2 * float(end.sharpness), 12)  # below 2, where the flow's end is unstable
    1.748955786715
    """
    u0 = arguments.array("u", u, (), ("d",))
    v0 = arguments.array("v", v, u0.shape, why="as many numbers as u has")
    eta = arguments.number("step", step, arguments.POSITIVE)
    plus, minus = jnp.sum((u0 + v0) ** 2), jnp.sum((u0 - v0) ** 2)

    def advance(_, factors):
        grown, fallen = factors
        pull = eta * ((plus * grown**2 - minus * fallen**2) / 4 - 1)
        return grown * (1 - pull), fallen * (1 + pull)

    ones = (jnp.ones(()), jnp.ones(()))
    grown, fallen = jax.lax.fori_loop(0, arguments.whole("steps", steps), advance, ones)
    along, across = (u0 + v0) * grown, (u0 - v0) * fallen
    return ProductEnd((along + across) / 2, (along - across) / 2)


def _momentum(momentum: ArrayLike) -> Array:
    allowed = arguments.Allowed(lambda x: (x >= 0) & (x < 1), "at least 0 and below 1")
    return arguments.argument("momentum", momentum, allowed)
