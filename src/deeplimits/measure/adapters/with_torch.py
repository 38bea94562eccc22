"""A PyTorch module as a `Network`. Imported only where the user's network is one.

The module itself is never run: a copy of its structure is, with values of our own put in by `functional_call`. So its
parameters, gradients, buffers, mode and hooks cannot change, whatever happens. The graph of the gradient is built once
at fixed parameters and kept, so that each product is one pass through it.
"""

import contextlib
import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch

from deeplimits.errors import ParameterError
from deeplimits.measure.adapters import torch_exact
from deeplimits.measure.adapters.data import Batch, arrays, mapped
from deeplimits.measure.adapters.layout import Layout
from deeplimits.measure.adapters.network import AtOutputs, Inside, Labelled, Network, Piece
from deeplimits.measure.adapters.randomness import guarded
from deeplimits.measure.adapters.reductions import reduced, single
from deeplimits.measure.adapters.torch_exact import doubled
from deeplimits.measure.adapters.torch_tools import Counted, array, careful, joined, last_linear, the_tensor

Tensors = dict[str, torch.Tensor]


class Body(NamedTuple):
    """What does not depend on parameters: the copy that is run, the user's module, the loss."""

    copy: torch.nn.Module
    module: torch.nn.Module
    loss: Callable[[Any, Any], Any]
    reduction: str
    precision: torch.dtype | None
    seed: int
    exact: bool = False
    """Outputs of a float32 network are corrected to those of float64, in which the loss is taken: see `torch_exact`."""


