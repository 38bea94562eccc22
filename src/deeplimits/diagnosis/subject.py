"""What is diagnosed: a user's model, its optimizer, and what several findings need of it, measured once."""

import functools
import time
from typing import Any, NamedTuple

import numpy as np

from deeplimits.errors import ParameterError
from deeplimits.measure.adapters import Model
from deeplimits.measure.adapters.data import arrays, host
from deeplimits.measure.adapters.signals import Signals, layer_signals
from deeplimits.measure.training.stability import OPTIMIZERS
from deeplimits.numerics import arguments


class Optimizer(NamedTuple):
    """How the network is trained."""

    name: str
    step: float
    momentum: float = 0.0
    decay: float = 0.0
    torch: Any = None
    """PyTorch's own, whose second moments Adam's stability depends on."""


class Subject:
    """A model under examination; measurements that several findings share are kept."""

    def __init__(self, model: Model, optimizer: Optimizer | None, seed: int, deadline: float):
        self.model, self.optimizer, self.seed, self.deadline = model, optimizer, seed, deadline

    @property
    def left(self) -> float:
        """Seconds until the budget is spent."""
        return self.deadline - time.monotonic()

    @functools.cached_property
    def signals(self) -> Signals:
        """What passes through the layers; an error where they cannot be seen."""
        return layer_signals(self.model)

    @functools.cached_property
    def gradient(self) -> np.ndarray:
        """∇L over all data."""
        return self.model.gradient()

    @functools.cached_property
    def product_seconds(self) -> float:
        """What a product with the Hessian takes, its linearizations kept."""
        from deeplimits.measure.curvature import hessian

        matrix, probe = hessian(self.model), np.ones(self.model.size) / np.sqrt(self.model.size)
        matrix.matvec(probe)
        begin = time.perf_counter()
        matrix.matvec(probe)
        return time.perf_counter() - begin

    @functools.cached_property
    def classes(self) -> int | None:
        """How many classes there are; None where the targets are no classes: real numbers that are not one-hot."""
        target = host(arrays(next(iter(self.model.data)).targets)[0])
        if target.dtype.kind == "f" and (target.ndim < 2 or target.shape[1] == 1):
            return None
        try:
            found = len(self.model.classes())
        except ParameterError:
            return None
        return found if found > 1 else None


def read_optimizer(given: Any) -> Optimizer | None:
    """An optimizer of PyTorch, or ('adam', step) and the like with an optional momentum.

    >>> read_optimizer(("momentum", 0.1))
    Optimizer(name='momentum', step=0.1, momentum=0.9, decay=0.0, torch=None)
    """
    if given is None:
        return None
    if isinstance(given, tuple | list):
        if len(given) not in (2, 3):
            raise ParameterError(f"optimizer = {given!r} is not allowed; give (name, step) or (name, step, momentum)")
        name = arguments.choice("optimizer", given[0], OPTIMIZERS)
        step = float(arguments.number("step", given[1], arguments.POSITIVE))
        usual = {"gd": 0.0}.get(name, 0.9)
        return Optimizer(name, step, float(given[2]) if len(given) == 3 else usual)
    groups = getattr(given, "param_groups", None)
    if not groups:
        raise ParameterError(
            f"optimizer is a {type(given).__name__}; give a torch.optim optimizer, or (name, step) with one of "
            f"{', '.join(OPTIMIZERS)}"
        )
    group = max(groups, key=lambda one: float(one["lr"]))
    kind = type(given).__name__
    step = float(arguments.number("lr of the optimizer", float(group["lr"]), arguments.POSITIVE))
    if kind in ("Adam", "AdamW", "NAdam"):
        return Optimizer("adam", step, float(group["betas"][0]), _decay(group, kind == "AdamW"), given)
    if kind == "SGD":
        momentum = float(group["momentum"])
        name = "gd" if momentum == 0 else "nesterov" if group["nesterov"] else "momentum"
        return Optimizer(name, step, momentum)
    raise ParameterError(
        f"optimizer is a {kind}, whose stability is not known here; give SGD, Adam or AdamW, or (name, step)"
    )


def _decay(group: Any, decoupled: bool) -> float:
    return float(group.get("weight_decay", 0.0)) if decoupled else 0.0
