r"""Networks that are linear between kinks: where each of their operations changes from one linear piece to another.

A network of linear operations and piecewise linear ones (ReLU and its kin, maxima, absolute values) is run on points,
and every operation with kinks shows what it decides on: numbers that are zero where it changes (`Signs`), or candidates
of which it takes the largest (`Choices`). As long as no earlier operation changes between two points, these are affine
functions of the point there, so that the place where they cross zero is known exactly. Nothing else of the network is
looked at: convolutions, batch norm in evaluation mode, pooling and skip connections are run as they are.
"""

import abc
import sys
from typing import Any, ClassVar, NamedTuple

import numpy as np

from deeplimits.errors import ParameterError
from deeplimits.measure.adapters.model import Model

NOT_LINEAR = (
    "regions need networks that are piecewise linear in their inputs: of linear layers, convolutions, batch norm in "
    "evaluation mode, ReLU-like activations, pooling and sums"
)


class Signs(NamedTuple):
    """What an operation with kinks compares with zero, one column for each unit and threshold."""

    name: str
    values: np.ndarray


class Choices(NamedTuple):
    """An operation that takes the largest of some candidates: all candidates, and the place of each winner."""

    name: str
    entries: np.ndarray
    winners: np.ndarray


Switch = Signs | Choices


class Passed(NamedTuple):
    """What a network gives at some points, and what its operations with kinks decided on, in the order they ran."""

    outputs: np.ndarray
    switches: list[Switch]


class Switching(abc.ABC):
    """A network in double precision whose decisions can be watched."""

    @abc.abstractmethod
    def run(self, points: np.ndarray, only: int | None = None) -> Passed:
        """Outputs, flat, and all switches; or the switch with the number `only` alone, and no outputs."""


class Chunked(Switching):
    """A network of a framework, which takes a few points at a time."""

    chunk: ClassVar[int]
    """How many."""

    @abc.abstractmethod
    def passed(self, points: np.ndarray, only: int | None) -> Passed:
        """What `run` answers, for one chunk of points."""

    def run(self, points: np.ndarray, only: int | None = None) -> Passed:
        parts = [self.passed(points[begin : begin + self.chunk], only) for begin in range(0, len(points), self.chunk)]
        counts = {len(part.switches) for part in parts}
        if len(counts) > 1:
            raise ParameterError(f"the network runs different operations on different inputs; {NOT_LINEAR}")
        if len(parts) == 1:
            return parts[0]
        joined: list[Switch] = []
        for same in zip(*(part.switches for part in parts), strict=True):
            first = same[0]
            if isinstance(first, Signs):
                joined.append(Signs(first.name, np.concatenate([one.values for one in same])))  # type: ignore[union-attr]
            else:
                entries = np.concatenate([one.entries for one in same])  # type: ignore[union-attr]
                joined.append(Choices(first.name, entries, np.concatenate([one.winners for one in same])))  # type: ignore[union-attr]
        return Passed(np.concatenate([part.outputs for part in parts]), joined)


