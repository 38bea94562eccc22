"""Random networks at the edges: large variances, kinks, scale invariance, wrong input. A right number or a sentence."""

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest

import deeplimits as dl
from agreement import agrees
from deeplimits.errors import DeeplimitsError, NotConverged, OutsideValidity, ParameterError
from deeplimits.models.activations import from_function
from deeplimits.theory.gaussian import moments
from deeplimits.theory.initialization import correlations, depth_laws, finite_width, learning_rates, phases
from deeplimits.theory.initialization.critical_points import criticality
from deeplimits.theory.spectra import deep_linear_log_norm


def tanh_difference(kernel, gap):
    """½E(tanh u − tanh v)² and E tanh², by trapezoid sums in extended precision over the independent (u ± v)/2."""
    long = np.longdouble
    common, apart = np.sqrt(long(kernel) * (1 - long(gap) / 2)), np.sqrt(long(kernel) * long(gap) / 2)

    def line(scale, step):
        count = max(200, int(12 * float(scale) / step))
        z = np.arange(-count, count + 1) * (long(12) / count)
        weight = np.exp(-(z**2) / 2)
        return scale * z, weight / weight.sum()

    m, outer = line(common, 0.08)
    h, inner = line(apart, 0.08)
    total = long(0)
    for shift, weight in zip(h, inner, strict=True):
        # tanh(m + h) − tanh(m − h) = 2 sinh 2h/(cosh 2m + cosh 2h), without cancellation
        difference = 2 * np.sinh(2 * shift) / (np.cosh(2 * m) + np.cosh(2 * shift))
        total += weight * np.sum(outer * difference**2)
    u, weight = line(np.sqrt(long(kernel)), 0.02)
    return float(total / 2), float(np.sum(weight * np.tanh(u) ** 2))


@pytest.mark.parametrize("kernel", [4.0, 30.0, 400.0])
@pytest.mark.parametrize("gap", [1e-12, 1e-4, 1e-2, 1.0])
def test_correlation_map_of_tanh_at_large_variance(kernel, gap):
    """It was off by 4e-8, 0.4 % and 26 % at K = 4, 30 and 400 and gap 1e-4."""
    lost, second = tanh_difference(kernel, gap)
    found = float(correlations.correlation_map("tanh", gap, kernel, 1.5, 0.1))
    assert found == pytest.approx(1.5 * lost / (0.1 + 1.5 * second), rel=3e-13)


@pytest.mark.parametrize(
    ("c_w", "c_b", "gap", "scale"),
    [
        (6.160446, 5.426374, 0.0039366, 67.833),
        (10.559176, 21.135794, 0.0014499, 60.856),
        (10.372837, 21.135794, 0.00014310, 590.16),
        (19.206584, 82.666305, 0.00046671, 56.714),
    ],
)
def test_depth_scales_of_tanh_at_large_variance(c_w, c_b, gap, scale):
    """The last two had a correlation above one and a negative depth scale."""
    found = correlations.depth_scales("tanh", c_w, c_b)
    assert found.correlation_gap == pytest.approx(gap, rel=6e-5)
    assert found.correlation_scale == pytest.approx(scale, rel=6e-5)
    # At the fixed point the map returns the gap, by sums that know nothing of the library.
    lost, second = tanh_difference(found.kernel, found.correlation_gap)
    assert c_w * lost / (c_b + c_w * second) == pytest.approx(found.correlation_gap, rel=1e-11)
    assert c_b + c_w * second == pytest.approx(found.kernel, rel=1e-12)


@pytest.mark.parametrize("kernel", [0.3, 50.0, 3000.0])
@pytest.mark.parametrize("gap", [1e-9, 3e-3, 0.2, 0.45])
def test_correlation_map_in_closed_form_at_large_variance(kernel, gap):
    """erf: E σ² − E σσ' = (2/π)(asin(2K/(1 + 2K)) − asin(2Kc/(1 + 2K))), to forty digits."""
    with mp.workdps(40):
        k, c = mp.mpf(kernel), 1 - mp.mpf(gap)
        one, other = mp.asin(2 * k / (1 + 2 * k)), mp.asin(2 * k * c / (1 + 2 * k))
        exact = float((one - other) / one)
    assert float(correlations.correlation_map("erf", gap, kernel, 1.0, 0.0)) == pytest.approx(exact, rel=1e-13)


@pytest.mark.slow
def test_correlation_map_of_a_kinked_function_of_ones_own():
    """The leaky ReLU in other words: quadrature against the closed form, at small and large K(1 − c)."""
    leaky = from_function(lambda u: jnp.where(u > 0, u, 0.2 * u), (0.0,), "own_leaky")
    for gap, kernel in ((1e-6, 2.0), (0.3, 0.5), (0.3, 50.0)):
        own = float(correlations.correlation_map(leaky, gap, kernel, 1.3, 0.2))
        assert own == pytest.approx(
            float(correlations.correlation_map("leaky_relu(0.2)", gap, kernel, 1.3, 0.2)), rel=1e-10
        )


