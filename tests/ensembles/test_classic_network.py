"""The classic network with two layers of three and two neurons: known values, training, bad input."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from deeplimits.ensembles import classic_network
from deeplimits.errors import ParameterError

SINES = 0.5 * np.sin(np.arange(1, 24))


@pytest.mark.parametrize(("steps", "expected"), [(1000, 5.004353414020), (20_000, 4.987343607449)])
def test_classic_network_in_turn(steps, expected):
    network = classic_network.from_values(SINES)
    assert 20 * float(classic_network.cost(network)) == pytest.approx(5.056958775203, abs=1e-12)
    marks = [(k + 1) * steps // 10 for k in range(10)]
    run = classic_network.train_classic_network(network, marks)
    assert 20 * float(run.costs[-1]) == pytest.approx(expected, abs=1e-11)
    assert run.marks.tolist() == marks


def test_classic_network_gradient():
    network = classic_network.from_values(SINES)
    x, y = jnp.asarray(classic_network.POINTS[0]), jnp.asarray(classic_network.TARGETS[0])
    slope = jax.grad(classic_network.point_loss)(network, x, y).w2[0, 0]
    assert float(slope) == pytest.approx(-2.973640675863e-4, rel=1e-11)


def test_classic_network_learns_ten_points():
    key = jax.random.key(1)
    network = classic_network.random_network(key)
    run = classic_network.train_classic_network(network, [100_000, 300_000], key=jax.random.fold_in(key, 1))
    assert 1e-3 < 20 * float(run.costs[-1]) < 1e-2
    decided = classic_network.in_first_class(run.network, jnp.asarray(classic_network.POINTS))
    assert decided.tolist() == [True] * 5 + [False] * 5


def test_bad_trainings_are_refused():
    network = classic_network.from_values(SINES)
    for arguments, word in (
        ({"marks": [-1]}, "marks"),
        ({"marks": [10, 3]}, "increase"),
        ({"marks": [5], "step": -1.0}, "step"),
    ):
        with pytest.raises(ParameterError, match=word):
            classic_network.train_classic_network(network, **arguments)
    with pytest.raises(ParameterError, match="23 parameters"):
        classic_network.from_values(np.ones(22))


def test_classic_network_in_an_order_of_ones_own():
    """Against gradient steps written out; the natural order given is the usual one."""
    network, order = classic_network.from_values(SINES), [7, 0, 7, 3]
    run = classic_network.train_classic_network(network, [6], order=order)
    by_hand = network
    for at in [7, 0, 7, 3, 7, 0]:
        x, y = jnp.asarray(classic_network.POINTS[at]), jnp.asarray(classic_network.TARGETS[at])
        slope = jax.grad(classic_network.point_loss)(by_hand, x, y)
        by_hand = jax.tree.map(lambda part, change: part - 0.05 * change, by_hand, slope)
    for one, other in zip(run.network, by_hand, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13)
    usual = classic_network.train_classic_network(network, [1000], order=range(10))
    assert 20 * float(usual.costs[0]) == pytest.approx(5.00435341402, abs=1e-11)
    for wrong in ([], [10], [0.5], [[1]]):
        with pytest.raises(ParameterError, match="order"):
            classic_network.train_classic_network(network, [1], order=wrong)
    with pytest.raises(ParameterError, match="both"):
        classic_network.train_classic_network(network, [1], order=[0], key=jax.random.key(0))
