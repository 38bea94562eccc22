r"""Which parametrization does a network really have? Sizes of signals and updates against the width, layer by layer.

With weights W = n^{−a} w, w ~ N(0, n^{−2b}) and learning rates ∝ n^{−c}, the first updates of a layer change what
leaves it, ΔW x, by n^s with

    SGD     s = [fan-in grows] − (2a + c) − (a + b of the output layer, for all layers below it)
    Adam    s = [fan-in grows] − (a + c)

since gradients reach a hidden layer through the output layer's weights, and Adam's steps do not depend on their size.
Where all s are 0 and outputs do not grow, every layer learns as much at every width (maximal update); `standard` and
`ntk` do not have that. These are powers of what an input does to itself; those of one input on another set in at larger
widths only, so that few samples are taken.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from deeplimits.diagnosis.width_runs import built, measured_run, one_batch, start_generators
from deeplimits.errors import ParameterError
from deeplimits.measure.adapters.randomness import guarded
from deeplimits.measure.estimates import Estimate
from deeplimits.numerics import arguments
from deeplimits.predictions.picture import Axis, Line, Picture, Points

ROLES = ("input", "hidden", "output")
OWN = {
    ("standard", "sgd"): (-0.5, 0.5, 1.0),
    ("ntk", "sgd"): (-0.5, -0.5, 0.0),
    ("maximal update", "sgd"): (0.0, 0.0, 0.0),
    ("standard", "adam"): (0.0, 1.0, 1.0),
    ("ntk", "adam"): (0.0, 0.5, 0.5),
    ("maximal update", "adam"): (0.0, 0.0, 0.0),
}
"""Powers of the width in a layer's own update ΔW x, for layers in the order of `ROLES`."""
START = {"standard": 0.0, "ntk": 0.0, "maximal update": -0.5}
"""Powers of the width in the outputs at the start."""
CLEAR = 0.2
"""Powers closer than this are not told apart: those of the theory differ by 1/2, and finite widths bend them."""
CERTAIN = 4.0


class Powers(NamedTuple):
    """Powers of the width that theory gives one layer, in the order of `LayerPowers`."""

    start: float
    own: float
    change: float


class LayerPowers(NamedTuple):
    """One affine layer: which power of the width its signals have."""

    name: str
    role: str
    """'input' (only its outputs grow in number), 'hidden', or 'output' (only its inputs do)"""
    start: Estimate
    """of what leaves it at the start"""
    own: Estimate
    """of ΔW x, the part of the change that the layer's own update makes, x as at the start"""
    change: Estimate
    """of the whole change of what leaves it"""


