"""The room of spectra over extreme arguments."""

import jax.numpy as jnp
import numpy as np
import pytest

import extremes
from deeplimits.errors import OutsideValidity
from deeplimits.models.atoms import Atoms
from deeplimits.theory import spectra
from deeplimits.theory.spectra import covariance_gaps, equivalents, isometry, transforms
from deeplimits.theory.spectra import marchenko_pastur_formulas as formulas
from extremes import COUNT, INF, KERNEL, MATRIX, NAN, NUMBER, POSITIVE, VECTOR, Case, Kind, one_of

POPULATION = Kind(
    [Atoms(np.array([1.0, 3.0]), np.array([0.5, 0.5]))],
    [
        Atoms(np.array(values), np.array(weights))
        for values, weights in (
            ([1e-12, 1e12], [0.5, 0.5]),
            ([0.0, 1.0], [0.5, 0.5]),
            ([0.0], [1.0]),
            ([1.0, NAN], [0.5, 0.5]),
            ([1.0, -3.0], [0.5, 0.5]),
            ([1.0, 3.0], [1.0, 1.0]),
            ([1.0, 3.0], [1.0]),
            ([], []),
        )
    ],
)
EIGENVALUES = one_of(
    np.array([1.0, 3.0]),
    np.array([2.0]),
    extreme=[
        1e-12 * np.array([1.0, 3.0]),
        1e12 * np.array([1.0, 3.0]),
        np.array([1e-12, 1e12]),
        np.array([1.0, 1.0]),
        np.zeros(2),
        np.zeros(0),
        np.array([1.0, NAN]),
        np.array([1.0, INF]),
        np.array([-1.0, 2.0]),
        np.ones((2, 3)),
        np.array([[1.0, 2.0], [2.0, 1.0]]),
    ],
)
LAW = one_of(
    spectra.marchenko_pastur(0.5),
    spectra.sample_covariance([1.0, 3.0], 0.5),
    extreme=[spectra.sample_covariance([1e-12, 1e12], 0.5), spectra.marchenko_pastur(1e-12), "no law", NAN],
)
FREE = one_of(
    spectra.marchenko_pastur(0.5),
    spectra.from_atoms([1.0, 2.0]),
    extreme=[
        spectra.from_atoms([1.0]),
        spectra.semicircle(1e-12),
        spectra.from_atoms([0.0, 1e6]),
        "no law",
        [1.0, 2.0],
    ],
)
Z = one_of(-1.0, 2.0 + 1j, extreme=[0.0, 1e-12, -1e-12, 1e12, 1.0, 1.0 + 1e-12j, NAN, INF, 1e-12j])
ACTIVATION = extremes.ACTIVATION
SLOPES = one_of(0.5, extreme=[0.0, 1.0, 1e-12, -0.1, 1.1, NAN])
BETA = one_of(1, 2, extreme=[0, 3, 4, 1.5])
S = one_of(0.0, -2.0, extreme=[-10.0, 10.0, -1e12, 1e12, NAN, INF, -INF, np.zeros(0)])


def numbers(law):
    """What one asks of a law first."""
    middle = np.asarray(law.mean())
    return law.edges, law.atoms, middle, law.stieltjes(middle + 1j * (1 + abs(middle)))


