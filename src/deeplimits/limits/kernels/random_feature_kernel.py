r"""A kernel from finitely many random features."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import random_features as draw
from deeplimits.limit import Limit, Run, activation_choice, real, whole
from deeplimits.models.activations import activation
from deeplimits.predictions import Value
from deeplimits.showcase import Showcase
from deeplimits.theory.kernels import feature_kernels


class RandomFeatureKernel(Limit):
    r"""The kernel of m random features, and its variance.

    Setting     K_m(x, x') = (1/m) Σ_{l≤m} φ_l(x)φ_l(x'); φ_l = σ(⟨w_l, x⟩), w_l ~ N(0, I), or √2 cos(⟨w_l, x⟩ + b_l)
                with uniform b_l (fourier); unit inputs with cosine ρ
    Limit       m → ∞
    Result      E K_m = E σ(u)σ(v) = K, m Var K_m = E σ(u)²σ(v)² − K², (u, v) Gaussian with correlation ρ;
                fourier: K = k(Δ) = e^{−Δ²/2}, m Var K_m = 1 + k(2Δ)/2 − k(Δ)², Δ² = 2 − 2ρ
    Validity    E σ⁴ finite; size counts the features m
    Finite size mean and variance exact at every m
    Computed by kernels.neuron_features, kernels.fourier_features
    References  rahimi2007; cho2009
    """

    features: str = activation_choice(
        "relu",
        lambda a: a.through_origin and (a.bounded or a.lipschitz) and not a.even,
        also=("fourier",),
        doc="kind of features",
    )
    cosine: Array = real(0.5, -0.95, 0.95, symbol=r"\rho", doc="cosine of the angle between the inputs")

    usual = Run(sizes=(16, 64), samples=10_000, batch=100)
    showcase = Showcase(
        ranges={"cosine": (-0.95, 0.95)},
        see="The kernel of finitely many random features, its mean and its variance over the angle.",
    )

    # Independent kernels in one simulation, from which an unbiased variance is formed.
    repeats = 8

    def theory(self):
        if self.features == "fourier":
            found = feature_kernels.fourier_features(jnp.sqrt(2 - 2 * self.cosine))
        else:
            found = feature_kernels.neuron_features(self.features, 1.0, 1.0, self.cosine)
        return {
            "kernel": Value(found.mean, label="kernel", symbol="E K_m"),
            "variance": Value(found.variance, label="variance of the kernel, times m", symbol=r"m\,\mathrm{Var} K_m"),
        }

    def at_size(self, size):
        return {"count": whole(size, "m", self)}, self

    def simulate(self, key, *, count: int):
        x = jnp.stack([jnp.array([1.0, 0.0]), jnp.stack([self.cosine, jnp.sqrt(1 - self.cosine**2)])])

        def one(key):
            if self.features == "fourier":
                rows = draw.fourier(key, x, count)
            else:
                rows = draw.neurons(key, activation(self.features), x, count)
            return rows[0] @ rows[1] / count

        found = jax.vmap(one)(jax.random.split(key, self.repeats))
        return {"kernel": jnp.mean(found), "variance": count * jnp.var(found, ddof=1)}
