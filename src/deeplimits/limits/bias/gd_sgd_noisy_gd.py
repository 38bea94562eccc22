r"""Gradient descent, stochastic gradient descent and Langevin dynamics on one problem."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from deeplimits.ensembles import trainers
from deeplimits.limit import Limit, Run, choice, integer, real, replace, whole
from deeplimits.limits.bias._shared import nothing_fluctuates, top_eigenvalue
from deeplimits.models import designs
from deeplimits.numerics.arguments import written
from deeplimits.predictions import Curve, Value
from deeplimits.showcase import Showcase
from deeplimits.theory.bias import least_squares, noisy_descent, sgd_noise


class GdSgdNoisyGd(Limit):
    r"""Gradient descent, its stochastic form and its noisy form on least squares, step by step.

    Setting     L = (1/2m) Σ (⟨x_k, θ⟩ − y_k)² for a fixed polynomial regression, all θ_0 = 2, step η:
                θ_k = θ_{k−1} − η∇L(θ_{k−1}); SGD with fresh batches of size B; Langevin dynamics
                θ_k = θ_{k−1} − η∇L + √(2ητ) ξ_k
    Result      E θ_k of SGD is θ_k of gradient descent, exactly, because every batch is drawn afresh
                E L(θ_k) of SGD by the recursion of second moments, exactly
                Langevin: E L − L_min → ½ Σ_i τ/(1 − ηλ_i/2), near the Gibbs value dτ/2 of e^{−L/τ} for small steps;
                noise of variance s² added to the gradient has τ = ηs²/2
    Validity    η < 2/λ_max, for SGD less; size counts the steps
    Finite size exact
    Computed by bias.gradient_descent, bias.sgd_loss_path, bias.langevin_variance
    References  bottou2018; robbins1951
    """

    samples: int = integer(8, 3, 200, log=True, symbol="m", doc="number of samples")
    features: int = integer(2, 1, 6, symbol="d", doc="number of features: monomials of a degree below d")
    batch_size: int = integer(2, 1, 200, log=True, symbol="B", doc="batch size")
    step: Array = real(
        0.3, 0.01, 1.5, symbol=r"\eta\lambda_{\max}", doc="step size times the top eigenvalue of the Hessian"
    )
    temperature: Array = real(0.5, 0.001, 100.0, log=True, symbol=r"\tau", doc="temperature of the Langevin noise")
    sampling: str = choice(
        "with replacement", ("with replacement", "without replacement", "bernoulli"), doc="how batches are drawn"
    )
    steps: int = integer(40, 8, 10_000, log=True, symbol="k", doc="number of steps")

    usual = Run(sizes=(16, 32, 64), samples=10_000, batch=500)
    showcase = Showcase(
        first="sgd_loss", see="The mean of SGD is gradient descent; its loss stays above, by the noise of the batches."
    )

    def validity(self):
        if found := nothing_fluctuates(self):
            return found
        x, _ = designs.polynomial_regression(self.samples, self.features)
        largest = sgd_noise.largest_sgd_step(x, self.batch_size, self.sampling) * top_eigenvalue(x)
        if float(self.step) >= largest:
            return (f"step = {written(self.step)} is not below {largest:.4g}, where SGD diverges; take a smaller step",)
        return ()

    def _seen(self):
        return np.array([self.steps * k // 8 for k in range(1, 9)])

    def theory(self):
        x, y = designs.polynomial_regression(self.samples, self.features)
        step, start = self.step / top_eigenvalue(x), jnp.full(self.features, 2.0)
        mean = least_squares.gradient_descent(
            jnp.asarray(x), jnp.asarray(y), start, step, self._seen(), loss_scale=1 / (2 * self.samples)
        )
        # L(θ) − L_min = ‖X(θ − θ_LS)‖²/2m
        plain = jnp.sum((x @ (mean - np.linalg.lstsq(x, y)[0][None, :]).T) ** 2, axis=0) / (2 * self.samples)
        loss = sgd_noise.sgd_loss_path(x, y, start, step, self.batch_size, self.sampling, self.steps)[self._seen()]
        eigenvalues = jnp.asarray(np.linalg.svd(x, compute_uv=False)) ** 2 / self.samples
        # v_k = v_∞ (1 − (1−ηλ)^{2k}) from a start at the minimum
        reached = 1 - (1 - step * eigenvalues) ** (2 * self.steps)
        variances = noisy_descent.langevin_variance(step, eigenvalues, self.temperature) * reached
        grid: dict[str, Any] = {"axis": "steps", "axis_symbol": "k"}
        seen = self._seen().astype(float)
        return {
            "descent": Curve(
                seen, plain, label="excess loss of gradient descent", symbol=r"L(\theta_k)-L_{\min}", **grid
            ),
            "sgd_mean": Curve(
                seen, mean[:, 0], label="mean of the first coefficient", symbol=r"E\,\theta_{k,1}", **grid
            ),
            "sgd_loss": Curve(seen, loss, label="mean excess loss of SGD", symbol=r"E\,L(\theta_k)-L_{\min}", **grid),
            "langevin_energy": Value(
                eigenvalues @ variances / 2,
                label="excess loss of Langevin dynamics",
                symbol=r"\frac{1}{2}\sum_i\lambda_i v_i",
            ),
        }

    def at_size(self, size):
        return {}, replace(self, steps=whole(size, "k", self, least=8))

    def simulate(self, key):
        x, y = designs.polynomial_regression(self.samples, self.features)
        step, start = self.step / top_eigenvalue(x), jnp.full(self.features, 2.0)
        batch_key, noise_key = jax.random.split(key)
        minimizer = jnp.asarray(np.linalg.lstsq(x, y)[0])

        def losses(theta):
            return (x @ theta - y) ** 2 / 2

        def mean_loss(theta):
            return jnp.mean(losses(theta))

        def excess(theta):
            return mean_loss(theta) - mean_loss(minimizer)

        plain = trainers.gradient_descent(mean_loss, start, step, self._seen())
        noisy = trainers.stochastic_gradient_descent(
            batch_key, losses, start, step, self.steps, self.batch_size, sampling=self.sampling
        )
        path = jnp.concatenate([noisy.observed, noisy.end[None]])[self._seen()]
        noise = jnp.sqrt(2 * self.temperature / step)
        schedule = jnp.full(self.steps, 1.0) * step
        gradient, ends = jax.grad(mean_loss), (self.steps,)
        warm = trainers.noisy_gradient_descent(noise_key, gradient, minimizer, schedule, noise, ends)
        energies = jax.vmap(excess)(jnp.concatenate([plain, path, warm]))
        return {
            "descent": energies[: len(plain)],
            "sgd_mean": path[:, 0],
            "sgd_loss": energies[len(plain) : -1],
            "langevin_energy": energies[-1],
        }
