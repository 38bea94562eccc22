"""Compressed networks: what is stored, the kernel that is kept, a user's network of PyTorch and of JAX, bad input."""

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from deeplimits.diagnosis import compress
from deeplimits.ensembles.few_level_networks import few_level_network
from deeplimits.errors import OutsideValidity, ParameterError
from deeplimits.models.architectures import FullyConnected
from deeplimits.models.staircases import staircase

IMAGES, DIGITS = load_digits(return_X_y=True)
X, Y = IMAGES[DIGITS < 4][:500], DIGITS[DIGITS < 4][:500]


@pytest.fixture(scope="module")
def described():
    return compress(FullyConnected(1, "relu"), X, Y, widths=2000, sparsity=0.9)


def test_memory_and_accuracy(described):
    # Two bits a weight, twelve numbers of the activation at most, and the last layer in single precision.
    inputs = X.shape[1]
    assert described.memory.original == 4 * (inputs * 2000 + 2001 * 4)
    assert 0 <= described.memory.compressed - (2 * inputs * 2000 // 8 + 4 * 2001 * 4) < 64
    assert described.accuracy.compressed > 0.97
    assert described.accuracy.compressed > described.accuracy.dense - 0.03
    assert np.isnan(described.accuracy.original)
    assert np.mean(described.predict(X) == Y) > 0.98


def test_weights_are_sparse_and_ternary(described):
    weights = described.network.layers[0].matrix()
    share = weights.nnz / np.prod(weights.shape)
    assert abs(share - 0.1) < 5 * np.sqrt(0.09 / np.prod(weights.shape))
    np.testing.assert_allclose(np.unique(weights.data), np.array([-1, 1]) / np.sqrt(0.1 * X.shape[1]), rtol=1e-6)
    assert abs(np.mean(weights.data > 0) - 0.5) < 5 * 0.5 / weights.nnz**0.5


def test_kernel_is_kept(described):
    """What is measured is chance and no more; without matching the activation it is more."""
    change = described.change
    assert change.predicted_with_ridge < 1e-10 < change.predicted < 0.05
    assert change.measured < 2 * change.chance
    points = (X[:300] - X.mean(axis=0)) / np.sqrt(np.mean((X - X.mean(axis=0)) ** 2))
    dense = np.maximum(points @ np.random.default_rng(0).standard_normal((64, 8000)) / 8, 0)
    dense = dense - 1 / np.sqrt(2 * np.pi)
    kernel = dense @ dense.T / 8000
    take = np.eye(300) - 1 / 300
    size = np.linalg.norm(take @ kernel @ take, 2)

    def distance(features):
        found = take @ (features @ features.T) @ take
        found *= np.sum(found * kernel) / np.sum(found**2)  # of pixels of another scale
        return np.linalg.norm(found - take @ kernel @ take, 2) / size

    wide = few_level_network(1, [described.matches[0].activation], [0.0], (64, 8000), 0.5)
    naive = few_level_network(1, [staircase((-1.0, 1.0), (-1.0, 1.0), start=1.0)], [0.0], (64, 8000), 0.5)
    assert distance(wide.features(points)) < 0.2 < distance(naive.features(points))


def test_a_network_of_pytorch_and_the_same_of_jax():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(64, 300), torch.nn.Tanh(), torch.nn.Linear(300, 4))
    found = compress(net, X, Y, sparsity=0.5, seed=3)
    assert found.memory.original == 4 * (64 * 300 + 300 + 300 * 4 + 4)
    assert found.memory.compressed < found.memory.original / 5
    assert found.accuracy.compressed > 0.9 > 0.6 > found.accuracy.original  # which was never trained
    assert "memory" in repr(found)

    first, second = (net[0].weight, net[0].bias), (net[2].weight, net[2].bias)
    parameters = [(w.detach().numpy().T, b.detach().numpy()) for w, b in (first, second)]

    def apply(w, x):
        return jnp.tanh(x @ w[0][0] + w[0][1][None, :]) @ w[1][0] + w[1][1][None, :]

    same = compress(apply, X, Y, sparsity=0.5, seed=3, activation="tanh", parameters=parameters)
    assert same.accuracy.original == found.accuracy.original
    np.testing.assert_allclose(same.matches[0].thresholds, found.matches[0].thresholds, rtol=1e-4)


def test_a_given_ridge_makes_up_for_the_identity():
    """λ' = λ + d₀(original) − d₀(compressed), in units of the mean squared length of the features."""
    found = compress(FullyConnected(1, "relu"), X, Y, widths=400, ridge=1.0)
    gained = found.matches[0].rest - 0.0908450569 if abs(found.matches[0].variance - 0.34084505691) > 1e-9 else 0.0
    assert gained > 0
    free = compress(FullyConnected(1, "relu"), X, Y, widths=400, ridge=2.0)
    assert free.ridge > found.ridge > 0


@pytest.mark.parametrize(("arguments", "error", "sentence"), [
    ({"sparsity": 1.0}, ParameterError, "sparsity = 1"),
    ({"widths": None}, ParameterError, "a description has no widths"),
    ({"widths": [10, 20]}, ParameterError, "widths has 2 entries"),
    ({"levels": 1}, ParameterError, "levels = 1"),
    ({"ridge": -1.0}, ParameterError, "ridge = -1"),
    ({"network": FullyConnected(1, "relu", layer_norm=True)}, OutsideValidity, "skips or layer norm"),
    ({"network": FullyConnected(0, "relu")}, ParameterError, "no hidden layer"),
    ({"x": X[:5], "y": Y[:5]}, ParameterError, "ten are needed"),
    ({"y": Y[:-1]}, ParameterError, "y has shape"),
    ({"y": np.zeros(len(X), int)}, ParameterError, "two classes are needed"),
    ({"x": np.full_like(X, np.nan)}, ParameterError, "x"),
    ({"x": np.ones_like(X)}, ParameterError, "x is constant"),
])  # fmt: skip
def test_bad_input_is_said(arguments, error, sentence):
    given = {"network": FullyConnected(1, "relu"), "x": X, "y": Y, "widths": 20, **arguments}
    with pytest.raises(error) as raised:
        compress(given.pop("network"), given.pop("x"), given.pop("y"), **given)
    assert sentence in str(raised.value), str(raised.value)
