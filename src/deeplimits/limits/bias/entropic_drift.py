r"""Gradient noise prefers flat valleys."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from deeplimits.limit import Limit, Run, axis, integer, real, rounded, whole
from deeplimits.numerics import draws
from deeplimits.numerics.arguments import written
from deeplimits.predictions import Curve, Value
from deeplimits.showcase import Showcase
from deeplimits.theory.bias import slow_directions

LARGEST_DECAY = 0.4
"""Of ln(φ₀/φ) over 1/η, half of which is the relative correction to φ."""


class EntropicDrift(Limit):
    r"""Gradient noise drives flat directions towards smaller curvature.

    Setting     L = Σ_i λ_i(φ)θ_i² with λ_i = s_i(1 + φ²/2) and s_i around one; SGD with step η, gradient noise of
                covariance αH on the steep θ (H_ii = 2λ_i), none on φ; started at φ = φ₀ with stationary θ
    Limit       η → 0 at fixed τ = αη² · (number of steps)
    Result      ⟨θ_i²⟩ = αη/(2(1 − ηλ_i)) exactly at fixed φ; φ drifts by −(αη²/2) ∂_φ Σλ_i a step, so that
                φ(τ) = φ₀ exp(−Σs_i τ/2), and tr H = 2Σλ_i falls by (αη²/4)|∂_φ tr H|² a step
    Validity    η λ_i < 1; C = αH is an assumption about the noise; size counts 1/η
    Finite size O(η) for the drift; the variance is exact
    Computed by bias.valley_drift, bias.fast_variance; for curvatures of one's own bias.entropic_drift
    References  wei2019
    """

    noise_per_curvature: Array = real(
        0.3, 0.01, 3.0, log=True, symbol=r"\alpha", doc="covariance of the gradient noise per Hessian"
    )
    start: Array = real(1.0, 0.1, 2.0, symbol=r"\varphi_0", doc="initial position in the flat direction")
    step: Array = real(0.02, 0.001, 0.1, log=True, symbol=r"\eta", doc="step size")
    coordinates: int = integer(4, 1, 50, symbol="n", doc="number of steep coordinates")
    slow_times: Array = axis((0.1, 0.25, 0.5), 0.01, 5.0, symbol=r"\tau", doc="slow times αη² · steps")

    usual = Run(sizes=(16, 32, 64), samples=400, batch=200)
    showcase = Showcase(
        parameters={"slow_times": (0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0)},
        see="Nothing pushes along the valley floor, yet noise carries the point to where the valley is wide.",
    )

    def validity(self):
        steepest = 1.5 * (1 + float(self.start) ** 2 / 2)
        if float(self.step) * steepest >= 0.5:
            return (f"step = {written(self.step)} times the curvature {steepest:g} is not small; take a smaller step",)
        return ()

    def validity_at(self, size):
        # ln(φ₀/φ) = Στ s_i/2 is itself corrected by a share η = 1/size.
        time = float(np.max(np.asarray(self.slow_times)))
        decay = self.coordinates * time / 2
        if decay <= LARGEST_DECAY * size:
            return ()
        return (
            f"at 1/η = {size} the correction to a decay by exp(−{decay:.3g}), coordinates = {self.coordinates}, up to "
            f"slow_times = {written(time)}, is not small; take sizes of at least "
            f"{math.ceil(decay / LARGEST_DECAY)}, or "
            "shorter times",
        )

    def _stiffness(self):
        return jnp.asarray(np.linspace(0.5, 1.5, self.coordinates) if self.coordinates > 1 else np.ones(1))

    def theory(self):
        stiffness = self._stiffness()
        # Any α and η give the same path in the slow time.
        path = slow_directions.valley_drift(stiffness, self.start, self.slow_times)
        variances = slow_directions.fast_variance(
            self.noise_per_curvature, self.step, stiffness * (1 + self.start**2 / 2)
        )
        grid: dict[str, Any] = {"axis": "slow time", "axis_symbol": r"\tau"}
        trace = 2 * jnp.sum(stiffness) * (1 + path**2 / 2)
        return {
            "position": Curve(self.slow_times, path, label="flat direction", symbol=r"\varphi", rate=1.0, **grid),
            "trace": Curve(
                self.slow_times, trace, label="trace of the Hessian", symbol=r"\mathrm{tr}\,H", rate=1.0, **grid
            ),
            "variance": Value(
                jnp.mean(variances), label="variance of the steep directions", symbol=r"\langle\theta^2\rangle"
            ),
        }

    def at_size(self, size):
        inverse = whole(size, "1/η", self, least=4)
        one_step = float(self.noise_per_curvature) / inverse**2
        counts = [whole(float(time) / one_step, "steps", self) for time in np.asarray(self.slow_times)]
        times = [count * one_step for count in counts]
        # θ relaxes at the rate 2ηλ ≥ η a step: e^{−12} is left of its start after 12/η steps.
        realised = rounded(self, step=1 / inverse, slow_times=times)
        return {"counts": tuple(counts), "warmup": 12 * inverse}, realised

    def simulate(self, key, *, counts: tuple[int, ...], warmup: int):
        stiffness, eta, n = self._stiffness(), self.step, self.coordinates

        def loss(theta, phi):
            return jnp.sum(stiffness * (1 + phi**2 / 2) * theta**2)

        def advance(state, index):
            theta, phi = state
            across, along = jax.grad(loss, argnums=(0, 1))(theta, phi)
            # standard deviation √(α H_ii), H_ii = 2λ_i
            spread = jnp.sqrt(self.noise_per_curvature * 2 * stiffness * (1 + phi**2 / 2))
            kick = spread * draws.draw(draws.neighbour(key, index), (), n).gaussians
            # θ settles and is then recorded at a fixed φ; after that φ moves too.
            pace = jnp.where(index < 2 * warmup, 0.0, eta)
            return (theta - eta * (across + kick), phi - pace * along), (jnp.mean(theta**2), phi)

        length = 2 * warmup + counts[-1] + 1
        _, (squares, path) = jax.lax.scan(advance, (jnp.zeros(n), self.start), jnp.arange(length))
        seen = path[2 * warmup + np.array(counts)]
        return {
            "position": seen,
            "trace": 2 * jnp.sum(stiffness) * (1 + seen**2 / 2),
            "variance": jnp.mean(squares[warmup : 2 * warmup]),
        }
