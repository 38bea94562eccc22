"""The largest step that the curvature bears, for the optimizer in use."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np
from scipy.optimize import brentq

from deeplimits.diagnosis import layer_rates
from deeplimits.diagnosis.findings import Assumption, Finding, few
from deeplimits.diagnosis.subject import Optimizer, Subject
from deeplimits.errors import ParameterError
from deeplimits.measure.curvature import Eigenpairs, eigenpairs, hessian
from deeplimits.measure.curvature.operators import Curvature
from deeplimits.measure.estimates import Estimate
from deeplimits.measure.training import adam_denominators, stable_curvature
from deeplimits.measure.training.stability import update_matrix
from deeplimits.predictions.picture import SIMULATION, Axis, Line, Picture, Rule

EDGE = 0.1
"""Steps this close to the largest stable one are at the edge of stability."""
TOLERANCE = 1e-3
WORDS = {"gd": "gradient descent", "momentum": "momentum", "nesterov": "Nesterov's momentum", "adam": "Adam"}
USUAL = (Optimizer("gd", 1.0), Optimizer("momentum", 1.0, 0.9))


def largest_stable_step(optimizer: Optimizer, sharpness: float) -> float:
    """The step at which the optimizer's largest stable curvature is `sharpness`.

    >>> round(largest_stable_step(Optimizer("momentum", 1.0, 0.9), 38.0), 9)
    0.1
    """

    def excess(log_step: float) -> float:
        step = float(np.exp(log_step))
        bears = stable_curvature(optimizer.name, step, momentum=optimizer.momentum, ridge=optimizer.decay)
        return np.log(max(bears, 1e-300) / sharpness)

    # Without decay of the weights the product of step and curvature is a constant.
    near = np.log(stable_curvature(optimizer.name, 1.0, momentum=optimizer.momentum) / sharpness)
    if not optimizer.decay:
        return float(np.exp(near))
    return math.exp(float(brentq(excess, near - 20, near, xtol=1e-10)))  # type: ignore[arg-type]


def sharpness(subject: Subject) -> Eigenpairs:
    """The largest eigenvalue of the Hessian in the metric of the optimizer.

    Adam's is that of its second moments; learning rates that differ between groups of parameters, and a penalty on the
    weights, are part of it.
    """
    matrix = plain = hessian(subject.model)
    optimizer = subject.optimizer
    if optimizer is not None:
        scale = np.sqrt(rates(subject))
        if optimizer.name == "adam":
            scale = scale / np.sqrt(denominators(subject))
        if optimizer.coupled or np.any(scale != 1):
            matrix = Curvature(
                "Hessian in the optimizer's metric",
                subject.model,
                subject.model.size,
                lambda _, v: scale * (np.asarray(plain @ (scale * v)) + optimizer.coupled * (scale * v)),
            )
    return eigenpairs(matrix, count=1, tolerance=TOLERANCE, seed=subject.seed)


def rates(subject: Subject) -> np.ndarray:
    """Each parameter's learning rate over the largest; 0 for what the optimizer does not train."""
    model = subject.model
    torch = None if subject.optimizer is None else subject.optimizer.torch
    module = getattr(getattr(model.network, "body", None), "module", None)
    if torch is None or module is None:
        return np.ones(model.size)
    largest = max(float(group["lr"]) for group in torch.param_groups)
    of = {id(value): float(group["lr"]) / largest for group in torch.param_groups for value in group["params"]}
    held = dict(module.named_parameters())
    known = [name for name in model.names if id(held.get(name)) in of]
    if not known:
        # The optimizer of another copy of the network: its groups cannot be told apart.
        return np.ones(model.size)
    parts = {
        name: np.full(shape, of.get(id(held.get(name)), 0.0))
        for name, shape in zip(model.names, model.layout.shapes, strict=True)
    }
    return model.layout.flat(parts)


def denominators(subject: Subject) -> np.ndarray:
    """√v̂ + ε: of the optimizer's state where it has one, else of its first step on the whole data."""
    optimizer = subject.optimizer
    torch = None if optimizer is None else optimizer.torch
    if optimizer is not None and optimizer.moments is not None:
        return np.sqrt(_moments(subject, optimizer.moments)) + 1e-8
    if optimizer is not None and settled(optimizer):
        return adam_denominators(torch, subject.model)
    epsilon = 1e-8 if torch is None else float(torch.param_groups[0]["eps"])
    return np.abs(subject.gradient) + epsilon


def _moments(subject: Subject, given: Any) -> np.ndarray:
    """Second moments in the order of the model's parameters."""
    network = subject.model.network
    programs = getattr(network, "programs", None)
    if programs is None:
        raise ParameterError("moments are of JAX's parameters; where PyTorch trains give the optimizer itself")
    leaves, tree = jax.tree.flatten(given)
    own = [np.shape(leaf) for leaf in network.leaves]  # type: ignore[attr-defined]
    if tree != programs.tree or [np.shape(leaf) for leaf in leaves] != own:
        raise ParameterError("moments are not of the form of the parameters; give optax's nu, over 1 − β₂^steps")
    vector = np.concatenate([np.ravel(np.asarray(leaves[i], float)) for i in network.places])  # type: ignore[attr-defined]
    if not np.all(np.isfinite(vector)) or np.any(vector < 0):
        raise ParameterError("moments are to be finite and not negative")
    return vector


