"""Kernels of infinitely wide networks: reference values, 60-digit arithmetic, tiles, bad input."""

import functools

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.models.activations import Activation, from_function
from deeplimits.models.architectures import FullyConnected
from deeplimits.theory.gaussian import dual, dual_derivative
from deeplimits.theory.kernels import InfiniteWidth, recursion, tiling


def wide(*description, **options):
    return InfiniteWidth(FullyConnected(*description, **options))


X = jnp.array([[1.0, 0.5, -0.3], [0.2, -1.0, 0.7]])
KINDS = ("nngp", "ntk", "conjugate")

# (K, T) with one hidden layer, then with three; β = 0.3
REFERENCE = {
    "relu": (0.16121155368533, 0.14301258567785, 0.19445390898783, 0.2848676465949),
    "leaky_relu(0.1)": (0.13968135848512, 0.11694019439906, 0.18997817121894, 0.2789557014772),
    "erf": (0.042262323462139, -0.0055650299082566, 0.17374761152006, 0.25531749870582),
    "sin": (0.04463414450228, -0.000828450219312, 0.17177694068035, 0.25356742667316),
    "cos": (0.6582824340199, 0.66191170245972, 0.70070212264425, 1.0175395447413),
    "gelu": (0.10355519904817, 0.085300155464217, 0.13136868791211, 0.17894541654069),
    "polynomial(0,1,0.5)": (0.0937, 0.0201, 1.1943350218932, 1.7675899954857),
    "relu_power(2)": (0.14470415590503, 0.12191645872573, 0.29359856761326, 0.48509562500271),
}


@pytest.mark.parametrize("name", REFERENCE)
def test_reference_values(name):
    every = wide(3, name, bias_variance=0.09).kernels(X, every_layer=True)
    found = [every.nngp[1, 0, 1], every.ntk[1, 0, 1], every.nngp[3, 0, 1], every.ntk[3, 0, 1]]
    np.testing.assert_allclose(found, REFERENCE[name], rtol=2e-13)


def test_reference_diagonal_and_deep_relu():
    net = wide(3, "relu", bias_variance=0.09)
    assert float(net.nngp(X)[0, 0]) == pytest.approx(0.22458333333333, rel=1e-13)
    assert float(net.ntk(X, diagonal=True)[0]) == pytest.approx(0.51583333333333, rel=1e-13)
    pair = jnp.array([[1.0, 0.0], [0.5, np.sqrt(0.75)]]) * np.sqrt(1.0)
    for layers, correlation, ratio in (
        (9, 0.88603347834037, 0.37926943562176),
        (99, 0.99649030074778, 0.27789203026088),
    ):
        deep = wide(layers, "relu", weight_variance=2.0).kernels(pair)
        assert float(deep.nngp[0, 1] / deep.nngp[0, 0]) == pytest.approx(correlation, rel=1e-13)
        assert float(deep.ntk[0, 1] / deep.ntk[0, 0]) == pytest.approx(ratio, rel=1e-13)
        # In NTK units Θ(x, x) = (number of affine layers)·K(x, x).
        assert float(deep.ntk[0, 0] / deep.nngp[0, 0]) == pytest.approx(layers + 1, rel=1e-13)


def exact_relu(x, y, layers, weight_variance, bias_variance):
    """NNGP and NTK of a ReLU network in 60-digit arithmetic, straight from the recursion."""
    with mpmath.workdps(60):
        x, y = ([mpmath.mpf(float(v)) for v in row] for row in (x, y))
        cw, cb = mpmath.mpf(weight_variance), mpmath.mpf(bias_variance)

        def first(u, v):
            return cw * mpmath.fsum(p * q for p, q in zip(u, v, strict=True)) / len(u) + cb

        a, b, c = first(x, x), first(y, y), first(x, y)
        ntk = c
        for _ in range(layers):
            scale = mpmath.sqrt(a * b)
            theta = mpmath.atan2(mpmath.sqrt(max(a * b - c * c, mpmath.mpf(0))), c)
            value = scale * (mpmath.sin(theta) + (mpmath.pi - theta) * mpmath.cos(theta)) / (2 * mpmath.pi)
            slope = (mpmath.pi - theta) / (2 * mpmath.pi)
            a, b, c = cw * a / 2 + cb, cw * b / 2 + cb, cw * value + cb
            ntk = c + cw * slope * ntk
        return c, ntk


