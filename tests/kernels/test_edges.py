"""Kernels, linearization and lazy training at the edges: kinks that nobody named, deep networks, small variances."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.models.activations import activation
from deeplimits.models.architectures import FullyConnected
from deeplimits.theory.gaussian import dual
from deeplimits.theory.kernels import (
    InfiniteWidth,
    gram_definiteness,
    lazy_bounds,
    linearization,
    mercer_of_gaussian,
    subset_probability,
    tiling,
    training,
    two_layer_kernels,
)


@pytest.mark.parametrize("sigma", ["relu", "abs", "leaky_relu(0.1)", "step", jax.nn.relu, jnp.abs, jax.nn.elu])
def test_kinks_have_no_smooth_bound(sigma):
    # ELU's slope is continuous and its second derivative jumps but is bounded: that one does have a bound, sup σ'' = 1.
    if sigma is jax.nn.elu:
        assert linearization.curvature_bound(sigma) == pytest.approx(1, rel=1e-6)
        return
    for call in (
        lambda: linearization.smooth_remainder_bound(sigma, 4, 1.0),
        lambda: lazy_bounds.two_layer_lipschitz(sigma, np.eye(2), 10),
        lambda: lazy_bounds.two_layer_singular_values(sigma, 0.5),
    ):
        with pytest.raises(OutsideValidity, match="kink"):
            call()


def test_curvature_is_found_wherever_it_is():
    largest = 4 / (3 * np.sqrt(3))
    for shift, slope in ((0.0, 1.0), (100.0, 1.0), (-3000.0, 1.0), (0.3, 50.0)):
        found = linearization.curvature_bound(lambda u, a=shift, b=slope: jnp.tanh(b * (u - a)))
        assert found == pytest.approx(largest * slope**2, rel=1e-9)
    for sigma in (lambda u: u**3, jnp.exp, lambda u: u**2 * jnp.sin(u)):
        with pytest.raises(OutsideValidity, match="unbounded"):
            linearization.curvature_bound(sigma)
    assert float(linearization.smooth_remainder_bound("tanh", 4, 1.0)) == pytest.approx(largest / 4)


def test_bounds_refuse_what_is_no_network():
    for call in (
        lambda: linearization.relu_remainder_bound(100, 1.0, 2.0),
        lambda: linearization.relu_remainder_bound(100, 1.0, -1.0),
        lambda: linearization.relu_remainder_bound(100, -1.0, 0.1),
        lambda: linearization.smooth_remainder_bound("tanh", 0, 1.0),
        lambda: linearization.two_layer_expansion("tanh", np.ones((3, 1)), np.ones((1, 1)), np.ones(3), [1.0]),
        lambda: linearization.two_layer_expansion("tanh", np.ones((3, 1)), np.ones((3, 1)), np.ones(2), [1.0]),
        lambda: lazy_bounds.two_layer_singular_values("tanh", -1.0),
        lambda: lazy_bounds.lazy_scaling(100.0, 1.0, 2.0, 1.0, 0.5),
        lambda: lazy_bounds.lazy_scaling(100.0, 1.0, 1.0, 1.0, -0.5),
    ):
        with pytest.raises(ParameterError):
            call()


def test_worst_deviation_of_one_relu_network():
    rng = np.random.default_rng(0)
    w, a, x, reach = rng.standard_normal((6, 2)), np.array([1.0, 1, 1, -1, -1, -1]), np.array([0.8, 0.6]), 0.9
    found = float(linearization.relu_worst_deviation(w, a, x, reach))

    def deviation(moved):
        u, v = w @ x, moved @ x
        return abs(a @ (np.maximum(v, 0) - np.maximum(u, 0) - (u > 0) * (v - u))) / np.sqrt(6)

    # No random displacement exceeds it, and the one of the formula attains it.
    for _ in range(2000):
        step = rng.standard_normal((6, 2))
        assert deviation(w + reach * step / np.linalg.norm(step)) <= found + 1e-12
    best = 0.0
    for sign in (1.0, -1.0):
        order = np.argsort(np.where(a == sign, np.abs(w @ x), np.inf))
        for k in range(1, 4):
            moved = w.copy()
            rows = order[:k]
            moved[rows] -= np.sign(w[rows] @ x)[:, None] * x * reach / np.sqrt(k)
            best = max(best, deviation(moved))
    assert found == pytest.approx(best, rel=1e-12)


def tanh_kernels(x, y, depth, weight, bias):
    """NNGP and tangent kernel of a tanh network at 25 digits: trapezoid rule, exponentially accurate in the plane."""
    mpmath.mp.dps = 25
    step, count = mpmath.mpf("0.13"), 70
    nodes = [step * k for k in range(-count, count + 1)]
    weights = [step * mpmath.exp(-(z**2) / 2) / mpmath.sqrt(2 * mpmath.pi) for z in nodes]
    weight, bias = mpmath.mpf(weight), mpmath.mpf(bias)

    def inner(one, two):
        return weight * sum(mpmath.mpf(p) * mpmath.mpf(q) for p, q in zip(one, two, strict=True)) / len(one) + bias

    a, b, c = inner(x, x), inner(y, y), inner(x, y)
    tangent = c
    for _ in range(depth):
        left = [mpmath.tanh(mpmath.sqrt(a) * z) for z in nodes]
        along, across = c / mpmath.sqrt(a), mpmath.sqrt(b - c**2 / a)
        value = slope = mpmath.mpf(0)
        for first, z, p in zip(left, nodes, weights, strict=True):
            right = [mpmath.tanh(along * z + across * other) for other in nodes]
            value += p * first * mpmath.fdot(weights, right)
            slope += p * (1 - first**2) * mpmath.fdot(weights, [1 - second**2 for second in right])
        a, b = (
            weight * sum(p * mpmath.tanh(mpmath.sqrt(v) * z) ** 2 for p, z in zip(weights, nodes, strict=True)) + bias
            for v in (a, b)
        )
        c = weight * value + bias
        tangent = c + weight * slope * tangent
    return float(c), float(tangent)


@pytest.mark.parametrize("layers", [2, pytest.param(10, marks=pytest.mark.slow)])
def test_layers_of_tanh_have_twelve_digits(layers):
    x, y = [1.0, 0.5, -0.3], [0.2, -1.0, 0.7]
    nngp, ntk = tanh_kernels(x, y, layers, 1.5, 0.05)
    found = InfiniteWidth(FullyConnected(layers, "tanh", weight_variance=1.5, bias_variance=0.05)).kernels([x], [y])
    assert float(found.nngp[0, 0]) == pytest.approx(nngp, rel=1e-12)
    assert float(found.ntk[0, 0]) == pytest.approx(ntk, rel=1e-12)


def test_the_program_of_a_deep_network_is_not_longer():
    x = jnp.asarray(np.random.default_rng(0).standard_normal((4, 3)))

    def length(depth, sigma):
        network = InfiniteWidth(FullyConnected(depth, sigma, weight_variance=1.5, bias_variance=0.05))._network(x, None)
        return len(tiling.whole.lower(network, x, None, ("ntk",), False).as_text())

    for sigma in ("tanh", "relu"):
        assert length(120, sigma) <= 1.05 * length(12, sigma)
    # Layers of different kinds are chosen inside the loop.
    assert length(120, ("tanh", "relu") * 60) <= 1.05 * length(12, ("tanh", "relu") * 6)


def test_layers_of_different_kinds_in_one_loop():
    x = np.random.default_rng(1).standard_normal((3, 4))
    kinds = ("relu", "erf", "relu", "sin")
    found = InfiniteWidth(FullyConnected(4, kinds, bias_variance=0.1)).kernels(x, every_layer=True)
    k = x @ x.T / 4 + 0.1
    ntk = k
    for layer, kind in enumerate(kinds):
        a, b = np.diag(k)[:, None], np.diag(k)[None]
        form = two_layer_kernels.two_layer_gram(kind, a, b, k)
        slope = np.asarray(form.inner) / k
        k = np.asarray(form.outer) + 0.1
        ntk = k + slope * ntk
        np.testing.assert_allclose(found.nngp[layer + 1], k, rtol=1e-10)
        np.testing.assert_allclose(found.ntk[layer + 1], ntk, rtol=1e-7)
    last = InfiniteWidth(FullyConnected(4, kinds, bias_variance=0.1)).ntk(x)
    np.testing.assert_allclose(last, found.ntk[-1], rtol=1e-14)


@pytest.mark.parametrize("scale", [1e-200, 1e-12, 1e-3, 1.0, 1e6])
def test_erf_keeps_its_digits_at_every_variance(scale):
    for rho in (-1.0, -0.5, 1e-9, 0.3, 1.0):
        a, c = mpmath.mpf(scale), mpmath.mpf(scale * rho)
        exact = 2 / mpmath.pi * mpmath.asin(2 * c / (1 + 2 * a))
        assert float(dual("erf", scale, scale, scale * rho)) == pytest.approx(float(exact), rel=1e-12)


def test_gelu_of_opposite_inputs():
    mpmath.mp.dps = 40

    def exactly(a, b, c):
        a, b, c = (mpmath.mpf(part) for part in (a, b, c))
        root = mpmath.sqrt((1 + a) * (1 + b) - c**2)
        arc = mpmath.asin(c / mpmath.sqrt((1 + a) * (1 + b)))
        bracket = a * b + c**2 * (1 / (1 + a) + 1 / (1 + b) - 1)
        return float(c / 4 + c * arc / (2 * mpmath.pi) + bracket / (2 * mpmath.pi * root))

    for a in (1.0, 10.0, 20.0, 21.0, 22.0, 1e2, 1e4, 1e8, 1e12):
        assert float(dual("gelu", a, a, -a)) == pytest.approx(exactly(a, a, -a), rel=1e-14)
        assert float(dual("gelu", a, 4 * a, -2 * a)) == pytest.approx(exactly(a, 4 * a, -2 * a), rel=1e-14)
        c = -a * (1 - 1 / 64)
        assert float(dual("gelu", a, a, c)) == pytest.approx(exactly(a, a, c), rel=2e-14)


def test_deviation_of_a_quadratic_form_is_given_where_it_is_known():
    assert np.isnan(float(two_layer_kernels.nonlinear_quadratic_form("relu", np.eye(2)).linear_deviation))
    assert float(two_layer_kernels.nonlinear_quadratic_form("identity", np.eye(2)).linear_deviation) == 1
    assert activation("identity").homogeneous == 1


def test_a_subset_holds_indices():
    with pytest.raises(ParameterError, match="distinct indices"):
        subset_probability(np.eye(3), [0.7])


def test_descent_takes_whole_steps():
    """Half a step of a mode that changes sign has no value; it used to get one."""
    for steps in (2.5, [1.0, 0.5], -1):
        with pytest.raises(ParameterError, match="whole number"):
            training.gradient_descent([[2.0, 0.5], [0.5, 1.0]], [1.0, -1.0], 0.3, steps)
    found = training.gradient_descent([[2.0, 0.5], [0.5, 1.0]], [1.0, -1.0], 0.3, [3, np.inf])
    np.testing.assert_allclose(found.train[1], [1.0, -1.0], atol=1e-14)


@pytest.mark.parametrize("distance", [1e-2, 1e-5, 1e-7, 1e-9])
def test_gram_matrix_of_points_close_to_each_other(distance):
    """The least eigenvalue of two points is K(1) − K(cos θ); it had five digits at 1e-5 and was refused at 1e-7."""
    points = np.array([[1.0, 0.0], [np.cos(distance), np.sin(distance)]])
    mpmath.mp.dps = 50
    theta = mpmath.atan2(mpmath.mpf(points[1, 1]), mpmath.mpf(points[1, 0]))
    relu = mpmath.mpf(1) / 2 - (mpmath.sin(theta) + (mpmath.pi - theta) * mpmath.cos(theta)) / (2 * mpmath.pi)
    erf = 2 / mpmath.pi * (mpmath.asin(mpmath.mpf(2) / 3) - mpmath.asin(2 * mpmath.cos(theta) / 3))
    for name, exact in (("relu", relu), ("erf", erf)):
        found = gram_definiteness(name, points)
        assert found.least_eigenvalue == pytest.approx(float(exact), rel=1e-12), name
        assert found.guaranteed
    with pytest.raises(ParameterError, match="same point twice"):
        gram_definiteness("relu", [[1.0, 0.0], [1.0, 0.0]])


def test_gram_matrix_of_a_small_cluster():
    points = np.array([1.0, 0, 0]) + 1e-3 * np.random.default_rng(0).standard_normal((5, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    mpmath.mp.dps = 40
    rows = [[mpmath.mpf(v) for v in row] for row in points]
    lengths = [mpmath.sqrt(mpmath.fsum(v * v for v in row)) for row in rows]
    exact = mpmath.matrix(5, 5)
    for i in range(5):
        for j in range(5):
            cosine = mpmath.fdot(rows[i], rows[j]) / (lengths[i] * lengths[j]) if i != j else mpmath.mpf(1)
            exact[i, j] = 2 / mpmath.pi * mpmath.asin(2 * cosine / 3)
    least = min(mpmath.eigsy(exact, eigvals_only=True))
    assert gram_definiteness("erf", points).least_eigenvalue == pytest.approx(float(least), rel=1e-3)


@pytest.mark.parametrize("x", [0.5, 10.0, 25.0])
def test_modes_of_the_gaussian_kernel_far_out(x):
    """He_300 is beyond the largest number there, and its weight tiny; their product was not a number."""
    found = np.asarray(mercer_of_gaussian(300).functions([x]))[0]
    assert np.all(np.isfinite(found))
    mpmath.mp.dps = 50
    a, b = mpmath.mpf(1) / 4, mpmath.mpf(1) / 2
    c = mpmath.sqrt(a**2 + 2 * a * b)
    for k in (0, 7, 299):
        z = 2 * mpmath.sqrt(c) * x
        polynomial = mpmath.hermite(k, z / mpmath.sqrt(2)) / mpmath.sqrt(mpmath.mpf(2) ** k * mpmath.factorial(k))
        exact = mpmath.root(c / a, 4) * mpmath.exp(-(c - a) * mpmath.mpf(x) ** 2) * polynomial
        assert found[k] == pytest.approx(float(exact), rel=1e-11, abs=1e-13)
