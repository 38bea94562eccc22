"""Decompositions by class: the sheet's reference values, sums to machine precision, hand-built simplex frames."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from deeplimits.measure import classes

W = jnp.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
X = jnp.array([[2.0, 0.0], [1.0, 0.5], [0.0, 2.0], [-0.5, 1.0], [-1.0, -1.0], [-2.0, -0.5]])
LABELS = jnp.array([0, 0, 1, 1, 2, 2])


def softmax_gradients(x):
    p = jax.nn.softmax(x @ W.T)
    slopes = p[:, None, :] - jnp.eye(3)[None]
    return p, slopes


def test_gradient_parts_have_the_values_of_the_sheet():
    p, slopes = softmax_gradients(X)
    vectors = jnp.einsum("ncl,nd->ncld", slopes, X).reshape(6, 3, 6)
    found = classes.parts(vectors, p / 6, LABELS)
    values = [0.33948330093205, 0.12261685461758, 0.089589359702441, 0.10146920542319, 0.65315872067527]
    np.testing.assert_allclose([*found.traces(), found.traces().whole], values, rtol=1e-13)
    whole = found.matrices().whole
    np.testing.assert_allclose(jnp.linalg.eigvalsh(whole)[-1], 0.26808057022162, rtol=1e-13)
    # For a linear softmax the whole is the Gauss-Newton matrix, from the definition.
    bend = jax.vmap(lambda q: jnp.diag(q) - jnp.outer(q, q))(p)
    exact = jnp.einsum("nab,nc,nd->acbd", bend, X, X).reshape(6, 6) / 6
    np.testing.assert_allclose(whole, exact, atol=1e-15)
    np.testing.assert_allclose(found.traces().shares.sum(), 1.0, rtol=1e-14)


def test_backprop_parts_have_the_values_of_the_sheet():
    p, slopes = softmax_gradients(X)
    found = classes.parts(slopes, p / 6, LABELS).traces()
    values = [0.16503392500706, 0.064156442300727, 0.0029634651422356, 0.057758792616834, 0.28991262506686]
    np.testing.assert_allclose([*found, found.whole], values, rtol=1e-13)
    np.testing.assert_allclose(found.whole, jnp.mean(1 - jnp.sum(p**2, axis=1)), rtol=1e-13)


@pytest.mark.parametrize("seed", range(3))
def test_parts_sum_to_the_whole_for_any_weights_and_class_sizes(seed):
    rng = np.random.default_rng(seed)
    labels = jnp.asarray(np.concatenate([np.arange(5), rng.integers(0, 5, 35)]))
    vectors = jnp.asarray(rng.normal(size=(40, 5, 7)) + 3 * rng.normal(size=(1, 5, 7)))
    weights = jnp.asarray(rng.exponential(size=(40, 5)) * 10.0 ** rng.integers(-8, 1, size=(40, 5)))
    found = jax.jit(classes.parts)(vectors, weights, labels)
    exact = jnp.einsum("nc,nca,ncb->ab", weights, vectors, vectors)
    np.testing.assert_allclose(found.matrices().whole, exact, atol=1e-12 * jnp.abs(exact).max())
    assert int(jnp.sum(classes.row_spectrum(found.classes) > 1e-12)) <= 5
    rank = jnp.linalg.matrix_rank(classes.parts(jnp.asarray(rng.normal(size=(40, 5, 90))), weights, labels).cross)
    assert rank <= 5 * 3


def test_groups_without_weight_do_no_harm():
    weights = jnp.zeros((4, 2)).at[:, 0].set(1e-310)
    found = classes.parts(jnp.ones((4, 2, 3)), weights, jnp.array([0, 0, 1, 1]))
    assert all(bool(jnp.all(jnp.isfinite(rows))) for rows in found)


FEATURES = jnp.array([[1.0, 0.0], [1.0, 0.2], [0.0, 1.0], [0.1, 1.3], [-1.0, -1.0], [-1.2, -1.0]])


def test_feature_parts_and_collapse_have_the_values_of_the_sheet():
    found = classes.feature_parts(FEATURES, LABELS, 3)
    traces = [jnp.trace(found.classes), *found.traces()]
    np.testing.assert_allclose(traces, [1.515, 0.0072222222222222, 1.5077777777778, 0.015], rtol=1e-12)
    np.testing.assert_allclose(found.whole, FEATURES.T @ FEATURES / 6, atol=1e-15)
    collapse = classes.neural_collapse(FEATURES, LABELS, 3)
    np.testing.assert_allclose(collapse.nc1, 0.0077491124260355, rtol=1e-12)
    np.testing.assert_allclose(collapse.within_over_between, 0.0099484156226971, rtol=1e-12)
    means = jnp.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -2.0]])
    found = classes.simplex_distance(means - means.mean(axis=0)[None, :])
    np.testing.assert_allclose([found.norms, found.angles], [0.2572917186616, 0.47765909803156], rtol=1e-12)


def test_unequal_classes_sum_with_their_frequencies_and_batches_merge():
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.normal(size=(50, 4)) + 1e3)
    labels = jnp.asarray(np.concatenate([np.arange(3), rng.integers(0, 3, 47)]))
    found = classes.feature_parts(x, labels, 3)
    np.testing.assert_allclose(found.whole, x.T @ x / 50, rtol=1e-12)
    whole = classes.moments(x, labels, 3)
    merged = classes.moments(x[:20], labels[:20], 3).merged(classes.moments(x[20:], labels[20:], 3))
    np.testing.assert_allclose(merged.means, whole.means, rtol=1e-13)
    np.testing.assert_allclose(merged.scatter, whole.scatter, atol=1e-9)


@pytest.mark.parametrize("count", [2, 3, 10])
def test_a_simplex_frame_has_collapsed(count):
    rng = np.random.default_rng(count)
    frame = np.eye(count) - 1 / count
    turn = np.linalg.qr(rng.normal(size=(12, 12)))[0][:count]
    means = jnp.asarray(5.0 * frame @ turn)
    labels = jnp.tile(jnp.arange(count), 4)
    found = classes.neural_collapse(
        means[labels] + 2.0, labels, count, weights=0.3 * means, outputs=(means[labels]) @ means.T
    )
    np.testing.assert_allclose(jnp.stack(found[:8]), 0.0, atol=1e-13)


def test_every_metric_sees_its_own_fault():
    count = 4
    frame = jnp.asarray(np.eye(count) - 1 / count)
    labels = jnp.tile(jnp.arange(count), 50)
    spread = 0.1 * jnp.asarray(np.random.default_rng(0).normal(size=(200, count)))

    def collapse(means=frame, noise=0.0, weights=frame, outputs=None):
        x = means[labels] + noise * spread
        return classes.neural_collapse(
            x, labels, count, weights=weights, outputs=x @ frame if outputs is None else outputs
        )

    assert collapse(noise=1.0).nc1 > 0.01
    assert collapse(means=frame * jnp.array([1.0, 2.0, 1.0, 1.0])[:, None]).nc2_norms > 0.1
    assert collapse(means=jnp.eye(count) * jnp.array([1.0, 1.0, 1.0, 2.0])[:, None]).nc2_angles > 0.01
    assert collapse(weights=jnp.roll(frame, 1, axis=0)).nc3 > 1.0
    assert collapse(outputs=jnp.roll(frame[labels], 1, axis=1)).nc4 == 1.0
    # NC1 counts every class the same, though class 0 has most of the samples.
    many = jnp.concatenate([jnp.zeros(300, int), jnp.arange(1, count), jnp.arange(1, count)])
    x = frame[many].at[:300, 0].add(jnp.tile(jnp.array([0.1, -0.1]), 150))
    within = classes.neural_collapse(x, many, count).within_over_between
    np.testing.assert_allclose(within, (0.01 / count) / (jnp.trace(frame) / count), rtol=1e-12)
