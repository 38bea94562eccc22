r"""Kernels from finitely many random features: how far K_m = (1/m) Σ φ_l(x)φ_l(x') is from its mean."""

import functools
from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import ArrayLike

from deeplimits.models.activations import Activation, ActivationLike, relu_power
from deeplimits.models.activations import activation as named
from deeplimits.numerics.arguments import FINITE, POSITIVE, argument
from deeplimits.numerics.shapes import Floats
from deeplimits.theory.gaussian import dual, expect_pair


class FeatureKernel(NamedTuple):
    """Mean of the random-feature kernel, and m times its variance."""

    mean: Floats
    variance: Floats


def neuron_features(activation: ActivationLike, a: ArrayLike, b: ArrayLike, c: ArrayLike) -> FeatureKernel:
    """K = E σ(u)σ(v) and m·Var K_m = E σ(u)²σ(v)² − K² for u = ⟨w, x⟩, v = ⟨w, x'⟩, w ~ N(0, I).

    a = |x|², b = |x'|², c = ⟨x, x'⟩. For ReLU the second moment is the arc-cosine kernel of order two.

    >>> found = neuron_features("relu", 1.0, 1.0, 0.5)
    >>> round(float(found.mean), 12), round(float(found.variance), 12)
    (0.304498890522, 0.614028761454)
    """
    chosen = named(activation)
    mean = dual(chosen, a, b, c)
    if chosen.name == "relu":
        second = dual(relu_power(2), a, b, c)
    else:
        squared = _square(chosen)
        second = jnp.asarray(expect_pair(squared, squared, a, b, c, kinks=chosen.kinks).value)
    return FeatureKernel(mean, second - mean**2)


@functools.cache
def _square(chosen: Activation):
    return lambda u: chosen.value(u) ** 2


def fourier_features(difference: ArrayLike, *, scale: ArrayLike = 1.0) -> FeatureKernel:
    """Random Fourier features √2 cos(⟨w, x⟩ + b), w ~ N(0, I/l²), b uniform: k(Δ) = e^{−Δ²/2l²}, Δ = |x − x'|.

    m·Var K_m = 1 + ½k(2Δ) − k(Δ)².

    >>> found = fourier_features(0.0)
    >>> float(found.mean), float(found.variance)
    (1.0, 0.5)
    """
    ratio = argument("difference", difference, FINITE) / argument("scale", scale, POSITIVE)
    mean = jnp.exp(-(ratio**2) / 2)
    return FeatureKernel(mean, 1 + jnp.exp(-2 * ratio**2) / 2 - mean**2)
