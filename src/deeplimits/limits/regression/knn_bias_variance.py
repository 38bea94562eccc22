r"""Bias and variance of nearest neighbours."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import data, estimators
from deeplimits.limit import Limit, Run, choice, integer, real, whole
from deeplimits.predictions import Value
from deeplimits.theory.regression import smoothing


class NearestNeighbours(Limit):
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
    References  gyorfi2002 Ch. 6
    """

    points: Array = real(100.0, 1.0, 1e7, log=True, symbol="n", doc="sample size")
    neighbours: int = integer(5, 1, 10_000_000, log=True, symbol="k", doc="neighbours averaged")
    dimension: int = integer(2, 1, 1000, log=True, symbol="d", doc="dimension of the inputs")
    target: str = choice("cone", ("cone", "linear"), doc="shape of the regression function f")
    slope: Array = real(1.0, 0.0, 100.0, symbol="L", doc="slope of f")
    power: Array = real(0.5, 0.01, 1.0, symbol=r"\beta", doc="Hölder exponent of the cone (not used by linear f)")
    noise: Array = real(1.0, 0.0, 100.0, symbol=r"\sigma", doc="standard deviation of the label noise")

    usual = Run(sizes=(50, 100, 200), samples=5000, batch=100)

    # Independent label noises on one design.
    repeats = 8

    def validity(self):
        if self.neighbours > float(self.points):
            return (f"neighbours = {self.neighbours} exceeds points = {float(self.points):g}; take k at most n",)
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
        n = whole(size, "n", self)
        return {"points": n}, self.replace(points=float(n))

    def simulate(self, key, *, points: int):
        noise_key, design_key = jax.random.split(key)
        x = data.in_ball(design_key, points, self.dimension)
        # A linear f may point anywhere, by symmetry; f(0) = 0 for both shapes.
        f = self.slope * (x[:, 0] if self.target == "linear" else jnp.linalg.norm(x, axis=1) ** self.power)
        nearest = estimators.nearest_points(x, jnp.zeros(self.dimension), self.neighbours)
        # The noise of the labels that are averaged; the other labels are not looked at.
        noise = self.noise * jax.random.normal(noise_key, (self.repeats, self.neighbours))
        bias, error = jnp.mean(f[nearest]), jnp.mean(noise, axis=1)
        return {"risk": jnp.mean((bias + error) ** 2), "bias": bias**2, "variance": jnp.mean(error**2)}
