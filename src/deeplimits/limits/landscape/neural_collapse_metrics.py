r"""What the metrics of neural collapse are in finite samples of noisy features."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.limit import Limit, Run, integer, real, whole
from deeplimits.predictions import Value
from deeplimits.showcase import Showcase
from deeplimits.theory.landscape import collapse


class NeuralCollapseMetrics(Limit):
    r"""Noise of the features makes sampled class means longer, and leaves their angles alone.

    Setting     n features of each of C classes in R^d, N(μ_c, (s²/d)I), centred class means of length ℓ with cosine
                −1/(C − 1); sample means, Σ_B of the centred means, Σ_W within classes
    Limit       d → ∞
    Result      |μ̂_c − μ̂_G|² → ℓ² + (1 − 1/C)s²/n
                d·NC1 = d·tr(Σ_W Σ_B⁺)/C → (C − 1)(1 − 1/n)s²/(ℓ²C/(C − 1) + s²/n), tr Σ_W/tr Σ_B likewise
                the cosine of two centred means stays −1/(C − 1)
    Validity    Gaussian features, equal class sizes; size counts the dimension d
    Finite size O(1/d)
    Computed by landscape.neural_collapse_in_noise
    References  papyan2020b
    """

    classes: int = integer(4, 2, 8, symbol="C", doc="number of classes C")
    per_class: int = integer(5, 2, 50, log=True, symbol="n", doc="features n of a class")
    scale: Array = real(1.0, 0.5, 3.0, log=True, symbol=r"\ell", doc="length ℓ of a centred class mean")
    noise: Array = real(1.5, 0.2, 3.0, log=True, symbol="s", doc="standard deviation s of a whole feature vector")

    usual = Run(sizes=(40, 80, 160), samples=1500, batch=10)
    showcase = Showcase(over="noise", see="Noise makes the measured class means longer and leaves their angles alone.")

    def theory(self):
        # Per dimension: τ² = s²/d, so that d drops out of everything but NC1 itself, which is asked for times d.
        d = 1000
        found = collapse.neural_collapse_in_noise(self.classes, self.per_class, d, self.scale, self.noise / d**0.5)
        return {
            "within": Value(d * found.within, label="NC1 times d", symbol=r"d\,\mathrm{NC1}", rate=1.0),
            "share": Value(found.ratio, label="within over between", symbol=r"tr\Sigma_W/tr\Sigma_B", rate=1.0),
            "squared_length": Value(
                found.squared_length, label="squared length of a centred mean", symbol=r"|\hat\mu_c|^2", rate=1.0
            ),
            "cosine": Value(found.cosine, label="cosine between class means", symbol=r"\cos", rate=1.0),
        }

    def at_size(self, size):
        return {"dimension": whole(size, "d", self, least=2 * self.classes)}, self

    def simulate(self, key, *, dimension: int):
        c, n, d = self.classes, self.per_class, dimension
        # The corners of a cube less their mean are a simplex; any simplex will do.
        corners = jnp.eye(c, d) - jnp.where(jnp.arange(d) < c, 1 / c, 0.0)[None, :]
        means = self.scale * corners / jnp.sqrt(1 - 1 / c)
        h = means[:, None, :] + self.noise * jax.random.normal(key, (c, n, d)) / jnp.sqrt(1.0 * d)
        found = h.mean(axis=1)
        centred = found - found.mean(axis=0)[None, :]
        inner = (h - found[:, None, :]).reshape(c * n, d)
        # Σ_B⁺ = C·M⁺M⁺', M the centred means as rows; Σ_W = (inner)'(inner)/(nC)
        inverse = jnp.linalg.pinv(centred, rtol=1e-10)
        lengths = jnp.sum(centred**2, axis=1)
        cosines = centred @ centred.T / jnp.sqrt(lengths[:, None] * lengths[None, :])
        return {
            "within": d * jnp.sum((inner @ inverse) ** 2) / (n * c),
            "share": jnp.sum(inner**2) / n / jnp.sum(lengths),
            "squared_length": jnp.mean(lengths),
            "cosine": (jnp.sum(cosines) - c) / (c * (c - 1)),
        }
