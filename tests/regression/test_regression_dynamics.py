"""Training dynamics of linear models: known values, quadrature, contours, dense algebra, gradients, bad input."""

import itertools

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from scipy import linalg, stats

from deeplimits.ensembles import linear_training
from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.theory.regression import gradient_flow, ridgeless
from deeplimits.theory.regression.edge_quadrature import marchenko_pastur_rule, spiked_rule
from deeplimits.theory.regression.filters import descent_filter, flow_filter, mean_decay
from deeplimits.theory.regression.mixture_contour import classification_dynamics_by_contour
from deeplimits.theory.regression.mixture_dynamics import (
    classification_at_infinity,
    classification_dynamics,
    optimal_stopping,
)

# (t, c, ρ, σ², γ) and E, V, E', V', test error, training error
DYNAMICS = [
    ((3, 0.5, 1, 0.1, 0), (0.46545296124, 0.45063644687, 0.69817944186, 0.18157504739, 0.24403989726, 0.05066165501)),
    ((5, 0.5, 2, 0.1, 0.3), (0.57718590068, 0.26805227222, 0.72148237585, 0.11898158550, 0.13246311322, 0.01823560025)),
    ((4, 2, 1, 0.5, 0.2), (0.29610637726, 0.44659864728, 0.88831913179, 0.01339199460, 0.32885138508, 8.19e-15)),
    ((20, 1, 2, 0.1, 0), (0.63856298162, 1.04449668957, 0.95784447243, 0.02810562729, 0.26604682916, 5.535e-9)),
]
# Below, at and above c = 1; ρ² below, at and above c; with and without ridge.
SPREAD = [
    (4.0, c, rho, 0.2, gamma)
    for c, rho, gamma in [
        *itertools.product((0.49, 1.0, 2.25), (0.3, 0.7, 1.0, 1.5, 3.0), (0.0, 0.4)),
        (0.01, 0.1, 0.0),
        (9.0, 0.2, 0.0),
        (0.5, 20.0, 0.0),
    ]
]


@pytest.mark.parametrize(("parameters", "expected"), DYNAMICS)
def test_classification_values(parameters, expected):
    *point, start, ridge = parameters
    found = classification_dynamics(*point, start=start, ridge=ridge)
    assert [float(part) for part in found[:5]] == pytest.approx(expected[:5], abs=1e-11)
    # The references round small training errors to a few digits.
    assert float(found.training_error) == pytest.approx(expected[5], rel=1e-3)


@pytest.mark.parametrize("parameters", SPREAD)
def test_real_integrals_agree_with_the_contour(parameters):
    _, gamma, strength, start, ridge = parameters
    for time in (0.0, 0.3, 4.0, 60.0):
        found = classification_dynamics(time, gamma, strength, start=start, ridge=ridge)
        other = classification_dynamics_by_contour(time, gamma, strength, start=start, ridge=ridge)
        np.testing.assert_allclose(np.array(found[:5]), np.array(other[:5]), rtol=1e-11, atol=1e-13)


def measure_by_mpmath(g, ratio, pole, mass_of_atom, scale):
    """∫g against √((x−λ₋)(λ₊−x))/(2π|q−x|·scale) and an atom at q, by Gauss and Legendre's rule on pieces."""
    with mpmath.workdps(40):
        root = mpmath.sqrt(ratio)

        def piece(angle):
            # x = 1 + c − 2√c cos θ takes √((x−λ₋)(λ₊−x)) dx to 4c sin²θ dθ
            x = 1 + ratio - 2 * root * mpmath.cos(angle)
            return g(x) * 4 * ratio * mpmath.sin(angle) ** 2 / (2 * mpmath.pi * abs(pole - x) * scale)

        splits = [mpmath.pi * k / 20 for k in (0, 1, 4, 10, 16, 19, 20)]
        return float(mpmath.quad(piece, splits, method="gauss-legendre") + mass_of_atom * g(mpmath.mpf(pole)))


