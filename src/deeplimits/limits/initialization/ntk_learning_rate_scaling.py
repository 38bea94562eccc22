r"""The largest learning rate of a wide deep network."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import deep_networks
from deeplimits.limit import Limit, Run, choice, integer, real, whole
from deeplimits.models.activations import activation
from deeplimits.predictions import Value
from deeplimits.theory.initialization import learning_rates

_BELOW, _ABOVE = 0.95, 1.05
_NUDGE = 1e-5


class LearningRateScaling(Limit):
    r"""The learning rates that width and depth allow, from the tangent kernel.

    Setting     gradient descent on ‖z − y‖²/2m over m inputs of norm |x|² = n₀ and equal correlations; weights of
                layer l learn at rate ηλ_W/n_(l−1), biases at ηλ_b; W_ij ~ N(0, C_w/fan-in), b_i ~ N(0, C_b)
    Limit       widths n → ∞
    Result      Θ^(1) = λ_b + λ_W x·x'/n₀, Θ^(l+1) = λ_b + λ_W E σσ + C_w E σ'σ' Θ^(l)
                the residual along the top eigenvector is multiplied by 1 − ηλ_max/m a step: stable for η < 2m/λ_max,
                factor −0.9 at 5 % below, −1.1 at 5 % above
                ReLU, C_w = 2, λ_b = 0: Θ^(l)(x, x) = lλ_W, so η ∝ 1/L; tanh, C_w = 1: Θ ≈ λ_b L/2
    Validity    lazy regime (residuals small compared with the width); size counts the neurons n of a layer
    Finite size O(L/n)
    References  jacot2018; roberts2022 Ch 9
    """

    activation: str = choice("erf", ("tanh", "erf", "relu", "gelu"), doc="activation σ")
    weight_variance: Array = real(1.5, 0.1, 3.0, symbol="C_w", doc="weight variance times fan-in")
    bias_variance: Array = real(0.1, 0.0, 2.0, symbol="C_b", doc="bias variance")
    weight_rate: Array = real(
        1.0, 0.01, 10.0, log=True, symbol=r"\lambda_W", doc="learning rate of weights, times fan-in"
    )
    bias_rate: Array = real(1.0, 0.0, 10.0, symbol=r"\lambda_b", doc="learning rate of biases")
    correlation: Array = real(0.5, 0.0, 0.95, symbol=r"\rho", doc="correlation of any two inputs")
    hidden: int = integer(2, 1, 10, symbol="L", doc="number of hidden layers")
    inputs: int = integer(3, 2, 20, symbol="m", doc="number of inputs")

    usual = Run(sizes=(32, 96), samples=5000, batch=25)

    def _gram(self):
        same = jnp.eye(self.inputs)
        return same + (1 - same) * self.correlation

    def _tangent(self):
        rates = jnp.ones(self.hidden + 1)
        return learning_rates.tangent_kernels(
            self.activation,
            self._gram(),
            self.weight_variance,
            self.bias_variance,
            self.weight_rate * rates,
            self.bias_rate * rates,
        )[1][-1]

    def theory(self):
        tangent = self._tangent()
        unit = jnp.ones(())
        return {
            "tangent_kernel": Value(tangent[0, 0], label="tangent kernel of an input", symbol=r"\Theta(x,x)", rate=1.0),
            "tangent_kernel_pair": Value(
                tangent[0, 1], label="tangent kernel of two inputs", symbol=r"\Theta(x,x')", rate=1.0
            ),
            "factor_below": Value(
                (1 - 2 * _BELOW) * unit, label="factor a step, 5 % below", symbol="r_1/r_0", rate=1.0
            ),
            "factor_above": Value(
                (1 - 2 * _ABOVE) * unit, label="factor a step, 5 % above", symbol="r_1/r_0", rate=1.0
            ),
        }

    def at_size(self, size):
        n = whole(size, "n", self, least=2)
        return {"width": n}, self

    def simulate(self, key, *, width: int):
        sigma, m = activation(self.activation), self.inputs
        # m inputs in m dimensions with |x|² = m and the wanted correlations
        x = jnp.sqrt(1.0 * m) * jnp.linalg.cholesky(self._gram())
        fans = [m, *[width] * self.hidden]
        deviations = [jnp.sqrt(self.weight_variance / fan) for fan in fans]
        weights = deep_networks.draw(key, m, width, self.hidden, deviations, jnp.sqrt(self.bias_variance))
        rates = [(self.weight_rate / fan, self.bias_rate) for fan in fans]

        def network(weights):
            return deep_networks.outputs(weights, x, sigma)[0]

        start, pull_back = jax.vjp(network, weights)

        def scaled_gradient(weighting):
            return jax.tree.map(lambda g, r: r * g, pull_back(weighting)[0], rates)

        # Θe₁: what the outputs do when the parameters follow the gradient of the first of them.
        column = jax.jvp(network, (weights,), (scaled_gradient(jnp.eye(m)[0]),))[1]
        # The residual is the same for all inputs: with equal correlations that is the top eigenvector.
        target = start - _NUDGE
        gradient = scaled_gradient((start - target) / m)
        largest = learning_rates.largest_stable_rate(self._tangent())

        def factor(fraction):
            moved = jax.tree.map(lambda w, g: w - fraction * largest * g, weights, gradient)
            return jnp.mean(network(moved) - target) / _NUDGE

        return {
            "tangent_kernel": column[0],
            "tangent_kernel_pair": jnp.mean(column[1:]),
            "factor_below": factor(_BELOW),
            "factor_above": factor(_ABOVE),
        }
