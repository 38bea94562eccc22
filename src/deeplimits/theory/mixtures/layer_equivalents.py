r"""Conjugate and tangent kernels of deep networks on a mixture, layer by layer, through four and four numbers."""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import ArrayLike

from deeplimits.errors import ParameterError
from deeplimits.models.activations import ActivationLike
from deeplimits.numerics.arguments import POSITIVE, number
from deeplimits.numerics.checks import valid
from deeplimits.numerics.shapes import Scalar
from deeplimits.theory.mixtures.activation_moments import layer_moments

FADED = 1e-150
"""A signal of smaller variance has lost its last digits in products."""


class DeepKernel(NamedTuple):
    """A kernel behind one layer: k₁X'X/p + k₂ss' + k₃JTJ'/p + (k₀ − τ₀²k₁)I, s and T as in `kernel_data`."""

    linear: Scalar
    """k₁"""
    quadratic: Scalar
    """k₂"""
    classes: Scalar
    """k₃"""
    diagonal: Scalar
    """k₀, the kernel of a point with itself; infinite for the tangent kernel of an activation that jumps."""
    own: Scalar
    """k₄ = ∂k₀/∂τ₀²: how the diagonal follows the length of the input; for the conjugate kernel."""


class DeepCoefficients(NamedTuple):
    """Conjugate and tangent kernels behind every hidden layer."""

    conjugate: tuple[DeepKernel, ...]
    tangent: tuple[DeepKernel, ...]
    means: tuple[Scalar, ...]
    """E σ_l(τ_{l−1}ξ), which each layer takes off."""


def deep_coefficients(activations: Sequence[ActivationLike], variance: ArrayLike = 1.0) -> DeepCoefficients:
    """Conjugate and tangent kernels of a deep network on a Gaussian mixture, behind each of its layers.

    Setting     h_l = W_l x_{l−1}/√(fan in), x_l = σ_l(h_l) − E σ_l(τ_{l−1}ξ), W standard Gaussian, all widths infinite;
                x_0 ~ N(μ_a, C_a), `variance` τ₀² = tr C°/p; one activation for each hidden layer
    Result      α₀ = (1, 0, 0, 1), τ_l² = Var σ_l, D₁ = (E σ_l')², D₂ = (E σ_l'')² at the scale τ_{l−1}:
                α₁ ← D₁α₁, α₂ ← D₁α₂ + D₂α₄²/4, α₃ ← D₁α₃ + D₂α₁²/2, α₄ ← E[σ'² + σσ'']α₄;
                β₁ ← α₁ + D₁β₁, β₂ ← α₂ + D₁β₂, β₃ ← α₃ + D₁β₃ + D₂α₁β₁ (α₁ of the layer before), κ² ← τ² + κ²E σ'²,
                from β₀ = (1, 0, 0), κ₀² = τ₀²
    Validity    p, n → ∞ together, at fixed depth; each activation centred; for the diagonal of the tangent kernel
                continuous activations
    References  gu2022 Thm 1, 2; ali2022

    >>> found = deep_coefficients(["relu"] * 3)
    >>> [round(float(part), 12) for part in found.conjugate[-1]]
    [0.015625, 0.01049971488, 0.011297270274, 0.039597794743, 0.039597794743]
    >>> [round(float(part), 12) for part in found.tangent[-1][:4]]
    [0.0625, 0.018863755328, 0.065485721982, 0.307896735379]
    """
    if isinstance(activations, str) or not isinstance(activations, Sequence) or not len(activations):
        raise ParameterError("activations must be a list, with one activation for each hidden layer")
    tau = number("variance", variance, POSITIVE)
    a1, a2, a3, a4 = jnp.ones(()), jnp.zeros(()), jnp.zeros(()), jnp.ones(())
    b1, b2, b3, kappa = jnp.ones(()), jnp.zeros(()), jnp.zeros(()), tau
    conjugate, tangent, means = [], [], []
    for activation in activations:
        found = layer_moments(activation, tau)
        d1, d2 = found.slope**2, found.curvature**2
        # α₂ ← D₁α₂ + D₂α₄²/4, α₃ ← D₁α₃ + D₂α₁²/2, β₃ ← α₃ + D₁β₃ + D₂α₁β₁
        next3 = d1 * a3 + d2 * a1**2 / 2
        b3 = next3 + d1 * b3 + d2 * a1 * b1
        a1, a2, a3, a4 = d1 * a1, d1 * a2 + d2 * a4**2 / 4, next3, found.energy * a4
        b1, b2 = a1 + d1 * b1, a2 + d1 * b2
        tau = valid(
            found.variance,
            found.variance > FADED,
            "the signal fades: the variance behind a layer is too small to be computed with; scale the activations up",
        )
        kappa = tau + kappa * found.squared_slope
        conjugate.append(DeepKernel(a1, a2, a3, tau, a4))
        tangent.append(DeepKernel(b1, b2, b3, kappa, jnp.zeros(())))
        means.append(found.mean)
    return DeepCoefficients(tuple(conjugate), tuple(tangent), tuple(means))
