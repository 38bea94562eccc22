r"""The laziness κ = |h − y| ‖D²h‖/‖Dh‖² of h = α Σ_i a_i σ(⟨w_i, x⟩) at initialization (Chizat, Oyallon and Bach)."""

import jax.numpy as jnp
from jax.scipy.special import erf
from jaxtyping import Array
from numpy.typing import ArrayLike

from deeplimits.errors import ParameterError
from deeplimits.models.activations import Activation, ActivationLike
from deeplimits.models.activations import activation as named
from deeplimits.numerics import arguments
from deeplimits.numerics.shapes import Scalar
from deeplimits.theory.gaussian.moments import second_moment, slope_moment


def _statistics(activation: Activation, width: Array) -> tuple[Array, Array, Array]:
    """E σ², E[σ² + σ'²] under N(0, 1), and the mean of the largest norm of p neurons' second derivatives."""
    _require_smooth(activation)
    square, slope = second_moment(activation), slope_moment(activation)
    fine = jnp.linspace(-12.0, 12.0, 400_001)
    norms = _block_norm(activation.derivative(fine), activation.second_derivative(fine))
    # E max_i b(u_i) = sup b − ∫ P(b(u) ≤ x)^p dx; the sum over the sorted values of b on a grid.
    order = jnp.argsort(norms)
    mass = jnp.exp(-(fine**2) / 2)[order]
    below = jnp.minimum(jnp.cumsum(mass) / jnp.sum(mass), 1.0)[:-1]
    largest = norms[order[-1]] - jnp.sum(below**width * jnp.diff(norms[order]))
    return square, square + slope, largest


def _require_smooth(activation: Activation) -> None:
    if not activation.smooth:
        raise ParameterError(f"activation = {activation.name} has no second derivative; laziness needs a smooth one")


def _block_norm(slope: Array, curvature: Array) -> Array:
    # Norm of [[0, b], [b, c]]: (|c| + √(c² + 4b²))/2
    return (jnp.abs(curvature) + jnp.sqrt(curvature**2 + 4 * slope**2)) / 2


def expected_laziness(activation: ActivationLike, width: ArrayLike, exponent: ArrayLike, label: ArrayLike) -> Scalar:
    """E κ for p neurons with a = ±1, w·x ~ N(0, 1) and α = p^{−s}, up to a relative O(1/p).

    The output is normal with variance p^{1−2s} E σ²; its mean distance from y has a closed form. The largest of p
    neurons' curvatures is taken with its mean at this p: it misses the supremum by O(p^{−2}), or, where that is reached
    at a place which few neurons visit, by much more.

    >>> from deeplimits.models import activation
    >>> wide, wider = (expected_laziness(activation("tanh"), width, 0.5, 1.0) for width in (100, 400))
    >>> round(float(wide / wider), 3)  # laziness falls like p^{s−1}
    2.0
    """
    p = arguments.argument("width", width, arguments.at_least(1))
    s = arguments.argument("exponent", exponent, arguments.FINITE, "the output scale is p^{−s}")
    y = arguments.argument("label", label, arguments.FINITE)
    square, gradient, largest = _statistics(named(activation), p)
    # E|N(0, τ²) − y| = τ√(2/π) e^{−y²/2τ²} + |y| erf(|y|/(τ√2)) with τ = p^{1/2−s}√(E σ²); times p^{s−1}, in u = |y|/τ
    zero = y == 0
    u = jnp.where(zero, 0.0, jnp.abs(y) * jnp.where(zero, 1.0, p ** (s - 0.5)) / jnp.sqrt(square))
    distance = jnp.sqrt(square / p) * (jnp.sqrt(2 / jnp.pi) * jnp.exp(-(u**2) / 2) + u * erf(u / jnp.sqrt(2.0)))
    return distance * largest / gradient


def laziness_of_identical_neurons(
    activation: ActivationLike, scale: ArrayLike, width: int, a: ArrayLike, w: ArrayLike, x: ArrayLike, label: ArrayLike
) -> Scalar:
    """κ of p identical neurons (a, w) at one scalar input, exactly.

    κ = |αp a s − y| ‖[[0, s'x], [s'x, a s''x²]]‖ / (αp (s² + (a s'x)²)), s = σ(wx)

    >>> round(float(laziness_of_identical_neurons("tanh", 0.1, 20, 1.0, 0.0, 1.0, 1.0)), 12)
    0.5
    """
    sigma = named(activation)
    arguments.argument("scale", scale, arguments.POSITIVE, "the output scale α")
    width = arguments.whole("width", width, 1)
    _require_smooth(sigma)
    named_values = {"scale": scale, "a": a, "w": w, "x": x, "label": label}
    alpha, a, w, x, y = (arguments.argument(name, value, arguments.FINITE) for name, value in named_values.items())
    u = w * x
    s, slope = sigma.value(u), sigma.derivative(u) * x
    curvature = a * sigma.second_derivative(u) * x**2
    return (
        jnp.abs(alpha * width * a * s - y) * _block_norm(slope, curvature) / (alpha * width * (s**2 + (a * slope) ** 2))
    )
