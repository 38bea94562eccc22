r"""Learning rates that width and depth allow, from the infinitely wide tangent kernel."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.errors import ParameterError
from deeplimits.models.activations import Activation, ActivationLike
from deeplimits.models.activations import activation as named
from deeplimits.numerics.arguments import array, known, whole
from deeplimits.numerics.checks import valid
from deeplimits.numerics.shapes import Floats
from deeplimits.theory.gaussian.dual_activations import closed_form
from deeplimits.theory.gaussian.duals.abstract_dual import Dual
from deeplimits.theory.gaussian.duals.numerical import Quadrature, Series, numerical_dual
from deeplimits.theory.gaussian.pairs import Pair, pair
from deeplimits.theory.initialization import layer_maps
from deeplimits.theory.initialization.critical_points import Criticality
from deeplimits.theory.kernels.positive import modes

Matrices = tuple[Float[Array, "layers m m"], Float[Array, "layers m m"]]


def tangent_kernels(
    activation: ActivationLike,
    first: ArrayLike,
    weight_variance: ArrayLike,
    bias_variance: ArrayLike,
    weight_rates: Any,
    bias_rates: Any,
) -> Matrices:
    """K^(l) and Θ^(l), l = 1 … L+1, where each group of parameters has its own learning rate.

    `first` is the Gram matrix x_a·x_b/n₀ of m inputs. `weight_rates` and `bias_rates` hold λ_W^(l) and λ_b^(l),
    l = 1 … L+1: biases learn at rate ηλ_b^(l), weights at ηλ_W^(l)/n_(l−1).

    Setting     z^(1) = W^(1)x + b^(1), z^(l+1) = W^(l+1)σ(z^(l)) + b^(l+1), W_ij ~ N(0, C_w/n_(l−1)), b_i ~ N(0, C_b)
    Result      Θ^(1) = λ_b + λ_W x·x'/n₀, Θ^(l+1) = λ_b^(l+1) + λ_W^(l+1) E σσ + C_w E σ'σ' Θ^(l);
                gradient descent on ‖z − y‖²/2m is stable for η < 2m/λ_max(Θ^(L+1))
                ReLU at C_w = 2, λ_b = 0, λ_W = 1: Θ^(l)(x, x) = l|x|²/n₀, so that η must fall like 1/L
    Validity    infinite width; in plain learning rates η_W = O(1/n), η_b = O(1)
    References  jacot2018; roberts2022 Ch 9

    >>> kernels, tangents = tangent_kernels("relu", [[1.0]], 2.0, 0.0, [1.0] * 10, [0.0] * 10)
    >>> round(float(tangents[-1, 0, 0]), 12)
    10.0
    """
    sigma = named(activation)
    layer_maps.check_variances(
        weight_variance=weight_variance, bias_variance=bias_variance, weight_rates=weight_rates, bias_rates=bias_rates
    )
    modes(first, name="first")
    gram = jnp.asarray(first, float)
    weight_rates, bias_rates = jnp.asarray(weight_rates, float), jnp.asarray(bias_rates, float)
    if weight_rates.ndim != 1 or weight_rates.shape != bias_rates.shape or not weight_rates.size:
        raise ParameterError("weight_rates and bias_rates must be lists of one length, a rate for each weight matrix")
    c_w, c_b = jnp.asarray(weight_variance, float), jnp.asarray(bias_variance, float)
    kernel, tangent = c_b + c_w * gram, bias_rates[0] + weight_rates[0] * gram
    kernels, tangents = [kernel], [tangent]
    for layer in range(1, weight_rates.shape[0]):
        value, slope = _pushed(_dual(sigma, jnp.diagonal(kernel)), kernel)
        tangent = bias_rates[layer] + weight_rates[layer] * value + c_w * slope * tangent
        kernel = c_b + c_w * value
        kernels.append(kernel)
        tangents.append(tangent)
    return jnp.stack(kernels), jnp.stack(tangents)


@layer_maps.compiled
def _pushed(dual: Dual, kernel: Floats) -> tuple[Floats, Floats]:
    """E σσ and E σ'σ' over all pairs of a kernel matrix, exactly on the diagonal."""
    variances = jnp.diagonal(kernel)
    where = pair(variances[:, None], variances[None, :], kernel)
    # The diagonal is correlation one, whatever rounding did to it.
    same = jnp.eye(kernel.shape[0], dtype=bool)
    where = Pair(
        jnp.broadcast_to(jnp.sqrt(jnp.where(variances > 0, variances, 0.0))[:, None], kernel.shape),
        jnp.broadcast_to(jnp.sqrt(jnp.where(variances > 0, variances, 0.0))[None, :], kernel.shape),
        jnp.where(same, 0.0, where.gap),
        jnp.where(same, 2.0, where.cogap),
    )
    return dual.value(where), dual.slope(where)


def _dual(sigma: Activation, variances: Floats) -> Dual:
    found = closed_form(sigma)
    if found is not None:
        return found
    if known(variances):
        return numerical_dual(sigma, np.asarray(variances))
    return Series(sigma, 160, 16.0) if sigma.smooth else Quadrature(sigma)


def largest_stable_rate(tangent: ArrayLike) -> Floats:
    """2m/λ_max(Θ): gradient descent on ‖z − y‖²/2m over m inputs converges below it, diverges above it.

    >>> import jax.numpy as jnp
    >>> float(largest_stable_rate(jnp.diag(jnp.array([1.0, 4.0]))))
    1.0
    """
    tangent = array("tangent", tangent, ("m", "m"), why="the square matrix of a tangent kernel")
    largest = jnp.linalg.eigvalsh(tangent)[-1]
    sentence = "the tangent kernel is zero: nothing is learned, and every learning rate is stable"
    return 2 * tangent.shape[0] / valid(largest, largest > 0, sentence)


class DepthRates(NamedTuple):
    """Learning rates of weights and biases, layer by layer."""

    weights: np.ndarray
    biases: np.ndarray


def depth_rates(found: Criticality, depth: int) -> DepthRates:
    """Rates λ_W^(l) and λ_b^(l), l = 1 … L+1, with which Θ stays of order one at every depth L of a critical network.

    Scale-invariant and half-stable activations: 1/L each. K* = 0 class, with p = p_⊥: λ_b ∝ l^(−p) L^(p−1) and
    λ_W ∝ (L/l)^(p−1); for tanh (p = 1) λ_b = 1/l, λ_W = 1.

    >>> from deeplimits.theory.initialization.critical_points import criticality
    >>> depth_rates(criticality("tanh"), 3).biases.round(3).tolist()
    [1.0, 0.5, 0.333, 0.25]
    """
    whole("depth", depth, 1, "hidden layers")
    layer = np.arange(1, depth + 2, dtype=float)
    if found.expansion is None:
        return DepthRates(np.full(depth + 1, 1 / depth), np.full(depth + 1, 1 / depth))
    p = found.expansion.perpendicular_exponent
    return DepthRates((depth / layer) ** (p - 1), layer ** (-p) * float(depth) ** (p - 1))
