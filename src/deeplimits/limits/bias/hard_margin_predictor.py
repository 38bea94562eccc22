r"""The hard-margin predictor, and whether there is one."""

import jax.numpy as jnp

from deeplimits.ensembles import data, estimators
from deeplimits.limit import Limit, Run, integer, replace, whole
from deeplimits.measure import separability as instrument
from deeplimits.predictions import Bound, Identity, Probability
from deeplimits.showcase import Showcase
from deeplimits.theory.bias import cover_count, support_vectors

# The interior-point method leaves this fraction of the largest multiplier at points off the margin, at most.
SUPPORT = 1e-6
# Sets of points in one simulation, because one set is one success or failure.
SETS = 16


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
    Finite size exact; the interior-point method to 1e-11 in the margin
    Computed by bias.hard_margin, bias.cover_probability
    References  cover1965; lawson1995 Ch. 23
    """

    points: int = integer(16, 1, 100_000, log=True, symbol="n", doc="number of points")
    dimension: int = integer(10, 1, 10_000, log=True, symbol="d", doc="dimension")

    usual = Run(sizes=(5, 10, 20), samples=200, batch=40)
    showcase = Showcase(
        parameters={"points": 32, "dimension": 20},
        over="points",
        ranges={"points": (10, 80)},
        see="Random labels on few points are separable, on many they are not; at twice as many points as "
        "dimensions the chance is one half.",
    )

    def theory(self):
        return {
            "separable": Probability(
                cover_count.cover_probability(self.points, self.dimension),
                label="probability of separability",
                symbol="P",
            ),
            "support": Bound(float(self.dimension), label="support vectors", symbol="|S|"),
        }

    def at_size(self, size):
        d = whole(size, "d", self)
        n = whole(d * self.points / self.dimension, "n", self)
        return {"points": n, "dimension": d}, replace(self, points=n, dimension=d)

    def draw(self, key, *, points: int, dimension: int):
        # Fair labels are absorbed in x by symmetry.
        return data.independent_entries(key, SETS * points, dimension).reshape(SETS, points, dimension)

    def stated(self, system):
        predictor, _ = support_vectors.traced_hard_margin(_taught(system[0]))
        square = predictor @ predictor
        rounded = "square root of the interior-point method's duality gap 1e-13, where the support is nearly degenerate"
        return {
            "margin": Identity(
                1 / jnp.sqrt(square),
                label="margin",
                symbol=r"1/\|\hat w\|",
                tolerance=1e-11,
                reason="duality gap of 1e-13 of the interior-point method",
            ),
            "predictor": Identity(
                predictor, label="shortest weights", symbol=r"\hat w", tolerance=1e-6, reason=rounded
            ),
            "multipliers": Identity(
                square,
                label="sum of the multipliers",
                symbol=r"\sum_i a_i = \|\hat w\|^2",
                tolerance=1e-6,
                reason=rounded,
            ),
        }

    def measured(self, system):
        weights, multipliers = estimators.max_margin(_taught(system[0]))
        return {
            "separable": instrument.is_separable(system),
            "margin": 1 / jnp.linalg.norm(weights),
            "predictor": weights,
            "multipliers": jnp.sum(multipliers),
            "support": jnp.sum(multipliers > SUPPORT * jnp.max(multipliers)).astype(float),
        }


def _taught(x):
    """The points times labels of a linear teacher, the first axis, with a gap between the classes: separable."""
    return (x * jnp.where(x[:, :1] > 0, 1.0, -1.0)).at[:, 0].add(1.0)
