r"""Gradient descent on least squares."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import data, flows, trainers
from deeplimits.limit import Limit, Run, integer, real, whole
from deeplimits.predictions import Identity
from deeplimits.theory.bias import least_squares


class MinNormLeastSquares(Limit):
    r"""Gradient descent on least squares finds the minimizer closest to its start.

    Setting     loss ‖Xθ − y‖²/n for X of shape (n, d), gradient descent with step η from any θ₀; X = U diag(s) V'
    Limit       none is needed: the statement is exact for every finite system; t → ∞ for the minimizer
    Result      θ_t = θ₀ + V diag([1 − (1 − 2ηs²/n)^t]/s) U'(y − Xθ₀), for every t
                gradient flow: (1 − 2ηs²/n)^t becomes exp(−2s²t/n)
                θ_∞ = θ₀ + X⁺(y − Xθ₀), and θ_t − θ₀ never leaves the row space of X
    Validity    0 < η < n/s_max²; size counts the samples n
    Finite size exact, up to rounding; the integrated flow to 1e-9
    References  gunasekar2018
    """

    gamma: Array = real(2.5, 0.05, 20.0, log=True, symbol=r"\gamma", doc="features per sample, d/n")
    step: Array = real(
        0.6, 0.001, 0.999, symbol=r"\eta/\eta_{\max}", doc="step size, in units of the largest stable one"
    )
    steps: int = integer(100, 1, 100_000, log=True, symbol="t", doc="number of steps")

    usual = Run(sizes=(10, 40), samples=10)

    def theory(self):
        # Each of t steps adds a rounding error, and none is amplified.
        return {
            "trajectory": Identity(label="closed-form iterates", constant=1e3 + 10 * self.steps),
            "flow": Identity(label="closed-form gradient flow", constant=1e7),
            "row_space": Identity(label="staying in the row space", constant=1e3 + 10 * self.steps),
        }

    def at_size(self, size):
        n = whole(size, "n", self)
        d = whole(n * float(self.gamma), "d", self)
        return {"samples": n, "features": d}, self.replace(gamma=d / n)

    def _closed_form(self, x, y, start, step):
        return least_squares.gradient_descent(x, y, start, step, jnp.arange(self.steps + 1))

    def simulate(self, key, *, samples: int, features: int):
        data_key, label_key, start_key = jax.random.split(key, 3)
        x = data.independent_entries(data_key, samples, features)
        y = jax.random.normal(label_key, (samples,))
        start = jax.random.normal(start_key, (features,))
        step = self.step * samples / jnp.linalg.norm(x, ord=2) ** 2
        path = trainers.gradient_descent(lambda theta: jnp.mean((x @ theta - y) ** 2), start, step, self.steps)
        # Times in units of the fastest relaxation: from the start of the flow to well past it.
        times = jnp.array([0.3, 1.0, 3.0, 10.0]) * samples / (2 * jnp.linalg.norm(x, ord=2) ** 2)
        flow = flows.gradient_flow(
            lambda theta: jnp.mean((x @ theta - y) ** 2), start, times, rtol=1e-12, atol=1e-13, stiff=False
        )
        moved = path - start
        return {
            "trajectory": jnp.stack([path, self._closed_form(x, y, start, step)]),
            "flow": jnp.stack([flow, least_squares.gradient_flow(x, y, start, times)]),
            "row_space": jnp.stack([moved, least_squares.in_row_space(x, moved)]),
        }
