"""The real Tracy-Widom law on a grid, for drawing and for comparisons."""

import functools

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from deeplimits.theory.spectra import tracy_widom

POINTS = 401


@functools.cache
def _grid() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    x = np.linspace(-5.5, 4.5, POINTS)
    return x, np.array(tracy_widom.pdf(x, 1)), np.array(tracy_widom.cdf(x, 1))


def tracy_widom_grid() -> tuple[Array, Array, Array]:
    """Places, density and distribution function of TW₁ on [−5.5, 4.5]."""
    x, density, cdf = _grid()
    return jnp.asarray(x), jnp.asarray(density), jnp.asarray(cdf)
