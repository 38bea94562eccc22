r"""One direction of larger variance, found or not found by principal component analysis."""

import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import data
from deeplimits.limit import Limit, Run, real, rounded, whole
from deeplimits.numerics.arguments import written
from deeplimits.predictions import Picture, Value
from deeplimits.predictions.picture import Axis, Line, Rule
from deeplimits.showcase import Showcase
from deeplimits.theory.spectra import spikes


class SpikedCovarianceBbp(Limit):
    r"""The largest eigenvalue leaves the bulk, and its eigenvector finds the signal, only above a threshold.

    Setting     n Gaussian samples of dimension p with covariance I + ℓuu', ‖u‖ = 1
    Limit       p, n → ∞ with p/n → γ
    Result      ℓ > √γ: λ₁ → (1 + ℓ)(1 + γ/ℓ), |⟨u, û⟩|² → (1 − γ/ℓ²)/(1 + γ/ℓ)
    Validity    ℓ > √γ; below it the largest eigenvalue stays at the edge (1 + √γ)² and the overlap is zero;
                size counts the samples n
    Finite size both deviate by O(1/n)
    Computed by spectra.spiked_covariance, spectra.law_spike
    References  baik2005; baik2006; paul2007
    """

    strength: Array = real(2.0, 0.05, 100.0, log=True, symbol=r"\ell", doc="excess variance of the spike")
    gamma: Array = real(0.5, 0.01, 50.0, log=True, symbol=r"\gamma", doc="dimension per sample, p/n")

    usual = Run(sizes=(60, 120, 240), samples=600)
    showcase = Showcase(
        ranges={"strength": (0.75, 6.0), "gamma": (0.05, 3.0)},
        see="Below √γ the spike is invisible: the largest eigenvalue stays at the edge. Above it an "
        "eigenvalue leaves the bulk.",
    )

    def validity(self):
        if float(self.strength) <= float(jnp.sqrt(self.gamma)) * 1.05:
            return (
                f"strength = {written(self.strength)} is not above the threshold √γ = "
                f"{float(jnp.sqrt(self.gamma)):.4g}, where an outlier begins",
            )
        return ()

    def theory(self):
        found = spikes.spiked_covariance(self.strength, self.gamma)
        return {
            "eigenvalue": Value(found.eigenvalue, label="largest eigenvalue", symbol=r"\lambda_1", rate=1.0),
            "overlap": Value(
                found.overlap, label="overlap with the signal", symbol=r"\langle u,\hat u\rangle^2", rate=1.0
            ),
        }

    def charts(self):
        # Through the threshold √γ: below it the largest eigenvalue is the edge of the bulk.
        threshold, edge = jnp.sqrt(self.gamma), (1 + jnp.sqrt(self.gamma)) ** 2
        above = jnp.linspace(threshold, 5.0 * threshold, 80)
        found = spikes.spiked_covariance(above, self.gamma)
        strength = jnp.concatenate([jnp.zeros(1), above])
        across = Axis("excess variance of the spike", r"\ell")
        start = Rule(float(threshold), upright=True, label="threshold √γ")
        values = Line(strength, jnp.concatenate([edge[None], found.eigenvalue]), label="theory")
        overlaps = Line(strength, jnp.concatenate([jnp.zeros(1), found.overlap]), label="theory")
        return {
            "transition": Picture(across, Axis("largest eigenvalue", r"\lambda_1"), (values, start)),
            "alignment": Picture(
                across, Axis("overlap with the signal", r"\langle u,\hat u\rangle^2"), (overlaps, start)
            ),
        }

    def at_size(self, size):
        n = whole(size, "n", self, least=4)
        p = whole(n * float(self.gamma), "p", self, least=2)
        return {"samples": n, "dimension": p}, rounded(self, gamma=p / n)

    def simulate(self, key, *, samples: int, dimension: int):
        x = data.independent_entries(key, samples, dimension)
        x = x.at[:, 0].multiply(jnp.sqrt(1 + self.strength))
        values, vectors = jnp.linalg.eigh(x.T @ x / samples)
        return {
            "eigenvalue": values[-1],
            "overlap": vectors[0, -1] ** 2,
        }
