r"""Kernels of implicit (deep equilibrium) networks on a mixture, and explicit networks with the same kernels.

z = φ̃(σ_a A z + σ_b B x)/√m at a fixed point, x of entries of order one over √p, A and B of independent standard
Gaussian entries, m → ∞; φ̃ = φ − E φ(τξ), τ² the variance of a pre-activation.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array
from scipy import optimize

from deeplimits.errors import NotConverged, OutsideValidity
from deeplimits.models.activations import Activation, ActivationLike, polynomial
from deeplimits.numerics.arguments import NOT_NEGATIVE, POSITIVE, number, of_kind
from deeplimits.numerics.checks import converged, valid
from deeplimits.numerics.quasi_random import gaussian_points
from deeplimits.numerics.shapes import Floats
from deeplimits.theory.gaussian import moments
from deeplimits.theory.mixtures.activation_moments import _moments
from deeplimits.theory.mixtures.layer_equivalents import DeepKernel, deep_coefficients

MOST_ROUNDS = 3000
STILL = 1e-14
STARTS = 40
UNSTABLE = "no stable fixed point: the recurrent map stretches distances, σ_a² E φ'(τξ)² ≥ 1; lower recurrent_variance"
NO_SCALE = "no fixed point was reached from an empty state: τ² = σ_a² Var φ(τξ) + σ_b²τ₀² grows without bound or creeps"


class Equilibrium(NamedTuple):
    """Kernels of an implicit network on a mixture."""

    conjugate: DeepKernel
    tangent: DeepKernel
    """All of A, B and the output trained."""
    pre_activation_variance: Floats
    """τ²"""
    mean: Floats
    """E φ(τξ), which is taken off."""
    contraction: Floats
    """σ_a² E φ'(τξ)², below one: perturbations of the state die out at this rate per round."""


def equilibrium_coefficients(
    activation: ActivationLike, recurrent_variance: ArrayLike, input_variance: ArrayLike, variance: ArrayLike = 1.0
) -> Equilibrium:
    """Conjugate and tangent kernel of an implicit network on a Gaussian mixture, through four numbers each.

    Setting     `recurrent_variance` σ_a², `input_variance` σ_b², `variance` τ₀² = tr C°/p of the data
    Result      τ² = σ_a² Var φ(τξ) + σ_b²τ₀², the fixed point reached from σ_b²τ₀²; D₁ = (E φ')², D₂ = (E φ'')²,
                D₄ = E[φ'² + φφ'']: α₁ = σ_b²D₁/(1 − σ_a²D₁), a = σ_a²α₁ + σ_b², α₄ = σ_b²D₄/(1 − σ_a²D₄),
                q = σ_a²α₄ + σ_b², α₂ = D₂q²/4(1 − σ_a²D₁), α₃ = D₂a²/2(1 − σ_a²D₁), diagonal Var φ
                β₁ = (α₁ + σ_b²D₁)/(1 − σ_a²D₁), β₂ = α₂/(1 − σ_a²D₁),
                β₃ = (α₃ + D₂a(σ_a²β₁ + σ_b²))/(1 − σ_a²D₁), diagonal (Var φ + σ_b²E φ'²τ₀²)/(1 − σ_a²E φ'²)
    Validity    σ_a²E φ'(τξ)² < 1, else an error: there is no stable fixed point. 2σ_a sup|φ'| < 1 suffices for one at
                every large width
    References  ling2024; gu2022

    >>> found = equilibrium_coefficients("relu", 0.5, 1.0)
    >>> [round(float(part), 12) for part in found.conjugate]
    [0.285714285714, 0.054814459702, 0.098542352624, 0.410865854726, 0.410865854726]
    >>> round(float(found.pre_activation_variance), 10), round(float(found.tangent.diagonal), 10)
    (1.2054329274, 1.2144878063)
    """
    sigma = continuous(activation)
    s_a = number("recurrent_variance", recurrent_variance, NOT_NEGATIVE)
    s_b = number("input_variance", input_variance, POSITIVE)
    tau0 = number("variance", variance, POSITIVE)
    tau = _scale(sigma, s_a, s_b, tau0)
    moments.check(sigma, tau)
    found = _moments(sigma, tau)
    e2 = found.squared_slope
    contraction = s_a * e2
    # The diagonal of the conjugate kernel follows the length of the input through E[φ'² + φφ''].
    tau = valid(
        tau,
        (contraction < 1) & (s_a * jnp.abs(found.energy) < 1),
        UNSTABLE,
        lambda: f": here it is {float(contraction):.6g}",
    )
    d1, d2, d4 = found.slope**2, found.curvature**2, found.energy
    left = 1 - s_a * d1
    a1 = s_b * d1 / left
    a4 = s_b * d4 / (1 - s_a * d4)
    a, q = s_a * a1 + s_b, s_a * a4 + s_b
    a2, a3 = d2 * q**2 / 4 / left, d2 * a**2 / 2 / left
    b1 = (a1 + s_b * d1) / left
    tangent = DeepKernel(
        b1,
        a2 / left,
        (a3 + d2 * a * (s_a * b1 + s_b)) / left,
        (found.variance + s_b * e2 * tau0) / (1 - contraction),
        jnp.zeros(()),
    )
    return Equilibrium(DeepKernel(a1, a2, a3, found.variance, a4), tangent, tau, found.mean, contraction)


