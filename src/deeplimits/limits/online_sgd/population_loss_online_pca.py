r"""Online principal component analysis."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import reduced_chains
from deeplimits.limit import Limit, Run, axis, real
from deeplimits.limits.online_sgd.landscapes import correlation_curve, moment_curves, paced
from deeplimits.predictions import Probability
from deeplimits.theory.online_sgd import single_index, spherical_ode

POINTS = 5
DRAWS = 60
_correlation = jax.jit(spherical_ode.pca_correlation)  # for checks on the host, as one program


class OnlinePca(Limit):
    r"""Online PCA with a constant step: the loss it descends, the path it takes, and how much it recovers.

    Setting     Y ~ N(0, I + λθθ'), L = −⟨x, Y⟩², spherical online SGD with step δ/N, m = ⟨x, θ⟩, τ = steps/N
    Limit       N → ∞ with δ fixed
    Result      φ(m) = −1 − λm²; s(m) = 4(1 + λm²); information exponent 2
                E⟨∇H, θ⟩² = 4[(1+λm²)((1−m²)+λ(1−m²)²) + λ²m²(1−m²)²]
                m(τ)² = m_*²/(1 + (m_*²/m₀² − 1)e^(−2κτ)), κ = 2δ(λ − δ), m_*² = (λ − δ)/(λ(1 + δ))
                weak recovery (P(m ≥ η) → 1 for some η > 0) iff δ < λ, for η below m_*; strong recovery (m → 1) for no
                constant δ
    Validity    λ > 0; weak recovery is stated for η < m(τ); size counts the dimension N
    Finite size gap O(1/N) of mean path and of |∇L|²/N; loss, drift and directional moment exact; the recovery
                probability misses 1 by exp(−cN), c small where m₀ is: at N = 80 and τ = 4 one run in 80 is below
                0.3 from m₀ = 0.3, one in 2000 from 0.4, and none was seen from 0.6, the default
    References  benarous2021
    """

    signal: Array = real(1.0, 0.01, 20.0, log=True, symbol=r"\lambda", doc="strength λ of the signal")
    step: Array = real(0.3, 0.001, 5.0, log=True, symbol=r"\delta", doc="step size δ")
    start: Array = real(0.6, 0.01, 0.99, symbol="m_0", doc="correlation at the start")
    horizon: Array = real(4.0, 0.1, 100.0, log=True, symbol=r"\tau", doc="samples per dimension")
    threshold: Array = real(0.3, 0.01, 0.99, symbol=r"\eta", doc="level η of weak recovery")
    overlaps: Array = axis((0.0, 0.4, 0.8), 0.0, 0.99, symbol="m", doc="correlations at which the loss is measured")

    usual = Run(sizes=(80, 160, 320), samples=2000, batch=200)

    def validity(self):
        reached = float(_correlation(self.signal, self.start, self.step, self.horizon))
        if float(self.threshold) < reached:
            return ()
        return (
            f"threshold = {float(self.threshold):g} is not reached: the correlation is {reached:.4g} at the horizon; "
            f"the critical step is δ = λ = {float(self.signal):g}, so lower step or threshold or take more time",
        )

    def _times(self):
        return self.horizon * jnp.arange(1.0, POINTS + 1) / POINTS

    def theory(self):
        times = self._times()
        return {
            "correlation": correlation_curve(
                times, spherical_ode.pca_correlation(self.signal, self.start, self.step, times)
            ),
            "weak_recovery": Probability(1.0, label="weak recovery", symbol=r"P(m\geq\eta)"),
            **moment_curves(single_index.online_pca(self.signal), self.overlaps),
        }

    def at_size(self, size):
        sizes, horizon = paced(self, float(self.horizon), size, POINTS, least=10)
        return sizes, self.replace(horizon=horizon)

    def simulate(self, key, *, dimension: int, every: int):
        path, moments = reduced_chains.path_and_moments(
            reduced_chains.online_pca(dimension, self.signal),
            key, self.start, self.step, POINTS, every, self.overlaps, DRAWS,
        )  # fmt: skip
        return {"correlation": path, "weak_recovery": (path[-1] >= self.threshold).astype(float), **moments}
