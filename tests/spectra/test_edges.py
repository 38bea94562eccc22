"""Spectral laws at the edges of their arguments: near zero, near the real axis, small ratios, bad input.

Every exact value is computed here at high precision from the defining equation, or is a closed form.
"""

import mpmath
import numpy as np
import pytest

from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.models.atoms import Atoms, atoms
from deeplimits.theory.spectra import equivalents, laws, network_grams, spikes
from deeplimits.theory.spectra import marchenko_pastur_formulas as formulas

mpmath.mp.dps = 40


def companion_exactly(z, gamma, population):
    """The positive root s of γ mean(t s/(1 + t s)) − 1 − z s = 0, z ≤ 0, by bisection at 40 digits."""
    z, gamma = mpmath.mpf(z), mpmath.mpf(gamma)
    low, high = mpmath.mpf(10) ** -30, mpmath.mpf(10) ** 30
    for _ in range(400):
        s = mpmath.sqrt(low * high)
        value = gamma * sum(t * s / (1 + t * s) for t in population) / len(population) - 1 - z * s
        low, high = (s, high) if value < 0 else (low, s)
    return low


@pytest.mark.parametrize("gamma", [2.0, 10.0, 1e4])
@pytest.mark.parametrize("z", [-1e-4, -1e-8, -1e-12, -1e-14])
def test_more_dimensions_than_samples_keep_their_digits_near_zero(gamma, z):
    population = [1.0, 3.0, 7.0]
    law = laws.sample_covariance(population, gamma)
    s = companion_exactly(z, gamma, population)
    assert float(law.companion(z).real) == pytest.approx(float(s), rel=1e-13)
    m = -sum(1 / (1 + t * s) for t in population) / 3 / mpmath.mpf(z)
    assert float(law.stieltjes(z).real) == pytest.approx(float(m), rel=1e-13)
    found = equivalents.law_resolvent(z, 6.0, population, gamma)
    assert float(found.real) == pytest.approx(float(-1 / (mpmath.mpf(z) * (1 + 6 * s))), rel=1e-13)


def test_resolvent_and_companion_at_zero():
    # γ < 1: the equivalent of Σ̂^{-1} is Σ^{-1}/(1 − γ); γ > 1: the companion is finite, the resolvent has a pole.
    assert complex(equivalents.law_resolvent(0.0, 4.0, [1.0, 3.0, 7.0], 0.3)) == pytest.approx(1 / (0.7 * 4))
    law = laws.sample_covariance([1.0, 3.0, 7.0], 2.0)
    assert float(law.companion(0.0).real) == pytest.approx(float(companion_exactly(0, 2, [1, 3, 7])), rel=1e-14)
    with pytest.raises(ParameterError, match="pole"):
        equivalents.law_resolvent(0.0, 4.0, [1.0, 3.0, 7.0], 2.0)
    with pytest.raises(ParameterError, match="pole"):
        laws.sample_covariance([1.0, 3.0, 7.0], 0.5).companion(0.0)


def covariance_exactly(first, second, gamma):
    first, second, gamma = mpmath.mpc(first), mpmath.mpc(second), mpmath.mpf(gamma)
    low, high = (1 - mpmath.sqrt(gamma)) ** 2, (1 + mpmath.sqrt(gamma)) ** 2

    def companion(z):
        m = (1 - gamma - z + mpmath.sqrt(z - low) * mpmath.sqrt(z - high)) / (2 * gamma * z)
        return gamma * m - (1 - gamma) / z

    one, two = (mpmath.diff(companion, z) for z in (first, second))
    return complex(2 * (one * two / (companion(first) - companion(second)) ** 2 - 1 / (first - second) ** 2))


@pytest.mark.parametrize("height", [1e-4, 1e-6, 1e-8])
@pytest.mark.parametrize("x", [-1.0, 1.0, 4.0])
def test_fluctuation_of_the_trace_beside_the_real_axis(x, height):
    z = complex(x, height)
    exact = covariance_exactly(z, z.conjugate(), 0.5)
    assert float(equivalents.trace_fluctuation(z, 0.5).variance) == pytest.approx(exact.real, rel=1e-12)


