r"""Closed forms for σ(x) = max(x, 0), with the convention σ'(0) = 0; one integral over the unit interval remains in I₄.

Everything is a function of correlations ρ, times powers of the variances. Fields that are equal or opposite up to
rounding are merged before a formula is used, because each formula is singular there while its value is not.

Which digits the covariances determine: I₂, J₂, K₂₀ and I₃ follow the covariances as given, to the last digit. J₄, and
I₄ where its two indicators are nearly parallel at an angle θ, count the wedge between two half-spaces, of measure θ/2π;
one rounding of a covariance moves θ ≈ √(2(1 − ρ)) by 1e-16/θ. Angles below 6e-8 are not told from 0: an error of 1e-8
at most, which is what the last digit of the covariance decides there.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from deeplimits.numerics.shapes import Scalar
from deeplimits.numerics.symmetric import diagonal, filled, upper
from deeplimits.theory.gaussian.duals.abstract_dual import Dual
from deeplimits.theory.gaussian.duals.kinked import PiecewiseLinear
from deeplimits.theory.gaussian.fields.abstract_fields import Fields
from deeplimits.theory.gaussian.fields.frames import FIRST, OTHERS, PAIR_OF, SECOND, VANISHING, Frame, frame
from deeplimits.theory.gaussian.pairs import pair

PHI = 1 / math.sqrt(2 * math.pi)
COINCIDENT = 2e-15
"""Correlations closer to ±1 than this are rounding errors."""


class Relu(Fields):
    """σ(x) = max(x, 0)."""

    @property
    def dual(self) -> Dual:
        return PiecewiseLinear(1.0, 0.0)

    def j2(self, caa: Array, cbb: Array, cab: Array) -> Array:
        # 1/4 + arcsin(ρ)/(2π), zero where a field vanishes
        return jnp.where((caa > 0) & (cbb > 0), super().j2(caa, cbb, cab), 0.0)

    def k20(self, caa: Array, cbb: Array, cab: Array) -> Array:
        # E δ(λ_a) relu(λ_b) = √(C_aa C_bb − C_ab²)/(2π C_aa)
        where = pair(caa, cbb, cab)
        alive = (caa > 0) & (where.determinant > 0)
        root = jnp.sqrt(jnp.where(alive, where.determinant, 1.0))
        return jnp.where(alive, root / (2 * math.pi * jnp.where(alive, caa, 1.0)), 0.0)

    def i4(self, c: Float[Array, "4 4"]) -> Scalar:
        return i4(c)

    def j4(self, c: Float[Array, "4 4"]) -> Scalar:
        return j4(c)

    def squares(self, c: Float[Array, "n n"], v: Float[Array, " n"], students: int) -> Float[Array, "p p"]:
        """Σ_cd v_c v_d I₄(i, j, c, d): one row (i, j, c) of the tensor at a time, time O(p² n²), a large constant."""
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


def i4(c: Float[Array, "4 4"]) -> Scalar:
    """E 1[λ_0 > 0] 1[λ_1 > 0] relu(λ_2) relu(λ_3), for any covariance, singular ones included."""
    alive = jnp.all(diagonal(c) > 0)
    c = jnp.where(alive, c, jnp.eye(4))
    deviations = jnp.sqrt(diagonal(c))
    same, opposite = _coincidences(c)
    merged = same[2, 3]
    # An indicator is redundant if it says what a rectified field, or the other indicator, says already.
    keep_a = ~(same[0, 2] | same[0, 3])
    keep_b = ~(same[1, 2] | same[1, 3] | (same[0, 1] & keep_a))
    nothing = opposite[2, 3] | opposite[0, 1] | jnp.any(opposite[:2, 2:]) | ~alive
    indicators = keep_a.astype(int) + keep_b.astype(int)
    # Two rectified fields that nearly coincide are their mean twice, up to the square of their distance.
    mean = (c[2] + c[3] * (deviations[2] / deviations[3])) / 2
    c = jnp.where(merged, c.at[2, :2].set(mean[:2]).at[:2, 2].set(mean[:2]), c)
    # With one indicator left, it is put first.
    order = jnp.where(keep_a, jnp.arange(4), jnp.array([1, 0, 2, 3]))
    c = c[order][:, order]
    # A field that a formula does not ask for is made independent of the others, so that all formulas stay finite.
    asked = jnp.stack([indicators > 0, indicators > 1, jnp.asarray(True), ~merged]) & ~nothing
    here = frame(jnp.where(asked[:, None] & asked[None, :], c, jnp.diag(diagonal(c))))

    total = jnp.zeros(())
    for wanted_merged, wanted, formula in (
        (True, 0, lambda f: jnp.asarray(0.5)),
        (True, 1, lambda f: _one_indicator_square(f)),
        (True, 2, lambda f: _two_indicators_square(f)),
        (False, 0, lambda f: _no_indicator(f)),
        (False, 1, lambda f: _one_indicator(f)),
        (False, 2, _two_indicators),
    ):
        wanted_here = (merged == wanted_merged) & (indicators == wanted) & ~nothing
        total = total + jnp.where(wanted_here, formula(here), 0.0)
    return deviations[2] * deviations[3] * total


def j4(c: Float[Array, "4 4"]) -> Scalar:
    """P(all four fields are positive), for fields that may coincide but not be opposite."""
    alive = jnp.all(diagonal(c) > 0)
    c = jnp.where(alive, c, jnp.eye(4))
    same, opposite = _coincidences(c)
    impossible = jnp.any(opposite) | ~alive
    # Each field that repeats an earlier one is replaced by an independent one, which halves the probability.
    repeats = jnp.any(jnp.triu(same, 1), axis=0)
    asked = ~repeats & ~impossible
    here = frame(jnp.where(asked[:, None] & asked[None, :], c, jnp.diag(diagonal(c))))
    return jnp.where(impossible, 0.0, 2.0 ** jnp.sum(repeats.astype(float)) * _orthant(here))


def _coincidences(c: Float[Array, "4 4"]):
    """Which fields are equal, and which opposite, up to rounding and a factor."""
    variances = diagonal(c)
    where = pair(variances[:, None], variances[None, :], c)
    return where.gap < COINCIDENT, where.cogap < COINCIDENT


def _share(sine: Array, cosine: Array) -> Array:
    """1/4 + arcsin(ρ)/(2π) = P(both positive), by the angle whose sine and cosine these are up to a factor."""
    # arctan2(0, 0) has no derivative; two fields that both vanish have no angle either.
    nothing = (sine == 0) & (cosine == 0)
    return 0.5 - jnp.arctan2(jnp.where(nothing, 0.0, sine), jnp.where(nothing, 1.0, cosine)) / (2 * math.pi)


def _pair_share(f: Frame, i: int, j: int) -> Array:
    return _share(f.sines[i, j], f.correlations[i, j])


def _no_indicator(f: Frame) -> Array:
    # E relu_c relu_d = √(1 − ρ²)/2π + ρ(1/4 + arcsin(ρ)/2π)
    return f.sines[2, 3] / (2 * math.pi) + f.correlations[2, 3] * _pair_share(f, 2, 3)


def _one_indicator_square(f: Frame) -> Array:
    # E 1_a relu_c² = 1/4 + arcsin(ρ)/(2π) + ρ√(1 − ρ²)/(2π)
    return _pair_share(f, 0, 2) + f.correlations[0, 2] * f.sines[0, 2] / (2 * math.pi)


def _three_orthant(f: Frame, i: int, j: int, k: int) -> Array:
    # P₃ = 1/8 + (arcsin ρ_ij + arcsin ρ_ik + arcsin ρ_jk)/(4π)
    return 1 / 8 + (_pair_share(f, i, j) + _pair_share(f, i, k) + _pair_share(f, j, k) - 3 / 4) / 2


def _half_mean(f: Frame, x: int, z: int, given: int) -> Array:
    """T(x, z | i) = E[1_x relu_z | λ_i = 0] = (√D_zz + D_xz/√D_xx)/(2√(2π)), D the covariance given λ_i = 0."""
    return (f.sines[given, z] + f.conditional[given, x, z] / f.sines[given, x]) * PHI / 2


def _two_indicators_square(f: Frame) -> Array:
    # E 1_a 1_b relu_c² = P₃ + ρ_ca φ T(b, c | a) + ρ_cb φ T(a, c | b)
    r = f.correlations
    return _three_orthant(f, 0, 1, 2) + r[2, 0] * PHI * _half_mean(f, 1, 2, 0) + r[2, 1] * PHI * _half_mean(f, 0, 2, 1)


def _one_indicator(f: Frame) -> Array:
    # E 1_a relu_c relu_d = ρ_cd P₃ + ρ_ca φ T(c, d | a) + φ T(a, d | c)
    r = f.correlations
    return r[2, 3] * _three_orthant(f, 0, 2, 3) + r[2, 0] * PHI * _half_mean(f, 2, 3, 0) + PHI * _half_mean(f, 0, 3, 2)


def _two_indicators(f: Frame) -> Array:
    # ρ_cd P₄ + ρ_ca φ U(b, c; d | a) + ρ_cb φ U(a, c; d | b) + φ U(a, b; d | c),
    # U(x, y; d | i) = E[1_x 1_y relu_d | λ_i = 0] = Σ_s D_ds φ(D_ss) J₂(the other two, given also λ_s = 0)
    given = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2])
    s = np.array([1, 2, 3, 0, 2, 3, 0, 1, 3])
    factor = jnp.where(given == 2, 1.0, f.correlations[2, given])
    along = f.conditional[given, 3, s] / f.sines[given, s]
    return f.correlations[2, 3] * _orthant(f) + PHI**2 * jnp.sum(factor * along * _shares(f)[PAIR_OF[given, s]])


def _shares(f: Frame) -> Float[Array, " 6"]:
    """J₂(k, l) given λ_i = λ_j = 0, for every pair."""
    area = f.sines[FIRST, SECOND] ** 2
    generic = _share(jnp.sqrt(area) * f.volume, f.products)
    # Fields in one plane leave nothing to correlate, and the sum over all terms does not depend on what is put here as
    # long as it is the limit along one path: that of independent noise of variance ε → 0 on every field, whose residual
    # covariance is ε(I + AAᵀ), A the regression on the two fields that are given; uncorrelated if one is not small.
    i, j = FIRST[:, None], SECOND[:, None]
    a = jnp.stack([f.conditional[j, OTHERS, i], f.conditional[i, OTHERS, j]], axis=-1) / area[:, None, None]
    spread = 1 + jnp.sum(a**2, axis=-1)
    product = jnp.sum(a[:, 0] * a[:, 1], axis=-1)
    # (1 + |x|²)(1 + |y|²) − (x·y)² = 1 + |x|² + |y|² + (x ∧ y)²
    wedge = a[:, 0, 0] * a[:, 1, 1] - a[:, 0, 1] * a[:, 1, 0]
    in_plane = _share(jnp.sqrt(spread[:, 0] + spread[:, 1] - 1 + wedge**2), product)
    # How far three fields are from lying in a plane, by the field left out: the least of their squared heights.
    heights = jnp.full(4, jnp.inf).at[OTHERS[:, ::-1]].min(f.triples / area[:, None])
    some_in_plane = jnp.any(heights[OTHERS] < VANISHING, axis=-1)
    return jnp.where(jnp.all(heights < VANISHING), in_plane, jnp.where(some_in_plane, 1 / 4, generic))


# Tanh-sinh nodes on (0, 1) as pairs (u, 1 − u), each without cancellation. Integrands are smooth at 0, and at 1 like
# 1/√(1 − u + gap) with any gap: nodes reach down to 1 − u = 1e-34, and resolve each of these scales.
_STEP = 0.036
_S = _STEP * np.arange(-90, 110)
_LEFT = 1 / (1 + np.exp(np.pi * np.sinh(_S)))
_NODE = 1 / (1 + np.exp(-np.pi * np.sinh(_S)))
_WEIGHT = _STEP * np.pi * np.cosh(_S) * _NODE * _LEFT


def _orthant(f: Frame) -> Array:
    r"""P₄, by Plackett's identity along the correlations uρ, u from 0 to 1.

    P₄ = 1/16 + ∫₀¹ Σ_{i<j} ρ_ij/(2π√(1 − u²ρ_ij²)) [1/4 + arcsin(ρ_kl·ij(u))/(2π)] du

    The correlation of k and l given i and j is a cofactor of the matrix R(u) = (1 − u)I + uR over minors; it and
    det R(u) are polynomials in 1 − u and u whose coefficients are minors of R.
    """
    u, rest = jnp.asarray(_NODE), jnp.asarray(_LEFT)
    rho, area = f.correlations[FIRST, SECOND], f.sines[FIRST, SECOND] ** 2
    # Elementary symmetric polynomials of R's eigenvalues: sums of principal minors, none of them negative. Those of
    # three fields are found in the pairs (0, 1) and (2, 3).
    e2, e3, e4 = jnp.sum(area), jnp.sum(f.triples[np.array([0, 5])]), f.volume**2
    determinant = rest**4 + 4 * u * rest**3 + e2 * u**2 * rest**2 + e3 * u**3 * rest + e4 * u**4

    rho, area, u, rest, determinant = rho[:, None], area[:, None], u[None, :], rest[None, :], determinant[None, :]
    # 1 − u²ρ² = (1 − u|ρ|)(1 + u|ρ|), each factor from 1 − u; 1 − |ρ| from the sine
    size = jnp.abs(rho)
    minor = (rest + u * area / (1 + size)) * (1 + u * size)
    k, l = OTHERS.T
    other = f.correlations[k, l][:, None]
    middle = (f.conditional[FIRST, k, l] + f.conditional[SECOND, k, l])[:, None]
    cofactor = u * (other * rest**2 + middle * u * rest + f.products[:, None] * u**2)
    share = _share(jnp.sqrt(determinant * minor), cofactor)
    integrand = jnp.sum(rho / (2 * math.pi * jnp.sqrt(minor)) * share, axis=0)
    return 1 / 16 + jnp.asarray(_WEIGHT) @ integrand
