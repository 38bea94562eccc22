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

from deeplimits.models.atoms import Atoms
from deeplimits.numerics.checks import converged
from deeplimits.numerics.ranks import same_rank
from deeplimits.numerics.roots import bracketed
from deeplimits.numerics.shapes import Floats, Scalar
from deeplimits.theory.spectra.marchenko_pastur_formulas import Edges
from deeplimits.theory.spectra.ridge_equation import AT_THRESHOLD

MOST_STEPS = 300
MOVED = 1e-12
"""The last Newton step, relative to the height squared, must be below this."""


def height(a: Float[Array, " points"], population: Atoms, gamma: Array) -> Float[Array, " points"]:
    """b(a) ≥ 0 with γ Σ w t²/((a − t)² + b²) = 1, zero where the sum at b = 0 is below one: a gap.

    The sum is convex and decreasing in s = b², so that Newton's steps from below never overshoot.
    """
    t, w = (jnp.asarray(part) for part in population)
    square = (a[:, None] - t[None, :]) ** 2
    strength = (gamma * w * t**2)[None, :]
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
    start = start, jnp.inf, 0
    found, moved, _ = jax.lax.while_loop(lambda state: (state[1] > 1e-15) & (state[2] < MOST_STEPS), step, start)
    found = converged(jax.lax.stop_gradient(found), moved < MOVED, "the height of Silverstein's curve was not found")
    s = found - excess(found, square, strength) / slope(found)
    inside = ~gap & (s > 0)
    return jnp.where(inside, jnp.sqrt(jnp.where(inside, s, 1.0)), 0.0)


class SpectralCurve(NamedTuple):
    """The law along the curve: places, densities, distribution function."""

    x: Array
    density: Array
    cdf: Array


def curve(a: Float[Array, " points"], population: Atoms, gamma: Array) -> SpectralCurve:
    """The law at the points Re ψ above real a, for a `population` Σ w_k δ(t_k); differentiable in everything."""
    t, w = (jnp.asarray(part)[None, :] for part in population)
    b = height(a, population, gamma)
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


def slope_at(alpha: Floats, population: Atoms, gamma: Array) -> Floats:
    """ψ'(α) at real α; −∞ at an atom, and an atom at zero counts for nothing."""
    t, w, at = same_rank(*population, alpha[..., None])
    distance = jnp.where(t > 0, at - t, 1.0)
    return 1 - gamma * jnp.sum(w * (t / distance) ** 2, axis=-1)


def outer_ends(population: Atoms, gamma: Array) -> Edges:
    """The two α at which the support begins and ends, t increasing; traceable and differentiable.

    ψ' falls from 1 to −∞ on (−∞, t_min) and rises from −∞ to 1 on (t_max, ∞).
    """
    t, w = (jnp.asarray(part) for part in population)
    nearest = jnp.stack([jnp.min(jnp.where(t > 0, t, jnp.inf)), t[-1]])
    # γ Σ w t²/(α − t)² ≤ γ Σ w t²/(distance to the nearest atom)²
    reach = 1.01 * jnp.sqrt(gamma * jnp.sum(w * t**2))
    far = nearest + reach * jnp.array([-1.0, 1.0])
    low, high = bracketed(slope_at, nearest, far, population, gamma, sentence="an end of the support was not found")
    return Edges(low, high)


def nonlinear_shrinkage_loss(law: SpectralCurve, a: Array, population: Atoms, gamma: Array) -> Scalar:
    """∫ t² dH − ∫ d² dμ along a curve, d = |α|²/λ: what remains when each û keeps its best eigenvalue d = û'Σû.

    An eigenvector û at λ has the share w_k t_k/|α − t_k|², normalized, of its square in the eigenspace of t_k, in the
    null space w_k/(t_k − α₀) with ψ(α₀) = 0; d is the mean of t under these shares and the loss their mean variance.
    Summed as such it is a sum of positive terms: where a sample tells the atoms apart, the difference loses all digits.
    """
    t, w = (jnp.asarray(part) for part in population)
    b = height(a, population, gamma)
    distance = (a[:, None] - t[None, :]) ** 2 + b[:, None] ** 2
    spread = _variance((w * t)[None, :] / jnp.where(distance > 0, distance, 1.0), t[None, :])
    zero = jnp.maximum(1 - 1 / gamma, 0.0)
    bulk = jnp.sum(jnp.diff(law.cdf) * (spread[1:] + spread[:-1]) / 2)
    # The first and last half step, from the ends of the curve, carry the value of the nearest point.
    bulk = bulk + (law.cdf[0] - zero) * spread[0] + (1 - law.cdf[-1]) * spread[-1]
    wide = gamma > 1
    start = _preimage_of_zero(t, w, jnp.where(wide, gamma, 2.0))
    return bulk + jnp.where(wide, zero * _variance(w / (t - start), t), 0.0)


def _variance(shares: Array, t: Array) -> Array:
    """The variance of t under shares that need not sum to one."""
    shares = shares / jnp.sum(shares, axis=-1, keepdims=True)
    mean = jnp.sum(shares * t, axis=-1, keepdims=True)
    return jnp.sum(shares * (t - mean) ** 2, axis=-1)


def _preimage_of_zero(t, w, gamma):
    """α₀ < 0 with γ Σ w t/(t − α₀) = 1, for γ > 1, in the logarithm of −α₀."""
    seen = gamma * jnp.sum(jnp.where(t > 0, w, 0.0)) - 1
    exists = seen > AT_THRESHOLD
    top = jnp.log(gamma * jnp.max(t)) + 1
    # t_min(γH{t > 0} − 1) ≤ −α₀ ≤ γ t_max; without enough mass off zero there is no such point, and 0 in its place.
    bottom = jnp.log(seen * jnp.min(jnp.where(t > 0, t, jnp.inf))) - 1
    bottom = jnp.where(exists, bottom, -jnp.inf)
    sentence = "the preimage of zero was not found"
    return -jnp.exp(bracketed(_excess, bottom, top, t, w, gamma, where=exists, sentence=sentence))


def _excess(log_a, t, w, gamma):
    t, w, shift = same_rank(t, w, jnp.exp(log_a)[..., None])
    return gamma * jnp.sum(w * t / (t + shift), axis=-1) - 1
