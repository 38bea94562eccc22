r"""How far a wide ReLU network can be from its linearization."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import two_layer_networks
from deeplimits.limit import Limit, Run, choice, integer, real, sized
from deeplimits.models.activations import activation
from deeplimits.predictions import Value
from deeplimits.showcase import Showcase
from deeplimits.theory.kernels import linearization


class ReluLinearizationBound(Limit):
    r"""The worst distance of a wide ReLU network from its linearization, among all weights in a ball.

    Setting     f(x; W) = m^(−1/2) Σ_j a_j (⟨w_j, x⟩)₊, a_j = ±1, ‖x‖ = 1, Gaussian W₀; f̃ linearized there;
                ‖W − W₀‖_F ≤ B
    Limit       m → ∞
    Result      sup_W |f − f̃| m^{1/6}/B^{4/3} → (3/8) 2^{2/3} κ^{1/3}, κ = φ(0) for balanced signs (0.4382), 2φ(0) if
                all a_j are equal (0.5521): neurons with |⟨w, x⟩| ≤ D/2 move by D = (2B²/κm)^{1/3} across their kink
                with probability 1 − δ, for all W at once: sup ≤ (2B^{4/3} + B log(1/δ)^{1/4})/m^{1/6}
    Validity    B² ≪ m; gradient descent does not seek the worst weights and stays within O(m^(−1/2)); size counts the
                neurons m
    Finite size O(m^(−1/3)) for balanced signs, where the larger of two groups counts; O(m^(−2/3)) for equal ones
    Computed by kernels.relu_worst_case, kernels.relu_worst_deviation
    References  telgarsky2021
    """

    signs: str = choice("equal", ("equal", "balanced"), doc="output weights: all equal, or half +1 and half −1")
    distance: Array = real(1.0, 0.05, 5.0, log=True, symbol="B", doc="distance of the weights from their start")
    width: int = integer(1000, 4, 10_000_000, log=True, symbol="m", doc="number of neurons")

    usual = Run(sizes=(250, 1000, 4000), samples=120)
    showcase = Showcase(
        over="distance",
        see="The worst distance from the linearization, divided by the power 4/3 of the distance travelled: the same "
        "however far that is.",
    )

    def theory(self):
        supremum = linearization.relu_worst_case(self.width, self.distance, balanced=self.signs == "balanced")
        scale = self.width ** (1 / 6) / self.distance ** (4 / 3)
        return {
            "worst_case": Value(
                scale * supremum,
                label="largest distance from the linearization, over B^(4/3)/m^(1/6)",
                symbol=r"m^{1/6}B^{-4/3}\sup|f-\tilde f|",
                rate=2 / 3 if self.signs == "equal" else 1 / 3,
            )
        }

    def at_size(self, size):
        return sized(self, width=size, least=4)

    def simulate(self, key, *, width: int):
        relu = activation("relu")
        # Only ⟨w, x⟩ matters: one dimension, x = 1.
        start = jax.random.normal(key, (width, 1))
        output = jnp.ones(width)
        if self.signs == "balanced":
            output = jnp.where(jnp.arange(width) < width // 2, 1.0, -1.0)

        def remainder(group):
            weights = start + jnp.where(group, _worst_move(start[:, 0], group, self.distance), 0.0)[:, None]

            def network(w):
                return two_layer_networks.two_layer(relu, w, output, jnp.ones(1))

            value, change = jax.jvp(network, (start,), (weights - start,))
            return jnp.abs(network(weights) - value - change)

        worst = jnp.max(jax.vmap(remainder)(jnp.stack([output > 0, output < 0])))
        return {"worst_case": worst * width ** (1 / 6) / self.distance ** (4 / 3)}


def _worst_move(products, group, distance):
    """The moves of one sign group, of total length `distance`, that take the network farthest from its linearization.

    Every neuron that crosses its kink by an overshoot of t adds t; with the k nearest crossing, equal moves B/√k are
    best and give B√k − Σ_{j≤k} |⟨w_j, x⟩|.
    """
    gaps = jnp.sort(jnp.where(group, jnp.abs(products), jnp.inf))
    counts = jnp.arange(1.0, products.shape[0] + 1.0)
    gain = distance * jnp.sqrt(counts) - jnp.cumsum(jnp.where(jnp.isinf(gaps), 1e9, gaps))
    best = jnp.argmax(gain)
    crossing = jnp.abs(products) <= gaps[best]
    return jnp.where(crossing, -jnp.sign(products) * distance / jnp.sqrt(counts[best]), 0.0)
