"""When can a hyperplane through the origin separate randomly labelled points?"""

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import betainc
from jax.typing import ArrayLike
from scipy import special

from deeplimits.numerics.arguments import Allowed, argument, known
from deeplimits.numerics.shapes import Floats

POSITIVE_COUNT = Allowed(lambda x: (x >= 1) & (x == np.round(x)) & np.isfinite(x), "a whole number, at least 1")


def cover_probability(points: ArrayLike, dimension: ArrayLike) -> Floats:
    """Probability that n points in general position in R^d with fair random labels are linearly separable.

    Cover's count 2^{1−n} Σ_{k<d} C(n−1, k), which is P(Binomial(n−1, 1/2) ≤ d−1) = I_{1/2}(n−d, d); 1 for n ≤ d.

    >>> round(float(cover_probability(4, 2)), 12)
    0.5
    """
    if known(points, dimension):
        # Known numbers need no program.
        argument("points", points, POSITIVE_COUNT)
        argument("dimension", dimension, POSITIVE_COUNT)
        n, d = np.asarray(points, float), np.asarray(dimension, float)
        return jnp.asarray(np.where(n > d, special.betainc(np.maximum(n - d, 1.0), d, 0.5), 1.0))
    n, d = jnp.asarray(points, float), jnp.asarray(dimension, float)
    beyond = n > d
    return jnp.where(beyond, betainc(jnp.where(beyond, n - d, 1.0), d, 0.5), 1.0)
