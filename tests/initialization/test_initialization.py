"""Criticality, phases, correlation maps, fluctuations and learning rates: reference values and other roads to them."""

import math

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.models.activations import activation, from_function, rescaled
from deeplimits.theory.gaussian import dual
from deeplimits.theory.initialization import correlations, depth_laws, finite_width, layer_maps, learning_rates, phases
from deeplimits.theory.initialization import parametrization as abc
from deeplimits.theory.initialization.critical_points import criticality


def test_critical_points():
    gelu = criticality("gelu")
    assert gelu.universality == "half-stable"
    assert abs(gelu.kernel - (3 + math.sqrt(17)) / 2) < 1e-12
    np.testing.assert_allclose(
        [gelu.bias_variance, gelu.weight_variance], [0.17292239075607, 1.9830582574375], rtol=1e-12
    )
    assert abs(gelu.curvature + 0.00028725283746) < 1e-14
    swish = criticality("swish")
    np.testing.assert_allclose(
        [swish.kernel, swish.bias_variance, swish.weight_variance],
        [14.320173618026, 0.55514317072153, 1.9880046782695],
        rtol=1e-12,
    )
    assert abs(swish.curvature / 5.6995843788e-06 - 1) < 1e-9
    narrow = criticality(rescaled(activation("swish"), 2.0, 0.5))
    np.testing.assert_allclose(
        [narrow.kernel * 4, narrow.bias_variance * 4, narrow.weight_variance],
        [swish.kernel, swish.bias_variance, swish.weight_variance],
        rtol=1e-11,
    )


@pytest.mark.parametrize(
    ("name", "c_w", "expansion"),
    [
        ("tanh", 1.0, (-2.0, 17 / 3, -2.0)),
        ("sin", 1.0, (-1.0, 2 / 3, -1.0)),
        ("erf", math.pi / 4, (-2.0, 14 / 3, -2.0)),
    ],
)
def test_the_class_that_decays_to_zero(name, c_w, expansion):
    found = criticality(name)
    assert found.universality == "K*=0"
    assert (found.kernel, found.bias_variance) == (0.0, 0.0)
    assert abs(found.weight_variance - c_w) < 1e-14
    np.testing.assert_allclose(found.expansion[:3], expansion, rtol=1e-12)
    assert found.expansion.perpendicular_exponent == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("name", "c_w"), [("relu", 2.0), ("leaky_relu(0.2)", 2 / 1.04), ("abs", 1.0), ("identity", 1.0)]
)
def test_scale_invariant_activations(name, c_w):
    found = criticality(name)
    assert found.universality == "scale-invariant"
    assert found.kernel is None
    assert abs(found.weight_variance - c_w) < 1e-14
    assert abs(found.parallel - 1) + abs(found.perpendicular - 1) < 1e-12


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("softplus", "positive for all K"),
        ("sigmoid", "C_b = -4 < 0"),
        ("step", "jumps"),
        (jnp.sinh, "unstable"),
        (from_function(jnp.zeros_like, name="nothing"), "zero everywhere"),
    ],
)
def test_no_critical_point_is_an_error_that_says_why(given, why):
    with pytest.raises(OutsideValidity, match=why):
        criticality(given)


def test_functions_of_ones_own():
    mine = criticality(lambda u: u * (1 + jax.scipy.special.erf(u / math.sqrt(2))) / 2)
    assert abs(mine.kernel - (3 + math.sqrt(17)) / 2) < 1e-11
    # A kink away from 0: the condition holds for the derivative-free forms.
    bent = from_function(lambda u: jnp.where(u > 0.5, u, 0.25 + u / 2), kinks=(0.5,), name="bent")
    chi = layer_maps.susceptibilities(bent, 2.0)
    step = 1e-4
    slope = (layer_maps.second_moment(bent, 2.0 + step) - layer_maps.second_moment(bent, 2.0 - step)) / (2 * step)
    assert abs(chi.parallel - slope) < 1e-8


