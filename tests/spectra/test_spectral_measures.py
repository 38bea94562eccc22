"""Spectral measures against quadrature, closed forms, reference values and their own equations."""

import jax
import numpy as np
import pytest
from scipy import stats

from deeplimits.ensembles import data
from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.statistics import LEVEL
from deeplimits.theory.spectra import laws
from deeplimits.theory.spectra.cumulants import cumulants_of_moments, moments_of_cumulants
from deeplimits.theory.spectra.spectral_measure import SpectralMeasure

POPULATIONS = {
    1: np.array([1.0]),
    2: np.array([1.0, 3.0]),
    5: np.arange(1.0, 6.0),
    20: 1 / np.arange(1.0, 21.0),
    200: np.linspace(0.1, 5.0, 200),
    1000: np.geomspace(0.01, 10.0, 1000),
}
GAMMAS = [0.01, 0.5, 1.0, 2.0, 50.0]
# A thousand atoms at γ = 0.01 leave a thousand ripples: that pair is checked with fewer points of its own.
PAIRS = [(size, gamma) for size in POPULATIONS for gamma in GAMMAS if (size, gamma) != (1000, 0.01)]


def by_quadrature(law, name, *arguments):
    """The base class's way: from the density between the edges, without the closed forms of the subclass."""
    return getattr(SpectralMeasure, name)(law, *arguments)


@pytest.mark.parametrize(("size", "gamma"), PAIRS)
def test_total_mass_moments_and_distribution_function(size, gamma):
    law = laws.sample_covariance(POPULATIONS[size], gamma)
    rule = law._rule
    assert rule.weights.sum() + float(law.atoms.weights[0]) == pytest.approx(1, abs=1e-10)
    assert float(law.atoms.weights[0]) == pytest.approx(max(0, 1 - 1 / gamma), abs=1e-15)
    # Free cumulants of the companion law are γ∫t^k; the quadrature of the density knows nothing of them.
    for order in (1, 2, 3):
        assert float(by_quadrature(law, "moment", order)) == pytest.approx(float(law.moment(order)), rel=1e-11)
    low, high = law.support
    x = np.linspace(low, high, 9)
    np.testing.assert_allclose(by_quadrature(law, "cdf", x), law.cdf(x), atol=1e-11)


def test_a_thousand_ripples():
    law = laws.sample_covariance(POPULATIONS[1000], 0.01)
    assert len(law.edges) == 1
    nodes, weights = np.polynomial.legendre.leggauss(16)
    marks = np.quantile(np.concatenate([law.table.x.ravel(), POPULATIONS[1000]]), [0.4, 0.43])
    x = marks[0] + (marks[1] - marks[0]) * np.linspace(0, 1, 41)
    pieces = x[:-1, None] + np.diff(x)[:, None] * (nodes + 1) / 2
    mass = np.sum(np.asarray(law.density(pieces)) * weights * np.diff(x)[:, None] / 2)
    assert mass == pytest.approx(float(law.cdf(marks[1]) - law.cdf(marks[0])), abs=1e-12)
    assert float(law.cdf(law.edges[0, 1])) == 1


def test_edges_of_twenty_atoms():
    law = laws.sample_covariance(POPULATIONS[20], 0.5)
    np.testing.assert_allclose(law.edges, [[0.0074, 0.7134], [0.8065, 1.4250]], atol=5e-5)


def test_reference_values_of_three_atoms():
    law = laws.sample_covariance([1.0, 3.0, 7.0], 0.1)
    edges = [0.6004175610, 1.2850184371, 1.9363071240, 3.9990185753, 4.9284884978, 9.9840831381]
    np.testing.assert_allclose(law.edges.ravel(), edges, rtol=1e-9)
    np.testing.assert_allclose(law.density([2.0, 8.0]), [0.1033742445, 0.0732050004], rtol=1e-8)
    assert complex(law.boundary(2.0)) == pytest.approx(0.460153373503 + 0.324759767001j, rel=1e-11)
    assert complex(law.stieltjes(-1.0)) == pytest.approx(0.304948413344, rel=1e-11)
    # Separated bulks carry the weights of their atoms.
    np.testing.assert_allclose(law.cdf(np.asarray(law.edges)[:, 1]), [1 / 3, 2 / 3, 1], atol=1e-13)
    wide = laws.sample_covariance([1.0, 3.0, 7.0], 0.6)
    np.testing.assert_allclose(wide.edges.ravel(), [0.0900436260, 15.7342107620], rtol=1e-9)
    assert float(wide.density(2.0)) == pytest.approx(0.1212512847, rel=1e-9)


