r"""Which step sizes gradient descent bears, and the best one."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from deeplimits.ensembles import data, trainers
from deeplimits.limit import Limit, Run, real, rounded, whole
from deeplimits.numerics.arguments import written
from deeplimits.numerics.shapes import Scalar
from deeplimits.predictions import Identity, Value
from deeplimits.showcase import Showcase
from deeplimits.theory.bias import noisy_descent


class System(NamedTuple):
    """Features, the eigenvectors of the Hessian in columns, by increasing eigenvalue, and a step size."""

    x: Float[Array, "n d"]
    vectors: Float[Array, "d d"]
    step: Scalar


class GdLinearStability(Limit):
    r"""The step sizes that gradient descent bears, and the best of them, for random features.

    Setting     gradient descent on ‖Xθ − y‖²/(2n), X of shape (n, d) with independent entries of unit variance; Hessian
                eigenvalues λ_i, κ = λ_max/λ_min over the nonzero ones
    Limit       n, d → ∞ with d/n → γ for the values; none for the contraction itself
    Result      the error along an eigenvector is multiplied by 1 − ηλ_i a step; all shrink for 0 < η < 2/λ_max
                best step 2/(λ_max + λ_min), factor (κ−1)/(κ+1); heavy ball (√κ−1)/(√κ+1)
                λ → (1 ± √γ)²: largest step 2/(1+√γ)², best factor 2√γ/(1+γ), heavy ball min(√γ, 1/√γ)
    Validity    γ ≠ 1 (at γ = 1 the least eigenvalue tends to zero and the factors to one); size counts the samples n
    Finite size edges of the spectrum O(n^(−2/3)); the contraction is exact
    Computed by bias.proportional_best_step, bias.contraction_factor; for a Hessian of one's own bias.best_step
    References  polyak1964; bai2010 Thm 5.11
    """

    gamma: Array = real(0.25, 0.01, 10.0, log=True, symbol=r"\gamma", doc="features per sample, d/n")
    step: Array = real(
        0.7, 0.01, 0.99, symbol=r"\eta\lambda_{\max}/2", doc="step size, in units of the largest stable one"
    )

    usual = Run(sizes=(100, 200, 400), samples=400)
    showcase = Showcase(
        ranges={"gamma": (0.02, 10.0)},
        see="The best rate of plain descent touches one at γ = 1, where the smallest eigenvalue vanishes; "
        "momentum takes the square root of the condition number.",
    )

    def validity(self):
        if abs(float(self.gamma) - 1) < 0.05:
            return (f"gamma = {written(self.gamma)} is too close to 1, where the condition number is infinite",)
        return ()

    def theory(self):
        best = noisy_descent.proportional_best_step(self.gamma)
        return {
            "largest_step": Value(
                best.largest_step, label="largest stable step", symbol=r"2/\lambda_{\max}", rate=2 / 3
            ),
            "best_factor": Value(
                best.factor, label="best contraction factor", symbol=r"\frac{\kappa-1}{\kappa+1}", rate=2 / 3
            ),
            "momentum_factor": Value(
                best.momentum_factor,
                label="best factor of heavy ball",
                symbol=r"\frac{\sqrt{\kappa}-1}{\sqrt{\kappa}+1}",
                rate=2 / 3,
            ),
        }

    def at_size(self, size):
        n = whole(size, "n", self, least=4)
        d = whole(n * float(self.gamma), "d", self, least=2)
        return {"samples": n, "features": d}, rounded(self, gamma=d / n)

    def draw(self, key, *, samples: int, features: int):
        x = data.independent_entries(key, samples, features)
        eigenvalues, vectors = jnp.linalg.eigh(x.T @ x / samples)
        return System(x, vectors, 2 * self.step / eigenvalues[-1])

    def stated(self, system):
        n = system.x.shape[0]
        eigenvalues = jnp.linalg.eigvalsh(system.x.T @ system.x / n)
        factors = 1 - system.step * eigenvalues
        slowest = noisy_descent.contraction_factor(eigenvalues, system.step)
        return {
            "contraction": Identity(
                jnp.concatenate([factors, factors**2, slowest[None]]),
                label="contraction along eigenvectors",
                symbol=r"1-\eta\lambda_i",
                tolerance=2 * sum(system.x.shape) * 2.0**-52,
                reason="two roundings of 2.2e-16 for each sample and feature, in products with the data",
            )
        }

    def measured(self, system):
        x, vectors, step = system
        samples, features = x.shape
        # λ_i = ‖X v_i‖²/n
        eigenvalues = jnp.sum((x @ vectors) ** 2, axis=0) / samples
        high, low = eigenvalues[-1], eigenvalues[max(features - samples, 0)]
        # Start with the same component along every eigenvector and watch each of them for two steps.
        path = trainers.gradient_descent(
            lambda theta: jnp.sum((x @ theta) ** 2) / (2 * samples), jnp.sum(vectors, axis=1), step, (1, 2)
        )
        components = path @ vectors
        slowest = jnp.max(jnp.where(eigenvalues > 1e-9 * high, jnp.abs(components[0]), 0.0))
        return {
            "contraction": jnp.append(components.ravel(), slowest),
            "largest_step": 2 / high,
            "best_factor": (high - low) / (high + low),
            "momentum_factor": _heavy_ball_radius(low, high),
        }


def _heavy_ball_radius(low, high):
    """Modulus of the slowest mode of θ_{t+1} = θ_t − η∇L + β(θ_t − θ_{t−1}) at its best η and β."""
    root_low, root_high = jnp.sqrt(low), jnp.sqrt(high)
    step = 4 / (root_low + root_high) ** 2
    momentum = ((root_high - root_low) / (root_high + root_low)) ** 2
    # z² − (1 + β − ηλ)z + β = 0 at both ends of the spectrum
    trace = 1 + momentum - step * jnp.stack([low, high])
    discriminant = trace**2 - 4 * momentum
    real_roots = (jnp.abs(trace) + jnp.sqrt(jnp.maximum(discriminant, 0.0))) / 2
    return jnp.max(jnp.where(discriminant > 0, real_roots, jnp.sqrt(momentum)))
