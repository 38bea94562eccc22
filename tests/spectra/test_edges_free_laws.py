"""Free sums and products at the edges: narrow bulks, point masses, many factors, zero, bulks that touch."""

import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from scipy.linalg import expm

from agreement import agrees
from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.measure import analytical_shrinkage
from deeplimits.theory.spectra import covariance_gaps, isometry, laws, network_grams, series, shrinkage, transforms


@pytest.mark.parametrize("variance", [1e-4, 1e-5, 1e-10])
def test_no_narrow_bulk_is_lost(variance):
    law = laws.free_sum(laws.semicircle(variance), laws.from_atoms(np.arange(1.0, 11.0)))
    assert law.edges.shape == (10, 2)
    # Around a far neighbourless atom of mass w the law is w times a semicircle of variance w s².
    width = 4 * np.sqrt(variance / 10)
    np.testing.assert_allclose(law.edges[:, 1] - law.edges[:, 0], width, rtol=3 * variance**0.5 + 1e-5)
    np.testing.assert_allclose(law.cdf(np.arange(1.0, 10.0) + 0.5), np.arange(1.0, 10.0) / 10, atol=1e-12)
    density = [float(law.density(float(k))) for k in (1, 5)]
    np.testing.assert_allclose(density, 0.1 / (np.pi * np.sqrt(variance / 10)), rtol=1e-3)


def test_narrow_bulks_of_products_are_those_of_sample_covariances():
    values = np.arange(1.0, 11.0)
    law = laws.free_product(laws.marchenko_pastur(1e-6), laws.from_atoms(values))
    other = laws.sample_covariance(values, 1e-6)
    np.testing.assert_allclose(law.edges, other.edges, rtol=1e-9)
    assert float(law.density(3.0)) == pytest.approx(float(other.density(3.0)), rel=1e-7)
    np.testing.assert_allclose(law.cdf([1.0, 4.5, 10.0]), other.cdf([1.0, 4.5, 10.0]), atol=1e-8)


def test_point_masses_shift_and_stretch_in_either_place():
    point, law = laws.from_atoms([2.0]), laws.marchenko_pastur(0.5)
    for found in (laws.free_sum(point, law), laws.free_sum(law, point)):
        np.testing.assert_allclose(found.edges, np.asarray(law.edges) + 2)
    for found in (laws.free_product(point, law), laws.free_product(law, (point, 2))):
        assert min(abs(float(found.mean()) - mean) for mean in (2, 4)) < 1e-12
    assert float(laws.free_product(point, (point, 3)).mean()) == pytest.approx(16)


def test_bulks_that_touch_and_hard_edges():
    coin = laws.from_atoms([-1.0, 1.0])
    np.testing.assert_allclose(laws.free_sum(coin, coin).edges, [[-2, 2]], atol=1e-12)
    assert float(laws.free_sum(coin, coin).cdf(1.0)) == pytest.approx(2 / 3, abs=1e-12)
    np.testing.assert_allclose(laws.free_sum(laws.semicircle(1.0), coin).edges[-1, -1], 1.5 * 3**0.5, rtol=1e-12)
    # Atoms of masses 0.8 + 0.7 − 1 and 0.2 + … below one: half the mass stays at zero.
    law = laws.free_sum(laws.from_atoms([0.0, 1.0], [0.8, 0.2]), laws.from_atoms([0.0, 1.0], [0.7, 0.3]))
    np.testing.assert_allclose(law.cdf([-0.1, 0.0, 0.1, 1.0, 2.0]), [0, 0.5, 0.5, 0.8, 1], atol=1e-12)


def test_products_at_zero_and_near_it():
    law = laws.free_product(laws.marchenko_pastur(0.5), laws.marchenko_pastur(0.5))
    # ∫1/x = 1/S(−1) = 2·2; m'(0) = ∫1/x² is the product of moments only in this order.
    assert float(law.stieltjes(0.0).real) == pytest.approx(4, rel=1e-13)
    # m z = −(1 + M) with z M = (1 + M)(1 + M/2)²: one real root of the cubic between −1 and 0.
    mpmath.mp.dps = 40
    for z in (-1e-8, -1e-10, -1e-12):
        w = mpmath.mpf(z)
        root = mpmath.findroot(lambda m, w=w: w * m - (1 + m) * (1 + m / 2) ** 2, -1 - 4 * w)
        assert float(law.stieltjes(z).real) == pytest.approx(float(-(1 + root) / w), rel=1e-12)


