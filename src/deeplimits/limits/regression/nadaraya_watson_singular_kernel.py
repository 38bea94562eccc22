r"""A smoother that interpolates and is still minimax."""

import math

import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import data, estimators
from deeplimits.limit import Limit, Run, integer, real, replace, whole
from deeplimits.numerics.arguments import written
from deeplimits.predictions import Exponent, Value
from deeplimits.showcase import Showcase
from deeplimits.theory.regression import smoothing


class NadarayaWatsonSingularKernel(Limit):
    r"""Risk of an interpolating kernel smoother: minimax although it fits every label.

    Setting     K(u) = ‖u‖^(−a) on the unit ball, f_n(x) = Σ Y_i K((x−X_i)/h) / Σ K((x−X_i)/h), which takes the value
                Y_i at X_i for every h; n points uniform in the unit ball around x₀ = 0, f = L‖x‖^β, Var ε = σ²,
                bandwidth h = n^(−1/(2β+d)), 0 if no point is within h
    Limit       n → ∞
    Result      E(f_n(x₀) − f(x₀))² ~ C n^(−2β/(2β+d)), the minimax rate,
                C = σ²(d−a)²/(d(d−2a)) + L²((d−a)/(d−a+β))²
                and exactly at every n, with q = d/a, p̄ = h^d, G = 1 − p̄ + p̄ q E_{q+1}(s), E_ν the exponential integral:
                variance = σ² n p̄ ∫ s q E_{q−1}(s) G^(n−1) ds
                bias² = L²h^(2β) {n p̄ ∫ s q E_{q−1+2β/a}(s) G^(n−1) ds + n(n−1) p̄² ∫ s [q E_{q+β/a}(s)]² G^(n−2) ds}
    Validity    0 < a < d/2, 0 < β ≤ 1; size counts the points n
    Finite size values exact; the slope in log n is corrected by O(n^(−2β/(2β+d)))
    Computed by regression.singular_kernel_risk, regression.kernel_concentration, at any density
                regression.singular_kernel_constants
    References  belkin2019b Thm 1
    """

    points: int = integer(100, 4, 10_000_000, log=True, symbol="n", doc="sample size")
    dimension: int = integer(2, 1, 50, symbol="d", doc="dimension of the inputs")
    singularity: Array = real(0.5, 0.02, 24.0, symbol="a", doc="power of the kernel's singularity, below d/2")
    smoothness: Array = real(1.0, 0.05, 1.0, symbol=r"\beta", doc="Hölder exponent of the regression function")
    slope: Array = real(1.0, 0.0, 100.0, symbol="L", doc="Hölder constant of the regression function")
    noise: Array = real(1.0, 0.0, 100.0, symbol=r"\sigma", doc="standard deviation of the label noise")

    usual = Run(sizes=(100, 1000, 10_000), samples=8000, batch=100)
    showcase = Showcase(see="The smoother fits every label and nevertheless learns at the best rate.")

    def validity(self):
        found = []
        if float(self.singularity) >= self.dimension / 2:
            found.append(
                f"singularity = {written(self.singularity)} is not below d/2 = {self.dimension / 2:g}: "
                "the variance bound is infinite there"
            )
        if float(self.slope) == 0 and float(self.noise) == 0:
            found.append("slope and noise are both zero, so the risk is zero and has no rate")
        return tuple(found)

    def _bandwidth(self):
        return jnp.asarray(float(self.points)) ** (-1 / (2 * self.smoothness + self.dimension))

    def theory(self):
        risk = smoothing.singular_kernel_risk(
            self.points,
            self.dimension,
            self.singularity,
            self.smoothness,
            self.slope,
            self.noise**2,
            self._bandwidth(),
        )
        # r = 2β/(2β+d); the relative correction is 1/(number of points in the window) = n^{−r}
        rate = 2 * self.smoothness / (2 * self.smoothness + self.dimension)
        return {
            "rate": Exponent(-rate, label="excess risk", correction=rate),
            "variance": Value(risk.variance, label="variance"),
            "bias": Value(risk.bias, label="squared bias"),
        }

    def at_size(self, size):
        n = whole(size, "n", self, least=4)
        # Points outside the window have no weight. The window holds np on average and, but for a chance below 1e-12,
        # no more than np + 8√(np) + 20.
        inside = n ** (1 - self.dimension / (2 * float(self.smoothness) + self.dimension))
        near = min(n, math.ceil(inside + 8 * math.sqrt(inside) + 20))
        return {"points": n, "near": near}, replace(self, points=n)

    def simulate(self, key, *, points: int, near: int):
        distances = data.nearest_radii(key, points, near, self.dimension)
        # Estimate and target depend on the distances from the centre only.
        weights = estimators.singular_kernel_weights(distances, self.singularity, self._bandwidth())
        bias = weights @ (self.slope * distances**self.smoothness)
        # The estimate is linear in the labels: its variance given the design needs no draw of the noise.
        variance = self.noise**2 * (weights @ weights)
        return {"rate": bias**2 + variance, "variance": variance, "bias": bias**2}
