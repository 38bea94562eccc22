"""A user's network with its loss and data, as every instrument takes it."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from deeplimits.errors import ParameterError
from deeplimits.measure.adapters.data import Batch, Data, arrays, host, mapped
from deeplimits.measure.adapters.layout import Layout, Patterns
from deeplimits.measure.adapters.network import Network, Piece


class Model:
    """L(θ) = (1/N) Σ_i l(f(θ, x_i), y_i) at fixed parameters, with its derivatives; made by `open_model`.

    Vectors are flat, in float64, in the order of `names`. A model is a snapshot: what happens to the user's network
    afterwards does not change it; `now` takes a new one.

    >>> import jax.numpy as jnp
    >>> from deeplimits.measure.adapters import open_model
    >>> model = open_model(lambda w, x: x @ w["w"], lambda z, y: jnp.mean((z - y) ** 2) / 2,
    ...                    (np.eye(2), np.array([1.0, 0.0])), parameters={"w": jnp.zeros(2)})
    >>> model.names, model.samples, model.loss()
    (('w',), 2, 0.25)
    >>> model.hessian_product([1.0, 0.0]).tolist()
    [0.5, 0.0]
    """

    def __init__(self, network: Network, data: Data, notes: tuple[str, ...] = (), separable: bool = True):
        self.network, self.data, self.notes = network, data, notes
        self.separable = separable
        """Whether the loss is a sum over samples: not with batch statistics, nor with losses that mix samples."""

    def __repr__(self) -> str:
        lines = [f"Model of {self.size:,} parameters in {len(self.layout.layers)} layers, {self.samples:,} samples"]
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])

    @property
    def layout(self) -> Layout:
        """Names and shapes of the varied parameters."""
        return self.network.layout

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the varied parameters."""
        return self.layout.names

    @property
    def layers(self) -> dict[str, tuple[str, ...]]:
        """Names by layer."""
        return self.layout.layers

    @property
    def size(self) -> int:
        """How many parameters are varied."""
        return self.layout.size

    @property
    def samples(self) -> int:
        """How many samples the data have."""
        return self.data.samples

    @property
    def vector(self) -> np.ndarray:
        """The varied parameters, flat."""
        return self.network.vector()

    @property
    def parameters(self) -> dict[str, np.ndarray]:
        """The varied parameters by name."""
        return self.layout.named(self.vector)

    def at(self, parameters: Mapping[str, Any] | Any) -> "Model":
        """The same network at other parameters, given by name or as a flat vector."""
        return Model(self.network.at(self.layout.flat(parameters)), self.data, self.notes, self.separable)

    def now(self) -> "Model":
        """A new snapshot of the user's network, whose parameters may have been trained since."""
        return Model(self.network.now(), self.data, self.notes, self.separable)

    def select(self, patterns: Patterns) -> "Model":
        """The same network with only these parameters varied, all others held at their values."""
        names = self.network.everything.chosen(patterns)
        return Model(self.network.varying(names), self.data, self.notes, self.separable)

    def on(self, source: Any, **options: Any) -> "Model":
        """The same network on other data; `options` as in `open_model`."""
        return Model(self.network, Data(source, **options), self.notes, self.separable)

    def pieces(self, weights: np.ndarray | None = None) -> Iterator[Piece]:
        """The data in pieces whose F add up to L, or to Σ_i w_i l_i with one weight for each sample."""
        if weights is not None:
            self.require_separable("weights of samples")
            weights = np.asarray(weights, float)
            if weights.shape != (self.samples,):
                raise ParameterError(f"weights has shape {weights.shape}; it must have shape ({self.samples},)")
        begin = 0
        for batch in self.data:
            end = begin + batch.count
            given = None if weights is None else weights[begin:end]
            if given is None or np.any(given):
                yield self.network.piece(batch, batch.count / self.samples, given)
            begin = end

    def require_separable(self, what: str) -> None:
        """An error where the loss is no sum over samples."""
        if not self.separable:
            raise ParameterError(
                f"{what} need a loss that is a sum over samples; here samples of a batch are mixed (batch statistics "
                "in training mode, or a loss that is neither the mean nor the sum of its samples)"
            )

    def loss(self) -> float:
        """L, the mean over all samples."""
        return float(sum(piece.loss() for piece in self.pieces()))

    def losses(self) -> np.ndarray:
        """The loss of every sample."""
        self.require_separable("losses of samples")
        return np.concatenate([piece.losses() for piece in self.pieces()])

    def outputs(self) -> np.ndarray:
        """The outputs at all samples, shape (N, ...)."""
        return np.concatenate([piece.outputs() for piece in self.pieces()])

    def gradient(self) -> np.ndarray:
        """∇L."""
        return self._summed(piece.gradient() for piece in self.pieces())

    def hessian_product(self, vector: Any) -> np.ndarray:
        """∇²L v."""
        v = self.layout.flat(vector)
        return self._summed(piece.hessian(v) for piece in self.pieces())

    def gauss_newton_product(self, vector: Any) -> np.ndarray:
        """Jᵀ(∂²L/∂z²)J v."""
        v = self.layout.flat(vector)
        return self._summed(piece.pull(piece.bend(piece.push(v))) for piece in self.pieces())

    def jacobian_product(self, vector: Any) -> np.ndarray:
        """J v, of the shape of the outputs (N, ...)."""
        v = self.layout.flat(vector)
        return np.concatenate([piece.push(v) for piece in self.pieces()])

    def jacobian_transpose_product(self, directions: Any) -> np.ndarray:
        """Jᵀ u for u of the shape of the outputs."""
        u, total, begin = np.asarray(directions, float), np.zeros(self.size), 0
        for piece in self.pieces():
            total += piece.pull(u[begin : begin + piece.count])
            begin += piece.count
        return total

    def by_label(self, size: int = 256) -> Iterator["OfOneLabel"]:
        """The samples of one class after another, `size` at a time; short ones are filled up with idle samples."""
        self.require_separable("samples taken class by class")
        values, shape = np.array(self.classes()), min(size, int(np.bincount(self.labels()).max()))
        waiting: dict[int, list[Batch]] = {}
        for batch in self.data:
            found = np.searchsorted(values, labels_of(batch))
            for label in np.unique(found).tolist():
                held = waiting.setdefault(label, [])
                held.append(taken(batch, np.flatnonzero(found == label)))
                while sum(one.count for one in held) >= shape:
                    whole = joined(held)
                    yield OfOneLabel(label, taken(whole, np.arange(shape)), shape)
                    held[:] = [taken(whole, np.arange(shape, whole.count))] if whole.count > shape else []
        for label, held in sorted(waiting.items()):
            if held:
                whole = joined(held)
                filled = taken(whole, np.resize(np.arange(whole.count), shape))
                yield OfOneLabel(label, filled, whole.count)

    def _summed(self, parts: Iterator[np.ndarray]) -> np.ndarray:
        total = np.zeros(self.size)
        for part in parts:
            total += part
        if not np.all(np.isfinite(total)):
            raise ParameterError(f"the derivatives are not finite in {', '.join(self.broken(total)[:6])}")
        return total

    def broken(self, vector: np.ndarray) -> list[str]:
        """Names of the parameters at which a flat vector is not finite."""
        return [name for name, part in self.layout.named(vector).items() if not np.all(np.isfinite(part))]

    def labels(self) -> np.ndarray:
        """The class of every sample, as an index into `classes`."""
        values = np.array(self.classes())
        return np.concatenate([np.searchsorted(values, labels_of(batch)) for batch in self.data])

    def classes(self) -> list[Any]:
        """All values a label can take: as many as outputs, or those that occur where there is one output.

        A class that no sample has is an error: what is measured by class would have no value there.
        """
        found = np.unique(np.concatenate([labels_of(batch) for batch in self.data]))
        batch = next(iter(self.data))
        shape = self.network.evaluate(batch).shape
        if len(shape) == 2 and shape[1] > 1:
            missing = sorted(set(range(shape[1])) - set(found.astype(int).tolist()))
            if missing:
                raise ParameterError(
                    f"no sample has the label {', '.join(map(str, missing))}, though there are {shape[1]} outputs; "
                    "every class needs a sample"
                )
            if len(found) > shape[1]:
                raise ParameterError(f"labels go up to {found[-1]:g}, but the network has {shape[1]} outputs")
            return list(range(shape[1]))
        if len(found) < 2:
            raise ParameterError(f"all samples have the label {found[0]:g}; at least two classes are needed")
        return found.tolist()


