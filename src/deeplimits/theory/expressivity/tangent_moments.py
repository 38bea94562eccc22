r"""The tangent kernel of a random ReLU network at finite width: exact moments, and bounds on its largest eigenvalue.

No biases, W^(l) = √(2/n_{l−1}) Ŵ^(l), one output, Θ(x, x') = Σ over all entries of all Ŵ^(l) of ∂z ∂z'.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from deeplimits.errors import OutsideValidity
from deeplimits.numerics.arguments import NOT_NEGATIVE, POSITIVE, Allowed, argument, array, between, number, whole
from deeplimits.numerics.shapes import Floats
from deeplimits.theory.expressivity.paths import hidden_widths

MOST = 690.0
"""The largest logarithm of a moment."""


class KernelMoments(NamedTuple):
    """E Θ and E Θ² at one input."""

    mean: Floats
    second: Floats


def ntk_moments(squared_norm: ArrayLike, inputs: int, hidden: Sequence[int]) -> KernelMoments:
    r"""Mean and second moment of the tangent kernel Θ(x, x) of a random ReLU network, exact at every width.

    Setting     no biases, Gaussian weights, |x|² = `squared_norm`, n_0 = `inputs`, n_1 … n_L = `hidden`, one output
    Result      Θ = Σ_{l=1}^{L+1} T_l, T_l = (2/n_{l−1})|h^(l−1)|²|∂z/∂z^(l)|²; E Θ = 2(L+1)|x|²/n_0, for every law of
                the weights; for l ≤ m
                E T_l T_m = (4|x|⁴/n_0²)[⅓ Π_k (1+5/n_k) + ⅔ Π_{k<l or k≥m} (1+5/n_k) Π_{l≤k<m} (1−1/n_k)]
    Validity    Gaussian weights for the second moment
    References  hanin2020b

    >>> found = ntk_moments(6.0, 3, [5, 4, 6])
    >>> float(found.mean), round(float(found.second), 10)
    (16.0, 1325.8666666667)
    """
    size, n0 = number("squared_norm", squared_norm, NOT_NEGATIVE), whole("inputs", inputs, 1)
    n = np.asarray(hidden_widths(hidden), float)
    layers = len(n) + 1
    grows = np.concatenate([[0.0], np.cumsum(np.log1p(5 / n))])
    if grows[-1] > MOST:
        raise OutsideValidity(
            f"E Θ² of {len(n)} hidden layers is beyond double precision: e^{grows[-1]:.4g} (E Θ)²; take fewer "
            "layers, or wider ones"
        )
    # 1 − 1/n is zero for a single neuron: counted, so that no logarithm is infinite
    shrinks = np.concatenate([[0.0], np.cumsum(np.where(n > 1, np.log1p(-1 / np.where(n > 1, n, 2.0)), 0.0))])
    singles = np.concatenate([[0], np.cumsum(n == 1)])
    l, m = np.triu_indices(layers)
    between_them = shrinks[m] - shrinks[l]
    alive = singles[m] == singles[l]
    outside = grows[-1] - (grows[m] - grows[l])
    each = np.exp(grows[-1]) / 3 + 2 / 3 * np.where(alive, np.exp(outside + between_them), 0.0)
    total = float(np.sum(np.where(l == m, 1.0, 2.0) * each))
    unit = 2 * size / n0
    return KernelMoments(layers * unit, unit**2 * total)


def ntk_spread_limit(depth_per_width: ArrayLike) -> Floats:
    r"""E Θ²/(E Θ)² of a deep and wide ReLU network, L/n → β: the tangent kernel is random where depth is like width.

    Setting     as `ntk_moments`, equal widths n → ∞ with L/n → β = `depth_per_width`
    Result      e^{5β}[⅓ + (6β − 1 + e^{−6β})/(27β²)] = 1 + 11β/3 + …, which tends to e^{5β}/3
    Validity    β ≥ 0
    References  hanin2020b

    >>> round(float(ntk_spread_limit(1.0)), 12), round(float(ntk_spread_limit(1e-9)), 12)
    (76.968596551009, 1.000000003667)
    """
    beta = argument("depth_per_width", depth_per_width, Allowed(lambda x: (x >= 0) & (x <= 140), "between 0 and 140"))
    small = beta < 0.02
    safe = jnp.where(small, 1.0, beta)
    # (6β − 1 + e^{−6β})/(27β²) = ⅔ Σ_k 2(−6β)^k/(k+2)!
    x = -6 * jnp.where(small, beta, 0.0)
    series = 4 / 3 * (1 / 2 + x / 6 + x**2 / 24 + x**3 / 120 + x**4 / 720 + x**5 / 5040 + x**6 / 40320 + x**7 / 362880)
    return jnp.exp(5 * beta) * (1 / 3 + jnp.where(small, series, (6 * safe + jnp.expm1(-6 * safe)) / (27 * safe**2)))


def ntk_off_diagonal(correlation: ArrayLike, hidden: int) -> Floats:
    r"""The tangent kernel of two inputs in a wide ReLU network, in units of 2|x||x'|/n_0.

    Setting     no biases, `hidden` layers of any widths, x·x' = ρ|x||x'| with ρ = `correlation`
    Result      c = t = ρ, then `hidden` times φ = arccos c: c ← (sin φ + (π−φ) cos φ)/π, t ← c + t(π−φ)/π; the result
                is t. At ρ = 1 it is L + 1
    Validity    exact for the mean with one hidden layer of any width; n → ∞ for more, with corrections O(1/n)
    References  hanin2020b; jacot2018

    >>> [round(float(ntk_off_diagonal(rho, layers)), 12) for rho, layers in ((0.0, 1), (0.5, 2), (0.5, 3), (1.0, 4))]
    [0.318309886184, 1.351479561123, 1.737844679215, 5.0]
    """
    rho, layers = argument("correlation", correlation, between(-1, 1)), whole("hidden", hidden, 0)

    def layer(_, state):
        far, t = state
        phi = 2 * jnp.arcsin(jnp.sqrt(jnp.clip(far / 2, 0.0, 1.0)))
        # 1 − c' = (1 − c) − (sin φ − φ cos φ)/π, and the last is φ³/3 − φ⁵/30 + … where it would cancel
        small = phi < 1e-2
        series = phi**3 / 3 - phi**5 / 30 + phi**7 / 840
        further = far - jnp.where(small, series, jnp.sin(phi) - phi * jnp.cos(phi)) / jnp.pi
        return further, (1 - further) + t * (1 - phi / jnp.pi)

    return jax.lax.fori_loop(0, layers, layer, (1 - rho, rho))[1]


class EigenvalueBounds(NamedTuple):
    """The largest eigenvalue of the mean tangent kernel on data, and what bounds it."""

    largest: Floats
    """λ_max of E Θ"""
    row_sum: Floats
    """max_b Σ_a |E Θ_ab|"""
    frobenius: Floats
    every_width: Floats
    """λ_max(E Θ) is at most this, however narrow the layers"""
    trace: Floats
    """E Tr Θ"""
    spread: Floats
    """E Θ_aa²/(E Θ_aa)², the same for every input"""

    def trace_bound(self, failure: float) -> Floats:
        """What Tr Θ exceeds with probability at most `failure`: Chebyshev's inequality for each of the m inputs."""
        delta = number("failure", failure, Allowed(lambda x: (x > 0) & (x < 1), "strictly between 0 and 1"))
        return (1 + jnp.sqrt((self.spread - 1) * self.samples / delta)) * self.trace

    samples: Floats = jnp.ones(())
    """m"""


