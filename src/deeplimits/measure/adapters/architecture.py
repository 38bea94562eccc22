r"""What a network computes, as a list of operations read off one pass: their kinds, constants and sizes of signals.

The pass is recorded where the framework computes, so that a function inside `forward` is read like a module. Operations
that only move numbers (views, transposes, copies) are no entries of their own.
"""

from typing import Any, NamedTuple

import numpy as np

from deeplimits.errors import ParameterError
from deeplimits.measure.adapters.data import Batch, cut
from deeplimits.measure.adapters.model import Model
from deeplimits.measure.adapters.pairs import Pairs
from deeplimits.numerics import arguments

KINDS = (
    "input", "affine", "activation", "layer norm", "batch norm", "embedding", "sum", "scale", "shift", "attention",
    "product", "pooling", "concatenation", "dropout", "unread",
)  # fmt: skip
"""What an operation may be; 'attention' mixes values by weights that sum to one."""


class Operation(NamedTuple):
    """One operation on one batch."""

    place: int
    kind: str
    name: str
    """The layer, or module and operation, in which it happens."""
    what: str
    """The activation's name where the house has it, or the framework's own word."""
    sources: tuple[int, ...]
    """Places of the operations whose results it takes."""
    shape: tuple[int, ...]
    """Of its result."""
    moment: np.ndarray
    """Mean square of its result, for each sample where the first axis counts them."""
    centre: float
    """Share of the mean over features in that mean square."""
    constants: dict[str, float]
    """Numbers of its parameters: 'weight_variance', 'bias_variance', 'fan_in', 'width', 'taps', 'gain', 'shift', …"""
    chance: float = 0.0
    """Relative standard error of the moment over draws of independent weights; 0 where nothing is random."""
    slope: float = float("nan")
    """Σ of the squared derivative of the losses by its result, a mean over samples; NaN where it was not asked."""
    tokens: np.ndarray | None = None
    """The result at the first samples where it has an axis of tokens (samples, tokens, features), kept for sums."""
    pairs: Pairs | None = None
    """How alike two samples are in its result; None where its first axis does not count samples."""
    spread: Any = None
    """Of a convolution of independent weights: what it makes of maps (maps, places) of products of two samples"""


class Architecture(NamedTuple):
    """A network's operations in the order in which they are computed."""

    operations: tuple[Operation, ...]
    samples: int
    idle: tuple[str, ...] = ()
    """Layers that do nothing in this mode: dropout in evaluation."""

    def of(self, *kinds: str) -> list[Operation]:
        """The operations of these kinds."""
        return [one for one in self.operations if one.kind in kinds]

    @property
    def unread(self) -> list[Operation]:
        """What no rule is known for."""
        return self.of("unread")

    @property
    def trunk(self) -> list[Operation]:
        """The residual sums of which each contains the one before: the stream to which branches add."""
        found: list[Operation] = []
        last = len(self.operations) - 1
        reaching = {*self.above(last), last}
        for one in reversed([one for one in self.of("sum") if one.place in reaching]):
            if not found or one.place in self.above(found[-1].place):
                found.append(one)
        return found[::-1]

    def above(self, place: int) -> set[int]:
        """All operations that this one depends on."""
        found: set[int] = set()
        waiting = list(self.operations[place].sources)
        while waiting:
            one = waiting.pop()
            if one not in found:
                found.add(one)
                waiting += self.operations[one].sources
        return found

    def __str__(self) -> str:
        lines = []
        for one in self.operations:
            takes = ", ".join(map(str, one.sources))
            lines.append(f"{one.place:>4}  {one.kind:<13} {one.name} ({one.what}) ← {takes}: {one.moment.mean():.4g}")
        return "\n".join([*lines, *(f"      idle          {name}" for name in self.idle)])


