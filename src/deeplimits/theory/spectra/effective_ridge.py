"""The effective ridge κ(λ): a random matrix regularized by λ acts like its mean regularized by κ ≥ λ.

One scalar equation serves sample covariance matrices (κ = 1/s̲(−λ), s̲ the companion transform), ridge regression in
high dimension, and ridge regression on random features.
"""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.errors import ParameterError
from deeplimits.tracing import is_traced

Floats = Float[Array, "..."]

# Roots this far below the largest possible one, in natural logarithms, count as zero.
DEEPEST = 90.0
HALVINGS = 64
AT_THRESHOLD = 1e-12


def effective_ridge(ridge: ArrayLike, values: ArrayLike, weights: ArrayLike, gamma: ArrayLike) -> Floats:
    """κ ≥ 0 with λ/κ + γ Σ_k w_k t_k/(t_k + κ) = 1, for λ ≥ 0 and a population Σ w_k δ(t_k); differentiable.

    `ridge` λ and `gamma` broadcast against each other, `values` and `weights` have shape (k,). At λ = 0 the root is 0
    when γ times the mass off zero is at most one, and positive otherwise.

    The left side falls with κ. Bisection in log κ finds its root, and one Newton step carries the gradients.

    >>> round(float(effective_ridge(0.3, [1.0, 4.0], [0.5, 0.5], 2.0)), 10)
    2.5963616313
    >>> float(effective_ridge(0.0, [1.0, 4.0], [0.5, 0.5], 2.0)), float(effective_ridge(0.0, [1.0], [1.0], 0.5))
    (2.0, 0.0)
    """
    lam, t, w, gamma = (jnp.asarray(part, float) for part in (ridge, values, weights, gamma))
    if not is_traced(lam) and not bool(jnp.all(lam >= 0)):
        raise ParameterError(f"ridge = {lam} is not allowed; it must be at least 0")
    lam, gamma = jnp.broadcast_arrays(lam, gamma)
    # Without ridge and with more samples than directions nothing is left of κ = λ/(1 − γ H{t > 0}) but its slope.
    room = 1 - gamma * jnp.sum(jnp.where(t > 0, w, 0.0))
    # A ratio that differs from the threshold by rounding is at the threshold.
    room = jnp.where(jnp.abs(room) < AT_THRESHOLD, 0.0, room)
    vanishes = (lam == 0) & (room >= 0)
    vanishing = lam / jnp.where(room > 0, room, 1.0)
    lam = jnp.where(vanishes, 1.0, lam)

    def excess(log_kappa, lam, t, w, gamma):
        kappa = jnp.exp(log_kappa)
        return lam / kappa + gamma * jnp.sum(w * t / (t + kappa[..., None]), axis=-1) - 1

    frozen = jax.lax.stop_gradient((lam, t, w, gamma))

    def halve(_, ends):
        low, high = ends
        middle = (low + high) / 2
        above = excess(middle, *frozen) > 0
        return jnp.where(above, middle, low), jnp.where(above, high, middle)

    # κ = λ + γ Σ w t κ/(t + κ) lies between λ and λ + γ Σ w t.
    most = jnp.log(frozen[0] + frozen[3] * jnp.sum(frozen[2] * frozen[1]))
    least = jnp.maximum(most - DEEPEST, jnp.log(jnp.where(frozen[0] > 0, frozen[0], 1e-300)))
    low, high = jax.lax.fori_loop(0, HALVINGS, halve, (least, most))
    root = jax.lax.stop_gradient((low + high) / 2)
    slope = jax.jvp(lambda u: excess(u, *frozen), (root,), (jnp.ones_like(root),))[1]
    found = jnp.exp(root - excess(root, lam, t, w, gamma) / slope)
    return jnp.where(vanishes, vanishing, found)
