"""Products of random matrices: singular values of a random network's Jacobian, and the norm of a deep linear one."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import digamma, polygamma
from jax.typing import ArrayLike

from deeplimits.errors import OutsideValidity
from deeplimits.models.activations import ActivationLike
from deeplimits.models.activations import activation as named
from deeplimits.numerics import panels
from deeplimits.numerics.arguments import NOT_NEGATIVE, PART, POSITIVE, argument, array, at_least, choice, number, whole
from deeplimits.numerics.roots import bracketed
from deeplimits.numerics.shapes import Floats, Scalar
from deeplimits.theory.gaussian import moments
from deeplimits.theory.gaussian.quadrature import line_nodes
from deeplimits.theory.initialization.phases import edge_of_chaos
from deeplimits.theory.spectra import laws
from deeplimits.theory.spectra.atomic import Atomic
from deeplimits.theory.spectra.spectral_measure import SpectralMeasure

WEIGHTS = ("gaussian", "orthogonal")
PANELS, PANEL_NODES = 10, 16
FAR = 700.0
"""Beyond it exp overflows."""


class CriticalPoint(NamedTuple):
    """The point of the critical line χ = 1 with a given fixed point q*."""

    weight_variance: float
    bias_variance: float
    spread: float
    """μ₂/μ₁², with μ_k = E φ'(√q* ξ)^{2k}."""


class SlopeMoments(NamedTuple):
    """μ₁ = E φ'² and μ₂ = E φ'⁴."""

    second: float
    fourth: float


def slope_moments(activation: ActivationLike, variance: float) -> SlopeMoments:
    """μ₁ = E φ'² and μ₂ = E φ'⁴ at pre-activations of the given variance."""
    return SlopeMoments(*(float(moments.slope_moment(activation, variance, power=power)) for power in (2, 4)))


def critical_point(activation: ActivationLike, variance: float) -> CriticalPoint:
    """The edge of chaos at q*, with the spread of the slopes: σ_w² = 1/μ₁, σ_b² = q* − σ_w² E φ².

    >>> [round(part, 8) for part in critical_point("tanh", 0.5)]
    [1.68797512, 0.0380412, 1.29924413]
    """
    found = named(activation)
    variance = float(number("variance", variance, POSITIVE))
    edge = edge_of_chaos(found, variance)
    if edge.bias_variance < -1e-12 * variance:
        raise OutsideValidity(
            f"activation = {found.name} has no critical point at variance {variance:g}: σ_b² = q − E φ²/E φ'² = "
            f"{float(edge.bias_variance):.6g} would be negative; take another variance"
        )
    first, second = slope_moments(found, variance)
    return CriticalPoint(float(edge.weight_variance), max(float(edge.bias_variance), 0.0), second / first**2)


def slope_law(activation: ActivationLike, variance: float) -> Atomic:
    """The law of φ'(√q ξ)², as atoms: exact for piecewise linear φ, quadrature nodes for smooth ones.

    >>> places, weights = slope_law("relu", 1.0).atoms
    >>> places.tolist(), [round(float(weight), 12) for weight in weights]
    ([0.0, 1.0], [0.5, 0.5])
    """
    found = named(activation)
    variance = float(number("variance", variance, POSITIVE))
    if found.kinks:
        nodes, weights = (np.asarray(part) for part in line_nodes(jnp.asarray(variance), kinks=found.kinks))
    else:
        # Gauss-Legendre in panels: Gauss-Hermite converges slowly for activations with poles near the real line.
        rule = panels.even(-9.0, 9.0, PANELS, PANEL_NODES)
        nodes, weights = math.sqrt(variance) * rule.nodes, rule.weights * np.exp(-(rule.nodes**2) / 2)
    slopes = np.asarray(found.derivative(jnp.asarray(nodes))) ** 2
    law = laws.from_atoms(np.ravel(slopes), np.ravel(weights) / weights.sum())
    # A piecewise linear φ has no more slopes than pieces.
    return law if len(law.law.values) <= len(found.kinks) + 1 else Atomic(law.law, nodes=True)