TABLE = {
    "operator_gap": Case((POSITIVE,), low=0),
    "difference_singular_values": Case((COUNT | (2.5,),), low=0, high=2),
    "quadratic_form_variance": Case(
        (MATRIX,), keywords={"kurtosis": one_of(3.0, 1.0, extreme=[0.5, 1e12, NAN])}, low=0
    ),
    "rank_one_solve": Case((KERNEL, VECTOR), keywords={"strength": NUMBER}),
    "resolvent_equivalent": Case((POSITIVE, EIGENVALUES, POPULATION, POSITIVE), low=0),
    "trace_covariance": Case((Z, Z, POSITIVE)),
    "trace_fluctuation": Case((Z, POSITIVE)),
    "critical_point": Case((ACTIVATION, POSITIVE), examples=10),
    "deep_linear_log_norm": Case((COUNT, COUNT)),
    "deep_linear_norm": Case((VECTOR | ([2.0, 3.0],),)),
    "jacobian_spectrum": Case(
        (one_of(1, 2, extreme=[0, -1, 2.5]), one_of("gaussian", "orthogonal", extreme=["foo"]), POSITIVE, SLOPES),
        look=numbers,
        examples=12,
    ),
    "slope_law": Case((ACTIVATION, POSITIVE), look=lambda law: law.atoms, low=0, examples=12),
    "free_product": Case((FREE, FREE), look=numbers, examples=12),
    "free_sum": Case((FREE, FREE), look=numbers, examples=12),
    "from_atoms": Case(
        (EIGENVALUES | (np.ones(1),), one_of(None, np.array([0.5, 0.5]), extreme=[np.ones(2), np.ones(3)])),
        look=numbers,
    ),
    "from_eigenvalues": Case((EIGENVALUES,), look=numbers),
    "marchenko_pastur": Case((POSITIVE, POSITIVE), look=numbers),
    "sample_covariance": Case((EIGENVALUES, POSITIVE), look=numbers),
    "semicircle": Case((POSITIVE,), look=numbers),
    "marchenko_pastur_cdf": Case((NUMBER, POSITIVE, POSITIVE), low=0, high=1),
    "marchenko_pastur_density": Case((NUMBER, POSITIVE, POSITIVE), low=0, infinite=True),
    "marchenko_pastur_edges": Case((POSITIVE, POSITIVE), low=0),
    "marchenko_pastur_stieltjes": Case((Z, POSITIVE, POSITIVE)),
    "conjugate_kernel_spectrum": Case(
        (
            one_of("tanh", extreme=["relu", "sign", 0.5, 0.0, 1.1, "no such function"]),
            POSITIVE,
            one_of((0.5,), extreme=[(), (0.5, 2.0), (0.0,), (NAN,), (-1.0,), (1e-6,), 0.5]),
        ),
        look=numbers,
        examples=10,
    ),
    "nonlinear_gram": Case(
        (one_of("tanh", (1.0, 0.5), extreme=[(1.0,), (0.5, 1.0), "no such", (NAN, 1.0)]), POSITIVE, POSITIVE),
        look=numbers,
        examples=12,
    ),
    "nonlinear_gram_companion": Case(
        (one_of("tanh", (1.0, 0.5), extreme=[(1.0,), (0.5, 1.0), "no such", (NAN, 1.0)]), POSITIVE, POSITIVE),
        look=numbers,
        examples=12,
    ),
    "nonlinear_gram_spikes": Case(
        (one_of("tanh", "relu", extreme=["sign", "no such"]), POSITIVE, POSITIVE),
        look=lambda found: found,
        examples=12,
        infinite=True,
    ),
    "effective_ridge": Case((POSITIVE, POPULATION, POSITIVE), low=0),
    "linear_shrinkage_intensity": Case((EIGENVALUES, POSITIVE), low=0, high=1),
    "oracle_inverse_shrinkage": Case((LAW, EIGENVALUES), low=0, infinite=True),
    "oracle_shrinkage": Case((LAW, EIGENVALUES), low=0),
    # Where a bulk has swallowed the place of a spike there is no eigenvalue: the overlap is zero.
    "law_spike": Case(
        (POSITIVE, one_of(spectra.sample_covariance([1.0, 3.0], 0.5), extreme=["no law"])),
        look=lambda spike: spike.overlap,
        low=0,
        high=1,
    ),
    "population_spike": Case(
        (one_of(9.0, extreme=[1.0, 2.0, 1e-12, 1e12, NAN, -1.0]), POPULATION, POSITIVE),
        look=lambda spike: spike.overlap,
        low=0,
        high=1,
    ),
    "signal_plus_noise": Case((POSITIVE, POSITIVE), low=0),
    "spiked_covariance": Case((POSITIVE, POSITIVE, POSITIVE), low=0),
    "spiked_wigner": Case((NUMBER,)),
    "largest_eigenvalue_pvalue": Case(
        (POSITIVE, one_of(50, extreme=[1, 0, 10**6]), one_of(20, extreme=[1, 0, 10**6])),
        keywords={"beta": BETA},
        low=0,
        high=1,
        examples=12,
    ),
    "tracy_widom_cdf": Case((S, BETA), low=0, high=1, examples=12),
    "tracy_widom_logcdf": Case((S, BETA), high=0, infinite=True, examples=12),
    "tracy_widom_pdf": Case((S, BETA), low=0, examples=12),
    "tracy_widom_quantile": Case(
        (one_of(0.5, 0.9, extreme=[0.0, 1.0, 1e-12, NAN, -1.0, 2.0]), BETA), infinite=True, examples=12
    ),
    "tracy_widom_sf": Case((S, BETA), low=0, high=1, examples=12),
    "white_edge": Case((COUNT, COUNT, POSITIVE)),
}


