"""The room of mixtures over extreme arguments."""

import jax.numpy as jnp
import numpy as np

import extremes
from deeplimits.theory import mixtures
from extremes import ACTIVATION, INF, NAN, POINTS, POSITIVE, VECTOR, Case, Kind, one_of


def heat(t):
    return jnp.exp(-t / 2)


FUNCTION = one_of(
    heat,
    extreme=[jnp.sqrt, jnp.log, lambda t: t, lambda t: 0.0 * t, lambda t: t * NAN, lambda t: 1e200 * t, "heat", 3.0],
)
PLAIN = one_of(
    "relu", "tanh", extreme=["identity", "abs", "sign", "no such function", lambda u: 1e150 * u, lambda u: 0 * u]
)
LAYERS = one_of(["relu"], ["tanh", "relu"], extreme=[[], "relu", ["sign", "relu"], ["no such function"], ["abs"] * 30])
SIZE = one_of(2, 5, extreme=[1, 0, -1, 2.5, 10**6, 10**12])
SEED = np.random.default_rng(0)
_points = SEED.normal(size=(5, 3))
_two = mixtures.gaussian_mixture(np.array([[1.0, 0, 0], [-1.0, 0, 0]]), 1.0)
_data = mixtures.kernel_data(_points, [0, 0, 0, 1, 1], mixture=_two)
MIXTURE = one_of(
    _two,
    extreme=[
        mixtures.gaussian_mixture(np.zeros((1, 3)), 0.0),
        mixtures.gaussian_mixture(1e12 * np.eye(3)[:2], 1e12),
        mixtures.gaussian_mixture(np.zeros((2, 3)), np.diag([1e-12, 1.0, 1e12]), proportions=[1.0, 0.0]),
    ],
)
DATA = one_of(
    _data,
    extreme=[
        mixtures.kernel_data(1e6 * _points, [0, 0, 0, 1, 1]),
        mixtures.kernel_data(1e-6 * _points, [0, 0, 0, 1, 1]),
        mixtures.kernel_data(np.ones((2, 3)), [0, 0]),
    ],
)
ROWS = one_of(
    _points,
    extreme=[s * _points for s in (1e-12, 1e12)]
    + [np.zeros((5, 3)), np.ones((5, 3)), np.full((5, 3), NAN), np.ones(5), np.zeros((0, 3)), np.ones((1, 3))],
)
MARKS = one_of(
    [0, 0, 0, 1, 1],
    extreme=[[0] * 5, [0, 0, 0, 0, 1], [0, 0, 2, 2, 2], [-1, 0, 0, 1, 1], [0.5] * 5, [0, 1], [], [NAN] * 5],
)
TARGETS = one_of(
    np.array([1.0, -1.0, 0.3, 0.0, 2.0]), extreme=[np.zeros(5), np.ones(4), np.full(5, NAN), 1e12 * np.ones(5)]
)
MEANS = one_of(
    np.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]]),
    extreme=[np.zeros((1, 3)), np.full((2, 3), NAN), np.zeros((0, 3)), np.zeros(3), 1e12 * np.ones((2, 3))],
)
COVARIANCES = one_of(
    1.0,
    np.eye(3),
    extreme=[0.0, -1.0, NAN, [1.0, 2.0], [1.0, -2.0], np.zeros((3, 3)), -np.eye(3), np.ones((3, 3)), np.ones((2, 2)),
             np.triu(np.ones((3, 3))), 1e12 * np.eye(3), 1e-12 * np.eye(3), np.full((3, 3), NAN)],
)  # fmt: skip
SHARES = one_of(None, [0.5, 0.5], extreme=[[1.0, 0.0], [0.5, 0.6], [-0.5, 1.5], [1.0], [NAN, 1.0], []])
COVARIANCE = one_of(
    np.eye(3), np.ones(3), extreme=[np.zeros(3), -np.ones(3), np.ones((3, 3)), 1e12 * np.eye(3), 1e-12 * np.ones(3),
                                    np.diag([1.0, 1.0, 0.0]), np.full(3, NAN), np.ones(2), 2.0]
)  # fmt: skip
WEIGHTS = one_of(
    SEED.normal(size=(2, 3)), extreme=[np.zeros((2, 3)), 1e12 * np.ones((2, 3)), np.full((2, 3), NAN), np.ones((3, 3))]
)
OUTER = one_of(np.array([0.6, -0.4]), extreme=[np.zeros(2), np.ones(3), np.array([NAN, 1.0]), 1e12 * np.ones(2)])
DIRECTION = one_of(np.array([1.0, 0.0, 0.0]), extreme=[np.zeros(3), np.ones(2), np.full(3, NAN), 1e12 * np.ones(3)])
GAIN = Kind([0.3, 0.5], [0.0, 1e-12, 1.0, 2.0, 5.0, 1e12, -1.0, NAN, INF])
_kernel = mixtures.equilibrium_coefficients("relu", 0.5, 1.0).conjugate
KERNEL_NUMBERS = one_of(
    _kernel,
    extreme=[
        _kernel._replace(**{name: jnp.asarray(value)})
        for name in ("linear", "diagonal")
        for value in (0.0, -1.0, 1e6, NAN)
    ],
)


