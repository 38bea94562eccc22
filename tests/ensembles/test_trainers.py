"""Training loops record at marks: against plain loops in NumPy, whatever the marks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from deeplimits.ensembles import linear_training, online_sgd, single_index, trainers
from deeplimits.numerics import flows

GENERATOR = np.random.default_rng(0)
X, Y = GENERATOR.normal(size=(6, 3)), GENERATOR.normal(size=6)


def loss(theta):
    return jnp.mean((jnp.asarray(X) @ theta - Y) ** 2) / 2


def by_hand(steps, step=0.1):
    theta = np.ones(3)
    for _ in range(steps):
        theta = theta - step * X.T @ (X @ theta - Y) / len(Y)
    return theta


@pytest.mark.parametrize("marks", [(0,), (7,), (0, 1, 2, 3), (2, 3, 11)])
def test_descent_at_marks(marks):
    found = trainers.gradient_descent(loss, jnp.ones(3), jnp.asarray(0.1), marks)
    np.testing.assert_allclose(found, [by_hand(mark) for mark in marks], rtol=1e-13)
    ridge = linear_training.ridge_descent(
        jnp.asarray(X), jnp.asarray(Y), jnp.zeros(()), jnp.ones(3), jnp.asarray(0.1), marks
    )
    np.testing.assert_allclose(ridge, found, rtol=1e-13)


def test_descent_of_trees_and_what_is_observed():
    tree = {"a": jnp.ones(2), "b": (jnp.ones(()),)}
    found = trainers.gradient_descent(lambda t: loss(jnp.append(t["a"], t["b"][0])), tree, jnp.asarray(0.1), [3, 5])
    np.testing.assert_allclose(found["a"], [by_hand(3)[:2], by_hand(5)[:2]], rtol=1e-13)
    np.testing.assert_allclose(found["b"][0], [by_hand(3)[2], by_hand(5)[2]], rtol=1e-13)
    losses = trainers.gradient_descent(loss, jnp.ones(3), jnp.asarray(0.1), [0, 4], observe=loss)
    np.testing.assert_allclose(losses, [loss(by_hand(0)), loss(by_hand(4))], rtol=1e-13)


def test_stochastic_trainers_without_noise_are_descent():
    everything = len(Y)

    def losses(theta):
        return (jnp.asarray(X) @ theta - Y) ** 2 / 2

    key, step = jax.random.key(0), jnp.asarray(0.1)
    noisy = trainers.noisy_gradient_descent(
        key, jax.grad(loss), jnp.ones(3), jnp.full(9, 0.1), jnp.zeros(()), [0, 4, 9]
    )
    np.testing.assert_allclose(noisy, [by_hand(0), by_hand(4), by_hand(9)], rtol=1e-13)
    phases = trainers.stochastic_phases(
        key, losses, jnp.ones(3), step, (4, 5), everything, "without replacement", lambda theta, slope, before: theta
    )
    np.testing.assert_allclose(phases.begins, [by_hand(0), by_hand(4)], rtol=1e-13)
    np.testing.assert_allclose(phases.ends, [by_hand(4), by_hand(9)], rtol=1e-13)
    np.testing.assert_allclose(phases.sums[1], sum(by_hand(k) for k in range(4, 9)), rtol=1e-13)


def test_noise_does_not_depend_on_where_one_looks():
    """The same key gives the same path, with many marks or few."""
    key = jax.random.key(1)

    def noisy(marks):
        schedule = jnp.full(12, 0.1)
        return trainers.noisy_gradient_descent(key, jax.grad(loss), jnp.ones(3), schedule, jnp.ones(()), marks)

    def online(marks):
        return online_sgd.euclidean(
            key, jnp.ones(4), lambda x, sample: (x @ sample) ** 2, lambda key: online_sgd.gaussian(key, (4,)), 0.01,
            marks, lambda x: x,
        )  # fmt: skip

    for run in (noisy, online):
        every, few = run(np.arange(13)), run([0, 5, 12])
        np.testing.assert_array_equal(every[jnp.array([0, 5, 12])], few)
        assert len(np.unique(np.asarray(every), axis=0)) == 13


def test_blocks_of_samples_are_as_long_as_little_is_drawn_in_vain():
    """Few marks: long blocks; a mark at every step: blocks of one; marks that are not known yet: short ones."""
    sample, huge = jnp.zeros(100), jnp.zeros(100_000)
    length = online_sgd._block_length
    assert (length(sample, [0, 10_000]), length(sample, np.arange(50)), length(huge, [0, 10_000])) == (64, 1, 1)
    assert 1 < length(sample, np.arange(0, 400, 20)) <= 20
    assert jax.eval_shape(lambda marks: jnp.zeros(length(sample, marks)), jnp.arange(3)).shape == (8,)


def test_spherical_flow_agrees_with_the_adaptive_solver():
    direction, target, activation = jnp.eye(4)[3], jnp.array([0.5, 1.0, 0.8]), jnp.array([0.7, 1.0, 0.6])
    a, u, epsilon = jnp.array([0.4, -1.0, 0.9]), jnp.eye(3, 4), jnp.asarray(0.1)

    def velocity(t, state):
        slope_a, slope_u = jax.grad(single_index.population_risk, (0, 1))(*state, direction, target, activation)
        tangent = slope_u - jnp.sum(slope_u * state[1], axis=1, keepdims=True) * state[1]
        return -3 * slope_a / epsilon, -3 * tangent

    step, marks = 1e-3, (100, 500)
    found = single_index.spherical_flow(a, u, direction, target, activation, epsilon, jnp.asarray(step), marks)
    path = flows.solve(velocity, (a, u), np.array(marks) * step).states
    wanted = [single_index.population_risk(*state, direction, target, activation) for state in zip(*path, strict=True)]
    np.testing.assert_allclose(found, wanted, rtol=1e-8)
