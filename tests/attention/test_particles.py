"""Self-attention flows and layers: invariants, reference values, bad input, and large numbers of tokens."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from deeplimits.ensembles import transformers as ensemble
from deeplimits.errors import ParameterError
from deeplimits.measure import tokens as measure
from deeplimits.theory import attention

X = jnp.array([[1.0, 0.0], [0.6, 0.8], [-0.8, 0.6]])
EYE = jnp.eye(2)
QUERY = jnp.array([[[1.0, 0.5], [0.0, 1.0]], [[0.0, 1.0], [-1.0, 0.0]]])
KEY = jnp.array([[[1.0, 0.0], [0.0, 1.0]], [[0.5, 0.0], [0.2, 1.0]]])
VALUE = jnp.array([[[1.0, 0.2], [-0.3, 0.7]], [[0.4, 0.0], [0.1, -0.5]]])
FEED = ensemble.FeedForward(
    jnp.array([[0.3, -0.1], [0.2, 0.5]]), jnp.array([[1.0, -1.0], [0.5, 0.5]]), jnp.array([0.1, -0.2])
)


def test_reference_values_of_the_field():
    one = ensemble.attention_velocity(X, 1.7, layer=ensemble.attention_layer(QUERY[0], KEY[0], VALUE[0]))
    two = ensemble.attention_velocity(X, 1.7, layer=ensemble.attention_layer(QUERY, KEY, VALUE))
    all_of_it = ensemble.attention_velocity(
        X, 1.7, layer=ensemble.attention_layer(QUERY, KEY, VALUE, feed_forward=FEED)
    )
    exact = (
        [(0, -0.049269026780), (0.445015734969, -0.333761801227), (0.179458780862, 0.239278374483)],
        [(0, -0.178245845533), (0.644700752888, -0.483525564666), (0.142020170706, 0.189360227609)],
        [(0, 0.127510265045), (0.494649009597, -0.370986757198), (-0.093199126734, -0.124265502311)],
    )
    for found, wanted in zip((one, two, all_of_it), exact, strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-11)


def test_equivariance_and_rescaling():
    x = ensemble.random_tokens(jax.random.key(0), 7, 4)
    turn = jnp.linalg.qr(jax.random.normal(jax.random.key(1), (4, 4)))[0]
    field = ensemble.attention_velocity(x, 2.0)
    np.testing.assert_allclose(ensemble.attention_velocity(x @ turn, 2.0), field @ turn, atol=1e-14)
    order = jnp.array([3, 1, 6, 0, 2, 5, 4])
    np.testing.assert_allclose(ensemble.attention_velocity(x[order], 2.0), field[order], atol=1e-14)
    # Q = K = V = λI is β' = βλ² at λ times the speed.
    same = 1.3 * jnp.eye(4)
    scaled = ensemble.attention_velocity(x, 2.0, layer=ensemble.attention_layer(same, same, same))
    np.testing.assert_allclose(scaled, 1.3 * ensemble.attention_velocity(x, 2.0 * 1.3**2), atol=1e-14)


@pytest.mark.parametrize("kind", ["softmax", "unnormalized"])
def test_tokens_stay_on_the_sphere_and_follow_the_closed_form(kind):
    """Equal angles, to 1e-9, and no drift of lengths at all, near the cluster too."""
    n, times = 6, jnp.array([0.5, 2.0, 9.0])
    start = jnp.linalg.cholesky(0.9 * jnp.eye(n) + 0.1)
    path = ensemble.attention_flow(start, times, 2.0, kind=kind)
    np.testing.assert_allclose(jnp.linalg.norm(path, axis=2), 1.0, atol=1e-14)
    exact = attention.equiangular_cosine(0.1, times, n, 2.0, kind=kind)
    for tokens, cosine in zip(path, exact.cosine, strict=True):
        np.testing.assert_allclose((tokens @ tokens.T)[np.triu_indices(n, 1)], float(cosine), atol=1e-9)


def test_layers_have_an_error_of_first_order():
    layer = ensemble.attention_layer(QUERY, KEY, VALUE, feed_forward=FEED)
    end = ensemble.attention_flow(X, [1.0], 1.7, layer=layer)[0]
    errors = [jnp.linalg.norm(ensemble.after_layers(X, 1.7, 1 / n, n, layer=layer) - end) for n in (100, 200)]
    assert float(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.05)
    path = ensemble.attention_layers(X, 1.7, 0.01, 100, layer=layer)
    np.testing.assert_allclose(path[-1], ensemble.after_layers(X, 1.7, 0.01, 100, layer=layer), atol=1e-14)
    np.testing.assert_allclose(jnp.linalg.norm(path, axis=2), 1.0, atol=1e-14)


def test_what_is_not_projected_is_slower_near_a_cluster():
    """The effective step is h/(1 + h⟨x, v⟩), v ≈ x near a cluster."""
    h = 0.1
    near = ensemble.on_the_sphere(jnp.eye(3)[:1] + 1e-4 * jax.random.normal(jax.random.key(2), (5, 3)), normalize=True)
    both = [ensemble.attention_layers(near, 1.0, h, 1, projected=projected) for projected in (True, False)]
    fast, slow = (1 - float(jnp.sqrt(measure.chord(path[1]) / measure.chord(path[0]))) for path in both)
    assert fast == pytest.approx(h, rel=1e-5)
    assert slow == pytest.approx(h / (1 + h), rel=1e-5)


def test_weights_may_depend_on_time():
    """V(t) = cos(t) I, whose clock is sin t."""
    flow = ensemble.attention_flow(
        X, [1.2], 1.0, layer=lambda t: ensemble.AttentionLayer(EYE[None], jnp.cos(t) * EYE[None])
    )
    np.testing.assert_allclose(flow[0], ensemble.attention_flow(X, [np.sin(1.2)], 1.0)[0], atol=1e-9)


def test_a_hemisphere_is_kept():
    x = ensemble.random_tokens(jax.random.key(3), 12, 3)
    x = x * jnp.sign(x[:, :1])
    path = ensemble.attention_flow(x, jnp.linspace(0.5, 6.0, 8), 3.0)
    least = jnp.min(path[:, :, 0], axis=1)
    assert np.all(np.diff(np.asarray(least)) > 0)


def test_energy_rises_for_symmetric_weights_and_may_fall_for_others():
    key = jax.random.key(5)
    x = ensemble.random_tokens(key, 8, 6)
    times = jnp.linspace(0.1, 4.0, 20)

    def increments(layer):
        path = ensemble.attention_flow(x, times, 1.5, layer=layer)
        return np.diff([float(measure.log_energy(y, 1.5, score=layer.scores[0])) for y in path])

    symmetric = ensemble.random_layer(key, "wigner", "score", 6)
    assert increments(symmetric).min() > -1e-10
    assert increments(ensemble.random_layer(key, "ginibre", "score", 6)).min() < -1e-3
    repelled = ensemble.AttentionLayer(symmetric.scores, -symmetric.values)
    assert increments(repelled).max() < 1e-10


def test_cold_attention_is_safe_and_freezes():
    x = ensemble.random_tokens(jax.random.key(6), 9, 3)
    for beta in (1e3, 1e6):
        field = ensemble.attention_velocity(x, beta)
        assert np.all(np.isfinite(field))
        assert float(jnp.max(jnp.abs(field))) < 1e-12
    shifted = ensemble.attention_velocity(x, 1e3, kind="unnormalized", shift=1e3)
    assert np.all(np.isfinite(shifted))


def test_bad_input_is_refused_in_a_sentence():
    with pytest.raises(ParameterError, match="not on the unit sphere"):
        ensemble.attention_velocity(2 * X, 1.0)
    np.testing.assert_allclose(
        ensemble.attention_velocity(2 * X, 1.0, normalize=True), ensemble.attention_velocity(X, 1.0), atol=1e-15
    )
    with pytest.raises(ParameterError, match="repulsive"):
        ensemble.attention_flow(X, [1.0], -1.0)
    assert np.all(np.isfinite(ensemble.attention_velocity(X, -1.0, repulsive=True)))
    with pytest.raises(ParameterError, match="row of zeros"):
        ensemble.on_the_sphere([[0.0, 0.0]], normalize=True)
    with pytest.raises(ParameterError, match="shape"):
        ensemble.attention_velocity(X, 1.0, layer=ensemble.AttentionLayer(jnp.eye(3)[None], jnp.eye(2)[None]))
    with pytest.raises(ParameterError, match="shapes"):
        ensemble.attention_layer(EYE, EYE, jnp.ones((2, 3)))
    with pytest.raises(ParameterError, match="ensemble"):
        ensemble.random_score(jax.random.key(0), "ginibr", 4)
    with pytest.raises(ParameterError, match="kind"):
        ensemble.attention_velocity(X, 1.0, kind="linear")


@pytest.mark.parametrize("block", [1, 3, 8, 100])
@pytest.mark.parametrize("kind", ["softmax", "unnormalized"])
def test_tiles_are_the_whole(block, kind):
    """Blocks that divide n, that do not, and that are larger than it; with and without weights."""
    x = ensemble.random_tokens(jax.random.key(7), 20, 5)
    for layer in (None, ensemble.random_layer(jax.random.key(8), "ginibre", "gaussian", 5)):
        for beta in (0.0, 3.0):
            found = ensemble.blockwise_velocity(x, beta, layer=layer, kind=kind, block=block)
            np.testing.assert_allclose(found, ensemble.attention_velocity(x, beta, layer=layer, kind=kind), atol=1e-13)
    cold = ensemble.blockwise_velocity(x, 1e3, layer=layer, block=block)
    np.testing.assert_allclose(cold, ensemble.attention_velocity(x, 1e3, layer=layer), atol=1e-13)


def test_many_tokens_need_no_square_matrix():
    """30,000 tokens, whose n × n matrix would take 3.6 GB in single precision; a few rows by their definition."""
    x = np.asarray(ensemble.random_tokens(jax.random.key(9), 30_000, 8), np.float32)
    found = ensemble.blockwise_velocity(jnp.asarray(x), jnp.float32(2.0))
    few = x[:5].astype(float)
    weights = np.exp(2 * (few @ x.T.astype(float) - 1))
    pull = weights @ x / weights.sum(axis=1, keepdims=True)
    exact = pull - np.sum(pull * few, axis=1, keepdims=True) * few
    np.testing.assert_allclose(found[:5], exact, atol=2e-6)


@pytest.mark.parametrize("ensemble_name", ["ginibre", "wigner", "goe"])
def test_scores_are_of_order_one(ensemble_name):
    d = 40
    scores = []
    for key in jax.random.split(jax.random.key(10), 12):
        score_key, token_key = jax.random.split(key)
        score = ensemble.random_score(score_key, ensemble_name, d)
        x = ensemble.random_tokens(token_key, 60, d)
        scores.append(np.asarray(x @ score @ x.T)[np.triu_indices(60, 1)])
        if ensemble_name != "ginibre":
            np.testing.assert_array_equal(score, score.T)
    # About √(2/(12·60)) of error, since scores of one matrix share their tokens.
    assert np.mean(np.square(scores)) == pytest.approx(1.0, abs=0.2)


def test_tokens_in_their_span_have_the_law_of_tokens():
    """E⟨x, y⟩² = 1/d, E⟨x, y⟩⁴ = 3/(d(d+2)), for all pairs."""
    d, n = 7, 5
    draws = jax.vmap(lambda key: ensemble.tokens_in_their_span(key, n, d))(jax.random.split(jax.random.key(11), 20_000))
    gram = np.asarray(jnp.einsum("kid,kjd->kij", draws, draws))[:, *np.triu_indices(n, 1)]
    error = np.std(gram**2, axis=0) / np.sqrt(len(gram))
    assert np.all(abs(np.mean(gram**2, axis=0) - 1 / d) < 4.7 * error)
    error = np.std(gram**4, axis=0) / np.sqrt(len(gram))
    assert np.all(abs(np.mean(gram**4, axis=0) - 3 / (d * (d + 2))) < 4.7 * error)
    with pytest.raises(ParameterError):
        ensemble.tokens_in_their_span(jax.random.key(0), 5, 4)


def test_instruments_of_tokens():
    angles = jnp.array([0.0, 0.02, 0.04, 1.0, 1.01, np.pi])
    x = jnp.stack([jnp.cos(angles), jnp.sin(angles)], axis=1)
    # Single linkage: 0 and 0.04 are joined through 0.02. π is opposite to 0 and to 0.02.
    assert measure.cluster_labels(x, threshold=np.cos(0.03)).tolist() == [0, 0, 0, 3, 3, 5]
    assert float(measure.cluster_count(x, threshold=np.cos(0.03))) == 3
    assert float(measure.clustered_share(x, threshold=np.cos(0.03))) == pytest.approx(6 / 30)
    assert float(measure.clustered_share(x, threshold=np.cos(0.03), antipodal=True)) == pytest.approx(10 / 30)
    cosines = np.cos(np.asarray(angles)[:, None] - np.asarray(angles))[np.triu_indices(6, 1)]
    edges = np.linspace(-1, 1, 9)
    np.testing.assert_array_equal(measure.cosine_histogram(x, edges), np.histogram(np.clip(cosines, -1, 1), edges)[0])
    assert float(measure.chord(x)) == pytest.approx(2.0)
    np.testing.assert_allclose(measure.attention_entropy(x, 0.0), np.log(6))
    with pytest.raises(ParameterError, match="threshold"):
        measure.clustered_share(x, threshold=1.0)
    with pytest.raises(ParameterError, match="pair"):
        measure.clustered_share(x[:1])
    with pytest.raises(ParameterError, match="edges"):
        measure.cosine_histogram(x, [1.0, 0.0])


def test_time_to_collapse_of_equal_angles():
    n, times = 5, jnp.linspace(0.0, 8.0, 200)
    path = ensemble.attention_flow(jnp.eye(n), times, 1.0)
    exact = float(jnp.exp(attention.equiangular_time(1 - 1e-3, 0.0, n, 1.0)))
    assert measure.time_to_collapse(path, times, level=1e-3) == pytest.approx(exact, abs=1e-4)
    assert measure.time_to_collapse(path[:5], times[:5]) == float("inf")


def test_metastable_clusters_on_the_circle():
    """About √(2β) clusters, long before there is one: 60 random tokens, β = 25."""
    x = ensemble.random_tokens(jax.random.key(12), 60, 2)
    end = ensemble.after_layers(x, 25.0, 0.1, 200)
    count = float(measure.cluster_count(end, threshold=np.cos(0.05)))
    assert 2 <= count <= 2 * np.sqrt(50)
    assert float(attention.fastest_mode(25.0, 2).degree) == 7
