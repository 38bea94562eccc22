"""What is diagnosed: a user's model, its optimizer, and what several findings need of it, measured once."""

import functools
import time
from typing import Any, NamedTuple

import numpy as np

from deeplimits.diagnosis.correlations import Alike, alike
from deeplimits.diagnosis.propagation import Expected, expected
from deeplimits.errors import ParameterError
from deeplimits.measure.adapters import Model
from deeplimits.measure.adapters.architecture import Architecture, architecture
from deeplimits.measure.adapters.data import arrays, host
from deeplimits.measure.adapters.signals import Signals, layer_signals
from deeplimits.measure.training.stability import OPTIMIZERS
from deeplimits.numerics import arguments

NAMES = (*OPTIMIZERS, "adamw")


class Optimizer(NamedTuple):
    """How the network is trained."""

    name: str
    step: float
    momentum: float = 0.0
    decay: float = 0.0
    """Of the weights, beside the gradient: AdamW's."""
    coupled: float = 0.0
    """Added to the gradient as a penalty: that of SGD and Adam."""
    torch: Any = None
    """PyTorch's own, whose second moments Adam's stability depends on."""
    moments: Any = None
    """Adam's second moments v̂ where JAX trains: of the form of the parameters (optax's `nu` over 1 − β₂^steps)."""


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
    def architecture(self) -> Architecture:
        """The network's operations."""
        return architecture(self.model)

    @functools.cached_property
    def expected(self) -> list[Expected]:
        """What theory expects to leave each of them."""
        return expected(self.architecture)

    @functools.cached_property
    def alike(self) -> list[Alike | None]:
        """How alike theory expects two samples to be in each of them."""
        return alike(self.architecture, self.expected)

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
    """An optimizer of PyTorch, an `Optimizer`, or ('adam', step) and the like with optional momentum and weight decay.

    >>> read_optimizer(("momentum", 0.1)).momentum, read_optimizer(("adamw", 1e-3, 0.9, 0.01)).decay
    (0.9, 0.01)
    """
    if given is None:
        return None
    if isinstance(given, Optimizer):
        checked = _of_numbers((given.name, given.step, given.momentum, given.decay))
        return given._replace(name=checked.name, step=checked.step, momentum=checked.momentum)
    if isinstance(given, tuple | list):
        return _of_numbers(given)
    groups = getattr(given, "param_groups", None)
    if not groups:
        raise ParameterError(
            f"optimizer is a {type(given).__name__}; give a torch.optim optimizer, or (name, step) with one of "
            f"{', '.join(NAMES)}"
        )
    group = max(groups, key=lambda one: float(one["lr"]))
    kind = type(given).__name__
    step = float(arguments.number("lr of the optimizer", float(group["lr"]), arguments.POSITIVE))
    decay = float(group.get("weight_decay", 0.0))
    if kind in ("Adam", "AdamW"):
        apart = kind == "AdamW" or bool(group.get("decoupled_weight_decay", False))
        momentum = float(group["betas"][0])
        return Optimizer("adam", step, momentum, decay if apart else 0.0, 0.0 if apart else decay, given)
    if kind == "SGD":
        momentum = float(group["momentum"])
        name = "gd" if momentum == 0 else "nesterov" if group["nesterov"] else "momentum"
        # v ← βv + (1 − τ)g is heavy ball with a smaller step.
        kept = 1 - float(group.get("dampening", 0.0)) if name == "momentum" else 1.0
        return Optimizer(name, step * kept, momentum, 0.0, decay, given)
    raise ParameterError(
        f"optimizer is a {kind}, whose stability is not known here; give SGD, Adam or AdamW, or (name, step)"
    )


def _of_numbers(given: Any) -> Optimizer:
    if len(given) not in (2, 3, 4):
        raise ParameterError(
            f"optimizer = {given!r} is not allowed; give (name, step), (name, step, momentum) or "
            "(name, step, momentum, decay)"
        )
    name = arguments.choice("optimizer", given[0], NAMES)
    step = float(arguments.number("step", given[1], arguments.POSITIVE))
    momentum = {"gd": 0.0}.get(name, 0.9)
    if len(given) > 2:
        share = arguments.Allowed(lambda x: (x >= 0) & (x < 1), "at least 0 and below 1")
        momentum = float(arguments.number("momentum", given[2], share))
    decay = float(arguments.number("decay", given[3], arguments.NOT_NEGATIVE)) if len(given) > 3 else 0.0
    if name == "adamw":
        return Optimizer("adam", step, momentum, decay)
    return Optimizer(name, step, momentum, 0.0, decay)
