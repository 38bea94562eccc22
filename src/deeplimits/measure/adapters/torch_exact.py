"""Outputs of a float32 module to float64's accuracy, at the cost of one pass forwards.

A loss that is nearly zero at most samples hangs on what its outputs have beyond float32: a rounding of the logits moves
1 − p, and with it eigenvalues of the Hessian by 1e-7. So a float32 module is run once in float64 as well, without a
graph; the difference is added to its outputs as a constant, and the loss and its derivatives in the outputs are taken
in float64. Products with the network's Jacobian stay in float32, where roundings of many samples average out.
"""

import copy
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from deeplimits.measure.adapters.data import Batch, mapped
from deeplimits.measure.adapters.torch_tools import careful

if TYPE_CHECKING:
    from deeplimits.measure.adapters.with_torch import TorchNetwork

ROUNDING = 1e-3
"""Outputs in float64 that are further away than this, relative to the largest, are not those of the same network."""


def doubled(tree: Any) -> Any:
    """Tensors with the real ones in float64."""
    return mapped(lambda tensor: tensor.double() if tensor.is_floating_point() else tensor, tree)


def settled(network: "TorchNetwork", batch: Batch) -> "TorchNetwork":
    """The network with its loss in float64 where that works; on a processor, since many accelerators lack float64."""
    kinds = {value.dtype for value in network.values.values() if value.is_floating_point()}
    if network.body.precision is not None or kinds != {torch.float32} or network.device.type != "cpu":
        return network
    loss = network.body.loss
    if isinstance(loss, torch.nn.Module):  # its own buffers, such as weights of classes, come along
        loss = copy.deepcopy(loss).double()
    tried = network.with_body(network.body._replace(loss=loss, exact=True))
    try:
        found, plain = tried.raw_loss(batch), network.raw_loss(batch)
    except Exception:  # a loss that insists on float32; what else is wrong with it is said later
        return network
    same = found.shape == plain.shape and np.allclose(found, plain, rtol=1e-3, atol=1e-5)
    return tried if same else network


def correction(network: "TorchNetwork", z: torch.Tensor, x: Any) -> torch.Tensor | float:
    """What float32's outputs z miss; 0 where the module insists on float32 or draws other numbers in float64."""
    try:
        with careful(), torch.no_grad():
            gap = network.doubled().run({}, doubled(x)) - z.double()
    except Exception:
        return 0.0
    near = bool(torch.isfinite(gap).all()) and float(gap.abs().max()) <= ROUNDING * float(z.detach().abs().max())
    return gap if near else 0.0
