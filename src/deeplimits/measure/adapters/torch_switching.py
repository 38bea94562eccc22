"""The decisions of a PyTorch network, seen operation by operation. Imported only where the user's network is one.

Everything a module does ends in operations of PyTorch's dispatcher. A mode around the pass sees them all: those with
kinks show what they decide on, those that are linear in what depends on the input are let through, and everything else
is refused by its name.
"""

from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from deeplimits.errors import ParameterError
from deeplimits.measure.adapters import torch_opening
from deeplimits.measure.adapters.failures import told
from deeplimits.measure.adapters.switching import NOT_LINEAR, Choices, Chunked, Passed, Signs, Switch, refused
from deeplimits.measure.adapters.torch_tools import array, careful
from deeplimits.measure.adapters.with_torch import Body, TorchNetwork, read

CONSTANT, STEPS, LINEAR = 0, 1, 2
"""How a tensor depends on the input: not, by jumps between constants, or linearly between kinks."""

ONE_THRESHOLD = {"relu", "relu_", "leaky_relu", "leaky_relu_", "abs", "abs_", "_prelu_kernel", "rrelu_with_noise"}
AFFINE = {
    "add", "add_", "sub", "sub_", "rsub", "neg", "neg_", "mean", "sum", "view", "_unsafe_view", "reshape", "permute",
    "transpose", "t", "cat", "stack", "slice", "select", "unsqueeze", "squeeze", "expand", "clone", "detach", "alias",
    "copy_", "as_strided", "avg_pool1d", "avg_pool2d", "avg_pool3d", "_adaptive_avg_pool2d", "_adaptive_avg_pool3d",
    "constant_pad_nd", "upsample_nearest1d", "upsample_nearest2d", "upsample_bilinear2d", "upsample_linear1d",
    "pixel_shuffle", "pixel_unshuffle", "index", "index_select", "_to_copy", "flip", "roll", "repeat", "split",
    "split_with_sizes", "chunk", "unbind", "unfold", "im2col", "col2im", "cumsum", "diagonal", "gather", "contiguous",
    "reflection_pad1d", "reflection_pad2d", "replication_pad2d", "positive", "fill_", "zero_", "slice_scatter",
    "lift_fresh", "tril", "triu",
}  # fmt: skip
PRODUCTS = {
    "mul", "mul_", "mm", "bmm", "addmm", "baddbmm", "mv", "dot", "matmul", "convolution", "_convolution", "addmv",
    "einsum", "linear", "addcmul", "lerp",
}  # fmt: skip
SELECTED = {"where", "masked_fill", "masked_fill_", "index_put", "index_put_"}
NEW = {"empty_like", "zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_empty", "new_full", "size"}
COMPARISONS = {"gt", "ge", "lt", "le"}


def opened(network: torch.nn.Module | TorchNetwork) -> "TorchSwitching":
    """A module, or a network that has been opened, in double precision and evaluation mode (as it was opened)."""
    if isinstance(network, TorchNetwork):
        values, buffers = (_doubled(part) for part in (network.values, network.buffers))
        body = network.body
    else:
        held = read(network, torch.float64)
        values, buffers = _doubled(held.values), _doubled(held.buffers)
        copied = torch_opening.structure(network)
        copied.eval()
        body = Body(copied, network, lambda z, y: z, "mean", torch.float64, 0)
    names = tuple(name for name, value in values.items() if value.is_floating_point())
    if not names:
        raise ParameterError("the network has no parameters")
    for name in names:
        if not torch.all(torch.isfinite(values[name])):
            raise ParameterError(f"the parameter {name} is not finite")
    return TorchSwitching(TorchNetwork(body, values, buffers, names))


def _doubled(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: one.detach().double() if one.is_floating_point() else one for name, one in tensors.items()}


