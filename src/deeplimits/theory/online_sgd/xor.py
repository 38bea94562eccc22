r"""The XOR mixture learnt by a two-layer ReLU network.

y fair, X ~ ½N(μ, I/λ) + ½N(−μ, I/λ) if y = 1, with ν in place of μ if y = 0; μ, ν orthonormal. Network v·g(WX) with K
neurons, logistic loss with ridge α, δ = c/N. Statistics: v_i, m^μ_i = W_i·μ, m^ν_i = W_i·ν and R_ij, the overlaps
of the parts of the W_i orthogonal to μ, ν.
"""

import math
from itertools import combinations
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array

from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.numerics import arguments, flows
from deeplimits.numerics.checks import converged, valid
from deeplimits.numerics.quasi_random import gaussian_points

CRITICAL_RIDGE = 1 / 8
JITTER = 1e-12
MOST_ENUMERATED = 8
UNCERTAIN = 2e-3
"""Statistics may change by this, next to 1 and their own size, where steps and points are halved."""


class XorState(NamedTuple):
    """The summary statistics of K neurons."""

    output: Array
    """v, shape (K,)."""
    along_mu: Array
    """m^μ, shape (K,)."""
    along_nu: Array
    """m^ν, shape (K,)."""
    overlaps: Array
    """R, shape (K, K)."""