def test_a_gap_that_is_hardly_open():
    law = laws.sample_covariance(laws.from_atoms([1.0, 3.0, 10.0], [0.2, 0.4, 0.4]), 0.4)
    np.testing.assert_allclose(np.asarray(law.edges)[[0, 1], [1, 0]], [4.69987, 4.70044], atol=5e-6)


@pytest.mark.parametrize("gamma", [0.3, 3.0])
def test_transform_solves_silversteins_equation(gamma):
    law = laws.sample_covariance([0.0, 1.0, 4.0], gamma)
    for z in (-2.0, -0.01, 1 + 0.5j, 0.3 - 1e-3j, 40.0, 1e4 + 1j):
        m = complex(law.companion(z))
        assert -1 / m + gamma * np.mean([t / (1 + t * m) for t in (0.0, 1.0, 4.0)]) == pytest.approx(z, rel=1e-9)


def test_one_atom_is_marchenko_pastur():
    for gamma in (0.2, 1.0, 3.0):
        law, closed = laws.sample_covariance([2.0], gamma), laws.marchenko_pastur(gamma, 2.0)
        low, high = closed.support
        x = np.linspace(low + 1e-6, high - 1e-6, 50)
        np.testing.assert_allclose(law.density(x), closed.density(x), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(law.cdf(x), closed.cdf(x), atol=1e-12)


def test_continuous_population_is_a_free_product():
    # Sample covariances of sample covariances: MP ⊠ MP, whose transform at −1 solves z = −1/m̲ + γ∫t dMP/(1 + t m̲).
    law = laws.sample_covariance(laws.marchenko_pastur(1.0), 1.0)
    np.testing.assert_allclose(law.density([1.0, 0.1, 6.0]), [0.1789791275, 1.0797205618, 0.0150457657], rtol=1e-8)
    assert float(law.edges[0, 1]) == pytest.approx(27 / 4, rel=1e-12)
    other = laws.free_product(laws.marchenko_pastur(0.5), laws.marchenko_pastur(0.3))
    same = laws.sample_covariance(laws.marchenko_pastur(0.5), 0.3)
    np.testing.assert_allclose(other.edges, same.edges, rtol=1e-11)
    np.testing.assert_allclose(other.cdf([0.5, 1.0, 2.0]), same.cdf([0.5, 1.0, 2.0]), atol=1e-11)


def test_quantiles_invert_the_distribution_function():
    for law in (laws.marchenko_pastur(2.0), laws.semicircle(2.0), laws.sample_covariance([1.0, 8.0], 0.1)):
        atom = float(np.sum(np.asarray(law.atoms.weights)))
        q = np.linspace(atom + 1e-6, 1 - 1e-9, 101)
        np.testing.assert_allclose(law.cdf(law.ppf(q)), q, atol=1e-12)
    law = laws.marchenko_pastur(0.5)
    q = np.linspace(0, 1, 40_001)
    np.testing.assert_allclose(law.cdf(law.ppf(q)), q, atol=1e-13)
    law = laws.marchenko_pastur(2.0)
    np.testing.assert_array_equal(law.ppf([0.0, 0.2, 0.5]), 0.0)
    # Between two bulks the quantile is the end of the lower one.
    law = laws.sample_covariance([1.0, 8.0], 0.1)
    assert float(law.ppf(0.5)) == pytest.approx(float(law.edges[0, 1]), abs=1e-6)
    draws = np.asarray(data.from_law(jax.random.key(3), law.ppf, (4000,)))
    assert stats.kstest(draws, lambda x: np.asarray(law.cdf(x))).pvalue > LEVEL


@pytest.mark.parametrize("gamma", [0.5, 1.0, 2.0])
def test_many_quantiles_are_as_exact_as_few(gamma):
    """Even steps of the level, cubics and Newton's method meet: also where a hard edge lies at zero."""
    law = laws.marchenko_pastur(gamma)
    tails = 10.0 ** -np.arange(2.0, 13.0)
    q = np.concatenate([tails, 1 - tails, np.linspace(0, 1, 210_001)])
    x = np.asarray(law.ppf(q))
    atom = max(0.0, 1 - 1 / gamma)
    np.testing.assert_allclose(np.asarray(law.cdf(x))[q > atom], q[q > atom], atol=5e-14)
    assert np.all(np.diff(x[len(tails) * 2 :]) >= -1e-14)
    some = slice(0, None, 4001)
    np.testing.assert_allclose(law.ppf(q[some]), x[some], atol=1e-11)


def test_kolmogorov_distance_falls_like_one_over_p():

    rng, distances = np.random.default_rng(0), []
    law = laws.sample_covariance([1.0, 3.0], 0.5)
    for p in (40, 80, 160, 320):
        scale = np.sqrt(np.repeat([1.0, 3.0], p // 2))
        found = []
        for _ in range(8):
            x = rng.standard_normal((2 * p, p)) * scale
            eigenvalues = np.linalg.eigvalsh(x.T @ x / (2 * p))
            levels = np.asarray(law.cdf(eigenvalues))
            found.append(max(np.max(np.arange(1, p + 1) / p - levels), np.max(levels - np.arange(p) / p)))
        distances.append(np.mean(found))
    slope = np.polyfit(np.log([40, 80, 160, 320]), np.log(distances), 1)[0]
    assert -1.15 < slope < -0.75  # 1/p up to a logarithm


def test_transforms_of_free_probability():
    law, closed = laws.sample_covariance([1.0], 0.5), laws.marchenko_pastur(0.5)
    for w in (-2.0, -0.3, 1e-7, 0.0, 0.2, 0.8):
        assert float(law.r_transform(w)) == pytest.approx(float(closed.r_transform(w)), rel=1e-9)
    for w in (-0.9, -0.2, 1e-8, 0.0, 0.5, 1.2):
        assert float(law.s_transform(w)) == pytest.approx(float(closed.s_transform(w)), rel=1e-9)
    projector = laws.from_atoms([0.0, 1.0], [0.7, 0.3])
    for w in (-0.2, 0.4, 3.0):
        assert float(projector.s_transform(w)) == pytest.approx((1 + w) / (0.3 + w), rel=1e-10)
    with pytest.raises(OutsideValidity, match="w = 5"):
        law.r_transform(5.0)
    with pytest.raises(OutsideValidity, match="S-transform"):
        laws.semicircle(1.0).s_transform(0.1)


def test_cumulants_and_moments_are_inverse():
    moments = [1.0, 0.3, 2.0, -1.0, 7.0, 3.0]
    np.testing.assert_allclose(moments_of_cumulants(cumulants_of_moments(moments)), moments, rtol=1e-12)
    catalan = cumulants_of_moments([1, 0, 1, 0, 2, 0, 5])
    np.testing.assert_allclose(catalan, [0, 1, 0, 0, 0, 0], atol=1e-14)


def test_from_eigenvalues_and_affine():
    law = laws.from_eigenvalues([3.0, 1.0, 1.0, 2.0])
    np.testing.assert_array_equal(law.atoms.values, [1.0, 2.0, 3.0])
    assert float(law.cdf(1.0)) == 0.5
    assert float(law.ppf(0.5)) == 1.0
    moved = laws.semicircle(1.0).affine(2.0, 1.0)
    assert float(moved.mean()) == pytest.approx(1, abs=1e-12)
    assert float(moved.var()) == pytest.approx(4, rel=1e-12)
    assert complex(moved.stieltjes(6.0)) == pytest.approx(complex(laws.semicircle(4.0).stieltjes(5.0)), rel=1e-12)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: laws.marchenko_pastur(0.0), "gamma = 0"),
        (lambda: laws.marchenko_pastur(0.5, -1.0), "variance = -1"),
        (lambda: laws.semicircle(-1.0), "variance = -1"),
        (lambda: laws.sample_covariance([1.0, -0.5], 0.5), "eigenvalue -0.5"),
        (lambda: laws.sample_covariance([], 0.5), "at least one eigenvalue"),
        (lambda: laws.sample_covariance([1.0], 0.0), "gamma = 0"),
        (lambda: laws.from_atoms([1.0, 2.0], [0.7, 0.7]), "sum is 1.4"),
        (lambda: laws.from_atoms([1.0, 2.0], [1.5, -0.5]), r"weights\[1\] = -0.5"),
        (lambda: laws.from_atoms([1.0, np.nan]), r"values\[1\] = nan"),
        (lambda: laws.from_atoms([1.0], [0.5, 0.5]), "shape"),
        (lambda: laws.marchenko_pastur(0.5).quantile(1.2), "outside"),
        (lambda: laws.marchenko_pastur(0.5).stieltjes(1.0), "support"),
        (lambda: laws.semicircle(1.0).affine(-1.0), "scale = -1"),
    ],
)
def test_bad_input_is_refused(call, words):
    with pytest.raises(ParameterError, match=words):
        call()


def test_a_population_at_zero_is_refused():
    with pytest.raises(OutsideValidity, match="zero"):
        laws.sample_covariance([0.0, 0.0], 0.5)
