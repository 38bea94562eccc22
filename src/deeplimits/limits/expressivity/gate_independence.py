r"""At one input, the gates of a random ReLU network are independent fair coins."""

import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import binom

from deeplimits.ensembles import relu_networks
from deeplimits.limit import Limit, Run, choice, integer, sized
from deeplimits.predictions import Curve, Value
from deeplimits.showcase import Showcase
from deeplimits.theory.expressivity import paths

COUNTED = 4
"""Numbers of open gates that are looked at: 0, 1, 2, 3."""


class GateIndependence(Limit):
    r"""The gates of a random ReLU network at one input are fair coins, independent of the size of what passes them.

    Setting     no biases, W^(l) = √(2/n_{l−1}) Ŵ^(l), entries symmetric without atoms, variance 1; ξ = 1{z > 0};
                |x|² = n_0
    Limit       none: exact at every width
    Result      the number of open gates in the last hidden layer is Binomial(n, 1/2) unless a layer before is off as a
                whole, and zero then; E ξ_i^(L) |h^(L−1)|²/n = (1/2) E |h^(L−1)|²/n = 1/2
    Validity    symmetric laws without atoms, one input; size counts the neurons n of a layer
    Finite size exact
    Computed by expressivity.gate_probability, expressivity.dead_probability (active)
    References  hanin2020
    """

    law: str = choice("laplace", relu_networks.LAWS, doc="law of the weights")
    hidden: int = integer(2, 2, 8, symbol="L", doc="number of hidden layers")
    width: int = integer(4, 3, 12, symbol="n", doc="neurons of a hidden layer")

    usual = Run(sizes=(4, 6), samples=40_000, batch=500)
    showcase = Showcase(
        parameters={"hidden": 4},
        see="Fair coins: the open gates of the last layer follow the binomial law, whatever the law of the "
        "weights; what zero has in excess are networks that a layer before has switched off.",
    )

    def theory(self):
        n = self.width
        dead = paths.dead_probability([n] * (self.hidden - 1))
        k = jnp.arange(float(COUNTED))
        coins = jnp.exp(binom.logpmf(k, n, 0.5))
        active = (1 - dead) * coins + jnp.where(k == 0, dead, 0.0)
        return {
            "active": Curve(
                k,
                active,
                axis="open gates in the last hidden layer",
                axis_symbol="k",
                label="number of open gates",
                symbol="P(k)",
                event=True,
            ),
            "energy": Value(0.5, label="size of what an open gate sees", symbol=r"E\,\xi|h|^2/n"),
        }

    def at_size(self, size):
        return sized(self, width=size, least=3)

    def simulate(self, key, *, width: int):
        weights = relu_networks.random_weights(key, [3, *[width] * self.hidden, 1], law=self.law)
        x = jnp.asarray(np.sqrt(3) * np.array([2.0, -1.0, 2.0]) / 3)
        last = relu_networks.gates(weights, x)[-1]
        before = jnp.maximum(relu_networks.relu_network(weights[: self.hidden - 1], x), 0.0)
        return {
            "active": jnp.where(jnp.arange(float(COUNTED)) == jnp.sum(last), 1.0, 0.0),
            "energy": jnp.mean(last) * jnp.sum(before**2) / width,
        }
