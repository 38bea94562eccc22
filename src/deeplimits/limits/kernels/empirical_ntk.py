r"""The tangent kernel of a finite network with one hidden layer: mean and variance at every width."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import two_layer_networks
from deeplimits.ensembles.wide_networks import WideNetwork
from deeplimits.limit import Limit, Run, activation_choice, real, whole
from deeplimits.measure import tangent_kernel
from deeplimits.models.activations import activation
from deeplimits.models.architectures import FullyConnected
from deeplimits.predictions import Value
from deeplimits.showcase import Showcase
from deeplimits.theory.kernels import two_layer_kernels


class EmpiricalNtk(Limit):
    r"""The tangent kernel of a finite two-layer network, with its exact variance.

    Setting     f = n^(−1/2) Σ_j a_j σ(h_j) + √C_b b, h_j = ⟨w_j, x⟩/√d + √C_b b_j, all parameters N(0, 1) and trained;
                |x|² = |x'|² = d, cosine ρ; q = ρ + C_b = Cov(h, h'), a = 1 + C_b = Var h
                Θ_n(x, x') = Σ_q ∂_q f(x) ∂_q f(x'), without prefactor
    Limit       n → ∞
    Result      E Θ_n = K + qK̇ + C_b, K = E σσ, K̇ = E σ'σ' at (a, a, q)
                n Var Θ_n = E σ²σ² + 2q E σσσ'σ' + 3q² E σ'²σ'² − (K + qK̇)²
                ReLU with inner weights trained alone, a_j = ±1, unit inputs: k_m/ρ is Binomial(m, p)/m, p = (π − θ)/2π,
                so E k_m = ρp (arc_cosine) and m Var k_m = ρ²p(1 − p) (arc_cosine_variance)
    Validity    E σ⁴, E σ'⁴ finite; size counts the neurons n = m
    Finite size mean and variance exact at every n
    Computed by kernels.two_layer_gram (kernel), kernels.ntk_variance (variance), kernels.arc_cosine_ntk (arc_cosine,
                arc_cosine_variance)
    References  jacot2018; cho2009; bartlett2021 Sec 5
    """

    activation: str = activation_choice(
        "relu", lambda a: a.through_origin and a.lipschitz and not a.even, doc="activation σ of the first two results"
    )
    bias_variance: Array = real(0.1, 0.0, 4.0, symbol="C_b", doc="bias variance")
    cosine: Array = real(0.5, -0.95, 0.95, symbol=r"\rho", doc="cosine of the angle between the inputs")

    usual = Run(sizes=(16, 64), samples=3000, batch=20)
    showcase = Showcase(
        over="cosine",
        ranges={"cosine": (-0.95, 0.95)},
        see="The tangent kernel of finite networks has the mean of the infinite one and a variance that "
        "falls like 1/n.",
    )

    # Independent networks in one simulation, from which an unbiased variance is formed.
    repeats = 12

    def theory(self):
        a, q = 1 + self.bias_variance, self.cosine + self.bias_variance
        gram = two_layer_kernels.two_layer_gram(self.activation, a, a, q)
        arc = two_layer_kernels.arc_cosine_ntk(1.0, 1.0, self.cosine)
        spread = r"n\,\mathrm{Var}"
        return {
            "kernel": Value(gram.ntk + self.bias_variance, label="tangent kernel", symbol=r"E\,\Theta_n"),
            "variance": Value(
                two_layer_kernels.ntk_variance(self.activation, a, a, q),
                label="variance of the tangent kernel, times n",
                symbol=rf"{spread}\,\Theta_n",
            ),
            "arc_cosine": Value(arc.mean, label="kernel of the inner ReLU weights", symbol="E k_m"),
            "arc_cosine_variance": Value(
                arc.variance, label="variance of that kernel, times n", symbol=rf"{spread}\,k_m"
            ),
        }

    def at_size(self, size):
        return {"width": whole(size, "n", self, least=2)}, self

    def simulate(self, key, *, width: int):
        x = jnp.stack([jnp.array([1.0, 0.0]), jnp.stack([self.cosine, jnp.sqrt(1 - self.cosine**2)])])
        description = FullyConnected(1, self.activation, 1.0, self.bias_variance)
        network = WideNetwork(description, inputs=2, widths=width)
        relu = activation("relu")

        def both(noise):
            own, neurons = noise[: network.count], noise[network.count :].reshape(width, 3)
            full = tangent_kernel.empirical_ntk(network, network.shaped(own), x * jnp.sqrt(2.0))[0, 1]
            a, w = jnp.sign(neurons[:, 0]), neurons[:, 1:]
            gradients = jax.vmap(jax.grad(lambda w, at: two_layer_networks.two_layer(relu, w, a, at)), (None, 0))(w, x)
            return full, jnp.sum(gradients[0] * gradients[1])

        full, inner = jax.vmap(both)(jax.random.normal(key, (self.repeats, network.count + 3 * width)))
        return {
            "kernel": jnp.mean(full),
            "variance": width * jnp.var(full, ddof=1),
            "arc_cosine": jnp.mean(inner),
            "arc_cosine_variance": width * jnp.var(inner, ddof=1),
        }