def matrix(found):
    return found.matrix()


TABLE = {
    "centred_kernel": Case(
        (LAYERS, ROWS, POSITIVE), keywords={"tangent": one_of(False, True)}, infinite=True, examples=6
    ),
    "conjugate_kernel_equivalent": Case(
        (PLAIN, DATA), look=matrix, keywords={"kurtosis": one_of(3.0, extreme=[1.0, 0.5, 1e6, NAN])}, examples=12
    ),
    "deep_coefficients": Case((LAYERS, POSITIVE), infinite=True, examples=12),
    "distance_expansion": Case((FUNCTION, POSITIVE), examples=12),
    "equilibrium_coefficients": Case((ACTIVATION, GAIN, POSITIVE, POSITIVE), examples=16),
    "equilibrium_kernels": Case((ACTIVATION, GAIN, POSITIVE, ROWS), examples=6),
    "equivalent_kernel": Case((one_of(_kernel), DATA), look=matrix, examples=8),
    "explicit_equivalent": Case(
        (KERNEL_NUMBERS, POSITIVE),
        look=lambda found: found.residual,
        keywords={"layers": one_of(1, extreme=[0, 2, 3, 1.5])},
        low=0,
        examples=4,
    ),
    "first_gradient": Case((PLAIN, WEIGHTS, OUTER, ROWS, TARGETS), examples=16),
    "gaussian_mixture": Case((MEANS, COVARIANCES), keywords={"proportions": SHARES}),
    "kernel_clustering": Case(
        (FUNCTION, POSITIVE, POSITIVE),
        keywords={"centred": one_of(True, False)},
        look=lambda found: (found.overlap, found.error),
        low=0,
        high=1,
    ),
    "kernel_coefficients": Case((PLAIN, POSITIVE), examples=16),
    "kernel_data": Case((ROWS, MARKS), keywords={"mixture": one_of(None, _two)}, examples=20),
    "largest_distance_gap": Case(
        (SIZE, SIZE),
        low=0,
        keywords={
            "eigenvalues": one_of(1.0, extreme=[0.0, -1.0, 1e12, NAN, [1.0, 2.0]]),
            "failure": one_of(0.01, extreme=[0.0, 1.0, 1e-12, NAN]),
        },
    ),
    "layer_moments": Case((PLAIN, POSITIVE), infinite=True, examples=16),
    "limiting_error": Case((POSITIVE, POSITIVE), low=0, high=0.5),
    "linearized_distance_kernel": Case((FUNCTION, one_of(_data), MIXTURE), examples=10),
    "linearized_inner_kernel": Case((FUNCTION, DATA), examples=10),
    "one_step_ridge_risk": Case(
        (POSITIVE, ACTIVATION, PLAIN, WEIGHTS, DIRECTION, SIZE),
        keywords={"noise": POSITIVE},
        low=0,
        infinite=True,
        examples=20,
    ),
    "one_step_spike": Case(
        (POSITIVE, PLAIN, PLAIN, POSITIVE, POSITIVE),
        keywords={"noise": POSITIVE},
        look=lambda found: (found.singular_value, found.alignment),
        low=0,
        examples=16,
    ),
    "oracle_error": Case((VECTOR, COVARIANCE, COVARIANCE), low=0, high=0.5),
    "pair_distances": Case((MIXTURE,), low=0, examples=8),
    "rank_one_gradient": Case((PLAIN, OUTER, ROWS, TARGETS), examples=16),
    "staircase_match": Case(
        (one_of("relu", extreme=["tanh", "abs", "sign", "identity", "no such function"]), POSITIVE),
        look=lambda found: (found.jumps, found.residual),
        keywords={"levels": one_of(3, extreme=[1, 2, 0, 2.5])},
        examples=6,
    ),
    "standardized": Case((POINTS,)),
    "symmetric_ternary": Case((POSITIVE, POSITIVE), keywords={"level": POSITIVE}, low=0),
    "ternary_match": Case(
        (one_of("relu", extreme=["tanh", "abs", "sign", "identity", lambda u: 0 * u]), POSITIVE),
        look=lambda found: (found.jumps, found.residual),
        keywords={"level": one_of(1.0, extreme=[None, 0.0, 1e-12, 1e12, NAN])},
        examples=12,
    ),
    "two_level_match": Case(
        (one_of("relu", extreme=["tanh", "abs", lambda u: 0 * u]), POSITIVE),
        look=lambda found: (found.jumps, found.residual),
        examples=4,
    ),
}

test_values, test_coverage = extremes.room_tests(mixtures, TABLE)
