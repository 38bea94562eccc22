"""What is no token, no temperature, no layer: refused in a sentence, never answered with a wrong number."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from deeplimits.ensembles import transformers as ensemble
from deeplimits.errors import NotConverged, ParameterError
from deeplimits.measure import tokens as measure
from deeplimits.theory import attention

X = jnp.array([[1.0, 0.0], [0.6, 0.8], [-0.8, 0.6]])
EYE = jnp.eye(2)
NAN = X.at[0, 0].set(jnp.nan)
ONE = ensemble.AttentionLayer(EYE[None], EYE[None])
WIDE = ensemble.AttentionLayer(jnp.eye(3)[None], jnp.eye(3)[None])
HEADS = ensemble.AttentionLayer(jnp.stack([EYE, EYE]), EYE[None])
FEED = ONE._replace(feed_forward=ensemble.FeedForward(jnp.ones((3, 3)), jnp.ones((3, 2)), jnp.ones(3)))

OF_TOKENS = {
    "attention_velocity": lambda x: ensemble.attention_velocity(x, 1.0),
    "blockwise_velocity": lambda x: ensemble.blockwise_velocity(x, 1.0),
    "attention_flow": lambda x: ensemble.attention_flow(x, [1.0], 1.0),
    "attention_layers": lambda x: ensemble.attention_layers(x, 1.0, 0.1, 3),
    "after_layers": lambda x: ensemble.after_layers(x, 1.0, 0.1, 3),
    "attention_until": lambda x: ensemble.attention_until(x, 1.0, lambda y: y[0] @ y[1] > 0.9),
    "attention_matrix": lambda x: ensemble.attention_matrix(x, 1.0),
    "on_the_sphere": ensemble.on_the_sphere,
    "clustered_share": measure.clustered_share,
    "cluster_labels": measure.cluster_labels,
    "cluster_count": measure.cluster_count,
    "cosine_histogram": lambda x: measure.cosine_histogram(x, [-1.0, 0.0, 1.0]),
    "chord": measure.chord,
    "log_energy": lambda x: measure.log_energy(x, 1.0),
    "attention_entropy": lambda x: measure.attention_entropy(x, 1.0),
    "energy_growth": lambda x: attention.energy_growth(x, 1.0),
    "log_interaction_energy": lambda x: attention.log_interaction_energy(x, 1.0),
    "mean_energy": attention.mean_energy,
    "balanced_curvature": attention.balanced_curvature,
}  # fmt: skip
NO_TOKENS = {
    "off the sphere": (2 * X, "not on the unit sphere.*normalize=True"),
    "in single precision": ((2 * X).astype(jnp.float32), "not on the unit sphere"),
    "not a number": (NAN, r"tokens\[0, 0\] = nan"),
    "empty": (jnp.zeros((0, 2)), "shape"),
    "one axis": (jnp.array([1.0, 0.0]), "shape"),
    "words": ([["a"]], "not allowed; give a number"),
}


@pytest.mark.parametrize("kind", NO_TOKENS)
@pytest.mark.parametrize("name", OF_TOKENS)
def test_what_is_no_token(name, kind):
    tokens, words = NO_TOKENS[kind]
    with pytest.raises(ParameterError, match=words):
        OF_TOKENS[name](tokens)


OF_BETA = {
    "attention_velocity": lambda beta: ensemble.attention_velocity(X, beta),
    "blockwise_velocity": lambda beta: ensemble.blockwise_velocity(X, beta),
    "attention_flow": lambda beta: ensemble.attention_flow(X, [1.0], beta),
    "attention_layers": lambda beta: ensemble.attention_layers(X, beta, 0.1, 3),
    "after_layers": lambda beta: ensemble.after_layers(X, beta, 0.1, 3),
    "attention_matrix": lambda beta: ensemble.attention_matrix(X, beta),
    "log_energy": lambda beta: measure.log_energy(X, beta),
    "attention_entropy": lambda beta: measure.attention_entropy(X, beta),
    "gram_flow": lambda beta: attention.gram_flow(X @ X.T, [1.0], beta),
    "angular_velocity": lambda beta: attention.angular_velocity([0.0, 1.0], beta),
    "angular_flow": lambda beta: attention.angular_flow([0.0, 1.0], [1.0], beta),
    "circle_moments": lambda beta: attention.circle_moments([0.2], [1.0], beta),
    "energy_growth": lambda beta: attention.energy_growth(X, beta),
    "equiangular_cosine": lambda beta: attention.equiangular_cosine(0.0, 1.0, 3, beta),
    "equiangular_time": lambda beta: attention.equiangular_time(0.5, 0.0, 3, beta),
    "merge_time": lambda beta: attention.merge_time(0.9, 0.1, beta),
    "cluster_rate": attention.cluster_rate,
    "harmonic_growth": lambda beta: attention.harmonic_growth(2, beta, 3),
    "fastest_mode": lambda beta: attention.fastest_mode(beta, 3),
    "proven_regime": lambda beta: attention.proven_regime(3, beta, 5),
    "gibbs_row": lambda beta: attention.gibbs_row([1.0, 0.0], beta),
    "cold_rate": lambda beta: attention.cold_rate([1.0, 0.0], beta),
}  # fmt: skip


@pytest.mark.parametrize("beta", [-1.0, float("nan"), float("inf"), "warm"])
@pytest.mark.parametrize("name", OF_BETA)
def test_what_is_no_temperature(name, beta):
    with pytest.raises(ParameterError, match="beta"):
        OF_BETA[name](beta)


def test_repulsion_is_there_on_request():
    for found in (
        ensemble.after_layers(X, -1.0, 0.1, 2, repulsive=True),
        ensemble.attention_matrix(X, -1.0, repulsive=True),
        attention.gram_flow(X @ X.T, [1.0], -1.0, repulsive=True),
        attention.angular_flow([0.0, 1.0], [1.0], -1.0, repulsive=True),
    ):
        assert np.all(np.isfinite(found))


REFUSED = {
    "layer of other tokens": (lambda: ensemble.attention_velocity(X, 1.0, layer=WIDE), "scores"),
    "layer of other tokens, tiles": (lambda: ensemble.blockwise_velocity(X, 1.0, layer=WIDE), "scores"),
    "layer of other tokens, layers": (lambda: ensemble.after_layers(X, 1.0, 0.1, 2, layer=WIDE), "scores"),
    "layer of other tokens, in time": (lambda: ensemble.attention_flow(X, [1.0], 1.0, layer=lambda t: WIDE), "scores"),
    "heads that miss": (lambda: ensemble.attention_velocity(X, 1.0, layer=HEADS), "values"),
    "feed-forward": (lambda: ensemble.attention_velocity(X, 1.0, layer=FEED), "out"),
    "feed-forward, tiles": (lambda: ensemble.blockwise_velocity(X, 1.0, layer=FEED), "out"),
    "score": (lambda: ensemble.attention_matrix(X, 1.0, score=jnp.eye(3)), "score"),
    "no number of layers": (lambda: ensemble.after_layers(X, 1.0, 0.1, 1.5), "steps"),
    "no step": (lambda: ensemble.after_layers(X, 1.0, float("nan"), 3), "step"),
    "USA too cold": (lambda: ensemble.attention_velocity(X, 1e3, kind="unnormalized"), "shift"),
    "USA too cold, tiles": (lambda: ensemble.blockwise_velocity(X, 1e3, kind="unnormalized"), "shift"),
    "USA too cold, layers": (lambda: ensemble.attention_layers(X, 1e3, 0.1, 2, kind="unnormalized"), "shift"),
    "USA too cold, angles": (lambda: attention.angular_velocity([0.0, 1.0], 1e3, kind="unnormalized"), "beta"),
    "energy too cold": (lambda: attention.energy_growth(X, 1e3), "shift"),
    "rate too cold": (lambda: attention.cluster_rate(1e3, kind="unnormalized"), "beta"),
    "harmonic too cold": (lambda: attention.harmonic_growth(2, 1e3, 3, kind="unnormalized"), "beta"),
    "partition too cold": (lambda: attention.uniform_partition(1e3, 3), "beta"),
    "gram of no vectors": (lambda: attention.gram_flow([[1.0, 2.0], [2.0, 1.0]], [1.0], 1.0), "eigenvalue"),
    "gram of two orders": (lambda: attention.gram_flow([[1.0, 0.5], [0.1, 1.0]], [1.0], 1.0), "symmetric"),
    "gram of long vectors": (lambda: attention.gram_flow([[2.0, 0.5], [0.5, 1.0]], [1.0], 1.0), "diagonal"),
    "merging backwards": (lambda: attention.merge_time(0.1, 0.5, 1.0), "not reached"),
    "one score": (lambda: attention.cold_rate([1.0], 1.0), "scores"),
    "no scores": (lambda: attention.gibbs_row([], 1.0), "scores"),
    "a score": (lambda: attention.hot_deviation(1.0), "scores"),
    "head": (lambda: attention.angular_velocity(
        [0.0, 1.0], 1.0, heads=[attention.AngularHead(jnp.eye(3), jnp.eye(3))]), "score"),
    "feed-forward of angles": (lambda: attention.angular_velocity(
        [0.0, 1.0], 1.0, feed_forward=attention.AngularFeedForward(jnp.ones((3, 2)), jnp.ones((2, 3)), jnp.ones(2))),
        "out"),
    "no density": (lambda: attention.circle_moments([0.9], [0.1], 1.0), "density"),
    "tokens without balance": (lambda: attention.balanced_curvature(X), "mean"),
    "block": (lambda: attention.neural_ode(lambda t, x: jnp.ones(3), [1.0], 2.0), "block"),
    "residual block": (lambda: ensemble.residual_network(lambda t, x: jnp.ones(3), jnp.ones(2), 1.0, 3), "block"),
    "no layers": (lambda: ensemble.residual_network(lambda t, x: x, jnp.ones(2), 1.0, 0), "layers"),
    "zero token": (lambda: ensemble.on_the_sphere([[0.0, 0.0]], normalize=True), "zeros"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit(name):
    found, words = REFUSED[name]
    with pytest.raises(ParameterError, match=words):
        found()


def test_what_blows_up_says_so():
    with pytest.raises(NotConverged, match="grow"):
        ensemble.residual_network(lambda t, x: x**2, 10 * jnp.ones(2), 1.0, 300)
    with pytest.raises(NotConverged):
        attention.neural_ode(lambda t, x: x**2, [1.0], 2.0)


def test_tokens_are_scaled_on_request_only():
    for name in ("clustered_share", "cluster_count", "chord"):
        ask = getattr(measure, name)
        assert float(ask(3 * X, normalize=True)) == pytest.approx(float(ask(X)), abs=1e-15)
    single = ensemble.on_the_sphere(X.astype(jnp.float32) * jnp.float32(1 + 1e-7))
    assert single.dtype == jnp.zeros(()).dtype
    assert jax.jit(ensemble.on_the_sphere)(2 * X).shape == X.shape
