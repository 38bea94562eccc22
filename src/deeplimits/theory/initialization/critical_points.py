r"""Tuning a deep network to criticality: variances at which signals neither grow nor vanish with depth."""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from deeplimits.errors import NotConverged, OutsideValidity
from deeplimits.models.activations import Activation, ActivationLike
from deeplimits.models.activations import activation as named
from deeplimits.numerics import roots
from deeplimits.theory.initialization import layer_maps

_GRID = np.logspace(-4, 4, 161)
_SMALLEST = 1e-9
_RESIDUAL = 1e-9
_BESIDE = 1e-30
"""So close to 0 derivatives are those at 0, from one side."""
_ROUNDING = 1e-12


class ZeroExpansion(NamedTuple):
    """K' = K + a K^(3/2) + a₁K² + … + a₂K³ + … and χ_⊥ = 1 + a K^(1/2) + b₁K + … at the critical point K* = 0."""

    a1: float
    a2: float
    b1: float
    bend: float = 0.0
    """a, the coefficient of K^(3/2), which is not zero where σ'' jumps at 0 (ELU, softsign)"""

    @property
    def stable(self) -> bool:
        """Whether K falls to zero: the sign of the first coefficient that is not zero."""
        return (self.bend or self.a1) < 0

    @property
    def perpendicular_exponent(self) -> float:
        """p_⊥: perpendicular perturbations decay as l^(−p_⊥).

        b₁/a₁ where K^(l) ~ −1/a₁l, with parallel ones as l^(−2); 2 where K^(l) ~ 4/a²l², with parallel ones as l^(−3).
        """
        return 2.0 if self.bend else self.b1 / self.a1


@dataclass(frozen=True)
class Criticality:
    """A critical initialization W_ij ~ N(0, C_w/fan-in), b_i ~ N(0, C_b)."""

    activation: str
    universality: Literal["scale-invariant", "K*=0", "half-stable"]
    kernel: float | None
    """K*, the variance of preactivations that depth preserves; None where any variance is."""
    weight_variance: float
    bias_variance: float
    parallel: float
    """χ_∥ = F'(K*), computed from its definition; 1 up to rounding."""
    perpendicular: float
    """χ_⊥ = C_w E σ'² at K*; 1 up to rounding."""
    expansion: ZeroExpansion | None = None
    """For the class K* = 0."""
    curvature: float | None = None
    """F''(K*), for the half-stable class: attracting from above if negative, from below if positive."""


def criticality(activation: ActivationLike) -> Criticality:
    """The critical initialization of an activation, its susceptibilities and its universality class.

    Setting     z^(l+1) = W σ(z^(l)) + b with W_ij ~ N(0, C_w/n), b_i ~ N(0, C_b), infinitely wide;
                K^(l+1) = F(K^(l)), F(K) = C_b + C_w E_K σ²
    Result      F(K*) = K*, χ_∥ = F'(K*) = 1 and χ_⊥ = C_w E_K* σ'² = 1; equivalently E_K*[σσ''] = 0,
                C_w = 1/E_K* σ'², C_b = K* − C_w E_K* σ² ≥ 0
                scale-invariant: σ = a₊u or a₋u: any K*, C_b = 0, C_w = 2/(a₊² + a₋²)
                K* = 0: σ(0) = 0, σ'(0) ≠ 0, stable if a₁ = σ₃/σ₁ + (3/4)(σ₂/σ₁)² < 0: C_b = 0, C_w = 1/σ'(0)²; with
                one-sided derivatives s₊, s₋, c₊, c₋ of first and second order at 0 (ELU, SELU, softsign)
                C_w = 2/(s₊² + s₋²), stable if a = √(2/π) C_w (s₊c₊ − s₋c₋) < 0, the coefficient of K^(3/2)
                half-stable: isolated K* > 0, as for GELU and SWISH
    Validity    σ continuous with finite E σ²; OutsideValidity is raised where there is no critical point (softplus,
                sigmoid, step), or only an unstable one (sinh), and says why
    References  roberts2022 Ch 5; poole2016; schoenholz2017

    >>> found = criticality("gelu")
    >>> found.universality, round(found.kernel, 6), round(found.weight_variance, 6), round(found.bias_variance, 6)
    ('half-stable', 3.561553, 1.983058, 0.172922)
    """
    sigma = named(activation)
    if not sigma.continuous:
        raise OutsideValidity(
            f"activation = {sigma.name} has no critical point: it jumps, so χ_⊥ is infinite at every K; take a "
            "continuous activation"
        )
    slopes = homogeneous_slopes(sigma)
    if slopes is not None:
        return _scale_invariant(sigma, *slopes)
    layer_maps.check(sigma, 1.0)
    at_zero = _expansion_at_zero(sigma)
    if at_zero is not None and at_zero[1].stable:
        c_w, expansion = at_zero
        chi = c_w * float(np.mean(np.square(_beside_zero(sigma.value, 1)[:, 1])))
        return Criticality(sigma.name, "K*=0", 0.0, c_w, 0.0, chi, chi, expansion=expansion)
    return _half_stable(sigma, None if at_zero is None else at_zero[1])


