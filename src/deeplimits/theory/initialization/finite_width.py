r"""Fluctuations at finite width: the fourth cumulant of a neuron, to leading order and exactly where it is known."""

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array

from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.models.activations import ActivationLike, from_function
from deeplimits.models.activations import activation as named
from deeplimits.numerics.arguments import FINITE, Allowed, argument, array, whole
from deeplimits.numerics.arguments import function as callable_
from deeplimits.numerics.checks import valid
from deeplimits.numerics.shapes import Floats
from deeplimits.theory.initialization import layer_maps

_LAYER = Allowed(lambda x: (x >= 1) & (x == np.round(x)) & np.isfinite(x), "a whole number, at least 1")


def kernel_path(
    activation: ActivationLike,
    kernel: ArrayLike,
    weight_variance: ArrayLike,
    bias_variance: ArrayLike,
    layers: int,
) -> Floats:
    """K^(1) … K^(layers) of K^(l+1) = C_b + C_w E σ², from K^(1) = `kernel`.

    >>> [round(float(k), 12) for k in kernel_path("tanh", 1.0, 1.0, 0.0, 3)]
    [1.0, 0.394294490398, 0.236450410499]
    """
    sigma = named(activation)
    layer_maps.check_variances(kernel=kernel, weight_variance=weight_variance, bias_variance=bias_variance)
    start = jnp.asarray(kernel, float)

    def advance(kernel, _):
        following = layer_maps.layer_map(sigma, kernel, weight_variance, bias_variance)
        return following, following

    _, path = jax.lax.scan(advance, start, length=whole("layers", layers, 1) - 1)
    found = jnp.concatenate([start[None], path])
    layer_maps.check(sigma, found[:-1])
    return valid(
        found,
        jnp.isfinite(found),
        f"the variance of {sigma.name} networks overflows within {layers} layers; take fewer, or smaller variances",
    )


def linear_kernel(kernel: ArrayLike, weight_variance: ArrayLike, bias_variance: ArrayLike, layer: ArrayLike) -> Floats:
    """K^(l) of a deep linear network: C_b(1 + C_w + … + C_w^(l−2)) + C_w^(l−1) K^(1).

    >>> float(linear_kernel(2.0, 0.5, 1.0, 4))
    2.0
    """
    layer_maps.check_variances(weight_variance=weight_variance, bias_variance=bias_variance)
    kernel, c_w, c_b = (
        jnp.asarray(v, float) for v in (argument("kernel", kernel, FINITE), weight_variance, bias_variance)
    )
    steps = argument("layer", layer, _LAYER) - 1
    # (C_w^s − 1)/(C_w − 1) = expm1(s ln(1 + e))/e with e = C_w − 1, which rounding leaves exact near 1
    away = c_w != 1
    ratio = jnp.where(away, c_w - 1, 1.0)
    growth = jnp.expm1(steps * jnp.log1p(jnp.where(c_w > 0, c_w - 1, 0.0)))
    geometric = jnp.where(away, growth / ratio, steps)
    # Of the weights 0 alone nothing of the first layer is left, and one C_b.
    geometric = jnp.where(c_w > 0, geometric, jnp.minimum(steps, 1.0))
    return c_b * geometric + c_w**steps * kernel


def vertex_path(
    activation: ActivationLike,
    kernel: ArrayLike,
    weight_variance: ArrayLike,
    bias_variance: ArrayLike,
    layers: int,
    *,
    width_ratios: Sequence[float] | None = None,
) -> Floats:
    """V^(1) … V^(layers), the leading fluctuation of the kernel: Var K̂^(l) = V^(l)/n_(l−1) + O(1/n²).

    V^(1) = 0, V^(l+1) = C_w² Var σ² + (n_l/n_(l−1)) χ_∥² V^(l), with expectations at K^(l); `width_ratios` are the
    n_l/n_(l−1) for l = 2, 3, …, all one by default.

    >>> [round(float(v), 12) for v in vertex_path("tanh", 1.0, 1.0, 0.0, 3)]
    [0.0, 0.097523738086, 0.067807493892]
    """
    sigma, layers = named(activation), whole("layers", layers, 1)
    ratios = [1.0] * layers if width_ratios is None else list(width_ratios)
    if width_ratios is not None and (len(ratios) < layers - 2 or any(not ratio > 0 for ratio in ratios)):
        raise ParameterError(
            f"width_ratios = {width_ratios} is not allowed; give a positive ratio n_l/n_(l−1) for each of {layers - 2} "
            "layers"
        )
    c_w = jnp.asarray(weight_variance, float)
    kernels = kernel_path(sigma, kernel, weight_variance, bias_variance, layers)[:-1]
    fourth = layer_maps.along(lambda u, z: sigma.value(u) ** 4, sigma, kernels)
    source = c_w**2 * (fourth - layer_maps.second_moment(sigma, kernels) ** 2)
    parallel = c_w * layer_maps.first_derivative(sigma, kernels)
    # Before the first hidden layer nothing fluctuates, whatever its width.
    passed = jnp.asarray([0.0, *ratios][: layers - 1]) * parallel**2

    def advance(vertex, layer):
        source, passed = layer
        following = source + passed * vertex
        return following, following

    _, path = jax.lax.scan(advance, jnp.zeros(()), (source, passed))
    return jnp.concatenate([jnp.zeros(1), path])