class TorchNetwork(Network):
    """A PyTorch network at fixed parameters."""

    def __init__(self, body: Body, values: Tensors, buffers: Tensors, names: tuple[str, ...]):
        self.body, self.values, self.buffers = body, values, buffers
        real = tuple(name for name, value in values.items() if value.is_floating_point())
        self.everything = Layout(real, tuple(tuple(values[name].shape) for name in real))
        self.layout = Layout(names, tuple(tuple(values[name].shape) for name in names))

    @property
    def reduction(self) -> str:  # type: ignore[override]
        return self.body.reduction

    @property
    def device(self) -> torch.device:
        return next(iter(self.values.values())).device

    @property
    def dtype(self) -> torch.dtype:
        """The precision in which it computes."""
        return self.values[self.layout.names[0]].dtype

    def vector(self) -> np.ndarray:
        return joined([self.values[name] for name in self.layout.names])

    @property
    def free_memory(self) -> int | None:
        return torch.cuda.mem_get_info(self.device)[0] if self.device.type == "cuda" else None

    def tensors(self, vector: np.ndarray) -> list[torch.Tensor]:
        """A flat vector as tensors: one copy to the device, which is cut there."""
        kinds = [self.values[name].dtype for name in self.layout.names]
        widest = functools.reduce(torch.promote_types, kinds)
        flat = torch.tensor(np.asarray(vector), dtype=widest, device=self.device)
        parts = zip(flat.split(self.layout.sizes), self.layout.shapes, kinds, strict=True)
        return [part.view(shape).to(kind) for part, shape, kind in parts]

    def at(self, vector: np.ndarray) -> "TorchNetwork":
        moved = dict(zip(self.layout.names, self.tensors(vector), strict=True))
        return TorchNetwork(self.body, {**self.values, **moved}, self.buffers, self.layout.names)

    def varying(self, names: tuple[str, ...]) -> "TorchNetwork":
        return TorchNetwork(self.body, self.values, self.buffers, names)

    def now(self) -> "TorchNetwork":
        held = read(self.body.module, self.body.precision)
        return TorchNetwork(self.body, held.values, held.buffers, self.layout.names)

    def with_reduction(self, reduction: str) -> "TorchNetwork":
        return self.with_body(self.body._replace(reduction=reduction))

    def with_body(self, body: Body) -> "TorchNetwork":
        return TorchNetwork(body, self.values, self.buffers, self.layout.names)

    def ready(self, tree: Any, dtype: torch.dtype | None = None) -> Any:
        """Arrays of the user's as tensors, real ones in the network's precision."""

        def one(array: Any) -> torch.Tensor:
            found = array.detach() if isinstance(array, torch.Tensor) else torch.as_tensor(np.array(array))
            return found.to(self.device, (dtype or self.dtype) if found.is_floating_point() else found.dtype)

        return mapped(one, tree)

    def targets(self, tree: Any) -> Any:
        """Targets in the precision in which the loss is taken."""
        return self.ready(tree, torch.float64 if self.body.exact else None)

    def doubled(self) -> "TorchNetwork":
        """The same network in float64."""
        return TorchNetwork(self.body, doubled(self.values), doubled(self.buffers), self.layout.names)

    def settled(self, batch: Batch) -> "TorchNetwork":
        return torch_exact.settled(self, batch)

    def run(self, values: Tensors, x: Any, seed: int | None = None) -> torch.Tensor:
        """The outputs at these parameters; random layers draw from the seed, and from nothing of the user's."""
        given = {**self.values, **values, **{name: value.clone() for name, value in self.buffers.items()}}
        arguments = () if isinstance(x, Mapping) else tuple(x) if isinstance(x, list | tuple) else (x,)
        named = dict(x) if isinstance(x, Mapping) else {}
        with guarded():
            torch.manual_seed(self.body.seed if seed is None else seed)
            found = torch.func.functional_call(self.body.copy, given, arguments, named)
        return the_tensor(found)

    def evaluate(self, batch: Batch, seed: int | None = None) -> np.ndarray:
        with careful(), torch.no_grad():
            return array(self.run({}, self.ready(batch.inputs), seed))

    def _evaluated(self, batch: Batch) -> torch.Tensor:
        z = self.run({}, self.ready(batch.inputs))
        return z.double() if self.body.exact else z

    def raw_loss(self, batch: Batch) -> np.ndarray:
        with careful(), torch.no_grad():
            value = self.body.loss(self._evaluated(batch), self.targets(batch.targets))
        return torch.as_tensor(value).detach().cpu().numpy()

    def single_losses(self, batch: Batch) -> np.ndarray:
        with careful(), torch.no_grad():
            z, y = self._evaluated(batch), self.targets(batch.targets)
            # One after the other: so few are done before torch.func has loaded what it needs.
            return array(self.with_reduction("mean").losses(z, y, together=False))

    def inside(self, batch: Batch, layer: str | int | None, directions: np.ndarray) -> Inside:
        name = str(layer) if layer is not None else last_linear(self.body.copy)
        found = dict(self.body.copy.named_modules()).get(name)
        if found is None:
            raise ParameterError(f"the module has no layer called {name!r}")
        seen: list[torch.Tensor] = []

        def remember(_, given, left):
            left = left.detach().requires_grad_()
            seen[:] = [given[0], left]
            return left

        handle = found.register_forward_hook(remember)
        try:
            with careful(), torch.enable_grad():
                z = self.run({}, self.ready(batch.inputs))
                if not seen:
                    raise ParameterError(f"the layer {name!r} is not used")
                flat = torch.tensor(directions, dtype=z.dtype, device=z.device).unbind(1)
                pulled = [
                    torch.autograd.grad(z, seen[1], u.reshape(z.shape), retain_graph=True, materialize_grads=True)[0]
                    for u in flat
                ]
        finally:
            handle.remove()
        weight = self.values.get(f"{name}.weight")
        rows = array(weight) if weight is not None and weight.ndim == 2 else None
        shape = (batch.count, 0, *seen[1].shape[1:])
        stacked = np.stack([array(one) for one in pulled], axis=1) if pulled else np.zeros(shape)
        return Inside(array(seen[0]), stacked, rows)

    def losses(self, z: torch.Tensor, y: Any, together: bool = True) -> torch.Tensor:
        """The loss of every sample."""
        if self.body.reduction == "none":
            return self.body.loss(z, y)

        def one(output, target):
            return self.body.loss(*single(output, target)).reshape(())

        if together:
            with contextlib.suppress(Exception):  # losses that torch.func cannot vectorize
                return torch.func.vmap(one)(z, y)
        return torch.stack([one(z[i], mapped(lambda t, i=i: t[i], y)) for i in range(z.shape[0])])

    def total(self, z: torch.Tensor, y: Any, share: float, weights: torch.Tensor | None) -> torch.Tensor:
        """F as a function of the outputs."""
        if weights is not None:
            return torch.sum(weights * self.losses(z, y))
        return share * reduced(self.body.loss(z, y), self.body.reduction, z.shape[0], torch.mean).reshape(())

    def piece(self, batch: Batch, share: float, weights: np.ndarray | None = None) -> "TorchPiece":
        return TorchPiece(self, batch, share, weights)

    def target_of(self, batch: Batch, label: Any) -> torch.Tensor:
        y = arrays(self.targets(batch.targets))[0]
        if y.ndim == 2 and y.shape[1] > 1:
            found = torch.zeros_like(y)
            found[:, int(label)] = 1
            return found
        return torch.full_like(y, label)


