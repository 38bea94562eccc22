r"""Infinitely wide networks: their Gaussian process and their tangent kernel."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles.wide_networks import WideNetwork
from deeplimits.limit import Limit, Run, activation_choice, choice, integer, real, whole
from deeplimits.measure import tangent_kernel
from deeplimits.models.architectures import FullyConnected
from deeplimits.predictions import Value
from deeplimits.showcase import Showcase
from deeplimits.theory import kernels


class NtkRecursion(Limit):
    r"""A wide network is a Gaussian process, and gradient descent sees a fixed kernel.

    Setting     h¹ = W¹x + b¹, h^{l+1} = W^{l+1}σ(h^l) + b^{l+1}, l = 1 … L, Var W = C_w/(fan in), Var b = C_b;
                two inputs with |x|² = |x'|² = d and cosine ρ
    Limit       widths n → ∞
    Result      K¹ = C_w x·x'/d + C_b, K^{l+1} = C_w E σ(u)σ(v) + C_b: covariance of the outputs (nngp)
                T¹ = K¹, T^{l+1} = K^{l+1} + C_w E[σ'(u)σ'(v)] T^l, (u, v) ~ N(0, K^l): tangent kernel (ntk);
                standard parametrization: λ_W = λ_b = 1 in place of C_w, C_b in what each layer adds; mup: the same
                tangent kernel as ntk, outputs that vanish
    Validity    E σ² finite, σ continuous; depth fixed; size counts the neurons n of each hidden layer
    Finite size mean exact for one hidden layer, O(1/n) for more; fluctuations O(n^(−1/2))
    Computed by kernels.InfiniteWidth (nngp, ntk)
    References  jacot2018; lee2018; lee2019
    """

    activation: str = activation_choice(
        "erf", lambda a: a.through_origin and a.lipschitz and not a.even, also=("leaky_relu(0.1)",)
    )
    parametrization: str = choice("ntk", ("ntk", "standard", "mup"), doc="what is trained, and how fast")
    hidden_layers: int = integer(2, 1, 50, symbol="L", doc="hidden layers")
    weight_variance: Array = real(1.5, 0.1, 4.0, log=True, symbol="C_w", doc="weight variance times fan in")
    bias_variance: Array = real(0.1, 0.0, 4.0, symbol="C_b", doc="bias variance")
    cosine: Array = real(0.5, -0.95, 0.95, symbol=r"\rho", doc="cosine of the angle between the inputs")

    usual = Run(sizes=(24, 72), samples=1600)
    showcase = Showcase(
        over="cosine",
        ranges={"cosine": (-0.95, 0.95)},
        see="Both kernels over the angle of the inputs: the tangent kernel is the steeper one.",
    )

    def _network(self):
        return FullyConnected(
            self.hidden_layers,
            self.activation,
            self.weight_variance,
            self.bias_variance,
            parametrization=self.parametrization,
        )

    # Pairs of inputs in orthogonal planes: one network shows its kernel several times, nearly independently.
    planes = 4

    def _inputs(self, planes):
        """The first and the second inputs of the pairs, of length √d in d = 2·planes dimensions."""
        first, other = jnp.split(jnp.sqrt(2.0 * planes) * jnp.eye(2 * planes), 2)
        return first, self.cosine * first + jnp.sqrt(1 - self.cosine**2) * other

    def theory(self):
        x = jnp.concatenate(self._inputs(1))
        found: Any = kernels.InfiniteWidth(self._network()).kernels(x)
        nngp, ntk = found.nngp, found.ntk
        rate = None if self.hidden_layers == 1 else 1.0
        return {
            "nngp": Value(nngp[0, 1], label="covariance of the outputs", symbol="K(x,x')", rate=rate),
            "ntk": Value(ntk[0, 1], label="tangent kernel", symbol=r"\Theta(x,x')", rate=rate),
            "ntk_diagonal": Value(
                ntk[0, 0], label="tangent kernel of an input with itself", symbol=r"\Theta(x,x)", rate=rate
            ),
        }

    def at_size(self, size):
        return {"width": whole(size, "n", self, least=2)}, self

    def simulate(self, key, *, width: int):
        x = jnp.concatenate(self._inputs(self.planes))
        network = WideNetwork(self._network(), inputs=2 * self.planes, widths=width)
        parameters = network.init(key)
        ntk = tangent_kernel.empirical_ntk(network, parameters, x)
        covariance = tangent_kernel.empirical_nngp(network, parameters, x)
        return {
            "nngp": jnp.mean(jnp.diagonal(covariance, self.planes)),
            "ntk": jnp.mean(jnp.diagonal(ntk, self.planes)),
            "ntk_diagonal": jnp.mean(jnp.diagonal(ntk)),
        }
