"""Mean-field flows: closed forms, reductions, conservation laws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.models.committees import Overlaps, Task
from deeplimits.theory.two_layer.mean_field import (
    Particles,
    Reduced,
    fokker_planck,
    incremental,
    initial_laws,
    particles,
    reduced_flow,
    solvable_flows,
    wasserstein_flow,
)
from deeplimits.theory.two_layer.overlaps import trajectory
from deeplimits.theory.two_layer.overlaps.integrals import activation_integrals


def test_relu_flow_and_its_invariant():
    start = Particles([[0.5, 0.5], [-0.3, 0.6]], [1.0, -0.5])
    flow = wasserstein_flow(start, [[1.0, 0.0]], [1.0], [1.0, 10.0], activation="relu")
    assert np.abs(flow.risk - np.array([0.083261940266, 0.001230597091])).max() < 1e-11
    assert np.abs(flow.a**2 - (flow.w**2).sum(-1) - np.array([[0.5, -0.2]])).max() < 1e-9
    risk = particles.risk(start, jnp.array([[1.0, 0.0]]), jnp.ones(1), activation_integrals("relu"))
    assert abs(float(risk) - 0.150800022219) < 1e-12


def test_risk_falls_by_the_dissipation():
    """dR/dτ = −∫|∇Ψ|²dρ, the left side by automatic differentiation along the velocity."""
    start = Particles([[0.5, 0.5], [-0.3, 0.6], [0.2, -0.9]], [1.0, -0.5, 0.3], [0.5, 0.3, 0.2])
    teacher, outputs, erf = jnp.array([[1.0, 0.0]]), jnp.ones(1), activation_integrals("erf_saad")
    w, a = particles.velocity(start, teacher, outputs, erf, True)
    _, slope = jax.jvp(
        lambda w, a: particles.risk(Particles(w, a, start.weights), teacher, outputs, erf), (start.w, start.a), (w, a)
    )
    assert abs(float(slope + particles.dissipation(start, teacher, outputs, "erf_saad"))) < 1e-14


def test_one_of_two_mirrored_particles_is_enough():
    half = Particles([[0.5, 0.4], [-0.3, 0.6]], [1.0, -0.5], [0.3, 0.7])
    both = np.concatenate([half.w, half.w.at[:, 1].multiply(-1.0)])
    whole = Particles(both, np.tile(half.a, 2), np.tile(half.weights, 2) / 2)
    one = wasserstein_flow(half, [[1.0, 0.0]], [1.5], [0.5, 2.0], mirror=1)
    two = wasserstein_flow(whole, [[1.0, 0.0]], [1.5], [0.5, 2.0])
    np.testing.assert_allclose(one.risk, two.risk, rtol=1e-9)
    np.testing.assert_allclose(one.w, two.w[:, :2], rtol=1e-8)
    for axis, teacher in ((2, [[1.0, 0.0]]), (0, [[1.0, 0.0]]), (-1, [[1.0, 0.0]])):
        with pytest.raises(ParameterError, match=f"mirror = {axis}"):
            wasserstein_flow(half, teacher, [1.5], [0.5], mirror=axis)


@pytest.mark.parametrize("activation", ["erf_saad", "erf"])
@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_integrals_between_neurons_are_those_of_their_covariance(activation, dimension):
    w = jnp.asarray(np.random.default_rng(0).standard_normal((6, dimension)) * np.geomspace(1e-3, 1e6, 6)[:, None])
    w = w.at[5].set(w[4] * (1 + 1e-9))
    integrals = activation_integrals(activation)
    for found, expected in zip(integrals.between(w, 4), integrals.pairs(w @ w.T, 4), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-15)


def test_quadratic_neurons_close():
    """The particle flow's second moment obeys the matrix equation, and its scalar case is logistic."""
    points, weights = initial_laws.gauss_hermite(3, 2)
    target = np.diag([1.0, 0.5])
    matrices, risks = solvable_flows.quadratic_neurons(0.3 * np.eye(2), target, [0.05, 0.2])
    start = Particles(np.sqrt(0.3) * points, None, weights)
    flow = wasserstein_flow(
        start, [[1.0, 0.0], [0.0, 1.0]], [1.0, 0.5], [0.05, 0.2], activation="square", train_outputs=False
    )
    moment = np.einsum("n,tni,tnj->tij", weights, flow.w, flow.w)
    assert np.abs(moment - np.asarray(matrices)).max() < 1e-8
    assert np.abs(np.asarray(flow.risk) - np.asarray(risks)).max() < 1e-8
    one, _ = solvable_flows.quadratic_neurons([[0.5]], [[2.0]], [0.05, 0.1])
    assert np.abs(one[:, 0, 0] - 2 / (1 + 3 * np.exp(-24 * np.array([0.05, 0.1])))).max() < 1e-9


