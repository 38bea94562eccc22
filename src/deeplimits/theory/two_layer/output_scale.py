r"""What the output scale of a two-layer network decides: f = (α/m) Σ_j a_j σ(⟨w_j, x⟩), from mean field to lazy."""

from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import ArrayLike

from deeplimits.models.activations import ActivationLike
from deeplimits.models.activations import activation as named
from deeplimits.numerics.arguments import NOT_NEGATIVE, POSITIVE, argument, at_least
from deeplimits.numerics.shapes import Floats
from deeplimits.theory.gaussian.moments import second_moment
from deeplimits.theory.kernels.two_layer_kernels import two_layer_gram


class OutputScaling(NamedTuple):
    """What a two-layer network of m neurons and output scale α does at the start and in its training."""

    start_variance: Floats
    """Var f₀(x), exact."""
    kernel: Floats
    """K₀(x, x) of both layers, E over the weights: what gradient flow on ½(y − f)² contracts f(x) with."""
    time: Floats
    """m/α²: f changes by order one in times, or steps of gradient descent over their size, of this order."""
    neuron_displacement: Floats
    """1/α: how far a neuron moves in that time, up to a constant of order one."""
    layer_displacement: Floats
    """√m/α: the same for ‖W − W₀‖_F."""


def output_scaling(
    activation: ActivationLike,
    alpha: ArrayLike,
    width: ArrayLike,
    *,
    squared_norm: ArrayLike = 1.0,
    output_second_moment: ArrayLike = 1.0,
) -> OutputScaling:
    r"""Variance, kernel, time and displacement of a two-layer network as functions of its output scale and width.

    Setting     f(x) = (α/m) Σ_j a_j σ(⟨w_j, x⟩), w_j ~ N(0, I), a_j independent, centred, of the given second moment;
                m = `width`, ‖x‖² = `squared_norm`; both layers trained
    Result      Var f₀ = (α²/m) E a² E σ(u)², u ~ N(0, ‖x‖²), exactly; E K₀ = (α²/m)[E σ(u)² + ‖x‖² E a² E σ'(u)²];
                f changes in times m/α², in which a neuron moves by Θ(1/α) and ‖W − W₀‖_F = Θ(√m/α). α = √m is the lazy
                (NTK) scale, where neurons move m^(−1/2); α = 1 the mean-field scale, where they move by order one and
                steps must be of size m; α = m^p lies between
    Validity    continuous σ; times and displacements are orders of magnitude
    References  chizat2019; mei2018; bartlett2021

    >>> lazy, mean_field = (output_scaling("relu", alpha, 100.0) for alpha in (10.0, 1.0))
    >>> float(lazy.start_variance), float(mean_field.start_variance), float(mean_field.time)
    (0.5, 0.005, 100.0)
    """
    sigma = named(activation)
    a, m = argument("alpha", alpha, POSITIVE), argument("width", width, at_least(1))
    norm = argument("squared_norm", squared_norm, NOT_NEGATIVE)
    second = argument("output_second_moment", output_second_moment, NOT_NEGATIVE)
    strength = a**2 / m
    gram = two_layer_gram(sigma, norm, norm, norm, output_second_moment=second)
    return OutputScaling(
        strength * second * second_moment(sigma, norm),
        strength * (gram.inner + gram.outer),
        m / a**2,
        1 / a,
        jnp.sqrt(m) / a,
    )
