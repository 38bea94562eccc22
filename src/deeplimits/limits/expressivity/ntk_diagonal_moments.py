r"""The tangent kernel of a ReLU network is random where depth is comparable to width: exact moments."""

import jax.numpy as jnp

from deeplimits.ensembles import relu_networks
from deeplimits.limit import Limit, Run, integer, sized, too_small
from deeplimits.predictions import Value
from deeplimits.showcase import Showcase
from deeplimits.theory.expressivity import tangent_moments


class NtkDiagonalMoments(Limit):
    r"""Mean and second moment of the tangent kernel of a random ReLU network at one input, exact at every width.

    Setting     no biases, Gaussian W^(l) = √(2/n_{l−1}) Ŵ^(l), L hidden layers of width n, one output, |x|² = n_0;
                Θ = Σ over all entries of all L + 1 matrices of (∂z/∂Ŵ)²
    Limit       none: exact at every width
    Result      E Θ = 2(L + 1); E Θ² = Σ_{l,m} 4[⅓(1+5/n)^L + ⅔(1+5/n)^{L−|m−l|}(1−1/n)^{|m−l|}]
    Validity    Gaussian weights; tails are heavy where L/n is large, n ≥ 4L; size counts the neurons n
    Finite size exact
    Computed by expressivity.ntk_moments, expressivity.ntk_spread_limit
    References  hanin2020b
    """

    inputs: int = integer(3, 1, 50, symbol="n_0", doc="number of inputs")
    hidden: int = integer(2, 1, 8, symbol="L", doc="number of hidden layers")
    width: int = integer(12, 1, 100_000, log=True, symbol="n", doc="neurons of a hidden layer")

    usual = Run(sizes=(8, 16), samples=60_000, batch=500)
    showcase = Showcase(
        over="hidden",
        first="second",
        see="The second moment of the tangent kernel grows faster than the square of its mean: where depth is "
        "comparable to width, the kernel stays random.",
    )

    def theory(self):
        found = tangent_moments.ntk_moments(float(self.inputs), self.inputs, [self.width] * self.hidden)
        return {
            "mean": Value(found.mean, label="tangent kernel", symbol=r"E\,\Theta"),
            "second": Value(found.second, label="second moment of the tangent kernel", symbol=r"E\,\Theta^2"),
        }

    def validity_at(self, size):
        least = 4 * self.hidden
        return too_small(
            size, least, f"squares of {self.hidden} layers have too heavy tails at width {size}; take {least}"
        )

    def at_size(self, size):
        return sized(self, width=size)

    def simulate(self, key, *, width: int):
        weights = relu_networks.random_weights(key, [self.inputs, *[width] * self.hidden, 1])
        x = jnp.cos(1.0 + jnp.arange(float(self.inputs)))
        x = x * jnp.sqrt(self.inputs / jnp.sum(x**2))
        kernel = relu_networks.tangent_kernel(weights, x[None])[0, 0]
        return {"mean": kernel, "second": kernel**2}
