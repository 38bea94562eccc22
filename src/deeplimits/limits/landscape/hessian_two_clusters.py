r"""The Hessian of logistic regression on two clusters."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.limit import Limit, Run, integer, real, whole
from deeplimits.predictions import Value
from deeplimits.showcase import Showcase
from deeplimits.theory.landscape import curvature_parts


class HessianTwoClusters(Limit):
    r"""One eigenvalue stands out of the Hessian as long as the clusters are narrow.

    Setting     x = y m + s·g in R^d, y = ±1 fair, |m| = √2 (clusters at ±(1, 1) in the plane), logistic loss of
                p = σ(⟨w, x⟩), w of length a along m; averaged over n samples
    Limit       n → ∞; the mean Hessian is exact at every n
    Result      along m: E σ'(u)(√2 + s g)²; across: s²E σ'(u), d − 1 times; u = a(√2 + s g)
                a = 0: (2 + s²)/4 and s²/4, a ratio of 1 + 2/s², which closes as the variance grows
    Validity    no bias; w along m; size counts the samples n
    Finite size exact in mean
    Computed by landscape.two_cluster_curvature
    References  sagun2017
    """

    noise: Array = real(0.7, 0.3, 3.0, log=True, symbol="s", doc="standard deviation s of a cluster")
    weight: Array = real(1.0, 0.0, 2.5, symbol="a", doc="length a of the weight vector")
    dimension: int = integer(2, 2, 30, symbol="d", doc="dimension d")

    usual = Run(sizes=(200, 400), samples=1000, batch=50)
    showcase = Showcase(
        ranges={"noise": (0.3, 3.0)},
        see="Along the means the curvature exceeds that across them; the ratio closes as the clusters widen.",
    )

    def theory(self):
        found = curvature_parts.two_cluster_curvature(self.weight, self.noise)
        return {
            "along": Value(found.along, label="curvature along the clusters", symbol=r"\lambda_\parallel"),
            "across": Value(found.across, label="curvature across", symbol=r"\lambda_\perp"),
        }

    def at_size(self, size):
        return {"samples": whole(size, "n", self, least=10)}, self

    def simulate(self, key, *, samples: int):
        d = self.dimension
        noise_key, label_key = jax.random.split(key)
        y = jnp.where(jax.random.bernoulli(label_key, 0.5, (samples,)), 1.0, -1.0)
        direction = jnp.zeros(d).at[:2].set(1.0)
        x = y[:, None] * direction[None, :] + self.noise * jax.random.normal(noise_key, (samples, d))

        def loss(w):
            return jnp.mean(jnp.logaddexp(0.0, -y * (x @ w)))

        hessian = jax.hessian(loss)(self.weight * direction / jnp.sqrt(2.0))
        along = direction @ hessian @ direction / 2
        return {
            "along": along,
            "across": (jnp.trace(hessian) - along) / (d - 1),
        }
