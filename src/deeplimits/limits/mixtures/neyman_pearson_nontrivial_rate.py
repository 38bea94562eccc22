r"""The smallest differences between two classes that can be seen."""

import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.limit import Limit, Run, real, whole
from deeplimits.numerics import draws
from deeplimits.predictions import Value
from deeplimits.showcase import Showcase
from deeplimits.theory.mixtures.likelihood_ratio import limiting_error

POINTS = 500
"""Points of each class in one simulation."""


class NeymanPearsonNontrivialRate(Limit):
    r"""Two known Gaussian classes are told apart neither always nor never at |Δμ| = O(1), |C₁ − C₂| = O(1/√p).

    Setting     N(0, I) and N(Δ, (1 + ε/√p)I) in R^p, |Δ| = d, of equal weight; the likelihood ratio test
    Limit       p → ∞
    Result      error Q(½√(d² + ε²/2)), Q the upper tail of N(0, 1)
    Validity    everything about the classes is known; size counts the dimension p
    Finite size O(p^(−1/2)), and exact for ε = 0
    Computed by mixtures.limiting_error; for covariance matrices mixtures.oracle_error
    References  couillet2022
    """

    distance: Array = real(1.5, 0.5, 4.0, symbol="d", doc="distance d between the means")
    shape: Array = real(2.0, 0.0, 4.0, symbol=r"\varepsilon", doc="difference ε of the variances, times √p")

    usual = Run(sizes=(400, 1600, 6400), samples=600, batch=20)
    showcase = Showcase(
        see="Means at a distance of order one make neither an easy nor an impossible problem: nobody's error "
        "can be below this line."
    )

    def theory(self):
        return {"error": Value(limiting_error(self.distance, self.shape), label="smallest error", symbol="Q", rate=0.5)}

    def at_size(self, size):
        return {"dimension": whole(size, "p", self, least=50)}, self

    def simulate(self, key, *, dimension: int):
        found = draws.draw(key, (2, POINTS), 1, freedom=dimension - 1)
        v = 1 + self.shape / dimension**0.5
        # Along Δ, and the squared length of the rest, of the first and of the second class.
        along, rest = found.gaussians[..., 0], found.chi_square
        along = along.at[1].set(self.distance + jnp.sqrt(v) * along[1])
        rest = rest.at[1].set(v * rest[1])
        first = along**2 + rest
        second = ((along - self.distance) ** 2 + rest) / v + dimension * jnp.log(v)
        chosen_second = first > second
        wrong = jnp.mean(chosen_second[0].astype(float)) + jnp.mean((~chosen_second[1]).astype(float))
        return {"error": wrong / 2}