@pytest.mark.slow
def test_stein_forms_agree_with_derivatives():
    for name in ("tanh", "gelu"):
        sigma = activation(name)
        kernel = jnp.array([0.3, 2.0])
        by_price = jax.vmap(jax.grad(lambda k, name=name: dual(name, k, k, k)))(kernel)
        np.testing.assert_allclose(layer_maps.first_derivative(sigma, kernel), by_price, rtol=1e-10)
        second = jax.vmap(jax.grad(lambda k, sigma=sigma: layer_maps.first_derivative(sigma, k)))(kernel)
        np.testing.assert_allclose(layer_maps.second_derivative(sigma, kernel), second, rtol=1e-9)


@pytest.mark.parametrize(
    ("c_b", "kernel", "c_w"), [(0.05, 0.57004788164076, 1.7609546396067), (0.3, 1.461169446932, 2.5051271896798)]
)
def test_edge_of_chaos(c_b, kernel, c_w):
    found = phases.critical_weight_variance("tanh", c_b)
    np.testing.assert_allclose(
        [found.kernel, found.weight_variance, found.bias_variance], [kernel, c_w, c_b], rtol=1e-12
    )
    assert phases.phase("tanh", float(found.weight_variance), c_b).name == "critical"
    assert phases.phase("tanh", c_w * 0.99, c_b).name == "ordered"
    assert phases.phase("tanh", c_w * 1.01, c_b).name == "chaotic"


def test_edge_without_biases():
    assert float(phases.critical_weight_variance("tanh", 0.0).weight_variance) == 1.0
    assert float(phases.fixed_point("tanh", 0.9, 0.0)) == 0.0
    with pytest.raises(OutsideValidity, match="no such point"):
        phases.critical_weight_variance("relu", 0.1)
    with pytest.raises(OutsideValidity, match="grows without bound"):
        phases.fixed_point("relu", 3.0, 0.1)


def test_depth_scales():
    ordered = correlations.depth_scales("tanh", 1.5, 0.05)
    np.testing.assert_allclose(
        [ordered.kernel, ordered.kernel_scale, ordered.correlation_scale],
        [0.41803720053348, 1.6828283887064, 15.790994034123],
        rtol=1e-12,
    )
    chi = layer_maps.susceptibilities(activation("tanh"), ordered.kernel, weight_variance=1.5)
    np.testing.assert_allclose([chi.perpendicular, chi.parallel], [0.93863626819885, 0.55198320566351], rtol=1e-12)
    chaotic = correlations.depth_scales("tanh", 2.5, 0.05)
    np.testing.assert_allclose(
        [chaotic.kernel, chaotic.kernel_scale, 1 - chaotic.correlation_gap, chaotic.correlation_scale],
        [1.0639583774168, 1.1798729164795, 0.44680423234489, 11.79559751564],
        rtol=1e-10,
    )
    # For an odd activation without biases the chaotic fixed point is c* = 0.
    assert abs(float(correlations.correlation_fixed_point("tanh", 2.0, 0.0)) - 1) < 1e-9


@pytest.mark.parametrize("gap", [1e-20, 1e-12, 1e-6, 0.3, 0.499, 0.501, 1.7, 2.0])
@pytest.mark.parametrize("slope", [0.0, 0.2])
def test_relu_correlation_map_keeps_its_digits(gap, slope):
    with mpmath.workdps(50):
        rho, a = 1 - mpmath.mpf(gap), mpmath.mpf(slope)
        theta = mpmath.acos(rho)
        kinked = (mpmath.sin(theta) + rho * (mpmath.pi - theta)) / mpmath.pi
        exact = 1 - ((1 - a) ** 2 * kinked + 2 * a * rho) / (1 + a**2)
        name = f"leaky_relu({slope})" if slope else "relu"
        found = float(correlations.correlation_map(name, gap, 1.7, 2 / (1 + slope**2), 0.0))
        assert abs(found / exact - 1) < 1e-14


