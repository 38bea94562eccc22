"""Taking a PyTorch module apart: its values copied, its structure copied around them, and what must be said of it."""

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from deeplimits.errors import ParameterError
from deeplimits.measure.adapters.with_torch import Body, TorchNetwork, read


class Opened(NamedTuple):
    """A user's module taken apart, and what must be said of it."""

    network: "TorchNetwork"
    notes: list[str]
    mixes: bool
    """Whether layers use the statistics of a batch."""


def opened(
    module: torch.nn.Module, loss: Callable[[Any, Any], Any], mode: str, precision: str | None, seed: int
) -> Opened:
    """A module with its loss: its values copied, its structure copied around them."""
    parameters = dict(module.named_parameters())
    lazy = [name for name, value in parameters.items() if isinstance(value, torch.nn.parameter.UninitializedParameter)]
    if lazy:
        raise ParameterError(f"the parameters {', '.join(lazy[:6])} have no shape yet; run the module once")
    wanted = None if precision is None else getattr(torch, precision)
    held = read(module, wanted)
    if not held.values:
        raise ParameterError("the network has no parameters")
    notes = []
    for name, value in held.values.items():
        if value.is_complex():
            raise ParameterError(f"the parameter {name} is complex; networks must have real parameters")
        if not value.is_floating_point():
            notes.append(f"the parameter {name} is of type {value.dtype}; it has no derivative and is held fixed")
    trained = {name for name, value in parameters.items() if value.requires_grad}
    names = tuple(name for name in held.values if name in trained)
    if not names:
        raise ParameterError(
            "every parameter of the network is frozen or whole-numbered; name those to vary with select="
        )
    frozen = len(held.values) - len(names)
    if frozen:
        notes.append(f"{frozen} parameters that are frozen in the module are held fixed")
    body = structure(module)
    training = [one for one in module.modules() if one.training]
    body.train(mode == "train")
    mixes = mode == "train" and any(isinstance(one, torch.nn.modules.batchnorm._BatchNorm) for one in body.modules())
    notes += said_of(module, training, mode)
    made = Body(body, module, copied_loss(loss), "mean", wanted, seed)
    return Opened(TorchNetwork(made, held.values, held.buffers, names), notes, mixes)


def structure(module: torch.nn.Module) -> torch.nn.Module:
    """A copy of the module around the same tensors, which are never used: their values are passed in."""
    memo: dict[int, Any] = {id(tensor): tensor for tensor in (*module.parameters(), *module.buffers())}
    try:
        found = copy.deepcopy(module, memo)
    except Exception as error:
        raise ParameterError(
            f"the module cannot be copied ({type(error).__name__}: {error}); it is never run itself, so that "
            "nothing of it changes: take out what deepcopy cannot copy"
        ) from error
    for one in found.modules():
        # They see gradients and cannot change outputs; torch's own would disturb repeated passes.
        one._backward_hooks.clear()
        one._backward_pre_hooks.clear()
    return found


def copied_loss(loss: Any) -> Any:
    """A loss that is a module is copied too: its own buffers (class weights) stay as they are."""
    return structure(loss) if isinstance(loss, torch.nn.Module) else loss


def said_of(module: torch.nn.Module, training: list[torch.nn.Module], mode: str) -> list[str]:
    """What is worth knowing of layers that behave differently in training."""

    def names(kinds: Any) -> str:
        return ", ".join(name for name, one in module.named_modules() if isinstance(one, kinds))

    notes = []
    dropout = names(torch.nn.modules.dropout._DropoutNd)
    norms = names(torch.nn.modules.batchnorm._BatchNorm)
    if mode == "eval" and training and (dropout or norms):
        what = [f"dropout ({dropout}) is off"] * bool(dropout) + [
            f"batch norm ({norms}) uses running statistics"
        ] * bool(norms)
        notes.append(f"the module is in training mode and stays so; measured is evaluation mode: {' and '.join(what)}")
    if mode == "train" and norms:
        notes.append(f"batch norm ({norms}) uses the statistics of each batch; its running ones are not touched")
    if mode == "train" and dropout:
        notes.append(f"dropout ({dropout}) is on, with masks drawn once")
    return notes
