"""Finitely many neurons on a sphere that learn a single-index target by spherical gradient flow, in weight space."""

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from deeplimits.ensembles import trainers
from deeplimits.numerics import runge_kutta
from deeplimits.numerics.shapes import Scalar


def population_risk(
    a: Float[Array, " m"],
    u: Float[Array, "m d"],
    direction: Float[Array, " d"],
    target: Array,
    activation_coefficients: Array,
) -> Scalar:
    """E(φ(⟨u*,x⟩) − (1/m)Σ a_i σ(⟨u_i,x⟩))²/2 for unit vectors, from E He_l(⟨u,x⟩)He_l(⟨v,x⟩) = ⟨u,v⟩^l."""
    alignment, gram = u @ direction, u @ u.T
    mean = a / a.shape[0]
    degrees = range(len(target))
    cross = sum(target[l] * activation_coefficients[l] * mean @ alignment**l for l in degrees)
    own = sum(activation_coefficients[l] ** 2 * mean @ gram**l @ mean for l in degrees)
    return jnp.sum(target**2) / 2 - cross + own / 2


def spherical_flow(
    a: Float[Array, " m"],
    u: Float[Array, "m d"],
    direction: Float[Array, " d"],
    target: Array,
    activation_coefficients: Array,
    epsilon: Scalar,
    step: Scalar,
    marks: tuple[int, ...],
) -> Float[Array, " times"]:
    """Risk after the marked numbers of classical Runge-Kutta steps: ε ȧ = −m ∂_a R, u̇ = −m (I − uuᵀ) ∂_u R."""
    neurons = a.shape[0]

    start, restore = ravel_pytree((a, u))

    def velocity(t, place):
        a, u = restore(place)
        grad_a, grad_u = jax.grad(population_risk, (0, 1))(a, u, direction, target, activation_coefficients)
        tangent = grad_u - jnp.sum(grad_u * u, axis=1, keepdims=True) * u
        return ravel_pytree((-neurons * grad_a / epsilon, -neurons * tangent))[0]

    def advance(_, place):
        a, u = restore(runge_kutta.kutta(velocity, jnp.zeros(()), place, step))
        return ravel_pytree((a, u / jnp.linalg.norm(u, axis=1, keepdims=True)))[0]

    def to_mark(begin, end, place):
        place = jax.lax.fori_loop(begin, end, advance, place)
        a, u = restore(place)
        return place, population_risk(a, u, direction, target, activation_coefficients)

    return trainers.to_marks(to_mark, start, marks).seen
