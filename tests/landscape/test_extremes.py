"""The room of loss landscapes over extreme arguments."""

import jax.numpy as jnp
import numpy as np

import extremes
from deeplimits.theory import landscape
from deeplimits.theory.online_sgd import XorState
from extremes import ACTIVATION, INF, LABELS, NAN, NUMBER, POSITIVE, SHARE, VECTOR, Case, Kind, one_of

CLASSES = one_of(2, 3, extreme=[0, 1, -1, 2.5, 10, 1000])
EACH = one_of(2, 5, extreme=[0, 1, -1, 2.5, 10**6])
STEPS = one_of(3, 10, extreme=[0, 1, -1, 2.5, 1000])
SEPARATION = Kind([2.0, 10.0], [0.0, -1.0, 1e-12, 1e12, NAN, INF])
RIDGE = Kind([0.05, 0.1], [0.0, -1.0, 1e-12, 0.125, 0.2, 1.0, 1e12, NAN])
# Paths are followed by explicit steps, as many as a strong ridge or noise asks for.
TAME, WEAK = one_of(10.0, extreme=[0.0, -1.0, 1e12, NAN]), one_of(0.1, extreme=[0.0, -1.0, 1e-12, 1.0, NAN])
STEP = Kind([0.1, 1.0], [0.0, -1.0, 1e-12, 10.0, NAN])
SHORT = one_of([0.0, 2.0], extreme=[[1e-12, 1.0], [], [2.0, 1.0], [-1.0], [NAN], [50.0]])
MARKS = one_of([0, 0, 1], extreme=[[0] * 3, [0, 1, 2], [-1, 0, 1], [0.5] * 3, [0, 1], [], [NAN] * 3])
LOSS = one_of("cross-entropy", "squared", extreme=["hinge"])
METHOD = one_of("gd", "heavy_ball", extreme=["nesterov", "gd", "no such method"])
SIDE = one_of("hessian", "gradient", extreme=["gram", "hessian"])
FEW_POINTS = one_of(16, extreme=[0, 1, 2.5])
STATE = one_of(
    XorState(jnp.ones(2), jnp.ones(2), jnp.zeros(2), jnp.eye(2)),
    extreme=[
        XorState(jnp.zeros(2), jnp.zeros(2), jnp.zeros(2), jnp.zeros((2, 2))),
        XorState(1e12 * jnp.ones(2), jnp.ones(2), jnp.zeros(2), jnp.eye(2)),
        XorState(jnp.ones(2), jnp.ones(2), jnp.zeros(2), -jnp.eye(2)),
        XorState(jnp.full(2, NAN), jnp.ones(2), jnp.zeros(2), jnp.eye(2)),
        XorState(jnp.ones(3), jnp.ones(2), jnp.zeros(2), jnp.eye(2)),
        None,
    ],
)
MIXTURE = one_of(
    landscape.MixtureState(jnp.zeros((2, 2)), jnp.eye(2)),
    extreme=[
        landscape.MixtureState(jnp.eye(2), jnp.zeros((2, 2))),
        landscape.MixtureState(1e6 * jnp.ones((2, 2)), jnp.eye(2)),
        landscape.MixtureState(jnp.zeros((2, 2)), -jnp.eye(2)),
        landscape.MixtureState(jnp.full((2, 2), NAN), jnp.eye(2)),
        landscape.MixtureState(jnp.zeros((2, 3)), jnp.eye(2)),
        3.0,
    ],
)
SHARES = one_of([0.5, 0.5], extreme=[None, [1.0, 0.0], [0.6, 0.6], [-0.5, 1.5], [1.0], [NAN, 1.0]])
ROWS = one_of(
    np.array([[1.0, 0.2], [0.1, -1.0], [0.4, 0.3]]),
    extreme=[1e-12 * np.ones((3, 2)), 1e12 * np.ones((3, 2)), np.zeros((3, 2)), np.full((3, 2), NAN), np.ones(3),
             np.zeros((0, 2)), np.ones((2, 2))],
)  # fmt: skip
FIRST = one_of(np.array([[0.5, -0.2], [0.1, 0.3]]), extreme=[np.zeros((2, 2)), 1e6 * np.ones((2, 2)), np.ones((2, 3)),
                                                              np.full((2, 2), NAN), np.ones(2)])  # fmt: skip
SECOND = one_of(np.array([[2.0, -1.0]]), extreme=[np.zeros((1, 2)), np.ones((1, 3)), np.full((1, 2), NAN)])
TARGETS = one_of(np.array([[1.0], [0.0], [1.0]]), extreme=[np.ones((2, 1)), np.full((3, 1), NAN), np.ones(3)])
OUTPUT = one_of([2.0, -1.0], extreme=[[0.0, 0.0], [1e12, 1.0], [NAN, 1.0], [1.0], []])
VECTORS = one_of(np.ones((3, 2, 2)), extreme=[np.zeros((3, 2, 2)), np.ones((3, 2)), np.full((3, 2, 2), NAN),
                                              1e12 * np.ones((3, 2, 2))])  # fmt: skip
WEIGHTS = one_of(np.full((3, 2), 0.2), extreme=[np.zeros((3, 2)), -np.ones((3, 2)), np.ones((2, 2)), np.ones(3)])
_sample = landscape.weighted_sample(np.ones(2), np.sqrt(0.1) * np.array([[1.0], [-1.0]]) + 1.0, 10.0, 4.0)
SAMPLE = one_of(
    _sample,
    extreme=[
        landscape.weighted_sample(np.ones(2), np.zeros((2, 1)), 10.0, 4.0),
        landscape.weighted_sample(np.ones(2), np.ones((2, 1)), 1e6, 1e-3),
        "no sample",
    ],
)
FOUND = one_of(landscape.weighted_outliers(_sample), extreme=[None])

