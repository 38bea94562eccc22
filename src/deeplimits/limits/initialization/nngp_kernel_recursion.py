r"""The kernel of a wide random network, layer by layer."""

import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import deep_networks
from deeplimits.limit import Limit, Run, activation_choice, integer, real, whole
from deeplimits.limits.initialization._shared import layer_curve
from deeplimits.models.activations import activation
from deeplimits.predictions import Value
from deeplimits.showcase import Showcase
from deeplimits.theory.initialization import correlations, finite_width


class NngpKernelRecursion(Limit):
    r"""The kernel of a wide random network obeys a recursion over the layers.

    Setting     z^(1) = W^(1)x + b^(1), z^(l+1) = W^(l+1)σ(z^(l)) + b^(l+1), W_ij ~ N(0, C_w/fan-in), b_i ~ N(0, C_b);
                two inputs with |x|²/n₀ = q and correlation ρ
    Limit       all hidden widths n → ∞
    Result      neurons become independent Gaussian processes, K^(1) = C_b + C_w x·x'/n₀ (exactly: fan-in scaling keeps
                it of order one), K^(l+1) = C_b + C_w E_{K^(l)}[σ(z)σ(z')]
                tanh at C_w = 1, C_b = 0 (critical, K* = 0 class): K^(l) ~ 1/2l
                linear networks: K^(l) = C_b(1 + C_w + … + C_w^(l−2)) + C_w^(l−1) K^(1)
                ReLU at C_w = 2, C_b = 0: K_aa is kept, c ← (√(1−c²) + c(π − arccos c))/π, 1 − c_l ~ 9π²/2l²
    Validity    σ polynomially bounded; size counts the neurons n of a layer
    Finite size O(1/n) for means, growing with depth; O((l/n)^(1/2)) for one network
    Computed by initialization.preactivation_variance (first_layer), initialization.correlation_path (kernel,
                covariance, relu_correlation), initialization.kernel_path (kernel), initialization.linear_kernel
                (linear_covariance)
    References  neal1996; lee2018; matthews2018; poole2016
    """

    activation: str = activation_choice("tanh", lambda a: a.through_origin and a.lipschitz and not a.even)
    weight_variance: Array = real(1.0, 0.1, 3.0, symbol="C_w", doc="weight variance times fan-in")
    bias_variance: Array = real(0.0, 0.0, 2.0, symbol="C_b", doc="bias variance")
    norm: Array = real(1.0, 0.05, 4.0, log=True, symbol="q", doc="mean square of an input's entries, |x|²/n₀")
    correlation: Array = real(0.5, -0.95, 0.95, symbol=r"\rho", doc="correlation of the two inputs")
    layers: int = integer(6, 2, 30, symbol="L", doc="number of layers looked at")

    usual = Run(sizes=(40, 120), samples=6000, batch=100)
    showcase = Showcase(
        first="covariance",
        see="Layer by layer the kernel follows its recursion; at the critical point it decays like a power.",
    )

    def theory(self):
        c_w, c_b = self.weight_variance, self.bias_variance
        # K^(1) of the two inputs; the variance is that of any input with |x|²/n₀ = q
        variance = finite_width.preactivation_variance(jnp.sqrt(self.norm)[None], c_w, c_b)
        covariance = c_b + c_w * self.norm * self.correlation
        gaps, kernels = correlations.correlation_path(
            self.activation, 1 - covariance / variance, variance, c_w, c_b, self.layers - 1
        )
        relu_gaps, _ = correlations.correlation_path("relu", 1 - self.correlation, self.norm, 2.0, 0.0, self.layers - 1)
        layer = jnp.arange(1.0, self.layers + 1.0)

        over_layers = functools.partial(layer_curve, layer)
        return {
            "first_layer": Value(variance, label="first-layer variance", symbol=r"C_b+C_w|x|^2/n_0"),
            "kernel": over_layers(kernels, "variance of preactivations", r"K^{(l)}_{11}", log_x=True, log_y=True),
            "covariance": over_layers(kernels * (1 - gaps), "covariance of preactivations", r"K^{(l)}_{12}"),
            "linear_covariance": over_layers(
                finite_width.linear_kernel(covariance, c_w, c_b, layer),
                "covariance in linear networks",
                r"K^{(l)}_{12}",
            ),
            "relu_correlation": over_layers(1 - relu_gaps, "correlation in critical ReLU networks", "c_l"),
        }

    def at_size(self, size):
        n = whole(size, "n", self, least=2)
        return {"width": n}, self

    def simulate(self, key, *, width: int):
        # Three networks: σ, linear, and ReLU at C_w = 2 without biases; all weights of the first layer are drawn.
        inputs = deep_networks.correlated_inputs(self.norm, self.correlation)
        here, behind = jax.random.split(key)
        weights = jax.random.normal(here, (3, width, inputs.shape[1] + 1))
        noise = jax.random.normal(behind, (3, self.layers - 1, 2, width))
        own, he = (self.weight_variance, self.bias_variance), (jnp.asarray(2.0), jnp.asarray(0.0))
        seen, linear, relu = (
            deep_networks.pair_chain_of_inputs(weights[part], noise[part], activation(name), inputs, *variances)
            for part, (name, variances) in enumerate(((self.activation, own), ("identity", own), ("relu", he)))
        )
        return {
            "first_layer": seen[0, 0],
            "kernel": (seen[:, 0] + seen[:, 2]) / 2,
            "covariance": seen[:, 1],
            "linear_covariance": linear[:, 1],
            "relu_correlation": 1 - deep_networks.correlation_gap(relu),
        }
