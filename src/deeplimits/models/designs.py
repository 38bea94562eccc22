"""Data sets that are not random, for statements about one fixed data set."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Float


class Design(NamedTuple):
    """Inputs and labels of a regression problem."""

    x: Float[Array, "m d"] | Float[np.ndarray, "m d"]
    y: Float[Array, " m"] | Float[np.ndarray, " m"]


def polynomial_regression(samples: int, features: int) -> Design:
    """Monomials 1, u, u², … at m evenly spaced points u of [−1, 1], labels cos 3u ± ½ with alternating sign.

    No polynomial of low degree fits, so that every sample keeps a residual. NumPy arrays: nothing is to be compiled.
    """
    u = np.linspace(-1.0, 1.0, samples)
    signs = np.where(np.arange(samples) % 2 == 0, 1.0, -1.0)
    return Design(u[:, None] ** np.arange(features), np.cos(3 * u) + signs / 2)
