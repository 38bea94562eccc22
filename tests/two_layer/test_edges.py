"""Two-layer networks at the edges: stiff equations, wide fields, batches, states that no weights have."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special
from scipy.integrate import solve_ivp

import deeplimits as dl
from agreement import agrees
from deeplimits.ensembles import committees, overlap_steps
from deeplimits.errors import DeeplimitsError, NotConverged, OutsideValidity, ParameterError
from deeplimits.models import activations
from deeplimits.models.committees import Overlaps, Task
from deeplimits.theory.gaussian import quadrature
from deeplimits.theory.two_layer import laziness
from deeplimits.theory.two_layer.mean_field import fokker_planck, incremental, solvable_flows
from deeplimits.theory.two_layer.mean_field.incremental import SingleIndex, incremental_learning
from deeplimits.theory.two_layer.overlaps import equations, escape, fluctuations, integration, plateau
from deeplimits.theory.two_layer.overlaps.integrals import activation_integrals

TWO = Overlaps([[0.3, 0.1], [0.05, 0.2]], [[0.5, 0.1], [0.1, 0.6]])


@pytest.mark.parametrize("epsilon", [1e-10])
def test_incremental_learning_with_a_fast_second_layer(epsilon):
    """Against LSODA, from its own right-hand side; ε below 1e-7 did not end."""
    phi, sigma = np.array([0.5, 1.0, 0.8]), np.array([0.7, 1.0, 0.6])
    a, degree = np.array([1.0, -0.4, 0.7, 0.2]), np.arange(3)

    def field(t, y):
        a, s = y[:4], y[4:]
        left = sigma * (phi - sigma * ((s ** degree[:, None]) @ a / 4))
        slopes = np.stack([0 * s, 1 + 0 * s, 2 * s])
        return np.concatenate([left @ (s ** degree[:, None]) / epsilon, a * (1 - s**2) * (left @ slopes)])

    exact = solve_ivp(field, (0, 0.05), np.concatenate([a, 0 * a]), method="LSODA", rtol=1e-10, atol=1e-12)
    found = incremental_learning(SingleIndex(phi, sigma, epsilon), a, [0.05])
    left = phi - sigma * ((exact.y[4:, -1] ** degree[:, None]) @ exact.y[:4, -1] / 4)
    np.testing.assert_allclose(found.residuals[0], left, atol=2e-7)


@pytest.mark.parametrize("rate", [1e6])
def test_output_rates_as_large_as_the_dimension(rate):
    """ρ_a = d gives both layers one rate; 1e5 and more ended without an answer."""
    task = Task(teacher=np.eye(2), step=0.5, output_rate=rate)
    found = integration.trajectory(task, TWO, [2.0])
    field = jax.jit(integration.packed_velocity(task, 2))
    slope = jax.jit(jax.jacfwd(lambda y: field(0.0, y)))
    exact = solve_ivp(
        lambda t, y: np.asarray(field(t, y)), (0, 2.0), np.asarray(integration.pack(TWO)), method="Radau",
        jac=lambda t, y: np.asarray(slope(y)), rtol=1e-10, atol=1e-12,
    )  # fmt: skip
    last = integration.unpack(jnp.asarray(exact.y[:, -1]), 2, 2)
    np.testing.assert_allclose(found.q[0], last.q, atol=1e-7)
    assert int(found.steps) < 500


def test_density_flow_on_many_points():
    """2001 points: twenty-five times closer to the Gaussian law than 401, as the square of the spacing says."""
    c, ridge, beta = 2.0, 0.5, 10.0
    law = solvable_flows.noisy_linear_neuron(solvable_flows.Gaussian(jnp.zeros(()), jnp.ones(())), 0.7, c, ridge, beta)
    misses = []
    for count in (401, 2001):
        grid = np.linspace(-6, 6, count)
        problem = fokker_planck.interaction(grid, -c * grid, np.outer(grid, grid), c**2 / 2, ridge, beta)
        start = np.exp(-(grid**2) / 2) / np.sqrt(2 * np.pi)
        density = np.asarray(fokker_planck.density_flow(problem, start, [0.35, 0.7]))[1]
        h = grid[1] - grid[0]
        assert abs(h * density.sum() - h * start.sum()) < 1e-10
        mean = h * density @ grid
        misses.append([mean - float(law.mean), h * density @ grid**2 - mean**2 - float(law.variance)])
    coarse, fine = np.abs(misses)
    assert np.all(fine < 1e-4)
    assert coarse[1] / fine[1] == pytest.approx(25, rel=0.05)


def test_both_methods_for_densities_agree(monkeypatch):
    grid = np.linspace(-5, 6, 121)
    problem = fokker_planck.interaction(grid, np.cos(grid), np.cos(np.subtract.outer(grid, grid)), 1.0, 0.3, 2.0)
    start = np.exp(-((grid + 1) ** 2)) / np.sqrt(np.pi)
    factored = np.asarray(fokker_planck.density_flow(problem, start, [0.3, 2.0]))
    monkeypatch.setattr(fokker_planck, "MANY", 50)
    frozen = np.asarray(fokker_planck.density_flow(problem, start, [0.3, 2.0]))
    np.testing.assert_allclose(frozen, factored, atol=3e-8)


@pytest.mark.parametrize("variance", [1.0, 4.0, 100.0, 1e4])
def test_wide_fields_are_right_or_refused(variance):
    """J₂ of tanh at variance 1e4 was 1.59e-3 for 6.7e-5, and I₄ at 100 79 % off, without a word."""
    c = variance * np.array([[1.0, 0.3, 0.2], [0.3, 1.0, -0.1], [0.2, -0.1, 1.0]])
    tanh = activation_integrals("tanh")
    exact = float(quadrature.expect_pair(jnp.tanh, jnp.tanh, c[0, 0], c[1, 1], c[0, 1]).value)
    if variance <= 100:
        assert float(tanh.i2(c, 0, 1)) == pytest.approx(exact, rel=1e-9)
    if variance <= 4:
        assert float(tanh.i4(c, 0, 1, 2, 2)) == pytest.approx(float(tanh.i4(c, 1, 0, 2, 2)), rel=1e-5)
    if variance > 100:
        with pytest.raises(NotConverged, match="too wide"):
            tanh.i2(c, 0, 1)
    if variance > 4:
        with pytest.raises(NotConverged, match="too wide"):
            tanh.i4(c, 0, 1, 2, 2)


@pytest.mark.parametrize(("activation", "norm"), [("tanh", 9.0), ("erf_saad", 25.0)])
def test_covariance_of_a_step_of_wide_fields(activation, norm):
    """With tanh it was off by 4 % at Q = 9, without a word."""
    value, slope = {
        "tanh": (np.tanh, lambda u: 1 / np.cosh(u) ** 2),
        "erf_saad": (lambda u: special.erf(u / 2**0.5), lambda u: (2 / np.pi) ** 0.5 * np.exp(-(u**2) / 2)),
    }[activation]
    x, y = np.meshgrid(*[np.linspace(-8, 8, 801)] * 2, indexing="ij")
    weight = np.exp(-(x**2 + y**2) / 2).ravel() / np.exp(-(x**2 + y**2) / 2).sum()
    own, other = norm**0.5 * x, 0.3 / norm**0.5 * x + (1 - 0.09 / norm) ** 0.5 * y
    drive = (value(other) - value(own)) * slope(own)
    step = np.stack([(drive * other).ravel(), (2 * drive * own + 0.5 * drive**2).ravel()])
    exact = (step * weight) @ step.T - np.outer(step @ weight, step @ weight)
    found = fluctuations.step_covariance(Task([[1.0]], 0.5, activation=activation), Overlaps([[0.3]], [[norm]]))
    np.testing.assert_allclose(found, exact, atol=1e-6 * exact.max())


def test_fluctuations_of_too_wide_fields_are_refused_compiled_or_not():
    """With tanh they were off by 20 % at Q = 25, with erf by 6 % at 100."""
    for activation, norm in (("tanh", 25.0), ("erf_saad", 100.0)):
        with pytest.raises(NotConverged, match="too wide"):
            fluctuations.step_covariance(Task([[1.0]], 0.5, activation=activation), Overlaps([[0.3]], [[norm]]))

    @eqx.filter_jit
    def along_a_path(norm):
        return fluctuations.covariance_flow(Task([[1.0]], 0.5), Overlaps([[0.3]], norm[None, None]), [0.1]).covariance

    with pytest.raises(RuntimeError, match="too wide"):
        along_a_path(jnp.asarray(200.0))


def test_batches_are_simulated():
    """Task(batch=16) drew one sample a step: the overlaps of the simulation were those of batch 1."""
    start = Overlaps([[0.2]], [[0.5]])

    def ends(task, dimension):
        network = committees.with_overlaps(task, start, dimension)

        def run(key):
            return committees.one_pass_sgd(key, task, network, jnp.array([2 * dimension])).record.q[0, 0, 0]

        return jax.jit(jax.vmap(run))(jax.random.split(jax.random.key(dimension), 200))

    tasks = [Task(teacher=[[1.0]], step=4.0, noise=0.5**0.5, batch=batch) for batch in (1, 16)]
    stated = [float(integration.trajectory(task, start, [8.0]).q[0, 0, 0]) for task in tasks]
    for task, own, other in zip(tasks, stated, stated[::-1], strict=True):
        draws = {dimension: ends(task, dimension) for dimension in (20, 40)}
        assert agrees(draws, own)
        assert not agrees(draws, other)
    with pytest.raises(ParameterError, match="one sample a step"):
        overlap_steps.overlap_chain(jax.random.key(0), Task(teacher=[[1.0]], batch=4), start, jnp.array([160]), 80)
    with pytest.raises(ParameterError, match=r"batch = 2\.5"):
        Task(teacher=[[1.0]], batch=2.5)


IMPOSSIBLE = Overlaps([[2.0]], [[0.5]])
ONE = Task(teacher=[[1.0]])


@pytest.mark.parametrize(
    "attempt",
    [
        lambda: equations.risk(ONE, IMPOSSIBLE),
        lambda: equations.drift(ONE, IMPOSSIBLE),
        lambda: equations.mean_increment(ONE, IMPOSSIBLE, 10),
        lambda: fluctuations.covariance_flow(ONE, IMPOSSIBLE, [1.0]),
        lambda: overlap_steps.overlap_chain(jax.random.key(0), ONE, IMPOSSIBLE, jnp.array([1]), 10),
        lambda: committees.with_overlaps(ONE, IMPOSSIBLE, 10),
    ],
)
def test_impossible_overlaps_are_refused(attempt):
    with pytest.raises(ParameterError, match="not positive semidefinite"):
        attempt()


def test_quadratic_neurons_from_a_tiny_start():
    """A* /(1 + (A*/A₀ − 1)e^{−12A*τ}); from 1e-10 it was off by 6e-5."""
    for size in (1e-10, 1e-30):
        found, _ = solvable_flows.quadratic_neurons([[size]], [[1.5]], [1.5])
        assert float(found[0, 0, 0]) == pytest.approx(1.5 / (1 + (1.5 / size - 1) * np.exp(-27.0)), rel=1e-7)


@pytest.mark.parametrize(
    ("attempt", "why"),
    [
        (lambda: escape.mediocrity(-0.1), "step"),
        (lambda: escape.mediocrity(np.nan), "step"),
        (lambda: escape.mediocrity(0.1, noise_variance=-1.0), "noise"),
        (lambda: escape.escape_time(0.05, 0.0, 1.0, 1.5), "level"),
        (lambda: solvable_flows.noisy_linear_neuron(solvable_flows.Gaussian(0.0, 1.0), -1.0, 2.0, 0.5, 10.0), "times"),
        (
            lambda: solvable_flows.noisy_linear_neuron(solvable_flows.Gaussian(0.0, -1.0), 1.0, 2.0, 0.5, 10.0),
            "variance",
        ),
        (
            lambda: incremental_learning(SingleIndex([1.0], [1.0], 0.1), [1.0], [1.0], s=[1.5]),
            "cosine",
        ),
        (
            lambda: incremental_learning(SingleIndex([1.0], [1.0], 0.1), [1.0], [1.0], weights=[2.0]),
            "sum",
        ),
        (
            lambda: incremental_learning(SingleIndex([np.nan], [1.0], 0.1), [1.0], [1.0]),
            "target",
        ),
        (lambda: incremental.incremental_time_scales(SingleIndex([1.0, 1.0], [1.0, 1.0], 5.0)), "epsilon"),
        (lambda: integration.trajectory(ONE, Overlaps([[0.1]], [[0.5]], [np.nan]), [1.0]), "a"),
        (lambda: plateau.symmetric_plateau(1), "units = 1"),
    ],
)
def test_what_is_refused(attempt, why):
    with pytest.raises(DeeplimitsError, match=why):
        attempt()


def test_names_and_counts_of_any_kind_are_welcome():
    assert plateau.symmetric_plateau(np.int64(3)).risk == plateau.symmetric_plateau(3).risk
    assert float(laziness.laziness_of_identical_neurons("tanh", 0.1, 20, 1.0, 0.0, 1.0, 1.0)) == pytest.approx(0.5)
    np.testing.assert_allclose(escape.mediocrity([0.05, 0.1]).norm, [0.381575773735, escape.mediocrity(0.1).norm])


@pytest.mark.parametrize("norm", [1e6, 1e12, 1e100])
def test_second_moments_of_gradients_of_large_students(norm):
    """P = 1, M = 0, Q large: E σ'²σ² etc. in closed form; from Q = 1e12 the tilted variance was noise, and Ψ NaN."""
    state = Overlaps([[0.0]], [[norm]])
    found = float(equations.squared_gradient(Task([[1.0]], noise=0.5), state)[0, 0])
    # Under the weight σ'² the student's variance is Q/(1 + 2Q); the teacher's stays 1: σ̂ = arcsin moments of each
    weight = (2 / np.pi) / np.sqrt(1 + 2 * norm)
    own = 2 / np.pi * np.arcsin(norm / (1 + 3 * norm))
    assert found == pytest.approx(weight * (own + 1 / 3 + 0.25), rel=1e-13)


