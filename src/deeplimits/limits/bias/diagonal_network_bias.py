r"""Diagonal linear networks."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import data, flows
from deeplimits.limit import Limit, Run, integer, real, whole
from deeplimits.predictions import Identity
from deeplimits.theory.bias import diagonal_networks


class DiagonalNetwork(Limit):
    r"""The initialization scale of a diagonal linear network leads from the ℓ1 to the ℓ2 solution.

    Setting     β = w₊^D − w₋^D entrywise, w± = αθ₀ at the start, gradient flow on ½‖Xβ − y‖²; X of shape (n, d), d > n
    Limit       t → ∞ at fixed data
    Result      β(t) = c h(θ₀^{D−2} X'ν(t)), c = (αθ₀)^D, h = 2 sinh for D = 2; where the flow interpolates it ends at
                argmin Q(β) : Xβ = y, Q = Σ c_i q(β_i/c_i), q(z) = 2 − √(4+z²) + z arcsinh(z/2) for D = 2
                α → ∞: weighted ℓ2 norm, approached like α^{−2D}; α → 0: ℓ1 norm, Q/log(1/α²) → ‖β‖₁
    Validity    α > 0, θ₀ without zeros, Xβ = y solvable; size counts the samples n
    Finite size exact: integrated until the labels are fitted to 1e-10
    References  woodworth2020 Thm 1, Thm 3
    """

    alpha: Array = real(0.1, 1e-3, 10.0, log=True, symbol=r"\alpha", doc="scale of the initialization")
    gamma: Array = real(3.0, 1.1, 20.0, log=True, symbol="d/n", doc="features per sample")
    depth: int = integer(2, 2, 6, symbol="D", doc="number of layers")

    usual = Run(sizes=(3, 6), samples=10)

    def theory(self):
        # The labels are fitted to 1e-10, and a poorly conditioned X turns that into 1e-7 of β.
        return {
            "limit": Identity(label="interpolating solution", symbol=r"\beta(\infty)", constant=1e9),
            "trajectory": Identity(label="trajectory", symbol=r"\beta(t)", constant=1e8),
        }

    def at_size(self, size):
        n = whole(size, "n", self)
        d = whole(n * float(self.gamma), "d", self, least=n + 1)
        return {"samples": n, "features": d}, self.replace(gamma=d / n)

    def simulate(self, key, *, samples: int, features: int):
        x_key, label_key, start_key = jax.random.split(key, 3)
        x = data.independent_entries(x_key, samples, features)
        y = jax.random.normal(label_key, (samples,))
        start = jax.random.uniform(start_key, (features,), minval=0.5, maxval=1.5)
        stated = diagonal_networks.traced_interpolant(x, y, self.alpha, start, self.depth)
        # Times in units of the fastest growth at the start, so that β moves by its own size.
        scale = self.alpha ** (self.depth - 2) * jnp.max(jnp.abs(y @ x)) * self.depth
        times = jnp.array([0.5, 1.0, 2.0]) / scale
        path = flows.diagonal_network_flow(x, y, self.alpha, start, self.depth, times)
        return {
            "limit": jnp.stack([flows.diagonal_network_limit(x, y, self.alpha, start, self.depth), stated.beta]),
            "trajectory": jnp.stack([path, diagonal_networks.trajectory(x, y, self.alpha, times, start, self.depth)]),
        }
