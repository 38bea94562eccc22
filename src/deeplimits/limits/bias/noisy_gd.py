r"""Noisy gradient descent on a quadratic, and Robbins-Monro."""

import jax.numpy as jnp
from jax.scipy.stats import norm
from jaxtyping import Array

from deeplimits.ensembles import trainers
from deeplimits.limit import Limit, Run, integer, real, replace, whole
from deeplimits.predictions import Curve, Law, Value
from deeplimits.showcase import Showcase
from deeplimits.theory.bias import noisy_descent


class NoisyGd(Limit):
    r"""Noisy gradient descent: stationary at a constant step, convergent with steps c/t.

    Setting     δ_{t+1} = (1 − η_t λ)δ_t − η_t ξ_t, independent ξ_t ~ N(0, σ²), from δ_0 = 0
    Limit       t → ∞
    Result      v_t = E δ_t² obeys v_{t+1} = (1 − η_t λ)²v_t + η_t²σ² exactly; constant η: v_∞ = ησ²/(λ(2 − ηλ))
                η_t = c/t: t v_t → c²σ²/(2cλ − 1) for 2cλ > 1; L² convergence needs Σ η = ∞ and η → 0, almost sure
                convergence follows with Σ η² < ∞
                averaging T iterates at a constant step: T E(mean²) → σ²/λ²
    Validity    0 < ηλ < 2, cλ > 1 here so that corrections are of order 1/t; size counts the steps t
    Finite size O(1/t) for the Robbins-Monro and averaging constants; curve and law exact
    Computed by bias.variance_path; at late times bias.stationary_variance, bias.averaged_variance, bias.robbins_monro
    References  robbins1951; polyak1992
    """

    curvature: Array = real(1.0, 0.01, 100.0, log=True, symbol=r"\lambda", doc="curvature")
    step: Array = real(0.4, 0.02, 1.9, symbol=r"\eta\lambda", doc="constant step size times the curvature")
    gain: Array = real(1.5, 1.05, 10.0, log=True, symbol=r"c\lambda", doc="gain of the steps c/t, times the curvature")
    noise: Array = real(1.0, 0.01, 100.0, log=True, symbol=r"\sigma", doc="standard deviation of the gradient noise")
    steps: int = integer(256, 64, 100_000, log=True, symbol="t", doc="number of steps")

    usual = Run(sizes=(64, 128, 256), samples=4000, batch=200)
    showcase = Showcase(
        first="schedule", see="With steps c/t the variance falls like 1/t, with a constant step it stays."
    )

    # Independent directions in one simulation.
    directions = 25

    def _schedules(self):
        eta, c = self.step / self.curvature, self.gain / self.curvature
        times = jnp.arange(1.0, self.steps + 1.0)
        return jnp.full(self.steps, 1.0) * eta, c / times

    def _seen(self):
        """The times at which the curve is looked at: the last step and fractions of it."""
        return jnp.array([self.steps // 2**k for k in reversed(range(7))])

    def theory(self):
        variance = self.noise**2
        constant, shrinking = self._schedules()
        along = noisy_descent.variance_path(self.curvature, shrinking, variance)[self._seen()]
        last = noisy_descent.variance_path(self.curvature, constant, variance)[-1]
        c = self.gain / self.curvature
        x = jnp.linspace(-5.0, 5.0, 401)
        # Gaussian noise: the displacement is Gaussian at every time.
        deviation = jnp.sqrt(last)
        return {
            "stationary": Law(
                x * deviation,
                norm.pdf(x) / deviation,
                norm.cdf(x),
                label="displacement at a constant step",
                symbol=r"\delta_t",
            ),
            "variance": Value(last, label="variance at a constant step", symbol="v_t"),
            "schedule": Curve(
                self._seen().astype(float),
                along,
                axis="steps",
                axis_symbol="t",
                label="variance with steps c/t",
                symbol="v_t",
                log_x=True,
                log_y=True,
            ),
            "robbins_monro": Value(
                c**2 * variance / (2 * self.gain - 1), label="Robbins-Monro constant", symbol="t v_t", rate=1.0
            ),
            "averaged": Value(
                variance / self.curvature**2, label="averaging constant", symbol=r"T E\bar\delta^2", rate=1.0
            ),
        }

    def at_size(self, size):
        t = whole(size, "t", self, least=64)
        return {}, replace(self, steps=t)

    def simulate(self, key):
        # Both schedules side by side.
        schedules = jnp.stack(self._schedules(), axis=1)[:, :, None]
        start, marks = jnp.zeros((2, self.directions)), jnp.arange(self.steps + 1)
        path = trainers.noisy_gradient_descent(
            key, lambda delta: self.curvature * delta, start, schedules, self.noise, marks
        )
        steady, cooling = path[:, 0], path[:, 1]
        return {
            "stationary": steady[-1],
            "variance": jnp.mean(steady[-1] ** 2),
            "schedule": jnp.mean(cooling[self._seen()] ** 2, axis=1),
            "robbins_monro": self.steps * jnp.mean(cooling[-1] ** 2),
            "averaged": self.steps * jnp.mean(jnp.mean(steady[1:], axis=0) ** 2),
        }
