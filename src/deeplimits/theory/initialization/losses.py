r"""What two correlated inputs lose of their covariance in one layer: E σ(u)² − E σ(u)σ(v), without cancellation.

u and v have variance K and correlation 1 − g. Several ways to one number, each where it keeps its digits:

    Price's theorem       K ∫_0^g K̇(1 − t) dt, a sum of positive terms, for closed forms and for kinked σ and small Kg
    half the difference   ½E(σ(u) − σ(v))² by quadrature; for smooth σ and small Kg over the independent (u ± v)/2,
                          with σ(u) − σ(v) as an integral of σ'
    Hermite series        Σ_k h_k²(1 − (1 − g)^k), for smooth σ where the series is complete
    subtraction           for closed forms and large g, where nothing cancels
"""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from deeplimits.models.activations import Activation, ActivationLike
from deeplimits.models.activations import activation as named
from deeplimits.numerics import panels
from deeplimits.numerics.shapes import Floats
from deeplimits.theory.gaussian import moments
from deeplimits.theory.gaussian.dual_activations import closed_form
from deeplimits.theory.gaussian.duals.numerical import Quadrature, hermite_rows
from deeplimits.theory.gaussian.pairs import Pair
from deeplimits.theory.gaussian.quadrature import joint_rule, line_nodes

_DEGREE = 160
_LARGEST = 64.0
"""The variance up to which Hermite coefficients are resolved; the series is complete only far below."""
_COMPLETE = 1e-14
"""The series is taken where K E σ'² = Σ k h_k² holds to this, so that what it leaves out is below rounding."""
_CLOSE = 1.0
"""Below this Kg u and v are close; above, differences of σ have their digits."""
_NARROW = 0.25
"""Differences of σ over less than twice this are integrals of σ'."""
_BESIDE = 1e-30
"""So close to 0 derivatives are those at 0, from one side."""
_INSIDE = panels.gauss(8)
_HALF = 32
_RULE = panels.gauss(24, 0.0, 1.0)
_HALVINGS = 30
# [0, 2^−30] with t = s² (kinked σ have roots of t there), then panels that double: K̇ varies on the scale 1/K of t.
_FINEST = 2.0**-_HALVINGS
_DOUBLING = panels.composite(2.0 ** np.arange(-_HALVINGS, 1.0), 10)
_SHARES = np.concatenate([_FINEST * _RULE.nodes**2, _DOUBLING.nodes])
_WEIGHTS = np.concatenate([_FINEST * 2 * _RULE.nodes * _RULE.weights, _DOUBLING.weights])


@functools.partial(jax.jit, static_argnums=0)
def lost(activation: ActivationLike, gap: Floats, kernel: Floats) -> Floats:
    """E σ(u)² − E σ(u)σ(v) for variances `kernel` and correlation 1 − `gap`, of one shape.

    >>> round(float(lost("tanh", jnp.asarray(0.5), jnp.asarray(1.0))), 12)
    0.207970077194
    """
    return _lost(_bent(named(activation)), gap, kernel)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _lost(sigma: Activation, gap: Floats, kernel: Floats) -> Floats:
    if closed_form(sigma) is not None:
        return _from_closed_form(sigma, gap, kernel)
    flat = jax.lax.map(lambda point: _one(sigma, *point), (jnp.ravel(gap), jnp.ravel(kernel)))
    return flat.reshape(gap.shape)


@_lost.defjvp
def _lost_jvp(sigma, primals, tangents):
    (gap, kernel), (gap_moves, kernel_moves) = primals, tangents
    # ∂/∂g = K K̇(1 − g) by Price's theorem
    by_gap = kernel * kept_slope(sigma, gap, kernel)

    def difference(kernel):
        root = positive_root(kernel)
        return moments.second_moment(sigma, kernel) - _dual(sigma).value(Pair(root, root, gap, 2 - gap))

    _, by_kernel = jax.jvp(difference, (kernel,), (kernel_moves,))
    return _lost(sigma, gap, kernel), by_gap * gap_moves + by_kernel


@functools.partial(jax.jit, static_argnums=0)
def kept_slope(activation: ActivationLike, gap: Floats, kernel: Floats) -> Floats:
    """K̇ = E σ'(u)σ'(v)"""
    sigma, root = _bent(named(activation)), positive_root(kernel)
    if closed_form(sigma) is not None or not sigma.smooth:
        return _dual(sigma).slope(Pair(root, root, gap, 2 - gap))

    def one(point):
        gap, root = point
        rows = hermite_rows(sigma.derivative, root, _DEGREE, _LARGEST) ** 2
        total = moments.slope_moment(sigma, root**2)
        return jax.lax.cond(
            _missing(jnp.sum(rows), total, root),
            lambda: Quadrature(sigma).slope(Pair(root, root, gap, 2 - gap)),
            lambda: jnp.sum(rows * (1 - gap) ** jnp.arange(_DEGREE + 1.0)),
        )

    return jax.lax.map(one, (jnp.ravel(gap), jnp.ravel(root))).reshape(gap.shape)


