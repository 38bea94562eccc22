r"""Order and chaos: where deep networks forget the difference of two inputs, and where they amplify it."""

import functools
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array

from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.models.activations import Activation, ActivationLike
from deeplimits.models.activations import activation as named
from deeplimits.numerics import arguments, roots
from deeplimits.numerics.checks import converged, valid
from deeplimits.numerics.roots import bracketed
from deeplimits.numerics.shapes import Floats
from deeplimits.theory.initialization import layer_maps
from deeplimits.theory.initialization.critical_points import homogeneous_slopes

LEAST, MOST = 1e-10, 1e6
"""Without biases fixed points are looked for from the first on, below which they are taken to be zero; up to the
second, times one and the variances."""
SCANNED = 96
"""Variances at which F(K) − K is looked at before its zeros are sought."""
EDGE = 1e-9
"""χ_⊥ this close to 1 is the edge."""
KEPT = 1e-12
"""A scale-invariant network that multiplies the variance by 1 up to this keeps every variance."""


class Phase(NamedTuple):
    """Where a deep network with these variances stands."""

    name: Literal["ordered", "critical", "chaotic"]
    kernel: float | None
    """K*, the variance of preactivations at great depth; None where every variance is kept (ReLU at C_w = 2)."""
    parallel: float
    perpendicular: float


class EdgePoint(NamedTuple):
    """A point of the edge of chaos, χ_⊥ = 1."""

    kernel: Floats
    weight_variance: Floats
    bias_variance: Floats


def fixed_point(activation: ActivationLike, weight_variance: ArrayLike, bias_variance: ArrayLike) -> Floats:
    """The stable fixed point K* of K ← C_b + C_w E_K σ², found by bisection; differentiable in both variances.

    Where there are several it is the smallest, to which small variances lead; without biases that is 0 where it
    attracts, though large variances may grow.
    Raises `OutsideValidity` where the variance grows without bound or every variance is kept, and `NotConverged`
    where the iteration would not settle at the crossing found (F' < −1).

    >>> round(float(fixed_point("tanh", 1.5, 0.05)), 12)
    0.418037200533
    """
    sigma = named(activation)
    layer_maps.check_variances(weight_variance=weight_variance, bias_variance=bias_variance)
    c_w, c_b = jnp.asarray(weight_variance, float), jnp.asarray(bias_variance, float)
    gain = scale_gain(sigma)
    if gain is not None:
        return _scale_invariant(sigma, gain, c_w, c_b)
    kernel, grows, slope = _solve(sigma, c_w, c_b)
    kernel = _settled(sigma, c_w, kernel, grows, slope)
    layer_maps.check(sigma, kernel)
    return kernel


def scale_gain(activation: ActivationLike) -> float | None:
    """E σ²/K of an activation for which it does not depend on K, (a₊² + a₋²)/2.

    >>> scale_gain("relu"), scale_gain("tanh")
    (0.5, None)
    """
    slopes = homogeneous_slopes(named(activation))
    return None if slopes is None else (slopes[0] ** 2 + slopes[1] ** 2) / 2


def _scale_invariant(sigma: Activation, gain: float, c_w: Floats, c_b: Floats) -> Floats:
    """K* = C_b/(1 − χ) of K ← C_b + χK"""
    chi = c_w * gain
    kept = jnp.abs(chi - 1) <= KEPT
    chi = valid(
        chi,
        ~kept | (c_b > 0),
        f"{sigma.name} networks without biases keep every variance at this weight variance, so there is no single "
        "fixed point; take any variance, or another weight variance",
    )
    below = valid(
        1 - chi,
        ~kept & (chi < 1),
        f"the variance of {sigma.name} networks grows without bound with depth, so there is no fixed point; take a "
        "smaller weight variance",
        lambda: f" than weight_variance = {1 / gain:g}",
    )
    return c_b / below


def _settled(sigma: Activation, weight_variance: Floats, kernel: Floats, grows: Array, slope: Floats) -> Floats:
    """The fixed point, or the reason why there is none."""
    kernel = valid(
        kernel,
        ~grows,
        f"the variance of {sigma.name} networks grows without bound with depth (it grows still where it is {MOST:g}), "
        "so there is no fixed point; take a smaller weight variance",
        lambda: f" than weight_variance = {float(weight_variance):g}",
    )
    return converged(
        kernel,
        abs(slope) <= 1 + 1e-6,
        f"the variance of {sigma.name} networks does not settle at its fixed point, where F' < −1; take a smaller "
        "weight variance",
    )


@functools.partial(jax.jit, static_argnums=0)
def _solve(sigma: Activation, c_w, c_b):
    def excess(log_kernel, c_w, c_b):
        kernel = jnp.exp(log_kernel)
        return layer_maps.layer_map(sigma, kernel, c_w, c_b) - kernel

    sentence = f"the variance that deep {sigma.name} networks keep was not found"
    frozen = jax.lax.stop_gradient((c_w, c_b))
    # K* is C_b at least; what it is at most grows with both variances.
    low = jnp.log(jnp.where(frozen[1] > 0, frozen[1] / 2, LEAST))
    high = jnp.log(MOST * (1 + frozen[0] + frozen[1]))
    grid = low + (high - low) * jnp.linspace(0.0, 1.0, SCANNED).reshape(-1, *[1] * low.ndim)
    # The first crossing from above to below, to which the iteration leads from small variances; an F that overflows is
    # above. Without one the variance grows, or vanishes where it falls from the least: what large ones do is another
    # matter.
    above = ~(excess(grid, *frozen) <= 0)
    down = above[:-1] & ~above[1:]
    first = jnp.argmax(down, axis=0)[None]
    crosses = jnp.any(down, axis=0) & above[0]
    ends = (jnp.take_along_axis(grid, first + after, axis=0)[0] for after in (0, 1))
    found = jnp.exp(bracketed(excess, *ends, *frozen, where=crosses, optional=True, sentence=sentence))
    slope = c_w * layer_maps.first_derivative(sigma, found)
    # One Newton step with a slope from Stein's identity, which knows jumps of σ: the derivatives by C_w and C_b.
    descent = jax.lax.stop_gradient(1 - slope)
    step = (layer_maps.layer_map(sigma, found, c_w, c_b) - found) / jnp.where(jnp.abs(descent) > 1e-6, descent, 1.0)
    return jnp.where(crosses, found + step, 0.0), ~crosses & above[0] & above[-1], jnp.where(crosses, slope, 0.0)


