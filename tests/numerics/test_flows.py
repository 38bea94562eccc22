"""The solver of differential equations, against scipy, diffrax, solutions in closed form and finite differences."""

from typing import Any

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy.integrate import solve_ivp

from deeplimits.errors import NotConverged, ParameterError
from deeplimits.numerics import flows


def predators(t, y, rate=1.5):
    return jnp.stack([rate * y[0] - y[0] * y[1], y[0] * y[1] - 3 * y[1]])


def van_der_pol(t, y):
    return jnp.stack([y[1], 1000 * (1 - y[0] ** 2) * y[1] - y[0]])


def robertson(t, y):
    slow = -0.04 * y[0] + 1e4 * y[1] * y[2]
    fast = 3e7 * y[1] ** 2
    return jnp.stack([slow, -slow - fast, fast])


def forced(t, y):
    """Depends on time, fast and slow: y' = −50(y − cos t), in closed form below."""
    return -50 * (y - jnp.cos(t))


def forced_solution(t):
    settled = (2500 * np.cos(t) + 50 * np.sin(t)) / 2501
    return settled - 2500 / 2501 * np.exp(-50 * t)


def scipy_solution(field, start, times, method):
    right = jax.jit(field)
    slope = jax.jit(jax.jacfwd(field, argnums=1))
    more: Any = {} if method == "DOP853" else {"jac": lambda t, y: np.asarray(slope(t, y))}
    found = solve_ivp(
        lambda t, y: np.asarray(right(t, y)),
        (0.0, times[-1]),
        start,
        method=method,
        t_eval=times,
        rtol=1e-12,
        atol=1e-14,
        **more,
    )
    assert found.success
    return found.y.T


@pytest.mark.parametrize("stiff", [False, True])
def test_nonlinear_equation_against_scipy_and_diffrax(stiff):
    start, times = jnp.ones(2), np.linspace(0.5, 10.0, 200)
    rtol = 1e-9 if stiff else 1e-11
    found = flows.solve(predators, start, times, rtol=rtol, atol=1e-3 * rtol, stiff=stiff)
    wanted = scipy_solution(predators, np.ones(2), times, "DOP853")
    # Errors of some hundred steps, in a system that triples those of its beginning
    np.testing.assert_allclose(found.states, wanted, rtol=50 * rtol)
    peer = diffrax.diffeqsolve(
        diffrax.ODETerm(lambda t, y, _: predators(t, y)),
        diffrax.Dopri8(),
        0.0,
        10.0,
        None,
        start,
        stepsize_controller=diffrax.PIDController(rtol=1e-12, atol=1e-14),
        max_steps=10_000,
    )
    assert peer.ys is not None
    np.testing.assert_allclose(found.states[-1], peer.ys[0], rtol=50 * rtol)


def test_a_stiff_oscillator():
    times = np.array([1.0, 500.0, 806.0, 1500.0])
    found = flows.solve(van_der_pol, jnp.array([2.0, 0.0]), times, rtol=1e-9, atol=1e-11, stiff=True)
    wanted = scipy_solution(van_der_pol, np.array([2.0, 0.0]), times, "Radau")
    np.testing.assert_allclose(found.states, wanted, rtol=1e-6)
    assert int(found.steps) < 1500


@pytest.mark.slow
def test_a_very_stiff_oscillator_through_its_jumps():
    """Van der Pol's equation in slow time with μ = 1e6: y₂' = μ[(1 − y₁²)y₂ − y₁], fast rates of several millions."""

    def field(t, y):
        return jnp.stack([y[1], 1e6 * ((1 - y[0] ** 2) * y[1] - y[0])])

    times = np.array([0.5, 1.0, 1.5, 2.0])
    found = flows.solve(field, jnp.array([2.0, -0.66]), times, rtol=1e-9, atol=1e-11, stiff=True)
    wanted = scipy_solution(field, np.array([2.0, -0.66]), times, "Radau")
    np.testing.assert_allclose(found.states, wanted, rtol=2e-6)
    assert int(found.steps) < 3000


