r"""In deep networks signals are log-normal, with depth over width as the variance."""

import jax
import jax.numpy as jnp
from jax.scipy.stats import norm
from jaxtyping import Array

from deeplimits.ensembles import deep_networks
from deeplimits.limit import Limit, Run, integer, real, rounded, too_small, whole
from deeplimits.models.activations import activation
from deeplimits.predictions import Law, Value
from deeplimits.showcase import Showcase
from deeplimits.theory.expressivity import path_moments


class JacobianLognormal(Limit):
    r"""The size of a signal, or of a gradient, in a random ReLU network is log-normal, of variance 5L/n.

    Setting     no biases, Gaussian weights W^(l) = √(2/n_{l−1}) Ŵ^(l), L hidden layers of width n;
                R = (n_0/n)|h^(L)|²/|x|², which has the law of |J|²n_0/2 for a column of the Jacobian without g²
    Limit       n → ∞ with L/n → δ
    Result      R is in law Π X_l, X = (2/n)χ²_k with k binomial; log R → N(−β/2, β), β = 5δ. Given that no layer is
                off, mean and variance of log R are L times those of log X
    Validity    Gaussian weights; n ≥ 32, where no layer is ever off; size counts the neurons n
    Finite size mean and variance exact at every n; the law deviates by O(1/n)
    Computed by expressivity.layer_factor, expressivity.jacobian_log_moments (mean, second)
    References  hanin2020
    """

    depth_per_width: Array = real(
        0.25, 0.1, 2.0, log=True, symbol=r"\delta", doc="hidden layers per neuron of one, L/n"
    )
    width: int = integer(32, 2, 100_000, log=True, symbol="n", doc="neurons of a hidden layer")

    usual = Run(sizes=(32, 64, 128), samples=25_000, batch=500)
    showcase = Showcase(
        see="The size of a signal is log-normal, and the variance of its logarithm is five times depth over "
        "width: deeper is wider."
    )

    def theory(self):
        factor = path_moments.layer_factor(self.width)
        layers = self.depth_per_width * self.width
        mean, variance = layers * factor.mean, layers * factor.variance
        beta = 5 * self.depth_per_width
        x = jnp.linspace(-6.0, 6.0, 241) * jnp.sqrt(beta) - beta / 2
        return {
            "mean": Value(mean, label="mean of the log of the signal", symbol=r"E\log R"),
            "second": Value(variance + mean**2, label="second moment of the log of the signal", symbol=r"E\log^2 R"),
            "law": Law(
                x,
                norm.pdf(x, -beta / 2, jnp.sqrt(beta)),
                norm.cdf(x, -beta / 2, jnp.sqrt(beta)),
                label="log of the size of the signal",
                symbol=r"\log R",
                rate=1.0,
            ),
        }

    def validity_at(self, size):
        return too_small(size, 32, f"at width {size} a layer may be off as a whole, and log R infinite; take 32")

    def at_size(self, size):
        n = whole(size, "n", self, least=2)
        layers = max(round(n * float(self.depth_per_width)), 1)
        return {"width": n, "hidden": layers}, rounded(self, depth_per_width=layers / n, width=n)

    def simulate(self, key, *, width: int, hidden: int):
        # Given a layer, the neurons of the next are independent: layers are drawn one by one, without their matrices.
        noise = jax.random.normal(key, (hidden, width))
        variance = deep_networks.variance_chain(
            noise, activation("relu"), jnp.ones(()), jnp.full((), 2.0), jnp.zeros(())
        )
        log_size = jnp.log(variance[-1] / variance[0])
        return {"mean": log_size, "second": log_size**2, "law": log_size}