def test_slopes_of_the_correlation_map():
    """Price's theorem gives the derivative by the gap; a difference quotient the one by the variance."""
    for gap, kernel in ((1e-3, 40.0), (0.4, 40.0), (0.3, 0.5)):
        slopes = jax.grad(lambda g, k: correlations.correlation_map("tanh", g, k, 2.0, 0.1), argnums=(0, 1))(
            gap, kernel
        )
        for index, step in enumerate((1e-5 * gap, 1e-5 * kernel)):
            ends = [[gap, kernel], [gap, kernel]]
            ends[0][index] += step
            ends[1][index] -= step
            high, low = (float(correlations.correlation_map("tanh", *end, 2.0, 0.1)) for end in ends)
            assert float(slopes[index]) == pytest.approx((high - low) / (2 * step), rel=1e-6)


def test_he_initialization_is_critical():
    found = phases.phase("relu", 2.0, 0.0)
    assert found == ("critical", None, 1.0, 1.0)
    assert phases.phase("identity", 1.0, 0.0) == ("critical", None, 1.0, 1.0)
    assert phases.phase("leaky_relu(0.3)", 2 / 1.09, 0.0).name == "critical"
    scales = correlations.depth_scales("relu", 2.0, 0.0)
    assert scales == (None, 0.0, np.inf, np.inf)
    assert phases.phase("relu", 1.9, 0.0) == ("ordered", 0.0, 0.95, 0.95)
    assert phases.phase("relu", 1.0, 3e6).kernel == 6e6
    assert [float(part) for part in phases.edge_of_chaos("relu", 0.0)] == [0.0, 2.0, 0.0]
    for c_w, c_b in ((2.0, 0.1), (2.1, 0.0)):
        with pytest.raises(OutsideValidity, match="grows without bound"):
            phases.phase("relu", c_w, c_b)
    with pytest.raises(OutsideValidity, match="keep every variance"):
        phases.fixed_point("relu", 2.0, 0.0)