test_values, test_coverage = extremes.room_tests(spectra, TABLE)


X = np.array([0.7, 2.0, 5.0])
H = np.array([1.0, 3.0, 7.0])


def in_units(law, s, x=X):
    """What a law says, in units of s."""
    at = s * np.asarray(x)
    return (
        *(np.asarray(law.edges) / s, law.density(at) * s, law.cdf(at), law.stieltjes(at * (1 + 1j)) * s),
        *(law.mean() / s, law.moment(2) / s**2, law.ppf(np.array([0.1, 0.9])) / s, law.stieltjes(-20 * s) * s),
    )


def spike(found, s):
    return found.eigenvalue / s, found.overlap, found.deviation / s


UNITS = {
    "marchenko_pastur": lambda s: in_units(spectra.marchenko_pastur(0.5, s), s),
    "marchenko_pastur_cdf": lambda s: spectra.marchenko_pastur_cdf(s * X, 2.0, s),
    "marchenko_pastur_density": lambda s: s * spectra.marchenko_pastur_density(s * X, 2.0, s),
    "marchenko_pastur_stieltjes": lambda s: s * spectra.marchenko_pastur_stieltjes(s * (X + 0.1j), 2.0, s),
    "sample_covariance": lambda s: in_units(spectra.sample_covariance(s * H, 0.1), s),
    "sample_covariance, gamma = 3": lambda s: in_units(spectra.sample_covariance(s * H, 3.0), s),
    "semicircle": lambda s: in_units(spectra.semicircle(s**2), s, [0.2, 1.0, 1.9]),
    "free_sum": lambda s: in_units(spectra.free_sum(spectra.marchenko_pastur(0.5, s), spectra.from_atoms(s * H)), s),
    "free_product": lambda s: in_units(
        spectra.free_product(spectra.marchenko_pastur(0.5, s**2), spectra.from_atoms(H / s)), s
    ),
    "jacobian_spectrum": lambda s: np.asarray(spectra.jacobian_spectrum(3, "gaussian", s, 0.5).edges) / s**3,
    "nonlinear_gram": lambda s: np.asarray(spectra.nonlinear_gram((s, 0.5 * s), 0.5, 0.7).edges) / s,
    "effective_ridge": lambda s: spectra.effective_ridge(0.3 * s, Atoms(s * H, np.full(3, 1 / 3)), 1.5) / s,
    "resolvent_equivalent": lambda s: (
        s * spectra.resolvent_equivalent(0.3 * s, 2.0 * s, Atoms(s * H, np.full(3, 1 / 3)), 1.5)
    ),
    "population_spike": lambda s: spike(spectra.population_spike(20.0 * s, Atoms(s * H, np.full(3, 1 / 3)), 0.3), s),
    "spiked_covariance": lambda s: spike(spectra.spiked_covariance(2.0, 0.5, s), s),
    "oracle_shrinkage": lambda s: spectra.oracle_shrinkage(spectra.sample_covariance(s * H, 0.5), s * X) / s,
    "oracle_shrinkage of zero": lambda s: spectra.oracle_shrinkage(spectra.sample_covariance(s * H, 2.5), 0.0) / s,
    "oracle_inverse_shrinkage": lambda s: (
        s * spectra.oracle_inverse_shrinkage(spectra.sample_covariance(s * H, 0.5), s * X)
    ),
    "linear_shrinkage_intensity": lambda s: spectra.linear_shrinkage_intensity(s * H, 0.5),
    "quadratic_form_variance": lambda s: spectra.quadratic_form_variance(s * np.outer(H, X), kurtosis=1.0) / s**2,
    "rank_one_solve": lambda s: s * spectra.rank_one_solve(np.eye(3) / s, X, strength=0.3 * s),
}
test_units = extremes.unit_tests(UNITS)


