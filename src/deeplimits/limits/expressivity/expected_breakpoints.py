r"""How many linear pieces a random ReLU network has along a line."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from deeplimits.limit import Limit, Run, integer, real, sized
from deeplimits.measure.adapters import switching
from deeplimits.measure.regions import lines
from deeplimits.predictions import Curve
from deeplimits.showcase import Showcase
from deeplimits.theory.expressivity import kink_density


class ExpectedBreakpoints(Limit):
    r"""The expected number of breakpoints of a random ReLU network on an interval, by Kac and Rice, with its constant.

    Setting     one input, W^(l)_ij ~ N(0, C_w/n_{l−1}), b^(l) ~ N(0, C_b), L hidden layers of width n, the interval
                [−T, T]
    Limit       n → ∞
    Result      a neuron of layer l has (2/π) arctan(T √(B_l/A_l)) zeros, A_l = C_b Σ_{k<l}(C_w/2)^k,
                B_l = C_w(C_w/2)^{l−1}: at most 2T √(C_w/C_b)/π, and 1 on the whole line
    Validity    C_b > 0; size counts the neurons n of a layer
    Finite size the first layer is exact; the others deviate by O(1/n)
    Computed by expressivity.expected_breakpoints, expressivity.breakpoint_constant
    References  hanin2019
    """

    weight_variance: Array = real(2.0, 0.5, 4.0, symbol="C_w", doc="weight variance times fan-in")
    bias_variance: Array = real(0.1, 0.01, 5.0, log=True, symbol="C_b", doc="bias variance")
    half_length: Array = real(1.0, 0.1, 10.0, log=True, symbol="T", doc="half the length of the interval")
    hidden: int = integer(3, 1, 5, symbol="L", doc="number of hidden layers")
    width: int = integer(30, 1, 10_000, log=True, symbol="n", doc="neurons of a hidden layer")

    usual = Run(sizes=(10, 20, 40), samples=400)
    showcase = Showcase(
        parameters={"hidden": 5},
        see="No neuron of a deep layer adds more breakpoints than one of the first: the number of linear "
        "pieces grows with the neurons, and not exponentially with depth.",
    )

    def theory(self):
        found = kink_density.expected_breakpoints(
            jnp.zeros(1),
            jnp.ones(1),
            -self.half_length,
            self.half_length,
            self.weight_variance,
            self.bias_variance,
            [self.width] * self.hidden,
        )
        return {
            "layers": Curve(
                jnp.arange(1.0, self.hidden + 1),
                found.per_neuron,
                axis="layer",
                axis_symbol="l",
                label="breakpoints per neuron",
                symbol=r"E\,\#/n",
                rate=1.0,
            )
        }

    def at_size(self, size):
        return sized(self, width=size, least=2)

    def simulate(self, key, *, width: int):
        widths = [1, *[width] * self.hidden]
        total = sum(after * (before + 1) for before, after in itertools.pairwise(widths))
        arguments = (jax.random.normal(key, (total,)), self.weight_variance, self.bias_variance, self.half_length)
        answer = jax.ShapeDtypeStruct((self.hidden,), jnp.zeros(()).dtype)

        def counted(*given):
            return _counted(widths, *(np.asarray(one) for one in given)) / width

        return {"layers": jax.pure_callback(counted, answer, *arguments, vmap_method="sequential")}


def _counted(widths, flat, weight_variance, bias_variance, half_length):
    """How many neurons of each layer change on [−T, T], exactly."""
    weights, biases, begin = [], [], 0
    for before, after in itertools.pairwise(widths):
        end = begin + after * (before + 1)
        part = flat[begin:end].reshape(after, before + 1)
        weights.append(np.sqrt(weight_variance / before) * part[:, 1:])
        biases.append(np.sqrt(bias_variance) * part[:, 0])
        begin = end
    network = switching.Matrices([*weights, np.ones((1, widths[-1]))], [*biases, np.zeros(1)])
    return lines.line_pieces(network, np.array([[-half_length], [half_length]])).crossings.astype(float)
