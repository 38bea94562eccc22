"""The effective ridge κ(λ): a random matrix regularized by λ acts like its mean regularized by κ ≥ λ.

One scalar equation serves sample covariance matrices (κ = 1/s̲(−λ), s̲ the companion transform), ridge regression in
high dimension, and ridge regression on random features.
"""

import jax.numpy as jnp
from jax.typing import ArrayLike

from deeplimits.models.atoms import Atoms, as_atoms
from deeplimits.numerics.arguments import NOT_NEGATIVE, argument, array, probabilities
from deeplimits.numerics.ranks import same_rank
from deeplimits.numerics.roots import bracketed
from deeplimits.numerics.shapes import Floats

AT_THRESHOLD = 1e-12
"""A ratio that differs from the interpolation threshold by less is at it."""
NO_ROOT = "the effective ridge was not found; check that population and gamma are finite and not negative"


def effective_ridge(ridge: ArrayLike, population: Atoms | ArrayLike, gamma: ArrayLike) -> Floats:
    """κ ≥ 0 with λ/κ + γ Σ_k w_k t_k/(t_k + κ) = 1, for λ ≥ 0 and a population Σ w_k δ(t_k); differentiable.

    `ridge` λ and `gamma` broadcast against each other; a list is a population of equal weights. At λ = 0 the root is 0
    when γ times the mass off zero is at most one, and positive otherwise.

    The left side falls with κ; its root is found in log κ, between bounds.

    >>> from deeplimits.models.atoms import atoms
    >>> round(float(effective_ridge(0.3, atoms([1.0, 4.0]), 2.0)), 10)
    2.5963616313
    >>> round(float(effective_ridge(0.0, atoms([1.0, 4.0]), 2.0)), 14)
    2.0
    >>> float(effective_ridge(0.0, [1.0], 0.5))
    0.0
    """
    population = as_atoms("population", population)
    lam = argument("ridge", ridge, NOT_NEGATIVE)
    places = array(
        "population.values", population.values, ("atoms",), allowed=NOT_NEGATIVE, why="eigenvalues of a covariance"
    )
    t, w = places, probabilities("population.weights", population.weights, places.size)
    gamma = argument("gamma", gamma, NOT_NEGATIVE)
    lam, gamma = jnp.broadcast_arrays(lam, gamma)
    # Without ridge and with more samples than directions nothing is left of κ = λ/(1 − γ H{t > 0}) but its slope.
    room = 1 - gamma * jnp.sum(jnp.where(t > 0, w, 0.0))
    # A ratio that differs from the threshold by rounding is at the threshold.
    room = jnp.where(jnp.abs(room) < AT_THRESHOLD, 0.0, room)
    vanishes = (lam == 0) & (room >= 0)
    vanishing = lam / jnp.where(room > 0, room, 1.0)
    lam = jnp.where(vanishes, 1.0, lam)
    # κ = λ + γ Σ w t κ/(t + κ) lies between λ and λ + γ Σ w t, and above t_min (γ H{t > 0} − 1).
    most = jnp.log(lam + gamma * jnp.sum(w * t)) + 1
    smallest = jnp.min(jnp.where(t > 0, t, jnp.inf))
    least = jnp.log(jnp.maximum(lam, jnp.where(room < 0, -room * smallest, 0.0))) - 1
    log_kappa = bracketed(_excess, least, most, lam, t, w, gamma, where=~vanishes, sentence=NO_ROOT)
    return jnp.where(vanishes, vanishing, jnp.exp(log_kappa))


def _excess(log_kappa, lam, t, w, gamma):
    kappa = jnp.exp(log_kappa)
    mass = gamma * jnp.sum(jnp.where(t > 0, w, 0.0))
    # Beside the threshold γH{t > 0} = 1 the sum is 1 up to what κ takes away: that alone, without forming the sum.
    t, w, shift = same_rank(t, w, kappa[..., None])
    taken = gamma * jnp.sum(jnp.where(t > 0, w, 0.0) * shift / (t + shift), axis=-1)
    seen = gamma * jnp.sum(w * t / (t + shift), axis=-1)
    return lam / kappa + jnp.where(mass < 2, (mass - 1) - taken, seen - 1)