@pytest.mark.parametrize("parameters", SPREAD[::3])
def test_rules_agree_with_quadrature(parameters):
    _, c, rho, _, _ = parameters
    omega, law = spiked_rule(c, rho), marchenko_pastur_rule(c)
    with mpmath.workdps(40):
        c, rho = mpmath.mpf(c), mpmath.mpf(rho)
        pole, spike = 1 + c + rho + c / rho, max(rho**2 - c, mpmath.mpf(0)) / rho
    for t in (0.5, 30.0):
        for g, of in (
            (lambda x, t=t: mpmath.exp(-2 * t * x), lambda x, t=t: jnp.exp(-2 * t * x)),
            (lambda x, t=t: x * mpmath.exp(-t * x), lambda x, t=t: x * jnp.exp(-t * x)),
        ):
            expected = measure_by_mpmath(g, c, pole, spike, 1)
            assert float(omega.integrate(of(omega.points))) == pytest.approx(expected, abs=1e-12)
            expected = measure_by_mpmath(g, c, 0, max(1 - 1 / c, mpmath.mpf(0)), c)
            assert float(law.integrate(of(law.points))) == pytest.approx(expected, abs=1e-12)


def test_rules_are_positive_and_carry_their_atoms():
    for c, rho in itertools.product((0.04, 0.5, 1.0, 1.0 + 1e-9, 4.0), (0.1, 1.0, 1.0 - 1e-7, 2.0, 30.0)):
        omega, law = spiked_rule(c, rho), marchenko_pastur_rule(c)
        assert float(jnp.min(omega.weights)) >= 0
        assert float(jnp.min(law.weights)) >= 0
        assert float(jnp.sum(omega.weights)) == pytest.approx(rho, rel=1e-14)
        assert float(jnp.sum(law.weights)) == pytest.approx(1, rel=1e-14)
        assert float(omega.weights[-1]) == pytest.approx(max(rho**2 - c, 0) / rho, abs=2e-3)
        assert float(law.weights[-1]) == pytest.approx(max(1 - 1 / c, 0), abs=2e-3)
    assert float(spiked_rule(0.5, 2.0).weights[-1]) == pytest.approx(1.75, rel=1e-13)
    assert float(marchenko_pastur_rule(4.0).weights[-1]) == pytest.approx(0.75, rel=1e-13)


def test_late_times_at_the_hard_edge():
    """c = 1 without ridge: V grows like √t, and the nodes still resolve t = 2000 (contour) and 10⁴ (mpmath)."""
    late = classification_dynamics(2000.0, 1.0, 1.0, start=0.1)
    other = classification_dynamics_by_contour(2000.0, 1.0, 1.0, start=0.1)
    np.testing.assert_allclose(np.array(late[:5]), np.array(other[:5]), rtol=1e-11)
    last = classification_dynamics(1e4, 1.0, 1.0, start=0.0)
    t = 10_000
    expected = 2 * measure_by_mpmath(lambda x: (mpmath.expm1(-t * x) / x) ** 2, mpmath.mpf(1), 4, 0, 1)
    assert float(last.test_variance) == pytest.approx(expected, rel=1e-11)
    growth = float(last.test_variance / classification_dynamics(2500.0, 1.0, 1.0, start=0.0).test_variance)
    assert growth == pytest.approx(2, abs=0.03)


@pytest.mark.parametrize(("c", "gamma"), [(0.5, 0.0), (2.0, 0.0), (0.5, 0.3), (1.0, 0.3), (3.0, 0.7), (0.02, 50.0)])
def test_the_end_of_training(c, gamma):
    late, end = (
        classification_dynamics(2e3, c, 1.3, start=0.4, ridge=gamma),
        classification_at_infinity(c, 1.3, start=0.4, ridge=gamma),
    )
    np.testing.assert_allclose(np.array(late), np.array(end), rtol=1e-11, atol=1e-13)