def velocity(
    state: XorState, separation: ArrayLike, ridge: ArrayLike, step: ArrayLike, *, points: int = 2048
) -> XorState:
    """The ballistic velocity: Gaussian expectations over the four clusters, by 2·`points` quasi-random points each.

    >>> import jax.numpy as jnp
    >>> at = XorState(jnp.ones(1), jnp.ones(1), jnp.zeros(1), jnp.zeros((1, 1)))
    >>> round(float(-velocity(at, 1e12, 0.0, 1.0).output[0]), 6)
    -0.067235
    """
    lam = arguments.number("separation", separation, arguments.POSITIVE)
    alpha = arguments.number("ridge", ridge, arguments.NOT_NEGATIVE)
    c = arguments.number("step", step, arguments.NOT_NEGATIVE)
    check_state(state)
    arguments.whole("points", points, 1)
    v, mu, nu, overlaps = (jnp.asarray(part, float) for part in state)
    width = v.shape[0]
    z = jnp.asarray(gaussian_points(width + 2, points)) / jnp.sqrt(lam)
    zeta = z[:, 2:] @ _root(overlaps).T  # N(0, R/λ)

    def cluster(mean_mu, mean_nu, label):
        x_mu, x_nu = mean_mu + z[:, 0], mean_nu + z[:, 1]
        h = x_mu[:, None] * mu[None, :] + x_nu[:, None] * nu[None, :] + zeta
        active = jnp.where(h > 0, 1.0, 0.0)
        error = jax.nn.sigmoid(jnp.maximum(h, 0.0) @ v) - label
        weighted = active * error[:, None] / len(z)
        return (
            jnp.maximum(h, 0.0).T @ error / len(z),  # C_i = E g(h_i) e
            x_mu @ weighted,  # A^μ_i = E (X·μ) 1{h_i>0} e
            x_nu @ weighted,
            weighted.T @ zeta,  # A^⊥_ij = E ζ_j 1{h_i>0} e
            (weighted * error[:, None]).T @ active,  # B_ij = E 1{h_i>0} 1{h_j>0} e²
        )

    # Around μ and −μ with label 1, around ν and −ν with label 0
    means = jnp.array([[1.0, 0.0, 1.0], [-1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [0.0, -1.0, 0.0]]).T
    out, a_mu, a_nu, a_perp, both = (part.mean(axis=0) for part in jax.lax.map(lambda m: cluster(*m), tuple(means)))
    # dR_ij/dt = −v_i A^⊥_ij − v_j A^⊥_ji − 2αR_ij + (c/λ) v_i v_j B_ij
    pull = v[:, None] * a_perp
    change = -pull - pull.T - 2 * alpha * overlaps + c / lam * jnp.outer(v, v) * both
    return XorState(-out - alpha * v, -v * a_mu - alpha * mu, -v * a_nu - alpha * nu, change)


def xor_ballistic(
    start: XorState, times: ArrayLike, separation: ArrayLike, ridge: ArrayLike, step: ArrayLike,
    *, points: int = 2048, steps: int | None = None,
) -> XorState:  # fmt: skip
    """The statistics at increasing times (a leading axis), by fixed Runge-Kutta steps of order four.

    Four steps in a unit of time, and at least 36, unless their number is given; where the times are not known yet, 36.
    Half as many, with half the points, must lead to the same statistics, or `NotConverged` is raised.

    >>> start = XorState(jnp.ones(1), jnp.ones(1), jnp.zeros(1), 0.1 * jnp.eye(1))
    >>> found = xor_ballistic(start, jnp.array([0.0, 2.0]), 100.0, 0.1, 1.0, points=256)
    >>> [round(float(part), 2) for part in found.output[:, 0]]
    [1.0, 0.92]
    """
    arguments.of_kind("start", start, XorState)
    check_state(start)
    arguments.number("separation", separation, arguments.POSITIVE)
    arguments.number("ridge", ridge, arguments.NOT_NEGATIVE)
    arguments.number("step", step, arguments.NOT_NEGATIVE)
    arguments.whole("points", points, 2)
    count = arguments.whole("steps", steps, 2) if steps is not None else usual_steps(times, 4.0, 36)

    moments = jnp.atleast_1d(jnp.asarray(times, float))

    def path(used: int, taken: int) -> XorState:
        def field(t, state):
            return velocity(state, separation, ridge, step, points=used)

        return flows.fixed_steps(field, start, moments, max(taken, len(moments)))

    fine, coarse = path(points, count), path(points // 2, count // 2)
    apart = [jnp.max(jnp.abs(one - other) / (1 + jnp.abs(one))) for one, other in zip(fine, coarse, strict=True)]
    sentence = "the statistics depend on the number of steps or of points; take more steps, or more points"
    return converged(fine, jnp.stack(apart) <= UNCERTAIN, sentence)


def usual_steps(times: ArrayLike, per_unit: float, least: int) -> int:
    if not arguments.known(times):
        return least
    return max(least, math.ceil(per_unit * float(np.max(np.asarray(times, float), initial=0.0))))


def check_state(state: XorState) -> None:
    """Refuse statistics that no K neurons have: shapes that do not fit, or overlaps that are not positive semidefinite.

    >>> check_state(XorState(jnp.ones(1), jnp.ones(1), jnp.zeros(1), jnp.ones((1, 1))))
    """
    width = arguments.array("output", state.output, ("K",)).shape[0]
    arguments.array("along_mu", state.along_mu, (width,), why="one for each neuron")
    arguments.array("along_nu", state.along_nu, (width,), why="one for each neuron")
    _check_overlaps(state.overlaps, width)


def _check_overlaps(overlaps: ArrayLike, width: int) -> None:
    arguments.array("overlaps", overlaps, (width, width), why="one for each pair of neurons")
    if not arguments.known(overlaps):
        return
    matrix = np.asarray(overlaps, float)
    least = float(np.linalg.eigvalsh((matrix + matrix.T) / 2)[0])
    if least < -JITTER * (1 + np.trace(matrix)) or np.max(np.abs(matrix - matrix.T)) > 1e-9 * (1 + np.max(matrix)):
        raise ParameterError(
            f"overlaps is not symmetric and positive semidefinite (least eigenvalue {least:g}), so that no "
            "neurons have them; give the inner products of vectors"
        )


def escape_matrix(
    output: Array, overlaps: Array, separation: ArrayLike, ridge: ArrayLike,
    *, mean: str = "mu", points: int = 2048,
) -> Array:  # fmt: skip
    """The rates at which m^μ leaves 0: dm^μ/dt = (matrix) m^μ to first order; those of m^ν with `mean="nu"`.

    For ν the labels y = 1 and 0 change places in
    −v_i[½(1 + 1/λ)T¹_ij + T⁰_ij/(2λ)] − αδ_ij with T^y_ij = δ_ij √(λ/(2πR_ii)) E[σ(v·g(h)) − y | h_i = 0]
    + v_j E[1{h_i>0} 1{h_j>0} σ'(v·g(h))], h ~ N(0, R/λ).
    """
    lam = arguments.number("separation", separation, arguments.POSITIVE)
    alpha = arguments.number("ridge", ridge, arguments.NOT_NEGATIVE)
    v = arguments.array("output", output, ("K",))
    width = v.shape[0]
    arguments.whole("points", points, 1)
    _check_overlaps(overlaps, width)
    overlaps = jnp.asarray(overlaps, float)
    positive = jnp.diag(overlaps) > 0
    sentence = "overlaps has a zero on its diagonal: a neuron in the plane of μ and ν does not leave 0 at a linear rate"
    overlaps = valid(overlaps, positive, sentence)
    h = jnp.asarray(gaussian_points(width, points)) @ _root(overlaps).T / jnp.sqrt(lam)
    chance = jax.nn.sigmoid(jnp.maximum(h, 0.0) @ v)
    active = jnp.where(h > 0, 1.0, 0.0)
    together = (active * (chance * (1 - chance))[:, None]).T @ active / len(h) * v[None, :]
    variances = jnp.diag(overlaps)

    def on_the_kink(i):
        # h given h_i = 0: take off the regression on h_i
        given = h - h[:, i, None] * overlaps[None, i] / variances[i]
        return jnp.mean(jax.nn.sigmoid(jnp.maximum(given, 0.0) @ v))

    at_zero = jnp.stack([on_the_kink(i) for i in range(width)])
    density = jnp.sqrt(lam / (2 * jnp.pi * variances))
    ones, zeros = (jnp.diag(density * (at_zero - label)) + together for label in (1.0, 0.0))
    own, other = (ones, zeros) if arguments.choice("mean", mean, ("mu", "nu")) == "mu" else (zeros, ones)
    return -v[:, None] * ((1 + 1 / lam) / 2 * own + other / (2 * lam)) - alpha * jnp.eye(width)


def type_mass(ridge: ArrayLike) -> Array:
    """S = log((1 − 4α)/(4α)): Σ v_i² over the neurons of an active type, 0 < α < 1/8.

    >>> round(float(type_mass(0.05)), 12)
    1.38629436112
    """
    alpha = arguments.argument(
        "ridge", ridge, arguments.inside(0, CRITICAL_RIDGE), "nothing but zero is at rest from 1/8 on"
    )
    return jnp.log1p(-4 * alpha) - jnp.log(4 * alpha)


def rest_loss(ridge: float, active: int) -> float:
    """The regularized loss at a rest point with a active types: ¼[a log(1+e^{−S}) + (4−a) log 2] + αaS.

    >>> round(rest_loss(0.05, 4), 12)
    0.500402423538
    """
    if not 0 < ridge < CRITICAL_RIDGE:
        raise OutsideValidity(f"ridge = {ridge:g}: nonzero rest points exist only for 0 < ridge < 1/8")
    if arguments.whole("active", active) > 4:
        raise ParameterError(f"active = {active} is not allowed; there are four types")
    s = float(type_mass(ridge))
    return (active * math.log1p(math.exp(-s)) + (4 - active) * math.log(2)) / 4 + ridge * active * s


def xor_component_count(width: int) -> int:
    """The number of connected components of the rest points of the noiseless dynamics.

    Setting     width K, ridge 0 < α < 1/8, λ → ∞: each neuron is at rest at 0 or in one of four types (±μ, ±ν), and the
                neurons of a type share a mass Σv² = S
    Result      n(K) = Σ_{a=0}^{min(4,K)} C(4, a)·(K! if a = K, else 1): with a spare neuron, mass moves
                continuously, so that only the set of active types counts; without one the assignments are isolated.
                n(4) = 39, of which the 4! = 24 with all four types are stable
    Validity    K ≥ 1
    References  benarous2022

    >>> [xor_component_count(width) for width in range(1, 8)]
    [5, 17, 35, 39, 16, 16, 16]
    """
    width = arguments.whole("width", width, 1)
    return sum(math.comb(4, a) * (math.factorial(width) if a == width else 1) for a in range(min(4, width) + 1))


def components_by_enumeration(width: int) -> int:
    """The same number from the definition: union of neighbouring assignments of neurons to types or to zero.

    Two rest points with the same active types are neighbours where one arises from the other by emptying a neuron
    whose type has another neuron, or by filling an empty one.
    """
    width = arguments.whole("width", width, 1)
    if width > MOST_ENUMERATED:
        raise ParameterError(
            f"width = {width} is not allowed; 5^width assignments are looked at, so take at most {MOST_ENUMERATED}, or "
            "xor_component_count"
        )
    patterns = list(np.ndindex(*[5] * width))
    parent = {pattern: pattern for pattern in patterns}

    def root(x):
        while parent[x] != x:
            x = parent[x]
        return x

    for pattern in patterns:
        for i, kind in enumerate(pattern):
            if kind and pattern.count(kind) > 1:
                other = root((*pattern[:i], 0, *pattern[i + 1 :]))
                parent[root(pattern)] = other
    return len({root(pattern) for pattern in patterns})


def xor_success_probability(width: int) -> float:
    """P(all four types are found) = 1 − 4(3/4)^K + 6(1/2)^K − 4(1/4)^K, each neuron choosing one of four at random.

    >>> xor_success_probability(4)
    0.09375
    """
    width = arguments.whole("width", width, 1)
    return sum((-1) ** a * math.comb(4, a) * ((4 - a) / 4) ** width for a in range(5))


def active_types_probability(width: int, active: int) -> float:
    """P(exactly a types are found) = C(4, a)·#{surjections of K neurons onto a types}/4^K.

    >>> active_types_probability(4, 3)
    0.5625
    """
    width = arguments.whole("width", width, 1)
    if arguments.whole("active", active) > 4:
        raise ParameterError(f"active = {active} is not allowed; there are four types")
    onto = sum((-1) ** j * math.comb(active, j) * (active - j) ** width for j in range(active + 1))
    return sum(1 for _ in combinations(range(4), active)) * onto / 4**width


def _root(overlaps: Array) -> Array:
    # Cholesky with a jitter far below any overlap that matters: R may be singular, and rounding may take it below.
    width = overlaps.shape[0]
    return jnp.linalg.cholesky(overlaps + JITTER * (1 + jnp.trace(overlaps)) * jnp.eye(width))
