"""Random score and value matrices, scaled so that scores of independent unit tokens are of order one."""

import math
from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import ArrayLike

from deeplimits.numerics import arguments
from deeplimits.numerics.arguments import Allowed
from deeplimits.numerics.shapes import Floats

# In units of which d → ∞ gives a number: G Gaussian with unit variance.
NORMS = {
    "ginibre": math.sqrt(27 / 4),  # G₁G₂/d: the edge of the product of two, squared singular values up to 27/4
    "wigner": 2.0,  # of B/√d
    "goe": 2.0,
    "gaussian": 2.0,  # G/√d
    "wishart": 4.0,  # GGᵀ/d
}


class ScoreLaw(NamedTuple):
    """Norm and variances of an ensemble as d → ∞, for unit tokens independent of it."""

    norm: float
    """lim ‖M‖ in operator norm: of B/√d for scores (ginibre, wigner, goe), of V for values (gaussian, wishart)."""
    variance: Floats
    """Var ⟨x, By⟩ of the score of two independent tokens."""
    own_variance: Floats
    """Var ⟨x, Bx⟩ of a token's score with itself."""


def score_law(ensemble: str, *, dimension: ArrayLike = jnp.inf) -> ScoreLaw:
    """Operator norm and variance of scores of a random ensemble in the scaling of `ensembles.random_layer`.

    Scores: ginibre B = G₁G₂/√d, wigner (symmetric, unit variances), goe (diagonal variance 2). Values: gaussian
    V = G/√d, wishart V = GGᵀ/d.

    The variances are exact at every d: with E x_i⁴ = 3 E x_i²x_j² = 3/(d(d+2)), own scores of a Wigner matrix have
    (2d+1)/(d+2), those of a GOE matrix 2. Of V√d for gaussian values, and of V√d − √d I for
    wishart ones to leading order.

    >>> round(score_law("ginibre").norm, 9), score_law("wishart").norm
    (2.598076211, 4.0)
    >>> float(score_law("wigner", dimension=4).own_variance)
    1.5
    """
    arguments.choice("ensemble", ensemble, NORMS)
    d = arguments.argument("dimension", dimension, Allowed(lambda x: x >= 1, "at least 1"))
    one = jnp.ones_like(d)
    own = {"wigner": (2 + 1 / d) / (1 + 2 / d), "goe": 2 * one, "wishart": 2 * one}.get(ensemble, one)
    return ScoreLaw(NORMS[ensemble], one, own)
