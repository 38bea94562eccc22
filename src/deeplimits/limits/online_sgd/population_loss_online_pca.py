r"""Online principal component analysis."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from deeplimits.ensembles import reduced_chains
from deeplimits.limit import Limit, Run, axis, real
from deeplimits.limits.online_sgd._shared import correlation_curve, even_times, moment_curves, paced
from deeplimits.numerics.arguments import written
from deeplimits.predictions import Probability
from deeplimits.showcase import Showcase
from deeplimits.theory.online_sgd import landscapes, spherical_ode

POINTS = 5
DRAWS = 300
CERTAIN = 20.0
"""exp(−20), with the factor N^(−1/2) before it, is nothing that thousands of runs would show."""
STEADY = 4.0
"""Of N I at half the correlation: then 0 is five standard deviations away, and crossed in one run of a million."""
_correlation = jax.jit(spherical_ode.pca_correlation)  # for checks on the host, as one program


class PopulationLossOnlinePca(Limit):
    r"""Online PCA with a constant step: the loss it descends, the path it takes, and how much it recovers.

    Setting     Y ~ N(0, I + λθθ'), L = −⟨x, Y⟩², spherical online SGD with step δ/N, m = ⟨x, θ⟩, τ = steps/N
    Limit       N → ∞ with δ fixed
    Result      φ(m) = −1 − λm²; s(m) = 4(1 + λm²); information exponent 2
                E⟨∇H, θ⟩² = 4[(1+λm²)((1−m²)+λ(1−m²)²) + λ²m²(1−m²)²]
                m(τ)² = m_*²/(1 + (m_*²/m₀² − 1)e^(−2κτ)), κ = 2δ(λ − δ), m_*² = (λ − δ)/(λ(1 + δ))
                weak recovery (P(m ≥ η) → 1 for some η > 0) iff δ < λ, for η below m_*; strong recovery (m → 1) for no
                constant δ; after a time τ, P(m ≥ η) → 1 for η < m(τ) and → 0 for η > m(τ)
    Validity    λ > 0; N I ≥ 20, so that P(m ≥ η) is 1 or 0 to nine digits, and N I(m/2) ≥ 4, so that m keeps its sign:
                P(m on the other side of η) = exp(−N(I + o(1))),
                I(η) the least action ∫(p dm − H dτ) from m₀ to η in the time τ,
                H = −½ log(1 − 2pv − 4p²δ²(1−m²)(1+λ)), v = dm/dτ; near η = m(τ), I ≈ (m(τ) − η)²/(2C), C/N the
                variance of m. Size counts the dimension N
    Finite size gap O(1/N) of mean path and of |∇L|²/N; loss, drift and directional moment exact
    Computed by online_sgd.pca_correlation (correlation, weak_recovery), online_sgd.online_pca (loss, slope,
                squared_gradient, directional_moment), online_sgd.pca_deviation_rate (weak_recovery)
    References  benarous2021
    """

    signal: Array = real(1.0, 0.01, 20.0, log=True, symbol=r"\lambda", doc="strength λ of the signal")
    step: Array = real(0.3, 0.001, 5.0, log=True, symbol=r"\delta", doc="step size δ")
    start: Array = real(0.6, 0.01, 0.99, symbol="m_0", doc="correlation at the start")
    horizon: Array = real(4.0, 0.1, 100.0, log=True, symbol=r"\tau", doc="samples per dimension")
    threshold: Array = real(0.1, 0.01, 0.99, symbol=r"\eta", doc="level η of weak recovery")
    overlaps: Array = axis((0.0, 0.4, 0.8), 0.0, 0.99, symbol="m", doc="correlations at which the loss is measured")

    usual = Run(sizes=(400, 800, 1600), samples=400, batch=100)
    showcase = Showcase(
        first="correlation",
        parameters={"start": 0.1, "horizon": 20.0},
        see="From a small correlation the path first grows exponentially, then rests at m_*.",
    )

    def theory(self):
        times = even_times(self.horizon, POINTS)
        path = spherical_ode.pca_correlation(self.signal, self.start, self.step, times)
        reached = path[-1]
        return {
            "correlation": correlation_curve(times, path),
            "weak_recovery": Probability(
                jnp.where(reached > self.threshold, 1.0, 0.0), label="weak recovery", symbol=r"P(m\geq\eta)"
            ),
            **moment_curves(landscapes.online_pca(self.signal), self.overlaps),
        }

    def validity_at(self, size):
        eta = float(self.threshold)
        given = float(self.signal), float(self.start), float(self.step), float(self.horizon)
        rate = spherical_ode.pca_deviation_rate(*given, eta)
        reached = float(_correlation(*given))
        if given[0] > given[2]:
            # What may be half as large as stated may reach 0 and change its sign, which the equation never does.
            halved = spherical_ode.pca_deviation_rate(*given, reached / 2)
            if size * halved < STEADY:
                return (
                    f"at N = {size} the correlation at the horizon, {reached:.4g} in the limit, fluctuates about 0: it "
                    f"is half as large with probability exp(−{halved:.2g} N); take sizes of at least "
                    f"{STEADY / max(halved, 1e-12):.0f}, or a smaller step",
                )
        if size * rate >= CERTAIN:
            return ()
        return (
            f"at N = {size} the correlation at the horizon, {reached:.4g} in the limit, fluctuates about threshold = "
            f"{written(eta)}: it is on the other side with probability exp(−{rate:.2g} N); take sizes of at least "
            f"{CERTAIN / max(rate, 1e-12):.0f}, or a threshold further away",
        )

    def at_size(self, size):
        return paced(self, size, POINTS, least=10)

    def simulate(self, key, *, dimension: int, every: int):
        path, moments = reduced_chains.path_and_moments(
            key, reduced_chains.online_pca(dimension, self.signal), self.start, self.step,
            every * np.arange(1, POINTS + 1), self.overlaps, DRAWS,
        )  # fmt: skip
        return {"correlation": path, "weak_recovery": (path[-1] >= self.threshold).astype(float), **moments}
