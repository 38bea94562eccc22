"""Level lines of numbers on a grid."""

import numpy as np
from numpy.typing import ArrayLike

SIDES = (((0, 0), (0, 1)), ((0, 1), (1, 1)), ((1, 1), (1, 0)), ((1, 0), (0, 0)))
"""The corners (row, column) at the ends of the four sides of a cell, going round."""


def level_lines(x: ArrayLike, y: ArrayLike, values: ArrayLike, level: float) -> tuple[list, list]:
    """Points of the lines where numbers over a grid reach a level; None stands between two pieces.

    `values` has a row for each of `y`. Along the sides of a cell numbers are taken to be linear; where a cell has a
    saddle its middle decides; a cell with a gap at a corner has no line.

    >>> level_lines([0.0, 1.0], [0.0, 1.0], np.array([[0.0, 1.0], [0.0, 1.0]]), 0.25)
    ([0.25, 0.25, None], [0.0, 1.0, None])
    """
    x, y, values = (np.asarray(one, dtype=float) for one in (x, y, values))
    across: list[float | None] = []
    up: list[float | None] = []
    above = values > level
    for i in range(values.shape[0] - 1):
        for j in range(values.shape[1] - 1):
            cell = values[i : i + 2, j : j + 2]
            if (
                not np.all(np.isfinite(cell))
                or above[i : i + 2, j : j + 2].all()
                or not above[i : i + 2, j : j + 2].any()
            ):
                continue
            crossings = []
            for (r0, c0), (r1, c1) in SIDES:
                first, last = cell[r0, c0], cell[r1, c1]
                if (first > level) != (last > level):
                    share = (level - first) / (last - first)
                    row, column = r0 + share * (r1 - r0), c0 + share * (c1 - c0)
                    crossings.append((x[j] + column * (x[j + 1] - x[j]), y[i] + row * (y[i + 1] - y[i])))
            # Bottom with right and top with left leave the first corner and the last on one side, with the middle.
            if len(crossings) == 4 and (cell.mean() > level) != (cell[0, 0] > level):
                crossings = crossings[1:] + crossings[:1]
            for k in range(0, len(crossings), 2):
                across += [float(crossings[k][0]), float(crossings[k + 1][0]), None]
                up += [float(crossings[k][1]), float(crossings[k + 1][1]), None]
    return across, up


def round_levels(values: np.ndarray, log: bool, count: int = 5) -> list[float]:
    """A few numbers of one or two digits inside the range of some values.

    >>> round_levels(np.array([0.0, 1.0]), log=False)
    [0.2, 0.4, 0.6, 0.8]
    >>> round_levels(np.array([0.01, 100.0]), log=True)
    [0.1, 1.0, 10.0]
    """
    finite = np.asarray(values, dtype=float)
    finite = finite[np.isfinite(finite)]
    if finite.size == 0 or np.ptp(finite) == 0:
        return []
    low, high = float(finite.min()), float(finite.max())
    if log and low > 0:
        for subs in ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0)):
            powers = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
            found = [float(f"{sub * 10.0**power:.6g}") for power in powers for sub in subs]
            found = [one for one in found if low < one < high]
            if len(found) >= 3:
                return found[:: -(-len(found) // (count + 1))]
    step = 10.0 ** np.floor(np.log10((high - low) / count))
    width = next(step * factor for factor in (1, 2, 2.5, 5, 10) if (high - low) / (step * factor) <= count + 0.5)
    found = [float(f"{width * k:.6g}") for k in range(int(np.floor(low / width)), int(np.ceil(high / width)) + 1)]
    return [one for one in found if low < one < high]
