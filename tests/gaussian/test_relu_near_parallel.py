"""ReLU's integrals of nearly parallel fields, against forty digits from the same doubles."""

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest

import relu_reference as reference
from deeplimits.theory.gaussian.fields import relu
from deeplimits.theory.two_layer.overlaps.integrals import activation_integrals

ANGLES = (1e-3, 1e-6, 1e-8)
INTEGRALS = activation_integrals("relu")


def relative(found, exact):
    return float(abs(mp.mpf(float(found)) / exact - 1))


def covariance(angle, sign=1.0, length=0.75):
    """Two fields at a small angle, or nearly opposite: whatever covariance rounding leaves is the question."""
    return np.array(
        [[1.3, sign * 1.3 * length * np.cos(angle)], [sign * 1.3 * length * np.cos(angle), 1.3 * length**2]]
    )


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("angle", [*ANGLES, 0.3])
def test_pairs(angle, sign):
    """To the last digits also where fields are nearly opposite and the integrals tiny."""
    c = covariance(angle, sign)
    if c[0, 0] * c[1, 1] == c[0, 1] ** 2:
        c[1, 1] = np.nextafter(c[1, 1], 2)
    exact = reference.exact(c)
    if exact[0, 0] * exact[1, 1] < exact[0, 1] ** 2:
        # Rounded outside: no pair of fields has it, and the nearest one that fields have is taken.
        exact[0, 1] = sign * mp.sqrt(exact[0, 0] * exact[1, 1])
    assert relative(INTEGRALS.i2(c, 0, 1), reference.i2(exact)) < 1e-12 or reference.i2(exact) < 1e-40
    assert relative(INTEGRALS.j2(c, 0, 1), reference.j2(exact)) < 1e-12 or reference.j2(exact) < 1e-40
    k20 = reference.k20(exact)
    found = INTEGRALS._closed.k20(*(jnp.asarray(entry) for entry in (c[0, 0], c[1, 1], c[0, 1])))
    assert relative(found, k20) < 1e-12 if k20 > 1e-30 else float(found) < 1e-15


@pytest.mark.parametrize("angle", ANGLES)
def test_three_fields(angle):
    c = np.eye(3) * 0.9
    c[:2, :2] = covariance(angle)
    c[2, :2] = c[:2, 2] = 0.4, 0.3
    exact = reference.exact(c)
    pair = mp.matrix([[exact[0, 0], exact[0, 1]], [exact[0, 1], exact[1, 1]]])
    if exact[0, 0] * exact[1, 1] < exact[0, 1] ** 2:
        pair[0, 1] = pair[1, 0] = mp.sqrt(exact[0, 0] * exact[1, 1])
    # E σ'_0 λ_2 σ_1 = C_02 K₂₀(0, 1) + C_21 J₂(0, 1)
    expected = exact[0, 2] * reference.k20(pair) + exact[1, 2] * reference.j2(pair)
    assert relative(INTEGRALS.i3(c, 0, 2, 1), expected) < 1e-12


def four_fields(near, angle):
    """Four fields of full rank of which some pairs nearly coincide; small integers, so that products are exact."""
    v = np.array([[2.0, 1, 0, 1], [-1, 2, 1, 0], [1, 1, 2, -1], [0, -1, 1, 2]])
    aside = np.array([[0.0, 1, -1, 1], [1, 0, 1, -1], [1, -1, 0, 1], [-1, 1, 1, 0]])
    for i, j in near:
        v[j] = v[i] + angle * aside[j] * 2
    # In forty digits, because at an angle of 1e-8 rounding decides the rank.
    exact = mp.matrix(v.tolist())
    return v @ v.T, exact * exact.T


SETTINGS = [
    ([(0, 1)], 2.0**-10), ([(0, 1)], 2.0**-20), ([(0, 2)], 2.0**-20), ([(0, 2)], 1e-8), ([(2, 3)], 2.0**-20),
    ([(2, 3)], 1e-8), ([(0, 2), (1, 3)], 2.0**-20), ([(0, 1), (2, 3)], 2.0**-20),
]  # fmt: skip


@pytest.fixture(scope="module")
def compiled():
    return jax.jit(relu.i4), jax.jit(relu.j4)


@pytest.mark.parametrize(
    ("near", "angle"),
    [pytest.param(*one, marks=() if place % 2 else pytest.mark.slow) for place, one in enumerate(SETTINGS)],
)
def test_four_fields(compiled, near, angle):
    """I₄ of an indicator and a rectified field, or of two rectified fields, is determined at any angle.

    J₄, and I₄ of two indicators, count the wedge between two fields: below 6e-8 the last digit of c decides it.
    """
    c, exact = four_fields(near, angle)
    i4, j4 = reference.i4_and_j4(exact if angle < 6e-8 else reference.exact(c))
    assert relative(compiled[0](jnp.asarray(c)), i4) < 1e-12
    if angle > 6e-8:
        assert relative(compiled[1](jnp.asarray(c)), j4) < 1e-12
    else:
        assert relative(compiled[1](jnp.asarray(c)), j4) < 2 * angle


def test_exactly_parallel_and_opposite(compiled):
    v = np.array([[2.0, 1, 0, 1], [-1, 2, 1, 0], [1, 1, 2, -1]])
    same = np.stack([v[0], 2 * v[0], v[1], v[2]])
    merged = np.stack([v[0], v[0], v[1], v[2]])
    both = [float(compiled[0](jnp.asarray(w @ w.T))) for w in (same, merged)]
    assert abs(both[0] / both[1] - 1) < 1e-14
    for i, j in ((0, 1), (0, 2), (2, 3)):
        w = np.concatenate([v, v[:1]])[[0, 1, 2, 0]]
        w[j] = -3 * w[i]
        assert float(compiled[0](jnp.asarray(w @ w.T))) == 0