class TorchSwitching(Chunked):
    """A PyTorch network whose decisions can be watched."""

    chunk = 1024

    def __init__(self, network: TorchNetwork):
        self.network = network

    def passed(self, points: np.ndarray, only: int | None) -> Passed:
        x = torch.as_tensor(np.ascontiguousarray(points), dtype=torch.float64, device=self.network.device)
        watch, handles = _Watch(x, only), []
        for name, module in self.network.body.copy.named_modules():
            handles.append(module.register_forward_pre_hook(lambda *_, name=name: watch.within.append(name)))
            handles.append(module.register_forward_hook(lambda *_: watch.leave()))
        try:
            failing = told(f"the network failed on points of shape {points.shape[1:]}", passes=(_Enough,))
            with failing, careful(), torch.no_grad(), watch:
                z = self.network.run({}, x)
        except _Enough:
            return Passed(np.zeros((len(points), 0)), watch.found)
        finally:
            for handle in handles:
                handle.remove()
        return Passed(array(z).reshape(len(points), -1), watch.found)


class _Enough(Exception):
    """The operation that was asked for has run."""


class _Watch(TorchDispatchMode):
    """Looks at every operation on what depends on the input."""

    def __init__(self, x: torch.Tensor, only: int | None):
        super().__init__()
        # Tensors are known by their identity, and kept so that it stays theirs.
        self.kinds: dict[int, int] = {id(x): LINEAR}
        self.kept: list[torch.Tensor] = [x]
        self.written: dict[int, int] = {}
        self.found: list[Switch] = []
        self.only, self.seen, self.samples = only, 0, len(x)
        self.within: list[str] = []
        self.told: dict[str, int] = {}

    def leave(self) -> None:
        """A module has run."""
        self.within.pop()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        tensors = _tensors((args, kwargs))
        kinds = [self._kind(one) for one in tensors]
        top = max(kinds, default=CONSTANT)
        if top == CONSTANT:
            return func(*args, **kwargs)
        name = func._schema.name.removeprefix("aten::")
        kind = self._looked_at(name, args, kwargs, kinds, top)
        found = func(*args, **kwargs)
        for one in _tensors(found):
            if id(one) not in self.kinds:
                self.kept.append(one)
            self.kinds[id(one)] = kind
            if func._schema.is_mutable:
                # What is written into a part of a tensor is in all that share its memory.
                self.written[one.untyped_storage().data_ptr()] = kind
        return found

    def _looked_at(self, name, args, kwargs, kinds, top) -> int:
        """What the result of an operation is; its decisions are noted, and what is not piecewise linear is refused."""
        if name in NEW:
            return CONSTANT
        if name in AFFINE:
            return top
        if name in SELECTED:
            return top
        if name in PRODUCTS:
            if sum(one == LINEAR for one in kinds) > 1 and not self._one_linear_factor(name, args):
                raise refused(f"a product of two such things ({name})")
            return top
        if name in ("div", "div_"):
            if self._kind(args[1]) != CONSTANT:
                raise refused("a division by such a thing")
            return top
        if top == STEPS and name not in COMPARISONS:
            return STEPS
        if name in ("native_batch_norm", "cudnn_batch_norm", "_native_batch_norm_legit"):
            if args[5]:
                raise ParameterError(
                    "the network divides by statistics of what it sees, as batch norm does in training and instance "
                    f"norm always; open it in evaluation mode, or take fixed statistics: {NOT_LINEAR}"
                )
            return LINEAR
        if name == "_native_batch_norm_legit_no_training":
            return LINEAR
        decided = self._decided(name, args, kwargs)
        if decided is None:
            raise refused(name)
        for one in decided:
            if self.only is None or self.seen == self.only:
                self.found.append(one)
            self.seen += 1
            if self.only is not None and self.seen > self.only:
                raise _Enough
        return STEPS if name in (*COMPARISONS, "sign", "argmax", "argmin") else LINEAR

    def _one_linear_factor(self, name, args) -> bool:
        """addmm, baddbmm and lerp have a summand beside their factors; convolutions a bias."""
        if name in ("addmm", "baddbmm", "addmv", "addcmul"):
            return LINEAR not in (self._kind(args[1]), self._kind(args[2])) or CONSTANT in (
                self._kind(args[1]),
                self._kind(args[2]),
            )
        return False

    def _kind(self, value: Any) -> int:
        if not isinstance(value, torch.Tensor):
            return CONSTANT
        known = self.kinds.get(id(value), CONSTANT)
        return max(known, self.written.get(value.untyped_storage().data_ptr(), CONSTANT)) if self.written else known

    def _decided(self, name, args, kwargs) -> list[Switch] | None:
        """What an operation with kinks decides on; None for one that is not known to be piecewise linear."""
        x = args[0]
        if name in ONE_THRESHOLD or name == "sign":
            return [self._signs(name, x)]
        if name in ("threshold", "threshold_"):
            return [self._signs(name, x - args[1])]
        if name == "hardtanh" or name == "hardtanh_":
            low, high = (args[place] if len(args) > place else usual for place, usual in ((1, -1.0), (2, 1.0)))
            return [self._signs(name, x - low, x - high)]
        if name in ("clamp", "clamp_", "clamp_min", "clamp_min_", "clamp_max", "clamp_max_"):
            ends = [*args[1:], kwargs.get("min"), kwargs.get("max")]
            return [self._signs(name, *(x - end for end in ends if end is not None))]
        if name == "softshrink":
            width = args[1] if len(args) > 1 else 0.5
            return [self._signs(name, x - width, x + width)]
        if name == "hardsigmoid" or name == "hardsigmoid_":
            return [self._signs(name, x - 3, x + 3)]
        if name in ("maximum", "minimum", "max", "min", *COMPARISONS) and len(args) > 1 and not _is_axis(name, args):
            return [self._signs(name, x - args[1])]
        if name == "max_pool2d_with_indices" or name == "max_pool3d_with_indices":
            return [self._pooled(name, x, getattr(torch.ops.aten, name)(*args, **kwargs)[1], 2 if "2d" in name else 3)]
        if name == "adaptive_max_pool2d":
            return [self._pooled(name, x, torch.ops.aten.adaptive_max_pool2d(*args, **kwargs)[1], 2)]
        if name in ("amax", "amin", "max", "min", "argmax", "argmin"):
            return [self._largest(name, -x if "min" in name else x, *args[1:2])]
        return None

    def _signs(self, name: str, *parts: torch.Tensor) -> Signs:
        wide = [one.expand(self.samples, *one.shape[1:]) if one.shape[0] == 1 else one for one in parts]
        return Signs(self._named(name), np.concatenate([array(one).reshape(self.samples, -1) for one in wide], axis=1))

    def _pooled(self, name: str, x: torch.Tensor, indices: torch.Tensor, axes: int) -> Choices:
        if x.ndim != axes + 2 or len(x) != self.samples:
            raise refused(f"{name} on an input without an axis of channels")
        inside = int(np.prod(x.shape[2:]))
        flat = indices.reshape(self.samples, x.shape[1], -1) + inside * torch.arange(x.shape[1])[None, :, None]
        return Choices(
            self._named(name), array(x).reshape(self.samples, -1).copy(), flat.reshape(self.samples, -1).cpu().numpy()
        )

    def _largest(self, name: str, x: torch.Tensor, axes: Any = None) -> Choices:
        given = [axes] if isinstance(axes, int) else list(axes or range(1, x.ndim))
        wanted = {axis % x.ndim for axis in given}
        if 0 in wanted or len(x) != self.samples:
            raise refused(f"{name} over the samples")
        kept = [axis for axis in range(1, x.ndim) if axis not in wanted]
        values = np.moveaxis(array(x), [0, *kept], range(1 + len(kept)))
        rows = values.reshape(self.samples, int(np.prod([x.shape[axis] for axis in kept])), -1)
        places = rows.argmax(axis=2) + rows.shape[2] * np.arange(rows.shape[1])
        return Choices(self._named(name), rows.reshape(self.samples, -1).copy(), places)

    def _named(self, operation: str) -> str:
        """Where in the module it happens, and what."""
        place = self.within[-1] if self.within else ""
        name = f"{place}: {operation.strip('_')}" if place else operation.strip("_")
        # A module may apply the same function twice; the second time says so.
        self.told[name] = self.told.get(name, 0) + 1
        return name if self.told[name] == 1 else f"{name} ({self.told[name]})"


def _is_axis(name: str, args: Any) -> bool:
    return name in ("max", "min") and not isinstance(args[1], torch.Tensor)


def _tensors(tree: Any) -> list[torch.Tensor]:
    if isinstance(tree, torch.Tensor):
        return [tree]
    if isinstance(tree, dict):
        return [one for part in tree.values() for one in _tensors(part)]
    if isinstance(tree, list | tuple):
        return [one for part in tree for one in _tensors(part)]
    return []
