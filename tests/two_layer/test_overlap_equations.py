"""The overlap equations and their solutions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from deeplimits.errors import NotConverged, ParameterError
from deeplimits.models.committees import Overlaps, Task
from deeplimits.theory.two_layer.overlaps import conventions, equations, events, integration

STATE = Overlaps([[0.3, 0.1], [0.05, 0.2]], [[0.5, 0.1], [0.1, 0.6]])


def reference_case():
    rng = np.random.default_rng(0)
    m = 0.1 * rng.standard_normal((4, 2))
    a = 0.15 * rng.standard_normal((4, 4))
    return Task(np.eye(2), step=4.0, noise=1e-3**0.5), Overlaps(m, m @ m.T + a @ a.T + 0.3 * np.eye(4))


def test_drift_reference():
    parts = equations.drift(Task(np.eye(2), noise=0.1, output_rate=1.0), STATE)
    assert (
        np.abs(parts.m - np.array([[0.120526356823, 0.124312075163], [0.108780673217, 0.128632558946]])).max() < 1e-12
    )
    flow = [[-0.078322653912, -0.142543687101], [-0.142543687101, -0.130799092987]]
    assert np.abs(parts.q_flow - np.array(flow)).max() < 1e-12
    variance = [[0.086472134083, 0.075737432106], [0.075737432106, 0.076759797054]]
    assert np.abs(parts.q_variance - np.array(variance)).max() < 1e-12
    assert np.abs(parts.a - np.array([-0.054934359924, -0.098357523834])).max() < 1e-12
    assert abs(float(equations.risk(Task(np.eye(2)), STATE)) - 0.09206603471354) < 1e-14


@pytest.mark.parametrize(
    "name", ["erf_saad", "erf", pytest.param("relu", marks=pytest.mark.slow), "square", "quadratic", "identity"]
)
def test_contractions_match_single_integrals(name):
    """The equations sum I₃ and I₄ without ever forming them."""
    task = Task(np.array([[1.0, 0.3], [0.3, 0.8]]), noise=0.02**0.5, activation=name, teacher_output=[1.0, -0.7])
    state = Overlaps(STATE.m, STATE.q, [1.0, 1.3])
    integrals, omega, v = (
        equations.moments(task),
        equations.covariance(task, state),
        equations.signed_outputs(task, state),
    )
    parts = equations.drift(task, state)
    a = np.asarray(state.a)
    i3 = jax.jit(integrals.i3, static_argnums=(1, 2, 3))
    i4 = jax.jit(integrals.i4, static_argnums=(1, 2, 3, 4))
    moved = sum(v[c] * i3(omega, 0, 3, c) for c in range(4)) * a[0]
    assert abs(float(moved - parts.m[0, 1])) < 1e-13
    index = jnp.array([[0, 1, c, d] for c in range(4) for d in range(4)])
    values = jax.vmap(lambda i: integrals._closed.i4(omega[i][:, i]))(index)
    total = (values.reshape(4, 4) @ v) @ v + task.noise_variance * integrals.j2(omega, 0, 1)
    assert abs(float(a[0] * a[1] * total - parts.q_variance[0, 1])) < 1e-13
    assert abs(float(i4(omega, 0, 1, 2, 3) - values[2 * 4 + 3])) < 1e-15


def test_published_trajectory():
    """Risk of the erf equations, k = 2, p = 4, at t = 1, 10, 100, 1000."""
    solution = integration.trajectory(*reference_case(), [1.0, 10.0, 100.0, 1000.0])
    published = np.array([0.0495110286184, 0.00423234697420, 0.00267044826438, 0.000121684880504])
    assert np.abs(np.asarray(solution.risk) / published - 1).max() < 1e-9
    assert int(solution.steps) < 600


def test_trajectories_of_both_layers():
    times = [1.0, 10.0, 100.0, 300.0]
    frozen = integration.trajectory(Task(np.eye(2), 1.0, 0.1), STATE, times)
    assert (
        np.abs(frozen.risk - np.array([0.047345538199, 0.004245409509, 0.001126596536, 0.000512656888])).max() < 2e-12
    )
    at_100 = [[0.855602557939, 0.091843126718], [0.082818592612, 0.840980236463]]
    assert np.abs(frozen.m[2] - np.array(at_100)).max() < 1e-10
    trained = integration.trajectory(Task(np.eye(2), 1.0, 0.1, output_rate=1.0), STATE, times)
    assert np.abs(trained.risk[1:3] - np.array([0.004232507411, 0.001191926487])).max() < 2e-12
    assert np.abs(trained.a[2] - np.array([0.992898408043, 0.904831500409])).max() < 1e-10
    # Batches of b divide the variance term by b, as dividing the learning rate would.
    batched = integration.trajectory(Task(np.eye(2), 1.0, 0.1, batch=4.0), STATE, times)
    slower = integration.trajectory(Task(np.eye(2), 0.25, 0.1), STATE, times)
    assert np.abs(batched.risk - slower.risk).max() < 1e-12


def test_gradient_flow_is_the_limit_of_small_rates():
    flow = integration.trajectory(Task(np.eye(2)), STATE, [1.0, 10.0, 100.0, 300.0], variance=False)
    assert np.abs(flow.risk[:3] - np.array([0.042815845701, 0.003267806728, 0.000533700711])).max() < 1e-12
    assert abs(float(flow.risk[3]) - 7.4565e-8) < 1e-11


def test_against_scipy_and_vmap():
    """The whole path against LSODA, for several starts at once."""
    task, start = reference_case()
    shifts = jnp.linspace(0.0, 0.05, 3)

    def final(shift):
        moved = Overlaps(start.m + shift, start.q + shift * jnp.eye(4))
        return integration.trajectory(task, moved, jnp.array([3.0, 20.0]), method="explicit").risk

    found = jax.jit(jax.vmap(final))(shifts)
    right_side = jax.jit(integration.packed_velocity(task, 4))
    for shift, risks in zip(np.asarray(shifts), np.asarray(found), strict=True):
        moved = Overlaps(start.m + shift, start.q + shift * np.eye(4))
        y0 = np.asarray(integration.pack(moved))
        path = solve_ivp(
            lambda t, y: np.asarray(right_side(t, y)), (0, 20), y0, "LSODA", [3.0, 20.0], rtol=1e-10, atol=1e-12
        )
        expected = [float(equations.risk(task, integration.unpack(jnp.asarray(y), 4, 2))) for y in path.y.T]
        assert np.abs(risks / np.array(expected) - 1).max() < 1e-7


def test_relu_trajectory():
    solution = integration.trajectory(Task(np.eye(1), 0.5, 0.05**0.5, "relu"), Overlaps([[0.1]], [[0.5]]), [2.0, 10.0])
    assert np.abs(solution.m.ravel() - np.array([0.546262494034, 0.989479128779])).max() < 1e-11
    assert np.abs(solution.q.ravel() - np.array([0.574637535453, 0.998337359232])).max() < 1e-11


def test_schedule_and_derivative():
    """Linear activation, where everything is known: ė = −(2 − γ(t))e + γ(t)Δ."""
    task = Task(np.eye(1), 0.4, 0.3**0.5, "identity", schedule=lambda t: 1 / (1 + t))
    solution = integration.trajectory(task, Overlaps([[0.2]], [[0.7]]), [1.5])
    rate = lambda t: 0.4 / (1 + t)  # noqa: E731
    path = solve_ivp(lambda t, e: -(2 - rate(t)) * e + rate(t) * 0.3, (0, 1.5), [1.3], rtol=1e-11, atol=1e-13)
    assert abs(2 * float(solution.risk[0]) - path.y[0, -1]) < 1e-9

    def risk(noise):
        return integration.trajectory(
            Task(np.eye(1), 0.4, noise, "identity"), Overlaps([[0.2]], [[0.7]]), jnp.array([1.5]), method="explicit"
        ).risk[0]

    # R = e/2, and e is affine in Δ = noise²: slope γ(1 − e^{−(2−γ)t})/(2 − γ)
    noise = 0.3**0.5
    expected = 0.4 * (1 - np.exp(-1.6 * 1.5)) / 1.6 / 2 * 2 * noise
    assert abs(float(jax.grad(risk)(noise)) - expected) < 1e-8


def test_mean_step_at_finite_dimension():
    step = equations.mean_increment(Task(np.eye(1), 1.0, 0.1**0.5), Overlaps([[0.3]], [[0.8]]), 10)
    assert abs(float(step.m[0, 0]) - 0.025700990086) < 1e-12
    assert abs(float(step.q[0, 0]) + 0.004351153992) < 1e-12


def test_noise_of_a_sample():
    found = equations.squared_gradient(Task(np.eye(2), noise=0.1), STATE) / 4
    assert abs(float(found[0, 0]) - 0.021618033521) < 1e-12
    assert abs(float(found[1, 1]) - 0.019189949264) < 1e-12


@pytest.mark.slow
def test_a_million_units_of_time():
    """Through the plateau and along a nearly neutral direction, in a few hundred implicit steps."""
    solution = integration.trajectory(*reference_case(), [1.0, 1000.0, 1e6])
    assert abs(float(solution.risk[1]) / 0.000121684880504 - 1) < 1e-7
    assert int(solution.steps) < 2000
    drift = equations.velocity(reference_case()[0], Overlaps(solution.m[2], solution.q[2], solution.a[2]))
    assert float(jnp.abs(drift.q).max()) < 1e-8


def test_events():
    task = Task(np.eye(1), 0.4, activation="identity")
    half = events.first_time(task, Overlaps([[0.0]], [[0.5]]), lambda state: 0.5 - state.m[0, 0], latest=10.0)
    assert abs(half.time - np.log(2)) < 1e-9
    with pytest.raises(NotConverged, match=r"nothing happened before t = 0\.1"):
        events.first_time(task, Overlaps([[0.0]], [[0.5]]), lambda state: 0.5 - state.m[0, 0], latest=0.1)
    with pytest.raises(ParameterError, match="happened already"):
        events.first_time(task, Overlaps([[0.6]], [[0.5]]), lambda state: 0.5 - state.m[0, 0], latest=0.1)
    with pytest.raises(ParameterError, match="nothing to specialize"):
        events.specialization_time(task, Overlaps([[0.0]], [[0.5]]), 1.0)


def test_saad_solla_convention_is_the_same_motion():
    """Outputs p times larger, learning rate p² smaller: the same weights at the same number of samples."""
    task, state = Task(np.eye(2), 1.0, 0.1), STATE
    foreign = conventions.to_convention(task, state, "saad-solla")
    # In our own equations, outputs that are plain sums are a = p: then the learning rate is theirs.
    theirs = Task(np.eye(2), float(foreign.step), float(foreign.noise), teacher_output=[2.0, 2.0])
    times = np.array([1.0, 10.0, 100.0, 300.0])
    ours = integration.trajectory(task, state, times)
    alpha = times * float(foreign.time_unit)
    same = integration.trajectory(theirs, Overlaps(state.m, state.q, [2.0, 2.0]), alpha * float(foreign.step) / 2)
    assert np.abs(same.m - ours.m).max() < 1e-10
    assert np.abs(same.risk / ours.risk / float(foreign.risk_unit) - 1).max() < 1e-8


@pytest.mark.parametrize("name", list(conventions.CONVENTIONS))
def test_conventions_round_trip(name):
    ours, state = Task(np.eye(2), 3.0, 0.02**0.5), STATE
    foreign = conventions.to_convention(ours, state, name)
    back, same, _ = conventions.from_convention(
        name, foreign.step, state.m, state.q, ours.teacher, noise=foreign.noise,
        outputs=foreign.outputs, teacher_outputs=foreign.teacher_outputs,
    )  # fmt: skip
    assert abs(float(back.step) - 3.0) < 1e-14
    assert abs(float(back.noise_variance) - 0.02) < 1e-16
    assert np.abs(same.a - 1).max() < 1e-15
    assert abs(float(equations.risk(back, same) - equations.risk(ours, state))) < 1e-16


def test_bad_input():
    task = Task(np.eye(2))
    with pytest.raises(ParameterError, match="Omega is not positive semidefinite"):
        integration.trajectory(task, Overlaps([[1.0, 1.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]), [1.0])
    with pytest.raises(ParameterError, match="3 columns but the teacher has 2 units"):
        integration.trajectory(task, Overlaps(np.zeros((2, 3)), np.eye(2)), [1.0])
    with pytest.raises(ParameterError, match=r"they must be \(p, k\) and \(p, p\)"):
        Overlaps(np.zeros((2, 2)), np.eye(3))
    with pytest.raises(ParameterError, match=r"it must be \(2,\)"):
        Overlaps(np.zeros((2, 2)), np.eye(2), [1.0])
    for wrong in ({"step": -1.0}, {"noise": -0.1}, {"batch": 0.5}, {"output_rate": np.nan}):
        with pytest.raises(ParameterError, match=f"{next(iter(wrong))} = .* is not allowed"):
            Task(np.eye(2), **wrong)
    with pytest.raises(ParameterError, match="increasing"):
        integration.trajectory(task, STATE, [2.0, 1.0])
    with pytest.raises(ParameterError, match="one of auto, explicit, implicit"):
        integration.trajectory(task, STATE, [1.0], method="magic")
    with pytest.raises(NotConverged, match=r"γ = 0\.5"):
        integration.trajectory(Task(np.eye(1), 0.5, 0.0, "square"), Overlaps([[0.1]], [[1.0]]), [50.0])
    with pytest.raises(ParameterError, match=r"at least 2 \(there are 2 weight vectors\)"):
        equations.mean_increment(Task(np.eye(1)), Overlaps([[0.3]], [[0.8]]), 1)
    with pytest.raises(ParameterError, match="use goldt"):
        conventions.to_convention(Task(np.eye(2)), Overlaps(np.zeros((3, 2)), np.eye(3)), "saad-solla")
