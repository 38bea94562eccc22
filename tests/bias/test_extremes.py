"""The room of implicit bias over extreme arguments."""

import numpy as np

import extremes
from deeplimits.theory import bias
from deeplimits.theory.bias import least_squares, noisy_descent, quadratic_model, separable_descent, slow_directions
from extremes import COUNT, INF, LABELS, NAN, NUMBER, POINTS, POSITIVE, TIMES, VECTOR, WHOLE, Case, one_of

WEIGHT = one_of(0.0, 0.5, extreme=[1e-12, 1e12, -1.0, NAN, INF])
CURVATURES = one_of(
    np.array([1.0, 2.0]),
    extreme=[
        np.zeros(2),
        np.zeros(0),
        np.array([-1.0, 2.0]),
        np.array([1e-12, 1e12]),
        np.array([NAN, 1.0]),
        np.ones((2, 2)),
    ],
)
DEPTH = one_of(2, extreme=[1, 0, 2.5, 3])
WIDE = one_of(
    np.array([[1.0, 2.0, 0.5], [0.2, -1.0, 1.5]]),
    extreme=[np.zeros((2, 3)), np.ones((2, 3)), np.full((2, 3), NAN), np.zeros((0, 3)), np.ones(3)],
)
TARGETS = one_of(
    np.array([1.0, 2.0]), extreme=[np.zeros(2), 1e12 * np.ones(2), np.array([NAN, 1.0]), np.ones(3), np.zeros(0)]
)
SEPARABLE = one_of(
    np.array([[1.0, 0.5], [-0.3, -1.2], [2.0, 2.0]]),
    extreme=[
        1e-12 * np.array([[1.0, 0.5], [-0.3, -1.2], [2.0, 2.0]]),
        1e12 * np.array([[1.0, 0.5], [-0.3, -1.2], [2.0, 2.0]]),
        np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]]),
        np.array([[1.0, 0.0], [-1.0, 0.0], [1.0, 0.0]]),
        np.zeros((3, 2)),
        np.full((3, 2), NAN),
        np.zeros((0, 2)),
        np.ones(3),
    ],
)
SAMPLING = one_of("with replacement", "bernoulli", extreme=["without replacement", "no such"])
START = one_of(np.array([0.4, -1.0, 2.0]), extreme=[np.zeros(3), np.array([1.0, NAN, 2.0]), np.ones(2), np.zeros(0)])
FORMS = one_of(
    0.1 * np.ones((3, 3, 3)),
    extreme=[np.zeros((3, 3, 3)), np.full((3, 3, 3), NAN), np.ones((3, 3)), np.ones((2, 2, 2))],
)
FEATURES = one_of(np.eye(3), extreme=[np.zeros((3, 3)), np.full((3, 3), NAN), np.ones((3, 2)), np.ones(3)])

