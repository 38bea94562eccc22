"""A small network among four clusters: its statistics, and weights that have them."""

import jax.numpy as jnp

OUTPUT, ALONG_MU, ALONG_NU = jnp.array([1.0, -0.8]), jnp.array([0.5, 0.3]), jnp.array([-0.2, 0.6])
OVERLAPS = jnp.array([[0.6, 0.2], [0.2, 0.5]])


def weights(dimension: int):
    frame = jnp.linalg.cholesky(OVERLAPS)
    return jnp.zeros((2, dimension)).at[:, 0].set(ALONG_MU).at[:, 1].set(ALONG_NU).at[:, 2:4].set(frame)
