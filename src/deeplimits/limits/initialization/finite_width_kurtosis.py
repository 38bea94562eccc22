r"""How far a finite random network is from Gaussian."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import deep_networks
from deeplimits.limit import Limit, Run, activation_choice, integer, real, sized
from deeplimits.models.activations import activation
from deeplimits.predictions import Curve, Value
from deeplimits.showcase import Showcase
from deeplimits.theory.initialization import finite_width


class FiniteWidthKurtosis(Limit):
    r"""Depth over width measures how far a random network is from Gaussian.

    Setting     a random network with hidden widths n, C_w and C_b; K̂^(l) the variance of a neuron of layer l given the
                layer before it
    Limit       n → ∞ for V; none for the products
    Result      E z⁴ − 3(E z²)² = 3 Var K̂^(l), and n Var K̂^(l) → V^(l), V^(1) = 0,
                V^(l+1) = C_w²(E σ⁴ − (E σ²)²) + χ_∥(K^(l))² V^(l)
                E z⁴/3(E z²)² = Π_l (1 + 2/n_l) for linear networks at C_w = 1 and Π_l (1 + 5/n_l) for ReLU networks at
                C_w = 2, both with C_b = 0: what counts is Σ 1/n_l, depth over width
    Validity    Gaussian weights; size counts the neurons n of a layer
    Finite size O(1/n) for V; the products are exact
    Computed by initialization.vertex_path, initialization.kurtosis_ratio, initialization.collective_variance
    References  hanin2018; roberts2022 Ch 4; yaida2020
    """

    activation: str = activation_choice("tanh", lambda a: a.through_origin and a.lipschitz and not a.even)
    weight_variance: Array = real(1.0, 0.1, 3.0, symbol="C_w", doc="weight variance times fan-in")
    bias_variance: Array = real(0.0, 0.0, 2.0, symbol="C_b", doc="bias variance")
    kernel: Array = real(1.0, 0.05, 5.0, log=True, symbol="K^{(1)}", doc="variance of first-layer neurons")
    hidden: int = integer(3, 1, 12, symbol="L", doc="number of hidden layers")
    width: int = integer(100, 2, 1_000_000, log=True, symbol="n", doc="neurons of a hidden layer")

    usual = Run(sizes=(30, 120), samples=14_000, batch=50)
    showcase = Showcase(
        over="hidden",
        first="relu_ratio",
        size=30,
        see="The kurtosis grows with depth over width, here over the depth at thirty neurons a layer: deep narrow "
        "networks are far from Gaussian.",
    )

    # Networks whose kernels are compared in one simulation.
    copies = 8

    def theory(self):
        layers = self.hidden + 1
        vertices = finite_width.vertex_path(
            self.activation, self.kernel, self.weight_variance, self.bias_variance, layers
        )
        widths = [self.width] * self.hidden
        return {
            "vertex": Curve(
                jnp.arange(2.0, layers + 1.0),
                vertices[1:],
                axis="layer",
                axis_symbol="l",
                label="variance of the kernel, times n",
                symbol=r"n\,\mathrm{Var}\,\hat K^{(l)}",
                rate=1.0,
            ),
            "relu_ratio": Value(
                finite_width.kurtosis_ratio("relu", widths),
                label="kurtosis, ReLU",
                symbol=r"E z^4/3(E z^2)^2",
            ),
            "linear_ratio": Value(
                finite_width.kurtosis_ratio("identity", widths),
                label="kurtosis, linear",
                symbol=r"E z^4/3(E z^2)^2",
            ),
        }

    def at_size(self, size):
        return sized(self, width=size, least=2)

    def simulate(self, key, *, width: int):
        # The same numbers for all three activations: each result is judged by itself.
        noise = jax.random.normal(key, (self.copies, self.hidden, width))

        def given(name, kernel, weight_variance, bias_variance):
            """Variance of a neuron of layers 2 … L+1, given the layer before, in each copy."""
            sigma = activation(name)
            return jax.vmap(
                lambda part: deep_networks.variance_chain(part, sigma, kernel, weight_variance, bias_variance)[1:]
            )(noise)

        kernels = given(self.activation, self.kernel, self.weight_variance, self.bias_variance)
        nothing, unit = jnp.zeros(()), jnp.ones(())
        # E z⁴ = 3 E K̂², and E z² = 1 by the choice of C_w.
        relu = given("relu", unit, 2 * unit, nothing)[:, -1]
        linear = given("identity", unit, unit, nothing)[:, -1]
        return {
            "vertex": width * jnp.var(kernels, axis=0, ddof=1),
            "relu_ratio": jnp.mean(relu**2),
            "linear_ratio": jnp.mean(linear**2),
        }