def test_closed_forms_at_the_end():
    rho, noise, c = 1.4, 0.3, 0.6
    end = classification_dynamics(jnp.inf, c, rho, start=noise)
    assert float(end.test_mean) == pytest.approx(rho / (1 + rho), rel=1e-14)
    assert float(end.test_variance) == pytest.approx((rho + c) / ((1 - c) * (1 + rho) ** 2), rel=1e-14)
    assert float(end.test_error) == pytest.approx(stats.norm.sf(rho * np.sqrt((1 - c) / (rho + c))), rel=1e-13)
    seen = (rho + c) / (1 + rho)
    assert [float(end.training_mean), float(end.training_variance)] == pytest.approx([seen, seen - seen**2], rel=1e-14)
    c = 2.5
    end = classification_dynamics([1.0, jnp.inf], c, rho, start=noise)
    assert float(end.test_mean[1]) == pytest.approx(rho / (rho + c), rel=1e-14)
    assert float(end.test_variance[1]) == pytest.approx(c / ((c - 1) * (rho + c)) + noise * (1 - 1 / c), rel=1e-14)
    assert float(end.training_mean[1]) == 1
    assert float(end.training_variance[1]) == 0
    assert float(end.training_error[1]) == 0
    threshold = classification_at_infinity(1.0, rho, start=noise)
    assert float(threshold.test_variance) == np.inf
    assert float(threshold.test_error) == 0.5


def test_the_beginning_of_training():
    c, rho = 0.7, 1.2
    best = stats.norm.sf(rho / np.sqrt(rho + c))
    begin = classification_dynamics([0.0, 1e-7, 1.0], c, rho, start=0.0, ridge=0.2)
    assert float(begin.test_error[0]) == pytest.approx(best, rel=1e-13)
    assert float(begin.test_error[1]) == pytest.approx(best, rel=1e-6)
    assert best < float(begin.test_error[2])
    assert float(begin.test_mean[0]) == 0
    noisy = classification_dynamics(0.0, c, rho, start=0.5)
    assert float(noisy.test_error) == float(noisy.training_error) == 0.5
    assert float(noisy.test_variance) == pytest.approx(0.5, rel=1e-13)


def stacked_dynamics(parameters):
    time, gamma, strength, start, ridge = parameters
    return jnp.stack(classification_dynamics(time, gamma, strength, start=start, ridge=ridge))


compiled_dynamics = jax.jit(stacked_dynamics)
forward_slopes, backward_slopes = jax.jit(jax.jacfwd(stacked_dynamics)), jax.jit(jax.jacrev(stacked_dynamics))


@pytest.mark.parametrize("parameters", [(3.0, 0.5, 1.2, 0.1, 0.0), (3.0, 1.0, 1.0, 0.1, 0.3), (3.0, 1.0, 1.0, 0.1, 0.0),
                                        (2.0, 2.0, 0.7, 0.0, 0.2)])  # fmt: skip
