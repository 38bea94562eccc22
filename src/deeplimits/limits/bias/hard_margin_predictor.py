r"""The hard-margin predictor, and whether there is one."""

import jax
import jax.numpy as jnp

from deeplimits.ensembles import data, estimators
from deeplimits.limit import Limit, Run, integer, whole
from deeplimits.measure import separability as measured
from deeplimits.predictions import Bound, Identity, Probability
from deeplimits.theory.bias import hard_margin, separability

# The interior-point method leaves this fraction of the largest multiplier at points off the margin, at most.
SUPPORT = 1e-6


class HardMarginPredictor(Limit):
    r"""The hard-margin predictor: its optimality, its few support vectors, and how likely it exists.

    Setting     n points in general position in R^d with independent fair labels ±1; separable means that some w has
                y_i⟨w, x_i⟩ > 0 for all i, so that the hard-margin predictor argmin ‖w‖ : y_i⟨w, x_i⟩ ≥ 1 exists
    Limit       n, d → ∞ with n/d → α: the probability jumps from 1 to 0 at α = 2
    Result      ŵ = Σ a_i y_i x_i with a ≥ 0 and a_i > 0 on the support S only, Σ a_i = ‖ŵ‖², margin 1/‖ŵ‖; |S| ≤ d
                (checked against an interior-point method, for a linear teacher with a gap of two between the classes)
                random labels: P(separable) = 2^(1−n) Σ_{k<d} C(n−1, k), exactly at every n and d
    Validity    a hyperplane through the origin; points in general position; size counts the dimension d, at the
                given ratio n/d
    Finite size exact; the interior-point method to 1e-8 in the margin
    References  cover1965; lawson1995 Ch. 23
    """

    points: int = integer(16, 1, 100_000, log=True, symbol="n", doc="number of points")
    dimension: int = integer(10, 1, 10_000, log=True, symbol="d", doc="dimension")

    usual = Run(sizes=(5, 10, 20), samples=2000, batch=50)

    def theory(self):
        probability = separability.cover_probability(self.points, self.dimension)
        return {
            "separable": Probability(probability, label="probability of separability", symbol="P"),
            "margin": Identity(label="margin", symbol=r"1/\|\hat w\|", constant=1e8),
            # A duality gap of 1e-13 leaves the weights within its square root where the support is nearly degenerate.
            "predictor": Identity(label="shortest weights", symbol=r"\hat w", constant=1e10),
            "multipliers": Identity(label="sum of the multipliers", symbol=r"\sum_i a_i = \|\hat w\|^2", constant=1e10),
            "support": Bound(jnp.asarray(float(self.dimension)), label="support vectors", symbol="|S|"),
        }

    def at_size(self, size):
        d = whole(size, "d", self)
        n = whole(d * self.points / self.dimension, "n", self)
        return {"points": n, "dimension": d}, self.replace(points=n, dimension=d)

    def simulate(self, key, *, points: int, dimension: int):
        points_key, labels_key = jax.random.split(key)
        x = data.independent_entries(points_key, points, dimension)
        labels = jax.random.rademacher(labels_key, (points,), dtype=float)
        # Labels of a linear teacher, here the first axis, with a gap between the classes: always separable.
        taught = measured.signed_points(x, jnp.where(x[:, 0] > 0, 1.0, -1.0)).at[:, 0].add(1.0)
        weights, multipliers = estimators.max_margin(taught)
        stated, _ = hard_margin.traced_hard_margin(taught)
        return {
            "separable": measured.is_separable(measured.signed_points(x, labels)),
            "margin": 1 / jnp.linalg.norm(jnp.stack([weights, stated]), axis=1),
            "predictor": jnp.stack([weights, stated]),
            "multipliers": jnp.stack([jnp.sum(multipliers), weights @ weights]),
            "support": jnp.sum(multipliers > SUPPORT * jnp.max(multipliers)).astype(float),
        }