@pytest.mark.slow
def test_correlation_maps_of_smooth_activations():
    """Against the duals, which know nothing of gaps; and close to one against the derivative."""
    for name in ("tanh", "erf", "gelu"):
        for gap in (0.2, 1.3):
            k = float(dual(name, 0.8, 0.8, 0.8 * (1 - gap)))
            variance = float(dual(name, 0.8, 0.8, 0.8))
            exact = 1 - (0.1 + 1.4 * k) / (0.1 + 1.4 * variance)
            assert abs(float(correlations.correlation_map(name, gap, 0.8, 1.4, 0.1)) - exact) < 1e-13
        chi = layer_maps.susceptibilities(activation(name), 0.8, weight_variance=1.4).perpendicular
        following = layer_maps.layer_map(activation(name), 0.8, 1.4, 0.1)
        ratio = float(correlations.correlation_map(name, 1e-15, 0.8, 1.4, 0.1)) / 1e-15
        assert abs(ratio - float(chi * 0.8 / following)) < 1e-12


def test_relu_correlations_over_layers():
    gaps, kernels = correlations.correlation_path("relu", 1.0, 1.0, 2.0, 0.0, 2000)
    np.testing.assert_allclose(
        1 - np.asarray(gaps)[[1, 2, 5]], [0.31830988618379, 0.49373109020037, 0.73594635062764], rtol=1e-13
    )
    np.testing.assert_allclose(kernels, 1.0, rtol=1e-11)
    assert abs(float(gaps[-1]) * 2000**2 / (4.5 * math.pi**2) - 1) < 0.02
    once = 1 - float(correlations.correlation_map("leaky_relu(0.2)", 0.7, 1.0, 2 / 1.04, 0.0))
    assert abs(once - 0.41245802082184) < 1e-13


@pytest.mark.slow
def test_decay_of_the_kernel_at_criticality():
    kernels = finite_width.kernel_path("tanh", 1.0, 1.0, 0.0, 5)
    np.testing.assert_allclose(
        np.asarray(kernels)[[1, 2, 4]], [0.39429449039784, 0.2364504104993, 0.12790473529941], rtol=1e-12
    )
    found = depth_laws.decay_to_zero("tanh", 1.0, 4000)
    assert abs(float(found.kernels[99]) - 0.00512071566599) < 1e-13
    assert abs(2000 * float(found.kernels[999]) - 1.00333306989) < 1e-10
    assert abs(found.constant + 0.8896) < 5e-3
    assert abs(1000 * float(depth_laws.decay_to_zero("sin", 1.0, 1000).kernels[-1]) - 1) < 0.02
    with pytest.raises(OutsideValidity, match="half-stable"):
        depth_laws.decay_to_zero("gelu", 1.0, 10)
    # The correlation of odd activations tends to a limit that depends on the start.
    gaps, _ = correlations.correlation_path("tanh", 0.5, 1.0, 1.0, 0.0, 1500)
    assert abs(1 - float(gaps[-1]) - 0.4405) < 2e-4


def test_half_stable_kernels_hardly_move():
    found = depth_laws.half_stable_law("gelu", 1.0, 10)
    assert abs(float(found.deviations[-1]) - 0.997101603) < 1e-9
    assert found.attracted
    assert found.onset > 1000
    assert not depth_laws.half_stable_law("gelu", -1.0, 2).attracted
    with pytest.raises(OutsideValidity, match="not half-stable"):
        depth_laws.half_stable_law("tanh", 1.0, 10)
    with pytest.raises(ParameterError, match="deviation"):
        depth_laws.half_stable_law("gelu", -9.0, 10)


