"""Exact risks of local averages: nearest neighbours, and kernel smoothers with a singular kernel.

All are risks at one point x₀ of the estimate of f, for labels Y = f(X) + noise, averaged over the design. Designs are
uniform in a ball around x₀.
"""

import math
import warnings

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.errors import OutsideValidityWarning, ParameterError
from deeplimits.numerics import panels
from deeplimits.numerics.arguments import (
    FINITE,
    NOT_NEGATIVE,
    PART,
    POSITIVE,
    Allowed,
    argument,
    array,
    known,
    whole,
)
from deeplimits.numerics.checks import valid
from deeplimits.numerics.ranks import same_rank
from deeplimits.numerics.shapes import Floats, Scalar
from deeplimits.theory.regression.risks import Risk


def order_statistic_moment(power: ArrayLike, k: int, n: int, dimension: int) -> Scalar:
    """E R^power, R the distance of the (k+1)-st nearest of n uniform points in the unit ball; 1 if k = n.

    Γ(k+1+q/d) Γ(n+1) / (Γ(k+1) Γ(n+1+q/d)): R^d is a Beta(k+1, n−k) variable.
    """
    _neighbours(k, n, dimension)
    share = argument("power", power, NOT_NEGATIVE) / dimension
    if k == n:
        return jnp.ones_like(share)
    return jnp.exp(_log_gamma_ratio(k + 1.0, share) - _log_gamma_ratio(n + 1.0, share))


def order_statistic_limit(power: ArrayLike, k: int, n: ArrayLike, dimension: int, density: ArrayLike) -> Floats:
    """E R^q at an interior point with density p, for n → ∞ at fixed k: Γ(k+1+q/d)/Γ(k+1) (n p V_d)^{−q/d}.

    >>> near = order_statistic_limit(2.0, 5, 10**6, 2, 1 / math.pi)
    >>> round(float(near / order_statistic_moment(2.0, 5, 10**6, 2)), 5)
    1.0
    """
    whole("k", k, 1)
    whole("dimension", dimension, 1)
    share = argument("power", power, NOT_NEGATIVE) / dimension
    points, p = argument("n", n, POSITIVE), argument("density", density, POSITIVE)
    # log V_d, which underflows itself in hundreds of dimensions
    log_volume = dimension / 2 * math.log(math.pi) - math.lgamma(dimension / 2 + 1)
    found = jnp.exp(_log_gamma_ratio(k + 1.0, share) - share * (jnp.log(points) + jnp.log(p) + log_volume))
    return valid(found, jnp.isfinite(found), "the moment exceeds the range of numbers; take a smaller power")


def _neighbours(k: int, n: int, dimension: int) -> None:
    whole("dimension", dimension, 1)
    whole("n", n, 1)
    if whole("k", k, 1) > n:
        raise ParameterError(f"k = {k} is not allowed; it must be between 1 and n = {n}")


def _log_gamma_ratio(z: float, s: Scalar) -> Scalar:
    """log Γ(z + s)/Γ(z) for z ≥ 1 and s ≥ 0, by Stirling's series in which the large terms have been subtracted."""
    shift = np.arange(max(0.0, np.ceil(20 - z)))
    below = jnp.sum(jnp.log1p(s[..., None] / (z + shift)), axis=-1)
    z = z + len(shift)

    def rest(x):
        square = x**-2
        return (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square * (1 / 1680 - square / 1188)))) / x

    stirling = (z + s - 0.5) * jnp.log1p(s / z) + s * (math.log(z) - 1) + rest(z + s) - rest(jnp.asarray(z))
    return stirling - below


def nearest_neighbours_bias_linear(slope: ArrayLike, k: int, n: int, dimension: int) -> Scalar:
    """E bias² of the k-NN average for a linear f with gradient norm `slope`: g² m₂ / (k(d+2)).

    >>> round(float(nearest_neighbours_bias_linear(1.0, k=5, n=50, dimension=2)), 13)
    0.0058823529412
    """
    second = order_statistic_moment(2.0, k, n, dimension)
    return argument("slope", slope, FINITE) ** 2 * second / (k * (dimension + 2))


