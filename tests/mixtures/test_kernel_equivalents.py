"""Kernels of mixtures: their numbers against mpmath, the matrices against exact kernels."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from sklearn import datasets

from deeplimits.ensembles import class_mixtures
from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.models.activations import polynomial
from deeplimits.theory import mixtures

RELU = [
    (0.3408450569081, 0.25, 0.03978873577297, 0.07957747154595, 0.3408450569081),
    (0.1161753528187, 0.0625, 0.02350897785208, 0.03448631185287, 0.1161753528187),
    (0.03959779474281, 0.015625, 0.01049971487966, 0.01129727027389, 0.03959779474281),
]
RELU_TANGENT = [
    (0.5, 0.03978873577297, 0.2387324146378, 0.8408450569081),
    (0.1875, 0.03345616179533, 0.1525371913779, 0.5365978812727),
    (0.0625, 0.01886375532849, 0.06548572198237, 0.3078967353792),
]


def cos_sin(u):
    return jnp.cos(u) + jnp.sin(u)


@pytest.mark.parametrize(("activation", "variance", "stated"), [
    ("relu", 1.0, (0.0908450569, 0.25, 0.0397887358)), ("relu", 2.0, (0.1816901138, 0.25, 0.0198943679)),
    ("tanh", 1.0, (0.0274153260, 0.3668791644, 0.0)), ("erf", 1.0, (0.0401458728, 0.4244131816, 0.0)),
    (cos_sin, 1.0, (0.2642411177, 0.3678794412, 0.0919698603)), ("sign", 1.0, (1 - 2 / np.pi, 2 / np.pi, 0.0)),
    ("abs", 1.0, (1 - 2 / np.pi, 0.0, 1 / (2 * np.pi))),
])  # fmt: skip
def test_coefficients_of_the_sheet(activation, variance, stated):
    found = mixtures.kernel_coefficients(activation, variance)
    np.testing.assert_allclose(found[:3], stated, atol=2e-10)
    # The second Hermite mode is a part of the rest.
    assert float(found.rest) >= 2 * variance**2 * float(found.quadratic) - 1e-12


@pytest.mark.parametrize(("name", "value", "slope", "curvature"), [
    ("tanh", mpmath.tanh, lambda u: 1 - mpmath.tanh(u) ** 2, lambda u: -2 * mpmath.tanh(u) * (1 - mpmath.tanh(u) ** 2)),
    ("softplus", lambda u: mpmath.log(1 + mpmath.exp(u)), lambda u: 1 / (1 + mpmath.exp(-u)),
     lambda u: mpmath.exp(-u) / (1 + mpmath.exp(-u)) ** 2),
])  # fmt: skip
def test_moments_against_derivatives_in_mpmath(name, value, slope, curvature):
    """Not Stein's form: expectations of the true derivatives."""
    variance = mpmath.mpf("1.7")

    def mean(f):
        bell = lambda u: f(u) * mpmath.exp(-(u**2) / (2 * variance)) / mpmath.sqrt(2 * mpmath.pi * variance)  # noqa: E731
        return mpmath.quad(bell, [-16, -4, 0, 4, 16])

    middle = mean(value)
    spread = mean(lambda u: (value(u) - middle) ** 2)
    wanted = (
        middle, spread, mean(slope), mean(curvature),
        mean(lambda u: slope(u) ** 2 + (value(u) - middle) * curvature(u)),
        spread - variance * mean(slope) ** 2, mean(lambda u: slope(u) ** 2),
    )  # fmt: skip
    np.testing.assert_allclose(
        mixtures.layer_moments(name, 1.7), [float(one) for one in wanted], rtol=1e-10, atol=1e-12
    )


def test_layers_of_the_sheet():
    found = mixtures.deep_coefficients(["relu"] * 3)
    for layer, stated, tangent in zip(range(3), RELU, RELU_TANGENT, strict=True):
        k1, k2, k3, k0, k4 = found.conjugate[layer]
        np.testing.assert_allclose((k0, k1, k2, k3, k4), stated, rtol=2e-12)
        np.testing.assert_allclose(found.tangent[layer][:4], tangent, rtol=2e-12)
    mixed = mixtures.deep_coefficients(["relu", "tanh", cos_sin]).conjugate[-1]
    stated = (0.1242321347733, 0.02389193254348, 0.04911254489285, 0.1934962791924, 0.1152842265703)
    np.testing.assert_allclose(mixed, stated, rtol=2e-12)