def _beside_zero(function: Callable, order: int) -> np.ndarray:
    """f, f', …, f^(order) on the two sides of 0, below and above, by repeated differentiation: an array of two rows."""

    def differentiate(inner):
        return lambda x: jax.jvp(inner, (x,), (jnp.ones_like(x),))[1]

    found = []
    for _ in range(order + 1):
        found.append(jnp.broadcast_to(jax.jit(function)(jnp.asarray([-_BESIDE, _BESIDE])), (2,)))
        function = differentiate(function)
    return np.stack(found, axis=1)


def _moments_at_zero(function: Callable, order: int) -> np.ndarray:
    """c_0 … c_order of E f(u) = Σ_j c_j K^(j/2), u ~ N(0, K), from the derivatives of f on the two sides of 0."""
    below, above = _beside_zero(function, order)
    # E u^j over u > 0 is K^(j/2) times (j − 1)!!/2 for even j and (j − 1)!!/√(2π) for odd j
    half = [math.prod(range(j - 1, 0, -2)) / (math.sqrt(2 * math.pi) if j % 2 else 2) for j in range(order + 1)]
    signs = (-1.0) ** np.arange(order + 1)
    found = (above + signs * below) * half / [math.factorial(j) for j in range(order + 1)]
    # Of a smooth f the odd powers cancel; what is left of them is rounding.
    size = np.max(np.abs(np.stack([above, below])))
    return np.where(np.abs(found) > _ROUNDING * size, found, 0.0)


class Slopes(NamedTuple):
    """Of a piecewise linear σ, right and left of zero."""

    positive: float
    negative: float


def homogeneous_slopes(activation: ActivationLike) -> Slopes | None:
    """a₊ and a₋ if σ(u) = a₊u for u > 0 and a₋u for u < 0."""
    sigma = named(activation)
    u = np.array([1.0, 1e-3, 0.3, 2.0, 7.0, 1e3])
    u = np.concatenate([u, -u, [0.0]])
    # Evaluated now, also while a prediction that asks is being traced; and in one program.
    with jax.ensure_compile_time_eval():
        values = np.asarray(_values(sigma, u))
    ratios = (values[:-1] / u[:-1]).reshape(2, -1)
    if values[-1] != 0 or not np.allclose(ratios, ratios[:, :1], rtol=1e-12, atol=0.0):
        return None
    return Slopes(float(ratios[0, 0]), float(ratios[1, 0]))


@functools.partial(jax.jit, static_argnums=0)
def _values(sigma: Activation, u: Float[Array, " points"]) -> Float[Array, " points"]:
    return jnp.broadcast_to(sigma.value(u), u.shape)


def _scale_invariant(sigma: Activation, positive: float, negative: float) -> Criticality:
    total = positive**2 + negative**2
    if total == 0:
        raise OutsideValidity(f"activation = {sigma.name} is zero everywhere and passes nothing on; take another one")
    c_w = 2 / total
    chi = layer_maps.susceptibilities(sigma, 1.0, weight_variance=c_w)
    return Criticality(sigma.name, "scale-invariant", None, c_w, 0.0, float(chi.parallel), float(chi.perpendicular))


