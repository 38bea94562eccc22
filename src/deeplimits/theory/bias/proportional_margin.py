r"""The maximum margin in high dimension: its value, and how well it predicts.

n points x ~ N(0, 1) in R^p with labels y = ±1 that depend on x through g = ⟨θ, x⟩, ‖θ‖ = 1; p/n → ψ. With u = yg,
the margin κ* = max_{‖w‖=1} min_i y_i⟨w, x_i⟩ tends to max_m t/√(1+m²) where t solves E[(t − m u − Z)₊²] = ψ, Z ~
N(0, 1), and m is the ratio of the weights along θ to those across it.
"""

from functools import cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from deeplimits.errors import NotConverged, OutsideValidity, ParameterError
from deeplimits.numerics import arguments, panels, roots
from deeplimits.numerics.checks import converged
from deeplimits.numerics.shapes import Scalar

LABELS = ("sign", "logistic", "random")
FARTHEST = 9.0
NODES = 160
ANGLES = 120
TOLERANCE = 1e-10


class MaxMargin(NamedTuple):
    """The limit of the max-margin predictor."""

    margin: Scalar
    """κ*, for weights of norm one."""
    overlap: Scalar
    """Cosine of the angle between the weights and θ."""
    error: Scalar
    """Probability of a wrong label at a new point."""
    support: Scalar
    """Fraction of the points that lie on the margin."""
    residual: Scalar
    """How well the equations are solved."""


def proportional_max_margin(gamma: ArrayLike, *, labels: str = "sign", strength: ArrayLike = 1.0) -> MaxMargin:
    """Maximum margin, error and support of isotropic Gaussian data in the proportional limit.

    Setting     `gamma` ψ = p/n; labels 'sign' of g, 'logistic' with P(y = 1) = 1/(1 + e^{−ρg}), ρ = `strength`, or
                'random'
    Result      κ* = max_m t(m)/√(1+m²), E[(t − mu − Z)₊²] = ψ; overlap m/√(1+m²), error P(mu + Z < 0), support fraction
                P(t > mu + Z). Random labels: E(κ − Z)₊² = ψ, Gardner's capacity
    Validity    ψ above `separability_threshold`, below which the data are not separable
    References  montanari2019; deng2022; gardner1988; candes2020

    >>> found = proportional_max_margin(1.0, labels="random")
    >>> round(float(found.margin), 12), round(float(found.error), 12)
    (0.470655352618, 0.5)
    """
    psi = arguments.argument("gamma", gamma, arguments.POSITIVE)
    rho = arguments.argument("strength", strength, arguments.NOT_NEGATIVE)
    if arguments.known(psi, rho):
        # The threshold is a minimum that is looked for on the host.
        least = separability_threshold(labels, strength=float(rho))
        if not float(psi) > least:
            raise OutsideValidity(
                f"gamma = {float(psi):g} is not above {least:.6g}: large samples with these labels are not separable, "
                "so there is no margin; take more features per sample"
            )
    found = _max_margin(psi, rho, labels)
    sentence = "the equations of the margin were not solved: these labels may not be separable; take more features"
    return converged(found, found.residual < TOLERANCE * (1 + psi), sentence)


@partial(jax.jit, static_argnames="labels")
def _max_margin(psi: Scalar, strength: Scalar, labels: str) -> MaxMargin:
    u, weights = _law(labels, strength)
    if labels == "random":
        # The labels know nothing of θ: m = 0.
        t = _level(jnp.zeros(()), psi, u, weights)
        return _described(t, jnp.zeros(()), psi, u, weights)
    angles = jnp.linspace(0.0, jnp.pi / 2, ANGLES + 2)[1:-1]
    slopes = jnp.tan(angles)
    levels = jax.lax.stop_gradient(jax.vmap(lambda m: _level(m, psi, u, weights))(slopes))
    best = jnp.argmax(levels * jnp.cos(angles))
    point = jnp.stack([levels[best] * jnp.cos(angles[best]), angles[best]])

    def equations(point):
        kappa, angle = point
        m, t = jnp.tan(angle), kappa / jnp.cos(angle)
        value, by_t, by_m = _mean_square_and_slopes(t, m, u, weights)
        # dκ/dm = 0 along t(m): (1 + m²) H_m + t m H_t = 0; times cos² it stays finite at m → ∞
        return jnp.stack([value - psi, by_m + jnp.sin(angle) * jnp.cos(angle) * t * by_t])

    def newton(_, point):
        return point - jnp.linalg.solve(jax.jacfwd(equations)(point), equations(point))

    point = jax.lax.stop_gradient(jax.lax.fori_loop(0, 12, newton, point))
    # The last step carries the derivative with respect to gamma and strength.
    point = point - jnp.linalg.solve(jax.lax.stop_gradient(jax.jacfwd(equations)(point)), equations(point))
    m = jnp.tan(point[1])
    found = _described(point[0] / jnp.cos(point[1]), m, psi, u, weights)
    return found._replace(residual=jnp.max(jnp.abs(equations(point))))