def phase(activation: ActivationLike, weight_variance: float, bias_variance: float) -> Phase:
    """Ordered, critical or chaotic: whether χ_⊥ = C_w E σ'² at K* is below, at or above one.

    >>> phase("tanh", 2.5, 0.05).name, phase("tanh", 1.5, 0.05).name
    ('chaotic', 'ordered')
    >>> phase("relu", 2.0, 0.0)
    Phase(name='critical', kernel=None, parallel=1.0, perpendicular=1.0)
    """
    sigma = named(activation)
    for name, value in (("weight_variance", weight_variance), ("bias_variance", bias_variance)):
        arguments.number(name, value, arguments.FINITE)
    layer_maps.check_variances(weight_variance=weight_variance, bias_variance=bias_variance)
    # NumPy arrays, because a JAX array of a number of another type is one more program to compile.
    c_w, c_b = np.asarray(weight_variance, float), np.asarray(bias_variance, float)
    gain = scale_gain(sigma)
    if gain is not None:
        chi = float(c_w) * gain
        kept = abs(chi - 1) <= KEPT and c_b == 0
        kernel = None if kept else float(_scale_invariant(sigma, gain, jnp.asarray(c_w), jnp.asarray(c_b)))
        return Phase("critical" if kept else "ordered", kernel, chi, chi)
    layer_maps.check(sigma, np.array([0.0, 1.0]))
    found: Any = _stand(sigma, c_w, c_b)
    kernel, grows, slope, *chi = (np.asarray(number) for number in found)
    numbers: Any = (c_w, kernel, grows, slope)
    kernel = float(_settled(sigma, *numbers))
    layer_maps.check(sigma, kernel)
    parallel, perpendicular = map(float, chi)
    if abs(perpendicular - 1) <= EDGE:
        return Phase("critical", kernel, parallel, perpendicular)
    return Phase("chaotic" if perpendicular > 1 else "ordered", kernel, parallel, perpendicular)


def _numbers(sigma: Activation, c_w, c_b):
    kernel, grows, slope = _solve(sigma, c_w, c_b)
    return kernel, grows, slope, *layer_maps.susceptibilities(sigma, kernel, weight_variance=c_w)


# It runs once and is called from the host only: compiled with little effort.
_stand = jax.jit(_numbers, static_argnums=0, compiler_options={"xla_backend_optimization_level": 0})


def edge_of_chaos(activation: ActivationLike, kernel: ArrayLike) -> EdgePoint:
    """The edge of chaos, parametrized by K*: C_w = 1/E_K* σ'², C_b = K* − C_w E_K* σ². No equation to solve.

    Where the bias variance comes out negative no network has that K* at the edge.

    >>> [round(float(part), 6) for part in edge_of_chaos("tanh", 0.57004788164076)]
    [0.570048, 1.760955, 0.05]
    """
    sigma = named(activation)
    layer_maps.check_variances(kernel=kernel)
    kernel = jnp.asarray(kernel, float)
    c_w = 1 / layer_maps.slope_moment(sigma, kernel)
    return EdgePoint(kernel, c_w, kernel - c_w * layer_maps.second_moment(sigma, kernel))


def critical_weight_variance(activation: ActivationLike, bias_variance: float) -> EdgePoint:
    """The point of the edge of chaos with a given bias variance: the phase boundary in the plane of C_w and C_b.

    >>> round(float(critical_weight_variance("tanh", 0.3).weight_variance), 10)
    2.5051271897
    """
    sigma = named(activation)
    layer_maps.check_variances(bias_variance=bias_variance)
    if bias_variance == 0:
        point = edge_of_chaos(sigma, 0.0)
        if float(point.bias_variance) == 0 and np.isfinite(float(point.weight_variance)):
            return point
    grid = np.logspace(-6, 4, 201)
    miss = np.asarray(edge_of_chaos(sigma, grid).bias_variance) - bias_variance
    crossings = np.flatnonzero(miss[:-1] * miss[1:] <= 0)
    if not len(crossings):
        raise OutsideValidity(
            f"bias_variance = {bias_variance:g}: the edge of chaos of {sigma.name} has no such point with K* between "
            f"{grid[0]:g} and {grid[-1]:g}; its bias variances lie between {miss.min() + bias_variance:.3g} and "
            f"{miss.max() + bias_variance:.3g} there"
        )
    if len(crossings) > 1:
        raise ParameterError(
            f"bias_variance = {bias_variance:g}: the edge of chaos of {sigma.name} has {len(crossings)} points with "
            "it; take edge_of_chaos, which is parametrized by K*"
        )
    low, high = np.log(grid[crossings[0] : crossings[0] + 2])
    found = roots.on_host(
        lambda x: np.asarray(edge_of_chaos(sigma, np.exp(x)).bias_variance) - bias_variance, low, high
    )
    return edge_of_chaos(sigma, float(np.exp(found)))
