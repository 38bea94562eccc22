"""Small things that a PyTorch network needs: careful kernels, counting of bytes, conversions."""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

from deeplimits.errors import ParameterError
from deeplimits.measure.adapters.data import arrays


class Counted(TorchDispatchMode):
    """Bytes of all that is computed inside: at least what a graph keeps."""

    def __init__(self):
        super().__init__()
        self.bytes, self.seen = 0, set()


def _counting(self: Counted, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    found = func(*args, **(kwargs or {}))
    for one in arrays(found if isinstance(found, list | tuple) else [found]):
        if type(one) is torch.Tensor:
            with contextlib.suppress(RuntimeError, NotImplementedError):
                storage = one.untyped_storage()
                if storage.data_ptr() not in self.seen:
                    self.seen.add(storage.data_ptr())
                    self.bytes += storage.nbytes()
    return found


# What stands in the class itself is wrapped by PyTorch, and the wrapper loads its compiler: a second of the processor.
Counted.__torch_dispatch__ = _counting


@contextlib.contextmanager
def careful() -> Iterator[None]:
    """Kernels that can be differentiated twice, and no mode of the user's around them."""
    with torch.inference_mode(False), sdpa_kernel(SDPBackend.MATH), torch.backends.cudnn.flags(enabled=False):
        yield


def array(tensor: torch.Tensor) -> np.ndarray:
    """A tensor as a float64 array."""
    return tensor.detach().to("cpu", torch.float64).numpy()


def joined(tensors: Any) -> np.ndarray:
    """Tensors as one flat float64 vector: one copy from the device."""
    flat = torch.cat([tensor.detach().reshape(-1) for tensor in tensors])
    return flat.cpu().to(torch.float64).numpy()


def the_tensor(found: Any) -> torch.Tensor:
    """The outputs in what a module returns: a tensor, or the logits of the usual named results."""
    if isinstance(found, torch.Tensor):
        return found
    logits = found.get("logits") if isinstance(found, Mapping) else getattr(found, "logits", None)
    if isinstance(logits, torch.Tensor):
        return logits
    raise ParameterError(
        f"the module returns a {type(found).__name__}; wrap it so that it returns one tensor of outputs"
    )


def last_linear(module: torch.nn.Module) -> str:
    """The name of the last linear layer."""
    names = [name for name, one in module.named_modules() if isinstance(one, torch.nn.Linear)]
    if not names:
        raise ParameterError("the module has no linear layer; say which layer= is meant")
    return names[-1]


convolved: Any = torch.convolution


def means_over_taps(args: Any) -> Any:
    """Means over the taps of a convolution; None where not all inputs enter all outputs."""
    given, weight, layout, groups = args[0], args[1], args[3:6], args[8]
    if groups != 1 or args[6]:
        return None
    places, kernel = tuple(given.shape[2:]), tuple(weight.shape[2:])

    def spread(maps: np.ndarray) -> np.ndarray | None:
        if maps.shape[1] != int(np.prod(places)):
            return None
        x = torch.as_tensor(maps).reshape(-1, 1, *places)
        ones = torch.full((1, 1, *kernel), 1 / int(np.prod(kernel)), dtype=x.dtype)
        with torch.no_grad():
            return array(convolved(x, ones, None, *layout, False, [0] * len(places), 1)).reshape(len(maps), -1)

    return spread