def test_noisy_linear_neuron_as_a_density():
    """The one-dimensional equation against its closed form, its energy, and its stationary law."""
    grid, c, ridge, beta = np.linspace(-6, 6, 301), 2.0, 0.5, 10.0
    problem = fokker_planck.interaction(grid, -c * grid, np.outer(grid, grid), c**2 / 2, ridge, beta)
    start = np.exp(-(grid**2) / 2) / np.sqrt(2 * np.pi)
    densities = np.asarray(fokker_planck.density_flow(problem, start, [0.35, 0.7]))
    h = grid[1] - grid[0]
    law = solvable_flows.noisy_linear_neuron(solvable_flows.Gaussian(jnp.zeros(()), jnp.ones(())), 0.7, c, ridge, beta)
    assert abs(float(law.mean) - 0.866749667852) < 1e-12
    assert abs(float(law.variance) - 0.597268243033) < 1e-12
    mean = h * densities[1] @ grid
    # Second order in the spacing.
    assert abs(mean - float(law.mean)) < 2e-3
    assert abs(h * densities[1] @ grid**2 - mean**2 - float(law.variance)) < 5e-3
    assert np.abs(densities.sum(axis=1) / start.sum() - 1).max() < 1e-12
    assert densities.min() > -1e-12
    energies = [float(problem.free_energy(jnp.asarray(density))) for density in (start, *densities)]
    rest = fokker_planck.stationary_law(problem)
    assert energies[0] > energies[1] > energies[2] > rest.free_energy
    mean = h * np.asarray(rest.density) @ grid
    assert abs(mean - c / (1 + ridge)) < 1e-12
    assert abs(h * np.asarray(rest.density) @ grid**2 - mean**2 - 1 / (beta * ridge)) < 1e-12


def test_reduction_reference_values():
    flow = reduced_flow(Task(np.eye(1)), Reduced([[0.1]], [0.5]), [5.0, 50.0])
    assert np.abs(flow.m.ravel() - np.array([0.783657609510, 1.096144265043])).max() < 1e-9
    assert np.abs(flow.q.ravel() - np.array([0.325408262670, 0.204162008866])).max() < 1e-9
    assert abs(float(flow.risk[0]) - 0.008704071213) < 1e-11
    # The manifold of zero risk: m² = 1 + q.
    assert abs(float(flow.m[1, 0, 0] ** 2 - 1 - flow.q[1, 0])) < 3e-3
    four = reduced_flow(
        Task([[1.0, 0.2], [0.2, 1.0]]),
        Reduced([[0.3, 0.0], [0.0, 0.3], [-0.1, 0.2], [0.2, -0.1]], [0.5, 0.5, 0.8, 0.3]),
        [0.0, 5.0, 20.0],
    )
    assert np.abs(four.risk - np.array([0.066775903241, 0.004893049316, 0.001574665683])).max() < 1e-11


