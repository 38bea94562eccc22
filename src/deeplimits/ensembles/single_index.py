"""Finitely many neurons on a sphere that learn a single-index target by spherical gradient flow, in weight space."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


def population_risk(
    a: Float[Array, " m"], u: Float[Array, "m d"], direction: Float[Array, " d"], target: Array, activation: Array
) -> Float[Array, ""]:
    """E(φ(⟨u*,x⟩) − (1/m)Σ a_i σ(⟨u_i,x⟩))²/2 for unit vectors, from E He_l(⟨u,x⟩)He_l(⟨v,x⟩) = ⟨u,v⟩^l."""
    alignment, gram = u @ direction, u @ u.T
    mean = a / a.shape[0]
    degrees = range(len(target))
    cross = sum(target[l] * activation[l] * mean @ alignment**l for l in degrees)
    own = sum(activation[l] ** 2 * mean @ gram**l @ mean for l in degrees)
    return jnp.sum(target**2) / 2 - cross + own / 2


def spherical_flow(
    a: Float[Array, " m"],
    u: Float[Array, "m d"],
    direction: Float[Array, " d"],
    target: Array,
    activation: Array,
    epsilon: Float[Array, ""],
    step: Float[Array, ""],
    marks: tuple[int, ...],
) -> Float[Array, " times"]:
    """Risk after the marked numbers of classical Runge-Kutta steps: ε ȧ = −m ∂_a R, u̇ = −m (I − uuᵀ) ∂_u R."""
    neurons = a.shape[0]

    def velocity(state):
        grad_a, grad_u = jax.grad(population_risk, (0, 1))(*state, direction, target, activation)
        tangent = grad_u - jnp.sum(grad_u * state[1], axis=1, keepdims=True) * state[1]
        return -neurons * grad_a / epsilon, -neurons * tangent

    def add(state, change, factor):
        return jax.tree.map(lambda x, dx: x + factor * dx, state, change)

    def advance(_, state):
        k1 = velocity(state)
        k2 = velocity(add(state, k1, step / 2))
        k3 = velocity(add(state, k2, step / 2))
        k4 = velocity(add(state, k3, step))
        total = jax.tree.map(lambda a, b, c, d: (a + 2 * b + 2 * c + d) / 6, k1, k2, k3, k4)
        following = add(state, total, step)
        return following[0], following[1] / jnp.linalg.norm(following[1], axis=1, keepdims=True)

    def to_mark(state, ends):
        state = jax.lax.fori_loop(ends[0], ends[1], advance, state)
        return state, population_risk(state[0], state[1], direction, target, activation)

    ends = jnp.asarray(marks)
    begins = jnp.concatenate([jnp.zeros_like(ends[:1]), ends[:-1]])
    return jax.lax.scan(to_mark, (a, u), (begins, ends))[1]
