"""Diagonal linear networks: reference values, a second way to the solution, both limits, errors."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from scipy.optimize import linprog, minimize

from deeplimits.errors import NotConverged, OutsideValidity, ParameterError
from deeplimits.theory.bias import diagonal_networks as networks

X = np.array([[1, 2, 0.5, -1, 0.3], [0.2, -1, 1.5, 0.7, 2]])
Y, START = np.array([1.0, 2.0]), np.array([1, 0.5, 2, 1, 1.5])


def test_reference_values():
    assert float(networks.diagonal_potential(1.0)) == pytest.approx(0.24514384755981, rel=1e-13)
    assert float(networks.diagonal_regularizer([1.0, -0.5], 0.1, [1.0, 2.0])) == pytest.approx(
        4.464744666794, rel=1e-12
    )
    wanted = [0.19266126026672, 0.072092158039665, 0.804574783592, -0.12385735046896, 0.4566989379633]
    np.testing.assert_allclose(networks.diagonal_interpolant(X, Y, 0.5, start=START).beta, wanted, rtol=1e-12)


def test_potential_against_many_digits():
    for z in (1e-9, 1e-4, 0.04999, 0.05001, 0.3, 7.0, 1e6):
        with mpmath.workdps(40):
            exact = 2 - mpmath.sqrt(4 + mpmath.mpf(z) ** 2) + z * mpmath.asinh(mpmath.mpf(z) / 2)
        assert float(networks.diagonal_potential(z)) == pytest.approx(float(exact), rel=2e-13)


@pytest.mark.parametrize("alpha", [0.05, 1.0, 5.0])
def test_it_minimizes_the_regularizer(alpha):
    null = np.linalg.svd(X)[2][2:]
    particular = np.linalg.pinv(X) @ Y
    value = jax.jit(jax.value_and_grad(lambda z: networks.diagonal_regularizer(particular + z @ null, alpha, START)))
    found = minimize(lambda z: tuple(np.asarray(v) for v in value(z)), np.zeros(3), jac=True, options={"gtol": 1e-10})
    stated = networks.diagonal_interpolant(X, Y, alpha, start=START).beta
    np.testing.assert_allclose(particular + found.x @ null, stated, atol=1e-5)


@pytest.mark.parametrize(("depth", "smallest"), [(2, 1e-6), (3, 1e-4), (4, 1e-3)])
def test_stable_from_tiny_to_large_scales(depth, smallest):
    for alpha in (smallest, 1e-2, 1.0, 1e3):
        found = networks.diagonal_interpolant(X, Y, alpha, start=START, depth=depth)
        assert float(found.residual) < 1e-10
        assert np.all(np.isfinite(found.beta))


def test_what_double_precision_cannot_do_is_said():
    # β of depth four is (1 − s)⁻² with 1 − s of order 1e-12: its digits are not there.
    with pytest.raises(NotConverged, match="take a larger alpha"):
        networks.diagonal_interpolant(X, Y, 1e-6, start=START, depth=4)


def test_limits_and_their_rates():
    kernel, sparse = networks.kernel_solution(X, Y, start=START), networks.sparse_solution(X, Y)
    large = [
        np.max(np.abs(networks.diagonal_interpolant(X, Y, alpha, start=START).beta - kernel))
        for alpha in (4.0, 8.0, 16.0)
    ]
    np.testing.assert_allclose(np.log2(np.array(large[:-1]) / large[1:]), 4, atol=0.01)
    cubic = networks.kernel_solution(X, Y, start=START, depth=3)
    deep = [
        np.max(np.abs(networks.diagonal_interpolant(X, Y, alpha, start=START, depth=3).beta - cubic))
        for alpha in (4.0, 8.0)
    ]
    assert np.log2(deep[0] / deep[1]) == pytest.approx(6, abs=0.05)
    scales = np.array([1e-2, 1e-4, 1e-6, 1e-9, 1e-12])
    excess = np.array(
        [
            float(jnp.sum(jnp.abs(networks.diagonal_interpolant(X, Y, alpha, start=START).beta))) / np.abs(sparse).sum()
            - 1
            for alpha in scales
        ]
    )
    assert np.all(np.diff(excess) < 0)
    assert excess[2] == pytest.approx(0.015, abs=0.0005)
    # No slower than 1/log(1/α), as the sublinear term of Q demands …
    assert np.all(excess * np.log(1 / scales) < 0.5)
    # … and in the end like α^{2(1 − max |⟨x_i, ν⟩|)}, ν the multipliers of the linear program, off its support.
    dual = linprog(-Y, A_ub=np.vstack([X.T, -X.T]), b_ub=np.ones(10), bounds=(None, None)).x
    slack = np.sort(1 - np.abs(X.T @ dual))[2]
    late = np.array(
        [
            float(jnp.sum(jnp.abs(networks.diagonal_interpolant(X, Y, alpha, start=START).beta))) / np.abs(sparse).sum()
            - 1
            for alpha in (1e-40, 1e-60)
        ]
    )
    assert np.log10(late[0] / late[1]) / 20 == pytest.approx(2 * slack, rel=0.02)


def test_dependent_equations_and_derivatives():
    doubled = networks.diagonal_interpolant(np.vstack([X, X[0]]), [*Y, Y[0]], 0.5, start=START)
    np.testing.assert_allclose(doubled.beta, networks.diagonal_interpolant(X, Y, 0.5, start=START).beta, rtol=1e-11)

    def first(alpha):
        return networks.diagonal_interpolant(jnp.asarray(X), jnp.asarray(Y), alpha, start=jnp.asarray(START)).beta[0]

    slope = (first(jnp.asarray(0.5001)) - first(jnp.asarray(0.4999))) / 2e-4
    assert float(jax.grad(first)(jnp.asarray(0.5))) == pytest.approx(float(slope), rel=1e-5)
    compiled = jax.jit(lambda x, y: networks.diagonal_interpolant(x, y, 0.5, start=START))
    for ours, theirs in zip(compiled(X, Y), networks.diagonal_interpolant(X, Y, 0.5, start=START), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("alpha", [0.0, -1.0, float("nan")])
def test_scales_must_be_positive(alpha):
    with pytest.raises(ParameterError, match="alpha = "):
        networks.diagonal_interpolant(X, Y, alpha, start=START)


def test_bad_input():
    with pytest.raises(OutsideValidity, match="no solution"):
        networks.diagonal_interpolant([[1.0, 2.0], [1.0, 2.0]], [1.0, 2.0], 0.5)
    with pytest.raises(OutsideValidity, match="no solution"):
        networks.sparse_solution([[1.0, 2.0], [1.0, 2.0]], [1.0, 2.0])
    with pytest.raises(ParameterError, match=r"start\[1\] = 0 .* stays there"):
        networks.diagonal_interpolant(X, Y, 0.5, start=[1, 0, 1, 1, 1])
    with pytest.raises(ParameterError, match="depth = 1"):
        networks.diagonal_interpolant(X, Y, 0.5, start=START, depth=1)
    with pytest.raises(ParameterError, match="one label for each row of x"):
        networks.diagonal_interpolant(X, Y[:1], 0.5)
