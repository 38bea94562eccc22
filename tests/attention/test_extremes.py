"""The room of attention over extreme arguments."""

import jax.numpy as jnp
import numpy as np

import extremes
from deeplimits.theory import attention
from extremes import INF, NAN, NUMBER, POSITIVE, SHARE, TIMES, VECTOR, Case, Kind, one_of

_tokens = np.array([[1.0, 0.0], [0.6, 0.8], [-0.8, 0.6]])
TOKENS = one_of(
    _tokens,
    extreme=[np.ones((3, 2)), np.zeros((3, 2)), np.full((3, 2), NAN), np.zeros((0, 2)), np.ones(2), _tokens[:1],
             1e12 * _tokens, 1e-12 * _tokens, np.repeat(_tokens[:1], 3, axis=0), -_tokens, np.eye(30)],
)  # fmt: skip
ANGLES = one_of(
    [0.0, 1.0, 2.5], extreme=[[], [0.0], [0.0, 0.0], [0.0, np.pi], [1e12, 0.3], [NAN, 1.0], [INF, 0.0], [[0.0]]]
)
BETA = Kind([0.5, 2.0], [0.0, -1.0, 1e-12, 50.0, 1e12, NAN, INF])
KIND = one_of("softmax", "unnormalized", extreme=["softmax", "unnormalized", "cosine"])
SHORT = one_of([0.0, 1.0], extreme=[[1e-12, 1.0], [], [2.0, 1.0], [-1.0, 1.0], [0.0, NAN], [30.0]])
COSINE = Kind([-0.2, 0.0, 0.5], [-1.0, 1.0, 1.5, 1 - 1e-12, NAN])
COUNT = one_of(3, 8, extreme=[0, 1, 2, -1, 2.5, 10**6, NAN])
FEW = one_of(2, 5, extreme=[0, 1, -1, 2.5, 128])
GRAM = one_of(
    0.9 * np.eye(3) + 0.1,
    extreme=[np.eye(3), np.ones((3, 3)), 2 * np.eye(3), -np.eye(3), np.eye(3) - 0.6 * (1 - np.eye(3)), np.ones(3),
             np.full((3, 3), NAN), np.zeros((0, 0)), np.triu(np.ones((3, 3)))],
)  # fmt: skip


def sway(t, x):
    return jnp.tanh(x)


TABLE = {
    "angular_flow": Case(
        (ANGLES, SHORT, one_of(2.0, extreme=[0.0, 5.0, -1.0, NAN])), keywords={"kind": KIND}, examples=10
    ),
    "angular_velocity": Case((ANGLES, BETA), keywords={"kind": KIND}, infinite=True, examples=15),
    "antipodal_spectrum": Case((one_of(6, extreme=[1, 2, 0, 2.5, 30]), FEW, FEW), examples=15),
    "balanced_curvature": Case((TOKENS,), examples=20),
    "bessel_ratios": Case((FEW, BETA), look=lambda found: found.ratios, low=0, high=1, examples=15),
    "circle_moments": Case((one_of([0.25], [0.1, 0.0], extreme=[[], [1.0], [2.0], [NAN]]), SHORT, BETA), examples=8),
    "cluster_rate": Case((BETA,), keywords={"kind": KIND}, infinite=True, low=0, examples=15),
    "cold_rate": Case((VECTOR, BETA | [np.ones(2), np.ones(4)]), examples=20),
    "energy_growth": Case((TOKENS, BETA), keywords={"kind": KIND}, infinite=True, examples=15),
    "equiangular_bound": Case((COSINE, TIMES, COUNT, BETA), low=0, examples=20),
    "equiangular_cosine": Case((COSINE, SHORT, COUNT, BETA), keywords={"kind": KIND}, look=lambda found: found.cosine,
                               low=-1, high=1, examples=12),
    "equiangular_time": Case((SHARE, COSINE, COUNT, BETA), keywords={"kind": KIND}, infinite=True, examples=15),
    "fastest_mode": Case((BETA, one_of(2, 3, extreme=[0, 1, 2.5, 128])), look=lambda found: found.growth, examples=12),
    "gibbs_row": Case((VECTOR, BETA | [np.ones(2), np.ones(4)]), look=lambda found: found.weights, low=0, high=1),
    "gram_flow": Case((GRAM, SHORT, one_of(1.5, extreme=[0.0, 5.0, -1.0, NAN])), low=-1, high=1, examples=8),
    "harmonic_growth": Case((FEW, BETA, FEW), keywords={"kind": KIND}, infinite=True, examples=15),
    "hot_deviation": Case((VECTOR,)),
    "log_interaction_energy": Case((TOKENS, BETA), examples=20),
    "mean_energy": Case((TOKENS,), low=0),
    "merge_time": Case((SHARE, COSINE, BETA), keywords={"mass": SHARE, "kind": KIND}, infinite=True, examples=12),
    "neural_ode": Case((one_of(sway), VECTOR, one_of(1.0, extreme=[0.0, -1.0, 1e-12, 10.0, NAN])), examples=8),
    "poisson_order": Case((SHARE, TIMES), low=0, high=1),
    "proven_regime": Case((COUNT, BETA, COUNT), examples=20),
    "score_law": Case((one_of("ginibre", "wigner", extreme=["goe", "wishart", "no such law"]),),
                      keywords={"dimension": one_of(4, extreme=[1, 0, 2.5, INF, NAN])}, low=0, examples=15),
    "tanh_flow": Case((NUMBER, NUMBER, NUMBER, POSITIVE), infinite=True, examples=25),
    "uniform_growth": Case((COUNT,), examples=12),
    "uniform_partition": Case((BETA, COUNT), infinite=True, low=0, examples=15),
}  # fmt: skip

test_values, test_coverage = extremes.room_tests(attention, TABLE)
