"""Eigenvalues of finite matrices."""

import jax.numpy as jnp
from jaxtyping import Array, Float


def sample_covariance_eigenvalues(x: Float[Array, "n p"]) -> Float[Array, " p"]:
    """The p eigenvalues of X'X/n in increasing order, from the smaller of the two Gram matrices."""
    n, p = x.shape
    if p <= n:
        return jnp.linalg.eigvalsh(x.T @ x / n)
    # X'X and XX' share their nonzero eigenvalues; the other p − n are exactly zero.
    return jnp.concatenate([jnp.zeros(p - n), jnp.linalg.eigvalsh(x @ x.T / n)])
