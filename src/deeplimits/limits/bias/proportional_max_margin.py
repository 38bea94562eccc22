r"""The maximum margin in high dimension."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from deeplimits.ensembles import data, estimators
from deeplimits.limit import Limit, Run, choice, real, rounded, whole
from deeplimits.numerics import panels
from deeplimits.numerics.arguments import written
from deeplimits.predictions import Value
from deeplimits.showcase import Showcase
from deeplimits.theory.bias import proportional_margin


class ProportionalMaxMargin(Limit):
    r"""Margin, error and support of the max-margin predictor when dimension and samples grow together.

    Setting     n points x ~ N(0, 1) in R^p; labels y = ±1 that depend on g = ⟨θ, x⟩, ‖θ‖ = 1: its sign, a logistic
                draw with P(y = 1) = 1/(1 + e^{−ρg}), or a fair coin; w = argmax_{‖w‖=1} min_i y_i⟨w, x_i⟩
    Limit       n, p → ∞ with p/n → ψ
    Result      with u = yg and Z ~ N(0, 1): margin κ* = max_m t(m)/√(1+m²), E[(t − mu − Z)₊²] = ψ
                overlap ⟨w, θ⟩ → m/√(1+m²), error P(mu + Z < 0), fraction of support vectors P(t > mu + Z)
                random labels: E(κ* − Z)₊² = ψ (Gardner)
    Validity    ψ above the threshold of separability, min_m E(mu + Z)₋² (½ for random labels); size counts the
                samples n
    Finite size O(1/n)
    Computed by bias.proportional_max_margin, bias.separability_threshold
    References  montanari2019; deng2022; gardner1988
    """

    gamma: Array = real(0.5, 0.05, 10.0, log=True, symbol=r"\psi", doc="features per sample, p/n")
    labels: str = choice("sign", ("sign", "logistic", "random"), doc="how labels depend on the signal")
    strength: Array = real(2.0, 0.0, 20.0, symbol=r"\rho", doc="signal strength of logistic labels")

    usual = Run(sizes=(32, 64, 128), samples=1300)
    showcase = Showcase(ranges={"gamma": (0.1, 5.0)}, see="Margin and overlap over the number of features per sample.")

    def validity(self):
        least = proportional_margin.separability_threshold(self.labels, strength=float(self.strength))
        if float(self.gamma) <= 1.2 * least:
            return (
                f"gamma = {written(self.gamma)} is not above 1.2 times the separability threshold {least:.4g}; finite "
                "samples would not be separable, so take more features per sample",
            )
        return ()

    def theory(self):
        found = proportional_margin.proportional_max_margin(self.gamma, labels=self.labels, strength=self.strength)
        return {
            "margin": Value(found.margin, label="margin", symbol=r"\kappa^*", rate=1.0),
            "overlap": Value(found.overlap, label="overlap with the signal", rate=1.0),
            "error": Value(found.error, label="probability of a wrong label", rate=1.0),
            "support": Value(found.support, label="fraction of support vectors", rate=1.0),
        }

    def at_size(self, size):
        n = whole(size, "n", self, least=4)
        p = whole(n * float(self.gamma), "p", self, least=2)
        return {"samples": n, "features": p}, rounded(self, gamma=p / n)

    def simulate(self, key, *, samples: int, features: int):
        x_key, label_key = jax.random.split(key)
        x = data.independent_entries(x_key, samples, features)
        # The signal is the first axis.
        right = self._agree(x[:, 0])
        agree = jax.random.bernoulli(label_key, right) if self.labels != "sign" else right > 0
        signed = x * jnp.where(agree == (x[:, 0] > 0), 1.0, -1.0)[:, None]
        w, multipliers = estimators.max_margin(signed)
        norm = jnp.linalg.norm(w)
        along = w[0] / norm
        return {
            "margin": 1 / norm,
            "overlap": along,
            "error": self._error(along),
            "support": jnp.mean((multipliers > 1e-6 * jnp.max(multipliers)).astype(float)),
        }

    def _agree(self, signal):
        """The probability that a label is the sign of its signal."""
        if self.labels == "logistic":
            return jax.nn.sigmoid(self.strength * jnp.abs(signal))
        return jnp.full_like(signal, 1.0 if self.labels == "sign" else 0.5)

    def _error(self, along):
        """The probability that weights at this angle with the signal are wrong about a new point.

        It meets the weights through its components along and across the signal: an integral over the first, with the
        second's law in closed form, where a test set would only add noise.
        """
        slope = along / jnp.sqrt(jnp.maximum(1 - along**2, 1e-30))
        signal, weights = jnp.asarray(SIGNALS), jnp.asarray(SIGNAL_WEIGHTS)
        agree, against = self._agree(signal), jax.scipy.stats.norm.cdf(-slope * signal)
        return weights @ (agree * against + (1 - agree) * (1 - against))


# Sizes of a Gaussian signal and their probabilities, crowded at zero, where the guess turns over.
_NODES, _WEIGHTS = panels.gauss(80, 0.0, 1.0)
SIGNALS = 8.5 * _NODES**2
SIGNAL_WEIGHTS = 2 * 8.5 * _NODES * _WEIGHTS * np.sqrt(2 / np.pi) * np.exp(-(SIGNALS**2) / 2)
