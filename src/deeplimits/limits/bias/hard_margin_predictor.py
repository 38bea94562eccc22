r"""Separability of random labels."""

import jax

from deeplimits.ensembles import data
from deeplimits.limit import Limit, integer, whole
from deeplimits.measure import separability as measured
from deeplimits.predictions import Probability
from deeplimits.theory.bias import separability


class HardMarginPredictor(Limit):
    r"""Random labels are separable up to two points per dimension.

    Setting     n points in general position in R^d with independent fair labels ±1; separable means that some w has
                y_i⟨w, x_i⟩ > 0 for all i, so that the hard-margin predictor argmin ‖w‖ : y_i⟨w, x_i⟩ ≥ 1 exists
    Limit       n, d → ∞ with n/d → α: the probability jumps from 1 to 0 at α = 2
    Result      P(separable) = 2^(1−n) Σ_{k<d} C(n−1, k), exactly at every n and d
    Validity    a hyperplane through the origin; points in general position; size counts the dimension d, at the
                given ratio n/d
    Finite size exact
    References  cover1965
    """

    points: int = integer(16, 1, 100_000, log=True, symbol="n", doc="number of points")
    dimension: int = integer(10, 1, 10_000, log=True, symbol="d", doc="dimension")

    sizes = (5, 10, 20)
    samples = 4000

    def theory(self):
        probability = separability.cover_probability(self.points, self.dimension)
        return {"separable": Probability(probability, label="probability of separability", symbol="P")}

    def at_size(self, size):
        d = whole(size, "d", self)
        n = whole(d * self.points / self.dimension, "n", self)
        return {"points": n, "dimension": d}, self.replace(points=n, dimension=d)

    def simulate(self, key, *, points: int, dimension: int):
        points_key, labels_key = jax.random.split(key)
        x = data.independent_entries(points_key, points, dimension)
        labels = jax.random.rademacher(labels_key, (points,), dtype=float)
        return {"separable": measured.is_separable(measured.signed_points(x, labels))}
