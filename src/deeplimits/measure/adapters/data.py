"""A source of data: one batch, a list of batches, or any loader that can be read again and again.

A batch is a pair (inputs, targets) or a dictionary in which one entry holds the targets. Samples are counted along the
first axis. What is small enough stays in memory; the rest is read anew on each pass, which must give the same numbers.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from deeplimits.errors import ParameterError
from deeplimits.measure.adapters.randomness import State, disturb, guarded

TARGET_KEYS = ("labels", "label", "targets", "target", "y")
MEMORY = 2**30
"""Bytes of data that are kept in memory."""


class Batch(NamedTuple):
    """Inputs and targets of some samples, as the user's source gives them."""

    inputs: Any
    targets: Any
    count: int


class Data:
    """All samples of a source, batch by batch, in the same order on every pass.

    >>> data = Data((np.ones((5, 2)), np.array([0, 1, 0, 1, 0])), chunk=2)
    >>> data.samples, [batch.count for batch in data]
    (5, [2, 2, 1])
    """

    def __init__(
        self,
        source: Any,
        *,
        split: Callable[[Any], Any] | None = None,
        chunk: int | None = None,
        memory: int = MEMORY,
    ):
        self.notes: list[str] = []
        self.split, self.chunk = split, chunk
        self.source, loaded = _batches(source)
        self.start = None if not loaded else State(self.source)
        kept: list[Any] | None = [] if loaded else None
        held, self.sums, self.counts = 0, [], []
        for raw in self._raw():
            batch = self._batch(raw)
            self.sums.append(summary(batch))
            self.counts.append(batch.count)
            held += sum(array.nbytes for array in arrays(raw)) if kept is not None else 0
            kept = kept if held <= memory else None
            if kept is not None:
                kept.append(raw)
        self.samples = sum(self.counts)
        if not self.samples:
            raise ParameterError("the data are empty: the source gave no batch with a sample in it")
        if not all(np.all(np.isfinite(sums)) for sums in self.sums):
            raise ParameterError("the data hold NaN; remove those samples first")
        if loaded:
            self._compare_passes()
        if kept is not None:
            self.source, self.start = kept, None

    def __iter__(self) -> Iterator[Batch]:
        checked = self.start is not None
        seen = -1
        for seen, raw in enumerate(self._raw()):
            batch = self._batch(raw)
            if checked and (seen >= len(self.sums) or not np.array_equal(summary(batch), self.sums[seen])):
                raise ParameterError(
                    "the loader gave other data on a later pass than on the first, so that results would mix data "
                    "sets; give one without random augmentation, or a list of its batches"
                )
            yield from self._chunks(batch)
        if checked and seen + 1 != len(self.sums):
            raise ParameterError(
                f"the loader gave {seen + 1} batches on a later pass and {len(self.sums)} on the first"
            )

    def _raw(self) -> Iterator[Any]:
        """The source's batches; the generators it uses go on from its own state and are the user's again between."""
        if self.start is None:
            yield from self.source
            return
        inside = self.start
        stream: Any = None
        while True:
            before = State(self.source)
            try:
                inside.restore()
                stream = iter(self.source) if stream is None else stream
                raw = next(stream, _END)
                inside = State(self.source)
            finally:
                before.restore()
            if raw is _END:
                return
            yield raw

    def _compare_passes(self) -> None:
        """Read the source once more from other random numbers, and say what changed."""
        with guarded(source=self.source):
            disturb(1_234_567, source=self.source)
            again = [summary(self._batch(raw)) for raw in self.source]
        if len(again) == len(self.sums) and all(map(np.array_equal, again, self.sums)):
            return
        first, second = np.sum(self.sums, axis=0), np.sum(again, axis=0)
        scale = np.sum(np.abs(self.sums), axis=0) + 1
        if first.shape == second.shape and np.all(np.abs(first - second) <= 1e-8 * scale):
            self.notes.append("the loader shuffles: every pass here repeats the order of the first")
        else:
            self.notes.append(
                "the loader gives other data on a second pass (random augmentation, or batches left out): what is "
                "measured belongs to one pass, repeated"
            )

    def _batch(self, raw: Any) -> Batch:
        inputs, targets = self.split(raw) if self.split is not None else usual_split(raw)
        counted = arrays(targets) or arrays(inputs)
        if not counted or counted[0].ndim == 0:
            raise ParameterError("a batch holds no array with one entry for each sample")
        count = counted[0].shape[0]
        for array in (*arrays(inputs), *arrays(targets)):
            if array.ndim and array.shape[0] != count:
                raise ParameterError(
                    f"a batch has {count} targets and an input of shape {array.shape}; the first axis counts samples"
                )
        return Batch(inputs, targets, int(count))

    def _chunks(self, batch: Batch) -> Iterator[Batch]:
        if self.chunk is None or batch.count <= self.chunk:
            if batch.count:
                yield batch
            return
        for begin in range(0, batch.count, self.chunk):
            end = min(begin + self.chunk, batch.count)
            yield Batch(cut(batch.inputs, begin, end), cut(batch.targets, begin, end), end - begin)