def _expansion_at_zero(sigma: Activation) -> tuple[float, ZeroExpansion] | None:
    """C_w and the expansion at K = 0, if σ(0) = 0 and σ' is not zero on both sides of it."""
    if float(sigma.value(jnp.zeros(()))) != 0:
        return None
    squares = _moments_at_zero(lambda u: sigma.value(u) ** 2, 6)
    slope = jax.vmap(jax.grad(lambda u: jnp.reshape(sigma.value(u), ())))
    slopes = _moments_at_zero(lambda u: slope(u) ** 2, 2)
    if not (np.all(np.isfinite([*squares, *slopes])) and squares[2] > 0):
        return None
    c_w = float(1 / squares[2])
    bend, a1, _, a2 = (float(c_w * part) for part in squares[3:])
    return c_w, ZeroExpansion(a1, a2, float(c_w * slopes[2]), bend)


def _imbalance(sigma: Activation, kernel) -> np.ndarray:
    """(χ_∥ − χ_⊥)/χ_⊥, which is E[σσ'']/E σ'²."""
    perpendicular = np.asarray(layer_maps.slope_moment(sigma, kernel))
    parallel = np.asarray(layer_maps.first_derivative(sigma, kernel))
    # Where both overflow there is no ratio, and the search stops before.
    with np.errstate(invalid="ignore"):
        return (parallel - perpendicular) / np.maximum(perpendicular, 1e-300)


def _half_stable(sigma: Activation, unstable: ZeroExpansion | None) -> Criticality:
    values = _imbalance(sigma, _GRID)
    # Where the two susceptibilities agree to rounding there is no sign to speak of.
    seen = np.abs(values) > _SMALLEST
    grid, values = _GRID[seen], values[seen]
    refused = []
    for index in np.flatnonzero(values[:-1] * values[1:] < 0):
        low, high = np.log(grid[index : index + 2])
        kernel = float(np.exp(roots.on_host(lambda x: _imbalance(sigma, np.exp(x)), low, high)))
        c_w = 1 / float(layer_maps.slope_moment(sigma, kernel))
        c_b = kernel - c_w * float(layer_maps.second_moment(sigma, kernel))
        if c_b < 0:
            refused.append(f"at K = {kernel:.4g} it would need C_b = {c_b:.4g} < 0")
            continue
        chi = layer_maps.susceptibilities(sigma, kernel, weight_variance=c_w)
        residual = max(abs(float(chi.parallel) - 1), abs(float(chi.perpendicular) - 1))
        if residual > _RESIDUAL:
            raise NotConverged(f"the critical point of {sigma.name} near K = {kernel:.4g} has residual {residual:.2g}")
        curvature = c_w * float(layer_maps.second_derivative(sigma, kernel))
        return Criticality(
            sigma.name,
            "half-stable",
            kernel,
            c_w,
            c_b,
            float(chi.parallel),
            float(chi.perpendicular),
            curvature=curvature,
        )
    raise OutsideValidity(
        f"activation = {sigma.name} has no critical point: {_reason(sigma, values, refused, unstable)}"
    )


def _reason(sigma: Activation, values: np.ndarray, refused: list[str], unstable: ZeroExpansion | None) -> str:
    if refused:
        return "; ".join(refused)
    if unstable is not None:
        name, value = ("a", unstable.bend) if unstable.bend else ("a₁", unstable.a1)
        return f"K = 0 is one but unstable ({name} = {value:.4g} ≥ 0), and there is none at K > 0"
    value, slope, curvature = (
        float(function(jnp.zeros(()))) for function in (sigma.value, sigma.derivative, sigma.second_derivative)
    )
    side = "positive" if len(values) and values[0] > 0 else "negative"
    reason = f"E[σσ''] is {side} for all K between {_GRID[0]:g} and {_GRID[-1]:g}, so χ_∥ and χ_⊥ are never both one"
    if 0.0 not in sigma.kinks and slope != 0 and value * curvature == 0:
        reason += f", and at K = 0 it would need C_b = {-((value / slope) ** 2):.4g} < 0"
    return reason