def test_the_full_equations_approach_the_reduction():
    """The gap between the full overlaps at p = 8 and 16 without variance term and (m, q) falls like 1/p."""
    task = Task(np.eye(1))
    m, q = np.array([[0.2], [-0.1]]), np.array([0.3, 0.7])
    limit = reduced_flow(task, Reduced(m, q), [3.0])
    gaps = []
    for p in (8, 16):
        wide = np.repeat(m, p // 2, axis=0)
        start = Overlaps(wide, wide @ wide.T + np.diag(np.repeat(q, p // 2)))
        full = trajectory(task, start, [3.0], variance=False)
        gaps.append(abs(float(full.m[0, 0, 0] - limit.m[0, 0, 0])))
    assert abs(gaps[0] / gaps[1] - 2) < 0.15


def test_reduction_by_quadrature_agrees():
    from dataclasses import replace

    from deeplimits.models.activations import activation
    from deeplimits.theory.two_layer.mean_field import reduction

    state = Reduced([[0.3], [-0.2]], [0.5, 0.8], [1.0, 0.7])
    known = reduction.velocity(Task(np.eye(1), output_rate=0.5), state)
    copied = reduction.velocity(
        Task(np.eye(1), output_rate=0.5, activation=replace(activation("erf_saad"), name="copy", scaled_from=None)),
        state,
    )
    for one, other in ((known.m, copied.m), (known.q, copied.q), (known.a, copied.a)):
        assert np.abs(one - other).max() < 1e-12


def test_incremental_learning():
    problem = incremental.SingleIndex([0.5, 1.0, 0.8], [0.7, 1.0, 0.6], 0.01)
    found = incremental.incremental_learning(problem, initial_laws.normal_quantiles(20), [0.02, 0.1, 0.3, 1.0, 3.0])
    expected = [0.815695813921, 0.621552546310, 0.097635454983, 0.023870586559, 0.007359162844]
    assert np.abs(found.risk - np.array(expected)).max() < 1e-9
    assert np.abs(found.s).max() <= 1
    # An independent solver on the same equations.
    weights = jnp.full(20, 0.05)
    right_side = jax.jit(lambda y: jnp.concatenate(incremental.velocity(problem, y[:20], y[20:], weights)))
    y0 = np.concatenate([initial_laws.normal_quantiles(20), np.zeros(20)])
    path = solve_ivp(lambda t, y: np.asarray(right_side(y)), (0, 0.3), y0, "LSODA", rtol=1e-9, atol=1e-11)
    left = incremental.residuals(problem, jnp.asarray(path.y[:20, -1]), jnp.asarray(path.y[20:, -1]), weights)
    assert abs(float(jnp.sum(left**2)) / 2 - expected[2]) < 1e-7
    scales = incremental.incremental_time_scales(problem)
    assert abs(scales[0] - 0.01 * np.log(2) / 0.49) < 1e-15
    assert abs(scales[1] - 0.1 * np.log(100) / 4) < 1e-15


def test_the_first_degree_takes_root_epsilon_times_a_logarithm():
    times = {}
    for epsilon in (1e-4, 1e-6):
        problem = incremental.SingleIndex([0.5, 1.0, 0.8], [0.7, 1.0, 0.6], epsilon)
        grid = np.linspace(2.9 if epsilon == 1e-4 else 4.1, 3.05 if epsilon == 1e-4 else 4.25, 16) * np.sqrt(epsilon)
        left = np.asarray(incremental.incremental_learning(problem, [1.0, -1.0] * 8, grid).residuals)[:, 1]
        times[epsilon] = np.interp(0.0, -(left - 0.5), grid) / np.sqrt(epsilon)
    slope = (times[1e-6] - times[1e-4]) / np.log(100)
    assert 0.24 < slope < 0.28


def test_bad_input():
    with pytest.raises(ParameterError, match="must have the dimension 2"):
        wasserstein_flow(Particles([[0.5, 0.5]]), [[1.0, 0.0, 0.0]], [1.0], [1.0])
    with pytest.raises(ParameterError, match=r"inverse_temperature = .* positive"):
        solvable_flows.check_temperature(0.5, 0.0)
    with pytest.raises(OutsideValidity, match="no normalizable stationary law"):
        solvable_flows.check_temperature(0.0, 1.0)
    with pytest.raises(ParameterError, match="teacher is singular"):
        reduced_flow(Task([[1.0, 1.0], [1.0, 1.0]]), Reduced([[0.1, 0.1]], [0.5]), [1.0])
    with pytest.raises(ParameterError, match=r"q\[0\] = .* positive"):
        reduced_flow(Task(np.eye(1)), Reduced([[0.1]], [0.0]), [1.0])
    with pytest.raises(ParameterError, match="it must be positive"):
        incremental.SingleIndex([1.0], [1.0], 0.0)
    with pytest.raises(ParameterError, match="as many Hermite"):
        incremental.SingleIndex([1.0, 2.0], [1.0], 0.1)
    with pytest.raises(ParameterError, match="grid is not uniform"):
        fokker_planck.interaction([0.0, 1.0, 3.0], np.zeros(3), np.eye(3), 0.0, 1.0, 1.0)
