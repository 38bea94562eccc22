"""What passes through the layers of a PyTorch network, forwards and backwards. Imported only where there is one."""

from typing import Any

import numpy as np
import torch

from deeplimits.measure.adapters.data import Batch
from deeplimits.measure.adapters.passages import Passage
from deeplimits.measure.adapters.torch_tools import array, careful
from deeplimits.measure.adapters.with_torch import TorchNetwork

AFFINE = (torch.nn.Linear, torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d)


def passages(network: TorchNetwork, batch: Batch) -> list[Passage]:
    """All affine layers in the order in which the network calls them."""
    seen: list[tuple[str, torch.nn.Module, torch.Tensor, torch.Tensor]] = []
    calls: dict[str, int] = {}

    def remember(name: str):
        def hook(module: torch.nn.Module, given: Any, left: torch.Tensor) -> None:
            calls[name] = calls.get(name, 0) + 1
            if calls[name] == 1:
                seen.append((name, module, given[0], left))

        return hook

    modules = dict(network.body.copy.named_modules())
    handles = [
        module.register_forward_hook(remember(name)) for name, module in modules.items() if isinstance(module, AFFINE)
    ]
    try:
        with careful(), torch.enable_grad():
            leaves = {name: value.detach().requires_grad_() for name, value in network.values.items()}
            z = network.run(leaves, network.ready(batch.inputs))
            total = batch.count * network.total(z, network.ready(batch.targets), 1.0, None)
            lefts = [left for *_, left in seen]
            slopes = torch.autograd.grad(total, lefts, allow_unused=True) if lefts else ()
    finally:
        for handle in handles:
            handle.remove()
    return [
        _passage(network, name, module, given, left, slope, calls[name] > 1)
        for (name, module, given, left), slope in zip(seen, slopes, strict=True)
        if _held(network, name, module, "weight") is not None
    ]


def _held(network: TorchNetwork, name: str, module: Any, what: str) -> torch.Tensor | None:
    """A layer's parameter: its own, or that of another layer with which it is shared; None where it is computed."""
    key = f"{name}.{what}" if name else what
    if key in network.values:
        return network.values[key]
    own = getattr(module, what, None)
    shared = (other for other, value in network.body.copy.named_parameters() if value is own)
    return network.values.get(next(shared, ""))


def _passage(
    network: TorchNetwork,
    name: str,
    module: Any,
    given: torch.Tensor,
    left: torch.Tensor,
    slope: torch.Tensor | None,
    repeated: bool,
) -> Passage:
    held, bias = (_held(network, name, module, what) for what in ("weight", "bias"))
    assert held is not None
    weight = held.detach()
    return Passage(
        name or "weight",
        type(module).__name__,
        array(given),
        array(left),
        None if slope is None else array(slope),
        array(weight).reshape(weight.shape[0], -1),
        None if bias is None else array(bias),
        array(_power(module, given.detach(), weight)),
        repeated,
        _times(module, given.detach()),
    )


def _times(module: Any, given: torch.Tensor):
    def with_weights(values: np.ndarray) -> np.ndarray:
        other = torch.as_tensor(values, dtype=given.dtype, device=given.device)
        with torch.no_grad():
            if isinstance(module, torch.nn.Linear):
                return array(given @ other.T)
            return array(module._conv_forward(given, other, None))

    return with_weights


def _power(module: Any, given: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Σ x² over the taps of an output, over the fan-in, a mean over positions: zeros of the padding count as zeros."""
    fan_in = weight[0].numel()
    if isinstance(module, torch.nn.Linear):
        return (given**2).mean(dim=-1).reshape(given.shape[0], -1).mean(dim=1)
    with torch.no_grad():
        squares = module._conv_forward(given**2, torch.ones_like(weight), None)
    return squares.reshape(squares.shape[0], -1).mean(dim=1) / fan_in