def nearest_neighbours_bias_cone(slope: ArrayLike, power: ArrayLike, k: int, n: int, dimension: int) -> Scalar:
    """E bias² of the k-NN average for the cone f = L‖x − x₀‖^β.

    L² m_{2β} [(1/k) d/(d+2β) + (1 − 1/k)(d/(d+β))²]

    >>> round(float(nearest_neighbours_bias_cone(1.0, 0.5, k=5, n=50, dimension=2)), 13)
    0.2173209777969
    """
    slope, power = argument("slope", slope, FINITE), argument("power", power, POSITIVE)
    moment = order_statistic_moment(2 * power, k, n, dimension)
    same = dimension / (dimension + 2 * power)
    different = (dimension / (dimension + power)) ** 2
    return slope**2 * moment * (same / k + (1 - 1 / k) * different)


def nearest_neighbours_curvature_bias(laplacian: ArrayLike, k: int, n: int, dimension: int) -> Scalar:
    """E f̂(x₀) − f(x₀) = Δf m₂/(2(d+2)) of the k-NN average where f is quadratic around x₀, Δf its Laplacian.

    Setting     n uniform points in the unit ball around x₀; a gradient does not contribute to the mean
    Result      the mean over the design; at a point of density p for large n take `order_statistic_limit` for m₂

    >>> round(float(nearest_neighbours_curvature_bias(4.0, k=5, n=50, dimension=2)), 12)
    0.058823529412
    """
    second = order_statistic_moment(2.0, k, n, dimension)
    return argument("laplacian", laplacian, FINITE) * second / (2 * (dimension + 2))


def nearest_neighbours_risk(
    points: ArrayLike, values: ArrayLike, place: ArrayLike, value: ArrayLike, k: int, noise_variance: ArrayLike
) -> Risk:
    """Squared bias and variance of the k-NN average at x₀ given the design, exactly.

    Setting     `points` (n, d) with f at them in `values` (n,), x₀ = `place` with f(x₀) = `value`, noise of variance σ²
    Result      (f(x₀) − (1/k)Σ f(x_(ℓ)))² and σ²/k over the k nearest; the error of a new label adds σ²
    Validity    points at equal distances are taken in the order given

    >>> found = nearest_neighbours_risk([[0.0], [1.0], [3.0]], [0.0, 1.0, 9.0], [0.5], 0.25, 2, 1.0)
    >>> float(found.bias), float(found.variance)
    (0.0625, 0.5)
    """
    design = array("points", points, ("n", "d"), why="one point in each row")
    targets = array("values", values, (design.shape[0],), why="one for each point")
    centre = array("place", place, (design.shape[1],))
    _neighbours(k, design.shape[0], design.shape[1])
    nearest = jnp.argsort(jnp.sum((design - centre[None, :]) ** 2, axis=1), stable=True)[:k]
    bias = argument("value", value, FINITE) - jnp.mean(targets[nearest])
    return Risk(bias**2, argument("noise_variance", noise_variance, NOT_NEGATIVE) / k)


NODES = 120


def exponential_integral(order: ArrayLike, s: Float[Array, " points"]) -> Float[Array, "... points"]:
    """Generalized exponential integral E_ν(s) = ∫₁^∞ e^{−st} t^{−ν} dt for real ν and s > 0, to 1e-13 relative.

    Integrated in x = log t by Gauss-Legendre; the range ends where either e^{−s e^x} or e^{−(ν−1)x} has vanished.
    """
    order = jnp.asarray(order, float)[..., None]
    falls = jnp.maximum(order - 1, 0.05)
    order, s, falls = same_rank(order, s, falls)
    end = jnp.minimum(jnp.log1p((40.0 + 2 * jnp.maximum(1 - order, 0.0)) / s), 40.0 / falls)
    end = jnp.where(order > 1.05, end, jnp.log1p(45.0 / s))
    nodes, weights = (jnp.asarray(part) for part in panels.gauss(NODES, 0.0, 1.0))
    x = jnp.multiply(*same_rank(end[..., None], nodes))
    # e^{−s} is taken out, so that large s loses no digits.
    integrand = jnp.exp(-s[..., None] * jnp.expm1(x) - (order[..., None] - 1) * x)
    return jnp.exp(-s) * (integrand @ weights) * end


