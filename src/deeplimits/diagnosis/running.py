"""The diagnosis itself: what is looked at, in which order, within a budget of time."""

import re
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from deeplimits.diagnosis import (
    curvature,
    gradient_noise,
    initialization,
    inputs,
    learning_rate,
    probe,
    regime,
    representations,
    unopened,
    weights,
)
from deeplimits.diagnosis.findings import Finding
from deeplimits.diagnosis.report import Report
from deeplimits.diagnosis.subject import Subject, read_optimizer
from deeplimits.errors import DeeplimitsError, NotConverged, ParameterError
from deeplimits.measure.adapters import Model, open_model
from deeplimits.numerics import arguments

UNITS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


class Part(NamedTuple):
    """One part of the diagnosis."""

    name: str
    examine: Callable[[Subject], Iterator[Finding]]
    cost: Callable[[Subject], float]
    """About how many seconds it takes."""


def _passes(count: float) -> Callable[[Subject], float]:
    return lambda subject: count * subject.product_seconds


PARTS = (
    Part("data", inputs.examine, lambda _: 0.0),
    Part("initialization", initialization.examine, lambda _: 0.0),
    Part("weights", weights.examine, lambda _: 0.0),
    Part("learning rate", learning_rate.examine, _passes(40)),
    Part("gradient noise", gradient_noise.examine, _passes(4)),
    Part("regime", regime.examine, lambda subject: subject.product_seconds * regime.products_needed(subject)),
    Part("representations", representations.examine, _passes(2)),
    Part("linear probe", probe.examine, lambda _: 0.0),
    Part("curvature", curvature.examine, lambda subject: subject.product_seconds * curvature.products_needed(subject)),
)


def diagnose(
    model: Any,
    loss: Callable[[Any, Any], Any] | None = None,
    data: Any = None,
    *,
    optimizer: Any = None,
    parameters: Any = None,
    budget: float | str = "60s",
    seed: int = 0,
    only: tuple[str, ...] | list[str] | None = None,
    dry_run: bool = False,
    **options: Any,
) -> Report:
    """What theory expects of this very network, what is measured of it, and what to do.

    `model`, `loss` and `data` are as `measure.adapters.open_model` takes them (`options` too), or `model` is a `Model`
    that it made. `optimizer` is the one in use: a torch.optim optimizer, or ('adam', step) and the like. The parts that
    fit into the `budget` of time are looked at, cheap ones first; the report says what was left out. `only` names
    parts; `dry_run` says what each would cost and looks at nothing. Nothing of the user's is changed.

    >>> import torch
    >>> _ = torch.manual_seed(0)
    >>> net = torch.nn.Sequential(torch.nn.Linear(10, 50), torch.nn.ReLU(), torch.nn.Linear(50, 3))
    >>> random = np.random.default_rng(0)
    >>> x, y = random.normal(size=(60, 10)).astype("float32"), np.arange(60) % 3
    >>> report = diagnose(net, torch.nn.CrossEntropyLoss(), (x, y), optimizer=("gd", 50.0))
    >>> report.worst, report["step-size"].severity
    ('critical', 'critical')
    """
    begin = time.monotonic()
    seconds = budget_of(budget)
    chosen = _chosen(only)
    used = read_optimizer(optimizer)
    arguments.whole("seed", seed)
    title = f"{type(model).__name__} diagnosed"
    if not isinstance(model, Model):
        for name, value in (("loss", loss), ("data", data)):
            if value is None:
                raise ParameterError(f"{name} is missing: diagnose(model, loss, data)")
    try:
        opened = _opened(model, loss, data, parameters=parameters, seed=seed, **options)
    except ParameterError as error:
        return _unopened(title, model, (data, options), str(error), chosen, seed, begin)
    subject = Subject(opened, used, seed, begin + seconds)
    if dry_run:
        estimates = tuple(f"{part.name}: about {part.cost(subject):.2g} s" for part in chosen)
        return Report(title, (), estimates, opened.notes, seed, time.monotonic() - begin)
    findings: list[Finding] = []
    left_out: list[str] = []
    for part in chosen:
        left_out += _look(part, subject, findings)
    ordered = sorted(findings, key=lambda one: (one.rank, -one.urgency))
    return Report(title, tuple(ordered), tuple(left_out), opened.notes, seed, time.monotonic() - begin)