def test_fluctuations():
    np.testing.assert_allclose(
        finite_width.vertex_path("tanh", 1.0, 1.0, 0.0, 3), [0.0, 0.097523738085857, 0.067807493892096], rtol=1e-12
    )
    # Critical ReLU networks: V/K² is 5 a layer, the first order of the exact product.
    vertices = finite_width.vertex_path("relu", 1.0, 2.0, 0.0, 5)
    np.testing.assert_allclose(vertices, 5.0 * np.arange(5), rtol=1e-11)
    uneven = finite_width.vertex_path("identity", 1.0, 1.0, 0.0, 4, width_ratios=[2.0, 3.0])
    np.testing.assert_allclose(uneven, [0.0, 2.0, 6.0, 20.0], rtol=1e-11)
    assert abs(float(finite_width.kurtosis_ratio("identity", [10, 10, 10])) - 1.728) < 1e-13
    assert abs(float(finite_width.kurtosis_ratio("relu", [10, 20])) - 1.875) < 1e-13
    for attempt in (
        lambda: finite_width.kurtosis_ratio("relu", []),
        lambda: finite_width.kurtosis_ratio("relu", [0]),
        lambda: finite_width.vertex_path("tanh", 1.0, 1.0, 0.0, 5, width_ratios=[1.0]),
    ):
        with pytest.raises(ParameterError, match="is not allowed"):
            attempt()
    with pytest.raises(OutsideValidity, match="scale-invariant"):
        finite_width.kurtosis_ratio("tanh", [10])


def test_linear_networks_and_fan_in():
    assert float(finite_width.linear_kernel(2.0, 0.5, 1.0, 4)) == pytest.approx(2.0, rel=1e-15)
    for c_w in (0.7, 1.0, 1.0 + 1e-7, 1.3):
        path = finite_width.kernel_path("identity", 2.0, c_w, 0.3, 6)
        np.testing.assert_allclose(finite_width.linear_kernel(2.0, c_w, 0.3, np.arange(1.0, 7.0)), path, rtol=1e-12)
    assert float(finite_width.preactivation_variance([1.0, 2.0, 0.0, 1.0], 2.0, 0.5)) == 3.5
    with pytest.raises(ParameterError, match="at least one entry"):
        finite_width.preactivation_variance([], 1.0, 0.0)


def test_tangent_kernels_with_rates_of_their_own():
    _, tangents = learning_rates.tangent_kernels("tanh", [[1.0]], 1.0, 0.0, [1.0] * 4, [1.0] * 4)
    assert abs(float(tangents[-1, 0, 0]) - 3.1398753586816) < 1e-12
    _, tangents = learning_rates.tangent_kernels("relu", [[1.0]], 2.0, 0.0, [1.0] * 10, [0.0] * 10)
    np.testing.assert_allclose(tangents[:, 0, 0], np.arange(1.0, 11.0), rtol=1e-13)
    gram = np.array([[1.0, 0.2], [0.2, 0.5]])
    _, tangents = learning_rates.tangent_kernels("erf", gram, 1.5, 0.1, [1.0, 2.0], [0.5, 0.3])
    first = 0.1 + 1.5 * gram
    exact = 0.3 + 2.0 * dual("erf", first[0, 0], first[1, 1], first[0, 1])
    slope = jax.grad(lambda c: dual("erf", first[0, 0], first[1, 1], c))(first[0, 1])
    assert abs(tangents[1, 0, 1] - (exact + 1.5 * slope * (0.5 + 0.2))) < 1e-13
    rate = learning_rates.largest_stable_rate(tangents[-1])
    assert abs(float(rate) - 4 / np.linalg.eigvalsh(np.asarray(tangents[-1]))[-1]) < 1e-12


def test_rates_that_keep_the_tangent_kernel_bounded_in_depth():
    largest = []
    for depth in (10, 40):
        weight, bias = learning_rates.depth_rates(criticality("erf"), depth)
        _, tangents = learning_rates.tangent_kernels("erf", [[1.0]], math.pi / 4, 0.0, weight, bias)
        largest.append(float(tangents[-1, 0, 0]))
        weight, bias = learning_rates.depth_rates(criticality("relu"), depth)
        _, tangents = learning_rates.tangent_kernels("relu", [[1.0]], 2.0, 0.0, weight, bias)
        assert 0.5 < float(tangents[-1, 0, 0]) < 3
    assert largest[1] < 1.3 * largest[0]


