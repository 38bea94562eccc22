r"""Weak and strong recovery: whether SGD finds some of the signal, or all of it, and after how many samples.

Weak: P(m ≥ η) → 1 for some fixed η > 0. Strong: m → 1 in probability. |m| where the loss is even.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr
from jax.typing import ArrayLike
from jaxtyping import Array

from deeplimits.errors import OutsideValidity
from deeplimits.numerics import arguments, panels
from deeplimits.theory.online_sgd import critical_window
from deeplimits.theory.online_sgd.effective import EffectiveDynamics, fluctuations
from deeplimits.theory.online_sgd.exit_times import search_law, search_offset
from deeplimits.theory.online_sgd.landscapes import Landscape
from deeplimits.theory.online_sgd.spherical_ode import growth_rate, plateau, velocity

NEAR = 1e-6
"""A correlation that stands for the equator's neighbourhood."""
STRONG = 1e-9
FARTHEST = 6.0
"""Standard Gaussian starts beyond this are left out."""


class Recovery(NamedTuple):
    """Where SGD rests that starts at a random point, N being infinite."""

    exponent: int
    upper: float
    """Where m rests that leaves the equator upwards; 0 where it does not leave."""
    lower: float
    """The same downwards; the `upper` one where the equator is crossed upwards (exponent 1)."""

    @property
    def weak(self) -> bool:
        """Whether |m| ≥ η for some η > 0, with probability tending to one."""
        return min(abs(self.upper), abs(self.lower)) > 0

    @property
    def strong(self) -> bool:
        """Whether |m| → 1 in probability."""
        return min(abs(self.upper), abs(self.lower)) > 1 - STRONG

    def probability(self, threshold: float, absolute: bool = False) -> float:
        """lim P(m ≥ η), or P(|m| ≥ η): 0, 1/2 or 1, a start being in either half with equal chances."""
        eta = float(arguments.number("threshold", threshold, arguments.inside(0, 1)))
        ends = [abs(end) if absolute else end for end in (self.upper, self.lower)]
        return sum(end > eta for end in ends) / 2


def recovery(landscape: Landscape, step: ArrayLike) -> Recovery:
    """What a constant step recovers of the signal: weak and strong recovery for any landscape.

    Setting     spherical online SGD on a loss that sees x through m = ⟨x, θ⟩, step δ/N (`step` = δ), uniform start;
                δ = 0 means steps that vanish with N, slowly enough: gradient flow on φ
    Limit       N → ∞, then the number of steps over N
    Result      m rests at the first zero of dm/dτ = −δ(1 − m²)φ'(m) − (δ²/2)s(m)m away from the equator. Weak
                recovery: it leaves the equator, always for exponent 1, for δ < 2a₂/s(0) for exponent 2, and for
                exponents k ≥ 3 for steps that vanish like N^{−(k−2)/2} only. Strong recovery: it rests at 1, which
                for fixed δ asks s(1) = 0 (no label noise, well specified), and for vanishing steps φ' < 0 on (0, 1)
    Validity    a single N proves nothing: `measure.recovery_report` looks at runs of several
    References  benarous2021

    >>> from deeplimits.theory.online_sgd import online_pca
    >>> found = recovery(online_pca(1.0), 0.3)
    >>> found.weak, found.strong, round(found.upper, 10), found.probability(0.5), found.probability(0.5, absolute=True)
    (True, False, 0.7337993857, 0.5, 1.0)
    """
    arguments.of_kind("landscape", landscape, Landscape)
    delta = float(arguments.number("step", step, arguments.NOT_NEGATIVE))
    if delta == 0:
        # Gradient flow is what small steps do, without the retraction.
        flowing = landscape._replace(squared_gradient=jnp.zeros_like)
        return _rests(flowing, 1.0)
    return _rests(landscape, delta)


def _rests(landscape: Landscape, delta: float) -> Recovery:
    def leaving(side: float) -> float:
        speed = float(velocity(landscape, side * NEAR, delta))
        if side * speed <= 0 and not (landscape.exponent == 1 and speed > 0):
            return 0.0
        # An exponent of one carries a start below the equator across it.
        return plateau(landscape, NEAR if landscape.exponent == 1 else side * NEAR, delta)

    return Recovery(landscape.exponent, leaving(1.0), leaving(-1.0))