@pytest.mark.parametrize("weights", ["gaussian", "orthogonal"])
@pytest.mark.parametrize("depth", [3, 41])
def test_jacobians_of_odd_depth(depth, weights):
    """An odd number of units at rest once left a gap of mass beyond one, and no law."""
    for active in (0.1, 0.5):
        law = isometry.jacobian_spectrum(depth, weights, 1 / active, active)
        top = float(isometry.largest_squared_singular_value(depth, weights, active))
        np.testing.assert_allclose(law.edges, [[0.0, top]], rtol=1e-9)
        np.testing.assert_allclose(law.atoms.weights, [1 - active], rtol=1e-12)
        assert float(law.var()) == pytest.approx(
            float(isometry.relative_variance(depth, weights, 1 / active)), rel=1e-8
        )


def test_a_product_is_that_of_its_different_factors():
    """Equal factors are counted, products in products opened and scales taken out: 25 factors took minutes."""
    one, two = laws.marchenko_pastur(1.0), laws.from_atoms([1.0, 2.5])
    together = laws.free_product((one, 25))
    apart = laws.free_product(*[one] * 24, laws.marchenko_pastur(1.0, 1e12))
    np.testing.assert_allclose(apart.edges, 1e12 * np.asarray(together.edges), rtol=1e-12)
    nested = laws.free_product(laws.marchenko_pastur(0.5, 1e-12), laws.free_product(two.affine(1e9), two.affine(1e3)))
    flat = laws.free_product(laws.marchenko_pastur(0.5), (two, 2))
    x = np.array([0.7, 2.0, 5.0])
    np.testing.assert_allclose(nested.cdf(x), flat.cdf(x), rtol=1e-12)
    with pytest.raises(OutsideValidity, match="beyond the range of numbers"):
        isometry.jacobian_spectrum(100, "gaussian", 1e6, 0.5)


@pytest.mark.parametrize("depth", [1, 16, 100])
@pytest.mark.parametrize("weights", ["gaussian", "orthogonal"])
def test_jacobians_of_any_depth(depth, weights):
    law = isometry.jacobian_spectrum(depth, weights, 2.0, 0.5)
    if depth > 2:
        top = float(isometry.largest_squared_singular_value(depth, weights, 0.5))
        assert float(law.edges[-1, 1]) == pytest.approx(top, rel=1e-10)
    assert float(law.mean()) == pytest.approx(1, rel=1e-10)
    assert float(law.var()) == pytest.approx(float(isometry.relative_variance(depth, weights, 2.0)), rel=1e-8)
    # ∫ y/(y + λ) dμ = y m(−y), found by another road.
    share = float(isometry.shrunk_share(depth, weights, 2.0, 0.5, 0.7))
    assert 0.7 * float(law.stieltjes(-0.7).real) == pytest.approx(share, rel=1e-9)


@pytest.mark.parametrize("count", [2, 10, 25])
def test_powers_of_marchenko_pastur_are_fuss_catalan(count):
    law = laws.free_product((laws.marchenko_pastur(1.0), count))
    assert float(law.edges[-1, 1]) == pytest.approx((count + 1.0) ** (count + 1) / float(count) ** count, rel=1e-10)
    # x = sin^{L+1}((L+1)φ)/(sin φ sin^L(Lφ)), density sin²φ sin^{L−1}(Lφ)/(π sin^L((L+1)φ)); the mass above x is an
    # integral over the angle.
    mpmath.mp.dps = 30

    def place(phi):
        return mpmath.sin((count + 1) * phi) ** (count + 1) / (mpmath.sin(phi) * mpmath.sin(count * phi) ** count)

    def density(phi):
        return (
            mpmath.sin(phi) ** 2
            * mpmath.sin(count * phi) ** (count - 1)
            / (mpmath.pi * mpmath.sin((count + 1) * phi) ** count)
        )

    for share in (0.2, 0.5):
        phi = mpmath.mpf(share) * mpmath.pi / (count + 1)
        x = float(place(phi))
        assert float(law.density(x)) == pytest.approx(float(density(phi)), rel=1e-9)
        above = mpmath.quad(lambda t: -density(t) * mpmath.diff(place, t), [mpmath.mpf(10) ** -8, phi / 2, phi])
        assert 1 - float(law.cdf(x)) == pytest.approx(float(above), abs=1e-9)
    known = [mpmath.binomial((count + 1) * k, k) / (count * k + 1) for k in range(1, 5)]
    found = series.product_moments([laws.marchenko_pastur(1.0)], [count], 4)
    np.testing.assert_allclose(found, [float(k) for k in known], rtol=1e-10)


@pytest.mark.slow
def test_smooth_activations_with_orthogonal_weights():
    point = isometry.critical_point("tanh", 0.5)
    law = isometry.jacobian_spectrum(4, "orthogonal", point.weight_variance, isometry.slope_law("tanh", 0.5))
    assert float(law.var()) == pytest.approx(float(isometry.relative_variance(4, "orthogonal", point.spread)), rel=1e-8)
    assert float(law.edges[-1, 1]) == pytest.approx(4.21296, abs=1e-4)
    assert 0 < float(law.cdf(0.5)) < float(law.cdf(1.0)) < 1


