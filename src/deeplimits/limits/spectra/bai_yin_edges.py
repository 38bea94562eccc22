r"""The extreme eigenvalues of a sample covariance matrix."""

from jaxtyping import Array

from deeplimits.ensembles import data
from deeplimits.limit import Limit, Run, real, rounded, whole
from deeplimits.measure import spectra
from deeplimits.numerics.arguments import written
from deeplimits.predictions import Value
from deeplimits.showcase import Showcase
from deeplimits.theory.spectra import marchenko_pastur_formulas


class BaiYinEdges(Limit):
    r"""The extreme eigenvalues of a sample covariance matrix converge to the edges of its bulk.

    Setting     Σ̂ = X'X/M of size N, independent standard Gaussian entries
    Limit       N, M → ∞ with N/M → γ
    Result      smallest nonzero eigenvalue → (1 − √γ)², largest → (1 + √γ)²
                fluctuations of order N^(-2/3) around them follow the Tracy-Widom law, so that an edge is crossed with a
                probability that does not vanish (`theory.spectra.tracy_widom`)
    Validity    γ ≠ 1 for the smallest one, whose edge is hard at γ = 1; four moments; size counts the dimension N
    Finite size both deviate by O(N^(-2/3))
    Computed by spectra.marchenko_pastur_edges, spectra.operator_gap
    References  bai1993; johnstone2001; ma2012
    """

    gamma: Array = real(0.1, 0.02, 50.0, log=True, symbol=r"\gamma", doc="dimension per sample, N/M")

    usual = Run(sizes=(20, 40, 80), samples=600)
    showcase = Showcase(
        ranges={"gamma": (0.02, 4.0)},
        see="The two edges (1 ± √γ)² move apart with γ; the lower one touches zero at γ = 1 and returns.",
    )

    def validity(self):
        if abs(float(self.gamma) - 1) < 0.05:
            return (f"gamma = {written(self.gamma)} is within 5 % of 1, where the lower edge is hard",)
        return ()

    def theory(self):
        low, high = marchenko_pastur_formulas.marchenko_pastur_edges(self.gamma)
        return {
            "smallest": Value(low, label="smallest nonzero eigenvalue", symbol=r"\lambda_{\min}", rate=2 / 3),
            "largest": Value(high, label="largest eigenvalue", symbol=r"\lambda_{\max}", rate=2 / 3),
        }

    def at_size(self, size):
        n = whole(size, "N", self, least=2)
        m = whole(n / float(self.gamma), "M", self, least=2)
        return {"samples": m, "dimension": n}, rounded(self, gamma=n / m)

    def simulate(self, key, *, samples: int, dimension: int):
        x = data.independent_entries(key, samples, dimension)
        eigenvalues = spectra.sample_covariance_eigenvalues(x)
        positive = eigenvalues[max(dimension - samples, 0) :]
        return {
            "smallest": positive[0],
            "largest": positive[-1],
        }