def continuous(activation: ActivationLike) -> Activation:
    return moments.continuous(
        activation, "that small changes of the state grow without bound and there is no stable fixed point"
    )


def _scale(sigma: Activation, s_a: Array, s_b: Array, tau0: Array) -> Array:
    """The smallest τ² with τ² = σ_a² Var φ(τξ) + σ_b²τ₀²: iterated from below, then corrected for derivatives."""
    moments.check(sigma, s_b * tau0)
    given = (s_a, s_b, tau0)

    def map_(t, s_a, s_b, tau0):
        return s_a * _moments(sigma, t).variance + s_b * tau0

    # Outside `grad` the iteration itself is enough; its derivative is that of the fixed point: one step of Newton's.
    fixed = jax.lax.stop_gradient(given)

    def going(state):
        old, new, count = state
        moves = jnp.abs(new - old) > STILL * jnp.abs(new)
        return moves & (count < MOST_ROUNDS) & jnp.isfinite(new) & (new < 1e12 * (1 + fixed[1] * fixed[2]))

    def step(state):
        _, new, count = state
        return new, map_(new, *fixed), count + 1

    first = fixed[1] * fixed[2]
    old, tau, _ = jax.lax.while_loop(going, step, (jnp.zeros_like(first), first, 0))
    reached = jnp.abs(tau - old) <= 1e-12 * jnp.abs(tau)
    tau = converged(tau, reached, NO_SCALE)
    _, slope = jax.jvp(lambda t: map_(t, *fixed), (tau,), (jnp.ones_like(tau),))
    # dτ² = ∂(map)/(1 − slope): zero in value, right in derivative.
    return tau + (map_(tau, *given) - jax.lax.stop_gradient(map_(tau, *given))) / (1 - jax.lax.stop_gradient(slope))


class Explicit(NamedTuple):
    """An explicit network with the kernel of an implicit one."""

    activations: tuple[Activation, ...]
    residual: float
    """The largest miss among the matched numbers."""
    exact: bool
    """Whether all four numbers are matched; else k₃, which is common to classes of one covariance, is not."""


