r"""The Gram matrix of random features."""

import functools
import math

import jax.numpy as jnp
from jaxtyping import Array

from deeplimits.ensembles import data, matrices
from deeplimits.limit import Limit, Run, activation_choice, real, rounded, whole
from deeplimits.measure import spectra
from deeplimits.models.activations import activation
from deeplimits.numerics.arguments import known, written
from deeplimits.predictions import Spectrum
from deeplimits.showcase import Showcase
from deeplimits.theory.spectra import gram_curve

GRID = 400
LARGEST_BROADENING = 0.75
"""Of the bulk at the smallest size, as a variance relative to that of Marchenko and Pastur."""


class NonlinearGramSpectrum(Limit):
    r"""Eigenvalues of the Gram matrix of random features, which the nonlinearity enters through two numbers.

    Setting     Σ = σ(WX/√p), W is N×p and X is p×n with independent standard entries, σ odd; G = Σ'Σ/n
    Limit       p, n, N → ∞ with n/p and N/n fixed
    Result      with η = E σ(ξ)², ζ = E[ξσ(ξ)]² and g the transform of the law of ζX'X/p + (η − ζ)I:
                z = w(N/n − 1 − w g(w)), m(z) = (w/z) g(w); density Im m/π; mass (1 − N/n)₊ at 0
    Validity    σ odd, so that no outlier leaves the bulk; size counts the samples n
    Finite size the distribution function deviates by O(1/n), the edges by O(n^(-2/3)); norms of inputs fluctuate by
                √(2/p) and the remainder η − ζ with them, which broadens the bulk by that over √(n/N): many samples
                per dimension and wide networks need large n
    Computed by spectra.odd_moments, spectra.gram_curve.curve; as a law spectra.nonlinear_gram
    References  pennington2017b; benigni2021
    """

    activation: str = activation_choice("tanh", lambda a: a.odd and a.bounded)
    data_ratio: Array = real(0.7, 0.05, 20.0, log=True, symbol="n/p", doc="samples per input dimension")
    width_ratio: Array = real(2.0, 0.05, 20.0, log=True, symbol="N/n", doc="features per sample")

    usual = Run(sizes=(40, 80, 160), samples=80)
    showcase = Showcase(
        ranges={"data_ratio": (0.1, 4.0), "width_ratio": (0.2, 8.0)},
        see="The nonlinearity enters the spectrum through two numbers only.",
    )

    def theory(self):
        moments = gram_curve.odd_moments(activation(self.activation))
        law = gram_curve.curve(moments, self.data_ratio, self.width_ratio, GRID)
        zero = jnp.maximum(1 - self.width_ratio, 0.0)
        return {"eigenvalues": Spectrum(law.x, law.density, law.cdf, law.edges, jnp.zeros(1), zero[None])}

    def validity_at(self, size):
        if not known(self.data_ratio, self.width_ratio):
            return ()
        # Var log(η − ζ) = 2 l²/p against the variance n/N of the bulk, at most 1
        broadening = 2 * _sensitivity(self.activation) ** 2 * float(self.data_ratio) * max(float(self.width_ratio), 1.0)
        if broadening <= LARGEST_BROADENING * size:
            return ()
        return (
            f"at n = {size} with data_ratio = {written(self.data_ratio)} and width_ratio = {written(self.width_ratio)} "
            "the fluctuating norms of the inputs broaden the bulk; take sizes of at least "
            f"{math.ceil(broadening / LARGEST_BROADENING)}",
        )

    def at_size(self, size):
        n = whole(size, "n", self, least=4)
        p = whole(n / float(self.data_ratio), "p", self, least=2)
        width = whole(n * float(self.width_ratio), "N", self, least=2)
        return {"samples": n, "inputs": p, "width": width}, rounded(self, data_ratio=n / p, width_ratio=width / n)

    def simulate(self, key, *, samples: int, inputs: int, width: int):
        x = data.independent_entries(key, inputs, samples)
        features = matrices.features(data.other(key), self.activation, width, x, jnp.zeros(()))
        scale = jnp.sqrt(width / samples)
        return {"eigenvalues": spectra.sample_covariance_eigenvalues(scale * features)}


@functools.cache
def _sensitivity(name: str) -> float:
    return gram_curve.remainder_sensitivity(activation(name))
