"""Random deep networks against the theory of their initialization."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import deeplimits as dl
from deeplimits import statistics
from deeplimits.ensembles import deep_networks
from deeplimits.errors import OutsideValidity
from deeplimits.models.activations import activation
from deeplimits.predictions import Trial, Value
from deeplimits.theory.initialization import criticality, phases


def test_neurons_and_weights_have_one_law():
    """Drawing the neurons layer by layer is the same as drawing all weights: third layer of networks of width 7."""
    sigma, c_w, c_b = activation("tanh"), jnp.asarray(1.7), jnp.asarray(0.2)
    inputs = jnp.array([[1.0, 0.5, -1.0], [0.3, 1.2, 0.4]])
    gram = inputs @ inputs.T / 3

    @jax.jit
    def weights(keys):
        def one(key):
            z = deep_networks.preactivations(key, sigma, inputs, c_w, c_b, 7, 3)[-1]
            return jnp.stack([jnp.mean(z[0] ** 2), jnp.mean(z[0] * z[1]), jnp.mean(z[1] ** 2)])

        return jax.vmap(one)(keys)

    @jax.jit
    def neurons(keys):
        start = c_b + c_w * jnp.stack([gram[0, 0], gram[0, 1], gram[1, 1]])
        return jax.vmap(
            lambda key: deep_networks.pair_chain(jax.random.normal(key, (3, 2, 7)), sigma, start, c_w, c_b).seen[-1]
        )(keys)

    keys = jax.random.split(jax.random.key(0), 8000)
    one, other = np.asarray(weights(keys[:4000])), np.asarray(neurons(keys[4000:]))
    for entry in range(3):
        assert stats.ks_2samp(one[:, entry], other[:, entry]).pvalue > statistics.LEVEL, entry


def test_variance_chain_is_the_pair_chain_of_one_input():
    noise = jax.random.normal(jax.random.key(1), (4, 2, 11))
    sigma, one = activation("tanh"), jnp.ones(())
    pairs = deep_networks.pair_chain(noise, sigma, 0.8 * jnp.ones(3), 1.3 * one, 0.1 * one).given[:, 0]
    alone = deep_networks.variance_chain(noise[:3, 0], sigma, 0.8 * one, 1.3 * one, 0.1 * one)
    np.testing.assert_allclose(alone, pairs, rtol=1e-13)


@pytest.mark.slow
def test_critical_networks_keep_their_signal_and_detuned_ones_do_not():
    """Depth 30: GELU at its critical point, up to O(1/width), and 20 % off in the weight variance."""
    found = criticality("gelu")
    sigma = activation("gelu")

    def last(weight_variance, width, samples=100):
        def one(key):
            noise = jax.random.normal(key, (30, width))
            start, c_b = jnp.asarray(found.kernel), jnp.asarray(found.bias_variance)
            return deep_networks.variance_chain(noise, sigma, start, jnp.asarray(weight_variance), c_b)[-1]

        many = jax.jit(lambda keys: jax.lax.map(one, keys, batch_size=100))
        return np.asarray(many(jax.random.split(jax.random.key(width), samples)))

    stated = Value(found.kernel, label="variance at the critical point", rate=1.0)
    widths = (200, 400, 800)
    finding = stated.judge([Trial(width, stated, last(found.weight_variance, width, 1500)) for width in widths])
    assert finding.agrees, finding.verdict
    assert last(1.2 * found.weight_variance, 200).mean() > 50 * found.kernel


def test_networks_settle_at_the_fixed_point_of_the_theory():
    for name, c_w, c_b in (("tanh", 1.5, 0.05), ("erf", 1.05, 0.001), ("tanh", 0.3, 1.0)):
        settled = deep_networks.settled_variance(activation(name), jnp.asarray(c_w), jnp.asarray(c_b))
        assert float(settled) == pytest.approx(float(phases.fixed_point(name, c_w, c_b)), rel=1e-7)


def test_networks_in_the_wrong_phase_are_refused():
    with pytest.raises(OutsideValidity, match="bias variance 0"):
        dl.predict(dl.limits.OrderChaosPhaseDiagram(bias_variance=0.0))
    with pytest.raises(OutsideValidity, match=r"chaotic = 1\.5 is in the ordered phase"):
        dl.predict(dl.limits.OrderChaosPhaseDiagram(chaotic=1.5))


@pytest.mark.parametrize("name", ["erf", *(pytest.param(name, marks=pytest.mark.slow) for name in ("relu", "gelu"))])
def test_kernels_of_other_activations(name):
    comparison = dl.compare(dl.limits.NngpKernelRecursion(activation=name, weight_variance=1.6, bias_variance=0.1))
    assert comparison.agrees, str(comparison)


def test_deeper_networks_move_their_features_with_the_same_exponents():
    """Two hidden layers: slopes −1/2 and 0 within the corrections of widths 100 to 400."""
    comparison = dl.compare(dl.limits.AbcParametrization(hidden=2), sizes=(100, 200, 400), samples=100)
    assert abs(comparison.findings["ntk_features"].report.record.slope + 0.5) < 0.05
    assert abs(comparison.findings["maximal_update_features"].report.record.slope) < 0.05