_END = object()


class _Split(NamedTuple):
    inputs: Any
    targets: Any


def usual_split(raw: Any) -> _Split:
    """Inputs and targets of a batch in one of the usual forms."""
    if isinstance(raw, Mapping):
        key = next((key for key in TARGET_KEYS if key in raw), None)
        if key is None:
            raise ParameterError(
                f"a batch has the entries {', '.join(map(str, raw))}; none is called {', '.join(TARGET_KEYS)}: "
                "say with split= what the inputs and the targets are"
            )
        rest = {name: value for name, value in raw.items() if name != key}
        return _Split(next(iter(rest.values())) if len(rest) == 1 else rest, raw[key])
    if isinstance(raw, tuple | list) and len(raw) == 2:
        return _Split(raw[0], raw[1])
    raise ParameterError(
        f"a batch is a {type(raw).__name__}; it must be a pair (inputs, targets) or a dictionary, "
        "or say with split= what its inputs and targets are"
    )


class _Source(NamedTuple):
    batches: Any
    loaded: bool
    """Whether reading it may move generators or give other data."""


def _batches(source: Any) -> _Source:
    if isinstance(source, Mapping) or _is_pair_of_arrays(source):
        return _Source([source], False)
    if isinstance(source, list | tuple):
        return _Source(list(source), False)
    if not isinstance(source, Iterable):
        raise ParameterError(f"data is a {type(source).__name__}; give a batch, a list of batches or a loader")
    if iter(source) is source:
        raise ParameterError("data can be read only once (it is an iterator); give list(data), or the loader itself")
    return _Source(source, True)


def _is_pair_of_arrays(source: Any) -> bool:
    return isinstance(source, tuple | list) and len(source) == 2 and hasattr(source[0], "shape")


def arrays(tree: Any) -> list[Any]:
    """Arrays and tensors in nested lists, tuples and dictionaries."""
    if hasattr(tree, "shape") and hasattr(tree, "dtype"):
        return [tree]
    if isinstance(tree, Mapping):
        return [array for value in tree.values() for array in arrays(value)]
    if isinstance(tree, list | tuple):
        return [array for value in tree for array in arrays(value)]
    return []


def mapped(function: Callable[[Any], Any], tree: Any) -> Any:
    """The same nest with `function` of every array or tensor in it."""
    if hasattr(tree, "shape") and hasattr(tree, "dtype"):
        return function(tree)
    if isinstance(tree, Mapping):
        return {name: mapped(function, value) for name, value in tree.items()}
    if isinstance(tree, list | tuple):
        return type(tree)(mapped(function, value) for value in tree)
    return tree


def cut(tree: Any, begin: int, end: int) -> Any:
    """Samples begin … end−1 of every array."""
    return mapped(lambda array: array[begin:end] if array.ndim else array, tree)


def host(array: Any) -> np.ndarray:
    """An array or tensor as a NumPy array."""
    if hasattr(array, "detach"):
        array = array.detach().cpu()
        if str(array.dtype) == "torch.bfloat16":
            array = array.float()
        return array.numpy()
    return np.asarray(array)


def summary(batch: Batch) -> np.ndarray:
    """Numbers that tell data sets apart, whatever the order of the samples: sums of two functions of each sample."""
    found = np.zeros(2)
    for place, array in enumerate((*arrays(batch.inputs), *arrays(batch.targets))):
        values = host(array)
        if values.ndim == 0 or values.dtype.kind not in "biufc" or not values.size:
            continue
        rows = np.abs(values) if values.dtype.kind == "c" else values
        rows = rows.reshape(len(rows), -1).astype(float)
        # Masks may hold −∞; what is not a number may not be there.
        rows = np.where(np.isinf(rows), np.sign(rows), rows)
        each = rows @ np.cos(1.0 + place + np.arange(rows.shape[1]))
        found += each.sum(), np.cos(each).sum()
    return found