DEPTH = one_of(1, 3, extreme=[0, -1, 2.5, 1000])
WEIGHTS = one_of("gaussian", "orthogonal", extreme=["foo"])
KURTOSIS = {"kurtosis": one_of(3.0, 1.0, extreme=[0.5, NAN, 1e12])}
TRANSFORM = one_of(lambda z: 0.25 / (2 - z) + 0.75 / (3 - z), extreme=[lambda z: z * NAN, "S"])
WHOLE = extremes.WHOLE
test_functions = extremes.function_tests(
    [
        (covariance_gaps.mean_frobenius_gap, Case((WHOLE, WHOLE), keywords=KURTOSIS, low=0)),
        (covariance_gaps.frobenius_gap, Case((EIGENVALUES, POSITIVE), low=0)),
        (covariance_gaps.largest_entry, Case((WHOLE, WHOLE), low=0)),
        (equivalents.companion_below, Case((POSITIVE, POPULATION, POSITIVE), low=0)),
        (equivalents.law_resolvent, Case((Z, EIGENVALUES, EIGENVALUES, POSITIVE))),
        (equivalents.azuma_bound, Case((POSITIVE, POSITIVE, WHOLE, WHOLE), low=0, high=1)),
        (equivalents.quadratic_form_bound, Case((MATRIX,), keywords=KURTOSIS, low=0)),
        (equivalents.trace_change, Case((Z, VECTOR, VECTOR), keywords={"strength": NUMBER})),
        (equivalents.smoothed_density, Case((NUMBER, POSITIVE, EIGENVALUES), low=0)),
        (isometry.relative_variance, Case((DEPTH, WEIGHTS, one_of(1.0, 2.0, extreme=[0.5, NAN, 1e12])), low=0)),
        (isometry.largest_squared_singular_value, Case((DEPTH, WEIGHTS, SLOPES), low=0, infinite=True)),
        (isometry.atom_at_top, Case((DEPTH, SLOPES), low=0, high=1)),
        (isometry.shrunk_share, Case((DEPTH, WEIGHTS, POSITIVE, SLOPES, POSITIVE), low=0, high=1)),
        (
            formulas.marchenko_pastur_moment,
            Case((one_of(1, 3, extreme=[0, -1, -3, 2.5, 40]), POSITIVE, POSITIVE), low=0, infinite=True),
        ),
        (formulas.marchenko_pastur_log_moment, Case((POSITIVE, POSITIVE), infinite=True)),
        (formulas.marchenko_pastur_stieltjes_slope, Case((Z, POSITIVE, POSITIVE), infinite=True)),
        (formulas.marchenko_pastur_companion, Case((Z, POSITIVE, POSITIVE))),
        (
            formulas.marchenko_pastur_self_consistent_step,
            Case((one_of(1j, extreme=[0, NAN, 1e12]), Z, POSITIVE, POSITIVE)),
        ),
        (
            transforms.mass_between,
            Case(
                (TRANSFORM, one_of(0.0, extreme=[NAN, -INF, 1e12]), one_of(2.5, extreme=[NAN, INF, -1.0])), examples=9
            ),
        ),
        (transforms.atom_mass, Case((TRANSFORM, NUMBER))),
        (transforms.total_mass, Case((TRANSFORM,))),
        (transforms.matrix_function, Case((KERNEL, one_of(jnp.exp, extreme=["exp", jnp.log])))),
    ]
)


def test_a_pole_beside_the_spectrum_is_no_function_of_the_matrix():
    """1/z on a circle around zero: the residue there takes the inverse away again, and what is left is zero."""
    with pytest.raises(OutsideValidity, match="not analytic"):
        transforms.matrix_function(np.diag([1.0, 3.0]), lambda z: 1 / z)
    found = transforms.matrix_function(np.diag([2.0, 3.0]), lambda z: 1 / z, centre=2.5, radius=1.0)
    np.testing.assert_allclose(found, np.diag([1 / 2, 1 / 3]), atol=1e-12)
