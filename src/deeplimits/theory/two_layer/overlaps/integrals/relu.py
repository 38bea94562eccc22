r"""Closed forms for σ(x) = max(x, 0), with the convention σ'(0) = 0; one integral over the unit interval remains in I₄.

Everything is a function of correlations ρ, times powers of the variances. Fields that are equal or opposite up to
rounding are merged before a formula is used, because each formula is singular there while its value is not.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from deeplimits.theory.two_layer.overlaps.symmetric import diagonal, filled, upper

PHI = 1 / math.sqrt(2 * math.pi)
# Correlations closer to ±1 than this are rounding errors, and so are residual variances below the next.
COINCIDENT = 1e-14
VANISHING = 1e-15
# Four fields whose squared heights are all smaller than this count as lying in one plane: an error of the same order.
PLANE = 1e-13


def i2(caa: Array, cbb: Array, cab: Array) -> Array:
    # √(C_aa C_bb)/(2π) [√(1 − ρ²) + ρ(π/2 + arcsin ρ)]
    return _root_determinant(caa, cbb, cab) / (2 * math.pi) + cab * _angle_share(caa, cbb, cab)


def j2(caa: Array, cbb: Array, cab: Array) -> Array:
    # 1/4 + arcsin(ρ)/(2π), zero where a field vanishes
    return jnp.where((caa > 0) & (cbb > 0), _angle_share(caa, cbb, cab), 0.0)


def k20(caa: Array, cbb: Array, cab: Array) -> Array:
    # E δ(λ_a) relu(λ_b) = √(C_aa C_bb − C_ab²)/(2π C_aa)
    positive = caa > 0
    return jnp.where(positive, _root_determinant(caa, cbb, cab) / (2 * math.pi * jnp.where(positive, caa, 1.0)), 0.0)


def _angle_share(caa: Array, cbb: Array, cab: Array, root_determinant: Array | None = None) -> Array:
    """1/4 + arcsin(ρ)/(2π) by the angle whose cosine is ρ: exact also near ρ = ±1."""
    root = _root_determinant(caa, cbb, cab) if root_determinant is None else root_determinant
    angle = jnp.arctan2(*_safe(root, cab))
    return 0.5 - angle / (2 * math.pi)


def _safe(y: Array, x: Array) -> tuple[Array, Array]:
    # arctan2(0, 0) has no derivative; two fields that both vanish have no angle either.
    nothing = (y == 0) & (x == 0)
    return jnp.where(nothing, 0.0, y), jnp.where(nothing, 1.0, x)


def _root_determinant(caa: Array, cbb: Array, cab: Array) -> Array:
    determinant = caa * cbb - cab**2
    positive = determinant > 4e-16 * caa * cbb
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, determinant, 1.0)), 0.0)


def i4(c: Float[Array, "4 4"]) -> Float[Array, ""]:
    """E 1[λ_0 > 0] 1[λ_1 > 0] relu(λ_2) relu(λ_3), for any covariance, singular ones included."""
    variances = diagonal(c)
    alive = jnp.all(variances > 0)
    deviations = jnp.sqrt(jnp.where(variances > 0, variances, 1.0))
    r = c / (deviations[:, None] * deviations)
    r = jnp.where(alive, r, jnp.eye(4))

    same = r > 1 - COINCIDENT
    opposite = r < -1 + COINCIDENT
    merged = same[2, 3]
    # An indicator is redundant if it says what a rectified field, or the other indicator, says already.
    keep_a = ~(same[0, 2] | same[0, 3])
    keep_b = ~(same[1, 2] | same[1, 3] | (same[0, 1] & keep_a))
    nothing = opposite[2, 3] | opposite[0, 1] | jnp.any(opposite[:2, 2:]) | ~alive
    indicators = keep_a.astype(int) + keep_b.astype(int)
    # With one indicator left, it is put first.
    order = jnp.where(keep_a, jnp.arange(4), jnp.array([1, 0, 2, 3]))
    r = r[order][:, order]

    def chosen(wanted_merged: bool, wanted: int) -> tuple[Bool[Array, ""], Float[Array, "4 4"]]:
        here = (merged == wanted_merged) & (indicators == wanted) & ~nothing
        # A formula that is not the one wanted sees independent fields, so that it stays finite.
        return here, jnp.where(here, r, jnp.eye(4))

    total = jnp.zeros(())
    for wanted_merged, wanted, formula in (
        (True, 0, lambda r: jnp.asarray(0.5)),
        (True, 1, lambda r: _one_indicator_square(r[0, 2])),
        (True, 2, lambda r: _two_indicators_square(r)),
        (False, 0, lambda r: i2(jnp.ones(()), jnp.ones(()), r[2, 3])),
        (False, 1, lambda r: _one_indicator(r[jnp.array([0, 2, 3])][:, jnp.array([0, 2, 3])])),
        (False, 2, _two_indicators),
    ):
        here, safe = chosen(wanted_merged, wanted)
        total = total + jnp.where(here, formula(safe), 0.0)
    return deviations[2] * deviations[3] * total


def j4(c: Float[Array, "4 4"]) -> Float[Array, ""]:
    """P(all four fields are positive), for fields that may coincide but not be opposite."""
    variances = diagonal(c)
    alive = jnp.all(variances > 0)
    deviations = jnp.sqrt(jnp.where(variances > 0, variances, 1.0))
    r = c / (deviations[:, None] * deviations)
    same = jnp.triu(r > 1 - COINCIDENT, 1)
    impossible = jnp.any(r < -1 + COINCIDENT) | ~alive
    # Each field that repeats an earlier one is replaced by an independent one, which halves the probability.
    repeats = jnp.any(same, axis=0)
    keep = (~repeats).astype(float)
    r = jnp.where(jnp.eye(4, dtype=bool), 1.0, jnp.where(impossible, 0.0, r * keep[:, None] * keep))
    return jnp.where(impossible, 0.0, 2.0 ** jnp.sum(1 - keep) * _orthant(r, _left_over(_vectors(r))))


def squares(c: Float[Array, "n n"], v: Float[Array, " n"], students: int) -> Float[Array, "p p"]:
    """Σ_cd v_c v_d I₄(i, j, c, d): one row (i, j, c) of the tensor at a time, time O(p² n²) with a large constant."""
    count = c.shape[0]
    first, second = (jnp.asarray(places) for places in upper(students))
    third, fourth = (jnp.asarray(places) for places in upper(count))
    doubled = np.where(np.equal(*upper(count)), 1.0, 2.0)

    def one(pair):
        def entry(rest):
            index = jnp.stack([pair[0], pair[1], rest[0], rest[1]])
            return i4(c[index][:, index])

        rests = (third, fourth)
        values = jax.lax.map(entry, rests, batch_size=64) if len(third) > 64 else jax.vmap(entry)(rests)
        return jnp.sum(doubled * v[third] * v[fourth] * values)

    values = jax.lax.map(one, (first, second))
    return filled(values, students)


def _one_indicator_square(rho: Array) -> Array:
    # E 1_a relu_c² = 1/4 + arcsin(ρ)/(2π) + ρ√(1 − ρ²)/(2π)
    return _angle_share(jnp.ones(()), jnp.ones(()), rho) + rho * _root_determinant(jnp.ones(()), jnp.ones(()), rho) / (
        2 * math.pi
    )


def _three_orthant(r: Array, i: int, j: int, k: int) -> Array:
    # P₃ = 1/8 + (arcsin ρ_ij + arcsin ρ_ik + arcsin ρ_jk)/(4π)
    one = jnp.ones(())
    shares = _angle_share(one, one, r[i, j]) + _angle_share(one, one, r[i, k]) + _angle_share(one, one, r[j, k])
    return 1 / 8 + (shares - 3 / 4) / 2


def _half_mean(r: Array, x: int, z: int, given: int) -> Array:
    """T(x, z | i) = E[1_x relu_z | λ_i = 0] = (√D_zz + D_xz/√D_xx)/(2√(2π)), D the covariance given λ_i = 0."""
    dxx, dzz = _residual(r[x, given]), _residual(r[z, given])
    dxz = r[x, z] - r[x, given] * r[z, given]
    return (jnp.sqrt(dzz) + dxz / jnp.sqrt(dxx)) * PHI / 2


def _residual(rho: Array) -> Array:
    return jnp.maximum((1 - rho) * (1 + rho), 1e-300)


def _two_indicators_square(r: Float[Array, "4 4"]) -> Array:
    # E 1_a 1_b relu_c² = P₃ + ρ_ca φ T(b, c | a) + ρ_cb φ T(a, c | b)
    return _three_orthant(r, 0, 1, 2) + r[2, 0] * PHI * _half_mean(r, 1, 2, 0) + r[2, 1] * PHI * _half_mean(r, 0, 2, 1)


def _one_indicator(r: Float[Array, "3 3"]) -> Array:
    # E 1_a relu_c relu_d = ρ_cd P₃ + ρ_ca φ T(c, d | a) + φ T(a, d | c)
    return r[1, 2] * _three_orthant(r, 0, 1, 2) + r[1, 0] * PHI * _half_mean(r, 1, 2, 0) + PHI * _half_mean(r, 0, 2, 1)


def _two_indicators(r: Float[Array, "4 4"]) -> Array:
    # ρ_cd P₄ + ρ_ca φ U(b, c; d | a) + ρ_cb φ U(a, c; d | b) + φ U(a, b; d | c),
    # U(x, y; d | i) = E[1_x 1_y relu_d | λ_i = 0] = Σ_s D_ds φ(D_ss) J₂(the other two, given also λ_s = 0)
    left = _left_over(_vectors(r))
    given = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2])
    s = np.array([1, 2, 3, 0, 2, 3, 0, 1, 3])
    dss = _residual(r[s, given])
    dds = jnp.where(s == 3, dss, r[3, s] - r[3, given] * r[s, given])
    factor = jnp.where(given == 2, 1.0, r[2, given])
    share = _shares(r, left)[_PAIR_OF[given, s]]
    return r[2, 3] * _orthant(r, left) + PHI**2 * jnp.sum(factor * dds / jnp.sqrt(dss) * share)


# The six pairs of fields (i, j), and the other two (k, l) of each; the place of a pair by its fields.
_I, _J = np.triu_indices(4, 1)
_OTHERS = np.array([[2, 3], [1, 3], [1, 2], [0, 3], [0, 2], [0, 1]])
_PAIR_OF = np.zeros((4, 4), int)
_PAIR_OF[_I, _J] = _PAIR_OF[_J, _I] = np.arange(6)


def _vectors(r: Float[Array, "4 4"]) -> Float[Array, "4 4"]:
    """Rows whose inner products are r to rounding, also if r is singular: Cholesky with the largest pivot first."""
    rest, columns = r, []
    for _ in range(4):
        largest = jnp.argmax(diagonal(rest))
        pivot = rest[largest, largest]
        alive = pivot > VANISHING
        column = jnp.where(alive, rest[:, largest] / jnp.sqrt(jnp.where(alive, pivot, 1.0)), 0.0)
        columns.append(column)
        rest = rest - column[:, None] * column
    return jnp.stack(columns, axis=1)


def _left_over(v: Float[Array, "4 4"]) -> Float[Array, "6 2 4"]:
    """For every pair, what is left of the two other vectors orthogonal to it.

    Angles between these vectors lose no digits where the fields are almost dependent; those from conditional
    covariances lose half of them. Projecting twice makes them orthogonal to rounding.
    """
    first = v[_I]
    second = v[_J] - jnp.sum(v[_J] * first, axis=-1, keepdims=True) * first
    length = jnp.sum(second**2, axis=-1, keepdims=True)
    second = jnp.where(length > 0, second / jnp.sqrt(jnp.where(length > 0, length, 1.0)), 0.0)
    left = v[_OTHERS]
    for basis in (first, second, first, second):
        left = left - jnp.sum(left * basis[:, None], axis=-1, keepdims=True) * basis[:, None]
    return left


def _areas(left: Float[Array, "6 2 4"]) -> Float[Array, " 6"]:
    """√(|x|²|y|² − (x·y)²) from the 2 × 2 minors, which do not cancel where the vectors are nearly parallel."""
    minors = left[:, 0, _I] * left[:, 1, _J] - left[:, 0, _J] * left[:, 1, _I]
    square = jnp.sum(minors**2, axis=-1)
    return jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1.0)), 0.0)


def _shares(r: Float[Array, "4 4"], left: Float[Array, "6 2 4"]) -> Float[Array, " 6"]:
    """J₂(k, l) given λ_i = λ_j = 0, for every pair."""
    norms = jnp.sum(left**2, axis=-1)
    generic = _angle_share(norms[:, 0], norms[:, 1], jnp.sum(left[:, 0] * left[:, 1], axis=-1), _areas(left))
    # Fields in one plane leave nothing to correlate, and the sum over all terms does not depend on what is put here as
    # long as it is the limit along one path: that of independent noise of variance ε → 0 on every field, whose residual
    # covariance is ε(I + AAᵀ), A the regression on the two fields that are given; uncorrelated if one is not small.
    i, j = _I[:, None], _J[:, None]
    on_j = (r[_OTHERS, j] - r[_OTHERS, i] * r[i, j]) / _residual(r[i, j])
    a = jnp.stack([r[_OTHERS, i] - on_j * r[i, j], on_j], axis=-1)
    spread = 1 + jnp.sum(a**2, axis=-1)
    in_plane = _angle_share(spread[:, 0], spread[:, 1], jnp.sum(a[:, 0] * a[:, 1], axis=-1))
    # How far three fields are from lying in a plane, by the field left out: the least of their squared heights.
    heights = jnp.full(4, jnp.inf).at[_OTHERS[:, ::-1]].min(norms)
    some_in_plane = jnp.any(heights[_OTHERS] < VANISHING, axis=-1)
    return jnp.where(jnp.all(heights < PLANE), in_plane, jnp.where(some_in_plane, 1 / 4, generic))


# Tanh-sinh nodes on (0, 1) as pairs (u, 1 − u), each without cancellation.
_STEP = 6.4 / 120
_S = _STEP * np.arange(-60, 61)
_LEFT = 1 / (1 + np.exp(np.pi * np.sinh(_S)))
_NODE = 1 / (1 + np.exp(-np.pi * np.sinh(_S)))
_WEIGHT = _STEP * np.pi * np.cosh(_S) * _NODE * _LEFT


def _orthant(r: Float[Array, "4 4"], left: Float[Array, "6 2 4"]) -> Array:
    r"""P₄, by Plackett's identity along the correlations uρ, u from 0 to 1.

    P₄ = 1/16 + ∫₀¹ Σ_{i<j} ρ_ij/(2π√(1 − u²ρ_ij²)) [1/4 + arcsin(ρ_kl·ij(u))/(2π)] du

    The correlation of k and l given i and j is a cofactor of the matrix R(u) = (1 − u)I + uR over minors; it and
    det R(u) are polynomials in 1 − u and u whose coefficients are minors of R.
    """
    u, rest = jnp.asarray(_NODE), jnp.asarray(_LEFT)
    rho = r[_I, _J]
    area = _residual(rho)
    # Elementary symmetric polynomials of R's eigenvalues: sums of principal minors, none of them negative. Those of
    # three fields are found in the pairs (0, 1) and (2, 3).
    e2 = jnp.sum(area)
    e3 = jnp.sum(area[np.array([0, 5])] * jnp.sum(left[np.array([0, 5])] ** 2, axis=(1, 2)))
    e4 = area[0] * _areas(left)[0] ** 2
    determinant = rest**4 + 4 * u * rest**3 + e2 * u**2 * rest**2 + e3 * u**3 * rest + e4 * u**4

    rho, area = rho[:, None], area[:, None]
    # 1 − u²ρ² = (1 − uρ)(1 + uρ), each factor from 1 − u
    minor = (rest + u * (1 - rho)) * (rest + u * (1 + rho))
    k, l = _OTHERS.T
    other = r[k, l][:, None]
    middle = 2 * other - (r[k, _I] * r[_I, l] + r[k, _J] * r[_J, l])[:, None]
    last = area * jnp.sum(left[:, 0] * left[:, 1], axis=-1, keepdims=True)
    cofactor = u * (other * rest**2 + middle * u * rest + last * u**2)
    share = 0.5 - jnp.arctan2(jnp.sqrt(determinant * minor), cofactor) / (2 * math.pi)
    integrand = jnp.sum(rho / (2 * math.pi * jnp.sqrt(minor)) * share, axis=0)
    return 1 / 16 + jnp.asarray(_WEIGHT) @ integrand