def recovery_probability(
    landscape: Landscape, step: ArrayLike, dimension: int, samples_per_dimension: ArrayLike, threshold: float
) -> Array:
    """P(η is passed within αN samples) from a uniform start, to leading order in N: near 0, near 1, and between.

    Setting     spherical online SGD with step δ/N in dimension N, α = `samples_per_dimension` (one or many), η =
                `threshold`; |m| passing η for even exponents, m for odd ones
    Limit       N → ∞ with δ fixed for k ≤ 2 and δN^{(k−2)/2} = c fixed for k ≥ 3
    Result      k = 1: √N(m − m(α)) is Gaussian around the ODE from 0, so that all is decided in a window N^{−1/2}
                k = 2: P = P(|G| ≥ e^{b−x}), x = κα − ½ log N, b from `search_offset`
                k ≥ 3: P(u passes η√N before ϑ = c²α/N^{k−2}), du = [(a_k/c)u^{k−1} − (s(0)/2)u]dϑ + σdB, averaged
                over the start u = G
    Validity    the deviation at finite N is O(log N/N) for k = 2 and O(N^{−1/2}) for the others, with large constants
                for k ≥ 3; η below the plateau
    References  benarous2021

    >>> from deeplimits.theory.online_sgd import online_pca
    >>> [round(float(p), 4) for p in recovery_probability(online_pca(1.0), 0.3, 10**6, [5.0, 15.0, 25.0], 0.4)]
    [0.0, 0.5203, 0.9923]
    """
    arguments.of_kind("landscape", landscape, Landscape)
    n = arguments.whole("dimension", dimension, 3)
    delta = arguments.number("step", step, arguments.POSITIVE)
    alpha = jnp.atleast_1d(arguments.argument("samples_per_dimension", samples_per_dimension, arguments.NOT_NEGATIVE))
    eta = arguments.number("threshold", threshold, arguments.inside(0, 1))
    if landscape.exponent == 1:
        found = _around_the_ode(landscape, delta, n, alpha, eta)
    elif landscape.exponent == 2:
        x = growth_rate(landscape, delta) * alpha - math.log(n) / 2
        found = search_law(search_offset(landscape, eta, delta), x).cdf
    else:
        found = _in_the_window(landscape, delta, n, alpha, eta)
    return found.reshape(np.shape(samples_per_dimension))


def _around_the_ode(landscape: Landscape, delta: Array, n: int, alpha: Array, eta: Array) -> Array:
    dynamics = EffectiveDynamics(drift=lambda u: -velocity(landscape, u, delta), corrector=jnp.zeros_like)

    def noise(u):
        return (delta**2 * landscape.directional_variance(u))[:, None]

    # √N m is standard Gaussian at the start.
    order = np.argsort(np.asarray(alpha), kind="stable")
    distinct, back = np.unique(np.asarray(alpha)[order], return_inverse=True)
    path, covariance = fluctuations(dynamics, noise, jnp.zeros(1), distinct, covariance=jnp.ones((1, 1)))
    score = math.sqrt(n) * (path[:, 0] - eta) / jnp.sqrt(covariance[:, 0, 0])
    return ndtr(score)[back][np.argsort(order, kind="stable")]


def _in_the_window(landscape: Landscape, delta: Array, n: int, alpha: Array, eta: Array) -> Array:
    k = landscape.exponent
    level = float(eta) * math.sqrt(n)
    if level < FARTHEST:
        raise OutsideValidity(
            f"threshold = {float(eta):g} is within the starts' own size at dimension = {n}; take a dimension of at "
            f"least {math.ceil((FARTHEST / float(eta)) ** 2)}"
        )
    c, times = delta * n ** ((k - 2) / 2), delta**2 * alpha
    rule = panels.even(0.0 if k % 2 == 0 else -FARTHEST, FARTHEST, 2 if k % 2 == 0 else 4, 8)
    weights = rule.weights * np.exp(-(rule.nodes**2) / 2)
    passed = [critical_window.passage_probability(landscape, c, u, level, times) for u in rule.nodes]
    return jnp.asarray(weights / weights.sum()) @ jnp.stack(passed)