def explicit_equivalent(kernel: DeepKernel, variance: float = 1.0, *, layers: int = 2) -> Explicit:
    """An explicit network, of one or two layers, whose conjugate kernel on a mixture is a given one.

    Setting     `kernel` as of `equilibrium_coefficients(...).conjugate`; activations c₁h + c₂(h² − 1)/√2 +
                c₃(h³ − 3h)/√6 of h = u/τ, one for each layer
    Result      one layer: c₁ = τ₀√k₁, c₂ = τ₀²√(2k₂), c₃² = k₀ − τ₀²k₁ − c₂²; it has k₃ = 2k₂, which is right where all
                classes have one covariance (a constant, taken off by centring) or k₂ = 0
                two layers: the four numbers, and k₄ where it is given and can be had, by least squares
    Validity    k₀ − τ₀²k₁ ≥ 2τ₀⁴k₂ for one layer; an error says what is missing
    References  ling2024; gu2022

    >>> found = explicit_equivalent(equilibrium_coefficients("relu", 0.5, 1.0).conjugate, layers=1)
    >>> [round(one, 8) for one in found.activations[0].parameters]  # in powers of u
    [-0.23412488, 0.38193161, 0.23412488, 0.05086362]
    """
    of_kind("kernel", kernel, DeepKernel)
    tau0 = float(number("variance", variance, POSITIVE))
    k1, k2, k3, k0 = (float(part) for part in kernel[:4])
    if not all(math.isfinite(part) for part in (k1, k2, k3, k0)) or min(k1, k2, k3, k0) < 0:
        raise OutsideValidity("kernel must hold four finite numbers, none negative; a kernel has no others")
    if layers not in (1, 2):
        raise OutsideValidity(f"layers = {layers!r} is not allowed; it must be 1 or 2")
    if layers == 1:
        c1, c2 = math.sqrt(k1 * tau0), tau0 * math.sqrt(2 * k2)
        rest = k0 - tau0 * k1 - c2**2
        if rest < -1e-12 * k0:
            raise OutsideValidity(
                f"one layer cannot have this kernel: k₀ − τ₀²k₁ = {k0 - tau0 * k1:.6g} is below 2τ₀⁴k₂ = {c2**2:.6g}; "
                "take "
                "two layers"
            )
        activations = (_cubic((c1, c2, math.sqrt(max(rest, 0.0))), tau0),)
        return Explicit(activations, abs(k3 - 2 * k2), abs(k3 - 2 * k2) <= 1e-9 * (k3 + 2 * k2 + 1e-300))
    own = float(kernel.own)
    # With k₄ the diagonals of points of other lengths are right too, in small dimensions already.
    best = _two_layers(np.array([k1, k2, k3, k0, own]), tau0) if own > 0 else None
    best = _two_layers(np.array([k1, k2, k3, k0]), tau0) if best is None else best
    if best is None:
        raise OutsideValidity(
            "no two layers of cubic activations with this kernel were found; perhaps no network has it"
        )
    wanted = np.array([k1, k2, k3, k0])
    activations = (_cubic(best[:3], tau0), _cubic(best[3:], float(np.sum(best[:3] ** 2))))
    # Looked at again through the recursion that everybody uses.
    found = deep_coefficients(activations, tau0).conjugate[-1]
    residual = float(np.max(np.abs(np.array([float(part) for part in found[:4]]) - wanted) / _scales(wanted)))
    if residual > 1e-7:
        raise NotConverged(f"the explicit network misses the kernel by {residual:.3g}")
    return Explicit(activations, residual, True)


def _scales(wanted: np.ndarray) -> np.ndarray:
    """Units in which numbers of a kernel are matched: their own sizes, at least a thousandth of the diagonal."""
    return np.maximum(wanted, 1e-3 * max(wanted[3], 1e-300))


def _two_layers(wanted: np.ndarray, tau0: float) -> np.ndarray | None:
    """Hermite coefficients of two layers with these numbers; of four starts that lead there the steadiest diagonal."""

    def miss(x):
        return (_two_cubic(x, tau0)[: len(wanted)] - wanted) / _scales(wanted)

    # The same starts for everybody, evenly spread. Only the scale between the layers is free: the second has
    # the size of the kernel.
    found = []
    for point in gaussian_points(6, 2 ** math.ceil(math.log2(STARTS)))[:STARTS]:
        start = 0.7 * point * np.repeat([1.0, math.sqrt(wanted[3])], 3)
        one = optimize.least_squares(miss, start, xtol=1e-15, ftol=1e-15, gtol=1e-15, max_nfev=300)
        if np.max(np.abs(one.fun)) < 1e-8:
            found.append(one.x)
        if len(found) == (1 if len(wanted) == 5 else 4):
            break
    return min(found, key=lambda x: abs(_two_cubic(x, tau0)[4]), default=None)


def _two_cubic(x: np.ndarray, tau0: float) -> np.ndarray:
    """k₁, k₂, k₃, k₀ and k₄ of two layers with these Hermite coefficients, c₁h + c₂He₂/√2 + c₃He₃/√6 each."""
    state, tau = (1.0, 0.0, 0.0, 1.0), tau0
    for c in (x[:3], x[3:]):
        # E σ' = c₁/τ, E σ'' = √2c₂/τ², E(ξ² − 1)σ²/2 = c₁² + √6c₁c₃ + 2c₂² + 3c₃²
        d1, d2 = c[0] ** 2 / tau, 2 * c[1] ** 2 / tau**2
        energy = (c[0] ** 2 + math.sqrt(6) * c[0] * c[2] + 2 * c[1] ** 2 + 3 * c[2] ** 2) / tau
        a1, a2, a3, a4 = state
        state = (d1 * a1, d1 * a2 + d2 * a4**2 / 4, d1 * a3 + d2 * a1**2 / 2, energy * a4)
        tau = float(np.sum(c**2))
    return np.array([*state[:3], tau, state[3]])


def _cubic(c, variance: float) -> Activation:
    r = math.sqrt(variance)
    c1, c2, c3 = (float(part) for part in c)
    return polynomial(
        -c2 / math.sqrt(2), c1 / r - 3 * c3 / (math.sqrt(6) * r), c2 / (math.sqrt(2) * r**2), c3 / (math.sqrt(6) * r**3)
    )