def singular_kernel_risk(
    n: int,
    dimension: int,
    singularity: ArrayLike,
    smoothness: ArrayLike,
    slope: ArrayLike,
    noise_variance: ArrayLike,
    bandwidth: ArrayLike,
    *,
    radius: ArrayLike = 1.0,
) -> Risk:
    """Squared bias and variance, exact at every n.

    The kernel is ‖u‖^{−a} on the unit ball with a = `singularity`, the bandwidth h ≤ radius, the design uniform in the
    ball of the given radius around x₀, and f the cone `slope`·‖x − x₀‖^β with β = `smoothness`. From a = d/2 on the
    formulas still hold, but the variance no longer falls like 1/(nh^d): a warning says so.

    With q = d/a, p̄ = (h/ρ)^d and G(s) = 1 − p̄ + p̄ q E_{q+1}(s):

        Var   = σ² n p̄ ∫ s q E_{q−1}(s) G^{n−1} ds
        bias² = L²h^{2β} {n p̄ ∫ s q E_{q−1+2β/a}(s) G^{n−1} ds + n(n−1) p̄² ∫ s [q E_{q+β/a}(s)]² G^{n−2} ds}

    >>> risk = singular_kernel_risk(100, 2, 0.5, 1.0, 1.0, 1.0, 10**-0.5)
    >>> round(float(risk.bias), 13), round(float(risk.variance), 13)
    (0.0383407288775, 0.1204182174366)
    """
    whole("n", n, 1)
    a, beta, slope, noise_variance = _kernel(dimension, singularity, smoothness, slope, noise_variance)
    h, radius = argument("bandwidth", bandwidth, POSITIVE), argument("radius", radius, POSITIVE)
    if known(h, radius) and np.any(np.asarray(h) > np.asarray(radius) * (1 + 1e-12)):
        raise ParameterError(f"bandwidth = {h} is above radius = {radius}; the design must fill the kernel's window")
    if known(a) and np.any(np.asarray(a) >= dimension / 2):
        warnings.warn(
            f"singularity = {float(a):g} is not below d/2 = {dimension / 2:g}: the window no longer averages, and the "
            "rate of the theorem is lost",
            OutsideValidityWarning,
            stacklevel=2,
        )
    q = dimension / a
    inside = (h / radius) ** dimension
    # Trapezoid rule in log s: the integrands are analytic and vanish doubly exponentially at the upper end, like a
    # power s^{min(2, q)} at the lower one, which moves down with the number of points in the window.
    slow = jnp.minimum(q, 2.0) / 2
    lower = -22.0 / slow - jnp.log1p(n * inside) / jnp.minimum(q, 1.0)
    x = jnp.linspace(lower, 6.0, 2049)
    s = jnp.exp(x)
    step = (6.0 - lower) / 2048

    orders = jnp.stack([q, q - 1, q - 1 + 2 * beta / a, q + beta / a])
    laplace, spread, same, different = exponential_integral(orders, s)
    # log G with 1 − q E_{q+1}(s) = 1 − e^{−s} + s E_q(s), the small number it is where s is small.
    log_g = jnp.log1p(-inside * (s * laplace - jnp.expm1(-s)))

    def integral(values):
        return step * jnp.sum(s * s * values)  # one s from the integrand, one from ds = s dx

    # log G is −∞ where a window as large as the design leaves nothing outside; then 0·∞ must be 0.
    power_1, power_2 = (jnp.exp(k * log_g) if k > 0 else jnp.ones_like(log_g) for k in (n - 1, n - 2))
    variance = noise_variance * n * inside * integral(q * spread * power_1)
    alone = n * inside * integral(q * same * power_1)
    paired = n * (n - 1) * inside**2 * integral((q * different) ** 2 * power_2)
    bias = slope**2 * h ** (2 * beta) * (alone + paired)
    return Risk(bias, variance)


