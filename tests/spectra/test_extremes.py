"""The room of spectra over extreme arguments."""

import numpy as np

import extremes
from deeplimits.models.atoms import Atoms
from deeplimits.theory import spectra
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
