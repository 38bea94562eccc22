r"""Spherical online SGD at the critical step."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import data, online_sgd, reduced_chains
from deeplimits.limit import Limit, Run, choice, real
from deeplimits.limits.online_sgd.landscapes import correlation_curve, paced
from deeplimits.models.links import link
from deeplimits.predictions import Identity
from deeplimits.theory.online_sgd import single_index, spherical_ode

POINTS = 5


class SphericalOnlineSgd(Limit):
    r"""Online SGD on the sphere follows an ODE with two terms: population gradient and retraction of the noise.

    Setting     x̃ = x − (δ/N)∇L(x, Y), x' = x̃/|x̃|, one fresh sample a step, ∇ on the sphere; L = (y − f(⟨a, x⟩))²,
                y = f(⟨a, θ⟩) + ε, a ~ N(0, I_N), |θ| = 1; m = ⟨x, θ⟩, τ = steps/N
    Limit       N → ∞ with δ fixed
    Result      dm/dτ = −δ(1 − m²)φ'(m) − (δ²/2) s(m) m, φ the population loss, s = lim E|∇L|²/N
                exactly at every step |x̃|² = 1 + (δ/N)²|∇L|²
    Validity    δ fixed; for links with information exponent 2 the equator repels iff δ < 2a₂/s(0) (1/12 for z²);
                size counts the dimension N
    Finite size mean gap O(1/N), single paths fluctuate by O(N^(−1/2))
    References  benarous2021
    """

    link: str = choice("tanh", ("tanh", "erf", "relu", "square", "hermite3"), symbol="f", doc="link f")
    noise: Array = real(0.3, 0.0, 2.0, symbol=r"\sigma", doc="standard deviation of the label noise")
    step: Array = real(0.5, 0.001, 2.0, log=True, symbol=r"\delta", doc="step size δ")
    start: Array = real(0.2, 0.0, 0.95, symbol="m_0", doc="correlation at the start")
    horizon: Array = real(3.0, 0.1, 50.0, log=True, symbol=r"\tau", doc="samples per dimension")

    usual = Run(sizes=(50, 100, 200), samples=2000, batch=200)

    def _times(self):
        return self.horizon * jnp.arange(1.0, POINTS + 1) / POINTS

    def theory(self):
        f = link(self.link)
        landscape = single_index.single_index(f.value, f.derivative, f.value, f.derivative, self.noise)
        times = self._times()
        return {
            "correlation": correlation_curve(times, spherical_ode.correlation(landscape, self.start, self.step, times)),
            "norm": Identity(label="norm before retraction", constant=100.0),
        }

    def at_size(self, size):
        sizes, horizon = paced(self, float(self.horizon), size, POINTS, least=3)
        return sizes, self.replace(horizon=horizon)

    def simulate(self, key, *, dimension: int, every: int):
        chain_key, point_key, sample_key = jax.random.split(key, 3)
        f = link(self.link)

        def gradient(key, m):
            return reduced_chains.single_index_gradient(key, m, dimension, f, f, self.noise)

        path = reduced_chains.spherical_path(gradient, chain_key, self.start, dimension, self.step, POINTS, every)
        # One step of the full system, for the identity.
        x = data.on_sphere(point_key, dimension)
        sample = online_sgd.single_index_sample(sample_key, f, self.noise, jnp.eye(dimension)[0])
        slope = jax.grad(online_sgd.single_index_loss)(x, sample, f)
        slope = slope - (slope @ x) * x
        rate = self.step / dimension
        moved = x - rate * slope
        return {"correlation": path, "norm": jnp.stack([moved @ moved, 1 + rate**2 * (slope @ slope)])}