@pytest.mark.parametrize("layers", [3, 10])
@pytest.mark.parametrize("bias_variance", [0.0, 0.01])
def test_relu_keeps_all_digits_near_coinciding_inputs(layers, bias_variance):
    rng = np.random.default_rng(0)
    base, direction = rng.standard_normal((2, 6))
    direction /= np.linalg.norm(direction)
    distances = (0.0, 1e-10, 1e-8, 1e-6, 1e-4, 1.0)
    # Across, along the ray (where only the lengths differ), and close to the opposite point.
    others = [base + distance * direction for distance in distances]
    others += [base * (1 + 1e-4), base * (1 + 1e-10), -base + 1e-6 * direction, -base]
    net = wide(layers, "relu", weight_variance=2.0, bias_variance=bias_variance)
    inputs = np.stack([base, *others])
    found = net.kernels(inputs)
    for column, other in enumerate(others, start=1):
        nngp, ntk = exact_relu(base, other, layers, 2.0, bias_variance)
        # Close to the opposite point the kernels of a network without biases nearly cancel: digits count from K(x, x).
        size = (1.0, 1.0) if column <= len(distances) + 2 else (found.nngp[0, 0], found.ntk[0, 0])
        for value, exact, unit in ((found.nngp, nngp, size[0]), (found.ntk, ntk, size[1])):
            scale = abs(exact) if column <= len(distances) + 2 else mpmath.mpf(float(unit))
            assert abs(mpmath.mpf(float(value[0, column])) - exact) <= 1e-14 * scale, (column, other)
    diagonal = net.kernels(inputs, diagonal=True)
    for index, point in enumerate(inputs):
        nngp, ntk = exact_relu(point, point, layers, 2.0, bias_variance)
        for value, matrix, exact in ((diagonal.nngp, found.nngp, nngp), (diagonal.ntk, found.ntk, ntk)):
            assert abs(mpmath.mpf(float(value[index])) - exact) <= 1e-14 * exact
            assert abs(mpmath.mpf(float(matrix[index, index])) - exact) <= 1e-14 * exact


def plain_recursion(net, x):
    """K and T with plain matrices and the public duals, layer by layer."""
    inner = x @ x.T / x.shape[1]
    weight_rates, bias_rates = net.rates
    kernel = net.weight_variance[0] * inner + net.bias_variance[0]
    ntk = weight_rates[0] * inner + bias_rates[0]
    for layer, activation in enumerate(net.activations):
        variance = jnp.diag(kernel)
        a, b = jnp.broadcast_arrays(variance[:, None], variance[None])
        size = jnp.sqrt(a * b) if net.layer_norm else jnp.ones_like(a)
        arguments = (a / size, b / size, kernel / size)
        if net.layer_norm:
            arguments = (jnp.ones_like(a), jnp.ones_like(b), jnp.clip(kernel / size, -1, 1))
        value = dual(activation, *arguments)
        slope = dual_derivative(activation, *arguments)
        skip = net.skip if layer + 1 < net.hidden_layers else 0.0
        weight, bias = net.weight_variance[layer + 1], net.bias_variance[layer + 1]
        ntk = weight_rates[layer + 1] * value + bias_rates[layer + 1] + weight * slope * ntk / size + skip**2 * ntk
        kernel = weight * value + bias + skip**2 * kernel
    return kernel, ntk