def test_gradients_are_those_of_finite_differences(parameters):
    parameters = jnp.array(parameters)
    slopes, backward = forward_slopes(parameters), backward_slopes(parameters)
    assert np.all(np.isfinite(backward))
    np.testing.assert_allclose(slopes, backward, rtol=1e-9, atol=1e-12)
    for index in range(5):
        # One-sided where a parameter is at its lower end.
        h = 1e-4
        at = [compiled_dynamics(parameters.at[index].add(k * h)) for k in range(5)]
        forward = (-25 * at[0] + 48 * at[1] - 36 * at[2] + 16 * at[3] - 3 * at[4]) / (12 * h)
        np.testing.assert_allclose(slopes[:, index], forward, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(
    ("parameters", "time", "error", "end"),
    [
        ((0.5, 1, 0.1, 0), 1.07413, 0.2289036970, 0.2818514308),
        ((1, 2, 0.1, 0), 0.79995, 0.1594908786, 0.5),
        ((2, 1, 0.5, 0), 1.61034, 0.3531070774, 0.3638617733),
        ((0.5, 1, 0.1, 0.5), 1.15899, 0.2210865525, 0.2286928232),
        ((4, 1, 1, 0.3), np.inf, 0.3452884839, 0.3452884839),
    ],
)
def test_best_times_to_stop(parameters, time, error, end):
    gamma, strength, start, ridge = parameters
    found = optimal_stopping(gamma, strength, start=start, ridge=ridge)
    assert found.time == pytest.approx(time, abs=2e-5)
    assert [found.error, found.error_at_infinity] == pytest.approx([error, end], abs=1e-10)


def test_when_stopping_early_helps():
    for c, noise, interior in ((2, 5, True), (2, 20, False), (4, 0.3, True), (4, 1, False)):
        end = classification_at_infinity(c, 1, start=noise)
        # Without ridge and above c = 1 the criterion is V(∞) < 1/λ₋.
        assert (float(end.test_variance) < (1 - np.sqrt(c)) ** -2) == interior
        assert np.isfinite(optimal_stopping(c, 1, start=noise).time) == interior
    tiny = optimal_stopping(2, 1, start=20, ridge=0.5)
    assert 0 < tiny.error_at_infinity - tiny.error < 1e-10
    assert optimal_stopping(3, 0.5, start=10, ridge=1).time == np.inf
    without = optimal_stopping(0.5, 1.0)
    assert without.time == 0
    assert without.error == pytest.approx(stats.norm.sf(1 / np.sqrt(1.5)), rel=1e-13)


def test_bad_mixtures_are_refused():
    for changes in ({"times": -1.0}, {"gamma": 0.0}, {"strength": -1.0}, {"start": -0.1}, {"ridge": -1e-9},
                    {"gamma": np.inf}, {"ridge": np.nan}, {"times": np.nan}):  # fmt: skip
        arguments = {"times": 1.0, "gamma": 0.5, "strength": 1.0, "start": 0.1, "ridge": 0.0} | changes
        with pytest.raises(ParameterError, match=next(iter(changes))):
            classification_dynamics(**arguments)
        with pytest.raises(ParameterError, match=next(iter(changes))):
            classification_dynamics_by_contour(arguments.pop("times"), **arguments)
        if "times" not in changes:
            with pytest.raises(ParameterError, match=next(iter(changes))):
                optimal_stopping(**arguments)
    with pytest.raises(OutsideValidity, match="too late"):
        classification_dynamics(1e6, 1.0, 1.0)
    assert float(classification_dynamics(1e6, 0.5, 1.0).test_mean) == pytest.approx(0.5, rel=1e-12)
    for time in (1e6, np.inf):
        with pytest.raises(OutsideValidity, match="contour too close"):
            classification_dynamics_by_contour(time, 0.5, 1.0)


def test_filters():
    u = np.array([0.0, 1e-12, 1e-4, 0.01, 0.3, 1.0, 1.7])
    for t in (0.0, 0.5, 40.0):
        kept, learnt = flow_filter(t, u)
        np.testing.assert_allclose(kept, np.exp(-t * u), rtol=1e-14)
        with mpmath.workdps(40):
            expected = [float(-mpmath.expm1(-t * mpmath.mpf(v)) / v) if v else t for v in u]
        np.testing.assert_allclose(learnt, expected, rtol=1e-13)
    for k in (0, 1, 2, 7, 400):
        kept, learnt = descent_filter(1.0, k, u)
        with mpmath.workdps(40):
            power = [(1 - mpmath.mpf(v)) ** k for v in u]
            expected = [float((1 - f) / v) if v else k for f, v in zip(power, u, strict=True)]
        np.testing.assert_allclose(kept, [float(f) for f in power], rtol=1e-12)
        np.testing.assert_allclose(learnt, expected, rtol=1e-12)
    z = jnp.array([0.0, 1e-6, 9.99e-4, 1.001e-3, 0.5])
    with mpmath.workdps(40):
        slopes = [float(mpmath.diff(lambda s: -mpmath.expm1(-s) / s, float(v))) if v else -0.5 for v in z]
    np.testing.assert_allclose(jax.vmap(jax.grad(mean_decay))(z), slopes, rtol=1e-12)


@pytest.fixture(scope="module", params=[(12, 5), (5, 12)])
def regression(request):
    rng = np.random.default_rng(0)
    n, p = request.param
    return rng.normal(size=(n, p)), rng.normal(size=n), rng.normal(size=p)


@pytest.mark.parametrize("ridge", [0.0, 0.4])
def test_flow_on_given_data(regression, ridge):
    x, y, start = regression
    hessian, pull = x.T @ x / len(y) + ridge * np.eye(x.shape[1]), x.T @ y / len(y)
    times = np.array([0.0, 0.2, 3.0])
    found = gradient_flow.ridge_flow(x, y, ridge, times, start=start)
    for weights, t in zip(found, times, strict=True):
        # The flow of (w, 1) is linear: its exponential needs no eigenvectors and no inverse.
        generator = np.zeros((len(start) + 1,) * 2)
        generator[:-1, :-1], generator[:-1, -1] = -hessian, pull
        expected = (linalg.expm(t * generator) @ np.append(start, 1.0))[:-1]
        np.testing.assert_allclose(weights, expected, rtol=1e-10, atol=1e-12)
    finite = linear_training.ridge_flow(*map(jnp.asarray, (x, y, ridge, start, times)))
    np.testing.assert_allclose(found, finite, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("ridge", [0.0, 0.4])
def test_descent_on_given_data(regression, ridge):
    x, y, start = regression
    step = 1.9 / (np.linalg.norm(x, ord=2) ** 2 / len(y) + ridge)
    path = linear_training.ridge_descent(*map(jnp.asarray, (x, y, ridge, start, step)), marks=np.arange(31))
    found = gradient_flow.ridge_descent(x, y, ridge, step, np.arange(31), start=start)
    np.testing.assert_allclose(found, path, rtol=1e-10, atol=1e-12)
    with pytest.raises(OutsideValidity, match="diverges"):
        gradient_flow.ridge_descent(x, y, ridge, step * 2 / 1.9 * 1.0000001, 3, start=start)


def test_flow_on_data_of_one_feature():
    found = gradient_flow.ridge_flow([[1.0], [2.0]], [1.0, 1.0], 0.5, 0.3, start=[1.0])
    assert float(found[0]) == pytest.approx(0.7032848299, abs=1e-10)
    slope = jax.grad(lambda t: gradient_flow.ridge_flow([[1.0], [2.0]], [1.0, 1.0], 0.5, t, start=[1.0])[0])(0.3)
    # dw/dt = −(Aw − b) with A = 3, b = 3/2
    assert float(slope) == pytest.approx(1.5 - 3 * float(found[0]), rel=1e-12)


def test_bad_regressions_are_refused():
    x, y = np.ones((3, 2)), np.ones(3)
    for arguments, word in (
        ((x, y, -1.0, 1.0), "ridge"),
        ((x, y, 0.0, -1.0), "time"),
        ((x, y, 0.0, np.nan), "time"),
        ((x, y[:2], 0.0, 1.0), "y has shape"),
        ((x[0], y, 0.0, 1.0), "x has shape"),
        ((x * np.nan, y, 0.0, 1.0), r"x\[0, 0\] = nan"),
    ):
        with pytest.raises(ParameterError, match=word):
            gradient_flow.ridge_flow(*arguments)
    with pytest.raises(ParameterError, match="start"):
        gradient_flow.ridge_flow(x, y, 0.0, 1.0, start=np.ones(3))
    with pytest.raises(ParameterError, match="steps"):
        gradient_flow.ridge_descent(x, y, 0.0, 0.1, 1.5)
    with pytest.raises(ParameterError, match="gamma"):
        gradient_flow.early_stopped_risk(1.0, 0.0, 1.0, 1.0)
    with pytest.raises(ParameterError, match="noise_variance"):
        gradient_flow.early_stopped_risk(1.0, 1.0, 1.0, -1.0)
    with pytest.raises(OutsideValidity, match="diverges"):
        gradient_flow.early_stopped_descent_risk(0.5, 3, 1.0, 1.0, 1.0)
    with pytest.raises(OutsideValidity, match="too late"):
        gradient_flow.early_stopped_risk(1e6, 1.0, 1.0, 1.0)


@pytest.mark.parametrize(
    ("gamma", "time", "bias", "variance"),
    [(1.5, 1.3, 0.45491440638787, 0.38919782461419), (0.5, 2.0, 0.13031336615983, 0.32178868527366)],
)
def test_early_stopped_risk_values(gamma, time, bias, variance):
    found = gradient_flow.early_stopped_risk(time, gamma, 1.0, 1.0)
    assert [float(found.bias), float(found.variance)] == pytest.approx([bias, variance], rel=1e-13)


def test_early_stopped_risk_between_its_ends():
    for gamma in (0.3, 1.0, 2.0):
        ends = gradient_flow.early_stopped_risk([0.0, np.inf], gamma, 2.0, 0.5)
        limit = ridgeless.ridgeless_risk(gamma, 2.0, 0.5)
        assert float(ends.bias[0]) == pytest.approx(2.0, rel=1e-13)
        assert float(ends.variance[0]) == 0
        assert float(ends.total[1]) == float(limit.total)
    late = gradient_flow.early_stopped_risk(1e3, 2.0, 2.0, 0.5)
    assert float(late.total) == pytest.approx(float(ridgeless.ridgeless_risk(2.0, 2.0, 0.5).total), rel=1e-12)
    small = gradient_flow.early_stopped_descent_risk(1e-4, 13_000, 1.5, 1.0, 1.0)
    assert [float(small.bias), float(small.variance)] == pytest.approx([0.45491440638787, 0.38919782461419], rel=1e-3)
    slopes = jax.jacfwd(lambda q: jnp.stack(gradient_flow.early_stopped_risk(*q)[:2]))(jnp.array([1.3, 1.0, 1.0, 1.0]))
    assert np.all(np.isfinite(slopes))


@pytest.mark.parametrize("shape", [(30, 12), (12, 30)])
def test_early_stopping_is_almost_ridge_regression(shape):
    """Given any X and isotropic test points: B_flow ≤ B_ridge and R_flow ≤ 1.686 R_ridge at λ = 1/t."""
    x = np.random.default_rng(1).normal(size=shape)
    n, p = shape
    beta = jnp.ones(p) / np.sqrt(p)
    at, worst = gradient_flow.worst_flow_to_ridge()
    assert [at, worst] == pytest.approx([1.7932821, 1.6859091], abs=1e-7)
    assert float(gradient_flow.flow_to_ridge_ratio(at * 1.01).variance) < worst
    for t in (0.1, 1.0, 10.0):
        solved = np.linalg.solve(x.T @ x / n + np.eye(p) / t, x.T / n)
        ridge = np.array([np.sum((solved @ (x @ beta) - beta) ** 2), np.sum(solved**2)])
        flow = np.array(linear_training.flow_risk(jnp.asarray(x), beta, jnp.ones(()), jnp.array([t])))[:, 0]
        assert flow[0] <= ridge[0] * (1 + 1e-12)
        assert flow[1] <= worst * ridge[1]
        # Mode by mode the ratios are those stated.
        values = np.linalg.eigvalsh(x.T @ x / n).clip(0)
        ratios = gradient_flow.flow_to_ridge_ratio(values * t)
        assert flow[1] == pytest.approx(float(np.sum(ratios.variance * values / (values + 1 / t) ** 2)) / n, rel=1e-11)
