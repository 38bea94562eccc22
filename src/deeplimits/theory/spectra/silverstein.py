"""The map between a population and its sample covariance, in the variable in which it is explicit.

With the companion transform m̲ = −1/α Silverstein's equation z = −1/m̲ + γ∫ t dH(t)/(1 + t m̲) reads

    z = ψ(α) = α (1 + γ S₁(α)),   ψ'(α) = 1 − γ S₂(α),   S₁ = ∫ t dH/(α − t),   S₂ = ∫ t² dH/(α − t)².

ψ maps a part of the upper half plane one to one onto the upper half plane; for real α it is increasing exactly outside
the support. Im ψ(a + ib) = b (1 − γ∫ t² dH/((a − t)² + b²)), and the bracket increases with b: above every real a lies
at most one α with real ψ, which turns the whole law into an explicit curve over a. This module computes that curve for
a list of atoms, in JAX and differentiable; `sample_covariance` solves for α at given points.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


def height(a: Float[Array, " points"], t: Array, w: Array, gamma: Array) -> Float[Array, " points"]:
    """b(a) ≥ 0 with γ Σ w t²/((a − t)² + b²) = 1, zero where the sum at b = 0 is below one: a gap.

    The sum is convex and decreasing in s = b², so that Newton's steps from below never overshoot.
    """
    square = (a[:, None] - t) ** 2
    strength = gamma * w * t**2
    # The search itself carries no gradient; one last step does.
    frozen_square, frozen_strength = jax.lax.stop_gradient((square, strength))

    def excess(s, square, strength):
        return jnp.sum(strength / (square + s[:, None]), axis=1) - 1

    def slope(s):
        return -jnp.sum(frozen_strength / (frozen_square + s[:, None]) ** 2, axis=1)

    def step(state):
        s, _, count = state
        new = jnp.maximum(s - excess(s, frozen_square, frozen_strength) / slope(s), s)
        return new, jnp.max((new - s) / new), count + 1

    # Each term alone must not exceed one: s ≥ strength_k − square_k.
    start = jnp.maximum(jnp.max(frozen_strength - frozen_square, axis=1), 0.0)
    on_pole = jnp.min(frozen_square, axis=1) + start == 0
    gap = ~on_pole & (start == 0) & (excess(jnp.where(on_pole, 1.0, start), frozen_square, frozen_strength) <= 0)
    start = jnp.where(gap, 1.0, jnp.maximum(start, 1e-300))
    found = jax.lax.while_loop(lambda state: (state[1] > 1e-15) & (state[2] < 300), step, (start, jnp.inf, 0))[0]
    found = jax.lax.stop_gradient(found)
    s = found - excess(found, square, strength) / slope(found)
    inside = ~gap & (s > 0)
    return jnp.where(inside, jnp.sqrt(jnp.where(inside, s, 1.0)), 0.0)


class SpectralCurve(NamedTuple):
    """The law along the curve: places, densities, distribution function."""

    x: Array
    density: Array
    cdf: Array


def curve(a: Float[Array, " points"], t: Array, w: Array, gamma: Array) -> SpectralCurve:
    """The law at the points Re ψ above real a, for a population Σ w_k δ(t_k); differentiable in everything."""
    b = height(a, t, w, gamma)
    offset = a[:, None] - t
    distance = offset**2 + b[:, None] ** 2
    distance = jnp.where(distance > 0, distance, 1.0)
    # x = a + γ Σ w t (1 + t(a − t)/|α − t|²)
    x = a + gamma * jnp.sum(w * t * (1 + t * offset / distance), axis=1)
    modulus = a**2 + b**2
    # ρ = Im m̲/(πγ) = b/(πγ|α|²)
    density = b / (jnp.pi * gamma * jnp.where(modulus > 0, modulus, 1.0))
    angle = jnp.arctan2(b, a)
    angles = jnp.arctan2(jnp.broadcast_to(b[:, None], offset.shape), offset)
    # 1 − F(x) = {arg α + γ Σ w [arg(α − t) − arg α − tb/|α − t|²]}/(πγ)
    seen = w * jnp.where(t > 0, 1.0, 0.0)
    upper = angle + gamma * jnp.sum(seen * (angles - angle[:, None]) - w * t * b[:, None] / distance, axis=1)
    return SpectralCurve(x, density, 1 - upper / (jnp.pi * gamma))


def slope_at(alpha: Float[Array, ""], t: Array, w: Array, gamma: Array) -> Float[Array, ""]:
    """ψ'(α) at real α."""
    return 1 - gamma * jnp.sum(w * t**2 / (alpha - t) ** 2)


