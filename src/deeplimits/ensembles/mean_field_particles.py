"""Neurons as interacting particles: noisy gradient descent of a wide network on data of any dimension."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, PRNGKeyArray

from deeplimits.ensembles import trainers
from deeplimits.ensembles.trainers import Marks
from deeplimits.errors import ParameterError
from deeplimits.numerics import draws
from deeplimits.numerics.arguments import NOT_NEGATIVE, POSITIVE, Allowed, array, function, number
from deeplimits.numerics.checks import valid


class ParticlePath(NamedTuple):
    """The particles after `marks` steps, and the risk there."""

    particles: Float[Array, "marks p k"]
    risk: Float[Array, " marks"]
    """(1/2n) Σ (y − f)², without the ridge."""


def langevin_particles(
    key: PRNGKeyArray,
    feature: Callable[[Array, Array], Array],
    x: ArrayLike,
    y: ArrayLike,
    start: ArrayLike,
    marks: Marks,
    *,
    step: ArrayLike,
    ridge: ArrayLike = 0.0,
    inverse_temperature: ArrayLike = jnp.inf,
) -> ParticlePath:
    r"""p particles in R^k that follow the noisy gradient flow of their common risk, by Euler's steps.

    Setting     f = (1/p) Σ_i Φ(x; θ_i), R = (1/2n) Σ (y − f)²; θ_i ← θ_i − ε∇Ψ(θ_i) − ελθ_i + √(2ε/β) ξ,
                Ψ(θ) = −(1/n) Σ (y − f)Φ(x; θ); `feature` is Φ(θ, x) of one particle (k,) and one input (d,), `start`
                (p, k), `x` (n, d), `y` (n,), ε = `step`, λ = `ridge`, β = `inverse_temperature`, infinite: no noise
    Result      as p → ∞, ε → 0 the particles' law follows ∂_τρ = ∇·(ρ∇(Ψ + λ|θ|²/2)) + Δρ/β at τ = ε·steps; how far
                they are at finite p and ε `theory.two_layer.mean_field.chaos_bound` says
    Validity    steps below 2 over the largest curvature of Ψ + λ|θ|²/2; a path that runs away raises
    References  mei2018; rotskoff2022

    >>> x = jnp.array([[1.0], [-1.0]])
    >>> found = langevin_particles(jax.random.key(0), lambda t, x: t @ x, x, 2 * x[:, 0], jnp.zeros((5, 1)), [0, 200],
    ...                            step=0.1)
    >>> [round(float(risk), 8) for risk in found.risk]
    [2.0, 0.0]
    """
    phi = function("feature", feature)
    theta = array("start", start, ("p", "k"), why="one particle in each row")
    inputs = array("x", x, ("n", "d"), why="one input in each row")
    labels = array("y", y, (inputs.shape[0],), why="one label for each input")
    epsilon, weight = number("step", step, POSITIVE), number("ridge", ridge, NOT_NEGATIVE)
    beta = number("inverse_temperature", inverse_temperature, Allowed(lambda b: b > 0, "positive, or infinite"))
    shape = jax.eval_shape(phi, theta[0], inputs[0]).shape
    if shape != ():
        raise ParameterError(f"feature gives shape {shape} for one particle and one input; it must give one number")
    kick = jnp.sqrt(2 * epsilon / beta)

    def outputs(particles):
        return jax.vmap(lambda one: jax.vmap(lambda at: phi(one, at))(inputs))(particles)

    def risk(particles):
        return jnp.mean((labels - jnp.mean(outputs(particles), axis=0)) ** 2) / 2

    def advance(index, particles):
        found, pull = jax.vjp(outputs, particles)
        missing = (labels - jnp.mean(found, axis=0)) / len(labels)
        # −∇Ψ(θ_i) = (1/n) Σ (y − f)∇Φ(x; θ_i)
        upwards = pull(jnp.broadcast_to(missing, found.shape))[0]
        noise = jax.random.normal(draws.neighbour(key, index, word=0), particles.shape)
        return particles + epsilon * (upwards - weight * particles) + kick * noise

    def to_mark(begin, end, particles):
        particles = jax.lax.fori_loop(begin, end, advance, particles)
        return particles, ParticlePath(particles, risk(particles))

    found = trainers.to_marks(to_mark, theta, jnp.atleast_1d(jnp.asarray(marks, int))).seen
    return valid(found, jnp.all(jnp.isfinite(found.risk)), "the particles run away; take a smaller step")
