"""The room of bayes over extreme arguments."""

import numpy as np

import extremes
from deeplimits.theory import bayes
from extremes import INF, LABELS, NAN, NUMBER, POINTS, POSITIVE, SHARE, Case, one_of

HIDDEN = one_of([4, 6], extreme=[[], [1], [0], [-1], [2.5], [10**6, 3], [3, NAN], [[3]], [10**12]])
DATA = one_of(
    bayes.interpolation(2, 4, 1.0, 0.0),
    extreme=[
        bayes.interpolation(1, 1, 1e-12, 0.0),
        bayes.interpolation(5, 5, 1e12, 1e3),
        bayes.interpolation(10**5, 10**6, 1.0, -1e6),
        None,
        3.0,
    ],
)
WIDTH = one_of(5, extreme=[1, 0, -1, 2.5, 10**9, NAN])
DEPTHS = one_of([0, 2], extreme=[[], [1000], [-1], [0.5], 3, [NAN]])
VARIANCE = POSITIVE
_x = np.array([[1.0, 0.2, -0.3], [0.1, -1.0, 0.4]])
ROWS = one_of(_x, extreme=[1e-12 * _x, 1e12 * _x, np.zeros((2, 3)), _x[:1], np.ones((2, 3)), np.full((2, 3), NAN)])
PAIR = one_of(np.array([1.0, -0.5]), extreme=[np.zeros(2), np.ones(3), np.array([NAN, 1.0]), np.array([1e12, 1e-12])])

TABLE = {
    "interpolation": Case(
        (one_of(2, extreme=[0, 5, 2.5, NAN]), one_of(4, extreme=[0, 1, NAN]), POSITIVE, NUMBER), low=-INF
    ),
    "interpolate": Case((POINTS, LABELS)),
    "log_evidence": Case((DATA, VARIANCE, HIDDEN)),
    "evidence_over_depth": Case((DATA, VARIANCE, WIDTH, DEPTHS), examples=12),
    "evidence_map": Case(
        (DATA, one_of([0.5, 2.0], extreme=[[1e-12, 1e12], [0.0], [], [NAN]]), WIDTH, DEPTHS), examples=12
    ),
    "log_meijer_g": Case(
        (NUMBER, one_of([0.5, 2.0], extreme=[[0.0], [-3.0, 4.0], [], [NAN], [1e12, 1.0], [1e13]])), examples=25
    ),
    "posterior_norm_moment": Case(
        (DATA, VARIANCE, HIDDEN), keywords={"order": one_of(1, 2, extreme=[0, -1, 2.5, 20])}, low=0
    ),
    "predict_labels": Case((ROWS, PAIR, ROWS, VARIANCE, HIDDEN), examples=15),
    "log_predictive_density": Case(
        (ROWS, PAIR, one_of(np.ones((1, 3)), extreme=[_x, np.zeros((1, 3)), np.ones(3)]), NUMBER, VARIANCE, HIDDEN),
        examples=12,
    ),
    "best_prior_scale": Case((DATA, HIDDEN), low=-INF, examples=12),
    "select_architecture": Case((ROWS, PAIR, one_of([3, 8], extreme=[[0], [], [NAN]]), DEPTHS), examples=12),
    "concentrated_posterior": Case(
        (POSITIVE, SHARE, VARIANCE, one_of([0.5, 2.0], extreme=[[], [1e-12], [1e12], [0.0], [NAN]]))
    ),
    "deep_posterior": Case((POSITIVE, SHARE, POSITIVE)),
    "log_norm_limit": Case((POSITIVE,)),
    "log_norm_density": Case((NUMBER, one_of([3, 4], extreme=[[], [1], [0], [2.5], [10**9]])), low=0, examples=15),
}

test_values, test_coverage = extremes.room_tests(bayes, TABLE)
