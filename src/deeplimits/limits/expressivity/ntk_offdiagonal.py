r"""The tangent kernel between two inputs of a ReLU network."""

import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import relu_networks
from deeplimits.limit import Limit, Run, integer, real, whole
from deeplimits.predictions import Value
from deeplimits.showcase import Showcase
from deeplimits.theory.expressivity import tangent_moments


class NtkOffdiagonal(Limit):
    r"""The mean tangent kernel of two inputs: gates of two inputs are not independent of what passes them.

    Setting     no biases, Gaussian W^(l) = √(2/n_{l−1}) Ŵ^(l), L hidden layers of width n, one output,
                |x|² = |x'|² = n_0/2, cosine ρ
    Limit       n → ∞
    Result      E Θ(x, x') = t with c = t = ρ at first and L times φ = arccos c, c ← (sin φ + (π−φ) cos φ)/π,
                t ← c + t(π−φ)/π
    Validity    ρ away from the value at which t vanishes; size counts the neurons n of a layer
    Finite size exact for L = 1, otherwise O(1/n)
    Computed by expressivity.ntk_off_diagonal, expressivity.ntk_eigenvalue_bounds
    References  hanin2020b; jacot2018
    """

    hidden: int = integer(2, 1, 5, symbol="L", doc="number of hidden layers")
    cosine: Array = real(0.5, -0.3, 0.98, symbol=r"\rho", doc="cosine of the angle between the inputs")

    usual = Run(sizes=(12, 36), samples=30_000, batch=250)
    showcase = Showcase(
        see="The tangent kernel of two inputs grows with the cosine between them, towards the value L + 1 "
        "that it has on the diagonal."
    )

    def theory(self):
        kernel = tangent_moments.ntk_off_diagonal(self.cosine, self.hidden)
        rate = None if self.hidden == 1 else 1.0
        return {"kernel": Value(kernel, label="tangent kernel of two inputs", symbol=r"E\,\Theta(x,x')", rate=rate)}

    def at_size(self, size):
        return {"width": whole(size, "n", self, least=2)}, self

    def simulate(self, key, *, width: int):
        x = jnp.stack([jnp.array([1.0, 0.0]), jnp.stack([self.cosine, jnp.sqrt(1 - self.cosine**2)])])
        weights = relu_networks.random_weights(key, [2, *[width] * self.hidden, 1])
        return {"kernel": relu_networks.tangent_kernel(weights, x)[0, 1]}
