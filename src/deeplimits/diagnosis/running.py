"""The diagnosis itself: what is looked at, in which order, within a budget of time."""

import dataclasses
import inspect
import math
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from deeplimits.diagnosis import (
    catapult,
    curvature,
    gradient_noise,
    initialization,
    inputs,
    learning_rate,
    probe,
    regime,
    representations,
    spectrum,
    stationarity,
    unopened,
    weights,
)
from deeplimits.diagnosis.findings import Finding, few
from deeplimits.diagnosis.report import Report
from deeplimits.diagnosis.subject import Subject, read_optimizer
from deeplimits.errors import DeeplimitsError, MissingArgument, NotConverged, ParameterError, did_you_mean
from deeplimits.measure.adapters import Model, open_model
from deeplimits.measure.curvature.lanczos import BYTES
from deeplimits.measure.estimates import Estimate
from deeplimits.numerics import arguments
from deeplimits.render import bars

UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
SIZES = {"kB": 1e3, "MB": 1e6, "GB": 1e9}
OPTIONS = tuple(name for name in inspect.signature(open_model).parameters if name not in ("network", "loss", "data"))
"""What `diagnose` passes on to `open_model`."""
OWN = ("optimizer", "budget", "only", "dry_run", "progress")
UNFORESEEN = (ArithmeticError, AttributeError, LookupError, MemoryError, RuntimeError, TypeError, ValueError)
"""What a network or a loss of the user's may raise in the middle: the other parts are still looked at."""


class Part(NamedTuple):
    """One part of the diagnosis."""

    name: str
    examine: Callable[[Subject], Iterator[Finding]]
    cost: Callable[[Subject], float]
    """About how many seconds it takes."""
    room: Callable[[Subject], float] = lambda subject: 32.0 * subject.model.size
    """About how many bytes it holds, beside what a pass of the network takes."""


def _products(count: float | Callable[[Subject], float]) -> Callable[[Subject], float]:
    def cost(subject: Subject) -> float:
        needed = count(subject) if callable(count) else count
        return needed * subject.product_seconds if needed else 0.0

    return cost


def _vectors(count: float, most: float = math.inf) -> Callable[[Subject], float]:
    """So many vectors of the size of the parameters, in float64."""
    return lambda subject: min(8.0 * count * subject.model.size, most)


def _nothing(_: Subject) -> float:
    return 0.0


PARTS = (
    Part("data", inputs.examine, _nothing),
    Part("initialization", initialization.examine, _nothing),
    Part("weights", weights.examine, _nothing),
    Part("learning rate", learning_rate.examine, _products(40), _vectors(90, 1.2 * BYTES)),
    Part("gradient noise", gradient_noise.examine, _products(4), _vectors(25)),
    Part("representations", representations.examine, _products(2)),
    Part("linear probe", probe.examine, _nothing),
    Part("tangent kernel", catapult.examine, _products(catapult.PRODUCTS), _vectors(90, 1.2 * BYTES)),
    Part("regime", regime.examine, _products(regime.products_needed), _vectors(100, 8.0 * regime.LARGEST)),
    Part("stationarity", stationarity.examine, _products(stationarity.products_needed)),
    Part("curvature", curvature.examine, _products(curvature.products_needed), _vectors(140, 1.2 * BYTES)),
    Part("spectrum", spectrum.examine, _products(spectrum.PRODUCTS), spectrum.bytes_needed),
)