@dataclass(frozen=True)
class CoordinateCheck:
    """What a network's layers do as it grows."""

    layers: tuple[LayerPowers, ...]
    widths: tuple[int, ...]
    rule: str
    """'sgd' or 'adam'"""
    parametrization: str
    """The one whose powers are nearest."""
    broken: tuple[str, ...]
    """The layers that do not have the powers of that parametrization."""
    sizes: np.ndarray
    """(seeds, widths, layers, 3): root mean squares of start, own update and change"""
    fault: str = ""
    """What is wrong, where one layer explains all that is off."""

    @property
    def transfers(self) -> bool:
        """Whether a learning rate found at one width is right at another."""
        return self.parametrization == "maximal update" and not self.broken

    def predicted(self, parametrization: str) -> tuple[Powers, ...]:
        """The powers that a network of this parametrization would have, layer by layer, under small first steps.

        A layer's whole change is its own update, or what lower layers pass on where that is more: a hidden layer passes
        it on as it is; the output adds it up coherently, n w Δx for weights w of order n^(start − 1/2), as updates
        below point along its weights.
        """
        known = [name for name, rule in OWN if rule == self.rule]
        arguments.choice("parametrization", parametrization, known)
        found: list[Powers] = []
        for one, (start, own) in zip(
            self.layers, _stated(parametrization, self.rule, list(self.layers), None), strict=True
        ):
            below = max((before.change for before in found), default=-math.inf)
            passed = below + start + 0.5 if one.role == "output" else below
            found.append(Powers(start, own, max(own, passed)))
        return tuple(found)

    def factors(self, width: int, base: int) -> dict[str, "Factor"]:
        """What would make a network of this width learn as the one of width `base` does, layer by layer."""
        for name, value in (("width", width), ("base", base)):
            arguments.whole(name, value, 1)
        growth = width / base
        output = next((one for one in self.layers if one.role == "output"), None)
        # Outputs that do not shrink at the start are made to, like n^(−1/2); gradients below shrink with them.
        shrink = 0.0 if output is None else min(0.0, -0.5 - nearest(output.start.value))
        found = {}
        for one in self.layers:
            power = nearest(one.own.value)
            if self.rule == "sgd" and one.role != "output":
                power += shrink
            initial = growth**shrink if one.role == "output" else 1.0
            found[one.name] = Factor(initial, growth**-power)
        return found

    def __str__(self) -> str:
        said = f"{self.parametrization} parametrization"
        said += f", but for {', '.join(self.broken)}" if self.broken else ""
        lines = [f"{said} ({self.rule}, widths {', '.join(map(str, self.widths))})"]
        if self.fault:
            lines.append(f"  {self.fault}")
        choices = [name for name, rule in OWN if rule == self.rule]
        lines.append(f"  each power as measured | as {', '.join(choices)} parametrization have it")
        header = ("layer", "at the start", "own update", "whole change")
        stated = [self.predicted(name) for name in choices]
        rows = [
            (
                f"{one.name} ({one.role})",
                *(
                    f"n^{_said(getattr(one, part))} | {' '.join(f'{each[place]._asdict()[part]:g}' for each in stated)}"
                    for part in Powers._fields
                ),
                "← broken" if one.name in self.broken else "",
            )
            for place, one in enumerate(self.layers)
        ]
        wide = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]
        lines += [
            "  " + "  ".join(word.ljust(size) for word, size in zip(row, (*wide, 0), strict=False)).rstrip()
            for row in (header, *rows)
        ]
        if not self.transfers:
            lines.append(
                "  learning rates do not carry over to other widths; .factors(width, base) says what would help"
            )
        return "\n".join(lines)

    __repr__ = __str__

    def picture(self) -> Picture:
        """Updates of all layers against the width, with the fitted powers."""
        marks: list[Any] = []
        widths = np.array(self.widths, float)
        for place, one in enumerate(self.layers):
            logs = np.log(self.sizes[:, :, place, 1])
            middle, error = logs.mean(axis=0), logs.std(axis=0, ddof=1) / math.sqrt(len(logs))
            line = np.exp(middle.mean() + float(one.own.value) * (np.log(widths) - np.log(widths).mean()))
            marks.append(Line(widths, line, series=place))
            marks.append(
                Points(
                    widths,
                    np.exp(middle),
                    np.exp(middle - error),
                    np.exp(middle + error),
                    label=f"{one.name}: n^{_said(one.own)}",
                    role="simulation",
                    series=place,
                )
            )
        return Picture(Axis("width", "n", log=True), Axis("root mean square of ΔW x", log=True), tuple(marks))


class Factor(NamedTuple):
    """By what to multiply a layer's initial weights, and its learning rate."""

    weights: float
    learning_rate: float

    @property
    def variance(self) -> float:
        """By what that multiplies the variance of the initial weights."""
        return self.weights**2

    def by_multiplier(self, rule: str) -> "Multiplied":
        """The same network with the weights left as they are, and a multiplier on what leaves the layer.

        Weights m w under a step η of SGD move like w under η/m² behind a multiplier m; Adam's step is η/m.

        >>> Factor(0.5, 1.0).by_multiplier("sgd")
        Multiplied(multiplier=0.5, learning_rate=4.0)
        """
        power = 1 if arguments.choice("rule", rule, ("sgd", "adam")) == "adam" else 2
        return Multiplied(self.weights, self.learning_rate / self.weights**power)


