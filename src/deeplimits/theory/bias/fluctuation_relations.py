r"""Fluctuation-dissipation relations from a user's own losses, with the noise of the batches averaged exactly."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.errors import ParameterError
from deeplimits.numerics.arguments import FINITE, POSITIVE, array, function, number
from deeplimits.numerics.checks import valid
from deeplimits.theory.bias.sgd_noise import batch_factors


class DissipationSides(NamedTuple):
    """Both sides of both relations at each position; over a stationary run their means are equal."""

    position_side: Float[Array, " positions"]
    """(θ − c)·∇L"""
    noise_side: Float[Array, " positions"]
    """(η/2) tr C̃, C̃ = E ∇L_B∇L_B'"""
    gradient_side: Float[Array, " positions"]
    """‖∇L‖²"""
    curvature_side: Float[Array, " positions"]
    """(η/2) tr(HC̃), H the Hessian of L"""


def fluctuation_dissipation(
    losses: Callable[[Array], Array],
    positions: ArrayLike,
    step: ArrayLike,
    batch: ArrayLike,
    sampling: str,
    *,
    centre: ArrayLike | None = None,
) -> DissipationSides:
    r"""The two relations that hold in any stationary run of SGD, at positions of the run.

    Setting     L = (1/m)Σ ℓ_k(θ), θ ← θ − η∇L_B with fresh batches of (mean) size B; `losses` gives (ℓ_1, …, ℓ_m) of a
                vector θ (d,), as a JAX function; `positions` (T, d) are taken from a stationary run; c any fixed point,
                by default their mean
    Result      ⟨(θ − c)·∇L⟩ = (η/2)⟨tr C̃⟩ exactly, at every η; ⟨‖∇L‖²⟩ = (η/2)⟨tr(HC̃)⟩ + O(η²), exactly if L is
                quadratic; C̃ = ∇L∇L' + κ(Σ g_kg_k' − χm ∇L∇L'), g_k = ∇ℓ_k, κ and χ of the `sampling`
                ("with replacement", "without replacement", "bernoulli")
    Validity    what is averaged over a run has the errors of a run: `measure.fluctuation_dissipation.report` gives
                them, from these four arrays or from single batches
    References  yaida2019

    >>> losses = lambda theta: (theta[0] - jnp.array([1.0, -1.0])) ** 2 / 2
    >>> found = fluctuation_dissipation(losses, [[0.3], [-0.3]], 0.1, 1, "with replacement")
    >>> round(float(found.position_side.mean()), 12), round(float(found.noise_side.mean()), 12)
    (0.09, 0.0545)
    """
    losses = function("losses", losses)
    theta = array("positions", positions, ("T", "d"), why="one position in each row")
    eta = number("step", step, POSITIVE)
    c = jnp.mean(theta, axis=0) if centre is None else array("centre", centre, (theta.shape[1],), allowed=FINITE)
    shape = jax.eval_shape(losses, theta[0]).shape
    if len(shape) != 1 or not shape[0]:
        raise ParameterError(f"losses gives shape {shape}; it must give one loss for each sample, as a vector (m,)")
    samples = shape[0]
    kappa, chi = batch_factors(sampling, samples, batch)

    def mean_gradient(at):
        return jax.grad(lambda here: jnp.mean(losses(here)))(at)

    def sides(at):
        gradients = jax.jacrev(losses)(at)
        mean = jnp.mean(gradients, axis=0)
        # tr C̃ and tr(HC̃) as sums of products g·g and g·Hg
        bent = jax.vmap(lambda g: jax.jvp(mean_gradient, (at,), (g,))[1])(jnp.concatenate([gradients, mean[None]]))
        straight = jnp.sum(gradients**2), jnp.sum(mean**2)
        curved = jnp.sum(gradients * bent[:-1]), mean @ bent[-1]

        def second_moment(all_samples, of_mean):
            return of_mean + kappa * (all_samples - chi * samples * of_mean)

        return (
            (at - c) @ mean,
            eta / 2 * second_moment(*straight),
            straight[1],
            eta / 2 * second_moment(*curved),
        )

    found = DissipationSides(*jax.lax.map(sides, theta))
    return valid(
        found,
        jnp.all(jnp.isfinite(jnp.stack(found))),
        "losses or their derivatives are not finite at a position; check the positions, or take a smoother loss",
    )