OPTIONS = [
    {},
    pytest.param({"layer_norm": True}, marks=pytest.mark.slow),
    pytest.param({"skip": 0.7}, marks=pytest.mark.slow),
    pytest.param({"parametrization": "standard"}, marks=pytest.mark.slow),
    {"layer_norm": True, "skip": 0.5, "parametrization": "standard"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_every_architecture_against_the_plain_recursion(options):
    x = jax.random.normal(jax.random.key(1), (5, 4))
    activations = ["relu", "erf", "gelu"]
    net = wide(3, activations, [1.5, 1.2, 1.1, 0.7], [0.1, 0.2, 0.0, 0.3], **options)
    kernel, ntk = plain_recursion(net.net, x)
    found = net.kernels(x)
    np.testing.assert_allclose(found.nngp, kernel, rtol=1e-13)
    np.testing.assert_allclose(found.ntk, ntk, rtol=1e-12)


@pytest.mark.parametrize("name", ["relu", pytest.param("sin", marks=pytest.mark.slow)])
def test_tiles_blocks_and_diagonal_are_one_matrix(name):
    x = jax.random.normal(jax.random.key(2), (37, 3))
    x = x.at[5].set(x[4]).at[6].set(-x[4]).at[7].set(0.0)
    net = wide(5, name, 1.4, 0.1)
    whole = net.kernels(x, get=KINDS)
    for other in (
        net.kernels(x, get=KINDS, tile=8),
        net.kernels(x, x, get=KINDS),
        net.kernels(x, x, get=KINDS, tile=16),
        jax.tree.map(lambda layers: layers[-1], net.kernels(x, get=KINDS, every_layer=True)),
    ):
        for one, two in zip(whole, other, strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-14, atol=1e-15)
    for kernel, diagonal in zip(
        net.kernels(x, get=KINDS, tile=8), net.kernels(x, get=KINDS, diagonal=True), strict=True
    ):
        assert bool(jnp.all(kernel == kernel.T))
        np.testing.assert_allclose(jnp.diag(kernel), diagonal, rtol=1e-15)


@pytest.mark.parametrize(("backend", "layers", "inputs", "tile"), [("cpu", 2, 33, 9), ("gpu", 3, 37, 16)])
def test_tiles_on_a_device_are_the_same_matrix(backend, layers, inputs, tile, monkeypatch):
    """What a GPU, or one of several devices, runs: also with the layers taken as a GPU takes them. Some inputs
    nearly coincide, in tiles that are made a second time."""
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    x = jax.random.normal(jax.random.key(2), (inputs, 3))
    x = x.at[5].set(x[4]).at[6].set(-x[4]).at[7].set(0.0).at[30].set(x[2] * (1 + 1e-9)).at[31].set(-x[9] + 1e-7)
    network = wide(layers, "relu", 1.4, 0.1)._network(x, None)
    # Compiled afresh: programs are kept by shapes, whatever the backend is called.
    tiled = jax.jit(functools.partial(tiling.tiled.__wrapped__, wanted=KINDS, tile=tile), static_argnames="overlap")
    whole = tiling.whole(network, x, None, KINDS, False)
    found, band = tiled(network, x, None), tiled(network, x[:20], x, overlap=True)
    for one, two, part in zip(whole, found, band, strict=True):
        np.testing.assert_allclose(two, one, rtol=2e-15)
        np.testing.assert_allclose(part, one[:20], rtol=2e-15)
        assert bool(jnp.all(two == two.T))


def test_only_tiles_with_inputs_that_nearly_coincide_are_made_twice():
    x = jax.random.normal(jax.random.key(2), (40, 30))
    network = wide(2, "relu", 1.4, 0.0)._network(x, None)
    left = recursion.points(network, x)
    same = jnp.eye(40, dtype=bool)
    product = recursion.products(left, left)
    assert not bool(recursion.few_digits(product, same))
    assert bool(recursion.few_digits(product, None))
    for value in (0.995, -0.995):
        assert bool(recursion.few_digits(product.at[3, 4].set(value), same))


def test_maximal_update_has_the_same_tangent_kernel_and_no_output():
    ntk, mup = (wide(2, "erf", 1.3, 0.2, parametrization=name).kernels(X) for name in ("ntk", "mean-field"))
    np.testing.assert_allclose(mup.ntk, ntk.ntk, rtol=1e-15)
    assert bool(jnp.all(mup.nngp == 0))


def test_a_function_of_your_own_is_as_good_as_a_named_one():
    x = jax.random.normal(jax.random.key(3), (6, 3))
    named = wide(2, "erf", 1.2, 0.1).kernels(x)
    own = wide(2, from_function(jax.scipy.special.erf), 1.2, 0.1).kernels(x)
    np.testing.assert_allclose(own.nngp, named.nngp, rtol=1e-12)
    np.testing.assert_allclose(own.ntk, named.ntk, rtol=1e-12)


def test_kernels_are_differentiable_in_inputs_and_variances():
    net = wide(2, "relu", 1.3, 0.1)
    gradient = jax.grad(lambda x: jnp.sum(net.ntk(x)))(X)
    step = 1e-6
    moved = (jnp.sum(net.ntk(X.at[0, 1].add(step))) - jnp.sum(net.ntk(X.at[0, 1].add(-step)))) / (2 * step)
    assert float(gradient[0, 1]) == pytest.approx(float(moved), rel=1e-7)

    def total(weight_variance):
        return jnp.sum(wide(2, "relu", weight_variance, 0.1).ntk(X))

    moved = (total(1.3 + step) - total(1.3 - step)) / (2 * step)
    assert float(jax.grad(total)(1.3)) == pytest.approx(float(moved), rel=1e-7)


def test_compiled_and_plain_calls_agree_where_inputs_coincide():
    net = wide(2, "tanh", 1.5, 0.1)
    compiled = jax.jit(lambda x: net.kernels(x[:1], x))(X)
    plain = net.kernels(X)
    np.testing.assert_allclose(compiled.nngp[0], plain.nngp[0], rtol=1e-10)
    np.testing.assert_allclose(compiled.ntk[0], plain.ntk[0], rtol=1e-10)


def test_get_returns_one_kernel_or_several():
    net = wide(1, "relu")
    assert net.kernel_fn(X, get="ntk").shape == (2, 2)
    both = net.kernel_fn(X, X[:1], get=("nngp", "ntk"))
    assert both.nngp.shape == both.ntk.shape == (2, 1)
    assert both.conjugate is None


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: wide(-1), ("hidden_layers", "-1")),
        (lambda: wide(2, "relu", -1.0), ("weight_variance", "-1")),
        (lambda: wide(2, "relu", [1.0, 2.0]), ("weight_variance", "3")),
        (lambda: wide(2, "relu", 1.0, jnp.nan), ("bias_variance", "nan")),
        (lambda: wide(2, ["relu"]), ("activation", "2")),
        (lambda: wide(2, "relu", parametrization="muP"), ("parametrization", "mup")),
        (lambda: wide(0).conjugate(X), ("hidden_layers = 0",)),
        (lambda: wide(1).ntk(X[0]), ("x1", "(3,)")),
        (lambda: wide(1).ntk(X.at[0, 0].set(jnp.nan)), ("x1", "finite")),
        (lambda: wide(1).ntk(X, X[:, :2]), ("columns",)),
        (lambda: wide(1).ntk(X, tile=0), ("tile = 0",)),
        (lambda: wide(1).kernel_fn(X, get="gp"), ("get = 'gp'", "nngp")),
    ],
)
def test_bad_input_is_named(make, words):
    with pytest.raises(ParameterError) as error:
        make()
    assert all(word in str(error.value) for word in words)


@pytest.mark.slow
def test_too_many_pairs_for_quadrature_are_refused():
    huge = jax.random.normal(jax.random.key(0), (300, 2)) * 1e3
    with pytest.raises(OutsideValidity, match="quadrature"):
        wide(1, "tanh").nngp(huge)


def test_outside_validity_is_said():
    with pytest.raises(OutsideValidity, match="step jumps"):
        wide(1, "step").ntk(X)
    assert wide(2, "step").nngp(X).shape == (2, 2)
    with pytest.raises(OutsideValidity, match="overflows"):
        wide(12, "polynomial(0,0,0,1)", 10.0).nngp(X)
    explosive = Activation("square exponential", lambda u: jnp.exp(u**2), lambda u: u, lambda u: u)
    with pytest.raises(OutsideValidity):
        wide(1, explosive, 4.0).nngp(X)