@pytest.mark.parametrize("depth", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_nodes_that_stand_for_smooth_slopes_are_no_bulks(depth):
    """tanh: no density at depth 1, five gaps near 1e-6 at depth 2, where the law has none."""
    slopes = isometry.slope_law("tanh", 0.5)
    with pytest.raises(OutsideValidity, match="show as separate bulks"):
        isometry.jacobian_spectrum(depth, "orthogonal", 1.5, slopes)
    # Of a piecewise linear activation there is nothing to blur.
    assert isometry.jacobian_spectrum(1, "orthogonal", 2.0, isometry.slope_law("relu", 0.5)).atoms.values.tolist() == [
        0.0, 2.0,
    ]  # fmt: skip


def test_isometry_refuses_what_is_no_network():
    for call in (
        lambda: isometry.largest_squared_singular_value(4, "Gaussian", 0.5),
        lambda: isometry.largest_squared_singular_value(4, "gaussian", 0.0),
        lambda: isometry.largest_squared_singular_value(4, "gaussian", 1.5),
        lambda: isometry.largest_squared_singular_value(-3, "gaussian", 0.5),
        lambda: isometry.relative_variance(4, "foo", 2.0),
        lambda: isometry.atom_at_top(4, 2.0),
        lambda: isometry.shrunk_share(4, "gaussian", 2.0, 0.5, 0.0),
        lambda: isometry.shrunk_share(4, "gaussian", 2.0, 0.5, -1.0),
    ):
        with pytest.raises(ParameterError):
            call()
    with pytest.raises(OutsideValidity, match="no critical point"):
        isometry.critical_point("exp", 0.5)
    with pytest.raises(ParameterError, match="take laws"):
        laws.free_sum(laws.semicircle(1.0), [1, 2])


def test_shrinkage_on_every_law_and_nowhere_else():
    law = laws.marchenko_pastur(0.5, 3.0)
    np.testing.assert_allclose(shrinkage.oracle_shrinkage(law, [1.0, 3.0, 6.0]), 3, rtol=1e-12)
    assert float(shrinkage.oracle_shrinkage(laws.marchenko_pastur(2.0, 3.0), 0.0)) == 3
    np.testing.assert_allclose(shrinkage.oracle_inverse_shrinkage(law, [1.0, 3.0]), 1 / 3, rtol=1e-10)
    for wrong in (100.0, -1.0, 0.0, np.nan):
        with pytest.raises(ParameterError, match="eigenvalues"):
            shrinkage.oracle_inverse_shrinkage(law, wrong)
    with pytest.raises(ParameterError, match="eigenvalues"):
        analytical_shrinkage([1.0, np.nan, 2.0], 20)
    listed = shrinkage.linear_shrinkage_intensity([1.0, 3.0, 10.0], 0.4)
    assert float(listed) == pytest.approx(float(shrinkage.linear_shrinkage_intensity(np.diag([1.0, 3.0, 10.0]), 0.4)))


def nested_kernel(share, data_ratio, ratios):
    law = laws.marchenko_pastur(data_ratio)
    for ratio in ratios:
        law = laws.sample_covariance(law.affine(share, 1 - share), ratio)
    return law


@pytest.mark.parametrize(("share", "data_ratio", "ratios"), [(0.93, 2 / 3, [0.5, 2 / 3]), (0.9, 0.3, [0.2, 2.0])])
def test_deep_kernels_are_nested_sample_covariances(share, data_ratio, ratios):
    found, known = (
        network_grams.conjugate_kernel_spectrum(share, data_ratio, ratios),
        nested_kernel(share, data_ratio, ratios),
    )
    np.testing.assert_allclose(found.edges, known.edges, rtol=1e-9)
    np.testing.assert_allclose(found.density([0.5, 1.0, 3.0]), known.density([0.5, 1.0, 3.0]), rtol=1e-9)
    np.testing.assert_allclose(found.cdf([0.2, 0.5, 1.0, 9.0]), known.cdf([0.2, 0.5, 1.0, 9.0]), atol=1e-9)
    np.testing.assert_allclose(found.stieltjes([-0.5, 1 + 0.5j]), known.stieltjes([-0.5, 1 + 0.5j]), rtol=1e-10)


def test_eight_layers_are_as_easy_as_two():
    ratios = [0.5, 0.6, 0.7, 0.4, 0.5, 0.9, 1.5, 0.8]
    law = network_grams.conjugate_kernel_spectrum(0.9, 2 / 3, ratios)
    # The trace of every layer's kernel is that of the last; and the transform below zero by the other road.
    assert float(law.expect(lambda x: x)) == pytest.approx(1, abs=1e-9)
    y = np.array([0.3, 2.0])
    other = network_grams.conjugate_kernel_transform(
        jnp.asarray(y), jnp.asarray(0.9), jnp.asarray(2 / 3), [jnp.asarray(ratio) for ratio in ratios]
    )
    np.testing.assert_allclose(y * np.real(law.stieltjes(-y)), other, rtol=1e-9)


def test_what_a_transform_says_of_its_measure():
    law = laws.free_sum(laws.from_atoms([0.0, 1.0], [0.8, 0.2]), laws.from_atoms([0.0, 1.0], [0.7, 0.3]))
    assert transforms.atom_mass(law.stieltjes, 0.0) == pytest.approx(0.5, abs=1e-8)
    assert transforms.total_mass(law.stieltjes) == pytest.approx(1, abs=1e-9)
    wide = laws.marchenko_pastur(0.5)
    exact = float(wide.cdf(1.0) - wide.cdf(0.5))
    assert transforms.mass_between(wide.stieltjes, 0.5, 1.0) == pytest.approx(exact, abs=1e-7)
    assert float(transforms.density_from_transform(wide.stieltjes, 1.0)) == pytest.approx(
        float(wide.pdf(1.0)), abs=1e-7
    )
    a = np.random.default_rng(0).standard_normal((4, 4))
    np.testing.assert_allclose(transforms.matrix_function(a, jnp.exp, nodes=128), expm(a), atol=1e-9)
    with pytest.raises(ParameterError, match="enclose"):
        transforms.matrix_function(np.eye(2), jnp.exp, radius=0.5)


def test_gaps_between_sample_and_population():
    rng = np.random.default_rng(0)
    for gamma in (0.25, 4.0):
        found, draws = covariance_gaps.operator_gap(gamma), {}
        for n in (32, 64, 128):
            x = rng.standard_normal((200, round(gamma * n), n))
            values = np.linalg.svd(x, compute_uv=False) ** 2 / n
            lowest = values[:, -1] if gamma < 1 else np.zeros(200)
            draws[n] = np.stack([values[:, 0] - 1, 1 - lowest], axis=1)
        stated = np.array([found.upper, found.lower])
        assert agrees(draws, stated, 2 / 3)
        for factor in (0.9, 1.1):
            assert not agrees(draws, stated * factor, 2 / 3)
    # The exact mean by enumeration of signs: p = 2, n = 2, κ₄ = 1.
    signs = np.array(np.meshgrid(*[[-1, 1]] * 4)).reshape(4, -1).T.reshape(-1, 2, 2)
    gaps = np.einsum("sni,snj->sij", signs, signs) / 2 - np.eye(2)
    assert np.mean(np.sum(gaps**2, axis=(1, 2))) / 2 == pytest.approx(
        float(covariance_gaps.mean_frobenius_gap(2, 2, 1.0))
    )
    stated, draws = float(covariance_gaps.frobenius_gap([1.0, 3.0], 0.5)), {}
    for p in (20, 40, 80):
        t = np.repeat([1.0, 3.0], p // 2)
        x = rng.standard_normal((400, 2 * p, p)) * np.sqrt(t)
        gap = x.transpose(0, 2, 1) @ x / (2 * p) - np.diag(t)
        draws[p] = np.sum(gap**2, axis=(1, 2)) / p
    assert agrees(draws, stated)
    assert not agrees(draws, 1.03 * stated)


def test_the_largest_entry_of_a_sample_covariance():
    """n L² − 4 log p + log log p has the law exp(−e^(−y/2)/√(8π)) in the limit, so L is of order √(4 log p/n)."""
    rng = np.random.default_rng(1)
    for p in (50, 100):
        y = rng.standard_normal((400, 2 * p, p))
        covariance = y.transpose(0, 2, 1) @ y / (2 * p)
        covariance[:, np.arange(p), np.arange(p)] = 0
        largest = np.abs(covariance).max(axis=(1, 2))
        square, log_p = 2 * p * largest**2, np.log(p)
        assert 2 * p * float(covariance_gaps.largest_entry(2 * p, p)) ** 2 == pytest.approx(4 * log_p, rel=1e-12)
        # The mean of that law, and five standard errors; the next order is O(1/log p), here up to 3/log p.
        mean = 4 * log_p - np.log(log_p) + 2 * np.euler_gamma - np.log(8 * np.pi)
        assert abs(square.mean() - mean) < 5 * 2 * np.pi / np.sqrt(6 * 400) + 3 / log_p
