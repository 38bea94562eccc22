"""Free sums and products against closed forms and simulated matrices."""

import jax.numpy as jnp
import numpy as np
import pytest

from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.models.atoms import Atoms
from deeplimits.theory.spectra import laws, subordination
from deeplimits.theory.spectra.spectral_measure import SpectralMeasure

MP = laws.marchenko_pastur
TWO = laws.from_atoms([1.0, 3.0])


def test_two_bernoulli_laws_make_an_arcsine():
    coin = laws.from_atoms([-1.0, 1.0])
    law = laws.free_sum(coin, coin)
    np.testing.assert_allclose(law.edges, [[-2.0, 2.0]], atol=1e-12)
    for z in (1 + 1j, 0.3 + 0.01j, 5.0, -1 - 0.2j):
        assert complex(law.cauchy(z)) == pytest.approx(
            complex(1 / (np.sqrt(z - 2 + 0j) * np.sqrt(z + 2 + 0j))), rel=1e-9
        )
    assert float(law.density(1.0)) == pytest.approx(1 / (np.pi * np.sqrt(3)), rel=1e-10)


def test_reference_values_of_sums():
    law = laws.free_sum(laws.semicircle(1.0), MP(0.5))
    np.testing.assert_allclose(law.density([1.0, 3.0]), [0.2641028435, 0.1352334135], rtol=1e-8)
    assert float(SpectralMeasure.moment(law, 3)) == pytest.approx(float(law.moment(3)), rel=1e-9)
    # A semicircle and a coin solve the cubic G((z − G)² − 1) = z − G.
    law = laws.free_sum(laws.semicircle(1.0), laws.from_atoms([-1.0, 1.0]))
    assert float(law.density(0.3)) == pytest.approx(0.1800000852, rel=1e-8)
    z, g = 0.3 + 0.2j, complex(law.cauchy(0.3 + 0.2j))
    assert g * ((z - g) ** 2 - 1) == pytest.approx(z - g, rel=1e-10)


def test_atoms_and_gaps_of_a_sum():
    heavy = laws.from_atoms([0.0, 1.0], [0.3, 0.7])
    law = laws.free_sum(heavy, heavy)
    np.testing.assert_allclose(law.atoms.values, [2.0])
    np.testing.assert_allclose(law.atoms.weights, [0.4], rtol=1e-12)
    assert float(law.cdf(1.99)) == pytest.approx(0.6, abs=1e-9)
    split = laws.free_sum(MP(0.1), laws.from_atoms([1.0, 10.0]))
    assert split.edges.shape == (2, 2)
    assert float(split.cdf(5.0)) == pytest.approx(0.5, abs=1e-10)


def test_reference_values_of_products():
    law = laws.free_product(TWO, TWO)
    assert complex(law.cauchy(2 + 0.5j)) == pytest.approx(0.0895909215 - 0.4687896274j, rel=1e-9)
    assert complex(law.cauchy(-1.0)) == pytest.approx(-0.2763932023, rel=1e-9)
    half = laws.from_atoms([0.0, 1.0])
    law = laws.free_product(half, half)
    assert complex(law.cauchy(2.0)) == pytest.approx(1 / 4 + 0.5 / np.sqrt(2), rel=1e-10)
    np.testing.assert_allclose(law.atoms.weights, [0.5])


@pytest.mark.parametrize("factors", [2, 3, 4])
def test_square_gaussian_factors_follow_fuss_and_catalan(factors):
    law = laws.free_product((MP(1.0), factors))
    phi = np.linspace(0.1, 0.9, 9) * np.pi / (factors + 1)
    x = np.sin((factors + 1) * phi) ** (factors + 1) / (np.sin(phi) * np.sin(factors * phi) ** factors)
    exact = np.sin(phi) ** 2 * np.sin(factors * phi) ** (factors - 1) / (np.pi * np.sin((factors + 1) * phi) ** factors)
    np.testing.assert_allclose(law.density(x), exact, rtol=1e-9)
    top = (factors + 1) ** (factors + 1) / factors**factors
    assert float(law.edges[0, 1]) == pytest.approx(top, rel=1e-11)
    # The right branch is certified by its mass.
    assert law._rule.weights.sum() == pytest.approx(1, abs=1e-10)
    assert float(law.moment(2)) == pytest.approx(1 + factors, rel=1e-9)


def test_sample_covariance_is_a_product_with_marchenko_pastur():
    law, same = laws.free_product(MP(0.1), TWO), laws.sample_covariance([1.0, 3.0], 0.1)
    np.testing.assert_allclose(law.edges, same.edges, rtol=1e-12)
    np.testing.assert_allclose(law.density([1.0, 3.0]), same.density([1.0, 3.0]), rtol=1e-10)


