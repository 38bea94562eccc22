"""Reading a run: has sharpness grown, does it hover at the edge of stability, were there catapults."""

from typing import NamedTuple

import numpy as np

from deeplimits.errors import ParameterError
from deeplimits.measure.estimates import Estimate
from deeplimits.measure.training.recorder import Record
from deeplimits.numerics import arguments

BLOCKS = 8


class Edge(NamedTuple):
    """Sharpness against the largest curvature that the optimizer bears."""

    reached: bool
    at_step: int | None
    """the first measured step at the edge"""
    ratio: Estimate | None
    """sharpness over threshold, averaged over what follows; the error from means of blocks; None where not reached"""
    largest: float
    """the largest ratio of the run"""
    growth: float
    """sharpness at the edge, or at the end, over that at the beginning: progressive sharpening where above one"""


def edge_of_stability(record: Record, *, settle: float = 0.25) -> Edge:
    """Whether a run has reached the edge of stability, and at what share of the threshold it hovers there.

    The edge is reached where sharpness is first measured above the threshold; a share `settle` of what follows is left
    out of the average. A run that stays below is an answer too: a small step reaches the edge late or never.

    >>> sharpness = np.r_[np.linspace(4, 20, 30), 20 + 0.2 * np.cos(np.arange(80))][:, None]
    >>> steps = np.arange(110)
    >>> run = Record(steps, 1.0 / (1 + steps), sharpness, steps * 0.0, steps * 0.0, steps, 20.0, 5)
    >>> found = edge_of_stability(run)
    >>> found.reached, round(found.ratio.value, 2), round(found.growth, 1)
    (True, 1.0, 5.0)
    """
    if record.threshold is None:
        raise ParameterError("the record has no threshold: give the recorder the optimizer and its step")
    arguments.real("settle", settle, arguments.inside(-1e-9, 1.0))
    ratio = record.sharpness[:, 0] / record.threshold
    above = np.flatnonzero(ratio >= 1)
    start = record.sharpness[0, 0]
    if not len(above):
        return Edge(False, None, None, float(ratio.max()), float(record.sharpness[-1, 0] / start))
    first = int(above[0])
    tail = ratio[first + int(settle * (len(ratio) - first)) :]
    mean = _blocked(tail) if len(tail) >= 2 * BLOCKS else None
    return Edge(True, int(record.steps[first]), mean, float(ratio.max()), float(record.sharpness[first, 0] / start))


def _blocked(series: np.ndarray) -> Estimate:
    size = len(series) // BLOCKS
    means = series[: size * BLOCKS].reshape(BLOCKS, size).mean(axis=1)
    return Estimate(float(series.mean()), float(means.std(ddof=1) / np.sqrt(BLOCKS)), BLOCKS)


class Sharpening(NamedTuple):
    """How sharpness grows before the edge."""

    slope: Estimate
    """d log(sharpness)/d step, by least squares over what is before the edge"""
    start: float
    end: float


def progressive_sharpening(record: Record) -> Sharpening:
    """The rate at which sharpness grows until the edge is reached, or over the whole run where it is not.

    >>> steps = np.arange(20)
    >>> run = Record(steps, steps * 1.0, np.exp(0.1 * steps)[:, None], steps * 0.0, steps * 0.0, steps, None, 5)
    >>> round(progressive_sharpening(run).slope.value, 12)
    0.1
    """
    s, steps = record.sharpness[:, 0], record.steps
    if record.threshold is not None and np.any(s >= record.threshold):
        last = int(np.flatnonzero(s >= record.threshold)[0]) + 1
        s, steps = s[:last], steps[:last]
    if len(s) < 3 or np.any(s <= 0):
        raise ParameterError("at least three measurements with positive sharpness are needed before the edge")
    x, y = steps - steps.mean(), np.log(s)
    slope = float(x @ y / (x @ x))
    left = y - y.mean() - slope * x
    error = float(np.sqrt(left @ left / (len(s) - 2) / (x @ x)))
    return Sharpening(Estimate(slope, error, len(s)), float(s[0]), float(s[-1]))


class Catapult(NamedTuple):
    """A rise of the loss that the run survives, landing where it is flatter."""

    begin: int
    """the step from which the loss rises"""
    peak: int
    end: int
    """the step at which it is back below where it began"""
    rise: float
    """loss at the peak over that at the beginning"""
    flattening: float
    """sharpness at the end over that at the beginning; NaN where it is not recorded"""


def catapults(losses: np.ndarray, *, sharpness: np.ndarray | None = None, rise: float = 2.0) -> list[Catapult]:
    """Every time the loss rose by the factor `rise` above its lowest value so far and came back below it.

    >>> [(one.begin, one.peak, one.end, one.rise) for one in catapults(np.array([1.0, 3.0, 9.0, 2.0, 0.5, 0.4]))]
    [(0, 2, 4, 9.0)]
    """
    values = np.asarray(losses, float)
    if values.ndim != 1 or len(values) < 2:
        raise ParameterError("losses must be one list, one number for each step")
    found, low, place = [], 0, 1
    while place < len(values):
        if values[place] < values[low]:
            low = place
        elif values[place] >= rise * values[low]:
            back = np.flatnonzero(values[place:] < values[low])
            if not len(back):
                break  # not survived, or not yet
            end = place + int(back[0])
            peak = low + int(np.argmax(values[low:end]))
            s = None if sharpness is None else np.asarray(sharpness, float).reshape(len(values), -1)[:, 0]
            flattening = np.nan if s is None else float(s[end] / s[low])
            found.append(Catapult(low, peak, end, float(values[peak] / values[low]), flattening))
            low = place = end
        place += 1
    return found
