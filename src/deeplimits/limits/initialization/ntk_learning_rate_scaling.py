r"""The largest learning rate of a wide deep network."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import deep_networks
from deeplimits.limit import Limit, Run, activation_choice, integer, real, whole
from deeplimits.models.activations import activation
from deeplimits.predictions import Value
from deeplimits.showcase import Showcase
from deeplimits.theory.initialization import learning_rates

# A residual this small leaves a network in the linear range of its parameters.
_NUDGE = 1e-5


class NtkLearningRateScaling(Limit):
    r"""The learning rates that width and depth allow, from the tangent kernel.

    Setting     gradient descent on ‖z − y‖²/2m over m inputs of norm |x|² = n₀ and equal correlations; weights of
                layer l learn at rate ηλ_W/n_(l−1), biases at ηλ_b; W_ij ~ N(0, C_w/fan-in), b_i ~ N(0, C_b)
    Limit       widths n → ∞
    Result      Θ^(1) = λ_b + λ_W x·x'/n₀, Θ^(l+1) = λ_b + λ_W E σσ + C_w E σ'σ' Θ^(l)
                the residual along the top eigenvector is multiplied by 1 − ηλ_max/m a step: it falls for η < 2m/λ_max,
                the largest learning rate, and grows above (measured: the η at which it only changes its sign)
                ReLU, C_w = 2, λ_b = 0: Θ^(l)(x, x) = lλ_W, so η ∝ 1/L; tanh, C_w = 1: Θ ≈ λ_b L/2
    Validity    lazy regime (residuals small compared with the width); size counts the neurons n of a layer
    Finite size O(L/n)
    Computed by initialization.tangent_kernels, initialization.largest_stable_rate; for the critical point of any
                activation initialization.depth_rates, initialization.criticality
    References  jacot2018; roberts2022 Ch 9
    """

    activation: str = activation_choice("erf", lambda a: a.through_origin and a.lipschitz and not a.even)
    weight_variance: Array = real(1.5, 0.1, 3.0, symbol="C_w", doc="weight variance times fan-in")
    bias_variance: Array = real(0.1, 0.0, 2.0, symbol="C_b", doc="bias variance")
    weight_rate: Array = real(
        1.0, 0.01, 10.0, log=True, symbol=r"\lambda_W", doc="learning rate of weights, times fan-in"
    )
    bias_rate: Array = real(1.0, 0.0, 10.0, symbol=r"\lambda_b", doc="learning rate of biases")
    correlation: Array = real(0.5, 0.0, 0.95, symbol=r"\rho", doc="correlation of any two inputs")
    hidden: int = integer(2, 1, 10, symbol="L", doc="number of hidden layers")
    inputs: int = integer(3, 2, 20, symbol="m", doc="number of inputs")

    usual = Run(sizes=(32, 96), samples=200)
    showcase = Showcase(
        first="largest_rate",
        over="correlation",
        see="The more alike the inputs, the larger the top eigenvalue and the smaller the largest learning rate.",
    )

    # Networks in one simulation: the largest rate is a reciprocal, which one narrow network would spread widely.
    networks = 10

    def _gram(self):
        same = jnp.eye(self.inputs)
        return same + (1 - same) * self.correlation

    def theory(self):
        rates = jnp.ones(self.hidden + 1)
        _, tangents = learning_rates.tangent_kernels(
            self.activation,
            self._gram(),
            self.weight_variance,
            self.bias_variance,
            self.weight_rate * rates,
            self.bias_rate * rates,
        )
        tangent = tangents[-1]
        return {
            "tangent_kernel": Value(tangent[0, 0], label="tangent kernel of an input", symbol=r"\Theta(x,x)", rate=1.0),
            "tangent_kernel_pair": Value(
                tangent[0, 1], label="tangent kernel of two inputs", symbol=r"\Theta(x,x')", rate=1.0
            ),
            "largest_rate": Value(
                learning_rates.largest_stable_rate(tangent),
                label="largest stable learning rate",
                symbol=r"2m/\lambda_{\max}",
                rate=1.0,
            ),
        }

    def at_size(self, size):
        n = whole(size, "n", self, least=2)
        return {"width": n}, self

    def simulate(self, key, *, width: int):
        sigma, m = activation(self.activation), self.inputs
        # m inputs in m dimensions with |x|² = m and the wanted correlations: √m times the root of their Gram matrix,
        # whose eigenvalues are 1 + (m − 1)ρ for equal entries and 1 − ρ
        apart, together = jnp.sqrt(1 - self.correlation), jnp.sqrt(1 + (m - 1) * self.correlation)
        x = jnp.sqrt(1.0 * m) * (apart * jnp.eye(m) + (together - apart) / m)
        fans = [m, *[width] * self.hidden]
        deviations = [jnp.sqrt(self.weight_variance / fan) for fan in fans]
        rates = [deep_networks.Layer(self.weight_rate / fan, self.bias_rate) for fan in fans]

        def network(weights):
            return deep_networks.outputs(sigma, weights, x).outputs

        def one(key):
            weights = deep_networks.draw(key, m, width, self.hidden, deviations, bias=jnp.sqrt(self.bias_variance))
            start, pull_back = jax.vjp(network, weights)

            def step(gradient, scale):
                moves = jax.tree.map(lambda g, r: scale * r * g, pull_back(gradient)[0], rates)
                return network(jax.tree.map(jnp.subtract, weights, moves)) - start

            # Small steps down the first output show the first column of the tangent kernel, and one step of η = 1 on a
            # residual that is the same for all inputs how fast it falls: with equal correlations the top eigenvector.
            directions = jnp.stack([jnp.eye(m)[0], jnp.ones(m) / m])
            column, fall = jax.vmap(lambda gradient: step(gradient, _NUDGE))(directions) / -_NUDGE
            return column, jnp.mean(fall)

        columns, falls = jax.vmap(one)(jax.random.split(key, self.networks))
        column = jnp.mean(columns, axis=0)
        return {
            "tangent_kernel": column[0],
            "tangent_kernel_pair": jnp.mean(column[1:]),
            # |1 − ηλ/m| = 1
            "largest_rate": 2 / jnp.mean(falls),
        }
