r"""The Gram matrix of random features."""

import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import data, matrices
from deeplimits.limit import Limit, Run, activation_choice, real, replace, whole
from deeplimits.measure import spectra
from deeplimits.models.activations import activation
from deeplimits.predictions import Spectrum
from deeplimits.theory.spectra import gram_curve

GRID = 400


class NonlinearGramSpectrum(Limit):
    r"""Eigenvalues of the Gram matrix of random features, which the nonlinearity enters through two numbers.

    Setting     Σ = σ(WX/√p), W is N×p and X is p×n with independent standard entries, σ odd; G = Σ'Σ/n
    Limit       p, n, N → ∞ with n/p and N/n fixed
    Result      with η = E σ(ξ)², ζ = E[ξσ(ξ)]² and g the transform of the law of ζX'X/p + (η − ζ)I:
                z = w(N/n − 1 − w g(w)), m(z) = (w/z) g(w); density Im m/π; mass (1 − N/n)₊ at 0
    Validity    σ odd, so that no outlier leaves the bulk; size counts the samples n
    Finite size the distribution function deviates by O(1/n), the edges by O(n^(-2/3))
    Computed by spectra.odd_moments, spectra.gram_curve.curve; as a law spectra.nonlinear_gram
    References  pennington2017b; benigni2021
    """

    activation: str = activation_choice("tanh", lambda a: a.odd and a.bounded)
    data_ratio: Array = real(0.7, 0.05, 20.0, log=True, symbol="n/p", doc="samples per input dimension")
    width_ratio: Array = real(2.0, 0.05, 20.0, log=True, symbol="N/n", doc="features per sample")

    usual = Run(sizes=(40, 80, 160), samples=80)

    def theory(self):
        moments = gram_curve.odd_moments(activation(self.activation))
        law = gram_curve.curve(moments, self.data_ratio, self.width_ratio, GRID)
        zero = jnp.maximum(1 - self.width_ratio, 0.0)
        return {"eigenvalues": Spectrum(law.x, law.density, law.cdf, law.edges, jnp.zeros(1), zero[None])}

    def at_size(self, size):
        n = whole(size, "n", self, least=4)
        p = whole(n / float(self.data_ratio), "p", self, least=2)
        width = whole(n * float(self.width_ratio), "N", self, least=2)
        return {"samples": n, "inputs": p, "width": width}, replace(self, data_ratio=n / p, width_ratio=width / n)

    def simulate(self, key, *, samples: int, inputs: int, width: int):
        x = data.independent_entries(key, inputs, samples)
        features = matrices.features(data.other(key), self.activation, width, x, jnp.zeros(()))
        scale = jnp.sqrt(width / samples)
        return {"eigenvalues": spectra.sample_covariance_eigenvalues(scale * features)}