def test_incremental_learning_of_neurons_that_start_close_and_part():
    """At these coefficients 40 Gauss-Hermite points were 1.8 % off; against even points and DOP853, an own field."""
    phi, sigma, epsilon = np.array([-4.869, -1.029, -4.498]), np.array([0.7, 1.0, 0.6]), 1.246
    a, degree = np.linspace(-8, 8, 300), np.arange(3)[:, None]
    weights = np.exp(-(a**2) / 2) / np.exp(-(a**2) / 2).sum()

    def left(y):
        return sigma * (phi - sigma * (y[300:] ** degree @ (weights * y[:300])))

    def field(t, y):
        a, s = y[:300], y[300:]
        slopes = np.stack([0 * s, 1 + 0 * s, 2 * s])
        return np.concatenate([left(y) @ s**degree / epsilon, a * (1 - s**2) * (left(y) @ slopes)])

    exact = solve_ivp(field, (0, 0.86), np.concatenate([a, 0 * a]), method="DOP853", rtol=1e-9, atol=1e-11).y[:, -1]
    limit = dl.limits.SingleIndexIncrementalLearning(
        constant=phi[0], linear=phi[1], quadratic=phi[2], epsilon=epsilon, times=[0.86]
    )
    stated = np.asarray(dl.predict(limit)["risk"].arrays()[""][1])
    assert float(stated[0]) == pytest.approx(np.sum((left(exact) / sigma) ** 2) / 2, rel=1e-5)