def collective_variance(
    function: Callable[[Array], Array],
    activation: ActivationLike,
    kernel: ArrayLike,
    weight_variance: ArrayLike,
    bias_variance: ArrayLike,
    layers: int,
    *,
    width_ratios: Sequence[float] | None = None,
    kinks: tuple[float, ...] = (),
) -> Floats:
    """lim n_l Var O_f at layers l = 1 … `layers`, of the collective observable O_f = (1/n_l) Σ_i f(z_i^(l)) of any f.

    Setting     K^(1) = `kernel`; n_l neurons in layer l, `width_ratios` n_l/n_(l−1) for l = 2, 3, …, all one by default
    Result      given the layer before, neurons are independent with variance K̂, and K̂ fluctuates by V/n_(l−1):
                n_l Var O_f = Var_K f(z) + (n_l/n_(l−1)) (d E_K f/dK)² V^(l); at l = 1, where V = 0, exactly Var f
    Validity    leading order in 1/n beyond the first layer; name the points where f or f' jumps in `kinks`
    References  roberts2022 Ch 4

    >>> import jax.numpy as jnp
    >>> [round(float(v), 10) for v in collective_variance(lambda z: z**2, "identity", 1.0, 1.0, 0.0, 3)]
    [2.0, 4.0, 6.0]
    """
    sigma = named(activation)
    layers = whole("layers", layers, 1)
    kernels = kernel_path(sigma, kernel, weight_variance, bias_variance, layers)
    vertices = vertex_path(sigma, kernel, weight_variance, bias_variance, layers, width_ratios=width_ratios)
    own = from_function(callable_("function", function), kinks, "observable")
    mean = layer_maps.along(lambda u, z: own.value(u), own, kernels)
    spread = layer_maps.along(lambda u, z: own.value(u) ** 2, own, kernels) - mean**2
    # d E f/dK = E f(z)(z² − 1)/2K, z standard
    bent = layer_maps.along(lambda u, z: own.value(u) * (z**2 - 1) / 2, own, kernels)
    slope = bent / jnp.where(kernels > 0, kernels, 1.0)
    ratios = [1.0] * layers if width_ratios is None else [1.0, *width_ratios, *[1.0] * layers]
    return spread + jnp.asarray(ratios[:layers]) * slope**2 * vertices


def kurtosis_ratio(activation: ActivationLike, hidden: Sequence[int] | ArrayLike) -> Floats:
    """E z⁴/(3(E z²)²) of an output of a network without biases at its critical weight variance, exactly.

    Setting     hidden widths n_1 … n_L, C_b = 0, a scale-invariant activation (slopes a₊, a₋), C_w = 2/(a₊² + a₋²)
    Result      Π_l (1 + κ/n_l), κ = 6(a₊⁴ + a₋⁴)/(a₊² + a₋²)² − 1: 2 for linear, 5 for ReLU networks; the excess is
                governed by Σ 1/n_l, the ratio of depth to width
    Validity    Gaussian weights; every finite width
    References  hanin2018; roberts2022 Ch 4

    >>> round(float(kurtosis_ratio("relu", [10, 20])), 12), round(float(kurtosis_ratio("identity", [10, 10, 10])), 12)
    (1.875, 1.728)
    """
    sigma = named(activation)
    from deeplimits.theory.initialization.critical_points import homogeneous_slopes

    slopes = homogeneous_slopes(sigma)
    if slopes is None:
        raise OutsideValidity(
            f"activation = {sigma.name} is not scale-invariant, so its kurtosis has no closed form; take vertex_path"
        )
    widths = np.asarray(hidden)
    if not widths.size or np.any(widths < 1):
        raise ParameterError(f"hidden = {hidden} is not allowed; give at least one width, each at least 1")
    p, q = slopes
    spread = 6 * (p**4 + q**4) / (p**2 + q**2) ** 2 - 1
    return jnp.prod(1 + spread / jnp.asarray(widths, float))


def preactivation_variance(x: ArrayLike, weight_variance: ArrayLike, bias_variance: ArrayLike) -> Floats:
    """Var z = C_b + C_w |x|²/n₀ of one neuron with fan-in scaling, w_j ~ N(0, C_w/n₀), b ~ N(0, C_b); z is Gaussian.

    >>> float(preactivation_variance([1.0, 2.0, 0.0, 1.0], 2.0, 0.5))
    3.5
    """
    x = array("x", x, ("n",), why="a vector with at least one entry")
    layer_maps.check_variances(weight_variance=weight_variance, bias_variance=bias_variance)
    return jnp.asarray(bias_variance, float) + jnp.asarray(weight_variance, float) * jnp.mean(x**2)
