"""Class parts, neural collapse and XOR blocks: reference values, autodiff, hand-made frames."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from deeplimits.errors import ParameterError
from deeplimits.theory import landscape
from deeplimits.theory.online_sgd import xor_rest_point

X = np.array([[2, 0], [1, 0.5], [0, 2], [-0.5, 1], [-1, -1], [-2, -0.5]], float)
W = np.array([[1, 0], [0, 1], [-1, -1]], float)
LABELS = np.repeat(np.arange(3), 2)
FEATURES = np.array([[1, 0], [1, 0.2], [0, 1], [0.1, 1.3], [-1, -1], [-1.2, -1]])


def softmax(z):
    return np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)


def test_gradient_parts_of_the_sheet():
    p = softmax(X @ W.T)
    g = np.einsum("ikl,id->ikld", p[:, None, :] - np.eye(3), X).reshape(6, 3, 6)
    parts = landscape.class_decomposition(g, p / 6, LABELS)
    wanted = [0.33948330093205, 0.12261685461758, 0.089589359702441, 0.10146920542319]
    np.testing.assert_allclose([np.trace(part) for part in parts], wanted, rtol=1e-12)
    np.testing.assert_allclose(np.trace(parts.whole), 0.65315872067527, rtol=1e-12)
    np.testing.assert_allclose(np.linalg.eigvalsh(parts.whole)[-1], 0.26808057022162, rtol=1e-12)
    assert np.linalg.matrix_rank(parts.between) <= 3
    assert np.linalg.matrix_rank(parts.cross) <= 3
    np.testing.assert_allclose(parts.whole, landscape.softmax_curvature(W, X, LABELS), atol=1e-15)


def test_backprop_parts_of_the_sheet():
    p = softmax(X @ W.T)
    parts = landscape.class_decomposition(p[:, None, :] - np.eye(3), p / 6, LABELS)
    wanted = [0.16503392500706, 0.064156442300727, 0.0029634651422356, 0.057758792616834]
    np.testing.assert_allclose([np.trace(part) for part in parts], wanted, rtol=1e-12)
    np.testing.assert_allclose(np.trace(parts.whole), 0.28991262506686, rtol=1e-12)


def test_weights_that_vanish_leave_their_groups_out():
    weights = np.zeros((6, 3))
    weights[:, 0] = 1 / 6
    parts = landscape.class_decomposition(np.ones((6, 3, 2)), weights, LABELS)
    np.testing.assert_allclose(parts.whole, np.ones((2, 2)), rtol=1e-14)


def test_feature_parts_of_the_sheet():
    parts = landscape.feature_decomposition(FEATURES, LABELS)
    traces = [float(np.trace(part)) for part in parts]
    np.testing.assert_allclose(traces, [0.0072222222222222, 1.5077777777778, 0.015], rtol=1e-12)
    np.testing.assert_allclose(parts.whole, FEATURES.T @ FEATURES / 6, atol=1e-15)
    # Unequal classes
    uneven = landscape.feature_decomposition(FEATURES, [0, 0, 0, 0, 1, 5])
    np.testing.assert_allclose(uneven.whole, FEATURES.T @ FEATURES / 6, atol=1e-15)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ((4, 3, 0.01, 0.02), (3.632965740071, 0.34329208078868)),
        ((10, 100, 5e-4, 1e-5), (7.2479445719058, 0.052509934164444)),
    ],
)
def test_collapse_of_the_sheet(given, wanted):
    np.testing.assert_allclose(landscape.unconstrained_features(*given)[:2], wanted, rtol=1e-12)


def test_too_strong_a_penalty_leaves_nothing():
    found = landscape.unconstrained_features(5, 1, 0.21, 0.21)
    np.testing.assert_allclose(found[:2], [0.0, np.log(5)], atol=1e-15)
    # Continuous where it sets in, κ = 1/C
    near = landscape.unconstrained_features(5, 1, 0.2 - 1e-9, 0.2 - 1e-9)
    np.testing.assert_allclose(near.loss, np.log(5), rtol=1e-8)


@pytest.mark.parametrize(("classes", "dimension"), [(2, 1), (3, 2), (5, 9)])
def test_a_simplex_made_by_hand(classes, dimension):
    frame = landscape.simplex_frame(classes, dimension)
    gram = frame @ frame.T
    np.testing.assert_allclose(gram, np.eye(classes) - (1 - np.eye(classes)) / (classes - 1), atol=1e-14)
    # Without noise the stated metrics are those of the frame itself
    found = landscape.neural_collapse_in_noise(classes, 3, max(dimension, classes), 1.0, 0.0)
    np.testing.assert_allclose([found.within, found.squared_length, found.cosine], [0, 1, -1 / (classes - 1)])


@pytest.mark.parametrize(
    ("beta", "hessian", "gradient"),
    [(0.05, 0.055451774444796, 0.013862943611199), (0.01, 0.030509316771340, 0.001271221532139)],
)
@pytest.mark.parametrize("types", [["mu+"], ["mu+", "nu-"], ["mu+", "mu-", "nu+"], ["mu+", "mu-", "nu+", "nu-", "nu-"]])
def test_as_many_outliers_as_types(beta, hessian, gradient, types):
    blocks = landscape.xor_second_layer(xor_rest_point(types, beta), jnp.inf, points=8)
    wanted = landscape.xor_rest_eigenvalues(beta)
    np.testing.assert_allclose(wanted, [hessian, gradient], rtol=1e-11)
    count = len(set(types))
    for found, value in zip(blocks, wanted, strict=True):
        eigenvalues = np.linalg.eigvalsh(found)[::-1]
        np.testing.assert_allclose(eigenvalues[:count], value * np.ones(count), rtol=1e-9)
        np.testing.assert_allclose(eigenvalues[count:], 0, atol=1e-12)


def test_numbers_of_outliers():
    np.testing.assert_allclose(landscape.xor_outlier_counts(4), [0, 4 / 256, 84 / 256, 144 / 256, 24 / 256], rtol=1e-12)
    counts = np.zeros(5)
    for one in np.ndindex(4, 4, 4, 4, 4):
        counts[len(set(one))] += 1 / 4**5
    np.testing.assert_allclose(landscape.xor_outlier_counts(5), counts, rtol=1e-12)


def test_xor_curvature_by_autodiff():
    random = np.random.default_rng(2)
    v, w, x, y = random.normal(size=3), random.normal(size=(3, 4)), random.normal(size=(6, 4)), np.arange(6) % 2 * 1.0

    def loss(flat):
        s = jnp.maximum(x @ flat[3:].reshape(3, 4).T, 0.0) @ flat[:3]
        return jnp.mean(jnp.logaddexp(s, 0.0) - y * s)

    found = landscape.xor_curvature(v, w, x, y)
    np.testing.assert_allclose(found, jax.hessian(loss)(jnp.asarray(np.append(v, w.ravel()))), atol=1e-14)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: landscape.unconstrained_features(1, 3, 0.1, 0.1), "classes"),
        (lambda: landscape.unconstrained_features(3, 3, 0.0, 0.1), "ridge_weights"),
        (lambda: landscape.xor_rest_eigenvalues(0.2), "ridge"),
        (lambda: landscape.class_decomposition(np.ones((2, 2, 1)), np.ones((2, 2)), [0, 2]), "classes"),
        (lambda: landscape.class_decomposition(np.ones((2, 2, 1)), -np.ones((2, 2)), [0, 1]), "weights"),
        (lambda: landscape.simplex_frame(4, 2), "dimension"),
    ],
)
def test_bad_input(call, name):
    with pytest.raises(ParameterError, match=name):
        call()