def test_simulated_sum_and_product():
    rng, n = np.random.default_rng(1), 400
    q, r = np.linalg.qr(rng.standard_normal((n, n)))
    u = q * np.sign(np.diag(r))
    a, b = np.repeat([1.0, 3.0], n // 2), np.repeat([-1.0, 2.0, 2.0, 2.0], n // 4)
    total = np.linalg.eigvalsh(np.diag(a) + (u * b) @ u.T)
    law = laws.free_sum(TWO, laws.from_atoms([-1.0, 2.0], [0.25, 0.75]))
    for z in (1 + 0.3j, 3 + 0.3j):
        assert abs(complex(law.stieltjes(z)) - np.mean(1 / (total - z))) < 5 / n
    c = np.abs(b)
    for middle, low in ((c, 1.0), (b, -1.0)):
        product = np.linalg.eigvalsh(np.sqrt(a)[:, None] * ((u * middle) @ u.T) * np.sqrt(a))
        law = laws.free_product(TWO, laws.from_atoms([low, 2.0], [0.25, 0.75]))
        for z in (1 + 0.3j, 3 + 0.3j, -0.5 + 0.3j):
            assert abs(complex(law.stieltjes(z)) - np.mean(1 / (product - z))) < 5 / n


def test_one_factor_of_a_product_may_have_both_signs():
    # B of ±1 at equal shares: the law is symmetric, and its square is that of A^{1/2}(BAB)A^{1/2}, BAB free from A.
    law, square = laws.free_product(MP(0.5), laws.from_atoms([-1.0, 1.0])), laws.free_product((MP(0.5), 2))
    x = np.array([0.3, 1.0, 2.0])
    np.testing.assert_allclose(law.density(x), square.density(x**2) * x, rtol=1e-10)
    np.testing.assert_allclose(law.density(-x), law.density(x), rtol=1e-10)
    np.testing.assert_allclose(law.cdf(-x), (1 - square.cdf(x**2)) / 2, atol=1e-11)
    np.testing.assert_allclose(law.edges, np.sqrt(float(square.edges[-1, 1])) * np.array([[-1, 1]]), rtol=1e-10)
    # Eigenvalues of one sign only are turned around; an atom at zero stays; multiples of the identity stretch.
    negative, positive = (laws.free_product(MP(2.0), laws.from_atoms([sign, 3 * sign])) for sign in (-1.0, 1.0))
    np.testing.assert_allclose(negative.density(-x), positive.density(x), rtol=1e-10)
    np.testing.assert_allclose(negative.atoms.weights, [0.5], rtol=1e-12)
    stretched = laws.free_product(laws.semicircle(1.0), laws.from_atoms([2.0]))
    np.testing.assert_allclose(stretched.edges, [[-4.0, 4.0]])
    # Three bulks, one of them negative; free of each other: φ(BAB) = φ(A)φ(B²) and the like.
    law = laws.free_product(laws.from_atoms([1.0, 1.1]), laws.from_atoms([-2.0, 1.0, 4.0], [0.2, 0.5, 0.3]))
    np.testing.assert_allclose(law.shares, [0.2, 0.5, 0.3], atol=1e-9)
    mean_a, mean_b, square_a, square_b = 1.05, 1.3, 1.105, 6.1
    np.testing.assert_allclose(law.moment(1), mean_a * mean_b, rtol=1e-9)
    second = square_a * mean_b**2 + mean_a**2 * square_b - mean_a**2 * mean_b**2
    np.testing.assert_allclose(law.moment(2), second, rtol=1e-9)


def test_traceable_transforms_are_those_of_the_laws():
    one = Atoms(jnp.array([1.0, 3.0]), jnp.array([0.5, 0.5]))
    two = Atoms(jnp.array([1.0, 6.0]), jnp.array([0.75, 0.25]))
    z = np.array([1j, 0.5 + 2j])
    other = laws.from_atoms([1.0, 6.0], [0.75, 0.25])
    np.testing.assert_allclose(
        subordination.sum_transform(jnp.asarray(z), one, two), laws.free_sum(TWO, other).stieltjes(z), rtol=1e-10
    )
    np.testing.assert_allclose(
        subordination.product_transform(jnp.asarray(z), one, two),
        laws.free_product(TWO, other).stieltjes(z),
        rtol=1e-10,
    )


def test_bad_input_is_refused():
    with pytest.raises(OutsideValidity, match="factor 1 reaches down to -2; a free product takes one copy of one law"):
        laws.free_product(laws.semicircle(1.0), TWO, laws.from_atoms([-1.0, 1.0]))
    with pytest.raises(OutsideValidity, match="factor 2 reaches down"):
        laws.free_product(TWO, (laws.semicircle(1.0), 2))
    with pytest.raises(OutsideValidity, match="sits at zero"):
        laws.free_product(TWO, laws.from_atoms([0.0]))
    with pytest.raises(ParameterError, match="at least one factor"):
        laws.free_product()
    with pytest.raises(ParameterError, match="0 times"):
        laws.free_product((TWO, 0))
