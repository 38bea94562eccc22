"""Fixed points, noise floor, plateaus, fluctuations, escape and regimes of the overlap equations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from deeplimits.errors import NotConverged, OutsideValidity, ParameterError
from deeplimits.models.activations import activation
from deeplimits.models.committees import Overlaps, Task
from deeplimits.theory.two_layer import laziness
from deeplimits.theory.two_layer.overlaps import (
    covariance_flow,
    critical_learning_rate,
    equations,
    escape,
    first_time,
    fixed_points,
    noise_floor,
    regimes,
    specialization_time,
    stationary_covariance,
    symmetric_plateau,
)
from deeplimits.theory.two_layer.overlaps.plateau import plateau_length


def test_critical_learning_rates():
    values = [float(critical_learning_rate(Task(np.eye(p)))) for p in (1, 2, 3)]
    assert np.abs(np.array(values) - [4.055778675974, 9.227310784333, 14.586070554847]).max() < 1e-11
    # Linear: 2; quadratic: 2 E σ'²/E σ'⁴ = 2·4/(16·3)
    assert abs(float(critical_learning_rate(Task(np.eye(1), activation="identity"))) - 2) < 1e-13
    assert abs(float(critical_learning_rate(Task(np.eye(1), activation="square"))) - 1 / 6) < 1e-13
    with pytest.raises(OutsideValidity, match="2 identity units is degenerate"):
        critical_learning_rate(Task(np.eye(2), activation="identity"))


def test_critical_rate_is_where_the_jacobian_changes_sign():
    perfect = Overlaps(np.eye(2), np.eye(2))
    critical = float(critical_learning_rate(Task(np.eye(2))))
    leading = []
    for factor in (1 - 1e-6, 1 + 1e-6):
        task = Task(np.eye(2), critical * factor)
        found = jax.jit(lambda state, task=task: fixed_points.jacobian(task, state))(perfect)
        leading.append(np.linalg.eigvals(np.asarray(found)).real.max())
    assert leading[0] < 0 < leading[1]


def test_noise_floor():
    assert abs(float(noise_floor(Task(np.eye(1), 0.5, 1.0))) - 0.052404554700) < 1e-12
    assert abs(float(noise_floor(Task(np.eye(2), 1.0, 1.0))) - 0.051487144712) < 1e-12
    # γ → 0 in any width, and the exact fixed point at small noise.
    assert abs(float(noise_floor(Task(np.eye(3), 1e-6, 1.0))) / (1e-6 / (2 * np.sqrt(3) * np.pi * 3)) - 1) < 1e-6
    task = Task(np.eye(2), 1.0, 1e-3)
    point = fixed_points.fixed_point(task, Overlaps(np.eye(2), np.eye(2)))
    assert abs(point.risk / float(noise_floor(task)) - 1) < 3e-5
    assert point.stable
    with pytest.raises(OutsideValidity, match=r"γ_c = 4\.05578"):
        noise_floor(Task(np.eye(1), 5.0, 0.1**0.5))


def test_fixed_point_with_noise():
    point = fixed_points.fixed_point(Task(np.eye(1), 1.0, 0.1**0.5), Overlaps([[1.0]], [[1.0]]))
    assert abs(float(point.state.m[0, 0]) - 1.103514366420) < 1e-11
    assert abs(float(point.state.q[0, 0]) - 1.287116874710) < 1e-11
    assert point.residual < 1e-13
    with pytest.raises(NotConverged, match="start closer"):
        fixed_points.fixed_point(Task(np.eye(1), 1.0, 0.1**0.5), Overlaps([[0.1]], [[1.0]]), iterations=1)


@pytest.mark.parametrize(
    ("units", "risk", "rate"), [(2, 0.002902710078, 0.032874903683), (3, 0.002255176517, 0.015372625979)]
)
def test_symmetric_plateau(units, risk, rate):
    plateau = symmetric_plateau(units)
    assert abs(plateau.risk - risk) < 1e-12
    assert abs(plateau.escape_rate - rate) < 1e-12
    task = Task(np.eye(units))
    found = jax.jit(lambda state: fixed_points.jacobian(task, state, variance=False))(plateau.state)
    assert abs(np.linalg.eigvals(np.asarray(found)).real.max() - rate) < 1e-9
    assert abs(float(equations.risk(task, plateau.state)) - risk) < 1e-12
    assert abs(symmetric_plateau(5).risk - 0.001449052904) < 1e-12
    with pytest.raises(ParameterError, match="at least 2"):
        symmetric_plateau(1)


def test_the_plateau_ends_when_the_escape_rate_says():
    """Ten times less asymmetry delays specialization by ln(10)/λ, for a small learning rate."""
    plateau = symmetric_plateau(2)
    times = []
    for asymmetry in (1e-3, 1e-4):
        centred = asymmetry * (np.eye(2) - 0.5)
        start = Overlaps(plateau.state.m + centred, plateau.state.q + centred)
        times.append(specialization_time(Task(np.eye(2), 1e-3), start, latest=2000.0).time)
    assert abs((times[1] - times[0]) * plateau.escape_rate / np.log(10) - 1) < 1e-2
    assert abs(plateau_length(2, 1e-4) - plateau_length(2, 1e-3) - np.log(10) / plateau.escape_rate) < 1e-9


def test_fluctuations():
    found = covariance_flow(Task(np.eye(1), 1.0, 0.1**0.5), Overlaps([[0.3]], [[0.8]]), [3.0])
    assert np.abs(found.mean[0] - np.array([0.769976139626, 0.833342125108])).max() < 1e-9
    expected = [[0.110550051, 0.134975798], [0.134975798, 0.256018911]]
    assert np.abs(found.covariance[0] - np.array(expected)).max() < 2e-9
    linear = covariance_flow(Task(np.eye(1), 0.4, 0.3**0.5, "identity"), Overlaps([[0.2]], [[0.7]]), [1.5]).covariance[
        0
    ]
    assert np.abs(linear - np.array([[0.351311345, 0.546538265], [0.546538265, 0.979433444]])).max() < 2e-9
    with pytest.raises(OutsideValidity, match="needs a smooth activation"):
        covariance_flow(Task(np.eye(1), activation="relu"), Overlaps([[0.3]], [[0.8]]), [3.0])
    with pytest.raises(OutsideValidity, match="p \\+ k = 41"):
        covariance_flow(Task(np.eye(20)), Overlaps(np.zeros((21, 20)), np.eye(21)), [1.0])


def test_stationary_fluctuations():
    point, sigma = stationary_covariance(Task(np.eye(1), 1.0, 0.1**0.5), Overlaps([[1.0]], [[1.0]]))
    assert np.abs(sigma - np.array([[0.061890957, 0.135194375], [0.135194375, 0.304952287]])).max() < 2e-9
    assert np.abs(np.sort(-point.rates.real) - np.array([0.0964865, 0.4817909])).max() < 1e-7


@pytest.mark.slow
def test_fluctuations_of_both_layers():
    task = Task([[1.2]], 1.5, 0.1**0.5, teacher_output=[1.3], output_rate=0.8)
    start = Overlaps([[0.3], [-0.1]], [[0.8, 0.15], [0.15, 0.6]], [1.0, 0.7])
    found = covariance_flow(task, start, [1.5])
    expected = (0.234579, 0.136084, 0.436885, 0.276194, 0.147561, 0.110758, 0.088508)
    assert np.abs(np.diag(found.covariance[0]) - np.array(expected)).max() < 1e-6
    assert abs(float(found.covariance[0, 0, 5]) - 0.078601) < 1e-6


def test_escape_from_mediocrity():
    assert abs(float(escape.mediocrity(0.05).norm) - 0.381575773735) < 1e-12
    assert float(escape.discriminant(0.1801)) > 0 > float(escape.discriminant(0.1803))
    # Gradient flow from the plateau: times to M = 1/2, and the constant of the escape law behind them.
    task = Task(np.eye(1), 0.0, activation="square")
    times = [
        first_time(task, Overlaps([[m]], [[1 / 3]]), lambda state: 0.5 - state.m[0, 0], 10.0).time
        for m in (1e-2, 1e-3, 1e-4)
    ]
    assert np.abs(np.array(times) - [1.013928938, 1.589611909, 2.165258553]).max() < 1e-8
    law = escape.escape_time(0.0, 0.0, 1.0, 0.5)
    deterministic = (float(law.centre) + 0.5 * np.log(1 / 3) - np.log(1e-4)) / float(law.growth)
    assert abs(deterministic - times[2]) < 1e-6
    with pytest.raises(OutsideValidity, match="norm diverges"):
        escape.mediocrity(0.2)


def test_escape_equations_are_the_overlap_equations():
    task = Task([[1.3]], 0.07, 0.2**0.5, "square")
    state = Overlaps([[0.4]], [[0.6]])
    p, m, q, g, delta = 1.3, 0.4, 0.6, 0.07, 0.2
    moved = equations.velocity(task, state)
    dq = 4 * (p * q + 2 * m**2 - 3 * q**2) + 4 * g * (
        3 * p**2 * q + 12 * p * m**2 - 6 * p * q**2 - 24 * q * m**2 + 15 * q**3 + delta * q
    )
    assert abs(float(moved.m[0, 0]) - 6 * m * (p - q)) < 1e-13
    assert abs(float(moved.q[0, 0]) - dq) < 1e-12


def test_regimes():
    labels = [regimes.regime(*pair) for pair in ((0, 0.5), (0.3, -0.3), (0, -0.25), (0, -0.75), (0, -0.5))]
    assert labels == ["gradient-flow", "saad-solla", "variance-dominated", "no-ode", "no-ode"]
    assert regimes.regime(0.4, -0.8) == "variance-dominated"
    assert regimes.regime(0.4, -0.8, boundary="norm") == "no-ode"
    found = regimes.variance_flow(Task(np.eye(1)), Overlaps([[0.3]], [[0.8]]), [5.0])
    assert abs(float(found[0, 0, 0]) - 1.529066135826) < 1e-11
    with pytest.raises(ParameterError, match=r"width_exponent = .* at least 0"):
        regimes.regime(-0.1, 0.0)
    with pytest.raises(ParameterError, match="one of entrywise, norm"):
        regimes.regime(0.1, 0.0, boundary="other")


def test_laziness():
    tanh = activation("tanh")
    # a = 1, w = 0, x = y = 1: κ = 1/(αp) exactly
    assert abs(float(laziness.laziness_of_identical_neurons(tanh, 0.01, 30, 1.0, 0.0, 1.0, 1.0)) - 1 / 0.3) < 1e-12
    # p^{s−1}, but for the largest curvature of p neurons, which misses its supremum by O(p^{−2})
    wide = [float(laziness.expected_laziness(tanh, p, 0.5, 1.0)) for p in (100, 400, 1600)]
    missing = [wide[0] / wide[1] - 2, wide[1] / wide[2] - 2]
    assert abs(missing[0]) < 5e-4
    assert missing[0] / missing[1] == pytest.approx(16, rel=0.2)
    assert (
        abs(
            float(laziness.expected_laziness(tanh, 1e9, 1.0, 1.0) / laziness.expected_laziness(tanh, 1e7, 1.0, 1.0)) - 1
        )
        < 1e-9
    )
    with pytest.raises(ParameterError, match="must be positive"):
        laziness.laziness_of_identical_neurons(tanh, 0.0, 30, 1.0, 0.0, 1.0, 1.0)
    with pytest.raises(ParameterError, match="no second derivative"):
        laziness.expected_laziness(activation("relu"), jnp.asarray(10.0), 0.5, 1.0)
