r"""What one layer does to the variance K of a Gaussian preactivation: F(K) = C_b + C_w E σ², and its derivatives.

The moments themselves are those of `theory.gaussian.moments`.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import ArrayLike

from deeplimits.models.activations import ActivationLike
from deeplimits.numerics.arguments import NOT_NEGATIVE, argument
from deeplimits.numerics.shapes import Floats
from deeplimits.theory.gaussian.moments import along as along
from deeplimits.theory.gaussian.moments import check as check
from deeplimits.theory.gaussian.moments import compiled as compiled
from deeplimits.theory.gaussian.moments import first_derivative as first_derivative
from deeplimits.theory.gaussian.moments import second_derivative as second_derivative
from deeplimits.theory.gaussian.moments import second_moment as second_moment
from deeplimits.theory.gaussian.moments import slope_moment as slope_moment


class Susceptibilities(NamedTuple):
    """How one layer multiplies a small change: of the norm (parallel), of the direction (perpendicular)."""

    parallel: Floats
    perpendicular: Floats


def layer_map(
    activation: ActivationLike, kernel: ArrayLike, weight_variance: ArrayLike, bias_variance: ArrayLike
) -> Floats:
    """F(K) = C_b + C_w E σ²"""
    return jnp.asarray(bias_variance, float) + jnp.asarray(weight_variance, float) * second_moment(activation, kernel)


def susceptibilities(
    activation: ActivationLike, kernel: ArrayLike, *, weight_variance: ArrayLike = 1.0
) -> Susceptibilities:
    """χ_∥ = F'(K) and χ_⊥ = C_w E σ'².

    >>> [round(float(chi), 6) for chi in susceptibilities("tanh", 0.41803720053348, weight_variance=1.5)]
    [0.551983, 0.938636]
    """
    c_w = argument("weight_variance", weight_variance, NOT_NEGATIVE)
    return Susceptibilities(c_w * first_derivative(activation, kernel), c_w * slope_moment(activation, kernel))


def check_variances(**values: ArrayLike) -> None:
    """Refuse variances that are negative or not finite, where they are known."""
    for name, value in values.items():
        argument(name, value, NOT_NEGATIVE, "a variance")