@pytest.mark.parametrize(
    ("function", "slopes", "bends"),
    [
        (jax.nn.elu, (1.0, 1.0), (1.0, 0.0)),
        pytest.param(jax.nn.soft_sign, (1.0, 1.0), (2.0, -2.0), marks=pytest.mark.slow),
        pytest.param(
            jax.nn.selu,
            (1.7580993408473766, 1.0507009873554805),
            (1.7580993408473766, 0.0),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_criticality_where_derivatives_jump_at_zero(function, slopes, bends):
    """E σ² = (s₋² + s₊²)K/2 + √(2/π)(s₊c₊ − s₋c₋)K^(3/2) + …; the kernel falls to zero like 4/a²l²."""
    found = criticality(function)
    c_w = 2 / (slopes[0] ** 2 + slopes[1] ** 2)
    a = np.sqrt(2 / np.pi) * c_w * (slopes[1] * bends[1] - slopes[0] * bends[0])
    assert found.universality == "K*=0"
    assert found.bias_variance == 0.0
    assert found.weight_variance == pytest.approx(c_w, rel=1e-14)
    assert found.expansion.bend == pytest.approx(a, rel=1e-14)
    assert found.expansion.stable
    assert found.expansion.perpendicular_exponent == 2.0
    # The kernel itself, by quadrature: K' = K + aK^(3/2) + a₁K²
    kernel = 1e-4
    following = float(finite_width.kernel_path(function, kernel, c_w, 0.0, 2)[1])
    assert (following - kernel) / kernel**1.5 == pytest.approx(a + found.expansion.a1 * kernel**0.5, abs=3e-3)
    law = depth_laws.decay_to_zero(function, 0.1, 4000)
    # 1/√K = −al/2 + κ log l + constant + O(log l/l), κ = (3a²/8 − a₁/2)/(−a/2)
    l = np.array([500, 4000])
    logarithm = (3 * a**2 / 8 - found.expansion.a1 / 2) / (-a / 2) * np.log(l)
    constant = np.asarray(law.kernels)[l - 4001] ** -0.5 + a * l / 2 - logarithm
    assert abs(constant[1] - constant[0]) < 1e-3
    kinked = criticality(from_function(function, (0.0,)))
    assert kinked.expansion.bend == pytest.approx(a, rel=1e-14)


@pytest.mark.parametrize("kernel", [1.0, 1e3, 1e6])
def test_moments_of_waves_and_exponentials(kernel):
    """sin at K = 1e6 gave 0.4076 for 0.5."""
    k = mp.mpf(kernel)
    for name, sign in (("sin", -1), ("cos", 1)):
        exact = float((1 + sign * mp.e ** (-2 * k)) / 2)
        assert float(finite_width.kernel_path(name, kernel, 1.0, 0.0, 2)[1]) == pytest.approx(exact, rel=1e-14)
        assert float(moments.first_derivative(name, kernel)) == pytest.approx(
            float(-sign * mp.e ** (-2 * k)), abs=1e-14
        )
    assert float(finite_width.kernel_path("exp", 30.0, 1.0, 0.0, 2)[1]) == pytest.approx(float(mp.e**60), rel=1e-13)


def test_what_has_no_moments_is_refused():
    with pytest.raises(OutsideValidity, match="not finite"):
        finite_width.kernel_path("exp", 1.0, 1.0, 0.0, 6)
    for attempt in (
        lambda: finite_width.kernel_path(jnp.log, 1.0, 1.0, 0.0, 3),
        lambda: phases.phase(jnp.log, 1.0, 0.0),
        lambda: criticality(jnp.log),
    ):
        with pytest.raises(OutsideValidity, match="not a number"):
            attempt()
    with pytest.raises(NotConverged, match="oscillates"):
        moments.mean("cos", 1e4)


@pytest.mark.parametrize("excess", [9e-6, -3e-6, 1e-12, 0.0, 0.3, -1.0])
@pytest.mark.parametrize("layer", [1, 2, 30, 10_000])
def test_linear_kernels_near_one(excess, layer):
    """C_w = 1 + 9e-6 was 11 % off at layer 1e5."""
    with mp.workdps(40):
        c_w = mp.mpf(1 + excess)
        total = mp.fsum(c_w**k for k in range(layer - 1)) if layer < 100 or excess else mp.mpf(layer - 1)
        exact = total + c_w ** (layer - 1) * 2
    if float(exact) < 1e300:
        assert float(finite_width.linear_kernel(2.0, 1 + excess, 1.0, layer)) == pytest.approx(float(exact), rel=1e-11)


@pytest.mark.parametrize(
    ("gram", "why"),
    [
        ([[1.0, 2.0], [2.0, 1.0]], "eigenvalue -1"),
        ([[-1.0]], "eigenvalue -1"),
        ([[1.0, 0.3], [0.1, 1.0]], "not symmetric"),
        ([[np.nan]], "finite"),
        ([[1.0, 0.0]], "shape"),
    ],
)
def test_tangent_kernels_need_a_gram_matrix(gram, why):
    with pytest.raises(DeeplimitsError, match=why):
        learning_rates.tangent_kernels("tanh", gram, 1.0, 0.0, [1.0, 1.0], [0.0, 0.0])


@pytest.mark.parametrize(
    "attempt",
    [
        lambda: finite_width.linear_kernel(2.0, 0.5, 1.0, 0),
        lambda: finite_width.linear_kernel(2.0, 0.5, 1.0, 2.5),
        lambda: finite_width.linear_kernel(2.0, -1.0, 1.0, 3),
        lambda: finite_width.kernel_path("tanh", 1.0, 1.0, 0.0, 2.5),
        lambda: correlations.correlation_path("tanh", 0.5, 1.0, 1.0, 0.0, -1),
        lambda: correlations.correlation_path("tanh", 2.5, 1.0, 1.0, 0.0, 3),
        lambda: correlations.correlation_response("tanh", -0.1, 1.0, 1.0),
    ],
)
def test_bad_input_is_a_sentence(attempt):
    with pytest.raises(ParameterError, match="is not allowed"):
        attempt()


@pytest.mark.parametrize(
    ("activation", "variances", "exact"),
    [
        ("tanh", (0.5, 1e-12), 2e-12),  # K* = C_b/(1 − C_w) while tanh is linear; it was 0
        ("tanh", (1.5, 1e7), 1e7 + 1.5 - 1.5 * np.sqrt(2 / np.pi / 1e7)),  # K ≈ C_b + C_w(1 − √(2/πK)); it "grew"
        ("square", (0.1, 0.1), (1 - np.sqrt(0.88)) / 0.6),  # K = 0.1 + 0.3K²; it "grew", as it does from 3.2 on
    ],
)
def test_fixed_points_wherever_they_are(activation, variances, exact):
    found = phases.phase(activation, *variances)
    assert found.kernel == pytest.approx(exact, rel=1e-9)
    assert float(phases.fixed_point(activation, *variances)) == pytest.approx(exact, rel=1e-9)


def test_variances_that_overflow_have_no_fixed_point():
    """E sinh² = (e^{2K} − 1)/2: with C_w = 0.5, C_b = 0.1 there is none, and K* = 0 was given as an ordered phase."""
    with pytest.raises(OutsideValidity, match="grows without bound"):
        phases.phase(jnp.sinh, 0.5, 0.1)


def test_curvatures_that_jump():
    """½E(σ(u) − σ(v))² by Gauss panels cut where u or v is 0, K = 30; the first was off by 7e-5."""
    found = correlations.correlation_map(jax.nn.soft_sign, np.array([1e-3, 1e-6]), 30.0, 1.5, 0.1)
    np.testing.assert_allclose(found, [0.0022639331734786374, 2.317793897144204e-06], rtol=1e-12)


def test_the_check_of_fan_in_scaling_can_fail(monkeypatch):
    """The simulation multiplies inputs by weights: a theory that errs about the first layer is found out."""
    limit = dl.limits.NngpKernelRecursion()
    keys = jax.random.split(jax.random.key(0), 2000)
    seen = np.asarray(jax.vmap(lambda key: limit.simulate(key, width=20)["first_layer"])(keys))
    right = finite_width.preactivation_variance
    for factor in (1.0, 3.0):
        with monkeypatch.context() as patch:
            patch.setattr(
                finite_width,
                "preactivation_variance",
                lambda *given, factor=factor, right=right: factor * right(*given),
            )
            stated = float(limit.theory()["first_layer"].value)
        assert (abs(seen.mean() - stated) < 5 * seen.std() / np.sqrt(len(keys))) == (factor == 1.0)


def test_collective_observables():
    """Linear networks: O_f of f = z² is Π χ²/n, of variance (2/n)·layers; tanh against networks of width 400."""
    found = finite_width.collective_variance(lambda z: z**2, "identity", 1.7, 1.0, 0.0, 4)
    np.testing.assert_allclose(found, 1.7**2 * np.array([2.0, 4.0, 6.0, 8.0]), rtol=1e-12)
    stated = finite_width.collective_variance(jnp.abs, "tanh", 1.0, 1.5, 0.1, 3, kinks=(0.0,))

    def neurons(key, width):
        z = jax.random.normal(key, (3, width))
        kernel, found = jnp.ones(()), []
        for row in z:
            found.append(jnp.mean(jnp.abs(jnp.sqrt(kernel) * row)))
            kernel = 0.1 + 1.5 * jnp.mean(jnp.tanh(jnp.sqrt(kernel) * row) ** 2)
        return jnp.stack(found)

    draws = {}
    for width in (50, 100):
        keys = jax.random.split(jax.random.key(width), 40_000)
        seen = np.asarray(jax.jit(jax.vmap(lambda key, width=width: neurons(key, width)))(keys))
        draws[width] = width * (seen - seen.mean(axis=0)) ** 2
    assert agrees(draws, stated)
    assert not agrees(draws, 1.1 * np.asarray(stated))


@pytest.mark.parametrize("width", [3.0, 99.0, 101.0, 1e6, 1e10])
def test_log_norms_keep_their_digits(width):
    """At n = 1e10 the mean was off by 2e-5."""
    with mp.workdps(40):
        n = mp.mpf(width)
        exact = float((mp.digamma(n / 2) - mp.log(n / 2)) / 2)
    assert float(deep_linear_log_norm(width, 1.0)[0]) == pytest.approx(exact, rel=1e-12)


def test_several_networks_at_once_are_refused_in_a_sentence():
    for function in (phases.phase, correlations.depth_scales):
        for given in ((np.linspace(1.2, 3.0, 4), 0.05), (1.5, np.array([0.05, 0.1]))):
            with pytest.raises(ParameterError, match="give one number"):
                function("tanh", *given)


@pytest.mark.parametrize("name", ["gelu", "swish"])
def test_small_inputs_die_where_large_ones_grow(name):
    """C_b = 0, C_w = 3: χ = 3/4 at 0 and F(K)/K → 3/2: K* = 0 attracts small variances, whatever large ones do."""
    found = phases.phase(name, 3.0, 0.0)
    assert (found.name, found.kernel) == ("ordered", 0.0)
    assert found.perpendicular == pytest.approx(0.75, rel=1e-12)
    assert float(phases.fixed_point(name, 3.0, 0.0)) == 0.0
    path = finite_width.kernel_path(name, 1e-3, 3.0, 0.0, 40)
    assert float(path[-1]) < 1e-6
    assert float(finite_width.kernel_path(name, 1e3, 3.0, 0.0, 40)[-1]) > 1e6
    with pytest.raises(OutsideValidity, match="grows without bound"):
        phases.phase(name, 5.0, 0.0)
