r"""The sample covariance matrix of data whose population covariance is not the identity."""

import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import data
from deeplimits.limit import Limit, Run, real, rounded, whole
from deeplimits.limits.spectra._shared import cosine_grid
from deeplimits.measure import spectra
from deeplimits.models.atoms import Atoms
from deeplimits.predictions import Spectrum, Value
from deeplimits.showcase import Showcase
from deeplimits.theory.spectra import equivalents, silverstein

# Many, because a narrow bulk far below a wide one sees a thirtieth of them.
GRID = 2000


class GeneralizedMpSilverstein(Limit):
    r"""Spectrum, resolvent and best shrinkage of a sample covariance matrix with two population eigenvalues.

    Setting     n samples Σ^{1/2}z of dimension p, Gaussian z; Σ has eigenvalue 1, and t with multiplicity wp
    Limit       p, n → ∞ with p/n → γ
    Result      z = α(1 + γS₁(α)), m̲(z) = −1/α, S₁ = ∫ s dH(s)/(α − s); density Im m̲/(πγ), edges where
                1 = γ∫ s² dH/(α − s)², atom (1 − 1/γ)₊ at 0
                β'(Σ̂ + λ)^{-1}β → 1/(λ(1 + s̲(−λ))) for unit β in the eigenspace of 1
                best linear shrinkage: loss Var H · γm₁²/(γm₁² + Var H) per dimension
                best nonlinear shrinkage: û'Σû → d(λ) = |α(λ)|²/λ, one value on the null space, loss ∫s² dH − ∫d² dμ
    Validity    γ > 0, t > 1, 0 < w < 1; size counts the dimension p
    Finite size distribution function, resolvent and losses deviate by O(1/p), the edges by O(p^(-2/3))
    Computed by spectra.sample_covariance (eigenvalues), spectra.silverstein.curve (eigenvalues, nonlinear_loss),
                spectra.resolvent_equivalent (resolvent), spectra.nonlinear_shrinkage_loss (nonlinear_loss)
    References  silverstein1995; silverstein1995b; rubio2011; ledoit2004; ledoit2011
    """

    gamma: Array = real(0.4, 0.02, 20.0, log=True, symbol=r"\gamma", doc="dimension per sample, p/n")
    large: Array = real(4.0, 1.1, 100.0, log=True, symbol="t", doc="the larger population eigenvalue")
    share: Array = real(0.4, 0.05, 0.95, symbol="w", doc="share of directions with the larger eigenvalue")
    ridge: Array = real(0.5, 1e-3, 100.0, log=True, symbol=r"\lambda", doc="regularization of the resolvent")

    usual = Run(sizes=(40, 80, 160), samples=100)
    showcase = Showcase(
        ranges={"large": (1.1, 30.0), "gamma": (0.02, 4.0)},
        see="Two population eigenvalues give one band or two; more samples, a smaller γ, split it.",
    )

    def theory(self):
        t, w = jnp.stack([1.0, self.large]), jnp.stack([1 - self.share, self.share])
        population = Atoms(t, w)
        low, high = silverstein.outer_ends(population, self.gamma)
        a = cosine_grid(low, high, GRID)
        law = silverstein.curve(a, population, self.gamma)
        ends = silverstein.curve(jnp.stack([low, high]), population, self.gamma)
        zero = jnp.maximum(1 - 1 / self.gamma, 0.0)
        mean = jnp.sum(w * t)
        spread = jnp.sum(w * (t - mean) ** 2)
        return {
            "eigenvalues": Spectrum(law.x, law.density, law.cdf, ends.x, jnp.zeros(1), zero[None]),
            "resolvent": Value(
                equivalents.resolvent_equivalent(self.ridge, 1.0, population, self.gamma),
                label="resolvent on the small eigenspace",
                symbol=r"\beta^\top(\hat\Sigma+\lambda)^{-1}\beta",
                rate=1.0,
            ),
            "linear_loss": Value(
                spread * self.gamma * mean**2 / (self.gamma * mean**2 + spread),
                label="loss of the best linear shrinkage",
                symbol=r"\|\hat\Sigma_\rho-\Sigma\|_F^2/p",
                rate=1.0,
            ),
            "nonlinear_loss": Value(
                silverstein.nonlinear_shrinkage_loss(law, a, population, self.gamma),
                label="loss of the best nonlinear shrinkage",
                symbol=r"\|\hat\Sigma_d-\Sigma\|_F^2/p",
                rate=1.0,
            ),
        }

    def at_size(self, size):
        p = whole(size, "p", self, least=4)
        count = min(max(whole(p * float(self.share), "wp", self), 1), p - 1)
        n = whole(p / float(self.gamma), "n", self, least=2)
        return {"samples": n, "dimension": p, "large": count}, rounded(self, gamma=p / n, share=count / p)

    def simulate(self, key, *, samples: int, dimension: int, large: int):
        covariance = jnp.where(jnp.arange(dimension) < dimension - large, 1.0, self.large)
        x = data.independent_entries(key, samples, dimension) * jnp.sqrt(covariance)[None, :]
        sample = x.T @ x / samples
        resolvent = jnp.linalg.inv(sample + self.ridge * jnp.eye(dimension))
        small = jnp.diagonal(resolvent)[: dimension - large]
        losses = spectra.covariance_losses(covariance, sample, samples)
        return {
            "eigenvalues": spectra.sample_covariance_eigenvalues(x),
            "resolvent": jnp.mean(small),
            "linear_loss": losses.linear,
            "nonlinear_loss": losses.nonlinear,
        }