@functools.cache
def _bent(sigma: Activation) -> Activation:
    """σ with a kink at 0 named where σ'' alone jumps there, as of ELU or softsign: no series, no smooth quadrature."""
    if closed_form(sigma) is not None or not sigma.smooth:
        return sigma
    with jax.ensure_compile_time_eval():
        below, above = np.asarray(jnp.broadcast_to(sigma.second_derivative(jnp.asarray([-_BESIDE, _BESIDE])), (2,)))
    return sigma if abs(above - below) <= 1e-9 * (1 + abs(above)) else dataclasses.replace(sigma, kinks=(0.0,))


def positive_root(kernel: Floats) -> Floats:
    """√K, with a finite derivative at 0."""
    return jnp.where(kernel > 0, jnp.sqrt(jnp.where(kernel > 0, kernel, 1.0)), 0.0)


def _dual(sigma: Activation):
    return closed_form(sigma) or Quadrature(sigma)


def _missing(found: Floats, total: Floats, root: Floats) -> Array:
    """Whether a Hermite series leaves out more than rounding."""
    complete = jnp.abs(total - found) <= _COMPLETE * total
    return ~(complete & (root**2 <= _LARGEST))


def _from_closed_form(sigma: Activation, gap: Floats, kernel: Floats) -> Floats:
    root, dual = positive_root(kernel), _dual(sigma)
    near = jnp.minimum(gap, 0.5)
    shares = _SHARES.reshape(-1, *[1] * gap.ndim)
    slopes = dual.slope(Pair(root, root, near * shares, 2 - near * shares))
    total = jnp.tensordot(jnp.asarray(_WEIGHTS), jnp.broadcast_to(slopes, (len(_WEIGHTS), *gap.shape)), axes=1)
    value = dual.value(Pair(root, root, gap, 2 - gap))
    return jnp.where(gap < 0.5, kernel * near * total, moments.second_moment(sigma, kernel) - value)


def _one(sigma: Activation, gap: Floats, kernel: Floats) -> Floats:
    root = positive_root(kernel)

    def by_price():
        # ∫_0^g K̇ dt = 2g ∫_0^1 s K̇(1 − gs²) ds
        t = gap * _RULE.nodes**2
        slopes = Quadrature(sigma).slope(Pair(root, root, t, 2 - t))
        return kernel * gap * jnp.sum(2 * _RULE.weights * _RULE.nodes * slopes)

    def by_differences():
        def half_square(u, v):
            return (sigma.value(u) - sigma.value(v)) ** 2 / 2

        return joint_rule(half_square, Pair(root, root, gap, 2 - gap), sigma.kinks)[0]

    if not sigma.smooth:
        return jax.lax.cond(kernel * gap < _CLOSE, by_price, by_differences)
    rows = hermite_rows(sigma.value, root, _DEGREE, _LARGEST) ** 2
    degree = jnp.arange(_DEGREE + 1.0)

    def by_series():
        # 1 − c^k = −expm1(k log(1 − g)); where c ≤ 0 nothing cancels
        safe = jnp.minimum(gap, 0.9)
        powers = jnp.where(gap < 0.9, -jnp.expm1(degree * jnp.log1p(-safe)), 1 - (1 - gap) ** degree)
        return jnp.sum(rows * powers)

    # K E σ'² = Σ k h_k²
    missing = _missing(jnp.sum(degree * rows), kernel * moments.slope_moment(sigma, kernel), root)
    close = functools.partial(_of_close_inputs, sigma, gap, kernel)
    return jax.lax.cond(missing, lambda: jax.lax.cond(kernel * gap < _CLOSE, close, by_differences), by_series)


def _of_close_inputs(sigma: Activation, gap: Floats, kernel: Floats) -> Floats:
    """½E(σ(m + h) − σ(m − h))² for independent m ~ N(0, K(1 − g/2)) and h ~ N(0, Kg/2)"""
    m, weight = line_nodes(kernel * (1 - gap / 2))
    z, own = np.polynomial.hermite_e.hermegauss(2 * _HALF)
    # Even in h: half the nodes with twice the weight.
    h, own = jnp.sqrt(kernel * gap / 2) * z[_HALF:], 2 * own[_HALF:] / math.sqrt(2 * math.pi)

    def square(h):
        inner = jnp.tensordot(_INSIDE.weights, sigma.derivative(m[None, :] + h * _INSIDE.nodes[:, None]), axes=1)
        difference = jnp.where(h < _NARROW, h * inner, sigma.value(m + h) - sigma.value(m - h))
        return jnp.sum(weight * difference**2)

    return jnp.sum(jnp.asarray(own) * jax.lax.map(square, h)) / 2
