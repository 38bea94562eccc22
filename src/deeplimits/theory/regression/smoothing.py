"""Exact risks of local averages: nearest neighbours, and kernel smoothers with a singular kernel.

All are risks at one point x₀ of the estimate of f, for labels Y = f(X) + noise, averaged over the design. Designs are
uniform in a ball around x₀.
"""

import math

import jax.numpy as jnp
from jax.scipy.special import gammaln
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.errors import ParameterError
from deeplimits.numerics import panels
from deeplimits.theory.regression.risks import Risk


def order_statistic_moment(power: ArrayLike, k: int, n: int, dimension: int) -> Float[Array, ""]:
    """E R^power, R the distance of the (k+1)-st nearest of n uniform points in the unit ball; 1 if k = n.

    Γ(k+1+q/d) Γ(n+1) / (Γ(k+1) Γ(n+1+q/d)): R^d is a Beta(k+1, n−k) variable.
    """
    if not 1 <= k <= n:
        raise ParameterError(f"order_statistic_moment: k = {k} is not allowed; it must be between 1 and n = {n}")
    share = jnp.asarray(power, float) / dimension
    if k == n:
        return jnp.ones_like(share)
    near, far = gammaln(jnp.stack([k + 1 + share, n + 1 + share]))
    return jnp.exp(near - math.lgamma(k + 1) + math.lgamma(n + 1) - far)


def nearest_neighbours_bias_linear(slope: ArrayLike, k: int, n: int, dimension: int) -> Float[Array, ""]:
    """E bias² of the k-NN average for a linear f with gradient norm `slope`: g² m₂ / (k(d+2)).

    >>> round(float(nearest_neighbours_bias_linear(1.0, k=5, n=50, dimension=2)), 13)
    0.0058823529412
    """
    second = order_statistic_moment(2.0, k, n, dimension)
    return jnp.asarray(slope, float) ** 2 * second / (k * (dimension + 2))


def nearest_neighbours_bias_cone(
    slope: ArrayLike, power: ArrayLike, k: int, n: int, dimension: int
) -> Float[Array, ""]:
    """E bias² of the k-NN average for the cone f = L‖x − x₀‖^β.

    L² m_{2β} [(1/k) d/(d+2β) + (1 − 1/k)(d/(d+β))²]

    >>> round(float(nearest_neighbours_bias_cone(1.0, 0.5, k=5, n=50, dimension=2)), 13)
    0.2173209777969
    """
    slope, power = jnp.asarray(slope, float), jnp.asarray(power, float)
    moment = order_statistic_moment(2 * power, k, n, dimension)
    same = dimension / (dimension + 2 * power)
    different = (dimension / (dimension + power)) ** 2
    return slope**2 * moment * (same / k + (1 - 1 / k) * different)


NODES = 120


def exponential_integral(order: ArrayLike, s: Float[Array, " points"]) -> Float[Array, "... points"]:
    """Generalized exponential integral E_ν(s) = ∫₁^∞ e^{−st} t^{−ν} dt for real ν > 1 and s > 0, to 1e-13 relative.

    Integrated in x = log t by Gauss-Legendre; the range ends where either e^{−s e^x} or e^{−(ν−1)x} has vanished.
    """
    order = jnp.asarray(order, float)[..., None]
    end = jnp.minimum(jnp.log1p(40.0 / s), 40.0 / (order - 1))
    nodes, weights = (jnp.asarray(part) for part in panels.gauss(NODES, 0.0, 1.0))
    x = end[..., None] * nodes
    # e^{−s} is taken out, so that large s loses no digits.
    integrand = jnp.exp(-s[:, None] * jnp.expm1(x) - (order[..., None] - 1) * x)
    return jnp.exp(-s) * (integrand @ weights) * end


