r"""Some of the signal, or all of it."""

import functools
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from deeplimits.ensembles import reduced_chains
from deeplimits.limit import Limit, Run, activation_choice, real
from deeplimits.limits.online_sgd._shared import correlation_curve, even_times, paced
from deeplimits.models.activations import activation
from deeplimits.numerics.arguments import written
from deeplimits.predictions import Probability
from deeplimits.showcase import Showcase
from deeplimits.theory.online_sgd import effective, landscapes, spherical_ode

POINTS = 5
CERTAIN = 6.5
"""So many standard deviations away a Gaussian variable is on the other side once in 10¹⁰ runs."""


class WeakAndStrongRecovery(Limit):
    r"""From a random start online SGD recovers some of a signal with noisy labels, and all of one without noise.

    Setting     single-index model y = f(⟨a, θ⟩) + ε, a ~ N(0, I_N), f odd and increasing; L = (y − f(⟨a, x⟩))²,
                spherical online SGD with step δ/N from a uniform point of the sphere, m = ⟨x, θ⟩, τ = steps/N
    Limit       N → ∞ with δ and τ fixed
    Result      m(τ) → the solution of dm/dτ = −δ(1 − m²)φ'(m) − (δ²/2) s(m) m from 0, since the information exponent
                is one; P(m ≥ η) → 1 for η < m(τ) and → 0 for η > m(τ)
                weak recovery: P(m ≥ η) → 1 for some η > 0, here always; strong recovery: for every η < 1, here
                (δ small) iff there is no label noise, s(1) = 0; with noise m rests at m_* = 1 − O(δ)
                in general weak recovery asks δ < 2a₂/s(0) for exponent 2 (|m| where φ is even) and vanishing steps for
                exponents k ≥ 3; vanishing steps recover strongly where φ' < 0 on (0, 1)
    Validity    √N |m(τ) − η| at least 6.5 standard deviations of the Gaussian limit of √N m, for both levels η, so that
                each probability is 0 or 1 to nine digits; size counts the dimension N
    Finite size gap O(1/N) of the mean path; probabilities exact but for exp(−cN)
    Computed by online_sgd.single_index, online_sgd.correlation; for any landscape online_sgd.recovery.recovery, and how
                likely at N online_sgd.recovery.recovery_probability; of runs of one's own measure.recovery_report
    References  benarous2021
    """

    activation: str = activation_choice(
        "tanh", lambda a: a.odd and a.smooth and a.increasing and a.lipschitz, symbol="f", doc="link f"
    )
    noise: Array = real(0.0, 0.0, 2.0, symbol=r"\sigma", doc="standard deviation of the label noise")
    step: Array = real(0.5, 0.01, 1.0, log=True, symbol=r"\delta", doc="step size δ")
    horizon: Array = real(8.0, 0.5, 100.0, log=True, symbol=r"\tau", doc="samples per dimension")
    threshold: Array = real(0.3, 0.01, 0.99, symbol=r"\eta", doc="level η of weak recovery")
    margin: Array = real(0.05, 0.001, 0.5, log=True, symbol=r"\epsilon", doc="level 1 − ε of strong recovery")

    usual = Run(sizes=(150, 300, 600), samples=600, batch=100)
    showcase = Showcase(
        parameters={"noise": 0.1},
        see="From a random start the correlation leaves zero within a few samples per dimension; label noise "
        "keeps it below one.",
    )

    def theory(self):
        landscape = landscapes.single_index(self.activation, self.activation, self.noise)
        times = even_times(self.horizon, POINTS)
        path = spherical_ode.correlation(landscape, jnp.zeros(()), self.step, times)

        def passed(level, label, symbol):
            return Probability(jnp.where(path[-1] > level, 1.0, 0.0), label=label, symbol=symbol)

        return {
            "correlation": correlation_curve(times, path),
            "weak_recovery": passed(self.threshold, "weak recovery", r"P(m\geq\eta)"),
            "strong_recovery": passed(1 - self.margin, "strong recovery", r"P(m\geq 1-\epsilon)"),
        }

    def validity_at(self, size):
        given = float(self.noise), float(self.step), float(self.horizon)
        reached, deviation = _at_the_end(self.activation, *given)
        for name, level in (("threshold", float(self.threshold)), ("1 − margin", 1 - float(self.margin))):
            needed = (CERTAIN * deviation / max(abs(reached - level), 1e-9)) ** 2
            if size < needed:
                return (
                    f"at N = {size} the correlation at horizon = {written(self.horizon)}, {reached:.4g} in the limit "
                    "with deviations "
                    f"{deviation:.2g}/√N, is not clear of {name} = {level:.4g}; take sizes of at least {needed:.0f}, "
                    "or a level further away",
                )
        return ()

    def at_size(self, size):
        return paced(self, size, POINTS, least=10)

    def simulate(self, key, *, dimension: int, every: int):
        f = activation(self.activation)
        model = reduced_chains.single_index(dimension, f, f, self.noise)
        first, rest = reduced_chains.first_and_rest(model.samples(key, (1 + POINTS * every,)))
        marks = every * np.arange(1, POINTS + 1)
        path = reduced_chains.spherical_path(model, rest, reduced_chains.uniform_start(first), self.step, marks)
        return {
            "correlation": path,
            "weak_recovery": (path[-1] >= self.threshold).astype(float),
            "strong_recovery": (path[-1] >= 1 - self.margin).astype(float),
        }


class _End(NamedTuple):
    correlation: float
    deviation: float
    """Of √N m."""


@functools.cache
def _at_the_end(link: str, noise: float, step: float, horizon: float) -> _End:
    landscape = landscapes.single_index(link, link, noise)
    dynamics = effective.EffectiveDynamics(lambda u: -spherical_ode.velocity(landscape, u, step), jnp.zeros_like)
    path, covariance = effective.fluctuations(
        dynamics,
        lambda u: (step**2 * landscape.directional_variance(u))[:, None],
        jnp.zeros(1),
        jnp.asarray([horizon]),
        covariance=jnp.ones((1, 1)),
    )
    return _End(float(path[0, 0]), float(jnp.sqrt(covariance[0, 0, 0])))
