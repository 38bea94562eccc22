"""The room of regression over extreme arguments."""

import mpmath
import numpy as np
import pytest

import extremes
from deeplimits.theory import regression
from deeplimits.theory.regression import ridgeless, smoothing
from extremes import COUNT, INF, KERNEL, LABELS, NAN, NUMBER, POINTS, POSITIVE, SHARE, TIMES, VECTOR, Case, one_of

GAMMA = POSITIVE | (1 - 1e-12,)
WEIGHT = one_of(0.0, 0.5, extreme=[1e-12, 1e12, -1.0, NAN, INF])
"""A squared norm, a variance or a ridge: zero is allowed."""
POPULATION = one_of(
    regression.population([1.0, 4.0], alignment=[0.3, 0.7]),
    regression.population([1.0]),
    extreme=[regression.population([1e-12, 1e12]), regression.population([0.0, 1.0])],
)
PLACES = one_of(np.array([1.0, 4.0]), extreme=[np.zeros(2), np.zeros(0), np.array([-1.0, 1.0]), np.array([1.0, NAN])])
SIZE = one_of(20, 10, extreme=[0, -1, 1, 19, 21, 10**6])
STRENGTH = one_of(1.0, extreme=[0.0, 1e-12, 1e6, 1e12, -1.0, NAN, INF])
TIME = one_of(0.0, 1.5, extreme=[1e-12, 1e12, -1.0, NAN, INF])
STEPS = one_of(5.0, extreme=[0.0, 1e12, -1.0, 2.5, NAN])
DIMENSION = one_of(2, 3, extreme=[0, -1, 1, 1000])
ASPECT = one_of(0.5, 2.0, extreme=[1.0, 1e-12, 1e12, 0.0, -1.0, NAN])

TABLE = {
    "early_stopped_descent_risk": Case((POSITIVE, STEPS, GAMMA, WEIGHT, WEIGHT), low=0),
    "early_stopped_risk": Case((TIME, GAMMA, WEIGHT, WEIGHT), low=0, infinite=True),
    "flow_to_ridge_ratio": Case((POSITIVE,), low=0, high=1.7),
    "ridge_descent": Case((POINTS, LABELS, WEIGHT, POSITIVE, STEPS)),
    "ridge_flow": Case((POINTS, LABELS, WEIGHT, TIMES)),
    "classification_dynamics_by_contour": Case((TIME, ASPECT, STRENGTH), low=-1e6, examples=12),
    "classification_at_infinity": Case(
        (ASPECT, STRENGTH), keywords={"start": WEIGHT, "ridge": WEIGHT}, infinite=True, examples=15
    ),
    "classification_dynamics": Case(
        (TIMES, ASPECT, STRENGTH), keywords={"start": WEIGHT, "ridge": WEIGHT}, examples=15
    ),
    "optimal_stopping": Case((ASPECT, STRENGTH), keywords={"start": WEIGHT}, infinite=True, examples=8),
    "from_covariance": Case((KERNEL, VECTOR)),
    "latent_features": Case((POSITIVE, SHARE, WEIGHT, WEIGHT), low=0),
    "population": Case(
        (PLACES, one_of(None, extreme=[np.array([1.0, 1.0]), np.array([NAN, 1.0]), np.ones(3) / 3])), low=0
    ),
    "feature_regression": Case(
        (POINTS, LABELS, POINTS, LABELS),
        keywords={"activation": extremes.ACTIVATION},
        look=lambda found: found.errors(0.1, 10),
        low=0,
        examples=10,
    ),
    "misspecified_risk": Case((GAMMA, WEIGHT, WEIGHT), keywords={"seen": SHARE, "ridge": WEIGHT}, low=0, infinite=True),
    "optimal_ridge": Case((POPULATION, POSITIVE, WEIGHT, WEIGHT), infinite=True, examples=10),
    "ridge_risk": Case((WEIGHT, POPULATION, GAMMA, WEIGHT, WEIGHT), low=0, infinite=True),
    "ablation": Case((POINTS, VECTOR, VECTOR, VECTOR)),
    "best_overparametrization": Case((POSITIVE, POSITIVE), infinite=True),
    "design_risk": Case((POINTS, VECTOR, WEIGHT), low=0),
    "ridgeless_finite_sample_norm": Case((SIZE, SIZE, WEIGHT, WEIGHT), low=0, infinite=True),
    "ridgeless_finite_sample_risk": Case((SIZE, SIZE, WEIGHT, WEIGHT), low=0, infinite=True),
    "ridgeless_norm": Case((GAMMA, WEIGHT, WEIGHT), low=0, infinite=True),
    "ridgeless_risk": Case((GAMMA, WEIGHT, WEIGHT), low=0, infinite=True),
    "ridgeless_training_error": Case((GAMMA, WEIGHT), low=0),
    "kernel_concentration": Case((COUNT, DIMENSION, one_of(0.5, extreme=[0.0, 1.5, 1e-6, -1.0, NAN])), examples=8),
    "nearest_neighbours_bias_cone": Case((NUMBER, POSITIVE, COUNT, COUNT | (10**12,), DIMENSION)),
    "nearest_neighbours_bias_linear": Case((NUMBER, COUNT, COUNT | (10**12,), DIMENSION)),
    "nearest_neighbours_risk": Case((POINTS, LABELS, VECTOR, NUMBER, one_of(1, 2, extreme=[0, 4, 2.5]), WEIGHT), low=0),
    "order_statistic_limit": Case((POSITIVE, COUNT, COUNT, DIMENSION, POSITIVE), low=0),
    "singular_kernel_risk": Case(
        (COUNT, DIMENSION, one_of(0.5, extreme=[0.0, 1e-6, 1.5, NAN]), SHARE, POSITIVE, WEIGHT, SHARE), low=0
    ),
    "descent_risk": Case((POSITIVE, STEPS, POPULATION, POSITIVE, WEIGHT, WEIGHT), low=0, examples=10),
    "flow_risk": Case((TIME, POPULATION, POSITIVE, WEIGHT, WEIGHT), low=0, infinite=True, examples=10),
}


