"""Random networks of sparse ternary weights and activations of few levels, stored in two bits a weight."""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from scipy import sparse

from deeplimits.models.activations import Activation


class TernaryLayer(NamedTuple):
    """Weights 0 and ±1/√((1 − ε) fan in), in two planes of bits, and an activation less its mean."""

    nonzero: np.ndarray
    """Packed bits: where a weight is not zero."""
    negative: np.ndarray
    """Packed bits: where it is negative."""
    shape: tuple[int, int]
    """(neurons, fan in)"""
    scale: float
    activation: Activation
    mean: float

    @property
    def bytes(self) -> int:
        """What is stored: two bits a weight, levels and thresholds, scale and mean in single precision."""
        return self.nonzero.nbytes + self.negative.nbytes + 4 * (2 * len(self.activation.kinks) + 3)

    def matrix(self) -> sparse.csr_array:
        """The weights, in single precision, zeros left out."""
        count = self.shape[0] * self.shape[1]
        there = np.unpackbits(self.nonzero, count=count).astype(np.float32)
        sign = 1 - 2 * np.unpackbits(self.negative, count=count).astype(np.float32)
        return sparse.csr_array((there * sign * np.float32(self.scale)).reshape(self.shape))


class FewLevelNetwork(NamedTuple):
    """Layers of few levels, behind which anything linear can be fitted."""

    layers: tuple[TernaryLayer, ...]

    @property
    def bytes(self) -> int:
        """Memory of all layers."""
        return sum(layer.bytes for layer in self.layers)

    def features(self, x: np.ndarray) -> np.ndarray:
        """What the last layer passes on, over √width: its products are the conjugate kernel."""
        return unpacked_features(self, [layer.matrix() for layer in self.layers], x)


def unpacked_features(network: FewLevelNetwork, matrices: Sequence[sparse.csr_array], x: np.ndarray) -> np.ndarray:
    """As `features`, from weights that were unpacked before: for one who asks more than once."""
    state = np.asarray(x, np.float32).T
    for layer, matrix in zip(network.layers, matrices, strict=True):
        state = levels_of(layer.activation, matrix @ state) - np.float32(layer.mean)
    return state.T / np.sqrt(np.float32(state.shape[0]))


def levels_of(staircase: Activation, u: np.ndarray) -> np.ndarray:
    """The levels of a staircase; of any other activation its values."""
    if staircase.parameters and not staircase.continuous:
        found = np.full(u.shape, np.float32(staircase.parameters[0]))
        for place, jump in zip(staircase.kinks, staircase.parameters[1:], strict=True):
            found += np.float32(jump) * (u > np.float32(place))
        return found
    return np.asarray(staircase.value(jnp.asarray(u)))


def few_level_network(
    seed: int, activations: Sequence[Activation], means: Sequence[float], sizes: Sequence[int], sparsity: float
) -> FewLevelNetwork:
    """A network of random sparse ternary weights: 0 with probability ε, else ±1 alike, over √((1 − ε) fan in).

    `sizes`: of the input and of each hidden layer.

    >>> from deeplimits.models.staircases import staircase
    >>> found = few_level_network(0, [staircase((2.0,), (0.0,))], [1.0], [16, 64], 0.5)
    >>> found.layers[0].bytes, sorted(set(np.unique(8 * found.features(np.ones((1, 16)))).tolist()))
    (276, [-1.0, 1.0])
    """
    random, layers = np.random.default_rng(seed), []
    for activation, mean, before, after in zip(activations, means, sizes[:-1], sizes[1:], strict=True):
        there = random.random((after, before)) >= sparsity
        negative = random.random((after, before)) < 0.5
        scale = 1 / np.sqrt((1 - sparsity) * before)
        layers.append(
            TernaryLayer(
                np.packbits(there), np.packbits(negative), (after, before), float(scale), activation, float(mean)
            )
        )
    return FewLevelNetwork(tuple(layers))


def gaussian_features(
    seed: int, activations: Sequence[Activation], means: Sequence[float], sizes: Sequence[int], x: np.ndarray
) -> np.ndarray:
    """Features of a network of dense Gaussian weights of variance 1/(fan in), activations less their means.

    >>> gaussian_features(0, [], [], [3], np.ones((2, 3))).shape
    (2, 3)
    """
    random, state = np.random.default_rng(seed), np.asarray(x, float)
    for activation, mean, before, after in zip(activations, means, sizes[:-1], sizes[1:], strict=True):
        state = np.asarray(activation.value(state @ random.standard_normal((before, after)) / np.sqrt(before))) - mean
    return state / np.sqrt(state.shape[1])