def test_a_gradient_through_a_stiff_reaction():
    """Backwards through Robertson's reaction, by its slowest rate; against differences of scipy's Radau."""

    def share(rate, solve):
        def field(t, y):
            slow = -rate * y[0] + 1e4 * y[1] * y[2]
            fast = 3e7 * y[1] ** 2
            return jnp.stack([slow, -slow - fast, fast])

        return solve(field)[-1, 0]

    times, start = np.array([40.0]), np.eye(3)[0]

    def here(field):
        return flows.solve(field, jnp.asarray(start), times, rtol=1e-10, atol=1e-14, stiff=True, most_steps=2000).states

    def there(field):
        return scipy_solution(field, start, times, "Radau")

    found = jax.jit(jax.grad(lambda rate: share(rate, here)))(0.04)
    near, far = (share(0.04 + h, there) - share(0.04 - h, there) for h in (1e-3, 2e-3))
    assert float(found) == pytest.approx((8 * near - far) / 12e-3, rel=1e-5)


def test_a_chemical_reaction_over_eleven_orders_of_time():
    times = np.array([0.4, 4e3, 4e7])
    found = flows.solve(robertson, jnp.array([1.0, 0.0, 0.0]), times, rtol=1e-9, atol=1e-14, stiff=True)
    wanted = scipy_solution(robertson, np.array([1.0, 0.0, 0.0]), times, "Radau")
    np.testing.assert_allclose(found.states, wanted, rtol=1e-6)
    # The sum is preserved to rounding, whatever the tolerance.
    np.testing.assert_allclose(found.states.sum(axis=1), 1.0, atol=1e-11)
    assert int(found.steps) < 1000


@pytest.mark.parametrize("stiff", [False, True])
def test_fields_that_depend_on_time(stiff):
    times = np.linspace(0.01, 3.0, 50)
    found = flows.solve(forced, jnp.zeros(()), times, rtol=1e-10, atol=1e-12, stiff=stiff)
    np.testing.assert_allclose(found.states, forced_solution(times), atol=5e-10)


