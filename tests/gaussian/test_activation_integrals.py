"""Gaussian integrals of activations, against quadrature that works differently."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from deeplimits.errors import ParameterError, UnknownName
from deeplimits.models.activations import activation
from deeplimits.models.committees import Overlaps, Task
from deeplimits.theory.gaussian.closed_forms import closed_forms
from deeplimits.theory.gaussian.fields import erf
from deeplimits.theory.two_layer.overlaps import equations
from deeplimits.theory.two_layer.overlaps.integrals import activation_integrals

C = np.array([[1, 0.3, 0.2, 0.1], [0.3, 0.8, -0.1, 0.4], [0.2, -0.1, 1.2, 0.5], [0.1, 0.4, 0.5, 0.9]])
TEACHER = np.array([[1.0, 0.2], [0.2, 1.0]])
SINGULAR = np.block([[TEACHER, TEACHER], [TEACHER, TEACHER]])
PATTERNS = np.array(list(itertools.product(range(4), repeat=4)))

# Reference values of the formula sheet: I₂(0,1), I₃(0,1,2), I₄(0,1,2,3), J₂(0,1).
REFERENCE = {
    "erf_saad": (0.101082624104260, -0.039635124858236, 0.057250779725777, 0.339802496083452),
    "relu": (0.225437575190860, 0.023502387324460, 0.140010361283003, 0.304437454758310),
    "square": (0.98, 0.64, 2.696, 1.2),
    "tanh": (0.118112459636589, -0.047469452102770, 0.080003056782, 0.398753719303268),
    "identity": (0.3, -0.1, 0.5, 1.0),
}


@pytest.mark.parametrize("name", list(REFERENCE))
def test_reference_values(name):
    integrals = activation_integrals(name)
    found = (integrals.i2(C, 0, 1), integrals.i3(C, 0, 1, 2), integrals.i4(C, 0, 1, 2, 3), integrals.j2(C, 0, 1))
    tolerance = (1e-13, 1e-13, 3e-11 if name == "tanh" else 1e-13, 1e-13)
    for value, reference, error in zip(found, REFERENCE[name], tolerance, strict=True):
        assert abs(float(value) - reference) < error


def all_patterns(closed, c):
    """I₄ in all 256 index patterns at once."""
    index = jnp.asarray(PATTERNS)
    return np.asarray(jax.jit(jax.vmap(lambda i: closed(jnp.asarray(c)[i][:, i])))(index))


def trapezoid_patterns(activation, c, dimensions=4, step=0.42, reach=7.6):
    """I₄, I₃ and I₂ in all patterns by the trapezoid rule on the independent variables behind c."""
    values, vectors = np.linalg.eigh(c)
    root = (vectors * np.sqrt(np.maximum(values, 0)))[:, ::-1][:, :dimensions]
    line = np.arange(-np.floor(reach / step), np.floor(reach / step) + 1) * step
    rest = np.stack(np.meshgrid(*[line] * (dimensions - 1), indexing="ij"), -1).reshape(-1, dimensions - 1)
    pairs = list(itertools.product(range(4), repeat=2))
    fourth, third, total = np.zeros((16, 16)), np.zeros((16, 4)), 0.0
    for first in line:
        points = np.concatenate([np.full((len(rest), 1), first), rest], axis=1)
        weight = np.exp(-(points**2).sum(1) / 2)
        field = points @ root.T
        value, slope = np.asarray(activation.value(field)), np.asarray(activation.derivative(field))
        slopes = np.stack([slope[:, a] * slope[:, b] for a, b in pairs])
        products = np.stack([value[:, a] * value[:, b] for a, b in pairs])
        mixed = np.stack([slope[:, a] * field[:, b] for a, b in pairs])
        fourth += (slopes * weight) @ products.T
        third += (mixed * weight) @ value
        total += weight.sum()
    return fourth.reshape(-1) / total, third / total


@pytest.mark.parametrize(("c", "dimensions"), [(C, 4), (SINGULAR, 2)])
def test_erf_in_all_patterns(c, dimensions):
    fourth, third = trapezoid_patterns(activation("erf_saad"), c, dimensions)
    assert np.abs(all_patterns(closed_forms("erf_saad").fields.i4, c) - fourth).max() < 1e-12
    integrals = activation_integrals("erf_saad")
    found = [[float(integrals.i3(c, a, b, d)) for d in range(4)] for a in range(4) for b in range(4)]
    assert np.abs(np.array(found) - third).max() < 1e-12


def test_quadratic_in_all_patterns():
    fourth, _ = trapezoid_patterns(activation("square"), C, step=0.5, reach=10.0)
    closed = closed_forms("square").fields
    assert np.abs(all_patterns(closed.i4, C) - fourth).max() < 1e-11


def relu_in_a_plane(angles, lengths, a, b, p, q):
    """The same for four fields in a plane: an integral of a product of cosines over an arc, in closed form."""
    low = max(angles[x] for x in (a, b, p, q)) - np.pi / 2
    high = min(angles[x] for x in (a, b, p, q)) + np.pi / 2
    if high <= low:
        return 0.0

    def primitive(t):
        return t * np.cos(angles[p] - angles[q]) / 2 + np.sin(2 * t - angles[p] - angles[q]) / 4

    return lengths[p] * lengths[q] * (primitive(high) - primitive(low)) / np.pi


def test_relu_with_singular_covariances():
    angles, lengths = np.array([0.0, 0.7, -0.9, 1.3]), np.array([1.0, 0.8, 1.2, 0.5])
    vectors = lengths[:, None] * np.stack([np.cos(angles), np.sin(angles)], 1)
    plane = vectors @ vectors.T
    found = all_patterns(closed_forms("relu").fields.i4, plane)
    expected = [relu_in_a_plane(angles, lengths, *pattern) for pattern in PATTERNS]
    assert np.abs(found - expected).max() < 1e-9
    # Perfect learning: student and teacher coincide.
    integrals = activation_integrals("relu")
    assert abs(float(integrals.i4(SINGULAR, 0, 1, 2, 3)) - 0.212348781931633) < 1e-12
    assert abs(float(integrals.i4(SINGULAR, 0, 1, 2, 3)) - float(integrals.i2(TEACHER, 0, 1))) < 1e-12


def test_relu_pairs_in_the_plane():
    integrals = activation_integrals("relu")
    for angle in (0.0, 1e-9, 0.3, 2.0, np.pi):
        c = np.array([[1.0, 0.5 * np.cos(angle)], [0.5 * np.cos(angle), 0.25]])
        expected = relu_in_a_plane(np.array([0.0, angle]), np.array([1.0, 0.5]), 0, 1, 0, 1)
        assert abs(float(integrals.i2(c, 0, 1)) - expected) < 1e-14
        arc = max(np.pi - angle, 0) / (2 * np.pi)
        assert abs(float(integrals.j2(c, 0, 1)) - arc) < 1e-8
    zero = np.array([[0.0, 0.0], [0.0, 1.0]])
    assert float(integrals.i2(zero, 0, 1)) == 0
    assert float(integrals.j2(zero, 0, 1)) == 0
    assert float(integrals.i4(np.pad(zero, (0, 2)), 0, 1, 1, 1)) == 0


def test_fast_arcsine():
    x = np.concatenate([np.linspace(-1, 1, 20001), 1 - np.geomspace(1e-16, 1e-2, 50)])
    assert np.abs(np.asarray(erf.arcsin(jnp.asarray(x))) - np.arcsin(x)).max() < 5e-16


def test_derivative_of_the_fast_arcsine():
    """Also at zero, where fields are independent: the Jacobian at perfect learning rests on it."""
    x = jnp.array([-0.7, -0.2, 0.0, 0.3, 0.9])
    found = jax.vmap(jax.grad(erf.arcsin))(x)
    assert np.abs(np.asarray(found) - 1 / np.sqrt(1 - np.asarray(x) ** 2)).max() < 1e-14


def test_orthants_of_slopes():
    """E σ'σ'σ'σ' of ReLU is the probability that all fields are positive."""
    integrals = activation_integrals("relu")
    assert abs(float(integrals.j4(C, 0, 1, 2, 3)) - 0.130563316477273) < 1e-12
    assert abs(float(integrals.j4(C, 0, 0, 2, 2)) - float(integrals.j2(C, 0, 2))) < 1e-12
    assert abs(float(integrals.j4(np.eye(4), 0, 0, 0, 0)) - 0.5) < 1e-14


def test_quadrature_agrees_with_closed_forms():
    """An activation unknown to the closed forms goes through quadrature; a copy of erf must not notice."""
    from dataclasses import replace

    copy = replace(activation("erf_saad"), name="a copy of erf", scaled_from=None)
    closed, numerical = activation_integrals("erf_saad"), activation_integrals(copy)
    v = jnp.array([-0.5, -0.4, 1.0])
    c = jnp.asarray(C[:3, :3])
    assert np.abs(np.asarray(closed.squares(c, v, 2) - numerical.squares(c, v, 2))).max() < 1e-12
    for one, other in zip(closed.pairs(c, 2), numerical.pairs(c, 2), strict=True):
        assert np.abs(np.asarray(one - other)).max() < 1e-13
    assert np.abs(np.asarray(closed.second_moments(c, 2) - numerical.second_moments(c, 2))).max() < 1e-13


def test_teacher_with_another_activation():
    task = Task(np.eye(1), activation="tanh", teacher_activation="erf_saad", noise=0.1**0.5)
    state = Overlaps([[0.3]], [[0.8]])
    lam = np.linspace(-9, 9, 361)
    x, y = np.meshgrid(lam, lam, indexing="ij")
    weight = np.exp(-(x**2 + y**2) / 2)
    weight /= weight.sum()
    root = np.linalg.cholesky(np.array([[0.8, 0.3], [0.3, 1.0]]))
    student, teacher = root[0, 0] * x, root[1, 0] * x + root[1, 1] * y
    error = np.asarray(activation("erf_saad").value(teacher)) - np.tanh(student)
    assert abs(float(equations.risk(task, state)) - (weight * error**2).sum() / 2) < 1e-12
    slope = np.asarray(activation("tanh").derivative(student))
    assert abs(float(equations.drift(task, state).m[0, 0]) - (weight * error * slope * teacher).sum()) < 1e-12
    expected = (weight * (error**2 + 0.1) * slope**2).sum()
    assert abs(float(equations.drift(task, state).q_variance[0, 0]) - expected) < 1e-12


def test_bad_input():
    integrals = activation_integrals("erf_saad")
    with pytest.raises(ParameterError, match="not positive semidefinite: its smallest eigenvalue is -1"):
        integrals.i2([[1.0, 2.0], [2.0, 1.0]], 0, 1)
    with pytest.raises(ParameterError, match="fields 0 to 1"):
        integrals.i2(np.eye(2), 0, 2)
    with pytest.raises(ParameterError, match="not symmetric"):
        integrals.i2([[1.0, 0.2], [0.1, 1.0]], 0, 1)
    with pytest.raises(ParameterError, match="must be finite"):
        integrals.i2([[1.0, np.nan], [np.nan, 1.0]], 0, 1)
    with pytest.raises(UnknownName, match="no activation 'gelo'"):
        activation_integrals("gelo")
    with pytest.raises(ParameterError, match="kinked activation"):
        activation_integrals("abs")
    with pytest.raises(ParameterError, match="only if both are relu"):
        equations.moments(Task(np.eye(1), activation="relu", teacher_activation="erf_saad"))