@cache
def separability_threshold(labels: str, *, strength: float = 1.0) -> float:
    """The ratio p/n above which large samples are separable: min_m E(mu + Z)₋² (Candès and Sur); ½ for random labels.

    >>> separability_threshold("random"), separability_threshold("sign")
    (0.5, 0.0)
    """
    if labels == "sign":
        return 0.0
    if labels == "random":
        return 0.5
    from scipy.optimize import minimize_scalar

    u, weights = _law(labels, jnp.asarray(strength, float))

    def mean_square(m: float) -> float:
        return float(_mean_square(jnp.zeros(()), jnp.asarray(m), u, weights))

    found = minimize_scalar(mean_square, bracket=(0.0, 1.0), tol=1e-12)
    if not found.success:
        raise NotConverged(f"the threshold of {labels} labels of strength {strength:g} was not found: {found.message}")
    return float(found.fun)


def _law(labels: str, strength: Scalar) -> tuple[Float[Array, " nodes"], Float[Array, " nodes"]]:
    """Nodes and weights of the law of u = yg: density 2φ(u) on u > 0, 2φ(u)/(1 + e^{−ρu}), or φ(u)."""
    # u = L x² crowds nodes at zero, where the margin's integrand varies fastest if m is large.
    x, weights = panels.gauss(NODES, 0.0, 1.0)
    half, half_weights = FARTHEST * x**2, weights * 2 * FARTHEST * x
    half_weights = half_weights * np.exp(-(half**2) / 2) / np.sqrt(2 * np.pi)
    if labels == "sign":
        return jnp.asarray(half), jnp.asarray(2 * half_weights)
    u, mass = jnp.asarray(np.concatenate([-half, half])), jnp.asarray(np.concatenate([half_weights, half_weights]))
    if labels == "logistic":
        return u, 2 * mass * jax.nn.sigmoid(strength * u)
    if labels == "random":
        return u, mass
    raise ParameterError(f"labels = {labels!r} is not allowed; it must be one of {', '.join(LABELS)}")


def _mean_square(t, m, u, weights):
    """E(t − mu − Z)₊² = E[(a² + 1)Φ(a) + aφ(a)], a = t − mu."""
    a = t - m * u
    return weights @ ((a**2 + 1) * norm.cdf(a) + a * norm.pdf(a))


def _mean_square_and_slopes(t, m, u, weights):
    """E(t − mu − Z)₊² and its derivatives 2E(t − mu − Z)₊ by t and −2E u(t − mu − Z)₊ by m."""
    a = t - m * u
    cdf, pdf = norm.cdf(a), norm.pdf(a)
    # E(a − Z)₊ = aΦ(a) + φ(a)
    mean = 2 * weights * (a * cdf + pdf)
    return weights @ ((a**2 + 1) * cdf + a * pdf), jnp.sum(mean), -(mean @ u)


def _level(m, psi, u, weights):
    """t with E(t − mu − Z)₊² = ψ, which increases with t from zero."""
    # Where all of t − mu is below −40 nothing is left of the mean square in floating point.
    low, high = -m * FARTHEST - 40.0, jnp.sqrt(psi) + m * FARTHEST + 1.0
    return roots.bracketed(_excess, low, high, m, psi, u, weights, sentence="the level of a margin was not found")


def _excess(t, m, psi, u, weights):
    return _mean_square(t, m, u, weights) - psi


def _described(t, m, psi, u, weights) -> MaxMargin:
    root = jnp.sqrt(1 + m**2)
    return MaxMargin(
        margin=t / root,
        overlap=m / root,
        error=weights @ norm.cdf(-m * u),
        support=weights @ norm.cdf(t - m * u),
        residual=jnp.abs(_mean_square(t, m, u, weights) - psi),
    )
