r"""Softmax regression on a mixture of Gaussians, trained online."""

import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import mixture_training, reduced_chains
from deeplimits.limit import Limit, Run, integer, real, rounded, whole
from deeplimits.numerics import draws
from deeplimits.predictions import Curve
from deeplimits.showcase import Showcase
from deeplimits.theory.landscape import kgmm

POINTS = 3


class KgmmSgdEffectiveDynamics(Limit):
    r"""The overlaps of softmax regression with the means of a mixture follow a closed ODE, one class not like another.

    Setting     class a with probability p_a ∝ e^{−ha/(k−1)}, Y = μ_a + Z/√λ in R^d, μ_a·μ_b = ρ for a ≠ b, |μ_a| = 1;
                x^c ← (1 − δβ)x^c − δ(π_c − y_c)Y, π = softmax(xY), δ = c/d, from N(0, 1/d) orthogonal to the means;
                t = δ·steps
    Limit       d → ∞
    Result      M_cb = x^c·μ_b and R, the Gram matrix of the rest, Q = MḠ⁻¹M' + R, logits N(M_·a, Q/λ):
                dM/dt = Σ p_a E_a[e_a − π]Ḡ_a· − SM/λ − βM,  S = Σ p_a E_a[diag π − ππ']
                dR/dt = −(SR + RS)/λ − 2βR + (c/λ)F,  F = Σ p_a E_a[(π − e_a)(π − e_a)']
    Validity    linearly independent means; size counts the dimension d
    Finite size mean gap O(1/d)
    Computed by landscape.kgmm_ballistic
    References  benarous2024
    """

    classes: int = integer(3, 2, 4, symbol="k", doc="number of classes k")
    separation: Array = real(5.0, 2.0, 100.0, log=True, symbol=r"\lambda", doc="inverse variance λ of a class")
    correlation: Array = real(0.2, 0.0, 0.5, symbol=r"\rho", doc="inner product of two means")
    imbalance: Array = real(0.5, 0.0, 1.0, symbol="h", doc="log of the ratio of the likeliest class to the rarest")
    ridge: Array = real(0.05, 0.0, 0.2, symbol=r"\beta", doc="ridge parameter β")
    step: Array = real(1.5, 0.1, 4.0, log=True, symbol="c", doc="step constant c = δd")
    horizon: Array = real(6.0, 3.0, 12.0, log=True, symbol="t", doc="time up to which SGD is followed")

    usual = Run(sizes=(50, 100, 200), samples=800, batch=100)
    showcase = Showcase(see="The overlap with the own mean rises, those with the others fall; the rare class lags.")

    def _means(self):
        k = self.classes
        return (1 - self.correlation) * jnp.eye(k) + self.correlation

    def _probabilities(self):
        weights = jnp.exp(-self.imbalance * jnp.arange(1.0 * self.classes) / (self.classes - 1))
        return weights / jnp.sum(weights)

    def theory(self):
        k = self.classes
        times = self.horizon * jnp.arange(1.0, POINTS + 1) / POINTS
        start = kgmm.MixtureState(jnp.zeros((k, k)), jnp.eye(k))
        path = kgmm.kgmm_ballistic(
            start,
            times,
            self.separation,
            self.ridge,
            self.step,
            probabilities=self._probabilities(),
            gram=self._means(),
        )
        shared = {"axis": "time", "axis_symbol": "t", "rate": 1.0}
        return {
            "own": Curve(times, path.means[:, 0, 0], label="overlap with the own mean", symbol="M_{11}", **shared),
            "other": Curve(times, path.means[:, 0, 1], label="overlap with another", symbol="M_{12}", **shared),
            "rarest": Curve(times, path.means[:, -1, -1], label="overlap, rarest class", symbol="M_{kk}", **shared),
            "rest": Curve(times, path.rest[:, 0, 0], label="squared rest", symbol="R_{11}", **shared),
        }

    def at_size(self, size):
        d = whole(size, "d", self, least=4 * self.classes)
        every = whole(float(self.horizon) * d / float(self.step) / POINTS, "steps between records", self)
        return {"dimension": d, "every": every}, rounded(self, horizon=every * POINTS * float(self.step) / d)

    def simulate(self, key, *, dimension: int, every: int):
        mixture = mixture_training.Mixture(jnp.linalg.cholesky(self._means()), self._probabilities(), self.separation)

        def step(sample, state):
            return mixture_training.mixture_step(sample, state, mixture, dimension, self.ridge, self.step)

        start = mixture_training.random_start(draws.neighbour(key, -1, word=0), mixture, dimension)
        start = start._replace(means=jnp.zeros_like(start.means))
        samples = mixture_training.samples(key, POINTS * every, dimension, self.classes)
        found = reduced_chains.run(step, samples, start, every * jnp.arange(1, POINTS + 1))
        return {
            "own": found.means[:, 0, 0],
            "other": found.means[:, 0, 1],
            "rarest": found.means[:, -1, -1],
            "rest": found.rest[:, 0, 0],
        }
