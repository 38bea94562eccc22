r"""How the correlation of two inputs changes from layer to layer, and how deep a signal gets.

Correlations are carried as gaps 1 − c, which keep their digits where inputs nearly coincide.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from deeplimits.models.activations import Activation, ActivationLike
from deeplimits.models.activations import activation as named
from deeplimits.numerics.arguments import argument, between, known, whole
from deeplimits.numerics.checks import converged, valid
from deeplimits.numerics.roots import bracketed
from deeplimits.numerics.shapes import Floats
from deeplimits.theory.initialization import layer_maps, losses, phases


class DepthScales(NamedTuple):
    """How many layers a deviation from the fixed point survives: it falls like e^(−l/ξ)."""

    kernel: float | None
    """K*; None where every variance is kept."""
    correlation_gap: float
    """1 − c* of the stable fixed point c* of the correlation; 0 in the ordered phase."""
    kernel_scale: float
    """ξ_q = −1/ln χ_∥"""
    correlation_scale: float
    """ξ_c = −1/ln χ_c with χ_c = C_w E σ'(z₁)σ'(z₂) at c*; infinite at the edge of chaos."""


def correlation_map(
    activation: ActivationLike,
    gap: ArrayLike,
    kernel: ArrayLike,
    weight_variance: ArrayLike,
    bias_variance: ArrayLike,
) -> Floats:
    """1 − c of two preactivations one layer on, from `gap` = 1 − c now; both have variance `kernel` now.

    Setting     z' = Wσ(z) + b, infinitely wide, W_ij ~ N(0, C_w/n), b_i ~ N(0, C_b); two inputs, equal norms
    Result      1 − c' = C_w (E σ(z₁)² − E σ(z₁)σ(z₂))/(C_b + C_w E σ²), with full relative accuracy down to
                coinciding inputs; ReLU at C_w = 2, C_b = 0: c' = (√(1−c²) + c(π − arccos c))/π and
                1 − c_l ~ 9π²/2l², for leaky slope a times ((1 + a²)/(1 − a)²)²
    Validity    0 ≤ gap ≤ 2
    References  poole2016; cho2009; roberts2022 Ch 5

    >>> round(1 - float(correlation_map("relu", 1.0, 1.0, 2.0, 0.0)), 12)
    0.318309886184
    """
    sigma = named(activation)
    layer_maps.check_variances(kernel=kernel, weight_variance=weight_variance, bias_variance=bias_variance)
    gap = argument("gap", gap, between(0, 2), "it is 1 − c")
    gap, kernel = jnp.broadcast_arrays(gap, jnp.asarray(kernel, float))
    layer_maps.check(sigma, kernel)
    lost = losses.lost(sigma, gap, kernel)
    c_w = jnp.asarray(weight_variance, float)
    following = layer_maps.layer_map(sigma, kernel, c_w, bias_variance)
    if known(following):
        _has_variance(following)
    return c_w * lost / following


def _has_variance(kernels: Floats) -> None:
    """Refuse variances that are known to be zero; a search may pass them by."""
    valid(
        kernels,
        kernels > 0,
        "a variance is zero, and nothing has a correlation; take a positive kernel or bias_variance",
    )


class CorrelationPath(NamedTuple):
    """1 − c and K, layer by layer."""

    gaps: Floats
    kernels: Floats


def correlation_path(
    activation: ActivationLike,
    gap: ArrayLike,
    kernel: ArrayLike,
    weight_variance: ArrayLike,
    bias_variance: ArrayLike,
    layers: int,
) -> CorrelationPath:
    """1 − c and K at layers 0 … `layers`, from `gap` and `kernel` at layer 0, for two inputs of equal norm.

    >>> gaps, kernels = correlation_path("relu", 1.0, 1.0, 2.0, 0.0, 5)
    >>> [round(1 - float(gap), 6) for gap in gaps[1:3]], round(float(kernels[-1]), 12)
    ([0.31831, 0.493731], 1.0)
    """
    sigma = named(activation)
    layers = whole("layers", layers)

    def advance(state, _):
        gap, kernel = state
        following = (
            correlation_map(sigma, gap, kernel, weight_variance, bias_variance),
            layer_maps.layer_map(sigma, kernel, weight_variance, bias_variance),
        )
        return following, following

    gap, kernel = argument("gap", gap, between(0, 2), "it is 1 − c"), jnp.asarray(kernel, float)
    # Where the variances of several networks are given, every state has their shape.
    shape = jnp.broadcast_shapes(gap.shape, kernel.shape, jnp.shape(weight_variance), jnp.shape(bias_variance))
    start = jnp.broadcast_to(gap, shape), jnp.broadcast_to(kernel, shape)
    _, path = jax.lax.scan(advance, start, length=layers)
    gaps, kernels = (jnp.concatenate([first[None], rest]) for first, rest in zip(start, path, strict=True))
    layer_maps.check(sigma, kernels)
    if known(kernels):
        _has_variance(kernels)
    return CorrelationPath(gaps, kernels)


def correlation_fixed_point(activation: ActivationLike, weight_variance: ArrayLike, bias_variance: ArrayLike) -> Floats:
    """1 − c* of the stable fixed point of the correlation: 0 in the ordered phase, positive in the chaotic one.

    >>> round(1 - float(correlation_fixed_point("tanh", 2.5, 0.05)), 10)
    0.4468042323
    """
    sigma = named(activation)
    kernel = phases.fixed_point(sigma, weight_variance, bias_variance)
    return _stable_gap(sigma, kernel, jnp.asarray(weight_variance, float), jnp.asarray(bias_variance, float))


@layer_maps.compiled
def _stable_gap(sigma: Activation, kernel: Floats, weight_variance: Floats, bias_variance: Floats) -> Floats:
    chi = layer_maps.susceptibilities(sigma, kernel, weight_variance=weight_variance)

    def growth(log_gap, kernel, weight_variance, bias_variance):
        # c = 1 is always a fixed point; divided by the gap, it is one no more.
        gap = jnp.exp(log_gap)
        return correlation_map(sigma, gap, kernel, weight_variance, bias_variance) / gap - 1

    low, high = jnp.log(jnp.asarray(1e-14)), jnp.log(jnp.asarray(1.5))
    parameters = kernel, weight_variance, bias_variance
    sentence = f"the correlation that deep {sigma.name} networks reach was not found"
    chaotic = chi.perpendicular > 1
    root = bracketed(growth, low, high, *parameters, where=chaotic, optional=True, sentence=sentence)
    # Where nothing but rounding tells χ_⊥ from 1 there is no zero, and the fixed point is c = 1.
    gap = jnp.where(root > low, jnp.exp(root), 0.0)
    return converged(gap, ~chaotic | (growth(high, *parameters) < 0), sentence)


def correlation_response(
    activation: ActivationLike, gap: ArrayLike, kernel: ArrayLike, weight_variance: ArrayLike
) -> Floats:
    """χ_c = C_w E σ'(z₁)σ'(z₂), by which a small change of the covariance is multiplied at correlation 1 − gap."""
    sigma = named(activation)
    layer_maps.check_variances(kernel=kernel, weight_variance=weight_variance)
    gap = argument("gap", gap, between(0, 2), "it is 1 − c")
    gap, kernel = jnp.broadcast_arrays(gap, jnp.asarray(kernel, float))
    c_w = jnp.asarray(weight_variance, float)
    # Where σ jumps coinciding inputs have an infinite response, but of no weights there is none.
    return jnp.where(c_w > 0, c_w * losses.kept_slope(sigma, gap, kernel), 0.0)


def depth_scales(activation: ActivationLike, weight_variance: float, bias_variance: float) -> DepthScales:
    """The depths to which norms and correlations are remembered.

    Setting     a deep network at its fixed point K*, c*; χ_∥ = F'(K*), χ_c = C_w E σ'(z₁)σ'(z₂) at c*
    Result      |K − K*| ∝ e^(−l/ξ_q), ξ_q = −1/ln|χ_∥|; |c − c*| ∝ e^(−l/ξ_c), ξ_c = −1/ln χ_c, which diverges at the
                edge of chaos χ_⊥ = 1
    Validity    continuous σ; a stable fixed point of the variance
    References  schoenholz2017; poole2016

    >>> scales = depth_scales("tanh", 2.5, 0.05)
    >>> round(1 - scales.correlation_gap, 8), round(scales.correlation_scale, 8)
    (0.44680423, 11.79559752)
    """
    sigma = named(activation)
    stands = phases.phase(sigma, weight_variance, bias_variance)
    if stands.kernel is None:
        # Every correlation tends to 1 like a power of the depth.
        return DepthScales(None, 0.0, float("inf"), float("inf"))
    kernel = stands.kernel
    gap = correlation_fixed_point(sigma, weight_variance, bias_variance)
    parallel = stands.parallel
    response = float(correlation_response(sigma, gap, kernel, weight_variance))
    return DepthScales(kernel, float(gap), _scale(abs(parallel)), _scale(response))


def _scale(factor: float) -> float:
    if factor <= 0:
        return 0.0
    return float("inf") if abs(factor - 1) <= phases.EDGE else -1 / float(np.log(factor))
