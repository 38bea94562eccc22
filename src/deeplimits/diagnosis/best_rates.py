"""The best learning rate at several widths: does the one found at a small width serve at a large one?"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from deeplimits.diagnosis.width_runs import built, one_batch, start_generators
from deeplimits.errors import NotConverged, ParameterError
from deeplimits.measure.adapters.randomness import guarded
from deeplimits.measure.estimates import Estimate
from deeplimits.numerics import arguments
from deeplimits.predictions.picture import Axis, Line, Picture, Rule

FACTORS = tuple(2.0**power for power in range(-5, 6))


class RateTransfer(NamedTuple):
    """Losses after training at rates that are multiples of the optimizer's own, for networks of several widths."""

    widths: tuple[int, ...]
    factors: np.ndarray
    losses: np.ndarray
    """(seeds, widths, factors); infinite where training diverged"""
    best: tuple[Estimate, ...]
    """For each width the best factor; its error is over seeds, relative to it"""
    power: Estimate
    """of the width in the best factor: 0 where learning rates carry over"""

    @property
    def transfers(self) -> bool:
        """Whether the best rate at the smallest width is within a factor of two of that at the largest."""
        first, last = (float(self.best[place].value) for place in (0, -1))
        return max(first / last, last / first) < 2

    def __str__(self) -> str:
        rows = [
            f"  width {n}: {float(one.value):.3g} ± {float(one.error):.2g}"
            for n, one in zip(self.widths, self.best, strict=True)
        ]
        power = f"n^{float(self.power.value):.2f}({float(self.power.error):.2f})"
        word = "carries over" if self.transfers else "does not carry over"
        return "\n".join([f"the best multiple of the learning rate goes as {power}: it {word}", *rows])

    def picture(self) -> Picture:
        """The loss over the learning rate, one line for each width."""
        marks: list[Any] = []
        for place, width in enumerate(self.widths):
            middle = np.median(self.losses[:, place], axis=0)
            kept = np.isfinite(middle)
            marks.append(Line(self.factors[kept], middle[kept], label=f"width {width}", series=place))
            marks.append(Rule(float(self.best[place].value), upright=True, series=place))
        return Picture(
            Axis("multiple of the learning rate", log=True), Axis("loss after training", log=True), tuple(marks)
        )


def rate_transfer(
    make: Callable[[int], Any],
    widths: Sequence[int],
    data: Any,
    *,
    loss: Callable[[Any, Any], Any],
    optimizer: Callable[[Any], Any] | None = None,
    factors: Sequence[float] = FACTORS,
    steps: int = 30,
    seeds: int = 3,
    seed: int = 0,
) -> RateTransfer:
    """The multiple of the optimizer's learning rates at which full-batch training for some steps ends lowest.

    `make`, `data`, `loss` and `optimizer` are as for `coordinate_check`. For every width and seed the network is built
    anew and trained with each of the `factors`; the best is where a parabola through log loss over log factor, at the
    lowest point and its neighbours, is lowest. A best factor at the end of the range is an error: give more of them.

    >>> import torch
    >>> x = np.random.default_rng(0).normal(size=(40, 5)).astype("float32")
    >>> def make(width):
    ...     net = torch.nn.Sequential(torch.nn.Linear(5, width), torch.nn.Tanh(), torch.nn.Linear(width, 1))
    ...     return net, torch.optim.SGD(net.parameters(), lr=0.1)
    >>> found = rate_transfer(make, [8, 16, 32], (x, x[:, :1] ** 2), loss=torch.nn.MSELoss(), steps=10, seeds=2,
    ...                       factors=[0.125, 0.25, 0.5, 1, 2, 4, 8, 16, 32])
    >>> len(found.best), found.losses.shape
    (3, (2, 3, 9))
    """
    sizes = [arguments.whole("widths", width, 1) for width in widths]
    if len(set(sizes)) < 2 or sizes != sorted(sizes):
        raise ParameterError(f"widths = {list(widths)} is not allowed; give two or more, increasing")
    multiples = np.array([float(arguments.number("factors", one, arguments.POSITIVE)) for one in factors])
    if len(multiples) < 3 or np.any(np.diff(multiples) <= 0):
        raise ParameterError(f"factors = {list(factors)} is not allowed; give three or more, increasing")
    arguments.whole("steps", steps, 1)
    arguments.whole("seeds", seeds, 2)
    whole = one_batch(data)
    losses = np.full((seeds, len(sizes), len(multiples)), np.inf)
    with guarded():
        for number in range(seeds):
            for place, width in enumerate(sizes):
                for index, factor in enumerate(multiples):
                    start_generators(seed + 7919 * number)
                    network = built(make, width, optimizer)
                    value = np.inf
                    for _ in range(steps + 1):
                        value = network.step(whole, loss, float(factor))
                        if not math.isfinite(value) or value > 1e12:
                            value = np.inf
                            break
                    losses[number, place, index] = value
    logs = np.array(
        [[_lowest(multiples, row, width) for row, width in zip(rows, sizes, strict=True)] for rows in losses]
    )
    best = []
    for column in logs.T:
        value = math.exp(column.mean())
        best.append(Estimate(value, value * float(column.std(ddof=1)) / math.sqrt(seeds), draws=seeds))
    x = np.log(np.array(sizes, float)) - np.mean(np.log(sizes))
    slopes = logs @ x / (x @ x)
    power = Estimate(float(slopes.mean()), float(slopes.std(ddof=1) / math.sqrt(seeds)), draws=seeds)
    return RateTransfer(tuple(sizes), multiples, losses, tuple(best), power)


def _lowest(factors: np.ndarray, losses: np.ndarray, width: int) -> float:
    """log of the factor at which a parabola through the lowest loss and its neighbours is lowest."""
    if not np.any(np.isfinite(losses)):
        raise NotConverged(f"training diverges at width {width} with every one of the factors; give smaller ones")
    place = int(np.argmin(losses))
    if place in (0, len(factors) - 1):
        end = "smallest" if place == 0 else "largest"
        raise ParameterError(
            f"at width {width} the {end} of the factors is the best; give factors beyond {factors[place]:g}"
        )
    x = np.log(factors[place - 1 : place + 2])
    y = np.log(np.maximum(losses[place - 1 : place + 2], 1e-300))
    if not np.all(np.isfinite(y)):
        return float(x[1])  # the next one diverges
    bend = np.polyfit(x - x[1], y, 2)
    return float(x[1] - bend[1] / (2 * bend[0])) if bend[0] > 0 else float(x[1])