class Multiplied(NamedTuple):
    """By what to multiply what leaves a layer, and its learning rate."""

    multiplier: float
    learning_rate: float


def _said(power: Estimate) -> str:
    return f"{round(float(power.value), 2) + 0.0:.2f}({float(power.error):.2f})"


def nearest(power: Any) -> float:
    """The nearest multiple of one half."""
    return round(2 * float(power)) / 2


def coordinate_check(
    make: Callable[[int], Any],
    widths: Sequence[int],
    data: Any,
    *,
    loss: Callable[[Any, Any], Any],
    optimizer: Callable[[Any], Any] | None = None,
    steps: int = 1,
    samples: int = 4,
    seeds: int = 8,
    seed: int = 0,
) -> CoordinateCheck:
    """How a network's signals and updates grow with its width, and which parametrization that is.

    `make(width)` builds a fresh PyTorch network, with its own random weights, or a pair of it and its optimizer;
    otherwise `optimizer(module)` makes one, by default plain SGD with a step of 0.01. In JAX, `make(width)` gives
    (apply, parameters), or (apply, parameters, step), where `step` is one of optax's transformations or a function
    step(parameters, gradients) of new parameters; weights are to be drawn anew in each call (NumPy's generator is
    started anew before it). `data` is a batch (inputs, targets). Each width is built `seeds` times and trained `steps`
    steps on `samples` of the batch, others each time. Multipliers that the network applies to what leaves a layer
    belong to that layer. Random generators are afterwards as before.

    >>> import torch
    >>> random = np.random.default_rng(0)
    >>> data = random.normal(size=(32, 10)).astype("float32"), random.integers(0, 3, 32)
    >>> def make(width):
    ...     return torch.nn.Sequential(torch.nn.Linear(10, width), torch.nn.ReLU(), torch.nn.Linear(width, width),
    ...                                torch.nn.ReLU(), torch.nn.Linear(width, 3))
    >>> found = coordinate_check(make, [32, 64, 128, 256], data, loss=torch.nn.CrossEntropyLoss())
    >>> found.parametrization, found.broken
    ('standard', ())
    """
    sizes = [arguments.whole("widths", width, 1) for width in widths]
    if len(set(sizes)) < 3 or sizes != sorted(sizes):
        raise ParameterError(f"widths = {list(widths)} is not allowed; give three or more, increasing")
    arguments.whole("steps", steps, 1)
    arguments.whole("seeds", seeds, 2)
    whole = one_batch(data)
    count = min(arguments.whole("samples", samples, 1), len(whole.inputs))
    measured, names, rule = [], [], "sgd"
    roles: list[dict[str, tuple[int, ...]]] = []
    with guarded():
        for number in range(seeds):
            row = []
            taken = np.random.default_rng([seed, number]).choice(len(whole.inputs), count, replace=False)
            for width in sizes:
                start_generators(seed + 7919 * number)
                run = measured_run(built(make, width, optimizer), width, whole.at(taken), loss, steps)
                rule, names = run.rule, list(run.sizes)
                roles.append(run.shapes)
                row.append(list(run.sizes.values()))
            measured.append(row)
    found = np.array(measured)  # seeds, widths, layers, kinds
    where = {name: _role(name, roles[0], roles[len(sizes) - 1]) for name in names}
    kept = [place for place, name in enumerate(names) if where[name] != "fixed"]
    if not kept:
        raise ParameterError(
            "no layer of the network changes its size with the width; make(width) must use its argument"
        )
    layers = []
    for place in kept:
        powers = [_power(sizes, found[:, :, place, kind]) for kind in range(3)]
        layers.append(LayerPowers(names[place], where[names[place]], *powers))
    parametrization, broken, fault = _verdict(layers, rule)
    return CoordinateCheck(tuple(layers), tuple(sizes), rule, parametrization, broken, found[:, :, kept], fault)