def empty_window_probability(n: int, dimension: int, bandwidth: ArrayLike, *, radius: ArrayLike = 1.0) -> Floats:
    """(1 − (h/ρ)^d)^n: the chance that none of n uniform points of the ball of radius ρ lies within h of its centre.

    >>> f"{float(empty_window_probability(100, 2, 10**-0.5)):.6g}"
    '2.65614e-05'
    """
    whole("n", n, 1)
    whole("dimension", dimension, 1)
    inside = (argument("bandwidth", bandwidth, POSITIVE) / argument("radius", radius, POSITIVE)) ** dimension
    return jnp.exp(n * jnp.log1p(-jnp.minimum(inside, 1.0)))


def kernel_concentration(points: int, dimension: int, singularity: ArrayLike) -> Scalar:
    """E ΣK²/(ΣK)² given N points in the window: one over the number of points that the kernel averages over.

    N∫ s q E_{q−1}(s) (q E_{q+1}(s))^{N−1} ds → (q − 1)²/(q(q − 2)N), q = d/a > 2; one if N = 1.

    >>> round(100 * float(kernel_concentration(100, 2, 0.5)), 3)
    1.119
    """
    return singular_kernel_risk(points, dimension, singularity, 1.0, 0.0, 1.0, 1.0).variance


def singular_kernel_constants(
    dimension: int,
    singularity: ArrayLike,
    smoothness: ArrayLike,
    slope: ArrayLike,
    noise_variance: ArrayLike,
    *,
    density: ArrayLike | None = None,
) -> Risk:
    """Limits of n^r·bias² and n^r·variance, r = 2β/(2β+d), at bandwidth h = n^{−1/(2β+d)} and an interior point.

    Variance constant σ²(d−a)²/[d(d−2a) p V_d] with p = `density` at the point and V_d the volume of the unit ball,
    p V_d = 1 (uniform in the unit ball) unless given; bias constant L²((d−a)/(d−a+β))². For a < d/2 only.

    >>> [round(float(part), 10) for part in singular_kernel_constants(2, 0.5, 1.0, 1.0, 1.0, density=0.5)[:2]]
    [0.36, 0.7161972439]
    """
    a, beta, slope, noise_variance = _kernel(dimension, singularity, smoothness, slope, noise_variance)
    sentence = "singularity is not below d/2: the variance does not fall at the rate of the theorem"
    a = valid(a, 2 * a < dimension, sentence, lambda: f" (singularity = {a}, d = {dimension})")
    filled = 1.0 if density is None else argument("density", density, POSITIVE) * ball_volume(dimension)
    variance = noise_variance * (dimension - a) ** 2 / (dimension * (dimension - 2 * a) * filled)
    variance = valid(variance, jnp.isfinite(variance), "the unit ball has no volume left in so many dimensions")
    bias = slope**2 * ((dimension - a) / (dimension - a + beta)) ** 2
    return Risk(bias, variance)


def _kernel(dimension, singularity, smoothness, slope, noise_variance):
    whole("dimension", dimension, 1)
    why = "0 is the indicator kernel, and beyond 10 d it is the nearest neighbour's"
    steep = Allowed(lambda a: (a > 0) & (a <= 10 * dimension), f"above 0 and at most 10 d = {10 * dimension}")
    return (
        argument("singularity", singularity, steep, why),
        argument("smoothness", smoothness, PART, "Hölder's exponent"),
        argument("slope", slope, FINITE),
        argument("noise_variance", noise_variance, NOT_NEGATIVE),
    )


def ball_volume(dimension: int) -> float:
    """Volume of the unit ball in R^d."""
    whole("dimension", dimension, 1)
    # Through logarithms: both factors overflow long before the volume underflows.
    return math.exp(dimension / 2 * math.log(math.pi) - math.lgamma(1 + dimension / 2))