def jacobian_spectrum(depth: int, weights: str, weight_variance: float, slopes: Atomic | float) -> SpectralMeasure:
    """The law of the squared singular values of J = Π_l D_lW_l, a square random network of given depth.

    Setting     W_l square, independent, Gaussian with entries of variance σ_w²/N, or σ_w times a uniform orthogonal
                matrix; D_l = diag φ'(h); `slopes` the law of φ'², or the probability p that a piecewise linear φ is
                active (φ' ∈ {0, 1})
    Result      the free product of L laws of WW' (Marchenko-Pastur at γ = 1, or one point) and L laws of D²:
                Gaussian zM = (1 + M)(σ_w²(M + p))^L, orthogonal zM = (1 + M)(σ_w²(M + p)/(1 + M))^L for the latter,
                M = zG − 1, on the branch M ≈ mean/z at infinity
    Validity    N → ∞ at fixed depth; D and W free of each other, as they are in the limit; with orthogonal weights and
                a smooth φ, whose `slope_law` is made of nodes, depths at which these no longer show (for tanh from 3)
    References  pennington2017; pennington2018

    >>> law = jacobian_spectrum(4, "gaussian", 2.0, 0.5)
    >>> round(float(law.density(1.0)), 8), round(float(law.edges[-1, 1]), 6)
    (0.05957808, 21.858249)
    """
    whole("depth", depth, 1)
    choice("weights", weights, WEIGHTS)
    gain = float(number("weight_variance", weight_variance, POSITIVE))
    if not isinstance(slopes, Atomic):
        p = float(number("slopes", slopes, PART, "the probability of an active unit"))
        slopes = laws.from_atoms([1.0]) if p == 1 else laws.from_atoms([0.0, 1.0], [1 - p, p])
    of_weights = laws.marchenko_pastur(1.0, gain) if weights == "gaussian" else laws.from_atoms([gain])
    alone = slopes.nodes and weights == "orthogonal"
    law = laws.free_product((of_weights, depth), (slopes, depth)) if depth > 1 or not alone else slopes
    if alone and len(law.edges) != 1:
        raise OutsideValidity(
            f"at depth = {depth} with orthogonal weights the {len(slopes.law.values)} nodes that stand for a smooth φ' "
            "show as separate bulks, which the law has not; take a deeper network, or Gaussian weights"
        )
    return law


def relative_variance(depth: int, weights: str, spread: ArrayLike) -> Floats:
    """Var/mean² of the squared singular values, L(μ₂/μ₁² − 1 − s₁), s₁ = −1 for Gaussian and 0 for orthogonal weights.

    >>> float(relative_variance(4, "gaussian", 2.0)), float(relative_variance(4, "orthogonal", 2.0))
    (8.0, 4.0)
    """
    whole("depth", depth, 1)
    choice("weights", weights, WEIGHTS)
    spread = argument("spread", spread, at_least(1), "μ₂/μ₁²")
    return depth * (spread - (0.0 if weights == "gaussian" else 1.0))


def largest_squared_singular_value(depth: int, weights: str, active: ArrayLike) -> Floats:
    """λ_max at criticality σ_w² = 1/p for φ' ∈ {0, 1} active with probability p; traceable in p.

    Result      z(M) = ((1 + M)/M)((M + p)/p)^L for Gaussian weights, at M = [−(L−1) + √((L−1)² + 4Lp)]/(2L);
                z(M) = ((1 + M)/M)((M + p)/(p(1 + M)))^L for orthogonal ones, at M = p/(L(1 − p) − 1) if L(1 − p) > 1,
                otherwise an atom of mass 1 − L(1 − p) at p^{−L}
    References  pennington2018

    >>> [round(float(largest_squared_singular_value(4, w, 0.5)), 8) for w in ("orthogonal", "gaussian")]
    [9.48148148, 21.85824932]
    """
    choice("weights", weights, WEIGHTS)
    p, depth_ = argument("active", active, PART, "a probability"), float(whole("depth", depth, 1))
    if weights == "gaussian":
        m = (-(depth_ - 1) + jnp.sqrt((depth_ - 1) ** 2 + 4 * depth_ * p)) / (2 * depth_)
        return jnp.exp(jnp.log1p(m) - jnp.log(m) + depth_ * jnp.log1p(m / p))
    beyond = depth_ * (1 - p) - 1
    m = p / jnp.where(beyond > 0, beyond, 1.0)
    free = jnp.exp(jnp.log1p(m) - jnp.log(m) + depth_ * (jnp.log(m + p) - jnp.log(p) - jnp.log1p(m)))
    return jnp.where(beyond > 0, free, p**-depth_)


def atom_at_top(depth: int, active: ArrayLike) -> Floats:
    """Mass of the atom at p^{−L} for orthogonal weights at criticality, (1 − L(1 − p))₊.

    >>> round(float(atom_at_top(8, 0.95)), 10)
    0.6
    """
    return jnp.maximum(1 - whole("depth", depth, 1) * (1 - argument("active", active, PART, "a probability")), 0.0)