def diagnose(
    model: Any,
    loss: Callable[[Any, Any], Any] | None = None,
    data: Any = None,
    *,
    optimizer: Any = None,
    parameters: Any = None,
    budget: float | str = "60s",
    memory: float | str | None = None,
    seed: int = 0,
    only: tuple[str, ...] | list[str] | None = None,
    dry_run: bool = False,
    progress: bool | None = None,
    **options: Any,
) -> Report:
    """What theory expects of this very network, what is measured of it, and what to do.

    `model`, `loss` and `data` are as `measure.adapters.open_model` takes them (`options` too), or `model` is a
    `Model` that it made. A JAX function needs its `parameters`. `optimizer` is the one in use: a torch.optim
    optimizer, or ('adam', step) and the like. The parts that fit into the `budget` of time, and into the `memory`
    where that is given ('2GB'), are looked at, cheap ones first; the report says what was left out. `only` names
    parts; `dry_run` says what each would cost and looks at nothing. `progress` shows a bar; by default where there is
    a terminal or a notebook. Nothing of the user's is changed, nor where the diagnosis is interrupted.

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
    seconds, most = budget_of(budget), math.inf if memory is None else memory_of(memory)
    chosen = _chosen(only)
    used = read_optimizer(optimizer)
    arguments.whole("seed", seed)
    title = f"{type(model).__name__} diagnosed"
    if not isinstance(model, Model):
        for name, value in (("loss", loss), ("data", data)):
            if value is None:
                raise MissingArgument(f"{name} is missing: diagnose(model, loss, data)")
        if not callable(loss):
            raise ParameterError(f"loss is a {type(loss).__name__}; it must be a function of outputs and targets")
    for name in options:
        if name not in OPTIONS:
            raise ParameterError(f"diagnose takes no {name}{did_you_mean(name, [*OPTIONS, *OWN])}")
    try:
        opened = _opened(model, loss, data, parameters=parameters, seed=seed, **options)
    except MissingArgument:
        raise
    except ParameterError as error:
        return _unopened(title, model, (data, options), str(error), chosen, seed, begin)
    subject = Subject(opened, used, seed, begin + seconds)
    if dry_run:
        estimates = tuple(
            f"{part.name}: about {few(part.cost(subject))} s and {_size(part.room(subject))}" for part in chosen
        )
        return Report(title, (), estimates, opened.notes, seed, time.monotonic() - begin)
    findings: list[Finding] = []
    left_out: list[str] = []
    with bars.progress(len(chosen), "diagnosis", progress, unit="part") as bar:
        for part in chosen:
            bar.set_postfix_str(part.name)
            left_out += _look(part, subject, findings, most)
            bar.update()
    ordered = sorted(findings, key=lambda one: (one.rank, -one.urgency))
    return Report(title, tuple(ordered), tuple(left_out), opened.notes, seed, time.monotonic() - begin)


def _look(part: Part, subject: Subject, findings: list[Finding], most: float = math.inf) -> list[str]:
    """Add what a part finds; the sentences say what it could not."""
    began = time.perf_counter()
    try:
        cost = part.cost(subject)
        if cost > max(subject.left, 0.0) and cost > 0.2:
            return [f"{part.name}: would take about {few(cost)} s, more than is left of the budget"]
        if math.isfinite(most) and part.room(subject) > most:
            return [f"{part.name}: would hold about {_size(part.room(subject))}, more than memory allows"]
        for found in part.examine(subject):
            now = time.perf_counter()
            findings.append(_timed(found, now - began))
            began = now
    except NotConverged as error:
        return [f"{part.name}: {error}"]
    except DeeplimitsError as error:
        return [f"{part.name}: not applicable: {error}"]
    except UNFORESEEN as error:
        said = " ".join(str(error).split())[:200]
        return [f"{part.name}: the network or its loss failed with {type(error).__name__}: {said}"]
    return []


def _timed(found: Finding, seconds: float) -> Finding:
    return dataclasses.replace(found, seconds=seconds)


def budget_of(given: float | str) -> float:
    """Seconds of '30s', '2m', '1h' or a number.

    >>> budget_of("2m"), budget_of(5)
    (120.0, 5.0)
    """
    return _amount("budget", given, UNITS, "seconds, or '30s', '2m', '1h'")


def memory_of(given: float | str) -> float:
    """Bytes of '500MB', '2GB' or a number.

    >>> memory_of("2GB"), memory_of(1e6)
    (2000000000.0, 1000000.0)
    """
    return _amount("memory", given, SIZES, "bytes, or '500MB', '2GB'")


def _amount(name: str, given: float | str, units: Mapping[str, float], allowed: str) -> float:
    if isinstance(given, str):
        match = re.fullmatch(rf"\s*([0-9.]+(?:e[0-9]+)?)\s*({'|'.join(units)})\s*", given)
        if match is None:
            raise ParameterError(f"{name} = {given!r} is not allowed; give {allowed}")
        given = float(match[1]) * units[match[2]]
    return float(arguments.number(name, given, arguments.POSITIVE))


def _size(count: float) -> str:
    unit = "GB" if count >= 1e9 else "MB"
    return f"{count / SIZES[unit]:.2g} {unit}"


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
        "cannot-be-measured", "model", "critical", f"{said}.", "mend this first; the rest depends on it.",
        references=("goodfellow2016",), urgency=4.0,
    )  # fmt: skip
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
                measured=Estimate(broken, None),
                what="entries that are not finite",
                references=("goldberg1991",),
                urgency=5.0,
            )
