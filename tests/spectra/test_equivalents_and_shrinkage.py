"""Deterministic equivalents, fluctuations of traces, and the best shrinkage."""

import jax.numpy as jnp
import numpy as np
import pytest

from agreement import agrees
from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.models.atoms import atoms
from deeplimits.theory.spectra import equivalents, laws, shrinkage, silverstein

THREE = laws.from_atoms([1.0, 3.0, 10.0], [0.2, 0.4, 0.4])


def test_resolvent_equivalent():
    arguments = (atoms([1.0, 3.0]), 1.5)
    assert float(equivalents.companion_below(0.4, *arguments)) == pytest.approx(0.5965437535, rel=1e-9)
    value = equivalents.resolvent_equivalent(0.4, 1.0, *arguments)
    assert float(value) == pytest.approx(1.5658825475, rel=1e-10)
    law = laws.sample_covariance([1.0, 3.0], 1.5)
    for ridge in (1e-3, 0.4, 50.0):
        traces = equivalents.resolvent_equivalent(ridge, jnp.array([1.0, 3.0]), *arguments)
        assert float(jnp.mean(traces)) == pytest.approx(complex(law.stieltjes(-ridge)).real, rel=1e-9)
    z = 2 + 0.3j
    both = equivalents.law_resolvent(z, [1.0, 3.0], [1.0, 3.0], 1.5)
    assert complex(jnp.mean(both)) == pytest.approx(complex(law.stieltjes(z)), rel=1e-9)
    with pytest.raises(ParameterError, match="ridge"):
        equivalents.companion_below(0.0, atoms(1.0), 0.5)


def test_fluctuation_of_a_trace():
    found = equivalents.trace_fluctuation(1 + 0.5j, 0.5)
    assert float(found.variance) == pytest.approx(1.727606875109, rel=1e-9)
    assert complex(found.bias) == pytest.approx(-0.13078381756228 - 0.19856732662542j, rel=1e-10)
    found = equivalents.trace_fluctuation(-1.0, 0.5)
    assert float(found.variance) == pytest.approx(0.055363321799, rel=1e-9)
    assert complex(found.bias).real == pytest.approx(0.051582022022491, rel=1e-10)
    rng, z = np.random.default_rng(0), 1 + 0.5j
    known = equivalents.trace_fluctuation(z, 0.5)
    transform, bias = complex(laws.marchenko_pastur(0.5).stieltjes(z)), complex(known.bias)
    draws = {}
    for n in (10, 20, 40):
        x = rng.standard_normal((4000, 2 * n, n))
        eigenvalues = np.linalg.eigvalsh(np.einsum("kmi,kmj->kij", x, x) / (2 * n))
        traces = np.sum(1 / (eigenvalues - z), axis=1)
        off = traces - n * transform
        # One is added, about the size of the fluctuation: second orders are judged against that, not against the bias.
        draws[n] = np.stack([1 + off.real, 1 + off.imag, np.abs(off - bias) ** 2], axis=1)
        deviation = np.abs(traces - traces.mean()) / n
        for t in (0.05, 0.5, 2.0):
            assert np.mean(deviation > t) <= float(equivalents.azuma_bound(t, 0.5, 2 * n, n))
    stated = np.array([1 + bias.real, 1 + bias.imag, float(known.variance)])
    assert agrees(draws, stated)
    # With the variance of complex data, or with a bias of the wrong sign, it does not.
    assert not agrees(draws, [*stated[:2], stated[2] / 2])
    assert not agrees(draws, [1 - bias.real, 1 - bias.imag, stated[2]])


def test_quadratic_forms_and_rank_one_updates():
    assert float(equivalents.quadratic_form_variance(np.diag([1.0, 2.0, 3.0]))) == 28
    assert float(equivalents.quadratic_form_variance(np.diag([1.0, 2.0, 3.0]), 1.0)) == 0
    assert float(equivalents.quadratic_form_variance(np.diag([1.0, 2.0, 3.0]), 1.8)) == pytest.approx(11.2)
    np.testing.assert_allclose(equivalents.rank_one_solve(np.diag([1.0, 0.5]), [1.0, 1.0]), [0.4, 0.2])
    with pytest.raises(OutsideValidity, match="singular"):
        equivalents.rank_one_solve(np.eye(2), [1.0, 0.0], strength=-1.0)
    rng = np.random.default_rng(0)
    a = rng.standard_normal((6, 6))
    a = a + a.T
    v = rng.standard_normal(6)
    values, vectors = np.linalg.eigh(a)
    z = 0.3 + 0.2j
    before, after = (np.trace(np.linalg.inv(b - z * np.eye(6))) for b in (a, a + 0.7 * np.outer(v, v)))
    change = complex(equivalents.trace_change(z, values, vectors.T @ v, strength=0.7))
    assert change == pytest.approx(after - before, rel=1e-11)
    assert abs(change) <= 1 / 0.2
    matrix = np.eye(7, 8) - np.eye(7, 8, 1)
    np.testing.assert_allclose(equivalents.difference_singular_values(7), np.linalg.svd(matrix)[1][::-1], rtol=1e-12)


