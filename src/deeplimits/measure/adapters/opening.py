"""Opening a user's network: what framework it is of, what its loss does with a batch, and what must be said of it."""

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from deeplimits.errors import ParameterError
from deeplimits.measure.adapters import data as sources
from deeplimits.measure.adapters.data import Batch, Data, arrays, cut
from deeplimits.measure.adapters.failures import told
from deeplimits.measure.adapters.layout import Patterns
from deeplimits.measure.adapters.model import Model
from deeplimits.measure.adapters.network import Network
from deeplimits.measure.adapters.randomness import guarded

LOOKED_AT = 64
"""Samples of the first batch on which a network and its loss are tried."""


def open_model(
    network: Any,
    loss: Callable[[Any, Any], Any],
    data: Any,
    *,
    parameters: Any = None,
    select: Patterns | None = None,
    split: Callable[[Any], Any] | None = None,
    chunk: int | None = None,
    mode: str = "eval",
    precision: str | None = None,
    memory: int = sources.MEMORY,
    seed: int = 0,
) -> Model:
    """A network of PyTorch, of JAX or of this house, with its loss and data, ready for every instrument.

    `network` is a `torch.nn.Module`; a JAX function apply(parameters, x) or an object with such a method (flax,
    `WideNetwork`) together with its `parameters`; or an equinox module, written for one sample. `loss(outputs,
    targets)` gives one number for a batch, its mean or its sum, or one number for each sample. `data` is a batch
    (inputs, targets) or a dictionary with an entry 'labels' or 'targets', a list of batches, or a loader;
    `split(batch)` says otherwise what inputs and targets are.

    `select` varies only the parameters of these names (shell patterns, or names of layers). Batches are cut into pieces
    of at most `chunk` samples; up to `memory` bytes of data are kept. PyTorch modules are measured in evaluation mode
    unless `mode` is 'train' (random layers then keep the masks drawn from `seed`), and networks in their own precision
    unless `precision` is 'float64' or 'float32'. Of a network in float32 on a processor the outputs and the loss are
    taken in float64 all the same, which costs one more pass forwards; with precision='float32' they are not.

    Nothing of the user's is changed: not the parameters, gradients, buffers, mode or hooks, nor any generator of random
    numbers. What is worth knowing stands in `notes` of the model.

    >>> import jax.numpy as jnp
    >>> model = open_model(lambda w, x: x @ w, lambda z, y: (z - y) ** 2, (np.ones((3, 2)), np.ones(3)),
    ...                    parameters=jnp.zeros(2))
    >>> model.losses().tolist()
    [1.0, 1.0, 1.0]
    """
    if mode not in ("eval", "train"):
        raise ParameterError(f"mode = {mode!r} is not allowed; it must be 'eval' or 'train'")
    if precision not in (None, "float32", "float64"):
        raise ParameterError(f"precision = {precision!r} is not allowed; it must be 'float32' or 'float64'")
    with guarded(source=data):
        source = Data(data, split=split, chunk=chunk, memory=memory)
        opened = _opened(network, loss, parameters, mode, precision, seed)
        found = opened.network
        if select is not None:
            found = found.varying(found.everything.chosen(select))
        notes = [*source.notes, *opened.notes]
        first = _shortened(next(iter(source)))
        outputs = _tried(found, first)
        found = found.settled(first)
        random = _randomness(found, first, outputs, seed)
        notes += random
        loss_is = _loss(found, first)
        notes += loss_is.notes
        found = found.with_reduction(loss_is.reduction)
        # Masks drawn for a batch of another length are others, which does not couple samples.
        mixed = opened.mixes or (not random and _mixes(found, first, outputs))
        if mixed:
            notes.append(
                "outputs depend on the other samples of a batch (batch statistics): each batch is measured whole"
            )
            if chunk is not None:
                raise ParameterError(
                    "chunk is not allowed here: the outputs of a sample depend on the rest of its batch"
                )
        _differentiable(found, first)
    return Model(found, source, tuple(notes), separable=not mixed and loss_is.reduction != "batch")


class _Opened(NamedTuple):
    network: Network
    notes: list[str]
    mixes: bool


def _opened(network: Any, loss: Any, parameters: Any, mode: str, precision: str | None, seed: int) -> _Opened:
    if not callable(loss):
        raise ParameterError(f"loss is a {type(loss).__name__}; it must be a function of outputs and targets")
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(network, torch.nn.Module):
        from deeplimits.measure.adapters import torch_opening

        made = torch_opening.opened(network, loss, mode, precision, seed)
        return _Opened(made.network, made.notes, made.mixes)
    from deeplimits.measure.adapters import with_jax

    if not callable(network) and not hasattr(network, "apply"):
        raise ParameterError(
            f"the network is a {type(network).__name__}; give a torch.nn.Module, a JAX function of parameters and "
            "inputs, or an object with such an apply"
        )
    taken = with_jax.opened(network, loss, parameters, precision=precision)
    return _Opened(taken.network, taken.notes, False)