def test_half_of_the_fields_are_enough_for_odd_activations():
    """The same function, once not known to be odd."""
    erf = activations.activation("erf_saad")
    unknown = activations.from_function(erf.value, (), "erf again")
    state = Overlaps([[0.1], [0.2]], [[0.7, 0.1], [0.1, 0.6]], [0.5, 1.0])
    known, all_of_it = (
        fluctuations._one_step(Task([[0.7]], 0.8, 0.3, sigma, output_rate=0.7), state, 0.0) for sigma in (erf, unknown)
    )
    np.testing.assert_allclose(known, all_of_it, atol=1e-12 * float(jnp.abs(all_of_it).max()))


def test_covariance_of_a_step_of_many_neurons():
    """p + k = 6: against the definition, 200,000 inputs drawn; and along a flow, where D enters."""
    rng = np.random.default_rng(3)
    weights = rng.normal(size=(6, 6)) / 6**0.5
    full = weights @ weights.T
    p, gamma, noise = 4, 0.8, 0.3
    a, outer = np.array([1.0, -0.5, 0.8, 0.6]), np.array([1.0, 0.7])
    task = Task(full[p:, p:], gamma, noise, teacher_output=outer)
    state = Overlaps(full[:p, p:], full[:p, :p], a)
    lam = rng.normal(size=(200_000, 6)) @ np.linalg.cholesky(full).T
    sigma, slope = special.erf(lam / 2**0.5), (2 / np.pi) ** 0.5 * np.exp(-(lam**2) / 2)
    error = sigma[:, p:] @ outer / 2 - sigma[:, :p] @ a / p + noise * rng.normal(size=len(lam))
    drive = a * error[:, None] * slope[:, :p]
    i, j = np.triu_indices(p)
    parts = [(drive[:, :, None] * lam[:, None, p:]).reshape(len(lam), -1)]
    parts.append(drive[:, i] * lam[:, j] + drive[:, j] * lam[:, i] + gamma / p * drive[:, i] * drive[:, j])
    xi = np.concatenate(parts, axis=1)
    xi = xi - xi.mean(axis=0)
    exact = xi.T @ xi / len(xi)
    spread = np.sqrt(((xi**2).T @ xi**2 / len(xi) - exact**2) / len(xi))
    found = np.asarray(fluctuations.step_covariance(task, state))[: len(exact), : len(exact)]
    # 18 × 19/2 entries, and the quadrature's own thousandth of the largest
    assert np.all(np.abs(found - exact) < 5.5 * spread + 2e-3 * np.abs(exact).max())
    flow = fluctuations.covariance_flow(task, state, [1e-3])
    np.testing.assert_allclose(
        flow.covariance[0][: len(exact), : len(exact)] / 1e-3, found, atol=0.02 * np.abs(found).max()
    )
    with pytest.raises(OutsideValidity, match=r"169 overlaps.* offered up to 160 overlaps"):
        fluctuations.covariance_flow(Task(np.eye(6), 0.5), Overlaps(np.zeros((13, 6)), np.eye(13)), [1.0])
    with pytest.raises(OutsideValidity, match="up to 40"):
        fluctuations.step_covariance(Task(np.eye(1), 0.5), Overlaps(np.zeros((40, 1)), np.eye(40)))
