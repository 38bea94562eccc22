"""Networks of one kind at several widths, in PyTorch or JAX: built, stepped, and looked at layer by layer."""

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from deeplimits.errors import DeeplimitsError, ParameterError
from deeplimits.measure.adapters import Model
from deeplimits.measure.adapters.architecture import affine_layers
from deeplimits.measure.adapters.data import Data, host


class Part(NamedTuple):
    """One batch."""

    inputs: np.ndarray
    targets: np.ndarray

    def at(self, places: np.ndarray) -> "Part":
        """Some of its samples."""
        return Part(self.inputs[places], self.targets[places])


def one_batch(data: Any) -> Part:
    """Inputs and targets as arrays."""
    if not isinstance(data, tuple | list) or len(data) != 2:
        raise ParameterError(f"data is a {type(data).__name__}; give one batch, a pair (inputs, targets)")
    found = Part(*(np.asarray(host(part)) for part in data))
    if not len(found.inputs) or len(found.inputs) != len(found.targets):
        raise ParameterError(
            f"data has {len(found.inputs)} inputs and {len(found.targets)} targets; give as many, some"
        )
    return found


def start_generators(seed: int) -> None:
    """Start the global generators that a user's function may draw weights from."""
    np.random.seed(seed % 2**32)  # noqa: NPY002
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(seed)


class Built(ABC):
    """A network that can be stepped; what it is made of is the framework's."""

    rule = "sgd"

    @abstractmethod
    def step(self, data: Part, loss: Any, factor: float = 1.0) -> float:
        """One step of its optimizer, its rates times a factor; the loss before it."""

    @abstractmethod
    def opened(self, data: Part, loss: Any) -> Any:
        """The network as it is now, for instruments."""


class OfTorch(Built):
    """A module and its optimizer."""

    def __init__(self, module: Any, descent: Any):
        import torch

        self.module = module
        self.descent = torch.optim.SGD(module.parameters(), lr=0.01) if descent is None else descent
        self.first = [float(group["lr"]) for group in self.descent.param_groups]
        self.rule = "adam" if type(self.descent).__name__.startswith("Adam") else "sgd"

    def step(self, data: Part, loss: Any, factor: float = 1.0) -> float:
        import torch

        dtype = next(self.module.parameters()).dtype
        x = torch.as_tensor(data.inputs)
        x = x.to(dtype) if x.is_floating_point() else x
        for group, rate in zip(self.descent.param_groups, self.first, strict=True):
            group["lr"] = factor * rate
        self.descent.zero_grad()
        value = loss(self.module(x), torch.as_tensor(data.targets))
        value.backward()
        self.descent.step()
        return float(value.detach())

    def opened(self, data: Part, loss: Any) -> Any:
        from deeplimits.measure.adapters import torch_opening

        return Model(torch_opening.opened(self.module, loss, "eval", None, 0).network, Data(tuple(data)))


class OfJax(Built):
    """A function, its parameters, and what makes new parameters of gradients."""

    def __init__(self, apply: Any, parameters: Any, change: Any):
        import jax

        self.apply, self.parameters = apply, parameters
        if change is None:
            self.change = lambda p, g: jax.tree.map(lambda a, b: a - 0.01 * b, p, g)
        elif hasattr(change, "init") and hasattr(change, "update"):
            self.state = change.init(parameters)
            self.change = lambda p, g: self._transformed(change, p, g)
        else:
            self.change = change

    def _transformed(self, change: Any, p: Any, g: Any) -> Any:
        import jax

        updates, self.state = change.update(g, self.state, p)
        return jax.tree.map(lambda a, b: a + b, p, updates)

    def step(self, data: Part, loss: Any, factor: float = 1.0) -> float:
        import jax

        value, gradients = jax.value_and_grad(lambda p: self._loss(p, data, loss))(self.parameters)
        new = self.change(self.parameters, gradients)
        self.parameters = jax.tree.map(lambda a, b: a + factor * (b - a), self.parameters, new)
        return float(value)

    def _loss(self, parameters: Any, data: Part, loss: Any) -> Any:
        import jax

        from deeplimits.measure.adapters.with_jax import ready

        real = [leaf.dtype for leaf in jax.tree.leaves(parameters) if leaf.dtype.kind == "f"]
        return loss(self.apply(parameters, ready(data.inputs, real[0])), ready(data.targets, real[0]))

    def sized(self, data: Part, loss: Any) -> None:
        """Whether its steps grow with the gradient: Adam's do not."""
        import jax

        state = getattr(self, "state", None)
        moves = []
        for scale in (1.0, 8.0):
            gradients = jax.grad(lambda p, c=scale: c * self._loss(p, data, loss))(self.parameters)
            new = self.change(self.parameters, gradients)
            moves.append(sum(float(((b - a) ** 2).sum()) for a, b in _pairs(self.parameters, new)))
            self.state = state
        self.rule = "adam" if moves[1] < 4 * moves[0] else "sgd"

    def opened(self, data: Part, loss: Any) -> Any:
        from deeplimits.measure.adapters import with_jax

        return Model(with_jax.opened(self.apply, loss, self.parameters).network, Data(tuple(data)))


