"""Two-layer tangent kernels, linearizations, and the theorems on lazy training."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.models.activations import activation
from deeplimits.theory.kernels import definiteness, lazy_bounds, linearization, two_layer_kernels


def circle(angles):
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


@pytest.mark.parametrize(("sigma", "outer", "inner"), [
    ("relu", 0.33877378388326, 0.21144982940974), ("erf", 0.26197976086891, 0.27784364721714)])  # fmt: skip
def test_gram_reference(sigma, outer, inner):
    found = two_layer_kernels.two_layer_gram(sigma, 1.0, 1.0, 0.6)
    np.testing.assert_allclose([found.outer, found.inner], [outer, inner], rtol=1e-12)
    np.testing.assert_allclose(
        two_layer_kernels.two_layer_gram(sigma, 1.0, 1.0, 0.6, output_second_moment=1 / 3).inner, inner / 3, rtol=1e-12
    )


def test_two_layer_ntk_reference():
    cosines = np.array([0.6, -0.5, 0.0])
    found = two_layer_kernels.two_layer_ntk("relu", [[1.0, 0.0]], circle(np.arccos(cosines)))[0]
    np.testing.assert_allclose(found, [0.5502236133, -0.0288344428, 1 / (2 * np.pi)], atol=1e-10)
    same = two_layer_kernels.two_layer_ntk("relu", circle(np.arange(3.0)))
    np.testing.assert_allclose(np.diagonal(same), 1.0, rtol=1e-14)


def test_variances_of_finite_kernels():
    assert abs(float(two_layer_kernels.arc_cosine_ntk(1.0, 1.0, -0.3).mean) + 0.060451997396898) < 1e-14
    a, b, c = 1.34 / 3 + 0.09, 1.53 / 3 + 0.09, -0.51 / 3 + 0.09
    assert abs(float(two_layer_kernels.ntk_variance("relu", a, b, c)) ** 0.5 - 0.211820030679) < 1e-12
    # A linear network: Θ = uv + a²c per neuron with Gaussian u, v
    exact = (a * b + 2 * c**2) + 2 * c * c + 3 * c**2 - (2 * c) ** 2
    assert abs(float(two_layer_kernels.ntk_variance("identity", a, b, c)) - exact) < 1e-9


def test_definiteness_reference():
    quarter = definiteness.gram_definiteness("relu", circle(np.pi * np.arange(4) / 4))
    assert quarter.guaranteed
    assert abs(quarter.least_eigenvalue - 0.017977920665189) < 1e-14
    antipodal = definiteness.gram_definiteness("relu", circle(np.pi * np.arange(4) / 2))
    assert (antipodal.guaranteed, antipodal.antipodal_pairs) == (False, 2)
    assert abs(antipodal.least_eigenvalue - 0.18169011381621) < 1e-13
    assert abs(definiteness.gram_definiteness("erf", circle(np.pi * np.arange(4) / 2)).least_eigenvalue) < 1e-15
    # Three antipodal pairs in two dimensions: the odd part of ReLU has degree one only.
    assert abs(definiteness.gram_definiteness("relu", circle(np.pi * np.arange(6) / 3)).least_eigenvalue) < 1e-15
    with pytest.raises(ParameterError, match="twice"):
        definiteness.gram_definiteness("relu", circle(np.zeros(2)))
    with pytest.raises(ParameterError, match="length one"):
        definiteness.gram_definiteness("relu", 2 * circle(np.arange(2.0)))


def test_relu_bounds():
    assert abs(float(linearization.relu_remainder_bound(10**6, 1.0, 0.01)) - 0.34649) < 1e-5
    for two_points in (False, True):
        loose = linearization.relu_remainder_bound(10**4, 1.0, 0.1, two_points=two_points)
        sharp = linearization.relu_remainder_bound(10**4, 1.0, 0.1, two_points=two_points, sharp=True)
        assert float(linearization.relu_worst_case(10**4, 1.0)) < float(sharp) < float(loose)


@pytest.mark.parametrize(
    ("name", "degree"), [("relu", 1), ("leaky_relu(0.2)", 1), ("relu_power(2)", 2), ("tanh", None)]
)
def test_two_layer_expansion_is_the_taylor_expansion(name, degree):
    rng = np.random.default_rng(0)
    sigma, x, a = activation(name), rng.standard_normal(3), rng.standard_normal(8)
    w, w0 = rng.standard_normal((2, 8, 3))

    def network(w):
        return jnp.asarray(a) @ sigma.value(w @ x) / np.sqrt(8)

    value, features = linearization.two_layer_expansion(sigma, w, w0, a, x)
    start, change = jax.jvp(network, (jnp.asarray(w0),), (jnp.asarray(w - w0),))
    np.testing.assert_allclose(value, start + change, atol=1e-12)
    np.testing.assert_allclose(features, jax.grad(network)(jnp.asarray(w0)), atol=1e-13)
    if degree:
        np.testing.assert_allclose(np.sum(np.asarray(features) * w0), degree * start, atol=1e-12)


def test_lazy_bounds_on_the_toy_model():
    """f = θ₁θ₂ from (2, 1) to 2.5: reference values, and the bounds along the integrated flow."""
    bounds = lazy_bounds.lazy_training_bounds(1.0, 5**0.5, 5**0.5, 0.5)
    np.testing.assert_allclose(
        [bounds.rate, bounds.displacement, bounds.distance], [2.5, 0.44721359549996, 0.6708203932], rtol=1e-9
    )

    def flow(t, theta):
        return (2.5 - theta[0] * theta[1]) * theta[::-1]

    found = solve_ivp(flow, (0, 40), [2.0, 1.0], rtol=1e-11, atol=1e-13, t_eval=[0.1, 0.5, 40])
    np.testing.assert_allclose(found.y[:, 0], [2.0406802673667, 1.0790625346196], rtol=1e-8)
    np.testing.assert_allclose(found.y[:, 2], [2.1013033925216, 1.1897377641408], rtol=1e-8)
    risk = (2.5 - found.y.prod(axis=0)) ** 2 / 2
    np.testing.assert_allclose(risk[:2], [0.044395556981196, 0.00049244677518312], rtol=1e-7)
    assert np.all(risk[:2] <= 0.125 * np.exp(-bounds.rate * found.t[:2]))
    linear = np.array([2.0, 1.0])[:, None] + np.array([1.0, 2.0])[:, None] * 0.5 * (1 - np.exp(-5 * found.t)) / 5
    distance = np.linalg.norm(found.y - linear, axis=0)
    np.testing.assert_allclose(distance[1:], [0.0060501250369308, 0.010344675775296], rtol=1e-6)
    assert np.all(distance <= bounds.distance)
    outputs = np.abs(found.y.prod(axis=0) - 2 - 5 * 0.5 * (1 - np.exp(-5 * found.t)) / 5)
    assert np.all(outputs <= np.asarray(bounds.output_distance_at(found.t)) + 1e-9)
    # (20σ_max L r₀²/3σ_min³)(e^{−λ₀t/2} − e^{−2λ₀t}) with σ² = 5, and its largest value over all times
    times = np.linspace(0.0, 4.0, 4001)
    curve = 20 * 0.25 / 15 * (np.exp(-1.25 * times) - np.exp(-5 * times))
    np.testing.assert_allclose(bounds.output_distance_at(times), curve, rtol=1e-12, atol=1e-15)
    assert bounds.output_distance == pytest.approx(curve.max(), rel=1e-6)
    assert bounds.quadratic_distance == pytest.approx(0.7155417528, rel=1e-9)
    with pytest.raises(OutsideValidity, match="not below 1"):
        lazy_bounds.lazy_training_bounds(1.0, 1.0, 1.0, 0.5)
    with pytest.raises(OutsideValidity, match="kink"):
        lazy_bounds.two_layer_lipschitz(activation("relu"), np.eye(2), 10)


def test_lipschitz_bound_holds():
    rng = np.random.default_rng(0)
    x, signs = rng.standard_normal((4, 3)), np.where(np.arange(30) < 15, 1.0, -1.0)

    def jacobian(w):
        slopes = signs * (1 - np.tanh(x @ w.T) ** 2) / np.sqrt(30)
        return (slopes[:, :, None] * x[:, None, :]).reshape(4, -1)

    bound = lazy_bounds.two_layer_lipschitz(activation("tanh"), x, 30)
    for _ in range(50):
        v, move = rng.standard_normal((2, 30, 3))
        change = np.linalg.norm(jacobian(v + 0.1 * move) - jacobian(v), 2)
        assert change <= bound * 0.1 * np.linalg.norm(move)


def test_alpha_theorem_reference():
    published, sharp = (lazy_bounds.lazy_scaling(24.0, 1.0, 1.0, 1.0, 0.5, sharp=s) for s in (False, True))
    np.testing.assert_allclose([published.threshold, published.displacement], [24, 0.25])
    np.testing.assert_allclose([sharp.threshold, sharp.displacement], [4, 1 / 12])
    assert np.arcsin(1 / 24) < sharp.displacement
    # f(w₀) = 0.2: R₀ grows with α, and the admissible α are the interval [24/5.8, 24/3.8].
    for alpha, allowed in ((4.1, False), (4.2, True), (6.3, True), (6.4, False)):
        risk = (0.2 * alpha - 1) ** 2 / 2
        if allowed:
            lazy_bounds.lazy_scaling(alpha, 1.0, 1.0, 1.0, risk, sharp=False)
        else:
            with pytest.raises(OutsideValidity, match="threshold"):
                lazy_bounds.lazy_scaling(alpha, 1.0, 1.0, 1.0, risk, sharp=False)
    with pytest.raises(ParameterError, match="alpha"):
        lazy_bounds.lazy_scaling(-1.0, 1.0, 1.0, 1.0, 0.5)


def test_singular_value_references():
    for ratio, stated in ((0.25, [0.18924352917646, 0.92300185790128]), (0.5, [0.12899699463604, 1.1666879746229])):
        np.testing.assert_allclose(lazy_bounds.two_layer_singular_values(activation("tanh"), ratio), stated, rtol=1e-10)
    # μ₁ = 0 for cosine: no bulk, and the spike of its mean curvature. E sin² = (1 − e⁻²)/2, (E cos)² = 1/e
    found = lazy_bounds.two_layer_singular_values(activation("cos"), 0.5)
    np.testing.assert_allclose(found, [(1 - np.exp(-2)) / 2, (1 - np.exp(-2)) / 2 + 0.5 / np.e], rtol=1e-10)
    with pytest.raises(OutsideValidity, match="kink"):
        lazy_bounds.two_layer_singular_values(activation("relu"), 0.5)


def test_du_reference():
    found = lazy_bounds.du_convergence(4, 0.3, 0.5)
    np.testing.assert_allclose([found.radius, found.width], [0.01875, 2022716.0493827], rtol=1e-12)
    just_wide = lazy_bounds.du_convergence(4, 0.3, 0.5, width=2_022_717)
    assert just_wide.movement is not None
    assert 0.9999 < just_wide.movement / just_wide.radius < 1
    with pytest.raises(ParameterError, match="least"):
        lazy_bounds.du_convergence(4, 0.0, 0.5)


def test_orders_of_two_layer_networks():
    """The orders put into the general theorem: its condition, displacement and distance, up to constants."""
    alpha, n, d, m = 0.7, 50.0, 20.0, 1e7
    found = lazy_bounds.lazy_orders(alpha, n, d, m)
    assert [float(x) for x in (found.residual, found.least)] == pytest.approx([1.7 * n**0.5, 0.7 * d**0.5])
    # L r₀/σ_min² squared is n(√n + √d)²/(md)((1 + α)/α)²: within a factor 2 to 4 of n max(n, d)/(md)
    condition = float(found.lipschitz * found.residual / found.least**2) ** 2
    assert float(found.laziness) < condition < 4 * float(found.laziness)
    assert float(found.displacement) == pytest.approx(float(found.residual / found.least), rel=1e-12)
    # σ_max²Lr₀²/σ_min⁵ = α-free powers: ((1+α)/α)² n(√n + √d)³/(√m d²)
    sharp = float(found.largest**2 * found.lipschitz * found.residual**2 / found.least**5)
    assert float(found.distance) <= sharp <= 2**1.5 * float(found.distance)
    doubled = lazy_bounds.lazy_orders(alpha, n, d, 4 * m)
    assert float(found.distance / doubled.distance) == pytest.approx(2.0, rel=1e-12)
    with pytest.raises(ParameterError):
        lazy_bounds.lazy_orders(0.0, n, d, m)
