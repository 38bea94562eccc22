r"""What online SGD cannot do with too few samples, and how far its noise carries it.

m_t = m_0 + (δ/N) Σ (1 − m²)(−φ'(m)) − M_t − (δ²/2N²) Σ |∇L|² m + …, M_t = (δ/N) Σ_{j≤t} ⟨∇H_j, θ⟩ a martingale.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from deeplimits.numerics import arguments
from deeplimits.numerics.shapes import Scalar
from deeplimits.theory.online_sgd.landscapes import Landscape
from deeplimits.theory.online_sgd.spherical_ode import velocity

POINTS = 801
LEVELS = 60


class MartingaleBound(NamedTuple):
    """How large the sum of the gradient's errors along the signal becomes."""

    variance: Scalar
    """E M_T² ≤ Cδ²α/N."""
    largest: Scalar
    """E sup_{t≤T} M_t² ≤ 4Cδ²α/N, by Doob's maximal inequality."""
    share: Scalar
    """2δ√(Cα): the size of the largest error relative to m_0 ~ N^{−1/2}; the noise is negligible where it is ≪ 1."""


def martingale_bound(
    landscape: Landscape,
    step: ArrayLike,
    dimension: ArrayLike,
    samples_per_dimension: ArrayLike,
    *,
    points: int = POINTS,
) -> MartingaleBound:
    """Doob's bound of the directional error M_t over T = αN steps, for any landscape.

    Setting     M_t = (δ/N) Σ_{j≤t} ⟨∇H_j(x_{j−1}), θ⟩, H = L − EL; C = sup_m E⟨∇H, θ⟩² over a grid of m in [−1, 1]
    Result      E M_T² ≤ Cδ²α/N, E sup_{t≤T} M_t² ≤ 4Cδ²α/N; at the equator E M_T² = σ²δ²α/N, σ² = E⟨∇H, θ⟩² there
    Validity    every N; negligible against the start iff δ²α ≪ 1
    References  benarous2021

    >>> from deeplimits.theory.online_sgd import online_pca
    >>> round(float(martingale_bound(online_pca(1.0), 0.3, 1000, 0.25).largest), 6)
    0.00072
    """
    delta = arguments.number("step", step, arguments.POSITIVE)
    n = arguments.number("dimension", dimension, arguments.at_least(2))
    alpha = arguments.number("samples_per_dimension", samples_per_dimension, arguments.NOT_NEGATIVE)
    grid = jnp.linspace(-1.0, 1.0, arguments.whole("points", points, 11))
    largest = jnp.max(landscape.directional_variance(grid))
    variance = largest * delta**2 * alpha / n
    return MartingaleBound(variance, 4 * variance, 2 * delta * jnp.sqrt(largest * alpha))


def no_recovery_bound(
    landscape: Landscape,
    step: ArrayLike,
    dimension: int,
    samples_per_dimension: ArrayLike,
    threshold: ArrayLike,
    *,
    start: ArrayLike | None = None,
) -> Scalar:
    """A bound on P(sup |m_t| ≥ η over αN samples): small where α ≪ α_c, so that nothing is recovered.

    Setting     spherical online SGD with step δ/N, from a uniform point, or from a given m_0 (`start`)
    Limit       N → ∞; the velocity v and the variance σ² of a step are those of the limit
    Result      for every a ≤ η, y = E m² up to the first time that |m| ≥ a satisfies dy/dτ ≤ ry + δ²C/N, with
                r = 2 sup_{|m|≤a} v/m, C = sup σ², and dy/dτ ≤ 2V√y + δ²C/N with V = sup|v|; and P ≤ y(α)/a². The
                least of these bounds. It vanishes for α ≪ 1 (k = 1), α ≪ log N (k = 2), and for k ≥ 3 with steps
                δ ≤ α^{−1/2} for α ≪ N^{k−2}
    Validity    corrections O(1/N) to v and C are left out; suprema over grids of m
    References  benarous2021

    >>> from deeplimits.theory.online_sgd import online_pca
    >>> [float(f"{no_recovery_bound(online_pca(1.0), 0.3, 10**6, alpha, 0.5):.2g}") for alpha in (5.0, 10.0, 20.0)]
    [0.00049, 0.033, 1.0]
    """
    delta = arguments.number("step", step, arguments.POSITIVE)
    n = arguments.whole("dimension", dimension, 2)
    alpha = arguments.number("samples_per_dimension", samples_per_dimension, arguments.NOT_NEGATIVE)
    eta = arguments.number("threshold", threshold, arguments.inside(0, 1))
    first = 1 / n if start is None else arguments.number("start", start, arguments.between(-1, 1)) ** 2
    # Levels a from the start's size up to η, and under each a grid of m that is as fine near 0 as elsewhere.
    shares = np.geomspace(min(1e-2, 2 / math.sqrt(n)), 1.0, LEVELS)
    grid = np.concatenate([-shares[::-1], shares]) * float(eta)
    speed, noise = velocity(landscape, jnp.asarray(grid), delta), landscape.directional_variance(jnp.asarray(grid))
    both = jnp.stack([noise[:LEVELS][::-1], noise[LEVELS:]])
    variance = delta**2 / n * jnp.maximum.accumulate(jnp.max(both, axis=0))
    along = speed / jnp.asarray(grid)
    rate = 2 * jnp.maximum.accumulate(jnp.maximum(along[:LEVELS][::-1], along[LEVELS:]))
    fastest = jnp.maximum.accumulate(jnp.maximum(jnp.abs(speed)[:LEVELS][::-1], jnp.abs(speed)[LEVELS:]))
    # y' = ry + D, as y_0e^{rα} + Dα(e^{rα} − 1)/(rα); (√y)' ≤ V + D/(2√y) gives √y ≤ √(y_0 + Dα) + Vα
    x = jnp.clip(rate * alpha, -700.0, 700.0)
    small = jnp.abs(x) < 1e-8
    growth = jnp.where(small, 1 + x / 2, jnp.expm1(x) / jnp.where(small, 1.0, x))
    linear = first * jnp.exp(x) + variance * alpha * growth
    driven = (jnp.sqrt(first + variance * alpha) + fastest * alpha) ** 2
    return jnp.minimum(1.0, jnp.min(jnp.minimum(linear, driven) / (jnp.asarray(shares) * eta) ** 2))