def ntk_eigenvalue_bounds(x: ArrayLike, hidden: Sequence[int]) -> EigenvalueBounds:
    r"""Bounds on the largest eigenvalue of the tangent kernel of a random ReLU network on data.

    Setting     m inputs in the rows of `x`, a network as in `ntk_moments`
    Result      λ_max(E Θ) ≤ max_b Σ_a |E Θ_ab| and ≤ |E Θ|_F, with E Θ_ab from `ntk_off_diagonal`;
                at every width |E Θ_ab| ≤ (2|x_a||x_b|/n_0)(|ρ| + κ(ρ) + L − 1), κ(ρ) = (sin φ + (π−φ) cos φ)/π with
                φ = arccos ρ: `every_width` is the largest eigenvalue of these;
                Tr Θ ≤ (1 + √((m/δ)(ρ₂ − 1))) E Tr Θ with probability at least 1 − δ, ρ₂ = E Θ_aa²/(E Θ_aa)²
    Validity    trace, ρ₂ and `every_width`: all widths. `largest`, `row_sum` and `frobenius`: one hidden layer of any
                width; with more layers n → ∞, and where L/n is not small E Θ_ab, and with it λ_max, are larger
    References  hanin2020b

    >>> found = ntk_eigenvalue_bounds([[1.0, 0.0], [0.0, 1.0]], [50])
    >>> round(float(found.largest), 10), round(float(found.row_sum), 10)
    (2.3183098862, 2.3183098862)
    >>> deep = ntk_eigenvalue_bounds([[1.0, 0.0], [0.0, 1.0]], [3] * 5)
    >>> bool(deep.largest < deep.every_width < deep.trace)
    True
    """
    rows = array("x", x, ("m", "d"), why="one input in each row")
    widths = hidden_widths(hidden)
    lengths = jnp.linalg.norm(rows, axis=1)
    array("the lengths of the rows of x", lengths, ("m",), allowed=POSITIVE, why="the network is zero at zero")
    units = rows / lengths[:, None]
    correlations = jnp.clip(units @ units.T, -1.0, 1.0)
    correlations = jnp.where(jnp.eye(len(rows), dtype=bool), 1.0, correlations)
    scale = 2 * lengths[:, None] * lengths[None, :] / rows.shape[1]
    mean = scale * ntk_off_diagonal(correlations, len(widths))
    # T_1 has the factor x·x' and T_2 that of the first layer, in the mean exact; Cauchy and Schwarz do the rest.
    known_layers = jnp.abs(correlations)
    if widths:
        phi = jnp.arccos(correlations)
        known_layers += (jnp.sin(phi) + (jnp.pi - phi) * correlations) / jnp.pi + (len(widths) - 1)
    moments = ntk_moments(1.0, 1, widths)
    return EigenvalueBounds(
        jnp.linalg.eigvalsh(mean)[-1],
        jnp.max(jnp.sum(jnp.abs(mean), axis=1)),
        jnp.linalg.norm(mean),
        jnp.linalg.eigvalsh(scale * known_layers)[-1],
        jnp.trace(mean),
        moments.second / moments.mean**2,
        jnp.asarray(float(len(rows))),
    )


def matrix_chernoff(excess: ArrayLike, mean: ArrayLike, largest: ArrayLike, dimension: int) -> Floats:
    r"""P(λ_max ≥ (1 + e) μ) of a positive semidefinite matrix of bounded size: the matrix Chernoff bound.

    Setting     a random PSD matrix of `dimension` m with λ_max ≤ R = `largest` surely, μ = `mean` ≥ λ_max of its mean;
                e = `excess`
    Result      m [e^e/(1+e)^{1+e}]^{μ/R}; above 1 it says nothing
    Validity    for one matrix μ/R ≤ 1, so that it is nearly vacuous; a bound R that holds with probability 1 − δ adds δ
    References  tropp2012

    >>> round(float(matrix_chernoff(1.0, 5.0, 2.0, 10)), 12)
    3.80702936272
    """
    e, mu = argument("excess", excess, NOT_NEGATIVE), argument("mean", mean, POSITIVE)
    r, m = argument("largest", largest, POSITIVE), whole("dimension", dimension, 1)
    return jnp.exp(math.log(m) + (e - (1 + e) * jnp.log1p(e)) * (mu / r))
