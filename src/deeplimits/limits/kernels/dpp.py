r"""Random subsets that repel each other."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import determinantal as draw
from deeplimits.limit import Limit, Run, integer, real, replace, whole
from deeplimits.predictions import Value
from deeplimits.showcase import Showcase
from deeplimits.theory.kernels import determinantal


class Dpp(Limit):
    r"""A determinantal point process: how many points, and how they repel.

    Setting     L-ensemble on n points of a grid on [0, 1]: P(S) = det L_S/det(I + L), L = s · e^{−(x−y)²/2l²}
    Limit       none: exact for every n
    Result      marginal kernel K = L(I + L)⁻¹, P(A ⊂ S) = det K_A: two neighbours are both in S with
                probability K_ii K_{i+1,i+1} − K_{i,i+1}² (averaged over i); |S| is a sum of independent
                Bernoulli(l_i/(1 + l_i)): E|S| = Σ l_i/(1 + l_i), Var|S| = Σ l_i/(1 + l_i)², l_i the eigenvalues of L
    Validity    L positive semidefinite; size counts the points n
    Finite size exact at every n
    Computed by kernels.marginal_kernel, kernels.cardinality
    References  hough2006; kulesza2012
    """

    points: int = integer(12, 2, 500, log=True, symbol="n", doc="number of points")
    strength: Array = real(3.0, 0.01, 100.0, log=True, symbol="s", doc="diagonal of L")
    scale: Array = real(0.1, 0.001, 1.0, log=True, symbol="l", doc="range of the repulsion")

    usual = Run(sizes=(6, 12), samples=7000, batch=50)
    showcase = Showcase(
        ranges={"scale": (0.005, 0.5)},
        over="scale",
        see="The wider the repulsion, the fewer points, the smaller their spread, and the rarer neighbours.",
    )

    # Independent subsets in one simulation.
    repeats = 6

    def _matrix(self):
        x = jnp.linspace(0.0, 1.0, self.points)
        return self.strength * jnp.exp(-((x[:, None] - x[None, :]) ** 2) / (2 * self.scale**2))

    def theory(self):
        matrix = self._matrix()
        marginal = determinantal.marginal_kernel(matrix)
        size = determinantal.cardinality(matrix)
        single = jnp.diagonal(marginal)
        both = single[:-1] * single[1:] - jnp.diagonal(marginal, 1) ** 2
        return {
            "count": Value(size.mean, label="number of points", symbol="E|S|"),
            "spread": Value(size.variance, label="variance of the number", symbol=r"\mathrm{Var}|S|"),
            "neighbours": Value(jnp.mean(both), label="probability of two neighbours"),
        }

    def at_size(self, size):
        return {}, replace(self, points=whole(size, "n", self, least=2))

    def simulate(self, key):
        matrix = self._matrix()
        sets = jax.vmap(lambda key: draw.determinantal_sample(key, matrix))(jax.random.split(key, self.repeats)).astype(
            float
        )
        counts = jnp.sum(sets, axis=1)
        return {
            "count": jnp.mean(counts),
            "spread": jnp.var(counts, ddof=1),
            "neighbours": jnp.mean(sets[:, :-1] * sets[:, 1:]),
        }
