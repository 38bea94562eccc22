r"""A mixture of two Gaussians."""

import numpy as np
from jaxtyping import Array

from deeplimits.ensembles import reduced_chains
from deeplimits.limit import Limit, Run, axis, real
from deeplimits.limits.online_sgd._shared import correlation_curve, even_times, moment_curves, paced
from deeplimits.showcase import Showcase
from deeplimits.theory.online_sgd import landscapes, spherical_ode

POINTS = 5
DRAWS = 60


class PopulationLossBinaryGmm(Limit):
    r"""The direction of a two-component Gaussian mixture, learnt by online SGD.

    Setting     Y ~ p N(θ, I) + (1−p) N(−θ, I), 2p − 1 = tanh h; L = −log cosh(⟨Y, x⟩ + h); spherical online SGD
                with step δ/N, m = ⟨x, θ⟩, τ = steps/N
    Limit       N → ∞ with δ fixed
    Result      φ(m) = −E log cosh(z + εm + h), φ'(m) = −E ε tanh(z + εm + h), s(m) = E tanh²(z + εm + h), z ~ N(0, 1),
                P(ε = 1) = p
                information exponent 1 for h ≠ 0, 2 for h = 0, where the equator repels iff δ < 3.0724
                dm/dτ = −δ(1 − m²)φ'(m) − (δ²/2) s(m) m
    Validity    any h; size counts the dimension N
    Finite size gap O(1/N) of mean path and of |∇L|²/N; loss, drift and directional moment exact
    Computed by online_sgd.binary_mixture, online_sgd.correlation
    References  benarous2021
    """

    field: Array = real(0.3, 0.0, 3.0, symbol="h", doc="log-odds h of the components, halved")
    step: Array = real(1.0, 0.001, 10.0, log=True, symbol=r"\delta", doc="step size δ")
    start: Array = real(0.3, 0.0, 0.99, symbol="m_0", doc="correlation at the start")
    horizon: Array = real(3.0, 0.1, 50.0, log=True, symbol=r"\tau", doc="samples per dimension")
    overlaps: Array = axis((0.1, 0.4, 0.8), 0.0, 0.99, symbol="m", doc="correlations at which the loss is measured")

    usual = Run(sizes=(50, 100, 200), samples=2000, batch=200)
    showcase = Showcase(
        first="correlation",
        parameters={"horizon": 10.0},
        see="The correlation with the means climbs and rests below one: the noise of the steps holds it there.",
    )

    def theory(self):
        landscape = landscapes.binary_mixture(self.field)
        times = even_times(self.horizon, POINTS)
        return {
            "correlation": correlation_curve(times, spherical_ode.correlation(landscape, self.start, self.step, times)),
            **moment_curves(landscape, self.overlaps),
        }

    def at_size(self, size):
        return paced(self, size, POINTS, least=10)

    def simulate(self, key, *, dimension: int, every: int):
        path, moments = reduced_chains.path_and_moments(
            key, reduced_chains.binary_mixture(dimension, self.field), self.start, self.step,
            every * np.arange(1, POINTS + 1), self.overlaps, DRAWS,
        )  # fmt: skip
        return {"correlation": path, **moments}
