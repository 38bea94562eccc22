r"""How long spherical online SGD searches, and how long it descends.

τ_η is the first step at which the correlation exceeds η. Near the equator −φ'(m) ≈ a_k m^{k−1}.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erfc
from jax.typing import ArrayLike
from jaxtyping import Array

from deeplimits.errors import OutsideValidity
from deeplimits.numerics import arguments, panels
from deeplimits.numerics.checks import converged, valid
from deeplimits.theory.online_sgd.equator import Distribution
from deeplimits.theory.online_sgd.landscapes import Landscape, check_order, critical_step, online_pca
from deeplimits.theory.online_sgd.spherical_ode import growth_rate, velocity

# Panels that shrink towards both ends: 1/v has a pole near either, at the equator and at the plateau.
_FINE, _COARSE = (panels.composite([0.0, *2.0 ** np.arange(-60.0, 0.0)], count) for count in (16, 10))
_TOLERANCE = 1e-9


def _integral(function: Callable[[Array], Array], low: ArrayLike, high: ArrayLike) -> Array:
    """∫ f from low to high, of an f that may grow like a power of the distance from points just outside."""
    low, high = jnp.asarray(low, float), jnp.asarray(high, float)

    def rule(found: panels.Rule):
        # Half from either end, so that the distance from it keeps its digits.
        share, weights = jnp.asarray(found.nodes), jnp.asarray(np.tile(found.weights, 2)) * (high - low)
        values = function(jnp.concatenate([low + (high - low) * share, high - (high - low) * share]))
        return jnp.sum(weights * values), jnp.sum(weights * jnp.abs(values))

    (fine, size), (coarse, _) = rule(_FINE), rule(_COARSE)
    sentence = "the time is an integral that the panels do not resolve; take ends farther from rest points"
    return converged(fine, jnp.abs(fine - coarse) <= _TOLERANCE * size, sentence)


def _check_exponent(landscape: Landscape, what: str) -> None:
    if landscape.exponent != 2:
        raise OutsideValidity(
            f"landscape has information exponent {landscape.exponent}; {what} is that of exponent 2, where the "
            "correlation leaves the equator exponentially"
        )


def critical_ratio(dimension: int, order: int) -> float:
    """α_c(N, k): how many samples per dimension weak recovery takes, 1, log N or N^{k−2}.

    >>> round(critical_ratio(1000, 2), 9), critical_ratio(100, 4)
    (6.907755279, 10000.0)
    """
    check_order(order)
    dimension = arguments.whole("dimension", dimension, 2)
    if order == 1:
        return 1.0
    return math.log(dimension) if order == 2 else _power(dimension, order - 2)


def _power(base: int, exponent: float) -> float:
    try:
        return float(base) ** exponent
    except OverflowError:
        return math.inf


class StepWindow(NamedTuple):
    """The scales between which admissible steps lie."""

    above: float
    below: float


def step_window(dimension: int, order: int, samples_per_dimension: float) -> StepWindow:
    """The ends of T_k(N)/α ≪ δ ≪ α^{−1/2}, T_k = 1, log N, N^{(k−2)/2}: admissible steps at α samples per dimension.

    >>> step_window(10_000, 3, 1e6)
    StepWindow(above=0.0001, below=0.001)
    """
    alpha = float(arguments.argument("samples_per_dimension", samples_per_dimension, arguments.POSITIVE))
    critical_ratio(dimension, order)
    search = 1.0 if order == 1 else math.log(dimension) if order == 2 else _power(dimension, (order - 2) / 2)
    return StepWindow(search / alpha, alpha**-0.5)


def passage_time(landscape: Landscape, start: ArrayLike, end: ArrayLike, step: ArrayLike) -> Array:
    """T(a → b) = ∫_a^b dm/v(m), v the velocity of the critical-step ODE; in units of N steps.

    Raises `OutsideValidity` where the velocity is not positive on the way, as beyond a plateau.

    >>> from deeplimits.theory.online_sgd import online_pca, pca_correlation
    >>> time = passage_time(online_pca(1.0), 0.1, 0.5, 0.3)
    >>> round(float(pca_correlation(1.0, 0.1, 0.3, time)), 8)
    0.5
    """
    arguments.of_kind("landscape", landscape, Landscape)
    a, b = arguments.number("start", start, arguments.between(-1, 1)), arguments.number("end", end, arguments.FINITE)
    arguments.number("step", step, arguments.POSITIVE)
    b = valid(
        b, b >= a, "end lies below start, and time does not run backwards; take a larger end", lambda: f" than {b}"
    )

    def inverse_speed(m):
        speed = velocity(landscape, m, step)
        return 1 / valid(
            speed,
            speed > 0,
            "the correlation never gets from start to end at this step: its velocity is not positive on the way; take "
            "a smaller step or a nearer end",
            lambda: f" (start = {float(a):g}, end = {float(b):g})",
        )

    return _integral(inverse_speed, a, b)


def descent_time(landscape: Landscape, margin: ArrayLike) -> Array:
    """T_desc(η) = ∫_η^{1−η} dm/(−(1−m²)φ'(m)): the descent takes (N/δ) T_desc steps as δ → 0.

    >>> from deeplimits.theory.online_sgd.landscapes import online_pca
    >>> round(float(descent_time(online_pca(1.0), 0.1)), 8)
    1.51128251
    """
    arguments.of_kind("landscape", landscape, Landscape)
    eta = arguments.number("margin", margin, arguments.inside(0, 0.5))

    def inverse_speed(m, rest):
        # `rest` is 1 − m with all its digits
        speed = -rest * (1 + m) * landscape.slope(m)
        sentence = "the loss does not fall all the way from margin to 1 − margin, as a descent must; take another loss"
        return 1 / valid(speed, speed > 0, sentence)

    lower = _integral(lambda m: inverse_speed(m, 1 - m), eta, 0.5)
    return lower + _integral(lambda rest: inverse_speed(1 - rest, rest), eta, 0.5)


def search_offset(landscape: Landscape, threshold: ArrayLike, step: ArrayLike) -> Array:
    """b in κτ_η/N − ½ log N → b − log|G| for k = 2, G standard Gaussian, from a uniform start; |m| crossing η.

    b = C(η) − ½ log(1 + δ²σ²/(2κ)), C(η) = log η + κ ∫_0^η (1/v − 1/(κm)) dm.

    >>> from deeplimits.theory.online_sgd.landscapes import online_pca
    >>> round(float(search_offset(online_pca(1.0), 0.4, 0.3)) + 0.635181422730739, 8)
    -0.4143281
    """
    arguments.of_kind("landscape", landscape, Landscape)
    _check_exponent(landscape, "this law of the search")
    eta = arguments.number("threshold", threshold, arguments.inside(0, 1))
    delta = arguments.number("step", step, arguments.POSITIVE)
    kappa = growth_rate(landscape, delta)
    kappa = valid(
        kappa,
        kappa > 0,
        "step is not below the critical one and leaves no weak recovery; take a smaller one",
        lambda: f" (step = {float(delta):g}, the critical step is {float(critical_step(landscape)):g})",
    )

    def excess(m):
        speed = velocity(landscape, m, delta)
        sentence = "threshold is above the plateau and never reached; take a smaller one"
        speed = valid(speed, speed > 0, sentence, lambda: f" than {float(eta):g}")
        return (kappa * m - speed) / (speed * kappa * m)

    regular = _integral(excess, 0.0, eta)
    sigma2 = landscape.directional_variance(jnp.zeros(()))
    return jnp.log(eta) + kappa * regular - jnp.log1p(delta**2 * sigma2 / (2 * kappa)) / 2


def search_law(offset: ArrayLike, x: ArrayLike) -> Distribution:
    """Density and distribution function of b − log|G|: P(≤ x) = P(|G| ≥ e^{b−x}) = erfc(e^{b−x}/√2).

    >>> [round(float(part), 8) for part in search_law(0.0, 1.0)]
    [0.27432027, 0.71296313]
    """
    gap = arguments.argument("offset", offset, arguments.FINITE) - arguments.argument("x", x, arguments.FINITE)
    # From e⁶ on both are 0 in any digits, and their factors would overflow.
    size = jnp.exp(jnp.minimum(gap, 6.0))
    density = jnp.sqrt(2 / jnp.pi) * size * jnp.exp(-(size**2) / 2)
    return Distribution(density, erfc(size / jnp.sqrt(2.0)))


class SearchCorrection(NamedTuple):
    """What a step adds to mean and variance of the time θ on the ODE, in units of 1/N²."""

    mean: Array
    variance: Array


def pca_search_correction(signal: ArrayLike, step: ArrayLike) -> SearchCorrection:
    """k and s²: what a step of online PCA adds to mean and variance of θ, in units of 1/N², where N^{−1/2} ≪ m ≪ 1.

    θ = log m − ½ log(1 − m²/m_*²) is time on the ODE. With Y's components y = √L a, L = 1 + λ, along the signal and b
    across, z = my + qb and e = qy − mb, α = 2δ/N, and χ² for the rest of |Y|²,
    log(m'/m) = log(1 + αqze/m) − ½ log(1 + α²z²(e² + χ²)), and E z²e² = L + 3λ²m² + …, E z³e = 3λm + …
    The mean is κ/N + (k − 2δ²L/m²)/N², the variance (s_m² + 4δ²L/m²)/N², with
    k = −2δ²(3λ² − 2) + 12δ⁴ and s_m² = 4δ²(2λ² − L) − 16δ³λ + 8δ⁴.
    The terms in 1/m² are the noise of the limiting diffusion; since m² = e^{2θ}(1 − m²/m_*² + …), they are constant in
    part. k is the same for θ, and s² = s_m² + 12δ²L/m_*².

    >>> [round(float(x), 10) for x in pca_search_correction(3.0, 0.5)]
    [-11.75, 30.1]
    """
    lam = arguments.argument("signal", signal, arguments.POSITIVE)
    delta = arguments.argument("step", step, arguments.POSITIVE)
    lam = valid(lam, delta < lam, "step is not below the signal, and nothing is recovered; take a smaller one")
    drift = -2 * delta**2 * (3 * lam**2 - 2) + 12 * delta**4
    plateau = (lam - delta) / (lam * (1 + delta))
    noise = 4 * delta**2 * (1 + lam)
    spread = 8 * delta**2 * lam**2 - noise - 16 * delta**3 * lam + 8 * delta**4 + 3 * noise / plateau
    return SearchCorrection(drift, spread)


def pca_search_law(
    signal: ArrayLike, threshold: ArrayLike, step: ArrayLike, dimension: ArrayLike, x: ArrayLike
) -> Distribution:
    """Density and distribution function of κτ_η/N − ½ log N in online PCA, up to O(1/N).

    The way from m ~ N^{−1/2} to m ~ 1 takes ½ log N/κ units of time, in which the corrections k/N to the drift of θ and
    s²/N to its variance (`pca_search_correction`) add up: F_N = F + (log N/(2κN)) (k f + ½ s² f'), F and f being
    the limit (`search_law`).

    >>> from deeplimits.theory.online_sgd.landscapes import online_pca
    >>> limit = search_law(search_offset(online_pca(1.0), 0.4, 0.3), 1.0).cdf
    >>> [round(float(pca_search_law(1.0, 0.4, 0.3, n, 1.0).cdf - limit), 6) + 0.0 for n in (100, 10**9)]
    [-0.010475, 0.0]
    """
    landscape, x = online_pca(signal), jnp.asarray(x, float)
    offset = search_offset(landscape, threshold, step)
    drift, spread = pca_search_correction(signal, step)
    n = jnp.asarray(dimension, float)
    weight = jnp.log(n) / (2 * n) / growth_rate(landscape, step)
    density, cdf = search_law(offset, x)
    # With y = e^{b−x}: f' = (y² − 1)f and f'' = (y⁴ − 4y² + 1)f
    square = jnp.exp(2 * (offset - x))
    first, second = square - 1, square**2 - 4 * square + 1
    corrected = density * (1 + weight * (drift * first + spread / 2 * second))
    # An expansion may leave [0, 1] far out, by less than its error.
    corrected_cdf = cdf + weight * density * (drift + spread / 2 * first)
    return Distribution(jnp.maximum(corrected, 0.0), jnp.clip(corrected_cdf, 0.0, 1.0))


def least_dimension(level: float, correction: float) -> float:
    """The N from which on √N·level ≥ 3.2 and (log N/(2N))·correction ≤ 0.3: where `pca_search_law` holds.

    `level` is ηm_*, by which the start G/√N must be small; `correction` is (|k| + ½s²)/κ.

    >>> round(least_dimension(0.5, 5.0)), round(least_dimension(0.5, 50.0))
    (41, 521)
    """
    level = float(arguments.number("level", level, arguments.POSITIVE))
    correction = float(arguments.number("correction", correction, arguments.NOT_NEGATIVE))
    n = max((3.2 / level) ** 2, 3.0)
    for _ in range(60):  # log N/N falls: N = correction·log N/0.6 is reached from below
        n = max(n, correction * math.log(n) / 0.6)
    return n


def small_step_search(
    order: int, drift_constant: ArrayLike, dimension: int, step: ArrayLike, gaussian: ArrayLike
) -> Array:
    """τ_η ≈ N^{k/2}/(δ (k−2) a_k |G|^{k−2}) for k ≥ 3 and δ ≪ N^{−(k−2)/2}, given the start √N m_0 = |G|.

    The mean over G is infinite; take quantiles.

    >>> float(small_step_search(4, 2.0, 100, 0.5, 1.0))
    5000.0
    """
    check_order(order, least=3)
    dimension = arguments.whole("dimension", dimension, 2)
    start = arguments.argument("gaussian", gaussian, arguments.FINITE)
    for name, value in (("drift_constant", drift_constant), ("step", step)):
        arguments.argument(name, value, arguments.POSITIVE)
    growth = (order - 2) * jnp.asarray(drift_constant, float) * jnp.abs(start) ** (order - 2)
    return dimension ** (order / 2) / (jnp.asarray(step, float) * growth)
