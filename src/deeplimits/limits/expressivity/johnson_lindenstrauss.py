r"""Random projections keep distances."""

import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import matrices
from deeplimits.limit import Limit, Run, integer, real, sized
from deeplimits.predictions import Probability
from deeplimits.showcase import Showcase
from deeplimits.theory.expressivity import widths_and_entropy


class JohnsonLindenstrauss(Limit):
    r"""A Gaussian matrix of c log k rows keeps the distances of k points, with the best constant of the union bound.

    Setting     A = √(ρ/(a m)) G with m rows of independent standard entries, ρ = (1−ε)², a = −ρ log ρ/(1−ρ); x the
                difference of two points
    Limit       none: exact for a pair
    Result      (1−ε)|x| ≤ |Ax| ≤ |x| fails with P(χ²_m < a m) (too_short) + P(χ²_m > a m/ρ) (too_long); among k points
                with at most k(k−1)/2 times that, which is below one for m > c log k with c = 4/I, I = a − 1 − log a
    Validity    A is 1-Lipschitz on the points, not everywhere; size counts the rows m
    Finite size exact
    Computed by expressivity.projection_failure, expressivity.johnson_lindenstrauss
    References  dasgupta2003
    """

    distortion: Array = real(0.4, 0.1, 0.8, symbol=r"\varepsilon", doc="share by which a distance may shrink")
    coordinates: int = integer(
        12, 1, 1000, symbol="D", doc="coordinates of the points; the law does not depend on them"
    )
    rows: int = integer(20, 1, 100_000, log=True, symbol="m", doc="rows of the projection")

    usual = Run(sizes=(4, 12), samples=20_000, batch=500)
    showcase = Showcase(
        over="rows",
        ranges={"rows": (2, 60)},
        see="With every further row of the projection it is rarer that a distance shrinks too much: "
        "exponentially rarer.",
    )

    def theory(self):
        failure = widths_and_entropy.projection_failure(self.distortion, 2.0, float(self.rows))
        return {
            "too_short": Probability(failure.short, label="a distance shrinks too much", symbol=r"P(\chi^2_m < am)"),
            "too_long": Probability(failure.long, label="a distance grows", symbol=r"P(\chi^2_m > am/\rho)"),
        }

    def at_size(self, size):
        return sized(self, rows=size)

    def simulate(self, key, *, rows: int):
        projection = matrices.distance_keeping_map(key, rows, self.coordinates, self.distortion)
        x = jnp.cos(1.0 + jnp.arange(float(self.coordinates)))
        ratio = jnp.linalg.norm(projection @ x) / jnp.linalg.norm(x)
        return {
            "too_short": jnp.where(ratio < 1 - self.distortion, 1.0, 0.0),
            "too_long": jnp.where(ratio > 1, 1.0, 0.0),
        }