class TorchPiece(Piece):
    """Some samples; the graphs that have been built are kept."""

    def __init__(self, network: TorchNetwork, batch: Batch, share: float, weights: np.ndarray | None):
        self.network, self.batch, self.count, self.share = network, batch, batch.count, share
        dtype = torch.float64 if network.body.exact else network.dtype
        self.weights = None if weights is None else torch.tensor(weights, dtype=dtype, device=network.device)
        self.x, self.y = network.ready(batch.inputs), network.targets(batch.targets)
        self.names = network.layout.names
        self.made: dict[str, Any] = {}

    def _kept(self, name: str, make: Callable[[], Any]) -> Any:
        if name not in self.made:
            with careful(), torch.enable_grad(), Counted() as counted:
                self.made[name] = make()
            self.bytes += counted.bytes
        return self.made[name]

    @property
    def leaves(self) -> list[torch.Tensor]:
        return self._kept(
            "leaves", lambda: [self.network.values[name].detach().clone().requires_grad_() for name in self.names]
        )

    @property
    def z(self) -> torch.Tensor:
        """The outputs with their graph."""
        leaves = self.leaves
        found = self._kept("raw", lambda: self.network.run(dict(zip(self.names, leaves, strict=True)), self.x))
        if self.network.body.exact:
            if "gap" not in self.made:
                self.made["gap"] = torch_exact.correction(self.network, found, self.x)
            found = self._kept("z", lambda: found.double() + self.made["gap"])
        if not found.requires_grad:
            raise ParameterError("the outputs do not depend on the chosen parameters through differentiable operations")
        return found

    def _objective(self, z: torch.Tensor) -> torch.Tensor:
        found = self.network.total(z, self.y, self.share, self.weights)
        if not found.requires_grad:
            raise ParameterError("the loss has no derivative in the outputs (it is detached from them)")
        return found

    def _grad(self, value: Any, where: Any, direction: Any = None, **options: Any) -> tuple[torch.Tensor, ...]:
        """PyTorch's derivative, with zeros where there is no dependence."""
        with careful(), torch.enable_grad():
            values = [value] if isinstance(value, torch.Tensor) else list(value)
            directions = [None] * len(values) if direction is None else direction
            pairs = [(v, d) for v, d in zip(values, directions, strict=True) if v.requires_grad]
            if not pairs:
                return tuple(torch.zeros_like(one) for one in where)
            return torch.autograd.grad(
                [v for v, _ in pairs],
                where,
                [d for _, d in pairs],
                retain_graph=True,
                materialize_grads=True,
                **options,
            )

    def outputs(self) -> np.ndarray:
        return array(self.z)

    def loss(self) -> float:
        with careful(), torch.no_grad():
            return float(self.network.total(self.z.detach(), self.y, self.share, self.weights))

    def losses(self) -> np.ndarray:
        with careful(), torch.no_grad():
            return array(self.network.losses(self.z.detach(), self.y))

    def gradient(self) -> np.ndarray:
        z = self.z
        with careful(), torch.enable_grad():
            value = self._objective(z)
        return joined(self._grad(value, self.leaves))

    def hessian(self, vector: np.ndarray) -> np.ndarray:
        leaves, z = self.leaves, self.z
        slope = self._kept("gradient", lambda: self._grad(self._objective(z), leaves, create_graph=True))
        return joined(self._grad(slope, leaves, self.network.tensors(vector)))

    def residual(self, vector: np.ndarray) -> np.ndarray:
        leaves, z = self.leaves, self.z

        def make():
            where = z.detach().requires_grad_()
            (slope,) = self._grad(self._objective(where), [where])
            return self._grad(z, leaves, [slope.detach()], create_graph=True)

        return joined(self._grad(self._kept("residual", make), leaves, self.network.tensors(vector)))

    def push(self, vector: np.ndarray) -> np.ndarray:
        leaves, z = self.leaves, self.z

        def make():
            # The pullback is linear in its direction; its derivative there is the push-forward.
            direction = torch.zeros_like(z, requires_grad=True)
            return direction, self._grad(z, leaves, [direction], create_graph=True)

        direction, pulled = self._kept("pulled", make)
        return array(self._grad(pulled, [direction], self.network.tensors(vector))[0])

    def pull(self, directions: np.ndarray) -> np.ndarray:
        return joined(self._grad(self.z, self.leaves, [self._in_outputs(directions)]))

    def bend(self, directions: np.ndarray) -> np.ndarray:
        z = self.z

        def make():
            where = z.detach().requires_grad_()
            return where, self._grad(self._objective(where), [where], create_graph=True)

        where, slope = self._kept("bend", make)
        return array(self._grad(slope, [where], [self._in_outputs(directions)])[0])

    def at_outputs(self, outputs: np.ndarray) -> AtOutputs:
        where = self._in_outputs(outputs).requires_grad_()
        with careful(), torch.enable_grad():
            value = self._objective(where)
        (slope,) = self._grad(value, [where])
        return AtOutputs(float(value.detach()), array(slope))

    def slopes(self) -> np.ndarray:
        return self._slopes(self.y).slopes

    def labelled(self, labels: list[Any]) -> Labelled:
        found = [self._slopes(self.network.target_of(self.batch, label)) for label in labels]
        return Labelled(
            np.stack([np.exp(-one.losses) for one in found], axis=1), np.stack([one.slopes for one in found], axis=1)
        )

    def _slopes(self, y: Any) -> "_Sloped":
        where = self.z.detach().requires_grad_()
        with careful(), torch.enable_grad():
            losses = self.network.losses(where, y)
            if not losses.requires_grad:
                raise ParameterError("the loss has no derivative in the outputs (it is detached from them)")
            (slope,) = self._grad(losses.sum(), [where])
        return _Sloped(array(losses), array(slope))

    def sample_jacobians(self) -> np.ndarray:
        def one(leaves, x):
            alone = mapped(lambda tensor: tensor[None], x)
            return self.network.run(dict(zip(self.names, leaves, strict=True)), alone)[0].reshape(-1)

        with careful(), torch.enable_grad():
            try:
                parts = torch.func.vmap(torch.func.jacrev(one), in_dims=(None, 0))(self.leaves, self.x)
                rows = torch.cat([part.reshape(*part.shape[:2], -1) for part in parts], dim=2)
            except Exception:
                rows = self._jacobians_of_the_batch()
        return array(rows)

    def _jacobians_of_the_batch(self) -> torch.Tensor:
        """Row by row through the whole batch, for what torch.func cannot vectorize: random layers keep their masks."""
        z = self.z.reshape(self.count, -1)

        def row(entry):
            found = torch.autograd.grad(entry, self.leaves, retain_graph=True, materialize_grads=True)
            return torch.cat([part.reshape(-1) for part in found])

        return torch.stack([row(entry) for entry in z.reshape(-1)]).reshape(*z.shape, -1)

    def _in_outputs(self, directions: np.ndarray) -> torch.Tensor:
        return torch.tensor(np.asarray(directions), dtype=self.z.dtype, device=self.z.device).reshape(self.z.shape)


class _Sloped(NamedTuple):
    losses: np.ndarray
    slopes: np.ndarray


class _Held(NamedTuple):
    values: Tensors
    buffers: Tensors


def read(module: torch.nn.Module, precision: torch.dtype | None) -> _Held:
    """Copies of all parameters and buffers."""

    def copied(tensor: torch.Tensor) -> torch.Tensor:
        found = tensor.detach().clone()
        return found.to(precision) if precision is not None and found.is_floating_point() else found

    with torch.inference_mode(False), torch.no_grad():
        return _Held(
            {name: copied(value) for name, value in module.named_parameters()},
            {name: copied(value) for name, value in module.named_buffers()},
        )