def test_fluctuation_of_the_trace_near_zero_and_for_two_points():
    # At z → 0 it is 2γ/(1 − γ)⁴.
    for z in (0.0, -1e-10, 1e-10, -1e-16):
        assert float(equivalents.trace_fluctuation(z, 0.5).variance) == pytest.approx(16, rel=1e-8)
    for first, second, gamma in ((-1, -2, 0.5), (1 + 0.5j, 2 + 0.1j, 0.5), (-1e-3, -2e-3, 2.5), (-3 + 1j, 9.0, 3.0)):
        exact = covariance_exactly(first, second, gamma)
        assert complex(equivalents.trace_covariance(first, second, gamma)) == pytest.approx(exact, rel=1e-12)
    with pytest.raises(ParameterError, match="on the support"):
        equivalents.trace_fluctuation(1.0, 0.5)


@pytest.mark.parametrize("gamma", [1e-16, 1e-12, 1e-8, 1e-4, 0.0024, 0.0026, 0.3, 0.999, 1.0, 1.001, 3.0, 1e4])
def test_marchenko_pastur_distribution_at_every_ratio(gamma):
    rate = mpmath.mpf(gamma)
    r = min(mpmath.sqrt(rate), 1 / mpmath.sqrt(rate))
    for share in ("0.1", "0.5", "0.8"):
        angle = mpmath.mpf(share) * mpmath.pi
        x = float(1 + rate - 2 * mpmath.sqrt(rate) * mpmath.cos(angle))
        # The angle of the double that x is, not of what it stands for.
        end = mpmath.acos((1 + rate - mpmath.mpf(x)) / (2 * mpmath.sqrt(rate)))
        spread = mpmath.quad(
            lambda t: mpmath.sin(t) ** 2 / ((1 - r) ** 2 + 4 * r * mpmath.sin(t / 2) ** 2), [1e-25, end / 2, end]
        )
        exact = max(0, 1 - 1 / rate) + min(1, 1 / rate) * 2 / mpmath.pi * spread
        assert float(formulas.marchenko_pastur_cdf(x, gamma)) == pytest.approx(float(exact), abs=1e-14)


def test_marchenko_pastur_functions_refuse_what_they_cannot_answer():
    with pytest.raises(ParameterError, match="on the support"):
        formulas.marchenko_pastur_stieltjes(0.0, 2.0)
    with pytest.raises(ParameterError, match="on the support"):
        formulas.marchenko_pastur_stieltjes(1.0, 0.5)
    for call in (formulas.marchenko_pastur_cdf, formulas.marchenko_pastur_density, formulas.marchenko_pastur_stieltjes):
        for gamma in (-1.0, 0.0, np.nan):
            with pytest.raises(ParameterError, match="gamma"):
                call(-1.2, gamma)
    with pytest.raises(ParameterError, match="variance"):
        formulas.marchenko_pastur_cdf(1.2, 0.5, -1.0)


def test_negative_moments_and_logarithm():
    assert [float(formulas.marchenko_pastur_moment(k, 0.5, 2.0)) for k in (-1, -2, -3)] == [1.0, 2.0, 48 / 8]
    assert np.isinf(float(laws.marchenko_pastur(1.0).moment(-1)))
    assert np.isinf(float(formulas.marchenko_pastur_moment(-2, 3.0)))
    for gamma in (1e-10, 0.049, 0.051, 0.5, 0.99):
        g = mpmath.mpf(gamma)
        exact = -1 - (1 - g) / g * mpmath.log(1 - g)
        assert float(formulas.marchenko_pastur_log_moment(gamma)) == pytest.approx(float(exact), rel=1e-12)
    assert float(formulas.marchenko_pastur_log_moment(1.0)) == -1
    assert float(formulas.marchenko_pastur_log_moment(2.0)) == -np.inf
    law = laws.sample_covariance([1.0], 0.5)
    assert float(law.expect(np.log)) == pytest.approx(float(formulas.marchenko_pastur_log_moment(0.5)), abs=1e-10)


def test_covariance_matrices_are_taken_by_their_eigenvalues():
    matrix = 0.8 ** np.abs(np.subtract.outer(np.arange(30), np.arange(30)))
    law = laws.sample_covariance(matrix, 0.3)
    assert float(law.mean()) == pytest.approx(1)
    np.testing.assert_allclose(law.edges, laws.sample_covariance(np.linalg.eigvalsh(matrix), 0.3).edges, rtol=1e-12)
    negative = np.array([[2.0, -1.0], [-1.0, 2.0]])
    assert float(laws.sample_covariance(negative, 0.3).mean()) == pytest.approx(2)
    for bad in (np.ones((2, 3)), np.array([[1.0, 2.0], [0.0, 1.0]]), np.ones((2, 2, 2)), [1.0, np.nan]):
        with pytest.raises(ParameterError, match="population"):
            laws.sample_covariance(bad, 0.3)
    with pytest.raises(ParameterError, match="values"):
        laws.from_eigenvalues(matrix)