test_values, test_coverage = extremes.room_tests(
    regression, TABLE, elsewhere={"worst_flow_to_ridge": "takes no argument"}
)


_RNG = np.random.default_rng(0)
X, Y, BETA = _RNG.standard_normal((6, 4)), _RNG.standard_normal(6), _RNG.standard_normal(4)


def two(s):
    """Eigenvalues s and 4s of the covariance, of coefficients in units of s^{−1/2}."""
    return regression.population(s * np.array([1.0, 4.0]), alignment=[0.3, 0.7])


def parts(risk):
    return risk.bias, risk.variance


UNITS = {
    "ridge_risk": lambda s: parts(regression.ridge_risk(0.3 * s, two(s), 2.0, 1 / s, 1.0)),
    "ridge_risk without ridge": lambda s: parts(regression.ridge_risk(0.0, two(s), 2.0, 1 / s, 1.0)),
    "ridge_risk of the noise": lambda s: regression.ridge_risk(0.3, two(1.0), 0.5, 0.0, s).variance / s,
    "flow_risk": lambda s: parts(regression.flow_risk(1.3 / s, two(s), 1.5, 1 / s, 1.0)),
    "descent_risk": lambda s: parts(regression.descent_risk(0.1 / s, 5, two(s), 1.5, 1 / s, 1.0)),
    "ridge_flow": lambda s: s * regression.ridge_flow(s * X, Y, 0.2 * s**2, 1.3 / s**2),
    "ridge_flow at the end": lambda s: s * regression.ridge_flow(s * X.T, BETA, 0.0, np.inf),
    "ridge_descent": lambda s: s * regression.ridge_descent(s * X, Y, 0.2 * s**2, 0.1 / s**2, 7),
    "design_risk": lambda s: s**2 * regression.design_risk(s * X, BETA, 1.0).variance,
    "ablation": lambda s: regression.ablation(s * X, BETA / s, Y, s * BETA).error,
    "nearest_neighbours_risk": lambda s: parts(regression.nearest_neighbours_risk(s * X, Y, s * BETA, 0.1, 2, 1.0)),
    "singular_kernel_risk": lambda s: (
        regression.singular_kernel_risk(100, 2, 0.5, 0.5, 1.0, 1.0, 0.3 * s, radius=s).bias / s
    ),
    "feature_regression": lambda s: regression.feature_regression(s * (X - X.mean(0)), Y, s * X[:3], Y[:3]).errors(
        5, 0.1 * s**2
    )[:2],
}
test_units = extremes.unit_tests(UNITS, rtol=1e-7)


test_functions = extremes.function_tests(
    [
        (smoothing.nearest_neighbours_curvature_bias, Case((NUMBER, COUNT, COUNT, COUNT))),
        (
            smoothing.empty_window_probability,
            Case((COUNT, COUNT, POSITIVE), keywords={"radius": POSITIVE}, low=0, high=1),
        ),
        (
            smoothing.singular_kernel_constants,
            Case((DIMENSION, ASPECT, SHARE, POSITIVE, WEIGHT), keywords={"density": POSITIVE}, low=0),
        ),
        (smoothing.ball_volume, Case((extremes.WHOLE,), low=0)),
        (ridgeless.ridgeless_finite_sample_training_error, Case((SIZE, SIZE, WEIGHT), low=0)),
    ]
)


def test_the_volume_of_a_ball_in_many_dimensions():
    """π^{d/2}/Γ(1 + d/2) beyond d = 340, where Γ overflows, and beyond d = 1240, where π^{d/2} does."""
    mpmath.mp.dps = 30
    for d in (1, 2, 341, 500):
        exact = mpmath.pi ** (mpmath.mpf(d) / 2) / mpmath.gamma(1 + mpmath.mpf(d) / 2)
        assert smoothing.ball_volume(d) == pytest.approx(float(exact), rel=1e-12)