def test_fourth_number_is_the_derivative_of_the_diagonal():
    def diagonal(variance):
        """Of the layers at another length of input, with the centring of the typical one."""
        means, k = mixtures.deep_coefficients(["softplus", "tanh"], 1.0).means, variance
        for name, mean in zip(("softplus", "tanh"), means, strict=True):
            found = mixtures.layer_moments(name, k)
            k = found.variance + (found.mean - mean) ** 2
        return k

    # Where the mean is taken off, its own derivative drops out in first order.
    found = (diagonal(1.0 + 1e-4) - diagonal(1.0 - 1e-4)) / 2e-4
    assert abs(float(found) - float(mixtures.deep_coefficients(["softplus", "tanh"]).conjugate[-1].own)) < 1e-7


def contrasted(p, n, seed, trace=1.0):
    numbers = jax.random.normal(jax.random.key(seed), (n, p))
    system = class_mixtures.contrasted_classes(numbers, jnp.asarray(3.0), jnp.asarray(trace), jnp.asarray(0.3))
    covariances = np.asarray(system.variances)[:, :, None] * np.eye(p)
    mixture = mixtures.gaussian_mixture(system.means, covariances)
    return np.asarray(system.x), mixtures.kernel_data(system.x, system.labels, mixture=mixture)


def gaps(activations, size, tangent, *, draws=3):
    """Mean operator norm of exact kernel less equivalent, and of the centred kernel."""
    found = []
    for seed in range(draws):
        x, data = contrasted(size, size, seed)
        coefficients = mixtures.deep_coefficients(activations, data.variance)
        chosen = (coefficients.tangent if tangent else coefficients.conjugate)[-1]
        kernel = np.asarray(mixtures.centred_kernel(activations, x, data.variance, tangent=tangent))
        other = np.asarray(mixtures.equivalent_kernel(chosen, data).matrix())
        found.append((np.linalg.norm(kernel - other, 2), np.linalg.norm(kernel, 2)))
    return np.mean(found, axis=0)


@pytest.mark.parametrize(("activations", "tangent"), [
    pytest.param(["relu"] * 2, False, marks=pytest.mark.slow),
    pytest.param(["relu"] * 2, True, marks=pytest.mark.slow),
    (["sign"], False),
])  # fmt: skip
def test_equivalents_approach_in_operator_norm(activations, tangent):
    """The distance falls like p^(−1/2), for activations with kinks and jumps too."""
    first, second = (gaps(activations, p, tangent)[0] for p in (60, 240))
    slope = np.log(second / first) / np.log(4)
    assert -0.8 < slope < -0.3, (first, second)