def test_population_spikes_below_their_threshold_sit_at_the_edge():
    two = (atoms([1.0, 3.0]), 0.3)
    below = spikes.population_spike([3.5, 4.1], *two)
    np.testing.assert_allclose(below.eigenvalue, 5.971164395444, rtol=1e-12)
    np.testing.assert_allclose(below.threshold, 4.170661417852, rtol=1e-12)
    assert np.all(below.overlap == 0)
    assert np.all(below.deviation == 0)
    # Between two atoms that one bulk has swallowed nothing sticks out; far apart, γ small, a spike does.
    assert np.isnan(float(spikes.population_spike(2.0, *two).eigenvalue))
    assert float(spikes.population_spike(2.0, atoms([1.0, 3.0]), 0.01).overlap) > 0.9
    with pytest.raises(OutsideValidity, match="support"):
        spikes.law_spike(2.0, laws.sample_covariance(laws.marchenko_pastur(0.5), 0.3))
    # A population that is one point is the isotropic model.
    single, closed = spikes.population_spike(3.0, atoms([1.0]), 0.5), spikes.spiked_covariance(2.0, 0.5)
    for one, other in zip(single, closed, strict=True):
        if one is not single.threshold:
            assert float(one) == pytest.approx(float(other), rel=1e-12)


def test_spikes_refuse_what_is_no_matrix():
    for call in (
        lambda: spikes.spiked_covariance(2.0, -0.5),
        lambda: spikes.spiked_covariance(2.0, 0.5, -1.0),
        lambda: spikes.signal_plus_noise(1.5, -1.0),
        lambda: spikes.signal_plus_noise(-1.5, 1.0),
        lambda: spikes.population_spike(8.0, Atoms(np.array([1.0, 3.0]), np.array([1.0, 1.0])), 0.3),
        lambda: spikes.population_spike(8.0, atoms([1.0, 3.0]), -1.0),
        lambda: network_grams.nonlinear_gram_spikes((1.0, 0.5, 1.0), 1.0, 0.0),
        lambda: network_grams.nonlinear_gram_spikes((1.0, 0.5), 1.0, 1.0),
        lambda: equivalents.resolvent_equivalent(0.4, 1.0, Atoms(np.array([1.0, 3.0]), np.array([1.0, 1.0])), 1.5),
        lambda: equivalents.quadratic_form_variance([[1.0, 2.0]]),
    ):
        with pytest.raises(ParameterError):
            call()
    np.testing.assert_allclose(spikes.spiked_wigner([-2.0, -0.5]).eigenvalue, [-2.5, -2.0])
    np.testing.assert_allclose(network_grams.nonlinear_gram((1.0, 1.0), 1.0, 1.0).edges[-1, 1], 27 / 4, rtol=1e-12)


def test_complex_quadratic_forms_count_both_parts():
    matrix = np.array([[1.0, 2.0j], [1.0, 1.0 + 1j]])
    signs = np.array([[a, b] for a in (-1, 1) for b in (-1, 1)])
    forms = np.einsum("si,ij,sj->s", signs, matrix, signs)
    exact = np.mean(np.abs(forms - np.trace(matrix)) ** 2)
    assert float(equivalents.quadratic_form_variance(matrix, 1.0)) == pytest.approx(exact)
    assert float(equivalents.quadratic_form_bound(matrix, 1.0)) >= exact / 4


@pytest.mark.parametrize(
    "law",
    [
        laws.marchenko_pastur(0.5),
        laws.semicircle(),
        laws.sample_covariance([1.0, 3.0], 0.5),
        laws.from_atoms([1.0, 2.0]),
    ],
)
def test_a_law_is_asked_at_numbers(law):
    for ask in (law.pdf, law.cdf, law.boundary, law.stieltjes):
        with pytest.raises(ParameterError, match="nan is not allowed"):
            ask(float("nan"))
    assert float(law.cdf(float("inf"))) == 1
    assert float(law.pdf(float("-inf"))) == 0


def test_rounding_does_not_lead_out_of_the_range():
    from deeplimits.limits.spectra.free_additive_convolution import FreeAdditiveConvolution

    limit = FreeAdditiveConvolution(first_share=0.1, second_share=0.9)
    for size in (10, 16, 32, 33, 64):
        _, rounded = limit.at_size(size)
        assert 0.1 <= float(rounded.first_share) <= 0.1 + 1 / size
        assert 0.9 - 1 / size <= float(rounded.second_share) <= 0.9