def test_a_long_oscillation():
    times = np.array([100.0, 1000.0])
    found = flows.solve(lambda t, y: jnp.stack([y[1], -y[0]]), jnp.array([0.0, 1.0]), times, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(found.states, np.stack([np.sin(times), np.cos(times)], 1), atol=1e-9)


def test_trees_and_time_zero():
    start = {"a": jnp.ones((2, 3)), "b": (jnp.zeros(()), jnp.full(2, 2.0))}

    def field(t, y):
        return {"a": -y["a"], "b": (jnp.cos(t), -2 * y["b"][1])}

    times = np.array([0.0, 0.3, 2.0])
    found = flows.solve(field, start, times)
    np.testing.assert_allclose(found.states["a"], np.exp(-times)[:, None, None] * np.ones((2, 3)), rtol=1e-9)
    np.testing.assert_allclose(found.states["b"][0], np.sin(times), atol=1e-9)
    np.testing.assert_allclose(found.states["b"][1], 2 * np.exp(-2 * times)[:, None] * np.ones(2), rtol=1e-9)
    assert np.array_equal(found.states["a"][0], np.ones((2, 3)))
    assert np.array_equal(flows.solve(field, start, [0.0]).states["b"][1], [[2.0, 2.0]])


def test_times_cost_steps_but_no_digits():
    """Two thousand times, most of them inside what would be one step."""
    times = np.linspace(0.0, 1.0, 2001)
    found = flows.solve(lambda t, y: -y, jnp.ones(()), times, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(found.states, np.exp(-times), rtol=1e-12)


def test_a_million_times():
    """Dense output: the solution takes its own steps, and no digit is lost between them."""
    times = np.linspace(0.0, 10.0, 1_000_000)
    found = flows.solve(lambda t, y: jnp.stack([y[1], -y[0]]), jnp.array([0.0, 1.0]), times, dense=True, most_steps=500)
    np.testing.assert_allclose(found.states, np.stack([np.sin(times), np.cos(times)], 1), atol=3e-10)
    assert int(found.steps) < 50


@pytest.mark.parametrize("stiff", [False, True])
def test_dense_output_is_as_accurate_as_steps_that_end_there(stiff):
    rates = jnp.array([1e6, 1.0]) if stiff else jnp.array([3.0, 1.0])

    def solve(scale, times, dense):
        return flows.solve(
            lambda t, y: -scale * rates * (y - jnp.cos(t)), jnp.ones(2), times, stiff=stiff, rtol=1e-10, atol=1e-12,
            dense=dense, forwards=True, most_steps=2000,
        )  # fmt: skip

    run = jax.jit(solve, static_argnums=2)
    times = jnp.asarray(np.concatenate([[0.0], np.geomspace(1e-7, 5.0, 300)]))
    dense, ending = run(1.0, times, True), run(1.0, times, False)
    np.testing.assert_allclose(dense.states, ending.states, atol=2e-9)
    assert np.array_equal(dense.states[0], [1.0, 1.0])
    assert int(dense.steps) < 0.5 * int(ending.steps)
    # dy/ds against differences of order four
    _, slopes = jax.jit(lambda scale: jax.jvp(lambda s: solve(s, times, True).states, (scale,), (1.0,)))(1.0)
    near, far = (run(1 + h, times, False).states - run(1 - h, times, False).states for h in (1e-3, 2e-3))
    np.testing.assert_allclose(slopes[100:], ((8 * near - far) / 12e-3)[100:], atol=2e-6)


def test_dense_output_that_ends_too_early():
    found = flows.solve(lambda t, y: y**2, jnp.ones(()), [0.0, 0.5, 2.0], dense=True, most_steps=300, throw=False)
    assert not bool(found.converged)
    np.testing.assert_allclose(found.states[:2], [1.0, 2.0], rtol=1e-9)
    assert np.isnan(found.states[2])
    with pytest.raises(NotConverged, match="it ends"):
        flows.solve(lambda t, y: y**2, jnp.ones(()), [0.5, 2.0], dense=True, most_steps=300, otherwise="it ends")


@pytest.mark.parametrize("stiff", [False, True])
def test_the_error_follows_the_tolerance(stiff):
    exact = scipy_solution(predators, np.ones(2), np.array([5.0]), "DOP853")[0]
    errors = []
    for rtol in (1e-5, 1e-7, 1e-9):
        found = flows.solve(predators, jnp.ones(2), [5.0], rtol=rtol, atol=rtol, stiff=stiff)
        errors.append(np.max(np.abs(found.states[0] - exact)))
    assert all(error < 30 * rtol for error, rtol in zip(errors, (1e-5, 1e-7, 1e-9), strict=True))
    assert errors[0] > errors[1] > errors[2]


def test_what_is_refused():
    for times in ([1.0, 0.5], [-1.0, 1.0], [np.inf], [0.5, 0.5]):
        with pytest.raises(ParameterError, match="times"):
            flows.solve(lambda t, y: -y, jnp.ones(()), times)
    for name, wrong in (("rtol", -1.0), ("atol", 0.0), ("most_steps", 0)):
        options: Any = {name: wrong}
        with pytest.raises(ParameterError, match=name):
            flows.solve(lambda t, y: -y, jnp.ones(()), [1.0], **options)
    with pytest.raises(ParameterError, match="steps = 1"):
        flows.fixed_steps(lambda t, y: -y, jnp.ones(()), [1.0, 2.0], 1)
    # Inside a program the times are not known before it runs.
    with pytest.raises(Exception, match="did not reach its end"):
        jax.block_until_ready(
            jax.jit(lambda times: flows.solve(lambda t, y: -y, jnp.ones(()), times).states)(jnp.array([1.0, 0.5]))
        )


def blow_up(start, stiff=False):
    """y' = y² ends at t = 1/y(0)."""
    return flows.solve(lambda t, y: y**2, start, [0.5, 2.0], stiff=stiff, otherwise="it blows up").states[-1]


@pytest.mark.parametrize("stiff", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_blow_up_is_told_in_every_way_of_calling(stiff):
    def end(start):
        return blow_up(start, stiff)

    with pytest.raises(NotConverged, match="it blows up"):
        end(jnp.ones(()))
    for call in (jax.jit(end), jax.grad(end), jax.jit(jax.grad(end))):
        with pytest.raises(Exception, match=r"\[NotConverged\] it blows up|it blows up"):
            jax.block_until_ready(call(jnp.ones(())))
        # The same program goes on working where there is a solution: y = y₀/(1 − y₀t)
        assert np.isfinite(call(jnp.asarray(0.25)))
    with pytest.raises(Exception, match="it blows up"):
        jax.block_until_ready(jax.vmap(end)(jnp.array([0.25, 1.0])))
    assert float(end(jnp.asarray(0.25))) == pytest.approx(0.5, rel=1e-9)


def test_an_unreached_end_that_is_left_to_the_caller():
    found = flows.solve(lambda t, y: y**2, jnp.ones(()), [0.5, 2.0], throw=False)
    assert not bool(found.converged)
    assert float(found.states[0]) == pytest.approx(2.0, rel=1e-9)
    assert np.isnan(found.states[1])
    few = flows.solve(predators, jnp.ones(2), [10.0], most_steps=20, throw=False)
    assert not bool(few.converged)
    assert int(few.steps) == 20
    # A field that is not a number ends the search for a step at once.
    with pytest.raises(NotConverged):
        flows.solve(lambda t, y: y * jnp.nan, jnp.ones(()), [1.0])


def functional(parameters, forwards=False, stiff=False):
    """A number that depends on all a solution can depend on."""
    rate, start, times = parameters
    found = flows.solve(
        lambda t, y: predators(t, y, rate), start, times, rtol=1e-11, atol=1e-13, stiff=stiff, forwards=forwards
    )
    return jnp.sum(found.states * jnp.arange(1.0, found.states.size + 1).reshape(found.states.shape))


PLACE = (jnp.asarray(1.5), jnp.array([1.0, 0.7]), jnp.array([0.0, 1.0, 2.5]))


@pytest.mark.parametrize("stiff", [False, True])
def test_derivatives_backwards_against_differences(stiff):
    # Compiled once and called for every difference
    value = jax.jit(lambda place: functional(place, stiff=stiff))
    found = jax.jit(jax.grad(lambda place: functional(place, stiff=stiff)))(PLACE)
    flat, unravel = ravel_pytree(PLACE)
    slopes, _ = ravel_pytree(found)
    for index in range(flat.size):
        if index == 3:
            continue  # the first time is zero and has no time before it
        step = jnp.zeros(flat.size).at[index].set(1e-4)
        # Of order four: (8[f(h) − f(−h)] − [f(2h) − f(−2h)])/12h
        near, far = (value(unravel(flat + k * step)) - value(unravel(flat - k * step)) for k in (1, 2))
        assert float(slopes[index]) == pytest.approx(float(8 * near - far) / 12e-4, rel=1e-7)


def test_derivatives_forwards_and_backwards_agree():
    backwards = jax.grad(functional)(PLACE)
    along = (jnp.asarray(0.3), jnp.array([1.0, -2.0]), jnp.array([0.0, 0.5, 1.0]))
    _, forwards = jax.jvp(lambda place: functional(place, forwards=True), (PLACE,), (along,))
    inner = sum(jnp.vdot(a, b) for a, b in zip(jax.tree.leaves(backwards), jax.tree.leaves(along), strict=True))
    assert float(forwards) == pytest.approx(float(inner), rel=1e-9)


@pytest.mark.slow
def test_derivatives_through_many_stretches_and_lanes():
    """y = y₀ e^{−at}: more steps than one stretch between marks holds, and lanes of different lengths."""

    def end(a, y0, t):
        return flows.solve(
            lambda t, y: -a * y, y0, jnp.linspace(0.1, 1.0, 40) * t, rtol=1e-10, atol=1e-12, most_steps=100
        ).states[-1]

    a, y0, t = jnp.array([0.5, 1.0, 3.0]), jnp.array([1.0, 2.0, -1.0]), jnp.array([1.0, 0.3, 2.0])
    by_a, by_y, by_t = jax.vmap(jax.grad(end, (0, 1, 2)))(a, y0, t)
    decay = np.exp(-a * t)
    np.testing.assert_allclose(by_a, -t * y0 * decay, rtol=1e-9)
    np.testing.assert_allclose(by_y, decay, rtol=1e-9)
    np.testing.assert_allclose(by_t, -a * y0 * decay, rtol=1e-9)


def test_gradients_of_whole_numbers_in_the_field_do_no_harm():
    table, place = jnp.array([1.0, 2.0]), jnp.asarray(1)

    def end(scale):
        return flows.solve(lambda t, y: -scale * table[place] * y, jnp.ones(()), [1.0]).states[0]

    assert float(jax.grad(end)(0.5)) == pytest.approx(-2 * np.exp(-1.0), rel=1e-9)


def test_waiting_for_something():
    found = flows.solve_until(lambda t, y: -y, jnp.ones(()), lambda t, y: y <= 0.1, exactly=True)
    assert float(found.t) == pytest.approx(np.log(10), rel=1e-10)
    assert float(found.state) == pytest.approx(0.1, rel=1e-10)
    now = flows.solve_until(lambda t, y: -y, jnp.ones(()), lambda t, y: y <= 2.0, exactly=True)
    assert float(now.t) == 0.0
    assert float(now.state) == 1.0
    with pytest.raises(NotConverged, match="did not happen"):
        flows.solve_until(lambda t, y: -y, jnp.ones(()), lambda t, y: y <= 0.1, latest=2.0)
    rates = jnp.array([1e6, 1.0])
    stiff = flows.solve_until(lambda t, y: -rates * y, jnp.ones(2), lambda t, y: y[1] < 1e-3, stiff=True, rtol=1e-6)
    assert int(stiff.steps) < 200


def test_fixed_steps_are_of_order_four_at_every_time():
    times = np.array([0.0, 0.31, 0.5, 1.7])
    errors = [
        np.max(np.abs(flows.fixed_steps(forced_slowly, jnp.ones(()), times, steps) - slow_solution(times)))
        for steps in (40, 80, 160)
    ]
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    np.testing.assert_allclose(orders, 4.0, atol=0.15)


def forced_slowly(t, y):
    return -y + jnp.cos(t)


def slow_solution(t):
    return (np.cos(t) + np.sin(t) + np.exp(-t)) / 2


def test_fixed_steps_that_are_amended_and_differentiated():
    # A ball that bounces is thrown back at the ground.
    path = flows.fixed_steps(
        lambda t, y: -jnp.ones(()), jnp.ones(()), [0.5, 3.0], 30, amend=lambda before, after: jnp.maximum(after, 0.0)
    )
    np.testing.assert_allclose(path, [0.5, 0.0], atol=1e-14)

    def end(a):
        return flows.fixed_steps(lambda t, y: -a * y, jnp.ones(()), [1.0], 100)[0]

    assert float(jax.grad(end)(1.0)) == pytest.approx(-np.exp(-1.0), rel=1e-8)
    assert float(jax.jvp(end, (1.0,), (1.0,))[1]) == pytest.approx(-np.exp(-1.0), rel=1e-8)


@pytest.mark.parametrize("times", [[1.0], [0.0, 1.0], [0.001, 0.002, 5.0], [4.9, 4.95, 5.0], [0.0]])
def test_grids_hold_every_time(times):
    nodes, places = flows.grid(times, 6)
    assert len(nodes) == 7
    np.testing.assert_allclose(nodes[places], times, rtol=1e-15)
    assert nodes[0] == 0.0
    assert np.all(np.diff(nodes) >= 0)
    assert len(set(np.asarray(places).tolist())) == len(times)