def test_smoothed_density_is_a_convolution():
    eigenvalues = np.asarray(laws.marchenko_pastur(0.5).ppf((np.arange(4000) + 0.5) / 4000))
    smooth = equivalents.smoothed_density(1.0, 0.5, eigenvalues)
    assert float(smooth) == pytest.approx(0.32156152410382, rel=1e-5)
    with pytest.raises(ParameterError, match="height"):
        equivalents.smoothed_density(1.0, 0.0, [1.0])


def test_oracle_shrinkage():
    law = laws.sample_covariance(THREE, 0.4)
    known = [1.626979531, 3.718290811, 9.426174466]
    np.testing.assert_allclose(shrinkage.oracle_shrinkage(law, [0.6, 3.0, 12.0]), known, rtol=1e-9)
    assert float(shrinkage.oracle_inverse_shrinkage(law, 3.0)) == pytest.approx(0.338416268, rel=1e-8)
    wide = laws.sample_covariance(THREE, 2.0)
    assert float(shrinkage.oracle_shrinkage(wide, 0.0)) == pytest.approx(3.946347156739, rel=1e-11)
    # The identity needs no shrinkage, whatever λ: d ≡ 1.
    white = laws.sample_covariance([1.0], 0.5)
    np.testing.assert_allclose(shrinkage.oracle_shrinkage(white, [0.2, 1.0, 2.5]), 1, rtol=1e-11)
    for gamma, known in ((0.4, 0.4434306569), (2.0, 0.7993421053)):
        assert float(shrinkage.linear_shrinkage_intensity(THREE, gamma)) == pytest.approx(known, rel=1e-9)
    with pytest.raises(OutsideValidity, match="null space"):
        shrinkage.oracle_shrinkage(law, 0.0)
    with pytest.raises(OutsideValidity, match="gamma = 2"):
        shrinkage.oracle_inverse_shrinkage(wide, 3.0)


@pytest.mark.parametrize("gamma", [0.4, 2.0])
def test_traceable_curve_is_the_law(gamma):
    law = laws.sample_covariance(THREE, gamma)
    population = THREE.atoms
    t, w = population
    rate = jnp.asarray(gamma)
    low, high = silverstein.outer_ends(population, rate)
    np.testing.assert_allclose([float(low), float(high)], law.ends.ravel()[[0, -1]], rtol=1e-12)
    a = (low + high) / 2 - (high - low) / 2 * jnp.cos(jnp.arange(0.5, 300) * jnp.pi / 300)
    curve = silverstein.curve(a, population, rate)
    np.testing.assert_allclose(curve.density, law.density(curve.x), rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(curve.cdf, law.cdf(curve.x), atol=1e-10)
    oracle = law.expect(lambda x: np.asarray(shrinkage.oracle_shrinkage(law, np.ravel(x))).reshape(np.shape(x)) ** 2)
    loss = float(silverstein.nonlinear_shrinkage_loss(curve, a, population, rate))
    assert loss == pytest.approx(float(jnp.sum(w * t**2)) - float(oracle), rel=1e-2)


def test_loss_of_shrinkage_where_a_sample_tells_the_atoms_apart():
    # To first order in γ an eigenvector of 1 has the square γ w t/(t − 1)² in the space of t, and the other way round:
    # the loss is 2γ w(1 − w) t.
    population, gamma = atoms([1.0, 100.0], [0.05, 0.95]), jnp.asarray(1e-4)
    low, high = silverstein.outer_ends(population, gamma)
    a = (low + high) / 2 - (high - low) / 2 * jnp.cos(jnp.arange(0.5, 20_000) * jnp.pi / 20_000)
    curve = silverstein.curve(a, population, gamma)
    loss = float(silverstein.nonlinear_shrinkage_loss(curve, a, population, gamma))
    assert loss == pytest.approx(2e-4 * 0.05 * 0.95 * 100, rel=1e-2)