def singular_kernel_risk(
    n: int,
    dimension: int,
    singularity: ArrayLike,
    smoothness: ArrayLike,
    slope: ArrayLike,
    noise_variance: ArrayLike,
    bandwidth: ArrayLike,
    radius: ArrayLike = 1.0,
) -> Risk:
    """Squared bias and variance, exact at every n.

    The kernel is ‖u‖^{−a} on the unit ball with a = `singularity` < d/2, the bandwidth h ≤ radius, the design uniform
    in the ball of the given radius around x₀, and f the cone `slope`·‖x − x₀‖^β with β = `smoothness`.

    With q = d/a, p̄ = (h/ρ)^d and G(s) = 1 − p̄ + p̄ q E_{q+1}(s):

        Var   = σ² n p̄ ∫ s q E_{q−1}(s) G^{n−1} ds
        bias² = L²h^{2β} {n p̄ ∫ s q E_{q−1+2β/a}(s) G^{n−1} ds + n(n−1) p̄² ∫ s [q E_{q+β/a}(s)]² G^{n−2} ds}

    >>> risk = singular_kernel_risk(100, 2, 0.5, 1.0, 1.0, 1.0, 10**-0.5)
    >>> round(float(risk.bias), 13), round(float(risk.variance), 13)
    (0.0383407288775, 0.1204182174366)
    """
    a, beta, slope, noise_variance, h, radius = (
        jnp.asarray(value, float) for value in (singularity, smoothness, slope, noise_variance, bandwidth, radius)
    )
    q = dimension / a
    inside = (h / radius) ** dimension
    # Trapezoid rule in log s: the integrands are analytic and vanish doubly exponentially at the upper end, like a
    # power of s at the lower one, which moves down with the number of points in the window.
    lower = -22.0 - jnp.log1p(n * inside)
    x = jnp.linspace(lower, 6.0, 1025)
    s = jnp.exp(x)
    step = (6.0 - lower) / 1024

    orders = jnp.stack([q, q - 1, q - 1 + 2 * beta / a, q + beta / a])
    laplace, spread, same, different = exponential_integral(orders, s)
    # log G with 1 − q E_{q+1}(s) = 1 − e^{−s} + s E_q(s), the small number it is where s is small.
    log_g = jnp.log1p(-inside * (s * laplace - jnp.expm1(-s)))

    def integral(values):
        return step * jnp.sum(s * s * values)  # one s from the integrand, one from ds = s dx

    power_1, power_2 = jnp.exp((n - 1) * log_g), jnp.exp((n - 2) * log_g)
    variance = noise_variance * n * inside * integral(q * spread * power_1)
    alone = n * inside * integral(q * same * power_1)
    paired = n * (n - 1) * inside**2 * integral((q * different) ** 2 * power_2)
    bias = slope**2 * h ** (2 * beta) * (alone + paired)
    return Risk(bias, variance)


def empty_window_probability(
    n: int, dimension: int, bandwidth: ArrayLike, radius: ArrayLike = 1.0
) -> Float[Array, "..."]:
    """(1 − (h/ρ)^d)^n: the chance that none of n uniform points of the ball of radius ρ lies within h of its centre.

    >>> f"{float(empty_window_probability(100, 2, 10**-0.5)):.6g}"
    '2.65614e-05'
    """
    inside = (jnp.asarray(bandwidth, float) / jnp.asarray(radius, float)) ** dimension
    return jnp.exp(n * jnp.log1p(-jnp.minimum(inside, 1.0)))


def singular_kernel_constants(
    dimension: int, singularity: ArrayLike, smoothness: ArrayLike, slope: ArrayLike, noise_variance: ArrayLike
) -> Risk:
    """Limits of n^r·bias² and n^r·variance, r = 2β/(2β+d), at bandwidth h = n^{−1/(2β+d)}, uniform design.

    Variance constant σ²(d−a)²/[d(d−2a)] (with n p V_d h^d = n h^d), bias constant L²((d−a)/(d−a+β))².
    """
    a, beta, slope, noise_variance = (
        jnp.asarray(value, float) for value in (singularity, smoothness, slope, noise_variance)
    )
    variance = noise_variance * (dimension - a) ** 2 / (dimension * (dimension - 2 * a))
    bias = slope**2 * ((dimension - a) / (dimension - a + beta)) ** 2
    return Risk(bias, variance)


def ball_volume(dimension: int) -> float:
    """Volume of the unit ball in R^d."""
    return math.pi ** (dimension / 2) / math.gamma(1 + dimension / 2)
