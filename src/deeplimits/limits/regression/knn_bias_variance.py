r"""Bias and variance of nearest neighbours."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import data, estimators
from deeplimits.limit import Limit, Run, choice, integer, real, sized
from deeplimits.predictions import Value
from deeplimits.showcase import Showcase
from deeplimits.theory.regression import smoothing

# Noise drawn for each set of points: risk and variance fluctuate with the noise more than with the points.
LABELLINGS = 20


class KnnBiasVariance(Limit):
    r"""Bias and variance of the k nearest neighbours, exact at every sample size.

    Setting     n points uniform in the unit ball of R^d, Y = f(X) + ε, Var ε = σ²; the estimate at the centre is the
                mean label of its k nearest points
    Result      excess risk = E bias² + σ²/k
                with m_q = Γ(k+1+q/d) Γ(n+1) / (Γ(k+1) Γ(n+1+q/d)), and m_q = 1 for k = n:
                linear f with slope L: E bias² = L² m₂/(k(d+2))
                cone f = L‖x‖^β: E bias² = L² m_{2β} [d/(k(d+2β)) + (1 − 1/k)(d/(d+β))²]
                k = 1 interpolates the data: variance σ², test error at least twice the noise
    Validity    1 ≤ k ≤ n; size counts the points n
    Finite size exact
    Computed by regression.nearest_neighbours_bias_cone, regression.nearest_neighbours_bias_linear,
                regression.nearest_neighbours_risk, regression.nearest_neighbours_curvature_bias, at any density
                regression.order_statistic_limit
    References  gyorfi2002 Ch. 6
    """

    points: int = integer(100, 1, 10_000_000, log=True, symbol="n", doc="sample size")
    neighbours: int = integer(5, 1, 10_000_000, log=True, symbol="k", doc="neighbours averaged")
    dimension: int = integer(2, 1, 1000, log=True, symbol="d", doc="dimension of the inputs")
    target: str = choice("cone", ("cone", "linear"), doc="shape of the regression function f")
    slope: Array = real(1.0, 0.0, 100.0, symbol="L", doc="slope of f")
    power: Array = real(0.5, 0.01, 1.0, symbol=r"\beta", doc="Hölder exponent of the cone (not used by linear f)")
    noise: Array = real(1.0, 0.0, 100.0, symbol=r"\sigma", doc="standard deviation of the label noise")

    usual = Run(sizes=(50, 100, 200), samples=2000, batch=200)
    showcase = Showcase(over="noise", see="Variance is σ²/k whatever the dimension; the bias pays for distance.")

    def validity(self):
        if self.neighbours > self.points:
            return (f"neighbours = {self.neighbours} exceeds points = {self.points}; take k at most n",)
        return ()

    def theory(self):
        if self.target == "linear":
            bias = smoothing.nearest_neighbours_bias_linear(self.slope, self.neighbours, self.points, self.dimension)
        else:
            bias = smoothing.nearest_neighbours_bias_cone(
                self.slope, self.power, self.neighbours, self.points, self.dimension
            )
        variance = self.noise**2 / self.neighbours
        return {
            "risk": Value(bias + variance, label="excess risk"),
            "bias": Value(bias, label="squared bias", symbol=r"E\,\mathrm{bias}^2"),
            "variance": Value(variance, label="variance", symbol=r"\sigma^2/k"),
        }

    def at_size(self, size):
        return sized(self, points=size)

    def simulate(self, key, *, points: int):
        d, k = self.dimension, self.neighbours
        drawn = jax.random.normal(key, (points * (d + 2) + k * LABELLINGS,))
        x = data.in_ball(drawn[: points * (d + 2)].reshape(points, d + 2))
        # A linear f may point anywhere, by symmetry; f(0) = 0 for both shapes.
        f = self.slope * (x[:, 0] if self.target == "linear" else jnp.linalg.norm(x, axis=1) ** self.power)
        without_noise = jnp.mean(f[estimators.nearest_points(x, jnp.zeros(d), k)])
        # The noise does not depend on the points: of each of many labellings only that of the neighbours is needed.
        noise = jnp.mean(self.noise * drawn[points * (d + 2) :].reshape(LABELLINGS, k), axis=1)
        return {
            "risk": jnp.mean((without_noise + noise) ** 2),
            "bias": without_noise**2,
            "variance": jnp.mean(noise**2),
        }
