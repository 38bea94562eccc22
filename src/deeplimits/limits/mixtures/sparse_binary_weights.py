r"""Random features with sparse binary weights."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import class_mixtures
from deeplimits.limit import Limit, Run, activation_choice, real, rounded, whole
from deeplimits.predictions import Value
from deeplimits.showcase import Showcase
from deeplimits.theory.mixtures.activation_moments import kernel_coefficients

NEURONS = 400
"""Neurons in one simulation."""


class SparseBinaryWeights(Limit):
    r"""Most weights of random features can be zero and the others ±1: the kernel changes in one direction only.

    Setting     w of independent entries, 0 with probability ε, else ±(1 − ε)^(−1/2); n points x ~ N(0, I_p);
                K_ij = E σ̃(w·x_i/√p)σ̃(w·x_j/√p), σ̃ = σ − E σ(ξ)
    Limit       p → ∞ with n/p fixed
    Result      the kernel of Gaussian weights plus (E w⁴ − 3)d₂ 11'/p, E w⁴ = 1/(1 − ε), d₂ = (E σ'')²/4, which
                centring takes off: 1'K1/n = d₁ + 2d₂n/p + d₀ + (1/(1 − ε) − 3)d₂ n/p, and tr K/n = d₀ + d₁,
                on average over the points
    Validity    (1 − ε)p large; size counts the dimension p
    Finite size O(1/((1 − ε)p))
    Computed by mixtures.kernel_coefficients; as a matrix mixtures.conjugate_kernel_equivalent
    References  ali2022
    """

    activation: str = activation_choice("relu", lambda a: a.lipschitz and a.name not in ("identity", "abs"))
    sparsity: Array = real(0.8, 0.0, 0.9, symbol=r"\varepsilon", doc="share ε of the weights that are zero")
    samples_per_dimension: Array = real(2.0, 0.5, 4.0, log=True, symbol="n/p", doc="samples per dimension")

    usual = Run(sizes=(60, 120, 240), samples=200)
    showcase = Showcase(
        see="The more weights are zero, the more the kernel grows in one direction, which centring takes off; "
        "its diagonal stays."
    )

    def theory(self):
        d0, d1, d2, _ = kernel_coefficients(self.activation)
        excess = 1 / (1 - self.sparsity) - 3
        # On average over the points 1'X'X1/np = 1, 1'J = n, and (1's)²/n = 2/p is nothing
        ones = d1 + d0 + (2 + excess) * d2 * self.samples_per_dimension
        return {
            "ones": Value(ones, label="sum of all entries per point", symbol=r"1'K1/n", rate=1.0),
            "diagonal": Value(d0 + d1, label="trace per point", symbol=r"tr K/n", rate=1.0),
        }

    def at_size(self, size):
        p = whole(size, "p", self, least=20)
        n = whole(p * float(self.samples_per_dimension), "n", self, least=10)
        return {"samples": n, "dimension": p}, rounded(self, samples_per_dimension=n / p)

    def simulate(self, key, *, samples: int, dimension: int):
        x_key, w_key = jax.random.split(key)
        x = jax.random.normal(x_key, (dimension, samples))
        u = jax.random.uniform(w_key, (NEURONS, dimension))
        # Kept where u < 1 − ε, positive in the lower half of these.
        kept = 1 - self.sparsity
        w = jnp.where(u < kept, jnp.where(u < kept / 2, 1.0, -1.0), 0.0) / jnp.sqrt(kept)
        mean = class_mixtures.centre(self.activation, jnp.ones(())).mean
        features = class_mixtures.named(self.activation).value(w @ x / dimension**0.5) - mean
        return {"ones": jnp.mean(jnp.sum(features, axis=1) ** 2) / samples, "diagonal": jnp.mean(features**2)}
