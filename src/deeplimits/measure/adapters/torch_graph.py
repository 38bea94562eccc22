"""The operations of a PyTorch network, recorded where PyTorch computes them. Imported only where there is one."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from deeplimits.measure.adapters.architecture import AffineLayer, Architecture, Operation, centre, chance, moments
from deeplimits.measure.adapters.data import Batch, arrays
from deeplimits.measure.adapters.pairs import pairs
from deeplimits.measure.adapters.signals import named
from deeplimits.measure.adapters.torch_tools import array, careful, convolved, means_over_taps
from deeplimits.measure.adapters.with_torch import TorchNetwork

ACTIVATIONS = {
    "relu": "relu", "tanh": "tanh", "gelu": "gelu", "silu": "swish", "sigmoid": "sigmoid", "erf": "erf", "sin": "sin",
    "abs": "abs", "softplus": "softplus", "cos": "cos",
}  # fmt: skip
UNNAMED = {
    "elu", "hardtanh", "mish", "hardswish", "hardsigmoid", "celu", "log_sigmoid_forward", "exp", "pow", "square",
    "rrelu_with_noise", "clamp", "clamp_min", "threshold", "softsign", "sqrt", "log", "rsqrt", "reciprocal", "neg",
}  # fmt: skip
"""Entry by entry, but without a name in the house."""
MOVES = {
    "view", "_unsafe_view", "reshape", "transpose", "t", "permute", "clone", "contiguous", "expand", "select", "slice",
    "unsqueeze", "squeeze", "split", "split_with_sizes", "chunk", "unbind", "detach", "alias", "_to_copy", "lift_fresh",
    "as_strided", "flatten", "_reshape_alias", "constant_pad_nd", "copy_", "unfold", "index", "gather", "roll", "flip",
    "index_select", "repeat", "masked_fill", "tril", "triu",
}  # fmt: skip
POOLING = (
    "max_pool", "avg_pool", "adaptive_", "mean", "sum", "amax", "max", "logsumexp", "cumsum", "var_mean", "upsample",
)  # fmt: skip
SOFTMAX = {"_softmax", "_safe_softmax"}
TOKENS = ("sum", "embedding", "shift")
COMPARED = ("affine", "activation", "sum")
"""Where pairs of samples have an error."""
KEPT = 8
"""Samples of which tokens are kept."""


class Recorder(TorchDispatchMode):
    """Notes every operation; results are known again by the memory they stand in, so that views need no entry."""

    def __init__(self, network: TorchNetwork, samples: int):
        super().__init__()
        self.samples = samples
        self.operations: list[Operation] = []
        self.results: list[torch.Tensor] = []
        self.held: list[Any] = []
        """Everything that was computed: freed memory would be given to others."""
        self.where: dict[int, int] = {}
        self.fixed: dict[int, str] = {}
        self.inside: list[str] = [""]
        self.softmax: set[int] = set()
        self.shapes = {name: tuple(value.shape) for name, value in network.values.items()}
        self.strides = {name: tuple(value.stride()) for name, value in network.values.items()}
        self.affine: list[tuple[int, AffineLayer]] = []
        self.dropping = {name for name, one in network.body.copy.named_modules() if _drops(one)}
        for name, value in (*network.values.items(), *network.buffers.items()):
            self.fixed[_memory(value)] = name

    def given(self, tensor: torch.Tensor) -> None:
        """An input of the network."""
        self._add("input", "data", "tokens" if not tensor.is_floating_point() else "data", (), tensor, {}, tensor)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        result = found if isinstance(found, torch.Tensor) else next(_tensors(found), None)
        self.held.append(found)
        if result is not None and result.numel():
            self._note(func, args, kwargs or {}, result, found)
        return found

    def _note(self, func: Any, args: Any, kwargs: Any, result: torch.Tensor, found: Any) -> None:
        word = func.overloadpacket.__name__
        tensors = list(_tensors(args))
        sources = [self.where[_memory(one)] for one in tensors if _memory(one) in self.where]
        if not sources or word.endswith("_like") or word.startswith("new_"):
            # Computed of parameters and constants alone: known by the first parameter in it.
            names = [self.fixed[_memory(one)] for one in tensors if _memory(one) in self.fixed]
            for one in _tensors(found):
                self.fixed.setdefault(_memory(one), names[0] if names else "")
            return
        if word.rstrip("_") in MOVES or word in MOVES:
            for one in _tensors(found):
                if _memory(one) not in self.where or _memory(one) == _memory(result):
                    self.where[_memory(one)] = sources[0]
            return
        kind, what, constants, name, taken = self._read(word, args, kwargs, tensors, result)
        self._add(kind, name, what, tuple(dict.fromkeys(taken or sources)), result, constants, result)
        if len(taken or sources) > 1 and len(set(taken or sources)) == 1 and kind == "sum":
            self.operations[-1] = self.operations[-1]._replace(kind="scale", constants={"factor": 4.0})
        if word in SOFTMAX:
            self.softmax.add(self.operations[-1].place)
        if kind in ("affine", "embedding"):
            self._keep(word, args, result)
        if kind == "affine":
            self._by_position(word, args, (taken or sources)[0], result)
        for one in _tensors(found):
            self.where[_memory(one)] = self.operations[-1].place

    def _read(self, word: str, args: Any, kwargs: Any, tensors: list[torch.Tensor], result: torch.Tensor):
        """Kind, the framework's or the house's word, constants, name, and the sources where they are not all."""
        scope, plain = self.inside[-1], word.rstrip("_")
        own = f"{scope}.{plain}" if scope else plain
        fixed = [one for one in tensors if _memory(one) not in self.where and one.is_floating_point()]
        moving = [one for one in tensors if _memory(one) in self.where]
        if plain in ("addmm", "mm", "linear", "convolution", "matmul", "bmm", "baddbmm"):
            return self._product(plain, args, fixed, moving, own)
        if plain in ACTIVATIONS:
            return "activation", ACTIVATIONS[plain], {}, own, None
        if plain == "leaky_relu":
            slope = args[1] if len(args) > 1 else 0.01
            return "activation", f"leaky_relu({float(slope):g})", {}, own, None
        if plain in UNNAMED:
            return "activation", "", {}, own, None
        if "layer_norm" in plain or "group_norm" in plain or "rms_norm" in plain:
            return "layer norm", plain, self._norm(args, plain), scope or own, self._first(args)
        if "batch_norm" in plain:
            return "batch norm", plain, self._batch_norm(args, plain), scope or own, self._first(args)
        if plain == "embedding":
            table = fixed[0] if fixed else tensors[0]
            layer = self.fixed.get(_memory(table), own).removesuffix(".weight")
            return "embedding", "embedding", {"variance": _square(table), "width": float(table.shape[-1])}, layer, None
        if plain in ("add", "sub"):
            if len(moving) > 1:
                # A mean taken off, or a bias that is computed, is no residual.
                return ("sum" if len({one.numel() for one in moving}) == 1 else "unread"), plain, {}, own, None
            other = [one for one in (*args, kwargs.get("other")) if isinstance(one, int | float)]
            size = _square(fixed[0]) if fixed else float(other[0]) ** 2 if other else 0.0
            return "shift", plain, {"shift": size}, own, None
        if plain in ("mul", "div", "neg"):
            if len(moving) > 1:
                for one in moving:
                    found = named(array(one), array(result))
                    if found:
                        return "activation", found, {}, own, [self.where[_memory(one)]]
                return "product", plain, {}, own, None
            numbers = [one for one in args if isinstance(one, int | float)]
            size = _square(fixed[0] if plain == "mul" else 1 / fixed[0]) if fixed else 1.0
            for one in numbers:
                size *= float(one) ** (2 if plain == "mul" else -2)
            if scope in self.dropping:
                return "dropout", plain, {"factor": size}, scope, None
            return "scale", plain, {"factor": size}, own, None
        if plain in SOFTMAX:
            return "unread", "softmax", {}, own, None
        if plain == "cat" or plain == "stack":
            return "concatenation", plain, {}, own, None
        if "dropout" in plain:
            return "dropout", plain, {"factor": 1 / (1 - float(args[1])) if args[1] < 1 else 0.0}, own, None
        if plain.startswith(POOLING):
            return "pooling", plain, {}, own, None
        if "scaled_dot_product" in plain:
            return "attention", plain, {}, scope or own, None
        return "unread", plain, {}, own, None

    def _product(self, plain: str, args: Any, fixed: list[torch.Tensor], moving: list[torch.Tensor], own: str):
        if len(moving) > 1:
            left = self.where[_memory(moving[0])]
            kind = "attention" if left in self.softmax else "product"
            return kind, "attention" if kind == "attention" else plain, {}, self.inside[-1] or own, None
        matrices = [one for one in fixed if one.ndim >= 2]
        if not matrices:
            return "unread", plain, {}, own, None
        weight = matrices[0]
        bias = next((one for one in fixed if one.ndim == 1), None)
        layout: Any = ()
        if plain == "convolution":
            fan_in, width = weight[0].numel(), weight.shape[0]
            given, layout, transposed = args[0], args[3:6], bool(args[6])
        else:
            # mat1 @ mat2, the weights on the right as in x Wᵀ
            right = weight is not moving[0] and any(weight is one for one in args[-2:]) and args[-1] is weight
            fan_in, width = (weight.shape[-2], weight.shape[-1]) if right else (weight.shape[-1], weight.shape[-2])
            given, transposed = moving[0], False
        if plain == "linear":
            fan_in, width = weight.shape[1], weight.shape[0]
        power = _square(given)
        taps = 1.0
        if plain == "convolution" and not transposed and power > 0:
            with torch.no_grad():
                ones = torch.ones_like(weight)
                rest: list[Any] = [*layout, False, [0] * (given.ndim - 2), args[8]]
                squares = convolved(given.detach() ** 2, ones, None, *rest)
            taps = float(squares.double().mean()) / fan_in / power
        origin = self.operations[self.where[_memory(moving[0])]]
        before = float(origin.moment.mean())
        constants = {
            "weight_variance": fan_in * _square(weight),
            "bias_variance": 0.0 if bias is None else _square(bias),
            "fan_in": float(fan_in),
            "width": float(width),
            # What enters may be part of what left the operation before (a slice, a padded image).
            "taps": taps * (power / before if before > 0 else 1.0),
        }
        name = self.fixed.get(_memory(weight), "") or own
        return "affine", plain, constants, name.removesuffix(".weight").removesuffix("_weight"), None

    def _keep(self, word: str, args: Any, result: torch.Tensor) -> None:
        """What it takes to see what other weights would do in an affine layer."""
        place, operation = len(self.operations) - 1, self.operations[-1]
        tensors = list(_tensors(args))
        weight = next(
            (one for one in tensors if one.ndim >= 2 and _memory(one) in self.fixed and one.is_floating_point()), None
        )
        name = "" if weight is None else self.fixed[_memory(weight)]
        own = self.shapes.get(name)
        if weight is None or own is None or weight.numel() != int(np.prod(own)):
            return
        # A square matrix and its transpose differ in their strides only.
        plain = tuple(weight.shape) == own and tuple(weight.stride()) == self.strides[name]
        swapped = not plain and tuple(weight.shape) == own[::-1] and tuple(weight.stride()) == self.strides[name][::-1]
        if not plain and not swapped:
            return

        def times(values: np.ndarray) -> np.ndarray:
            other = torch.as_tensor(values, dtype=weight.dtype, device=weight.device)
            other = other.T if swapped else other
            zero = [
                None if one is not weight and isinstance(one, torch.Tensor) and one.ndim == 1 else one for one in args
            ]
            with torch.no_grad():
                if word == "embedding":
                    return array(torch.nn.functional.embedding(args[1], other))
                if word == "convolution":
                    return array(convolved(*(other if one is weight else one for one in zero)))
                if word == "linear":
                    return array(args[0].detach() @ other.T)
                left, right = (other if one is weight else one.detach() for one in tensors[-2:])
                return array(left @ right)

        rows = (own[1], own[0]) if word == "embedding" else (own[0], int(np.prod(own[1:])))
        if word != "embedding" and word != "convolution" and not swapped and weight is tensors[-1] and word != "linear":
            rows = (rows[1], rows[0])
        layer = AffineLayer(operation.name, name, rows, array(result), times, 1.0)
        self.affine.append((place, layer))

    def _by_position(self, word: str, args: Any, source: int, result: torch.Tensor) -> None:
        """Pairs of samples where an affine layer takes images out of rows, or tokens as rows."""
        last, origin = self.operations[-1], self.operations[source]
        if word == "convolution":
            self.operations[-1] = last._replace(spread=means_over_taps(args))
            if origin.kind == "input":
                self.operations[source] = origin._replace(pairs=pairs(array(args[0]), self.samples, 1, False))
        elif last.pairs is None and result.ndim == 2 and len(origin.shape) == 3 and origin.shape[0] == self.samples:
            before, given = self.results[source], next(one for one in _tensors(args) if _memory(one) in self.where)
            plain = before.is_contiguous() and given.is_contiguous() and given.data_ptr() == before.data_ptr()
            if plain and len(result) == origin.shape[0] * origin.shape[1]:
                values = array(result).reshape(*origin.shape[:2], -1)
                self.operations[-1] = last._replace(pairs=pairs(values, self.samples, -1, True))

    def _first(self, args: Any) -> list[int]:
        return [self.where[_memory(args[0])]]

    def _norm(self, args: Any, plain: str) -> dict[str, float]:
        gains = [one for one in args[1:] if isinstance(one, torch.Tensor)]
        epsilon = [one for one in args if isinstance(one, float)]
        return {
            "gain": _square(gains[0]) if gains else 1.0,
            "shift": _square(gains[1]) if len(gains) > 1 else 0.0,
            "epsilon": epsilon[-1] if epsilon else 1e-5,
            "mean": 0.0 if "rms" in plain else 1.0,
        }

    def _batch_norm(self, args: Any, plain: str) -> dict[str, float]:
        gain, bias, mean, variance = (one if isinstance(one, torch.Tensor) else None for one in args[1:5])
        training = plain in ("native_batch_norm", "_native_batch_norm_legit") and bool(args[5])
        epsilon = float(args[-1]) if isinstance(args[-1], float) else 1e-5
        if training or variance is None or mean is None:
            return self._norm((args[0], *(one for one in (gain, bias) if one is not None), epsilon), plain)
        root = torch.rsqrt(variance + epsilon) * (1.0 if gain is None else gain)
        offset = -mean * root + (0.0 if bias is None else bias)
        return {"factor": _square(root), "offset": _square(offset)}

    def _add(self, kind, name, what, sources, result, constants, seen) -> None:
        values = array(seen) if seen.is_floating_point() else np.zeros((self.samples, 1))
        width = int(constants.get("width", 0))
        axis = 1 if values.ndim > 3 else -1
        self.operations.append(
            Operation(
                len(self.operations), kind, name, what, sources, tuple(result.shape), moments(values, self.samples),
                centre(values, axis), constants,
                chance(values, width, self.samples) if kind in ("affine", "embedding") and width else 0.0,
                tokens=values[:KEPT] if kind in TOKENS and values.ndim == 3 and len(values) == self.samples else None,
                pairs=pairs(values, self.samples, axis, kind in COMPARED),
            )
        )  # fmt: skip
        self.results.append(result)
        self.where[_memory(result)] = len(self.operations) - 1


class AffineSeen(NamedTuple):
    """The operations, and the affine layers with their places."""

    read: Architecture
    seen: list[tuple[int, AffineLayer]]


def affine(network: TorchNetwork, batch: Batch) -> AffineSeen:
    """The affine layers of one pass."""
    recorder = _recorded(network, batch, False)
    return AffineSeen(Architecture(tuple(recorder.operations), batch.count), recorder.affine)


def read(network: TorchNetwork, batch: Batch, slopes: bool) -> Architecture:
    """All operations of one pass."""
    recorder = _recorded(network, batch, slopes)
    return Architecture(tuple(recorder.operations), batch.count, tuple(_idle(network.body.copy)))


def _recorded(network: TorchNetwork, batch: Batch, slopes: bool) -> Recorder:
    recorder = Recorder(network, batch.count)
    handles = []
    body = network.body.copy
    for name, module in body.named_modules():
        if name:
            handles.append(module.register_forward_pre_hook(lambda _, __, name=name: recorder.inside.append(name)))
            handles.append(module.register_forward_hook(lambda *_: recorder.inside.pop() and None, always_call=True))
    try:
        with careful(), torch.enable_grad() if slopes else torch.no_grad():
            leaves = {
                name: value.detach().requires_grad_() if value.is_floating_point() else value
                for name, value in network.values.items()
            }
            x = network.ready(batch.inputs)
            for tensor in arrays(x):
                recorder.given(tensor)
            with recorder:
                z = network.run(leaves, x)
            if slopes:
                _put_slopes(recorder, network, batch, z)
    finally:
        for handle in handles:
            handle.remove()
    return recorder


def _put_slopes(recorder: Recorder, network: TorchNetwork, batch: Batch, z: torch.Tensor) -> None:
    wanted = [
        place
        for place, one in enumerate(recorder.operations)
        if one.kind in ("affine", "sum", "embedding") and recorder.results[place].requires_grad
    ]
    total = batch.count * network.total(z, network.ready(batch.targets), 1.0, None)
    found = torch.autograd.grad(total, [recorder.results[place] for place in wanted], allow_unused=True)
    for place, slope in zip(wanted, found, strict=True):
        if slope is not None:
            size = float((slope.double() ** 2).sum()) / batch.count
            recorder.operations[place] = recorder.operations[place]._replace(slope=size)


def _idle(body: torch.nn.Module) -> Iterator[str]:
    for name, module in body.named_modules():
        if _drops(module) and not module.training:
            yield f"{name} (dropout {module.p:g})"


def _drops(module: torch.nn.Module) -> bool:
    return isinstance(module, torch.nn.modules.dropout._DropoutNd)


def _tensors(tree: Any) -> Iterator[torch.Tensor]:
    if isinstance(tree, torch.Tensor):
        yield tree
    elif isinstance(tree, list | tuple):
        for one in tree:
            yield from _tensors(one)


def _memory(tensor: torch.Tensor) -> int:
    try:
        return tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):
        return id(tensor)


def _square(tensor: torch.Tensor) -> float:
    return float((tensor.detach().double() ** 2).mean()) if tensor.numel() else 0.0