def _role(name: str, small: dict[str, tuple[int, ...]], large: dict[str, tuple[int, ...]]) -> str:
    outside, inside = (large[name][axis] != small[name][axis] for axis in (0, 1))
    return {(True, False): "input", (True, True): "hidden", (False, True): "output"}.get((outside, inside), "fixed")


def _power(widths: list[int], sizes: np.ndarray) -> Estimate:
    """The slope of log size on log width, for every seed, and the standard error of their mean."""
    x = np.log(np.array(widths, float))
    x = x - x.mean()
    slopes = np.log(np.maximum(sizes, 1e-300)) @ x / (x @ x)
    return Estimate(float(slopes.mean()), float(slopes.std(ddof=1) / math.sqrt(len(slopes))), draws=len(slopes))


class _Fault(NamedTuple):
    """One layer's multiplier, initial weights or learning rate off by a power of the width."""

    place: int
    kind: str
    power: float


def _stated(
    parametrization: str, rule: str, layers: list[LayerPowers], fault: _Fault | None
) -> list[tuple[float, float]]:
    """Powers of what leaves each layer at the start and of its own update, one layer being off.

    A factor n^p in a layer's multiplier or weights makes all later signals larger; with SGD the updates of later layers
    are larger by its square, those of earlier ones by itself, through the gradient; Adam's only by what enters.
    """
    own = OWN[parametrization, rule]
    found = []
    for place, one in enumerate(layers):
        start = START[parametrization] if one.role == "output" else 0.0
        power = own[ROLES.index(one.role)]
        if fault is not None:
            signal = fault.power if fault.kind != "learning rate" else 0.0
            start += signal if place >= fault.place else 0.0
            power += signal * (1 if rule == "adam" else 2) if place > fault.place else 0.0
            power += signal if rule == "sgd" and place < fault.place else 0.0
            if place == fault.place:
                own_share = {"multiplier": 1 if rule == "adam" else 2, "initial weights": 0, "learning rate": 1}
                power += own_share[fault.kind] * fault.power
        found.append((start, power))
    return found


def _misses(layers: list[LayerPowers], stated: list[tuple[float, float]]) -> tuple[list[str], float]:
    """The layers whose powers are not these, and the sum of squared distances."""
    off, distance = [], 0.0
    for one, (start, own) in zip(layers, stated, strict=True):
        gaps = [(one.own, own), (one.start, start)]
        worst = max(abs(float(found.value) - power) - CERTAIN * float(found.error) for found, power in gaps)
        distance += sum((float(found.value) - power) ** 2 for found, power in gaps)
        if worst > CLEAR:
            off.append(one.name)
    return off, distance


def _verdict(layers: list[LayerPowers], rule: str) -> tuple[str, tuple[str, ...], str]:
    """The parametrization, the layers that do not have its powers, and what is wrong with them where one is.

    A parametrization that all layers have comes first; then one with a single layer off by a power of the width, with
    what that does to the others; then the one with the fewest layers off.
    """
    choices = [name for name, kind in OWN if kind == rule]
    plain = {name: _misses(layers, _stated(name, rule, layers, None)) for name in choices}
    whole = [name for name in choices if not plain[name][0]]
    if whole:
        return min(whole, key=lambda name: plain[name][1]), (), ""
    explained = []
    for name in choices:
        for place in range(len(layers)):
            for kind in ("learning rate", "multiplier", "initial weights"):
                for power in (-1.0, -0.5, 0.5, 1.0):
                    fault = _Fault(place, kind, power)
                    off, distance = _misses(layers, _stated(name, rule, layers, fault))
                    if not off:
                        explained.append((distance, name, fault))
    if explained:
        _, name, fault = min(explained, key=lambda one: one[0])
        word = f"the {fault.kind} of {layers[fault.place].name} is off by n^{fault.power:g}"
        return name, (layers[fault.place].name,), word
    best = min(choices, key=lambda name: (len(plain[name][0]), plain[name][1]))
    return best, tuple(plain[best][0]), ""
