r"""Closed forms for σ(x) = max(x, 0), with the convention σ'(0) = 0; one integral over the unit interval remains in I₄.

Everything is a function of correlations ρ, times powers of the variances. Fields that are equal or opposite up to
rounding are merged before a formula is used, because each formula is singular there while its value is not.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

PHI = 1 / math.sqrt(2 * math.pi)
# Correlations closer to ±1 than this, and residual variances smaller than this, are rounding errors.
COINCIDENT = 1e-10
VANISHING = 1e-11


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


def _angle_share(caa: Array, cbb: Array, cab: Array) -> Array:
    """1/4 + arcsin(ρ)/(2π) by the angle whose cosine is ρ: exact also near ρ = ±1."""
    angle = jnp.arctan2(*_safe(_root_determinant(caa, cbb, cab), cab))
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
    variances = jnp.diagonal(c)
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
    variances = jnp.diagonal(c)
    alive = jnp.all(variances > 0)
    deviations = jnp.sqrt(jnp.where(variances > 0, variances, 1.0))
    r = c / (deviations[:, None] * deviations)
    same = jnp.triu(r > 1 - COINCIDENT, 1)
    impossible = jnp.any(r < -1 + COINCIDENT) | ~alive
    # Each field that repeats an earlier one is replaced by an independent one, which halves the probability.
    repeats = jnp.any(same, axis=0)
    keep = (~repeats).astype(float)
    r = jnp.where(jnp.eye(4, dtype=bool), 1.0, r * keep[:, None] * keep)
    return jnp.where(impossible, 0.0, 2.0 ** jnp.sum(1 - keep) * _orthant(jnp.where(impossible, jnp.eye(4), r)))


def squares(c: Float[Array, "n n"], v: Float[Array, " n"], students: int) -> Float[Array, "p p"]:
    """Σ_cd v_c v_d I₄(i, j, c, d): one row (i, j, c) of the tensor at a time, time O(p² n²) with a large constant."""
    count = c.shape[0]
    first, second = jnp.triu_indices(students)
    third, fourth = jnp.triu_indices(count)
    doubled = jnp.where(third == fourth, 1.0, 2.0)

    def one(pair):
        def entry(rest):
            index = jnp.stack([pair[0], pair[1], rest[0], rest[1]])
            return i4(c[index][:, index])

        rests = (third, fourth)
        values = jax.lax.map(entry, rests, batch_size=64) if len(third) > 64 else jax.vmap(entry)(rests)
        return jnp.sum(doubled * v[third] * v[fourth] * values)

    values = jax.lax.map(one, (first, second))
    full = jnp.zeros((students, students)).at[first, second].set(values)
    return full + jnp.triu(full, 1).T


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
    # ρ_cd P₄ + ρ_ca φ U(b, c; d | a) + ρ_cb φ U(a, c; d | b) + φ U(a, b; d | c)
    return (
        r[2, 3] * _orthant(r)
        + r[2, 0] * PHI * _quarter_mean(r, 1, 2, 3, 0)
        + r[2, 1] * PHI * _quarter_mean(r, 0, 2, 3, 1)
        + PHI * _quarter_mean(r, 0, 1, 3, 2)
    )


def _quarter_mean(r: Array, x: int, y: int, z: int, given: int) -> Array:
    """U(x, y; z | i) = E[1_x 1_y relu_z | λ_i = 0] = Σ_s D_zs φ(D_ss) J₂(the other two, given also λ_s = 0)."""
    index = jnp.array([x, y, z])
    column = r[index, given]
    d = r[index][:, index] - column[:, None] * column
    d = jnp.where(jnp.eye(3, dtype=bool), _residual(column), d)
    total = jnp.zeros(())
    for s in range(3):
        u, w = [other for other in range(3) if other != s]
        euu = d[u, u] - d[u, s] ** 2 / d[s, s]
        eww = d[w, w] - d[w, s] ** 2 / d[s, s]
        euw = d[u, w] - d[u, s] * d[w, s] / d[s, s]
        # Fields in one plane leave nothing to correlate, and the sum does not depend on what is put here as long as it
        # is the limit along one path: that of independent noise of variance ε → 0 on every field, whose residual
        # covariance is ε(I + AAᵀ), A the regression on the two fields that are given.
        au, aw = (_regression(r, d, index, given, s, other) for other in (u, w))
        flat_u, flat_w = euu < VANISHING, eww < VANISHING
        both = flat_u & flat_w
        share = _angle_share(
            jnp.where(flat_u, 1 + au @ au, euu),
            jnp.where(flat_w, 1 + aw @ aw, eww),
            jnp.where(both, au @ aw, jnp.where(flat_u | flat_w, 0.0, euw)),
        )
        total = total + d[2, s] * PHI / jnp.sqrt(d[s, s]) * share
    return total


def _regression(r: Array, d: Array, index: Array, given: int, s: int, other: int) -> Float[Array, " 2"]:
    """Coefficients of a field's regression on λ_given and λ_s."""
    on_s = d[other, s] / d[s, s]
    return jnp.stack([r[index[other], given] - on_s * r[index[s], given], on_s])


# Tanh-sinh nodes on (0, 1) as pairs (u, 1 − u), each without cancellation.
_STEP = 6.4 / 120
_S = _STEP * np.arange(-60, 61)
_LEFT = 1 / (1 + np.exp(np.pi * np.sinh(_S)))
_NODE = 1 / (1 + np.exp(-np.pi * np.sinh(_S)))
_WEIGHT = _STEP * np.pi * np.cosh(_S) * _NODE * _LEFT
_PAIRS = (((0, 1), (2, 3)), ((0, 2), (1, 3)), ((0, 3), (1, 2)), ((1, 2), (0, 3)), ((1, 3), (0, 2)), ((2, 3), (0, 1)))


def _orthant(r: Float[Array, "4 4"]) -> Array:
    r"""P₄, by Plackett's identity along the correlations uρ, u from 0 to 1.

    P₄ = 1/16 + ∫₀¹ Σ_{i<j} ρ_ij/(2π√(1 − u²ρ_ij²)) [1/4 + arcsin(ρ_kl·ij(u))/(2π)] du
    """
    u, left = jnp.asarray(_NODE), jnp.asarray(_LEFT)

    def minus(rho):  # 1 − u²ρ² = (1 − uρ)(1 + uρ), each factor from 1 − u
        return (left + u * (1 - rho)) * (left + u * (1 + rho))

    integrand = jnp.zeros_like(u)
    for (i, j), (k, l) in _PAIRS:
        determinant = minus(r[i, j])
        ik, il, jk, jl = (u * r[i, k], u * r[i, l], u * r[j, k], u * r[j, l])
        ij = u * r[i, j]
        # Covariance of (k, l) given (i, j).
        ekk = minus(r[i, k]) - (jk - ij * ik) ** 2 / determinant
        ell = minus(r[i, l]) - (jl - ij * il) ** 2 / determinant
        ekl = u * r[k, l] - ik * il - (jk - ij * ik) * (jl - ij * il) / determinant
        flat = (ekk < 1e-15) | (ell < 1e-15)
        share = _angle_share(jnp.where(flat, 1.0, ekk), jnp.where(flat, 1.0, ell), jnp.where(flat, 0.0, ekl))
        integrand = integrand + r[i, j] / (2 * math.pi * jnp.sqrt(determinant)) * share
    return 1 / 16 + jnp.asarray(_WEIGHT) @ integrand
