"""Eigenvalues of finite matrices."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from deeplimits.numerics.ranks import same_rank
from deeplimits.numerics.shapes import Floats, Scalar


def sample_covariance_eigenvalues(x: Float[Array, "n p"]) -> Float[Array, " p"]:
    """The p eigenvalues of X'X/n in increasing order, from the smaller of the two Gram matrices.

    >>> sample_covariance_eigenvalues(jnp.array([[1.0, 2.0]])).round(12).tolist()
    [0.0, 5.0]
    """
    n, p = x.shape
    if p <= n:
        return jnp.linalg.eigvalsh(x.T @ x / n)
    # X'X and XX' share their nonzero eigenvalues; the other p − n are exactly zero.
    return jnp.concatenate([jnp.zeros(p - n), jnp.linalg.eigvalsh(x @ x.T / n)])


def regularized_trace(eigenvalues: Float[Array, " p"], shift: Floats) -> Floats:
    """(1/p) Σ 1/(λ_i + y) for every shift y > 0.

    >>> float(regularized_trace(jnp.array([1.0, 3.0]), jnp.asarray(1.0)))
    0.375
    """
    values, y = same_rank(eigenvalues, shift[..., None])
    return jnp.mean(1 / (values + y), axis=-1)


def cauchy_smoothed(
    eigenvalues: Float[Array, " p"], x: Float[Array, " points"], height: Scalar
) -> Float[Array, " points"]:
    """The spectrum convolved with a Cauchy kernel of the given width.

    >>> round(float(cauchy_smoothed(jnp.zeros(1), jnp.zeros(1), jnp.asarray(1.0))[0]) * jnp.pi, 12)
    1.0
    """
    return jnp.mean(height / ((eigenvalues[None, :] - x[:, None]) ** 2 + height**2), axis=1) / jnp.pi


class CovarianceLosses(NamedTuple):
    """Squared errors per dimension of the best estimators of a covariance, in hindsight."""

    linear: Scalar
    """Of the best combination of S and I."""
    nonlinear: Scalar
    """Of the best estimator that keeps the eigenvectors of S."""


def covariance_losses(covariance: Float[Array, " p"], sample: Float[Array, "p p"], rank: int) -> CovarianceLosses:
    """Squared errors per dimension of the best linear and the best rotation-equivariant estimator, in hindsight.

    The population covariance is diagonal. The first estimator is the best combination of S and I, the second keeps the
    eigenvectors û of S and takes the eigenvalues û'Σû. On the null space of S, where any basis serves as eigenvectors,
    that is one number, their mean.

    >>> losses = covariance_losses(jnp.array([1.0, 3.0]), jnp.diag(jnp.array([2.0, 5.0])), 2)
    >>> float(losses.linear), float(losses.nonlinear)
    (0.0, 0.0)
    """
    p = covariance.shape[0]
    # With I at hand, both S and Σ are approached around their means.
    direction = sample - jnp.trace(sample) / p * jnp.eye(p)
    error = jnp.diag(covariance - jnp.mean(covariance))
    along = jnp.sum(direction * error) / jnp.sum(direction**2)
    vectors = jnp.linalg.eigh(sample)[1]
    best = jnp.sum(covariance[:, None] * vectors**2, axis=0)
    if rank < p:
        best = best.at[: p - rank].set(jnp.mean(best[: p - rank]))
    linear = jnp.mean(jnp.sum((error - along * direction) ** 2, axis=1))
    return CovarianceLosses(linear, jnp.mean(covariance**2) - jnp.mean(best**2))