class Matrices(Switching):
    """x ↦ W_k max(… max(W_1 x + b_1, 0) …, 0) + b_k, a ReLU network given by its matrices, one row for each neuron."""

    def __init__(self, weights: Any, biases: Any):
        self.weights = [np.asarray(one, float) for one in weights]
        self.biases = [np.asarray(one, float) for one in biases]
        width = self.weights[0].shape[-1] if self.weights and self.weights[0].ndim == 2 else 0
        for place, (matrix, shift) in enumerate(zip(self.weights, self.biases, strict=False)):
            if matrix.ndim != 2 or matrix.shape[1] != width or shift.shape != (len(matrix),):
                raise ParameterError(
                    f"weights[{place}] has shape {matrix.shape} and biases[{place}] {shift.shape}; they must have "
                    f"shape (n, {width}) and (n,)"
                )
            if not (np.all(np.isfinite(matrix)) and np.all(np.isfinite(shift))):
                raise ParameterError(f"weights[{place}] or biases[{place}] is not finite")
            width = len(matrix)
        if len(self.weights) != len(self.biases) or not self.weights:
            raise ParameterError(
                f"there are {len(self.weights)} weights and {len(self.biases)} biases; give as many, and at least one"
            )

    def run(self, points: np.ndarray, only: int | None = None) -> Passed:
        h, seen = points.reshape(len(points), -1), []
        if h.shape[1] != self.weights[0].shape[1]:
            raise ParameterError(
                f"the points have {h.shape[1]} coordinates; the network takes {self.weights[0].shape[1]}"
            )
        for place, (matrix, shift) in enumerate(zip(self.weights, self.biases, strict=True)):
            h = h @ matrix.T + shift
            if place == len(self.weights) - 1:
                break
            if only is None or place == only:
                seen.append(Signs(f"layer {place + 1}", h))
            if place == only:
                break
            h = np.maximum(h, 0.0)
        return Passed(h, seen)


def switching(network: Any, *, parameters: Any = None) -> Switching:
    """A network ready to be watched: what `open_model` gives, a PyTorch module, a JAX function of a batch, matrices.

    >>> import jax, jax.numpy as jnp
    >>> found = switching(lambda x: jax.nn.relu(x - 1.0)).run(np.array([[0.5], [2.0]]))
    >>> found.outputs.tolist(), found.switches[0].values.tolist()
    ([[0.0], [1.0]], [[-0.5], [1.0]])
    """
    if isinstance(network, Switching):
        return network
    if not callable(network) and hasattr(network, "weights") and hasattr(network, "biases"):
        return Matrices(network.weights, network.biases)
    inner = network.network if isinstance(network, Model) else network
    torch = sys.modules.get("torch")
    if torch is not None and (isinstance(inner, torch.nn.Module) or hasattr(inner, "body")):
        from deeplimits.measure.adapters import torch_switching

        body: Any = inner
        return torch_switching.opened(body)
    if hasattr(inner, "programs") or callable(inner) or hasattr(inner, "apply"):
        from deeplimits.measure.adapters import jax_switching

        return jax_switching.opened(inner, parameters=parameters)
    raise ParameterError(
        f"the network is a {type(network).__name__}; give what open_model answers, a torch.nn.Module, or a JAX "
        "function of a batch of inputs"
    )


def refused(operation: str) -> ParameterError:
    """The sentence for an operation that is not piecewise linear."""
    return ParameterError(f"the network applies {operation} to what depends on its input; {NOT_LINEAR}")


def window_winners(
    operand: np.ndarray, window: tuple[int, ...], strides: tuple[int, ...], padding: Any, dilation: tuple[int, ...]
) -> np.ndarray:
    """For each window of a sliding maximum, the flat place in its sample of the largest entry; axis 0 counts samples.

    >>> window_winners(np.array([[3.0, 1.0, 2.0, 5.0]]), (1, 2), (1, 2), ((0, 0), (0, 0)), (1, 1)).tolist()
    [[0, 3]]
    """
    shape = operand.shape[1:]
    places = np.broadcast_to(np.arange(int(np.prod(shape))).reshape(shape), operand.shape)
    wide = np.pad(operand, padding, constant_values=-np.inf)
    where = np.pad(places, padding, constant_values=0)
    span = tuple((size - 1) * step + 1 for size, step in zip(window, dilation, strict=True))

    def slid(array: np.ndarray) -> np.ndarray:
        seen = np.lib.stride_tricks.sliding_window_view(array, span)
        steps = tuple(slice(None, None, one) for one in strides)
        inside = tuple(slice(None, None, one) for one in dilation)
        found = seen[steps + inside]
        return found.reshape(*found.shape[: array.ndim], -1)

    values, sites = slid(wide), slid(where)
    best = values.argmax(axis=-1)
    return np.take_along_axis(sites, best[..., None], axis=-1)[..., 0].reshape(len(operand), -1)