def shrunk_share(depth: int, weights: str, weight_variance: ArrayLike, active: ArrayLike, y: ArrayLike):
    """∫ y/(y + λ) dμ(λ) for y > 0 and φ' ∈ {0, 1}: the share of directions that the Jacobian shrinks below √y.

    1 + M at z = −y, the unique root in (−p, 0) of −yM = (1 + M)(σ_w²(M + p))^L, or with (M + p)/(1 + M) for
    orthogonal weights; with its gradient.

    >>> round(float(shrunk_share(1, "gaussian", 1.0, 1.0, 1.0)), 10)
    0.6180339887
    """
    whole("depth", depth, 1)
    choice("weights", weights, WEIGHTS)
    gain, p = argument("weight_variance", weight_variance, POSITIVE), argument("active", active, PART, "a probability")
    y = argument("y", y, POSITIVE)
    gain, p, y = jnp.broadcast_arrays(gain, p, y)
    equation = _gaussian_defect if weights == "gaussian" else _orthogonal_defect
    sentence = "the share of shrunk directions was not found"
    u = bracketed(equation, -FAR, FAR, float(depth), gain, p, y, sentence=sentence)
    return _one_more(u, p)


def _one_more(u, p):
    """1 + M, where M = −p/(1 + e^{−u}): the logistic variable keeps both ends of (−p, 0) in reach."""
    return (1 - p) + p * jax.nn.sigmoid(-u)


def _gaussian_defect(u, depth, gain, p, y):
    # log of both sides, which are positive; the left one falls and the right one rises with M.
    layer = jnp.log(gain) + jnp.log(p) + jax.nn.log_sigmoid(-u)
    return jnp.log(_one_more(u, p)) + depth * layer - jnp.log(y) - jnp.log(p) - jax.nn.log_sigmoid(u)


def _orthogonal_defect(u, depth, gain, p, y):
    return _gaussian_defect(u, depth, gain, p, y) - depth * jnp.log(_one_more(u, p))


class LogNorm(NamedTuple):
    """Mean and variance of a logarithm."""

    mean: Floats
    variance: Floats


class DeepLinearNorm(NamedTuple):
    """Law of ‖θ‖ for θ' = W_L … W_0, whose direction is uniform and independent of it."""

    mean: Scalar
    """E log ‖θ‖."""
    variance: Scalar
    """Var log ‖θ‖."""
    fourth: Scalar
    """E‖θ‖⁴ = Π (1 + 2/n_l); E‖θ‖² = 1."""


def deep_linear_norm(widths: ArrayLike) -> DeepLinearNorm:
    """The norm of the vector that a deep linear network with one output is, for layers of any widths.

    Setting     θ' = W^(L+1) … W^(1), W^(l) of independent entries N(0, 1/n_(l−1)), `widths` n_0, …, n_L
    Result      ‖θ‖² is in law Π_l χ²_{n_l}/n_l, independent of a uniform direction: log ‖θ‖ has mean
                ½Σ[ψ(n_l/2) − log(n_l/2)] and variance ¼Σψ'(n_l/2); E‖θ‖⁴ = Π(1 + 2/n_l)
    Validity    Gaussian weights; every width
    References  hanin2018; hanin2023

    >>> found = deep_linear_norm([100.0] * 50)
    >>> [round(float(part), 10) for part in found]
    [-0.2508333, 0.2525166653, 2.6915880291]
    """
    n = array("widths", widths, ("layers",), allowed=POSITIVE, why="one width for each factor")
    each = deep_linear_log_norm(n, jnp.ones_like(n))
    return DeepLinearNorm(jnp.sum(each.mean), jnp.sum(each.variance), jnp.exp(jnp.sum(jnp.log1p(2 / n))))


def deep_linear_log_norm(width: ArrayLike, factors: ArrayLike) -> LogNorm:
    """Mean and variance of ½ Σ log(χ²_n/n) over independent factors, the log norm of a deep linear network.

    >>> [round(float(part), 12) for part in deep_linear_log_norm(100.0, 50.0)]
    [-0.250833300006, 0.252516665334]
    """
    n, count = argument("width", width, POSITIVE), argument("factors", factors, NOT_NEGATIVE)
    # E log(χ²_n/n) = digamma(n/2) − log(n/2), Var log χ²_n = trigamma(n/2)
    # For large n both terms of the mean are large: −1/n − 1/3n² + 2/15n⁴ − 16/63n⁶ is their difference.
    large = n > 100
    square = 1 / jnp.where(large, n, 100.0) ** 2
    series = -jnp.sqrt(square) - square / 3 + 2 * square**2 / 15 - 16 * square**3 / 63
    mean = count / 2 * jnp.where(large, series, digamma(n / 2) - jnp.log(n / 2))
    return LogNorm(mean, count / 4 * polygamma(1, n / 2))