def architecture(model: Model, *, samples: int = 64, slopes: bool = True) -> Architecture:
    """A network's operations, read off one pass over the first samples of its data, and what leaves each of them.

    Linear layers, convolutions, normalizations, activations, residual sums, attention, embeddings, pooling and dropout
    are read, as modules or as functions; what is not is 'unread', and measured like the others. `slopes` measures
    gradients too. The model is not changed.

    >>> import torch
    >>> from deeplimits.measure.adapters import open_model
    >>> class Block(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.inside, self.norm = torch.nn.Linear(4, 4), torch.nn.LayerNorm(4)
    ...     def forward(self, x):
    ...         return x + torch.tanh(self.inside(self.norm(x)))
    >>> net = torch.nn.Sequential(Block(), torch.nn.Linear(4, 2))
    >>> data = np.eye(4, dtype="float32"), np.arange(4) % 2
    >>> found = architecture(open_model(net, torch.nn.CrossEntropyLoss(), data))
    >>> [one.kind for one in found.operations]
    ['input', 'layer norm', 'affine', 'activation', 'sum', 'affine']
    """
    count = arguments.whole("samples", samples, 2)
    batch = next(iter(model.data))
    batch = Batch(cut(batch.inputs, 0, count), cut(batch.targets, 0, count), min(batch.count, count))
    network: Any = model.network
    if hasattr(network, "body"):
        from deeplimits.measure.adapters import torch_graph

        return torch_graph.read(network, batch, slopes)
    if hasattr(network, "programs"):
        from deeplimits.measure.adapters import jax_graph

        return jax_graph.read(network, batch, slopes)
    raise ParameterError("the network is neither a torch.nn.Module nor a JAX function; its operations cannot be read")


class AffineLayer(NamedTuple):
    """An affine layer, an embedding too, with what it takes to see what other weights would do in it."""

    name: str
    parameter: str
    """The name of its weights."""
    shape: tuple[int, int]
    """(outputs, inputs)"""
    leaving: np.ndarray
    times: Any
    """What leaves it with other weights, of the parameter's own shape, and without biases."""
    factor: float
    """By what the network multiplies what leaves it."""


def affine_layers(model: Model) -> list[AffineLayer]:
    """All affine layers of a network on its first batch, each at its first call.

    >>> import jax.numpy as jnp
    >>> from deeplimits.measure.adapters import open_model
    >>> model = open_model(lambda p, x: 0.5 * (x @ p["w"]), lambda z, y: jnp.mean(z**2), (np.eye(2), np.zeros(2)),
    ...                    parameters={"w": jnp.ones((2, 3))})
    >>> found = affine_layers(model)[0]
    >>> found.name, found.shape, round(found.factor, 6)
    ('w', (3, 2), 0.5)
    """
    batch = next(iter(model.data))
    network: Any = model.network
    if hasattr(network, "body"):
        from deeplimits.measure.adapters import torch_graph

        read, seen = torch_graph.affine(network, batch)
    else:
        from deeplimits.measure.adapters import jax_graph

        read, seen = jax_graph.affine(network, batch)
    found: dict[str, AffineLayer] = {}
    for place, one in seen:
        if one.name not in found:
            found[one.name] = one._replace(factor=multiplier(read, place))
    return list(found.values())


def multiplier(read: Architecture, place: int) -> float:
    """By what a result is multiplied before anything else is done with it."""
    factor = 1.0
    while True:
        after = [one for one in read.operations if place in one.sources]
        if len(after) != 1 or after[0].kind != "scale" or len(after[0].sources) != 1:
            return factor
        factor, place = factor * after[0].constants["factor"] ** 0.5, after[0].place


def moments(values: np.ndarray, samples: int) -> np.ndarray:
    """Mean square, for each sample where the first axis counts them; one number for all where it does not."""
    if values.ndim and values.shape[0] == samples:
        return (values.reshape(samples, -1) ** 2).mean(axis=1)
    return np.full(samples, float((values**2).mean()) if values.size else 0.0)


def centre(values: np.ndarray, axis: int) -> float:
    """Share of the squared mean over features (the axis) in the mean square."""
    total = float((values**2).mean()) if values.size else 0.0
    return float((values.mean(axis=axis) ** 2).mean()) / total if total > 0 else 0.0


def chance(values: np.ndarray, width: int, samples: int) -> float:
    """√(2 mean cos²/width): how far a mean square of this many independent neurons may be off, their inputs given.

    Of n neurons, the squared cosines of samples are above those of the kernel by about 1/n, which is taken off.
    """
    rows = (
        values.reshape(samples, -1) if values.ndim and values.shape[0] == samples else values.reshape(-1, width)[:256]
    )
    gram = rows @ rows.T / rows.shape[1]
    total = float(np.trace(gram)) / len(gram)
    if not total > 0:
        return 0.0
    squares = float(np.mean(gram**2))
    own = max(squares - total**2 / width, squares / len(gram)) if width > 1 else squares
    return float(np.sqrt(2 * own / width)) / total
