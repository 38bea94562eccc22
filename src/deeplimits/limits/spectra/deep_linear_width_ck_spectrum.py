r"""The conjugate kernel of a deep network whose widths grow with the number of samples."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import data, matrices
from deeplimits.limit import Limit, Run, activation_choice, axis, real, rounded, whole
from deeplimits.limits.spectra._shared import resolvent_curve
from deeplimits.measure import spectra
from deeplimits.models.activations import activation
from deeplimits.predictions import Value
from deeplimits.showcase import Showcase
from deeplimits.theory.spectra import gram_curve, network_grams


class DeepLinearWidthCkSpectrum(Limit):
    r"""The spectrum of the conjugate kernel passes from layer to layer by a free product with Marchenko-Pastur.

    Setting     X₀ is d₀×n with independent entries of variance 1/d₀; X_l = σ(W_lX_{l−1})/√d_l for two layers, W
                Gaussian, σ odd and scaled to E σ(ξ)² = 1; K = X₂'X₂
    Limit       n, d₀, d₁, d₂ → ∞ in proportion
    Result      μ_l = MP(n/d_l) ⊠ law of b²λ + 1 − b², λ ~ μ_{l−1}, b = E[ξσ(ξ)], μ₀ = MP(n/d₀); mean 1 and variance
                c₂ + b⁴(c₁ + b⁴c₀), c_l = n/d_l
    Validity    σ odd, widths of the order of n and at least 8; size counts the samples n
    Finite size both deviate by O(1/n)
    Computed by spectra.conjugate_kernel_transform, spectra.odd_moments; as a law spectra.conjugate_kernel_spectrum
    References  fan2020
    """

    activation: str = activation_choice(
        "tanh", lambda a: a.odd and a.bounded, doc="activation σ, scaled to unit variance"
    )
    data_ratio: Array = real(0.7, 0.05, 10.0, log=True, symbol="c_0", doc="samples per input dimension, n/d₀")
    first_ratio: Array = real(0.5, 0.05, 10.0, log=True, symbol="c_1", doc="samples per unit of the first layer")
    second_ratio: Array = real(0.6, 0.05, 10.0, log=True, symbol="c_2", doc="samples per unit of the second layer")
    shifts: Array = axis((0.1, 0.3, 1.0, 3.0), 1e-3, 1e3, log=True, symbol="y", doc="where the transform is compared")

    usual = Run(sizes=(40, 80, 160), samples=120)
    showcase = Showcase(see="The transform of the layer's spectrum, by a free product with Marchenko–Pastur.")

    def theory(self):
        eta, zeta = gram_curve.odd_moments(activation(self.activation))
        share = zeta / eta
        ratios = (self.first_ratio, self.second_ratio)
        values = network_grams.conjugate_kernel_transform(self.shifts, share, self.data_ratio, ratios)
        # The variance of MP(c) ⊠ ν with mean one is c + Var ν.
        spread = self.second_ratio + share**2 * (self.first_ratio + share**2 * self.data_ratio)
        return {
            "transform": resolvent_curve(self.shifts, values, "kernel", r"\frac{1}{n}{\rm tr}\,y(y+K)^{-1}"),
            "variance": Value(spread, label="variance of the eigenvalues", symbol=r"{\rm Var}\,\lambda", rate=1.0),
        }

    def at_size(self, size):
        n = whole(size, "n", self, least=4)
        widths = tuple(
            whole(n / float(ratio), "d", self, least=8)
            for ratio in (self.data_ratio, self.first_ratio, self.second_ratio)
        )
        realised = rounded(self, data_ratio=n / widths[0], first_ratio=n / widths[1], second_ratio=n / widths[2])
        return {"samples": n, "widths": widths}, realised

    def simulate(self, key, *, samples: int, widths: tuple[int, ...]):
        sigma = activation(self.activation).value
        # Scaled by its own second moment on the Gaussian grid that the network itself would see.
        scale = jnp.sqrt(jnp.mean(sigma(jax.scipy.stats.norm.ppf(jnp.arange(0.5, 20000) / 20000)) ** 2))
        keys = jax.random.split(key, 3)
        x = data.independent_entries(keys[0], widths[0], samples)
        for layer_key, width in zip(keys[1:], widths[1:], strict=True):
            x = matrices.features(layer_key, self.activation, width, x, jnp.zeros(())) / scale
        eigenvalues = spectra.sample_covariance_eigenvalues(x)
        return {
            "transform": self.shifts * spectra.regularized_trace(eigenvalues, self.shifts),
            "variance": jnp.mean(eigenvalues**2) - jnp.mean(eigenvalues) ** 2,
        }
