"""The room of expressivity over extreme arguments."""

import math

import numpy as np

import extremes
from deeplimits.theory import expressivity
from extremes import COUNT, INF, NAN, POINTS, POSITIVE, SHARE, VECTOR, Case, one_of

HIDDEN = one_of([4, 3], extreme=[[], [1], [0], [-1], [2.5], [1000], [3, NAN], [[3]], [1] * 30])
ORDER = one_of(2, 4, extreme=[1, 3, 0, 8, 12, 14, 2.5])
COUNTS = one_of(3, extreme=[0, 1, 60, -1, 2.5, 10**5])
WHOLE = one_of(4.0, extreme=[0.0, 1.0, 1e12, -1.0, 2.5, NAN, INF, [1.0, 2.0]])
CORRELATION = one_of(0.3, extreme=[-1.0, 1.0, 0.0, 1 - 1e-12, 1.5, NAN, [0.1, 0.2]])
END = one_of(-1.0, 0.5, extreme=[-1e12, 1e12, 1e-12, -math.inf, math.inf, NAN])
OFFSETS = one_of(np.array([0.1, 0.2, -0.4]), extreme=[np.zeros(3), np.zeros(0), np.array([NAN, 1.0, 1.0]), np.ones(2)])
POINT = one_of(
    np.array([0.4, -1.0, 2.0]), extreme=[np.zeros(3), np.zeros(0), np.full(3, NAN), 1e12 * np.ones(3), np.ones(2)]
)
_w = [[[1.0, -1.0], [2.0, 1.0]], [[1.0, -1.0]]]

TABLE = {
    "activation_region_bound": Case((COUNT, HIDDEN), look=lambda found: float(math.log(found.layers)), low=0),
    "arrangement_cells": Case((POINTS, OFFSETS), look=lambda found: found.cells, low=1),
    "breakpoint_constant": Case((POSITIVE, POSITIVE), low=0),
    "carl_bits": Case((WHOLE, POSITIVE | (2.0,), POSITIVE), low=0),
    "cell_count": Case(
        (COUNT, COUNT), keywords={"central": one_of(False, True)}, look=lambda found: math.log(found.cells), low=0
    ),
    "dead_probability": Case((HIDDEN,), low=0, high=1),
    "entropy_numbers": Case(
        (WHOLE, one_of("cube", "ball", "lipschitz", extreme=["simplex"])),
        keywords={"dimension": one_of(2, extreme=[0, 1, 10**6, 2.5]), "slope": POSITIVE, "length": POSITIVE},
        low=0,
    ),
    "entropy_of_points": Case((POINTS, one_of(2, extreme=[0, -1, 5, 2.5, 100])), low=0),
    "entropy_to_width": Case((WHOLE,), low=0),
    "expected_breakpoints": Case(
        (POINT, POINT, END, one_of(0.7, extreme=[1e12, 0.7, math.inf, NAN]), POSITIVE, POSITIVE, HIDDEN), low=0
    ),
    "gate_probability": Case(
        (one_of([[1, 0], [1]], extreme=[[], [[]], [[2]], [[0], [1]], [[NAN]], [[0], [0]]]),), low=0, high=1
    ),
    "jacobian_log_moments": Case((COUNTS, HIDDEN)),
    "jacobian_moment": Case(
        (ORDER, COUNTS, HIDDEN),
        keywords={"weight_moments": one_of(None, extreme=[[9 / 5], [], [0.5], [NAN], [2.0] * 6])},
        low=0,
        examples=20,
    ),
    "johnson_lindenstrauss": Case((SHARE,), low=0),
    "layer_factor": Case((COUNTS,)),
    "matrix_chernoff": Case((POSITIVE, POSITIVE, POSITIVE, COUNT), low=0, infinite=True),
    "no_free_lunch_error": Case((WHOLE, WHOLE), low=0, high=0.5),
    "ntk_eigenvalue_bounds": Case(
        (POINTS, HIDDEN), look=lambda found: (found.largest, found.row_sum, found.spread), low=-1e-9
    ),
    "ntk_moments": Case((POSITIVE, COUNTS, HIDDEN), low=0),
    "ntk_off_diagonal": Case((CORRELATION, one_of(2, extreme=[0, -1, 1, 300, 2.5])), low=-1),
    "ntk_spread_limit": Case((POSITIVE,), low=1),
    "one_hidden_layer_pieces": Case((VECTOR, VECTOR, VECTOR)),
    "path_count": Case((HIDDEN,), low=1, infinite=True),
    "path_sum": Case(
        (
            one_of(_w, extreme=[[], [[1.0]], [[[NAN, 1.0]]], [[[1.0, 2.0]], [[1.0, 2.0]]]]),
            one_of([1.0, 0.5], extreme=[[], [0.0, 0.0], [1e12, 1.0], [NAN, 1.0], [1.0]]),
        )
    ),
    "projection_failure": Case((SHARE, WHOLE, POSITIVE | (20.0,)), low=0),
    "sawtooth": Case(
        (one_of(2, extreme=[0, -1, 1, 40, 2.5, 10**6]),),
        keywords={"compact": one_of(True, False)},
        look=lambda found: float(found.pieces),
        low=1,
    ),
    "sobolev_width": Case((POSITIVE,), low=0, high=1),
    "zero_cell_sides": Case((COUNT,), low=1, high=5),
}


test_values, test_coverage = extremes.room_tests(expressivity, TABLE)
