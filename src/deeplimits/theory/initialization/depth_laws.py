r"""How a critical network approaches its fixed point: power laws in the depth."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.models.activations import ActivationLike
from deeplimits.models.activations import activation as named
from deeplimits.numerics.arguments import whole
from deeplimits.numerics.shapes import Floats
from deeplimits.theory.initialization import layer_maps
from deeplimits.theory.initialization.critical_points import criticality


class DecayToZero(NamedTuple):
    """K^(l) of a critical network of the K* = 0 class."""

    kernels: Floats
    """K^(1), K^(2), … by the recursion."""
    a1: float
    a2: float
    perpendicular_exponent: float
    constant: float
    """What 1/K^(l) + a₁l − ((a₁² − a₂)/(−a₁)) ln l has become at the last layer; converges like ln l/l.

    Where σ'' jumps at 0, what 2/√K^(l) + a l has become; it grows like ln l."""


class HalfStable(NamedTuple):
    """Deviation K^(l) − K* of a critical network of the half-stable class."""

    deviations: Floats
    """At layers 0, 1, …, by the recursion."""
    curvature: float
    """F''(K*)"""
    attracted: bool
    """Whether the recursion falls towards K* from the side of the start."""
    onset: float
    """2/(|F''| |δ₀|): the depth at which |δ_l| ~ 2/(|F''| l) sets in."""


def decay_to_zero(activation: ActivationLike, kernel: float, layers: int) -> DecayToZero:
    """The slow decay of signals in tanh-like networks at criticality.

    Setting     σ(0) = 0, σ_k = σ^(k)(0), C_b = 0, C_w = 1/σ₁²: K^(l+1) = K + a₁K² + a₂K³ + …, a₁ < 0
    Result      1/K^(l) = −a₁l + ((a₁² − a₂)/(−a₁)) ln l + const + o(1), a₁ = σ₃/σ₁ + (3/4)(σ₂/σ₁)²
                tanh: a₁ = −2, a₂ = 17/3, K^(l) ~ 1/2l; sin: 1/l
                parallel perturbations decay as l^(−2), perpendicular ones as l^(−p), p = b₁/a₁
                where σ'' jumps at 0 (ELU, softsign) K^(l+1) = K + a K^(3/2) + …, a < 0: K^(l) ~ 4/a²l², p = 2
    Validity    a₁ < 0 (a < 0); C_w ≠ 1/σ₁² gives exponential decay or a nonzero fixed point instead
    References  roberts2022 Ch 5

    >>> found = decay_to_zero("tanh", 1.0, 1000)
    >>> round(float(found.kernels[99]), 14), round(2000 * float(found.kernels[999]), 11)
    (0.00512071566599, 1.00333306989)
    """
    sigma = named(activation)
    layers = whole("layers", layers, 1)
    layer_maps.check_variances(kernel=kernel)
    if not kernel > 0:
        raise ParameterError(f"kernel = {kernel} is not allowed; the decay starts from a positive variance")
    found = criticality(sigma)
    if found.expansion is None:
        raise OutsideValidity(
            f"activation = {sigma.name} is in the {found.universality} class, whose kernel does not decay to zero; "
            "take an activation with σ(0) = 0, such as tanh, erf or sin"
        )
    kernels = iterate(sigma, kernel, found.weight_variance, 0.0, layers)
    a1, a2, _, bend = found.expansion
    last = len(kernels)
    if bend:
        constant = 2 / float(np.sqrt(kernels[-1])) + bend * last
        return DecayToZero(kernels, a1, a2, found.expansion.perpendicular_exponent, constant)
    constant = 1 / float(kernels[-1]) + a1 * last - (a1**2 - a2) / (-a1) * np.log(last)
    return DecayToZero(kernels, a1, a2, found.expansion.perpendicular_exponent, constant)


def half_stable_law(activation: ActivationLike, deviation: float, layers: int) -> HalfStable:
    """The nearly constant kernel of critical GELU and SWISH networks.

    Setting     the half-stable critical point K* > 0, δ = K − K*: δ' = δ + F''(K*)δ²/2 + …
    Result      attracting from the side where F''δ < 0, with |δ_l| ~ 2/(|F''| l), repelling from the other
                GELU: F'' = −2.87·10⁻⁴, stable from above; SWISH: F'' = 5.70·10⁻⁶, stable from below
                the law sets in at l ~ 2/(|F''|δ₀), thousands of layers: at any realistic depth the kernel is constant
    Validity    K* + δ₀ ≥ 0; activations of the half-stable class
    References  roberts2022 Ch 5

    >>> round(float(half_stable_law("gelu", 1.0, 10).deviations[-1]), 9)
    0.997101603
    """
    sigma = named(activation)
    found = criticality(sigma)
    if found.curvature is None or found.kernel is None:
        raise OutsideValidity(
            f"activation = {sigma.name} is in the {found.universality} class, not half-stable; take GELU or SWISH"
        )
    if not np.isfinite(deviation) or found.kernel + deviation < 0 or deviation == 0:
        raise ParameterError(
            f"deviation = {deviation} is not allowed; it must be finite and not 0, and the variance "
            f"K* + deviation, here {found.kernel + deviation:g}, at least 0"
        )
    kernels = iterate(
        sigma, found.kernel + deviation, found.weight_variance, found.bias_variance, whole("layers", layers, 1) + 1
    )
    onset = 2 / (abs(found.curvature) * abs(deviation))
    return HalfStable(kernels - found.kernel, found.curvature, found.curvature * deviation < 0, onset)


def iterate(
    activation: ActivationLike, kernel: ArrayLike, weight_variance: ArrayLike, bias_variance: ArrayLike, layers: int
) -> Floats:
    """K at `layers` successive layers, the first included, as one compiled loop."""
    layer_maps.check_variances(kernel=kernel, weight_variance=weight_variance, bias_variance=bias_variance)

    def advance(k, _):
        return layer_maps.layer_map(activation, k, weight_variance, bias_variance), k

    found = jax.lax.scan(advance, jnp.asarray(kernel, float), length=whole("layers", layers, 1))[1]
    layer_maps.check(activation, found)
    return found
