"""Finite two-layer networks against each other and against their limits, beyond the usual comparisons."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import deeplimits as dl
from deeplimits.ensembles import committees, overlap_steps
from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.models.committees import Overlaps, Task
from deeplimits.statistics import LEVEL
from deeplimits.theory.two_layer.mean_field import Particles, wasserstein_flow


def test_chain_and_weights_have_one_law():
    """After 30 steps in dimension 6, both layers trained: the chain's overlaps are those of SGD in weight space."""
    task = Task(np.eye(1), 1.5, 0.1**0.5, output_rate=0.8)
    start = Overlaps([[0.3], [-0.1]], [[0.8, 0.15], [0.15, 0.6]], [1.0, 0.7])
    marks = jnp.array([30])

    @jax.jit
    def weights(keys):
        def one(key):
            return committees.one_pass_sgd(key, task, committees.with_overlaps(task, start, 6), marks).record

        return jax.vmap(one)(keys)

    @jax.jit
    def chain(keys):
        return jax.vmap(lambda key: overlap_steps.overlap_chain(key, task, start, marks, 6))(keys)

    keys = jax.random.split(jax.random.key(0), 8000)
    one, other = weights(keys[:4000]), chain(keys[4000:])
    for part in ("m", "q", "a", "online_risk"):
        left, right = (np.asarray(getattr(record, part)).reshape(4000, -1) for record in (one, other))
        for column in range(left.shape[1]):
            assert stats.ks_2samp(left[:, column], right[:, column]).pvalue > LEVEL, (part, column)


def test_weights_with_given_overlaps():
    task = Task([[1.2]])
    start = Overlaps([[0.3], [-0.1]], [[0.8, 0.15], [0.15, 0.6]])
    network = committees.with_overlaps(task, start, 3)
    found = committees.overlaps(network)
    assert np.abs(found.m - start.m).max() < 1e-14
    assert np.abs(found.q - start.q).max() < 1e-14
    with pytest.raises(ParameterError, match="need at least 3"):
        committees.with_overlaps(task, start, 2)
    with pytest.raises(ParameterError, match="need at least 3"):
        overlap_steps.overlap_chain(jax.random.key(1), task, start, jnp.array([1]), 2)


@pytest.mark.slow
def test_wide_relu_networks_are_not_stuck():
    """Global convergence: the worst final risk over seeds falls as the network widens (d = 5, four teachers)."""
    worst = []
    for neurons in (4, 64):

        def run(key, neurons=neurons):
            teacher_key, sign_key, weight_key, output_key = jax.random.split(key, 4)
            teacher = jax.random.normal(teacher_key, (4, 5))
            teacher = teacher / jnp.linalg.norm(teacher, axis=1, keepdims=True)
            outputs = jax.random.rademacher(sign_key, (4,), dtype=float) / 4
            w = jax.random.normal(weight_key, (neurons, 5)) / jnp.sqrt(5.0)
            a = jax.random.rademacher(output_key, (neurons,), dtype=float) * jnp.linalg.norm(w, axis=1)
            times = jnp.array([100.0])
            return wasserstein_flow(Particles(w, a), teacher, outputs, times, activation="relu").risk[0]

        worst.append(float(jnp.max(jax.jit(jax.vmap(run))(jax.random.split(jax.random.key(0), 6)))))
    assert worst[1] < worst[0] / 5


def test_rates_above_the_critical_one_are_refused_with_its_value():
    with pytest.raises(OutsideValidity, match=r"critical learning rate 4\.05578"):
        dl.predict(dl.limits.NoiseFloorAndCriticalLearningRate(step=5.0))


@pytest.mark.slow
def test_sgd_in_weight_space_concentrates_at_the_stated_rate():
    comparison = dl.compare(dl.limits.SgdConcentrationRate(simulator="weights"), sizes=(50, 200, 800), samples=1000)
    assert comparison.agrees, str(comparison)
    assert abs(comparison.findings["deviation"].report.record.slope + 0.5) < 0.1


@pytest.mark.slow
@pytest.mark.parametrize("activation", ["relu", "identity"])
def test_other_activations_follow_their_equations(activation):
    comparison = dl.compare(dl.limits.SaadSollaOde(activation=activation, step=0.8), samples=400)
    assert comparison.agrees, str(comparison)
