r"""The extreme eigenvalues of a sample covariance matrix."""

import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import data
from deeplimits.limit import Limit, real, whole
from deeplimits.measure import spectra
from deeplimits.predictions import Law, Value
from deeplimits.theory.spectra import edge_law, marchenko_pastur


class ExtremeEigenvalues(Limit):
    r"""The extreme eigenvalues converge to the edges, and fluctuate around them by the Tracy-Widom law.

    Setting     Σ̂ = X'X/M of size N, independent standard Gaussian entries
    Limit       N, M → ∞ with N/M → γ
    Result      smallest nonzero eigenvalue → (1 − √γ)², largest → (1 + √γ)²
                (λ₁ − μ)/σ → TW₁ in law, μ = (√(M−½) + √(N−½))²/M, σ = (√(M−½) + √(N−½))(1/√(M−½) + 1/√(N−½))^{1/3}/M
    Validity    γ ≠ 1 for the smallest one, whose edge is hard at γ = 1; four moments; size counts the dimension N
    Finite size eigenvalues deviate by O(N^(-2/3)), the law by O(N^(-2/3))
    References  bai1993; johnstone2001; ma2012
    """

    gamma: Array = real(0.25, 0.02, 50.0, log=True, symbol=r"\gamma", doc="dimension per sample, N/M")

    sizes = (32, 64, 128)
    samples = 800

    def validity(self):
        if abs(float(self.gamma) - 1) < 0.05:
            return (f"gamma = {float(self.gamma):g} is within 5 % of 1, where the lower edge is hard",)
        return ()

    def theory(self):
        low, high = marchenko_pastur.edges(self.gamma)
        x, density, cdf = edge_law.tracy_widom_grid()
        return {
            "smallest": Value(low, label="smallest nonzero eigenvalue", symbol=r"\lambda_{\min}", rate=2 / 3),
            "largest": Value(high, label="largest eigenvalue", symbol=r"\lambda_{\max}", rate=2 / 3),
            "fluctuation": Law(
                x,
                density,
                cdf,
                label="largest eigenvalue, centred and scaled",
                symbol=r"(\lambda_1-\mu)/\sigma",
                rate=2 / 3,
            ),
        }

    def at_size(self, size):
        n = whole(size, "N", self, least=2)
        m = whole(n / float(self.gamma), "M", self, least=2)
        return {"samples": m, "dimension": n}, self.replace(gamma=n / m)

    def simulate(self, key, *, samples: int, dimension: int):
        x = data.independent_entries(key, samples, dimension)
        eigenvalues = spectra.sample_covariance_eigenvalues(x)
        positive = eigenvalues[max(dimension - samples, 0) :]
        m, n = jnp.sqrt(samples - 0.5), jnp.sqrt(dimension - 0.5)
        centre = (m + n) ** 2 / samples
        scale = (m + n) * (1 / m + 1 / n) ** (1 / 3) / samples
        return {
            "smallest": positive[0],
            "largest": positive[-1],
            "fluctuation": (positive[-1] - centre) / scale,
        }
