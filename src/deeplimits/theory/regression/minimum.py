"""The minimum of a smooth function of one variable: on a grid first, then refined."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deeplimits.errors import NotConverged


class Minimum(NamedTuple):
    """Where the function is least, its value there, and the index of the grid point next to it."""

    at: float
    value: float
    index: int


def minimum(function: Callable[[NDArray], NDArray], grid: NDArray, *, accuracy: float = 1e-11) -> Minimum:
    """The least value of a function that maps arrays to arrays, near the best point of an increasing grid.

    >>> found = minimum(lambda u: (u - 0.3) ** 2, np.linspace(0.0, 1.0, 7))
    >>> round(found.at, 6), found.index
    (0.3, 2)
    """
    from scipy import optimize

    index = int(np.argmin(function(grid)))
    bracket = (grid[max(index - 1, 0)], grid[min(index + 1, len(grid) - 1)])
    found: Any = optimize.minimize_scalar(
        lambda u: float(function(np.asarray(u))), bounds=bracket, options={"xatol": accuracy}
    )
    if not found.success:
        raise NotConverged(f"the minimum between {bracket[0]:g} and {bracket[1]:g} was not found: {found.message}")
    return Minimum(float(found.x), float(found.fun), index)
