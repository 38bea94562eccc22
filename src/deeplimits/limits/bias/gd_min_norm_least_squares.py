r"""Gradient descent on least squares."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from deeplimits.ensembles import data, flows, trainers
from deeplimits.limit import Limit, Run, integer, real, rounded, whole
from deeplimits.models.designs import Design
from deeplimits.numerics.shapes import Scalar
from deeplimits.predictions import Identity
from deeplimits.predictions.picture import Axis, Line, Picture
from deeplimits.showcase import Showcase
from deeplimits.theory.bias import least_squares


class System(NamedTuple):
    """A regression problem, where descent starts, its step, and the times at which the flow is looked at."""

    design: Design
    start: Float[Array, " d"]
    step: Scalar
    times: Float[Array, " times"]


class GdMinNormLeastSquares(Limit):
    r"""Gradient descent on least squares finds the minimizer closest to its start.

    Setting     loss ‖Xθ − y‖²/n for X of shape (n, d), gradient descent with step η from any θ₀; X = U diag(s) V'
    Limit       none is needed: the statement is exact for every finite system; t → ∞ for the minimizer
    Result      θ_t = θ₀ + V diag([1 − (1 − 2ηs²/n)^t]/s) U'(y − Xθ₀), for every t
                gradient flow: (1 − 2ηs²/n)^t becomes exp(−2s²t/n)
                θ_∞ = θ₀ + X⁺(y − Xθ₀), and θ_t − θ₀ never leaves the row space of X
    Validity    0 < η < n/s_max²; size counts the samples n
    Finite size exact, up to rounding; the integrated flow to 1e-11
    Computed by bias.gradient_descent, bias.gradient_flow, bias.in_row_space; where they end bias.closest_minimizer
    References  gunasekar2018
    """

    gamma: Array = real(2.5, 0.05, 20.0, log=True, symbol=r"\gamma", doc="features per sample, d/n")
    step: Array = real(
        0.6, 0.001, 0.999, symbol=r"\eta/\eta_{\max}", doc="step size, in units of the largest stable one"
    )
    steps: int = integer(100, 1, 100_000, log=True, symbol="t", doc="number of steps")

    usual = Run(sizes=(10, 40), samples=10)
    showcase = Showcase(
        see="Each singular direction of the data is learned at a rate of its own, the largest first; what lies across "
        "the row space never is. The iterates are these, to rounding.",
    )

    def charts(self):
        steps = np.unique(np.geomspace(1, 1000, 80).round())
        lines = [
            # 1 − (1 − 2ηs²/n)^t, where 2ηs_max²/n is twice the share of the largest stable step.
            Line(steps, 1 - (1 - 2 * float(self.step) * share) ** steps, label=f"s² = {share:g} s_{{max}}²", series=k)
            for k, share in enumerate((1.0, 0.3, 0.1, 0.03, 0.01, 0.0))
        ]
        across = Axis("steps", "t", log=True, whole=True)
        return {"learned": Picture(across, Axis("share that is learned", r"1-(1-2\eta s^2/n)^t"), tuple(lines))}

    def at_size(self, size):
        n = whole(size, "n", self)
        d = whole(n * float(self.gamma), "d", self)
        return {"samples": n, "features": d}, rounded(self, gamma=d / n)

    def draw(self, key, *, samples: int, features: int):
        entries = data.independent_entries(key, samples + 1, features + 1)
        x = entries[:-1, :-1]
        # the largest eigenvalue s_max²/n of X'X/n, whose inverse bounds the step
        top = jnp.linalg.norm(x, ord=2) ** 2 / samples
        # Times in units of the fastest relaxation: from the start of the flow to well past it.
        times = jnp.array([0.3, 1.0, 3.0, 10.0]) / (2 * top)
        return System(Design(x, entries[:-1, -1]), entries[-1, :-1], self.step / top, times)

    def stated(self, system):
        (x, y), start, step, times = system
        path = least_squares.gradient_descent(x, y, start, step, jnp.arange(self.steps + 1))
        # Each step adds a rounding error, and none is amplified.
        roundings = 500 + self.steps
        rounding, reason = roundings * 2.0**-52, f"{roundings} roundings of 2.2e-16"
        end, beginning = least_squares.in_row_space(x, jnp.stack([path[-1], start]))
        return {
            "trajectory": Identity(
                path, label="closed-form iterates", symbol=r"\theta_t", tolerance=rounding, reason=reason
            ),
            "flow": Identity(
                least_squares.gradient_flow(x, y, start, times),
                label="closed-form gradient flow",
                symbol=r"\theta(t)",
                tolerance=1e-11,
                reason="relative tolerance 1e-12 of the integrator at each step, and errors decay",
            ),
            # Across the row space nothing ever moves.
            "row_space": Identity(
                jnp.stack([end, start - beginning]),
                label="last iterate, along and across the row space",
                tolerance=rounding,
                reason=reason,
            ),
        }

    def measured(self, system):
        (x, y), start, step, times = system

        def loss(theta):
            return jnp.mean((x @ theta - y) ** 2)

        path = trainers.gradient_descent(loss, start, step, jnp.arange(self.steps + 1))
        basis = jnp.linalg.qr(x.T)[0]
        along = basis @ (basis.T @ path[-1])
        return {
            "trajectory": path,
            "flow": flows.gradient_flow(loss, start, times, rtol=1e-12, atol=1e-13, stiff=False),
            "row_space": jnp.stack([along, path[-1] - along]),
        }