def settled(optimizer: Optimizer) -> bool:
    """Whether Adam's second moments are known: those of its first step alone say little of the next ones."""
    return optimizer.moments is not None or (optimizer.torch is not None and bool(optimizer.torch.state))


def examine(subject: Subject) -> Iterator[Finding]:
    """The finding about the step; without an optimizer, what gradient descent would bear."""
    found = sharpness(subject)
    value, error = float(found.values[0]), float(found.error[0])
    measured = Estimate(value, error, residual=float(found.residuals[0]), products=found.products, seed=subject.seed)
    if value <= 0:
        yield Finding(
            "step-size",
            "learning rate",
            "note",
            "the Hessian has no positive eigenvalue: curvature sets no limit to the step here.",
            measured=measured,
            what="largest eigenvalue of the Hessian",
            references=("cohen2021",),
        )
        return
    optimizer = subject.optimizer
    if optimizer is None:
        bounds = ", ".join(f"{WORDS[one.name]} {largest_stable_step(one, value):.3g}" for one in USUAL)
        yield Finding(
            "step-size",
            "learning rate",
            "note",
            f"the sharpness is {value:.3g}; the largest stable steps on the whole data set: {bounds}.",
            "give optimizer= to hear about the one in use.",
            measured,
            "largest eigenvalue of the Hessian (the sharpness)",
            references=("cohen2021",),
            picture=_picture(USUAL, value, None),
        )
        return
    yield _judged(subject, optimizer, measured)
    yield from layer_rates.examine(subject)


def word_of(optimizer: Optimizer) -> str:
    """Its name in a sentence."""
    return "AdamW" if optimizer.name == "adam" and optimizer.decay else WORDS[optimizer.name]


def _judged(subject: Subject, optimizer: Optimizer, measured: Estimate) -> Finding:
    largest = largest_stable_step(optimizer, measured.value)
    share = optimizer.step / largest
    bears = stable_curvature(optimizer.name, optimizer.step, momentum=optimizer.momentum, ridge=optimizer.decay)
    metric = " in Adam's metric" if optimizer.name == "adam" else ""
    said = (
        f"the step is {optimizer.step:.6g}; with the sharpness measured ({measured.value:.3g}{metric}) "
        f"{word_of(optimizer)} is stable up to {largest:.3g}"
    )
    if optimizer.name == "adam" and not settled(optimizer):
        severity, action = "note", "train for some steps and look again, with the optimizer itself given."
        sentence = f"{said}; this metric is that of Adam's first step, and changes fast in the next ones."
    elif share > 1 + EDGE:
        severity = "critical" if share > 2 else "warning"
        sentence = f"{said}: {share:.3g} times too large. The loss will jump, and flatten out elsewhere or diverge."
        action = f"take a step of at most {0.9 * largest:.3g}, or warm up to it."
    elif share > 1 - EDGE:
        severity, action = "note", ""
        sentence = f"{said}: training stands at the edge of stability, as full-batch training does after a while."
    else:
        severity, action = "fine", ""
        sentence = f"{said}: {1 / share:.3g} times more."
        if share < 1e-3:
            severity, action = (
                "note",
                f"training may be {few(1 / share)} times faster with a step nearer to {largest:.2g}.",
            )
    return Finding(
        "step-size",
        "learning rate",
        severity,
        sentence,
        action,
        measured,
        f"largest eigenvalue of the Hessian{metric}",
        bears,
        (
            Assumption("every step sees the whole data set; noise of small batches lowers the bound", None),
            Assumption("the loss is a quadratic around here", None),
        ),
        ("cohen2021",),
        _picture((optimizer,), measured.value, optimizer.step),
        theory_what="the largest that this optimizer bears at this step",
    )


def _picture(optimizers: Sequence[Optimizer], value: float, step: float | None) -> Picture:
    """What one step makes of an error in the most curved direction, for any step."""
    limits = [largest_stable_step(one, value) for one in optimizers]
    ends = [*limits, *([step] if step is not None else [])]
    steps = np.geomspace(min(ends) / 20, max(ends) * 4, 160)
    marks: list[Any] = []
    for series, one in enumerate(optimizers):
        radius = [
            np.abs(
                np.linalg.eigvals(update_matrix(one.name, rate, value, momentum=one.momentum, ridge=one.decay))
            ).max()
            for rate in steps
        ]
        marks.append(Line(steps, np.minimum(radius, 10.0), label=word_of(one), series=series))
    marks.append(Rule(1.0, label="errors neither grow nor shrink"))
    if step is not None:
        marks.append(Rule(step, upright=True, label="the step in use", role=SIMULATION))
    return Picture(
        Axis("learning rate", log=True), Axis("each step multiplies errors by", low=0.0, high=3.0), tuple(marks)
    )
