r"""The exact kernels of an infinitely wide implicit network at given points, with a certificate.

A point's own variance does not depend on other points: A_i = σ_a²E φ(√A_i ξ)² + σ_b²|x_i|²/p is iterated first. The
kernel of a pair then solves one equation of one unknown, whose slope Price's theorem gives: Newton's method.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.errors import NotConverged, OutsideValidity
from deeplimits.models.activations import Activation, ActivationLike
from deeplimits.numerics.arguments import FINITE, NOT_NEGATIVE, POSITIVE, array, number
from deeplimits.numerics.shapes import Scalar
from deeplimits.theory.gaussian import moments
from deeplimits.theory.mixtures.dual_matrices import dual_matrix
from deeplimits.theory.mixtures.implicit import MOST_ROUNDS, STILL, continuous

_NOT_REACHED = f"the fixed point was not reached in {MOST_ROUNDS} rounds"


class Fixed(NamedTuple):
    """Kernels of an infinitely wide implicit network at given points, with what certifies them."""

    conjugate: Float[Array, "n n"]
    tangent: Float[Array, "n n"]
    residual: Scalar
    """The largest change of an entry in another round, relative to the largest entry."""
    contraction: Scalar
    """The largest σ_a² E φ'(u)² among the points: entries off by ε are off by less than ε/(1 − contraction)."""


def equilibrium_kernels(
    activation: ActivationLike,
    recurrent_variance: float,
    input_variance: float,
    x: ArrayLike,
    *,
    mean: float = 0.0,
    tolerance: float = 1e-12,
) -> Fixed:
    """Conjugate and tangent kernel of an infinitely wide implicit network at any points, as a fixed point.

    Setting     rows x; φ − `mean` is the activation (`Equilibrium.mean` for the one that the equivalents speak of)
    Result      G = E φ(u)φ(v), (u, v) of covariance Λ = σ_a²G + σ_b²xx'/p; K = (G + σ_b²Ġ∘xx'/p)/(1 − σ_a²Ġ) entry by
                entry, Ġ = E φ'(u)φ'(v)
    Validity    the certificate σ_a²E φ'(u_i)² < 1 at every point, else an error names the point; `residual` says how
                far another round would move. Activations with kinks and no closed form are integrated pair by pair,
                which takes minutes for a hundred points
    References  ling2024; bai2019

    >>> import numpy as np
    >>> found = equilibrium_kernels("identity", 0.5, 1.0, np.eye(2) * 2**0.5)
    >>> found.conjugate.round(10).tolist(), float(found.contraction)  # G = 0.5G + 1
    ([[2.0, 0.0], [0.0, 2.0]], 0.5)
    """
    sigma = continuous(activation)
    points = array("x", x, ("n", "p"), why="one point in each row")
    s_a = float(number("recurrent_variance", recurrent_variance, NOT_NEGATIVE))
    s_b = float(number("input_variance", input_variance, POSITIVE))
    centre = float(number("mean", mean, FINITE))
    accuracy = float(number("tolerance", tolerance, POSITIVE))
    driven = s_b / points.shape[1] * (points @ points.T)
    own, worst, least = _diagonal(sigma, s_a, jnp.einsum("ii->i", driven), centre, accuracy)
    conjugate = _Round(sigma, s_a, driven, own, centre)
    # |G_ij| ≤ √(G_ii G_jj), and G − E φφ increases with G_ij, by between 1 − and 1 + the contraction.
    high = jnp.sqrt(own[:, None]) * jnp.sqrt(own[None, :])
    low, g, change = -high, jnp.zeros_like(high), math.inf
    for _ in range(MOST_ROUNDS):
        g = conjugate.with_diagonal(g)
        following, slope = conjugate(g)
        miss = following - g
        size = jnp.maximum(jnp.max(jnp.abs(following)), 1e-300)
        change = float(jnp.max(jnp.abs(miss)) / size)
        if change <= accuracy:
            tangent = (g + slope * driven) / (1 - s_a * slope)
            return Fixed(g, (tangent + tangent.T) / 2, jnp.asarray(max(change, least)), jnp.asarray(worst))
        # Newton's method; where it leaves what is still possible, the middle of that. What is there stays.
        low, high = jnp.where(miss > 0, g, low), jnp.where(miss < 0, g, high)
        step = g + miss / (1 - s_a * slope)
        step = jnp.where((step >= low) & (step <= high), step, (low + high) / 2)
        g = jnp.where(jnp.abs(miss) > accuracy / 10 * size, step, g)
    raise NotConverged(f"{_NOT_REACHED} (the last moved by {change:.3g}); take a larger tolerance")


class _Round(NamedTuple):
    """E φ(u)φ(v) and E φ'(u)φ'(v) at the covariance that a state leaves."""

    activation: Activation
    gain: float
    driven: Float[Array, "n n"]
    """σ_b²xx'/p"""
    own: Float[Array, " n"]
    """G_ii"""
    centre: float

    def with_diagonal(self, g: Array) -> Array:
        places = jnp.arange(self.own.size)
        return ((g + g.T) / 2).at[places, places].set(self.own)

    def __call__(self, g: Array) -> tuple[Array, Array]:
        inner = self.gain * g + self.driven
        found, slope = (dual_matrix(self.activation, inner, slope=one) for one in (False, True))
        if self.centre:
            means = moments.mean(self.activation, jnp.einsum("ii->i", inner))
            found = found - self.centre * (means[:, None] + means[None, :]) + self.centre**2
        return self.with_diagonal(found), (slope + slope.T) / 2


class _Diagonal(NamedTuple):
    """G_ii of each point, the largest σ_a²E φ'(u_i)², and how far the last round moved."""

    own: Float[Array, " n"]
    worst: float
    change: float


def _diagonal(sigma: Activation, s_a: float, driven: Array, centre: float, accuracy: float) -> _Diagonal:
    """Each point by itself, from an empty state."""
    own, change = jnp.zeros_like(driven), math.inf
    for _ in range(MOST_ROUNDS):
        a = s_a * own + driven
        following = moments.second_moment(sigma, a)
        if centre:
            following = following - 2 * centre * moments.mean(sigma, a) + centre**2
        change = float(jnp.max(jnp.abs(following - own)) / jnp.maximum(jnp.max(jnp.abs(following)), 1e-300))
        own = following
        # Ten times as exact as the rest will be, which is looked at with this diagonal.
        if not change > max(accuracy / 10, STILL) or not math.isfinite(change):
            break
        if float(jnp.max(own)) > 1e12 * (1 + float(jnp.max(driven))):
            break
    slopes = moments.slope_moment(sigma, s_a * own + driven) if math.isfinite(change) else jnp.full(1, jnp.inf)
    worst = float(jnp.max(s_a * slopes))
    if not worst < 1:
        raise OutsideValidity(
            f"no stable fixed point: the certificate σ_a² E φ'(u)² < 1 fails at point {int(jnp.argmax(slopes))}, where "
            f"it is {worst:.6g}; lower recurrent_variance"
        )
    if change > accuracy:
        raise NotConverged(f"{_NOT_REACHED} (the last moved by {change:.3g}); lower recurrent_variance")
    return _Diagonal(own, worst, change)