LOSSES = one_of(
    lambda theta: (theta[0] - np.array([1.0, -1.0])) ** 2 / 2,
    extreme=["losses", lambda theta: theta[0] ** 2, lambda theta: np.inf * theta, lambda theta: 1e12 * theta**2],
)
TABLE = {
    "fluctuation_dissipation": Case(
        (
            LOSSES,
            one_of([[0.3], [-0.3]], extreme=[[[0.0]], [], [0.3], [[NAN]], [[1e12]], [[1e-12]]]),
            POSITIVE,
            COUNT,
            SAMPLING,
        ),
        keywords={"centre": one_of(None, extreme=[[0.0], [NAN], [0.0, 1.0]])},
        examples=30,
    ),
    "cover_probability": Case((COUNT | (2.5,), COUNT | (2.5,)), low=0, high=1),
    "diagonal_interpolant": Case((WIDE, TARGETS, POSITIVE), keywords={"depth": DEPTH}, examples=15),
    "diagonal_potential": Case((NUMBER,), keywords={"depth": DEPTH}, low=0, examples=15),
    "diagonal_regularizer": Case(
        (VECTOR, POSITIVE, one_of(np.ones(3), extreme=[np.zeros(3), np.ones(2), NAN])), keywords={"depth": DEPTH}, low=0
    ),
    "diagonal_trajectory": Case(
        (WIDE, TARGETS, POSITIVE, one_of(np.array([0.0, 1.0]), extreme=[TIMES.extreme[1], np.array([-1.0, 1.0])])),
        examples=8,
    ),
    "kernel_solution": Case((WIDE, TARGETS), keywords={"depth": DEPTH}),
    "sparse_solution": Case((WIDE, TARGETS)),
    "deep_linear_margin": Case((POSITIVE, COUNT), low=0),
    "closest_minimizer": Case((POINTS, LABELS, START)),
    "critical_step": Case((POINTS,), low=0, infinite=True),
    "gradient_descent": Case((POINTS, LABELS, START, POSITIVE, one_of(5, extreme=[0, -1, 2.5, 10**6])), infinite=True),
    "gradient_flow": Case((POINTS, LABELS, START, TIMES)),
    "optimal_step": Case((POINTS,), low=0, infinite=True),
    "averaged_variance": Case((POSITIVE, POSITIVE, WEIGHT, WHOLE), low=0),
    "best_step": Case((CURVATURES,), low=0),
    "langevin_variance": Case((POSITIVE, POSITIVE, WEIGHT), low=0),
    "proportional_best_step": Case((POSITIVE,), low=0),
    "robbins_monro": Case((POSITIVE, POSITIVE, WEIGHT), look=lambda found: found[:2]),
    "stationary_variance": Case((POSITIVE, POSITIVE, WEIGHT), low=0),
    "proportional_max_margin": Case(
        (POSITIVE,),
        keywords={"labels": one_of("sign", extreme=["no such", "logistic"]), "strength": POSITIVE},
        examples=6,
    ),
    "separability_threshold": Case(
        (one_of("sign", "logistic", extreme=["no such"]),),
        keywords={"strength": POSITIVE},
        low=0,
        infinite=True,
        examples=6,
    ),
    "first_order_path": Case((FEATURES, FORMS, LABELS, START, TIMES), examples=10),
    "quadratic_perturbation": Case((FEATURES, FORMS, LABELS, START), look=lambda found: found[:1], examples=10),
    "largest_separable_step": Case(
        (SEPARABLE,),
        keywords={"loss": one_of("logistic", "exponential", extreme=["no such"])},
        low=0,
        infinite=True,
    ),
    "log_time_law": Case(
        (SEPARABLE, one_of(np.array([1.0, -1.0, 1.0]), extreme=LABELS.extreme)), look=lambda law: law[:1]
    ),
    "largest_sgd_step": Case((POINTS, WHOLE, SAMPLING), low=0, infinite=True),
    "sgd_loss_path": Case(
        (POINTS, LABELS, START, POSITIVE, WHOLE, SAMPLING, one_of(3, extreme=[0, -1, 2.5])), infinite=True, examples=10
    ),
    "sgd_stationary": Case((POINTS, LABELS, POSITIVE, WHOLE, SAMPLING), look=lambda found: found[:1], infinite=True),
    "diffusion_density": Case(
        (VECTOR,), keywords={"convention": one_of("ito", "stratonovich", extreme=["no such"])}, low=0
    ),
    "slow_half_mass": Case((POSITIVE, POSITIVE), low=0, high=1),
    "valley_drift": Case((POSITIVE, POSITIVE, one_of(np.array([0.0, 0.1]), extreme=TIMES.extreme)), examples=12),
    "hard_margin": Case(
        (SEPARABLE, one_of(np.array([1.0, -1.0, 1.0]), extreme=LABELS.extreme)), look=lambda found: found[:2]
    ),
    "is_separable": Case((SEPARABLE, one_of(np.array([1.0, -1.0, 1.0]), extreme=LABELS.extreme))),
    "multiclass_hard_margin": Case(
        (SEPARABLE, one_of(np.array([0.0, 1.0, 2.0]), extreme=LABELS.extreme)), look=lambda found: found[:1]
    ),
}


SIGNED = one_of(np.array([[1.0, 0.5], [0.3, 1.2], [2.0, 2.0]]), extreme=SEPARABLE.extreme)
MULTIPLIERS = one_of(
    np.array([0.5, 0.3, 0.0]), extreme=[np.zeros(3), np.ones(2), -np.ones(3), np.full(3, NAN), 1e12 * np.ones(3)]
)
PAIR = one_of(np.array([0.6, 0.2]), extreme=[np.zeros(2), np.ones(3), np.full(2, NAN), 1e12 * np.ones(2)])
HESSIAN = one_of(
    np.diag([1.0, 2.0, 0.5]),
    extreme=[np.zeros((3, 3)), -np.eye(3), np.full((3, 3), NAN), np.ones((2, 3)), np.triu(np.ones((3, 3)))],
)
LATE = one_of(1.0, extreme=[0.0, INF, -1.0, NAN, 1e12])
BEHIND = {
    "approach_rate": Case((SIGNED, PAIR, MULTIPLIERS), infinite=True),
    "contraction_factor": Case((CURVATURES, POSITIVE), low=0),
    "degenerate_flow": Case((NUMBER,)),
    "descent_path": Case((HESSIAN, START, POSITIVE, one_of(3, extreme=[0, -1, 2.5]))),
    "fast_variance": Case((POSITIVE, POSITIVE, POSITIVE), low=0),
    "feature_change": Case((FEATURES, FEATURES, LABELS, START, LATE)),
    "in_row_space": Case((WIDE, START)),
    "in_support_span": Case((SIGNED, MULTIPLIERS, PAIR)),
    "lattice_slow_mass": Case(
        (one_of(10, extreme=[2.5, 0, -4]), one_of(2, extreme=[0, -1, 6, 1.5]), one_of(1, 2)), low=0
    ),
    "linear_path": Case((FEATURES, LABELS, START, TIMES)),
    "schedule_converges": Case((NUMBER,)),
    "support_offset": Case((SIGNED, MULTIPLIERS, POSITIVE)),
    "temperature": Case((POSITIVE, WEIGHT), low=0),
    "variance_path": Case((NUMBER, TIMES, WEIGHT), keywords={"start": WEIGHT}, infinite=True, low=0),
}


def test_functions_behind_the_door():
    """What limits name and files offer, on the same terms."""
    files = (least_squares, noisy_descent, quadratic_model, separable_descent, slow_directions)
    for name, case in BEHIND.items():
        extremes.check(next(getattr(file, name) for file in files if hasattr(file, name)), case)


test_values, test_coverage = extremes.room_tests(
    bias, TABLE, elsewhere={"entropic_drift": "takes the curvatures of the fast directions as a function"}
)
