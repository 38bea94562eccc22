"""Random score and value matrices, scaled so that scores of independent unit tokens are of order one."""

import math
from typing import NamedTuple

from deeplimits.numerics import arguments

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
    variance: float
    """Var ⟨x, By⟩ of the score of two independent tokens."""
    own_variance: float
    """Var ⟨x, Bx⟩ of a token's score with itself."""


def score_law(ensemble: str) -> ScoreLaw:
    """Operator norm and variance of scores of a random ensemble in the scaling of `ensembles.random_layer`.

    Scores: ginibre B = G₁G₂/√d, wigner (symmetric, unit variances), goe (diagonal variance 2). Values: gaussian
    V = G/√d, wishart V = GGᵀ/d.

    >>> score_law("ginibre").norm.__round__(9), score_law("wishart").norm
    (2.598076211, 4.0)
    """
    arguments.choice("ensemble", ensemble, NORMS)
    symmetric = ensemble in ("wigner", "goe", "wishart")
    # Σ_ij B_ij² x_i²y_j², and for symmetric B every pair i ≠ j of ⟨x, Bx⟩ counts twice
    return ScoreLaw(NORMS[ensemble], 1.0, 2.0 if symmetric else 1.0)
