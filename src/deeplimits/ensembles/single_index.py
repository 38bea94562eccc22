"""Finitely many neurons on a sphere that learn a single-index target by spherical gradient flow, in weight space."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

# The classical Runge-Kutta method.
SHARES = np.array([0.0, 0.5, 0.5, 1.0])
PARTS = np.array([1, 2, 2, 1]) / 6


def population_risk(
    a: Float[Array, " m"],
    u: Float[Array, "m d"],
    direction: Float[Array, " d"],
    target: Array,
    activation_coefficients: Array,
) -> Float[Array, ""]:
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
    epsilon: Float[Array, ""],
    step: Float[Array, ""],
    marks: tuple[int, ...],
) -> Float[Array, " times"]:
    """Risk after the marked numbers of classical Runge-Kutta steps: ε ȧ = −m ∂_a R, u̇ = −m (I − uuᵀ) ∂_u R."""
    neurons = a.shape[0]

    def velocity(state):
        grad_a, grad_u = jax.grad(population_risk, (0, 1))(*state, direction, target, activation_coefficients)
        tangent = grad_u - jnp.sum(grad_u * state[1], axis=1, keepdims=True) * state[1]
        return -neurons * grad_a / epsilon, -neurons * tangent

    def advance(_, state):
        # Each stage looks from a share of the step along the one before; the right-hand side is compiled once.
        def stage(carry, weights):
            slope, total = carry
            share, part = weights
            slope = velocity(jax.tree.map(lambda x, dx: x + share * step * dx, state, slope))
            return (slope, jax.tree.map(lambda x, dx: x + part * step * dx, total, slope)), None

        at_rest = jax.tree.map(jnp.zeros_like, state)
        (_, following), _ = jax.lax.scan(stage, (at_rest, state), (SHARES, PARTS))
        return following[0], following[1] / jnp.linalg.norm(following[1], axis=1, keepdims=True)

    def to_mark(state, ends):
        state = jax.lax.fori_loop(ends[0], ends[1], advance, state)
        return state, population_risk(state[0], state[1], direction, target, activation_coefficients)

    ends = jnp.asarray(marks)
    begins = jnp.concatenate([jnp.zeros_like(ends[:1]), ends[:-1]])
    return jax.lax.scan(to_mark, (a, u), (begins, ends))[1]