def _pairs(one: Any, other: Any) -> Any:
    import jax

    return zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)


def built(make: Callable[[int], Any], width: int, optimizer: Callable[[Any], Any] | None) -> Built:
    """What the user's function makes at a width."""
    made = make(width)
    first = made[0] if isinstance(made, tuple | list) and made else made
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(first, torch.nn.Module):
        descent = made[1] if isinstance(made, tuple | list) and len(made) > 1 else None
        return OfTorch(first, optimizer(first) if descent is None and optimizer is not None else descent)
    if isinstance(made, tuple | list) and len(made) in (2, 3) and (callable(first) or hasattr(first, "apply")):
        apply = getattr(first, "apply", first)
        change = made[2] if len(made) == 3 else None
        return OfJax(apply, made[1], optimizer(made[1]) if change is None and optimizer is not None else change)
    raise ParameterError(
        f"make({width}) gave a {type(made).__name__}; it must give a torch.nn.Module, or a pair of it and its "
        "optimizer, or for JAX (apply, parameters) or (apply, parameters, step)"
    )


class Run(NamedTuple):
    """What a few steps did to each affine layer."""

    rule: str
    sizes: dict[str, tuple[float, float, float]]
    """Root mean squares of what leaves it, of ΔW x, and of the whole change"""
    shapes: dict[str, tuple[int, int]]
    """(outputs, inputs)"""


def measured_run(network: Built, width: int, data: Part, loss: Any, steps: int) -> Run:
    """Look, take some steps, and look again."""
    try:
        start = network.opened(data, loss)
        before = affine_layers(start)
        if isinstance(network, OfJax):
            network.sized(data, loss)
        for _ in range(steps):
            network.step(data, loss)
        end = network.opened(data, loss)
        after = {one.name: one for one in affine_layers(end)}
    except DeeplimitsError as error:
        raise ParameterError(f"at width {width}: {error}") from error
    old, new = start.network.everything, end.network.everything
    first, last = (
        dict(zip(layout.names, _values(model, layout), strict=True)) for layout, model in ((old, start), (new, end))
    )
    sizes = {}
    for one in before:
        own = one.times(last[one.parameter] - first[one.parameter])
        change = after[one.name].leaving - one.leaving
        sizes[one.name] = tuple(one.factor * float(np.mean(part**2)) ** 0.5 for part in (one.leaving, own, change))
    broken = [name for name, found in sizes.items() if not np.all(np.isfinite(found)) or min(found[:2]) == 0]
    if broken:
        raise ParameterError(
            f"at width {width} the layer {broken[0]} starts at zero, does not move, or diverges; check that it is "
            "trained, and take a smaller learning rate"
        )
    return Run(network.rule, sizes, {one.name: one.shape for one in before})


def _values(model: Any, layout: Any) -> list[np.ndarray]:
    whole = model.select(layout.names)
    return list(whole.parameters.values())