def _shortened(batch: Batch) -> Batch:
    count = min(batch.count, LOOKED_AT)
    return Batch(cut(batch.inputs, 0, count), cut(batch.targets, 0, count), count)


def _tried(network: Network, batch: Batch) -> np.ndarray:
    values = network.vector()
    if not np.all(np.isfinite(values)):
        named = network.layout.named(values)
        broken = [name for name, part in named.items() if not np.all(np.isfinite(part))]
        raise ParameterError(f"the parameters are not finite: {', '.join(broken[:6])}")
    with told("the network failed on the first batch"):
        outputs = network.evaluate(batch)
    if outputs.ndim == 0 or outputs.shape[0] != batch.count:
        raise ParameterError(
            f"the outputs have shape {outputs.shape} for {batch.count} samples; the first axis must count samples"
        )
    if not np.all(np.isfinite(outputs)):
        raise ParameterError("the outputs on the first batch are NaN or infinite")
    return outputs


def _randomness(network: Network, batch: Batch, outputs: np.ndarray, seed: int) -> list[str]:
    if np.array_equal(network.evaluate(batch, seed + 1), network.evaluate(batch, seed)):
        return []
    again = network.evaluate(batch, seed)
    if not np.allclose(again, network.evaluate(batch, seed), rtol=1e-4, atol=1e-5):
        raise ParameterError("the network gives other outputs each time, and no seed can hold it still")
    return [
        f"the network is random (dropout, or noise of its own): what is measured belongs to the masks of seed {seed}"
    ]


class _Loss(NamedTuple):
    reduction: str
    notes: list[str]


def _loss(network: Network, batch: Batch) -> _Loss:
    """What the user's loss does with a batch, found by trying it on one sample at a time."""
    with told("the loss failed on the first batch"):
        value = network.raw_loss(batch)
    if not np.all(np.isfinite(value)):
        raise ParameterError("the loss on the first batch is NaN or infinite")
    if value.shape == (batch.count,) and (batch.count > 1 or value.ndim):
        return _Loss("none", [])
    if value.size != 1:
        raise ParameterError(
            f"the loss has shape {value.shape}; it must be one number, or one for each of the {batch.count} samples"
        )
    unsplit = "the loss is neither the mean nor the sum of the losses of single samples: each batch is measured whole"
    try:
        each = network.single_losses(batch)
    except Exception:
        return _Loss("batch", [unsplit])
    value, tolerance = float(value.reshape(())), 1e-4 if str(value.dtype) == "float32" else 1e-9
    scale = tolerance * (np.abs(each).mean() + abs(value) + 1e-12)
    if abs(each.mean() - value) <= scale:
        return _Loss("mean", [])
    if abs(each.sum() - value) <= batch.count * scale:
        return _Loss("sum", ["the loss is a sum over the batch: what is measured belongs to the mean over samples"])
    return _Loss("batch", [unsplit])


def _mixes(network: Network, batch: Batch, outputs: np.ndarray) -> bool:
    """Whether a sample's outputs change when the batch is cut."""
    half = batch.count // 2
    if not half or not arrays(batch.inputs):
        return False
    try:
        part = network.evaluate(Batch(cut(batch.inputs, 0, half), cut(batch.targets, 0, half), half))
    except Exception:
        return True
    scale = np.abs(outputs).max() + 1e-12
    gaps = np.abs(part - outputs[:half]).reshape(half, -1).max(axis=1)
    return bool(np.median(gaps) > 1e-4 * scale)


def _differentiable(network: Network, batch: Batch) -> None:
    """Errors where the loss is flat in the outputs or the gradient is not finite."""
    flat = (
        "the loss has no derivative in the outputs (it is locally constant or detached from them): nothing to measure"
    )
    with told("the loss or the network cannot be differentiated"):
        piece = network.piece(batch, 1.0)
        z = piece.outputs()
        bent = piece.bend(np.cos(np.arange(z.size) + 1.0).reshape(z.shape))
        gradient = piece.gradient()
        flat_everywhere = not np.any(bent) and not np.any(piece.slopes() if network.reduction != "batch" else gradient)
    if not np.all(np.isfinite(gradient)):
        named = network.layout.named(gradient)
        broken = [name for name, part in named.items() if not np.all(np.isfinite(part))]
        raise ParameterError(f"the gradient of the first batch is NaN or infinite in {', '.join(broken[:6])}")
    if flat_everywhere:
        raise ParameterError(flat)
