r"""How far a wide smooth network is from its linearization."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import two_layer_networks
from deeplimits.limit import Limit, Run, activation_choice, choice, integer, real, sized
from deeplimits.models import activations
from deeplimits.numerics.arguments import known, written
from deeplimits.predictions import Bound
from deeplimits.showcase import Showcase
from deeplimits.theory.kernels import linearization

LEAST_MOVE = 1e-3
"""Of a single neuron: below that, the remainder of one that attains the bound is lost in rounding errors."""


class SmoothLinearizationBound(Limit):
    r"""A wide smooth network is close to its linearization, within a bound that cannot be improved.

    Setting     f(x; W) = m^(−1/2) Σ_j a_j σ(⟨w_j, x⟩), |a_j| ≤ 1, ‖x‖ ≤ 1, |σ''| ≤ L; any two weight matrices V, W
    Result      |f(x;W) − f(x;V) − ⟨∇f(x;V), W − V⟩| ≤ L‖W − V‖²_F / (2√m)
                attained for σ = Lu²/2, and by any σ as m → ∞ when every neuron starts where |σ''| is largest and moves
                along x
    Validity    σ twice differentiable with bounded second derivative; size counts the neurons m
    Finite size holds at every m
    Computed by kernels.smooth_remainder_bound
    References  bartlett2021 Sec 5; chizat2019
    """

    activation: str = activation_choice(
        "tanh", lambda a: a.bounded_curvature and (a.homogeneous == 2 if a.even else a.homogeneous is None)
    )
    case: str = choice("adversarial", ("adversarial", "random"), doc="weights that attain the bound, or random ones")
    width: int = integer(400, 1, 10_000_000, log=True, symbol="m", doc="number of neurons")
    dimension: int = integer(10, 1, 10_000, log=True, symbol="d", doc="dimension of the input")
    distance: Array = real(1.0, 1e-3, 100.0, log=True, symbol=r"\|W-V\|_F", doc="distance of the two weight matrices")

    usual = Run(sizes=(100, 400, 1600), samples=40)
    showcase = Showcase(
        see="No network leaves its linearization further than the bound, which grows with the square of the distance."
    )

    def theory(self):
        activation = activations.activation(self.activation)
        bound = linearization.smooth_remainder_bound(activation, self.width, self.distance)
        return {"remainder": Bound(bound, label="distance from the linearization")}

    def validity_at(self, size):
        # A neuron that attains the bound moves by δ = ‖W − V‖/√m, and the remainder is a share δ² of what it is the
        # difference of; tanh and its kin stay below the bound by another factor δ².
        if self.case == "random" or not known(self.distance) or float(self.distance) >= LEAST_MOVE * size**0.5:
            return ()
        least = LEAST_MOVE * size**0.5
        return (
            f"distance = {written(self.distance)} shared by m = {size} neurons leaves too few digits of a remainder "
            f"that attains its bound; take a distance of at least {least:.2g}, fewer neurons, or case = 'random'",
        )

    def at_size(self, size):
        return sized(self, width=size)

    def simulate(self, key, *, width: int):
        activation = activations.activation(self.activation)
        noise = jax.random.normal(key, (2 * width + 1, self.dimension))
        x, v = noise[-1] / jnp.linalg.norm(noise[-1]), noise[:width]
        if self.case == "adversarial":
            output = jnp.ones(width)
            v = v + jnp.outer(_most_curved(activation) - v @ x, x)
            move = jnp.broadcast_to(x, v.shape)
        else:
            output = jnp.where(jnp.arange(width) % 2 == 0, 1.0, -1.0)
            move = noise[width:-1]
        move = self.distance * move / jnp.linalg.norm(move)

        def network(weights):
            return two_layer_networks.two_layer(activation, weights, output, x)

        value, directional_derivative = jax.jvp(network, (v,), (move,))
        return {"remainder": jnp.abs(network(v + move) - value - directional_derivative)}


def _most_curved(activation: activations.Activation) -> Array:
    """Where a neuron's curvature is largest, nearest to zero, on a grid, by differentiating its value twice."""
    grid = jnp.linspace(-5.0, 5.0, 20_001)
    curvature = jnp.abs(jax.vmap(jax.grad(jax.grad(activation.value)))(grid))
    largest = curvature >= (1 - 1e-12) * jnp.max(curvature)
    return grid[jnp.argmin(jnp.where(largest, jnp.abs(grid), jnp.inf))]
