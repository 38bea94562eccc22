r"""Residual networks approach differential equations."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles.data import gaussian_arrays
from deeplimits.ensembles.transformers import residual
from deeplimits.limit import Limit, Run, activation_choice, integer, real, replace, whole
from deeplimits.models.activations import activation
from deeplimits.predictions import Exponent, Value
from deeplimits.showcase import Showcase
from deeplimits.theory.attention import neural_odes


class ResnetToNeuralOde(Limit):
    r"""A residual network with L layers and steps T/L is Euler's method for a differential equation.

    Setting     x_{k+1} = x_k + h w(kh)σ(a x_k + b), h = T/L, from x_0 of norm √d; w(t) = w₁ cos t + w₂ sin t and a have
                Gaussian entries with variances g²/m and g²/d, m hidden units
    Limit       L → ∞ at fixed T
    Result      x_L → x(T), ẋ = w(t)σ(a x + b), ∂x_L/∂x_0 → J(T), J̇ = ∂_xf J; L(x_L − x(T)) → Tδ(T),
                δ̇ = ∂_xf δ − (∂_tf + ∂_xf f)/2
    Validity    smooth σ of bounded slope and weights that are Lipschitz in time (independent weights in every layer
                have the scaling L^(−1/2) and a stochastic limit); size counts the layers L
    Finite size O(1/L), the error of Euler's method
    Computed by attention.neural_ode
    References  e2017; chen2018
    """

    activation: str = activation_choice("tanh", lambda a: a.smooth and a.lipschitz)
    dimension: int = integer(3, 1, 10, symbol="d", doc="dimension of the hidden state")
    width: int = integer(8, 1, 40, symbol="m", doc="hidden units of a block")
    gain: Array = real(1.0, 0.1, 1.5, symbol="g", doc="scale of the weights")
    time: Array = real(1.0, 0.1, 2.0, symbol="T", doc="length of the network in time")
    layers: Array = real(40, 1, 1e6, log=True, symbol="L", doc="number of layers")

    usual = Run(sizes=(32, 64, 128), samples=60, batch=10)
    showcase = Showcase(over="time", see="Doubling the layers halves the distance to the differential equation.")

    def at_size(self, size):
        return {}, replace(self, layers=whole(size, "L", self))

    def draw(self, key):
        d, m = self.dimension, self.width
        one, two, into, bias, start = gaussian_arrays(key, (d, m), (d, m), (m, d), (m,), (d,))
        outward, inward = self.gain / jnp.sqrt(1.0 * m), self.gain / jnp.sqrt(1.0 * d)
        return outward * one, outward * two, inward * into, bias, start * jnp.sqrt(1.0 * d) / jnp.linalg.norm(start)

    def _block(self, system):
        one, two, into, bias, _ = system
        sigma = activation(self.activation).value
        return lambda t, x: (one * jnp.cos(t) + two * jnp.sin(t)) @ sigma(into @ x + bias)

    def stated(self, system):
        flow = neural_odes.neural_ode(self._block(system), system[-1], self.time)
        return {
            "end": Value(jnp.linalg.norm(flow.end), label="norm of the output", symbol=r"\|x(T)\|", rate=1.0),
            "jacobian": Value(
                jnp.linalg.norm(flow.jacobian), label="norm of the input-output Jacobian", symbol=r"\|J\|_F", rate=1.0
            ),
            "first_error": Value(
                jnp.linalg.norm(flow.first_error), label="first order of the error of L layers", symbol=r"T|\delta|",
                rate=1.0,
            ),
            "order": Exponent(
                1.0, label="change by halving the step", x=self.time / self.layers * jnp.array([1.0, 0.5]), axis="step",
                rate=1.0,
            ),
        }  # fmt: skip

    def measured(self, system):
        block, start = self._block(system), system[-1]

        def network(x, layers):
            return residual.residual_network(block, x, self.time, layers)

        once, twice, four = (network(start, times * self.layers) for times in (1.0, 2.0, 4.0))
        jacobian = jax.jacfwd(network)(start, self.layers)
        # x_L − x(T) = e/L + …, so that x_L − x_2L = e/(2L) + …
        first, second = jnp.linalg.norm(once - twice), jnp.linalg.norm(twice - four)
        return {
            "end": jnp.linalg.norm(once),
            "jacobian": jnp.linalg.norm(jacobian),
            "first_error": 2 * self.layers * first,
            "order": jnp.stack([first, second]),
        }
