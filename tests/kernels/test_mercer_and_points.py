"""Mercer expansions, kernels on spheres, random features and determinantal processes."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad

from deeplimits.ensembles import determinantal as sampler
from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.models.architectures import FullyConnected
from deeplimits.theory.kernels import determinantal, feature_kernels, mercer, sphere

L = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 1.0], [0.0, 1.0, 2.0]])


def relu_tangent(t):
    return t * (np.pi - np.arccos(np.clip(t, -1, 1))) / (2 * np.pi)


def test_expansions_sum_to_the_kernel():
    x = np.array([0.1, 0.45, 0.9])
    features = np.asarray(mercer.mercer_of_minimum(4000).features(x))
    np.testing.assert_allclose(features @ features.T, np.minimum(x[:, None], x), atol=2e-4)
    x = np.array([-1.0, 0.3, 1.4])
    found = mercer.mercer_of_gaussian(60, scale=0.7, deviation=1.3)
    features = np.asarray(found.features(x))
    np.testing.assert_allclose(features @ features.T, np.exp(-((x[:, None] - x) ** 2) / (2 * 0.7**2)), atol=1e-9)
    assert abs(float(jnp.sum(mercer.mercer_of_gaussian(200, scale=0.7, deviation=1.3).eigenvalues)) - 1) < 1e-12


def test_nystrom_with_a_quadrature_rule():
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()
    found = mercer.nystrom(np.exp(-((nodes[:, None] - nodes) ** 2) / 2), weights)
    exact = mercer.mercer_of_gaussian(4)
    np.testing.assert_allclose(found.eigenvalues[:4], exact.eigenvalues, rtol=1e-9)
    x = np.array([0.2, 1.1])
    ratio = np.asarray(found.functions(np.exp(-((x[:, None] - nodes) ** 2) / 2)))[:, :4] / np.asarray(
        exact.functions(x)
    )
    np.testing.assert_allclose(np.abs(ratio), 1.0, rtol=1e-7)


@pytest.mark.parametrize("count", [0, -1, 2.5, True])
def test_counts_are_checked(count):
    with pytest.raises((ParameterError, TypeError)):
        mercer.mercer_of_minimum(count)


def test_whole_sphere_reference():
    found = sphere.sphere_eigenvalues(relu_tangent, 3, 6)
    stated = [np.pi / 4, np.pi / 3, 0.343611696486, 0, 0.0286343080405, 0, 0.00824514673489]
    np.testing.assert_allclose(4 * np.pi * found.eigenvalues, stated, atol=1e-12)
    assert found.eigenvalues[3] == 0


@pytest.mark.parametrize(("height", "stated"), [
    (1 / 3, [0.149877554208, 0.130719179023, 0.0264944449049, 0.00533650415025, 0.00304291192395, 0.00178977009137]),
    (1 / 2, [0.200385077322, 0.115769495304, 0.0186842550603, 0.00469635411162, 0.00251099251232, 0.00153173034838]),
])  # fmt: skip
def test_ring_reference(height, stated):
    np.testing.assert_allclose(sphere.ring_coefficients(relu_tangent, height**0.5, 5), stated, rtol=1e-10)


@pytest.mark.parametrize("dimension", [2, 3, 5, 20])
def test_eigenvalues_against_another_quadrature_and_the_trace(dimension):
    def kernel(t):
        return np.exp(t)

    found = sphere.sphere_eigenvalues(kernel, dimension, 12)
    mass = quad(lambda u: np.sin(u) ** (dimension - 2), 0, np.pi)[0]
    mean = quad(lambda u: np.exp(np.cos(u)) * np.sin(u) ** (dimension - 2), 0, np.pi)[0] / mass
    first = quad(lambda u: np.exp(np.cos(u)) * np.cos(u) * np.sin(u) ** (dimension - 2), 0, np.pi)[0] / mass
    np.testing.assert_allclose(found.eigenvalues[:2], [mean, first], rtol=1e-12)
    assert abs(found.multiplicities @ found.eigenvalues - np.e) < 1e-8
    assert found.trace == np.e


def test_deep_networks_on_the_sphere():
    net = FullyConnected(2, "relu", weight_variance=2.0)
    found = sphere.sphere_eigenvalues(sphere.network_kernel(net), 3, 40, tolerance=1e-10)
    assert np.all(found.eigenvalues >= 0)
    assert 0.97 * found.trace < found.multiplicities @ found.eigenvalues < found.trace
    with pytest.raises(ParameterError, match="dimension"):
        sphere.sphere_eigenvalues(np.exp, 1, 3)
    with pytest.raises(OutsideValidity, match="not finite"):
        sphere.sphere_eigenvalues(lambda t: np.full_like(t, np.inf), 3, 3)


def test_random_feature_variances():
    found = feature_kernels.neuron_features("relu", 1.0, 1.0, 0.5)
    np.testing.assert_allclose(found, [0.30449889052211, 0.61402876145397], rtol=1e-13)
    # sin² sin² = (1 − cos 2u)(1 − cos 2v)/4, in closed form
    a, b, c = 1.3, 0.7, 0.5
    second = (1 - np.exp(-2 * a) - np.exp(-2 * b) + np.exp(-2 * (a + b)) * np.cosh(4 * c)) / 4
    mean = np.exp(-(a + b) / 2) * np.sinh(c)
    np.testing.assert_allclose(feature_kernels.neuron_features("sin", a, b, c), [mean, second - mean**2], rtol=1e-9)
    rng = np.random.default_rng(0)
    w, phase = rng.standard_normal(400_000), rng.uniform(0, 2 * np.pi, 400_000)
    products = 2 * np.cos(phase) * np.cos(1.3 * w + phase)
    found = feature_kernels.fourier_features(1.3)
    assert abs(products.mean() - float(found.mean)) < 5 * products.std() / 630
    assert abs(products.var() - float(found.variance)) < 0.01


def test_probabilities_by_enumeration():
    subsets = [s for size in range(4) for s in itertools.combinations(range(3), size)]
    law = {s: float(determinantal.subset_probability(L, s)) for s in subsets}
    assert abs(sum(law.values()) - 1) < 1e-14
    np.testing.assert_allclose([law[()], law[0, 2]], [0.047619047619048, 0.19047619047619], rtol=1e-12)
    marginal = determinantal.marginal_kernel(L)
    for chosen in subsets:
        included = sum(p for s, p in law.items() if set(chosen) <= set(s))
        assert abs(float(determinantal.inclusion_probability(marginal, chosen)) - included) < 1e-14
    size = determinantal.cardinality(L)
    counts = [sum(p for s, p in law.items() if len(s) == k) for k in range(4)]
    np.testing.assert_allclose(size.probabilities, counts, atol=1e-14)
    assert abs(float(size.mean) - 1.8095238095238) < 1e-12
    assert abs(float(size.variance) - (counts @ np.arange(4) ** 2 - 1.8095238095238**2)) < 1e-12


def test_the_sampler_draws_every_subset_as_often_as_it_should():
    draws = np.asarray(jax.jit(jax.vmap(lambda key: sampler.determinantal_sample(key, jnp.asarray(L))))(
        jax.random.split(jax.random.key(0), 20_000)))  # fmt: skip
    codes = draws @ np.array([1, 2, 4])
    for code in range(8):
        chosen = [i for i in range(3) if code >> i & 1]
        p = float(determinantal.subset_probability(L, chosen))
        assert abs(np.mean(codes == code) - p) < 5 * np.sqrt(p * (1 - p) / 20_000) + 1e-9, chosen


def test_bad_kernels_of_point_processes():
    with pytest.raises(OutsideValidity, match="eigenvalue -1"):
        determinantal.subset_probability([[0.0, 1.0], [1.0, 0.0]], [0])
    with pytest.raises(OutsideValidity, match="eigenvalue 2"):
        determinantal.inclusion_probability(2 * np.eye(2), [0])
    with pytest.raises(ParameterError, match="subset"):
        determinantal.subset_probability(L, [0, 0])
    with pytest.raises(ParameterError, match="subset"):
        determinantal.subset_probability(L, [3])


def test_kernel_interpolation_on_a_ring_is_dense_there():
    """Against a dense solve; the error of a function with kinks falls with every doubling of the points."""

    def wave(phi):
        return np.abs(np.sin(phi))

    errors = [sphere.ring_interpolation_error(relu_tangent, 0.5, wave, count) for count in (8, 16, 32, 64)]
    assert all(after < 0.4 * before for before, after in itertools.pairwise(errors))
    coarse, fine = (2 * np.pi * np.arange(n) / n for n in (16, 128))

    def matrix(left, right):
        return relu_tangent(0.25 + 0.75 * np.cos(left[:, None] - right))

    dense = matrix(fine, coarse) @ np.linalg.solve(matrix(coarse, coarse), wave(coarse))
    assert errors[1] == pytest.approx(np.max(np.abs(dense - wave(fine))), rel=1e-9)
    with pytest.raises(OutsideValidity, match="does not tell 16 points"):
        sphere.ring_interpolation_error(lambda u: u**2, 0.5, wave, 16)
