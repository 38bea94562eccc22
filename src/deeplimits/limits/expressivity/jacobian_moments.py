r"""Moments of the Jacobian of a random ReLU network: the second knows no depth, the fourth depth over width."""

import jax
import jax.numpy as jnp

from deeplimits.ensembles import relu_networks
from deeplimits.limit import Limit, Run, choice, integer, sized, too_small
from deeplimits.predictions import Value
from deeplimits.showcase import Showcase
from deeplimits.theory.expressivity import path_moments

FOURTH = {"gaussian": 3.0, "uniform": 9 / 5, "laplace": 6.0, "triangular": 12 / 5}
"""E Ŵ⁴ at variance 1."""


class JacobianMoments(Limit):
    r"""The exact second and fourth moment of an entry of the Jacobian of a random ReLU network.

    Setting     no biases, W^(l) = √(2/n_{l−1}) Ŵ^(l), independent symmetric entries of variance 1 without atoms, L
                hidden layers of width n, n_0 inputs; J_qp = ∂z_q/∂x_p at a fixed x
    Limit       none: exact at every width
    Result      E J² = 2/n_0 for every law of the weights; E J⁴ by a transfer matrix that the law enters through E Ŵ⁴,
                for Gaussian weights (12/n_0²)(1 + 5/n)^L
    Validity    symmetric laws without atoms; tails are heavy where L/n is large, n ≥ 4L; size counts the neurons n
    Finite size exact
    Computed by expressivity.jacobian_moment
    References  hanin2020
    """

    law: str = choice("gaussian", relu_networks.LAWS, doc="law of the weights")
    inputs: int = integer(3, 1, 50, symbol="n_0", doc="number of inputs")
    hidden: int = integer(2, 1, 6, symbol="L", doc="number of hidden layers")
    width: int = integer(12, 1, 100_000, log=True, symbol="n", doc="neurons of a hidden layer")

    usual = Run(sizes=(12, 24), samples=40_000, batch=250)
    showcase = Showcase(
        over="hidden",
        first="fourth",
        see="Depth leaves the second moment of a gradient where it is and multiplies the fourth by about 1 + "
        "5/n with every layer: few gradients become very large.",
    )

    # Rows of the Jacobian that are looked at together.
    outputs = 32

    def theory(self):
        widths, moments = [self.width] * self.hidden, [FOURTH[self.law]]
        second, fourth = (
            path_moments.jacobian_moment(order, self.inputs, widths, weight_moments=moments) for order in (2, 4)
        )
        return {
            "second": Value(second, label="second moment of the Jacobian", symbol="E J^2"),
            "fourth": Value(fourth, label="fourth moment of the Jacobian", symbol="E J^4"),
        }

    def validity_at(self, size):
        least = 4 * self.hidden
        return too_small(
            size, least, f"fourth moments of {self.hidden} layers have too heavy tails at width {size}; take {least}"
        )

    def at_size(self, size):
        return sized(self, width=size)

    def simulate(self, key, *, width: int):
        widths = [self.inputs, *[width] * self.hidden, self.outputs]
        weights = relu_networks.random_weights(key, widths, law=self.law)
        x = jnp.cos(1.0 + jnp.arange(float(self.inputs)))
        jacobian = jax.jacfwd(lambda one: relu_networks.relu_network(weights, one))(x)
        return {"second": jnp.mean(jacobian**2), "fourth": jnp.mean(jacobian**4)}