def outer_ends(t: Array, w: Array, gamma: Array) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """The two α at which the support begins and ends, t increasing; traceable and differentiable.

    ψ' falls from 1 to −∞ on (−∞, t_min) and rises from −∞ to 1 on (t_max, ∞).
    """
    smallest = jnp.min(jnp.where(t > 0, t, jnp.inf))
    # γ Σ w t²/(α − t)² ≤ γ Σ w t²/(distance to the nearest atom)²
    reach = jnp.sqrt(gamma * jnp.sum(w * t**2))
    low = _zero_of_slope(smallest, smallest - reach, t, w, gamma)
    high = _zero_of_slope(t[-1], t[-1] + reach, t, w, gamma)
    return low, high


def _zero_of_slope(negative, positive, t, w, gamma):
    """The zero of ψ' between a point near which it is negative and one where it is positive, with its gradient."""
    frozen = jax.lax.stop_gradient((t, w, gamma))

    def halve(_, ends):
        below, above = ends
        middle = (below + above) / 2
        falls = slope_at(middle, *frozen) < 0
        return jnp.where(falls, middle, below), jnp.where(falls, above, middle)

    root = jax.lax.fori_loop(0, 70, halve, jax.lax.stop_gradient((negative, positive)))[1]
    bend = jax.grad(slope_at)(root, *frozen)
    return root - slope_at(root, t, w, gamma) / bend


def mean_square_shrinkage(law: SpectralCurve, a: Array, t: Array, w: Array, gamma: Array) -> Float[Array, ""]:
    """∫ d(λ)² dμ(λ) along a curve: d = |α|²/λ in the bulk, −α₀/(γ − 1) on the null space, ψ(α₀) = 0."""
    b = height(a, t, w, gamma)
    best = (a**2 + b**2) / law.x
    steps = jnp.diff(law.cdf)
    # The first and last half step, from the ends of the curve, carry the value of the nearest point.
    zero = jnp.maximum(1 - 1 / gamma, 0.0)
    bulk = jnp.sum(steps * (best[1:] ** 2 + best[:-1] ** 2) / 2)
    bulk = bulk + (law.cdf[0] - zero) * best[0] ** 2 + (1 - law.cdf[-1]) * best[-1] ** 2
    wide = gamma > 1
    safe = jnp.where(wide, gamma, 2.0)
    null = -_preimage_of_zero(t, w, safe) / (safe - 1)
    return bulk + jnp.where(wide, zero * null**2, 0.0)


def _preimage_of_zero(t, w, gamma):
    """α₀ < 0 with γ Σ w t/(t − α₀) = 1, for γ > 1, in the logarithm of −α₀, with its gradient."""

    def excess(log_a, t, w, gamma):
        return gamma * jnp.sum(w * t / (t + jnp.exp(log_a))) - 1

    frozen = jax.lax.stop_gradient((t, w, gamma))

    def halve(_, ends):
        low, high = ends
        middle = (low + high) / 2
        above = excess(middle, *frozen) > 0
        return jnp.where(above, middle, low), jnp.where(above, high, middle)

    top = jnp.log(frozen[2] * jnp.max(frozen[0]))
    root = jax.lax.fori_loop(0, 70, halve, (top - 60.0, top))[0]
    return -jnp.exp(root - excess(root, t, w, gamma) / jax.grad(excess)(root, *frozen))
