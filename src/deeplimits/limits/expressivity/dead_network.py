r"""A deep and narrow ReLU network may be off at its input, whatever its weights are scaled by."""

import jax.numpy as jnp

from deeplimits.ensembles import relu_networks
from deeplimits.limit import Limit, Run, choice, integer, sized
from deeplimits.predictions import Probability
from deeplimits.showcase import Showcase
from deeplimits.theory.expressivity import paths


class DeadNetwork(Limit):
    r"""A random ReLU network without biases is dead at an input with probability 1 − (1 − 2⁻ⁿ)ᴸ.

    Setting     no biases, weights of a symmetric law without atoms, L hidden layers of width n, a fixed input x ≠ 0
    Limit       none: exact at every width
    Result      P(all neurons of some layer are off) = 1 − (1 − 2^{−n})^L; output and Jacobian are then zero
    Validity    a single input: that the whole function is constant is less likely; size counts the neurons n of a layer
    Finite size exact
    Computed by expressivity.dead_probability
    References  hanin2020; lu2020
    """

    law: str = choice("gaussian", relu_networks.LAWS, doc="law of the weights")
    hidden: int = integer(8, 1, 60, symbol="L", doc="number of hidden layers")
    width: int = integer(4, 1, 40, symbol="n", doc="neurons of a hidden layer")

    usual = Run(sizes=(2, 4), samples=4000, batch=100)
    showcase = Showcase(
        over="hidden",
        ranges={"hidden": (1, 60)},
        see="Depth kills narrow networks: at four neurons a layer, more than nine of ten networks of 40 "
        "layers are zero at their input, whatever their weights are scaled by.",
    )

    def theory(self):
        dead = paths.dead_probability([self.width] * self.hidden)
        return {"dead": Probability(dead, label="the network is dead", symbol=r"P(J = 0)")}

    def at_size(self, size):
        return sized(self, width=size)

    def simulate(self, key, *, width: int):
        weights = relu_networks.random_weights(key, [3, *[width] * self.hidden, 1], law=self.law)
        x = jnp.array([1.0, -2.0, 0.5])
        on = jnp.stack([jnp.max(layer) for layer in relu_networks.gates(weights, x)])
        return {"dead": 1.0 - jnp.min(on)}