TABLE = {
    "catapult_end": Case((POSITIVE, POSITIVE), examples=20),
    "catapult_path": Case((NUMBER, POSITIVE, NUMBER, POSITIVE, STEP, STEPS), infinite=True, examples=20),
    "catapult_time": Case((POSITIVE, POSITIVE), infinite=True, low=0, examples=20),
    "class_decomposition": Case((VECTORS, WEIGHTS, MARKS), examples=20),
    "feature_decomposition": Case((ROWS, MARKS), examples=20),
    "gauss_newton_rank": Case((EACH, EACH, CLASSES), keywords={"loss": LOSS}, low=0, examples=15),
    "growth_factor": Case((NUMBER, STEP), keywords={"method": METHOD, "momentum": SHARE}, low=0, infinite=True),
    "kgmm_ballistic": Case((MIXTURE, SHORT, TAME, WEAK, STEP), keywords={"points": FEW_POINTS}, examples=4),
    "kgmm_blocks": Case((POSITIVE, CLASSES), examples=15),
    "kgmm_fixed_point": Case((CLASSES, SEPARATION, RIDGE, STEP), examples=4),
    "kgmm_noiseless_path": Case((SHORT, CLASSES, RIDGE), examples=10),
    "kgmm_symmetric_path": Case((SHORT, one_of(2, 3, extreme=[0, 1, -1, 2.5, 10]), TAME, WEAK, STEP), examples=4),
    "kgmm_weighted_block": Case(
        (MIXTURE, SEPARATION, POSITIVE),
        keywords={"probabilities": SHARES, "kind": SIDE, "points": FEW_POINTS}, examples=12,
    ),
    "lazy_kernel_change": Case((POSITIVE, POSITIVE), examples=20),
    "learning_rate_phases": Case((POSITIVE,), keywords={"samples": EACH}, low=0, infinite=True),
    "mean_logits": Case((POSITIVE, CLASSES), examples=15),
    "neural_collapse_in_noise": Case((CLASSES, EACH, EACH, POSITIVE, POSITIVE), examples=20),
    "outlier_alignment": Case(
        (FOUND, one_of([2.0], extreme=[[0.0], [1e12], [NAN], [1.0, 2.0], []]), EACH), low=0, high=1
    ),
    "product_descent": Case((NUMBER, NUMBER, STEP, STEPS), infinite=True),
    "product_flow": Case((NUMBER, NUMBER)),
    "reduced_catapult": Case((POSITIVE, POSITIVE, STEPS), infinite=True),
    "simplex_frame": Case((CLASSES, EACH), low=-1, high=1, examples=15),
    "softmax_curvature": Case((FIRST, ROWS, MARKS), keywords={"kind": SIDE}, examples=15),
    "softmax_moments": Case((NUMBER, POSITIVE, CLASSES), low=0, high=1, examples=12),
    "stability_threshold": Case((STEP,), keywords={"method": METHOD, "momentum": SHARE}, low=0),
    "start_gradient_parts": Case((CLASSES, EACH, POSITIVE, POSITIVE), low=0, examples=15),
    "top_gradient_share": Case(
        (VECTOR, VECTOR, STEP, one_of([0, 3], extreme=[[-1], [2.5], [], [10**6]]), one_of(1, extreme=[0, 2, 5, 1.5])),
        low=0, high=1,
    ),
    "two_cluster_curvature": Case((NUMBER, POSITIVE), keywords={"distance": POSITIVE}, examples=20),
    "two_layer_curvature": Case((ACTIVATION, FIRST, SECOND, ROWS, TARGETS), keywords={"loss": LOSS}, examples=15),
    "unconstrained_features": Case(
        (CLASSES, EACH, POSITIVE, POSITIVE), look=lambda found: (found.scale, found.loss), low=0
    ),
    "weighted_outliers": Case((SAMPLE,), look=lambda found: (found.eigenvalues, found.edge), low=0, examples=8),
    "weighted_sample": Case(
        (one_of([1.0, 1.0], extreme=[[0.0, 0.0], [-1.0, 1.0], [NAN, 1.0], [1.0], []]),
         one_of(np.ones((2, 1)), extreme=[np.ones(2), np.zeros((2, 0)), np.full((2, 1), NAN), np.ones((3, 1))]),
         SEPARATION, POSITIVE),
        keywords={"probabilities": one_of(None, extreme=[[0.5, 0.5], [1.0, 1.0], [1.0]])},
        look=lambda found: found.probabilities, low=0, high=1,
    ),
    "xor_curvature": Case((OUTPUT, FIRST, ROWS, LABELS), keywords={"kind": SIDE}, examples=15),
    "xor_outlier_counts": Case((EACH,), low=0, high=1, examples=10),
    "xor_rest_eigenvalues": Case((RIDGE,), examples=10),
    "xor_rest_first_layer": Case((RIDGE, NUMBER), examples=15),
    "xor_second_layer": Case((STATE, SEPARATION), keywords={"points": FEW_POINTS}, examples=12),
    "xor_weighted_block": Case(
        (STATE, SEPARATION, POSITIVE), keywords={"kind": SIDE, "points": FEW_POINTS}, examples=12
    ),
}  # fmt: skip

test_values, test_coverage = extremes.room_tests(
    landscape, TABLE, elsewhere={"open_directions": "takes no argument; test_open_directions.py"}
)