class OfOneLabel(NamedTuple):
    """Samples of one class; those after the first `used` are idle repetitions."""

    label: int
    batch: Batch
    used: int


def taken(batch: Batch, places: np.ndarray) -> Batch:
    """The samples at these places."""

    def pick(array: Any) -> Any:
        return host(array)[places] if array.ndim else array

    return Batch(mapped(pick, batch.inputs), mapped(pick, batch.targets), len(places))


def joined(batches: list[Batch]) -> Batch:
    """Batches of one structure, one after another."""

    def together(parts: list[Any]) -> Any:
        first = parts[0]
        if hasattr(first, "shape"):
            return np.concatenate(parts) if first.ndim else first
        if isinstance(first, Mapping):
            return {name: together([part[name] for part in parts]) for name in first}
        if isinstance(first, list | tuple):
            return type(first)(together(list(part)) for part in zip(*parts, strict=True))
        return first

    count = sum(batch.count for batch in batches)
    return Batch(together([batch.inputs for batch in batches]), together([batch.targets for batch in batches]), count)


def labels_of(batch: Batch) -> np.ndarray:
    """One label for each sample of a batch, from whole numbers or from one-hot rows."""
    held = arrays(batch.targets)
    if len(held) != 1:
        raise ParameterError("there are no classes here: the targets are not one array of labels")
    y = host(held[0])
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim == 1 and np.all(y == np.round(y)):
        return y
    if y.ndim == 2 and np.all((y == 0) | (y == 1)) and np.all(y.sum(axis=1) == 1):
        return np.argmax(y, axis=1)
    raise ParameterError(
        f"there are no classes here: targets of shape {y.shape} are neither whole numbers nor one-hot rows"
    )