@pytest.mark.parametrize(
    ("a", "b", "c", "r"),
    [((0, 0.5, 0.5), (0, 0, 0), 0, 0.5), ((-0.5, 0, 0.5), (0.5, 0.5, 0.5), 0, 0.0), ((0, 0, 0), (0, 0.5, 0.5), 1, 0.5)],
)
def test_abc_exponents(a, b, c, r):
    given = abc.Parametrization(tuple(map(float, a)), tuple(map(float, b)), float(c))
    assert abc.feature_exponent(given) == r
    assert abc.learns_features(given) == (r == 0)


def test_abc_presets_and_errors():
    assert abc.feature_exponent(abc.ntk(3)) == abc.feature_exponent(abc.standard(4)) == 0.5
    assert abc.feature_exponent(abc.PRESETS["mean-field"](1)) == 0.0
    assert abc.effective_plain_form(abc.maximal_update(2)) == ([0.0, 1.0, 2.0], [-1.0, 0.0, 1.0])
    with pytest.raises(OutsideValidity, match="blow up"):
        abc.feature_exponent(abc.Parametrization((0.0, 0.0, 0.0), (0.0, 0.5, 0.5), 0.0))
    with pytest.raises(OutsideValidity, match="order one"):
        abc.feature_exponent(abc.Parametrization((0.5, 0.5, 0.5), (0.5, 0.5, 0.5), 0.0))
    for attempt in (
        lambda: abc.Parametrization((0.0,), (0.0,)),
        lambda: abc.Parametrization((0.0, 1.0), (0.0, math.nan)),
        lambda: abc.ntk(0),
    ):
        with pytest.raises(ParameterError, match="is not allowed"):
            attempt()


@pytest.mark.parametrize(
    "attempt",
    [
        lambda: phases.fixed_point("tanh", -1.0, 0.0),
        lambda: phases.fixed_point("tanh", 1.0, math.nan),
        lambda: phases.edge_of_chaos("tanh", -1.0),
        lambda: correlations.correlation_map("tanh", 2.5, 1.0, 1.0, 0.0),
        lambda: correlations.correlation_map("tanh", 0.5, -1.0, 1.0, 0.0),
        lambda: finite_width.kernel_path("tanh", -1.0, 1.0, 0.0, 3),
        lambda: depth_laws.decay_to_zero("tanh", 0.0, 3),
        lambda: depth_laws.decay_to_zero("tanh", 1.0, 0),
        lambda: learning_rates.tangent_kernels("tanh", [[1.0]], 1.0, 0.0, [-1.0], [0.0]),
        lambda: learning_rates.depth_rates(criticality("tanh"), 0),
    ],
)
def test_bad_input_is_refused(attempt):
    with pytest.raises(ParameterError, match="is not allowed"):
        attempt()


def test_shapes_are_checked():
    with pytest.raises(ParameterError, match="square"):
        learning_rates.tangent_kernels("tanh", [1.0], 1.0, 0.0, [1.0], [0.0])
    with pytest.raises(ParameterError, match="one length"):
        learning_rates.tangent_kernels("tanh", [[1.0]], 1.0, 0.0, [1.0, 1.0], [0.0])
    with pytest.raises(ParameterError, match="square"):
        learning_rates.largest_stable_rate([1.0])
    with pytest.raises(OutsideValidity, match="zero"):
        learning_rates.largest_stable_rate([[0.0]])


def test_fixed_points_are_differentiable():
    slope = jax.grad(lambda w: phases.fixed_point("tanh", w, 0.05))(2.5)
    difference = (phases.fixed_point("tanh", 2.5001, 0.05) - phases.fixed_point("tanh", 2.4999, 0.05)) / 0.0002
    assert abs(slope - difference) < 1e-7
    gap_slope = jax.grad(lambda w: correlations.correlation_fixed_point("tanh", w, 0.05))(2.5)
    ends = [float(correlations.correlation_fixed_point("tanh", w, 0.05)) for w in (2.5001, 2.4999)]
    assert abs(float(gap_slope) - (ends[0] - ends[1]) / 0.0002) < 1e-6
