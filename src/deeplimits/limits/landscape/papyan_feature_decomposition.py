r"""The second moment of features split by class."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from deeplimits.limit import Limit, Run, integer, real, rounded, whole
from deeplimits.predictions import Identity, Value
from deeplimits.showcase import Showcase
from deeplimits.theory.landscape import class_parts


class System(NamedTuple):
    """Features, class by class."""

    features: Float[Array, "C n d"]


class PapyanFeatureDecomposition(Limit):
    r"""The second moment of features is that of the mean of all, of the class means about it, and within classes.

    Setting     n features of each of C classes in R^d, h = b·1/√d + μ_c + s z/√d, |μ_c| = 1, orthonormal and
                orthogonal to 1
    Limit       none for the split; traces in the mean over features, at every n
    Result      Avg h h' = h_G h_G' + Avg_c (h_c − h_G)(h_c − h_G)' + Avg_ic (h_ic − h_c)(h_ic − h_c)'
                traces b² + 1/C + s²/(nC), (1 − 1/C)(1 + s²/n), (1 − 1/n)s²
                the first, of rank one, is the eigenvector that belongs to no class
    Validity    equal class sizes (otherwise classes weighted by frequency); size counts the features n of a class
    Finite size exact
    Computed by landscape.feature_decomposition (parts)
    References  papyan2020
    """

    classes: int = integer(4, 2, 8, symbol="C", doc="number of classes C")
    dimension: int = integer(20, 10, 60, symbol="d", doc="dimension d of the features, more than C")
    noise: Array = real(1.0, 0.3, 3.0, log=True, symbol="s", doc="standard deviation √d·τ of a feature about its mean")
    offset: Array = real(1.0, 0.0, 3.0, symbol="b", doc="length b of what all features share")
    per_class: int = integer(10, 2, 200, log=True, symbol="n", doc="features n of a class")

    usual = Run(sizes=(5, 10), samples=800, batch=20)
    showcase = Showcase(
        see="The parts of the second moment: common, between classes, within them; the last grows with the noise."
    )

    def theory(self):
        c, n, square = self.classes, self.per_class, self.noise**2
        return {
            "common": Value(self.offset**2 + 1 / c + square / (n * c), label="trace, mean of all", symbol="|h_G|^2"),
            "between": Value(
                (1 - 1 / c) * (1 + square / n), label="trace, between classes", symbol=r"\mathrm{tr}\,H_B"
            ),
            "within": Value((1 - 1 / n) * square, label="trace, within classes", symbol=r"\mathrm{tr}\,H_W"),
        }

    def at_size(self, size):
        n = whole(size, "n", self, least=2)
        return {"per_class": n}, rounded(self, per_class=n)

    def draw(self, key, *, per_class: int):
        c, d = self.classes, self.dimension
        noise = jax.random.normal(key, (c, per_class, d)) / jnp.sqrt(1.0 * d)
        # Rows of a Fourier basis: orthonormal, and orthogonal to the constant vector
        place = 2 * jnp.pi * jnp.arange(1.0 * d) / d
        orders = (1 + jnp.arange(c) // 2).astype(float)
        waves = jnp.where((jnp.arange(c) % 2 == 0)[:, None], jnp.cos(orders[:, None] * place[None, :]), 0.0)
        waves = waves + jnp.where((jnp.arange(c) % 2 == 1)[:, None], jnp.sin(orders[:, None] * place[None, :]), 0.0)
        means = waves * jnp.sqrt(2.0 / d) + self.offset / jnp.sqrt(1.0 * d)
        return System(means[:, None, :] + self.noise * noise)

    def stated(self, system):
        c, n, d = system.features.shape
        found = class_parts.feature_decomposition(system.features.reshape(c * n, d), jnp.repeat(jnp.arange(1.0 * c), n))
        shared = {"tolerance": 1e-12, "reason": "rounding of sums over features"}
        return {
            "sum": Identity(found.whole, label="sum of the parts", symbol="H", **shared),
            "parts": Identity(jnp.stack(list(found)), label="parts", symbol=r"H_{\bullet}", **shared),
        }

    def measured(self, system):
        c, n, d = system.features.shape
        flat = system.features.reshape(c * n, d)
        means = system.features.mean(axis=1)
        centre = means.mean(axis=0)
        common = jnp.outer(centre, centre)
        between = sum(jnp.outer(mean - centre, mean - centre) for mean in means) / c
        within = sum(jnp.cov(one.T, bias=True) for one in system.features) / c
        return {
            "sum": flat.T @ flat / (c * n),
            "parts": jnp.stack([common, between, within]),
            "common": jnp.trace(common),
            "between": jnp.trace(between),
            "within": jnp.trace(within),
        }
