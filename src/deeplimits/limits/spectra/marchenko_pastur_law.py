r"""The eigenvalues of a sample covariance matrix."""

import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import data
from deeplimits.limit import Limit, Run, choice, real, rounded, whole
from deeplimits.limits.spectra._shared import cosine_grid
from deeplimits.measure import spectra
from deeplimits.predictions import Spectrum, Value
from deeplimits.showcase import Showcase
from deeplimits.theory.spectra import marchenko_pastur_formulas

GRID = 400


class MarchenkoPasturLaw(Limit):
    r"""Spectrum of the sample covariance matrix of independent entries.

    Setting     X is (M, N) with independent centred entries of variance σ² and finite fourth moment; Σ̂ = X'X/M
    Limit       N, M → ∞ with N/M → γ
    Result      λ± = σ²(1 ± √γ)²
                density ρ(x) = √((λ₊ − x)(x − λ₋)) / (2πσ²γx) on [λ₋, λ₊], atom (1 − 1/γ)₊ at 0
                ‖Σ̂ − σ²I‖ → σ²(γ + 2√γ): the largest error of the sample covariance never vanishes
                E‖Σ̂ − σ²I‖²_F / N = σ⁴ (N + κ₄ − 2)/M exactly, κ₄ the fourth moment of a unit entry
    Validity    γ > 0, σ² > 0; size counts the dimension N
    Finite size the distribution function deviates by O(1/N), the edges by O(N^(-2/3))
    Computed by spectra.marchenko_pastur (eigenvalues), spectra.marchenko_pastur_edges (eigenvalues),
                spectra.marchenko_pastur_density (eigenvalues), spectra.operator_gap (operator_norm_gap),
                spectra.mean_frobenius_gap (frobenius_gap), spectra.covariance_gaps.frobenius_gap (frobenius_gap),
                spectra.largest_entry (frobenius_gap)
    References  marchenko1967; bai2010 Thm 3.6, Thm 5.11
    """

    gamma: Array = real(0.5, 0.01, 100.0, log=True, symbol=r"\gamma", doc="dimension per sample, N/M")
    variance: Array = real(1.0, 1e-6, 1e6, log=True, symbol=r"\sigma^2", doc="variance of an entry")
    entries: str = choice("gaussian", ("gaussian", "rademacher", "uniform"), doc="law of an entry")

    usual = Run(sizes=(50, 100, 200), samples=200)
    showcase = Showcase(
        ranges={"gamma": (0.05, 3.0), "variance": (0.25, 4.0)},
        see="Eigenvalues of pure noise spread from (1 − √γ)² to (1 + √γ)², though all population eigenvalues are one.",
    )

    def theory(self):
        low, high = marchenko_pastur_formulas.marchenko_pastur_edges(self.gamma, self.variance)
        x = cosine_grid(low, high, GRID)
        return {
            "eigenvalues": Spectrum(
                x,
                marchenko_pastur_formulas.marchenko_pastur_density(x, self.gamma, self.variance),
                marchenko_pastur_formulas.marchenko_pastur_cdf(x, self.gamma, self.variance),
                jnp.stack([low, high]),
                jnp.zeros(1),
                marchenko_pastur_formulas.marchenko_pastur_atom(self.gamma)[None],
            ),
            "operator_norm_gap": Value(
                self.variance * (self.gamma + 2 * jnp.sqrt(self.gamma)),
                label="error of the sample covariance",
                symbol=r"\|\hat\Sigma-\sigma^2 I\|",
                rate=2 / 3,
            ),
            "frobenius_gap": Value(
                self.variance**2 * self.gamma,
                label="mean squared error of an eigenvalue",
                symbol=r"\|\hat\Sigma-\sigma^2 I\|_F^2/N",
                rate=1.0,
            ),
        }

    def at_size(self, size):
        n = whole(size, "N", self, least=2)
        m = whole(n / float(self.gamma), "M", self)
        return {"samples": m, "dimension": n}, rounded(self, gamma=n / m)

    def simulate(self, key, *, samples: int, dimension: int):
        x = jnp.sqrt(self.variance) * data.independent_entries(key, samples, dimension, law=self.entries)
        eigenvalues = spectra.sample_covariance_eigenvalues(x)
        error = eigenvalues - self.variance
        return {
            "eigenvalues": eigenvalues,
            "operator_norm_gap": jnp.max(jnp.abs(error)),
            "frobenius_gap": jnp.mean(error**2),
        }
