r"""Distances in high dimension."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.limit import Limit, Run, integer, real, sized
from deeplimits.predictions import Exponent, Value
from deeplimits.showcase import Showcase
from deeplimits.theory.mixtures.distances import diagonal_pair_distances

PAIRS = 10
"""Pairs of points in one simulation, for the variance."""


class DistanceConcentration(Limit):
    r"""All points of a mixture are equally far from each other, whatever their classes.

    Setting     x ~ N(±μ, C) in R^p, |2μ| = d, C = diag(1 ± h), half of the coordinates each; n points
    Limit       p → ∞ at fixed d
    Result      |x_i − x_j|²/p has mean 2 tr C/p within a class and d²/p more between classes, and the variance
                8 tr C²/p² within a class, at every p: classes that an oracle tells apart are at the same distance
                all pairs: max ||x_i − x_j|²/p − 2 tr C/p| falls like p^(−1/2); it is at most 4√(tr C² u)/p + 4|C|u/p,
                u = log(n(n − 1)/δ), with probability 1 − δ
    Validity    Gaussian classes; size counts the dimension p
    Finite size exact; the power law of the largest up to O(p^(−1/2)) of itself
    Computed by mixtures.distances.diagonal_pair_distances, mixtures.largest_distance_gap
    References  couillet2022; laurent2000
    """

    dimension: int = integer(400, 2, 100_000, log=True, symbol="p", doc="dimension p")
    points: int = integer(40, 2, 60, symbol="n", doc="points n among which the largest gap is looked for")
    distance: Array = real(2.0, 0.0, 6.0, symbol="d", doc="distance d between the class means")
    shape: Array = real(0.3, 0.0, 0.9, symbol="h", doc="how unequal the variances of the coordinates are, h")

    usual = Run(sizes=(25, 100, 400, 1600), samples=2500, batch=20)
    showcase = Showcase(
        first="between",
        see="Points of one class and of two are at almost the same distance: d² is spread over p coordinates.",
    )

    def theory(self):
        eigenvalues = jnp.where(jnp.arange(self.dimension) < self.dimension // 2, 1 + self.shape, 1 - self.shape)
        gap = jnp.zeros(self.dimension).at[0].set(self.distance)
        found = diagonal_pair_distances(jnp.stack([0 * gap, gap]), jnp.stack([eigenvalues, eigenvalues]))
        return {
            "within": Value(found.mean[0, 0], label="squared distance within a class", symbol=r"E|x-x'|^2/p"),
            "between": Value(found.mean[0, 1], label="squared distance between classes", symbol=r"E|x-x'|^2/p"),
            "spread": Value(
                self.dimension * found.variance[0, 0],
                label="p times its variance within a class",
                symbol=r"p\,Var|x-x'|^2/p",
            ),
            # Skewness moves the largest of the pairs by O(p^(−1/2)) of itself.
            "largest": Exponent(
                -0.5,
                label="largest deviation among all pairs",
                symbol=r"\max||x-x'|^2/p-2tr C/p|",
                correction=0.5,
            ),
        }

    def at_size(self, size):
        return sized(self, dimension=size, least=2)

    def simulate(self, key, *, dimension: int):
        p = dimension
        deviation = jnp.sqrt(jnp.where(jnp.arange(p) < p // 2, 1 + self.shape, 1 - self.shape))
        x = deviation[None, :] * jax.random.normal(key, (self.points + 2 * PAIRS, p))
        x, pairs = x[: self.points], x[self.points :].reshape(PAIRS, 2, p)
        square = jnp.sum(x**2, axis=1)
        apart = (square[:, None] + square[None, :] - 2 * x @ x.T) / p
        common = 2 * jnp.mean(deviation**2)
        gaps = jnp.abs(apart - common) * (1 - jnp.eye(self.points))
        # A point of the other class: the second one moved by the distance, along the first coordinate.
        other = x[1].at[0].add(self.distance)
        return {
            "within": apart[0, 1],
            "between": jnp.sum((x[0] - other) ** 2) / p,
            "spread": p * jnp.mean((jnp.sum((pairs[:, 0] - pairs[:, 1]) ** 2, axis=1) / p - common) ** 2),
            "largest": jnp.max(gaps),
        }