@pytest.mark.parametrize("tangent", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_every_part_of_an_equivalent_is_needed(tangent):
    """In its own direction each part is there, to half of its size at least, and without it that much is missing."""
    p = 200
    x, data = contrasted(p, p, 0, trace=4.0)
    kernel = np.asarray(mixtures.centred_kernel(["relu"] * 2, x, data.variance, tangent=tangent))
    numbers = mixtures.deep_coefficients(["relu"] * 2, data.variance)
    numbers = (numbers.tangent if tangent else numbers.conjugate)[-1]
    directions = {
        "linear": np.linalg.svd(x)[0][:, 0],
        "quadratic": np.asarray(data.spread),
        "classes": np.ones(p),
        "diagonal": np.eye(p)[0],
    }
    for part, along in directions.items():
        unit = along / np.linalg.norm(along)
        whole, without = (
            unit @ (kernel - np.asarray(mixtures.equivalent_kernel(one, data).matrix())) @ unit
            for one in (numbers, numbers._replace(**{part: 0 * numbers.linear}))
        )
        assert abs(whole) < 0.5 * abs(without - whole), (part, whole, without)


def test_kurtosis_of_weights_shows_in_one_direction():
    """Exact for σ = u² − 1: E over Rademacher weights has a closed form, K_ij = 2(g² − Σx_k²y_k²/p²)."""
    n = p = 200
    x = np.random.default_rng(0).standard_normal((n, p))
    data = mixtures.kernel_data(x, np.zeros(n, int), mixture=mixtures.gaussian_mixture(np.zeros((1, p)), 1.0))
    gram, fourth = x @ x.T / p, x**2 @ (x**2).T / p**2
    own = np.diag(gram)
    for kurtosis in (1.0, 3.0, 10.0):
        # E(w·x)²(w·y)² = |x|²|y|² + 2(x·y)² + (κ − 3)Σx²y²
        second = own[:, None] * own + 2 * gram**2 + (kurtosis - 3) * fourth
        exact = second - own[:, None] - own + 1
        other = np.asarray(mixtures.conjugate_kernel_equivalent("square", data, kurtosis=kurtosis).matrix())
        # The heavier fourth moments of the data add a diagonal of order 1/p, which is not looked at.
        off = (exact - other) * (1 - np.eye(n))
        ones = np.ones(n) / n**0.5
        assert abs(ones @ off @ ones) < 0.25, kurtosis
        planted = np.asarray(mixtures.conjugate_kernel_equivalent("square", data).matrix())
        if kurtosis != 3:
            assert abs(ones @ ((exact - planted) * (1 - np.eye(n))) @ ones) > 1.5


def test_data_estimated_from_points():
    """Without a mixture the parts are those of the mixture, up to sampling."""
    x, stated = contrasted(100, 2000, 1)
    found = mixtures.kernel_data(x, stated.labels)
    assert abs(float(found.variance) - float(stated.variance)) < 0.01
    np.testing.assert_allclose(found.overlap, stated.overlap, rtol=0.03)
    assert np.max(np.abs(np.asarray(found.spread - stated.spread))) < 0.05


def test_overlap_is_estimated_without_bias():
    """Few points of a known covariance: the mean over draws is tr C_aC_b/p."""
    random, c = np.random.default_rng(0), np.linspace(0.5, 1.5, 12)
    labels = np.repeat([0, 1], [4, 6])
    draws = [
        np.asarray(mixtures.kernel_data(random.standard_normal((10, 12)) * np.sqrt(c), labels).overlap)
        for _ in range(400)
    ]
    mean, error = np.mean(draws, axis=0), np.std(draws, axis=0) / 20
    assert np.all(np.abs(mean - np.mean(c**2)) < 5 * error), (mean, error, np.mean(c**2))


def test_products_and_solutions_without_a_matrix():
    _, data = contrasted(30, 80, 0)
    found = mixtures.equivalent_kernel(mixtures.deep_coefficients(["relu"], data.variance).conjugate[0], data)
    vectors = np.random.default_rng(0).standard_normal((80, 3))
    dense = np.asarray(found.matrix())
    np.testing.assert_allclose(found.product(vectors), dense @ vectors, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(
        found.solve(vectors, 0.1), np.linalg.solve(dense + 0.1 * np.eye(80), vectors), rtol=1e-9, atol=1e-12
    )


def real(name):
    """Digits 0 and 1 as they are; the columns of breast cancer have units, and lengths of very different sizes."""
    x, labels = getattr(datasets, f"load_{name}")(return_X_y=True)
    chosen = labels < 2
    x, labels = x[chosen][:300], labels[chosen][:300]
    if name == "breast_cancer":
        x = (x - x.mean(axis=0)) / x.std(axis=0)
        x = x / np.linalg.norm(x, axis=1, keepdims=True)
    return mixtures.standardized(x), labels


@pytest.mark.parametrize("name", ["digits", "breast_cancer"])
def test_equivalents_on_real_data(name):
    """No theorem covers these data of some four effective dimensions; the equivalent is within a tenth all the same."""
    x, labels = real(name)
    data = mixtures.kernel_data(x, labels)
    kernel = np.asarray(mixtures.centred_kernel(["relu"], x, data.variance))
    other = np.asarray(mixtures.conjugate_kernel_equivalent("relu", data).matrix())
    take = np.eye(len(x)) - 1 / len(x)
    assert np.linalg.norm(take @ (kernel - other) @ take, 2) < 0.1 * np.linalg.norm(take @ kernel @ take, 2)


@pytest.mark.parametrize(("call", "error", "sentence"), [
    (lambda: mixtures.kernel_coefficients("relu", -1.0), ParameterError, "variance = -1"),
    (lambda: mixtures.kernel_coefficients(lambda u: jnp.exp(u**2)), Exception, "moment"),
    (lambda: mixtures.kernel_coefficients(lambda u: u / 0.0), Exception, ""),
    (lambda: mixtures.deep_coefficients("relu"), ParameterError, "must be a list"),
    (lambda: mixtures.deep_coefficients([]), ParameterError, "must be a list"),
    (lambda: mixtures.deep_coefficients([polynomial(0.0, 1e-80)]), OutsideValidity, "the signal fades"),
])  # fmt: skip
def test_bad_input_is_said(call, error, sentence):
    with pytest.raises(error) as raised:
        call()
    assert sentence in str(raised.value), str(raised.value)


def test_a_jump_has_no_diagonal_of_the_tangent_kernel():
    _, data = contrasted(20, 20, 0)
    found = mixtures.deep_coefficients(["relu", "sign"], data.variance)
    assert np.isinf(found.tangent[-1].diagonal)
    assert np.all(np.isfinite(found.tangent[-1][:3]))
    with pytest.raises(OutsideValidity, match="an activation jumps"):
        mixtures.equivalent_kernel(found.tangent[-1], data)


def test_a_ridge_that_leaves_it_singular_is_refused():
    _, data = contrasted(20, 20, 0)
    linear = mixtures.equivalent_kernel(mixtures.deep_coefficients(["identity"], data.variance).conjugate[0], data)
    with pytest.raises(OutsideValidity, match="ridge = 0 leaves"):
        linear.solve(np.ones((20, 1)), 0.0)
