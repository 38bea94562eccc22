"""What every framework must offer, so that instruments know none of them: a network's products on a piece of data.

Instruments speak float64 NumPy vectors; a network computes in its own precision.
"""

import abc
from typing import Any, NamedTuple

import numpy as np

from deeplimits.measure.adapters.data import Batch
from deeplimits.measure.adapters.layout import Layout


class Labelled(NamedTuple):
    """What a loss says at every possible label, for each sample."""

    probabilities: np.ndarray
    """exp(−l(z_i, c)), of shape (n, C): the network's probability of class c where the loss is a cross-entropy"""
    slopes: np.ndarray
    """∂l(z_i, c)/∂z_i, of shape (n, C, ...) as the outputs"""


class AtOutputs(NamedTuple):
    """The objective as a function of the outputs alone."""

    loss: float
    slopes: np.ndarray
    """∂F/∂z, of the shape of the outputs"""


class Inside(NamedTuple):
    """What happens at one layer: what enters it, and how the outputs respond to what leaves it."""

    entering: np.ndarray
    """h, shape (n, ...)"""
    sensitivities: np.ndarray
    """(∂f/∂z)ᵀ u for what leaves the layer, z, and every direction u: shape (n, directions, ...)"""
    weights: np.ndarray | None
    """the layer's matrix, one row for each output, where it is linear"""


class Piece(abc.ABC):
    """Some samples at fixed parameters: F(θ) = Σ_i w_i l(f(θ, x_i), y_i), and products with its derivatives.

    Without weights F is the user's loss of the batch as a mean, times `share`.
    """

    count: int
    bytes: int = 0
    """What is kept in memory for the next product."""

    @abc.abstractmethod
    def outputs(self) -> np.ndarray:
        """f(θ, x_i), shape (n, ...)."""

    @abc.abstractmethod
    def loss(self) -> float:
        """F."""

    @abc.abstractmethod
    def losses(self) -> np.ndarray:
        """l(f(θ, x_i), y_i) of every sample, unweighted."""

    @abc.abstractmethod
    def gradient(self) -> np.ndarray:
        """∇F."""

    @abc.abstractmethod
    def hessian(self, vector: np.ndarray) -> np.ndarray:
        """∇²F v."""

    @abc.abstractmethod
    def residual(self, vector: np.ndarray) -> np.ndarray:
        """E v with E = Σ_ik (∂F/∂z_ik) ∇²f_k(θ, x_i)."""

    @abc.abstractmethod
    def push(self, vector: np.ndarray) -> np.ndarray:
        """J v, of the shape of the outputs."""

    @abc.abstractmethod
    def pull(self, directions: np.ndarray) -> np.ndarray:
        """Jᵀ u for u of the shape of the outputs."""

    @abc.abstractmethod
    def bend(self, directions: np.ndarray) -> np.ndarray:
        """(∂²F/∂z∂z) u: the loss's curvature in the outputs."""

    @abc.abstractmethod
    def at_outputs(self, outputs: np.ndarray) -> AtOutputs:
        """F and ∂F/∂z where the network's outputs are these."""

    @abc.abstractmethod
    def slopes(self) -> np.ndarray:
        """∂l/∂z of every sample, unweighted."""

    @abc.abstractmethod
    def labelled(self, labels: list[Any]) -> Labelled:
        """Probabilities and slopes at every label."""

    @abc.abstractmethod
    def sample_jacobians(self) -> np.ndarray:
        """∂f(θ, x_i)/∂θ, shape (n, outputs, parameters): large."""


KEPT = 2**31
"""Bytes that linearizations may take in a computer's memory."""
SHARE_KEPT = 3
"""Of an accelerator's memory that is free they may take one part in so many."""


class Network(abc.ABC):
    """A network at fixed parameters, some of which are varied."""

    layout: Layout
    """The parameters that are varied."""
    reduction: str
    """What the user's loss does with a batch; 'mean' until `opening` has looked."""
    everything: Layout
    """All real parameters."""

    @property
    def free_memory(self) -> int | None:
        """Bytes that are free on the accelerator on which it computes, if it computes on one."""
        return None

    @property
    def room(self) -> int:
        """Bytes that may be kept from one product to the next, so that it costs half."""
        return max(KEPT, (self.free_memory or 0) // SHARE_KEPT)

    @abc.abstractmethod
    def vector(self) -> np.ndarray:
        """The varied parameters."""

    @abc.abstractmethod
    def at(self, vector: np.ndarray) -> "Network":
        """The same network with other values of the varied parameters."""

    @abc.abstractmethod
    def varying(self, names: tuple[str, ...]) -> "Network":
        """The same network with only these parameters varied."""

    @abc.abstractmethod
    def now(self) -> "Network":
        """The user's network as it is now, if its parameters can be read again."""

    @abc.abstractmethod
    def piece(self, batch: Batch, share: float, weights: np.ndarray | None = None) -> Piece:
        """These samples at these parameters."""

    @abc.abstractmethod
    def evaluate(self, batch: Batch, seed: int = 0) -> np.ndarray:
        """Outputs, with nothing kept; `seed` starts random layers."""

    def settled(self, batch: Batch) -> "Network":
        """The same network, in the best precision at little cost, tried on a batch."""
        return self

    @abc.abstractmethod
    def target_of(self, batch: Batch, label: Any) -> Any:
        """Targets of this batch as if all its samples had this label."""

    @abc.abstractmethod
    def inside(self, batch: Batch, layer: str | int | None, directions: np.ndarray) -> Inside:
        """What enters a layer (the last linear one by default), and sensitivities in directions (n, m, outputs)."""

    @abc.abstractmethod
    def raw_loss(self, batch: Batch) -> np.ndarray:
        """What the user's loss gives for a batch, as it is."""

    @abc.abstractmethod
    def single_losses(self, batch: Batch) -> np.ndarray:
        """The user's loss of every sample as a batch of its own."""

    @abc.abstractmethod
    def with_reduction(self, reduction: str) -> "Network":
        """The same network, knowing what its loss does with a batch."""