def _look(part: Part, subject: Subject, findings: list[Finding]) -> list[str]:
    """Add what a part finds; the sentences say what it could not."""
    began = time.perf_counter()
    try:
        cost = part.cost(subject)
        if cost > max(subject.left, 0.0) and cost > 0.2:
            return [f"{part.name}: would take about {cost:.0f} s, more than is left of the budget"]
        for found in part.examine(subject):
            now = time.perf_counter()
            findings.append(_timed(found, now - began))
            began = now
    except NotConverged as error:
        return [f"{part.name}: {error}"]
    except DeeplimitsError as error:
        return [f"{part.name}: not applicable: {error}"]
    return []


def _timed(found: Finding, seconds: float) -> Finding:
    import dataclasses

    return dataclasses.replace(found, seconds=seconds)


def budget_of(given: float | str) -> float:
    """Seconds of '30s', '2m', '1h' or a number.

    >>> budget_of("2m"), budget_of(5)
    (120.0, 5.0)
    """
    if isinstance(given, str):
        match = re.fullmatch(r"\s*([0-9.]+(?:e[0-9]+)?)\s*(s|m|min|h)?\s*", given)
        if match is None:
            raise ParameterError(f"budget = {given!r} is not allowed; give seconds, or '30s', '2m', '1h'")
        return budget_of(float(match[1]) * UNITS[match[2] or "s"])
    return float(arguments.number("budget", given, arguments.POSITIVE))


def _chosen(only: Any) -> tuple[Part, ...]:
    if only is None:
        return PARTS
    names = [only] if isinstance(only, str) else list(only)
    for name in names:
        arguments.choice("only", name, [part.name for part in PARTS])
    return tuple(part for part in PARTS if part.name in names)


def _opened(model: Any, loss: Any, data: Any, **options: Any) -> Model:
    return model if isinstance(model, Model) else open_model(model, loss, data, **options)


def _unopened(
    title: str,
    model: Any,
    given: tuple[Any, dict[str, Any]],
    said: str,
    chosen: tuple[Part, ...],
    seed: int,
    begin: float,
) -> Report:
    """A report about a network that cannot be measured: why, where it is broken, and what can be said all the same."""
    found = Finding(
        "cannot-be-measured", "model", "critical", f"{said}.", "mend this first; the rest depends on it.", urgency=4.0
    )
    findings = [found, *_ranges(model)]
    left_out: list[str] = []
    data, options = given
    alone = unopened.taken(model, data, options)
    for part in chosen:
        if part.name in unopened.PARTS and alone is not None:
            left_out += _look(part, Subject(alone, None, seed, begin + 60.0), findings)
        else:
            left_out.append(f"{part.name}: not looked at, as the network cannot be measured")
    ordered = sorted(findings, key=lambda one: (one.rank, -one.urgency))
    return Report(title, tuple(ordered), tuple(left_out), (), seed, time.monotonic() - begin)


def _ranges(model: Any) -> Iterator[Finding]:
    """Parameters of a PyTorch module whose finite values are far larger than those of its other layers."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(model, torch.nn.Module):
        return
    for name, value in model.named_parameters():
        if isinstance(value, torch.nn.parameter.UninitializedParameter) or not value.is_floating_point():
            continue
        broken = int(np.sum(~np.isfinite(value.detach().cpu().double().numpy())))
        if broken:
            yield Finding(
                "broken-parameters",
                "weights",
                "critical",
                f"{broken} of the {value.numel():,} entries of {name} are NaN or infinite.",
                "go back to the last good checkpoint; a smaller step or clipped gradients keep it from coming back.",
                what="entries that are not finite",
                urgency=5.0,
            )
