"""Fixed points of analytic maps of the upper half plane into itself."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MOST_STEPS = 300
LEAST = 1e-300


class FixedPoints(NamedTuple):
    """ω at every z, and the relative residual."""

    points: NDArray
    residual: NDArray


def fixed_point(
    image: Callable[[NDArray, NDArray], tuple[NDArray, NDArray]], z: NDArray, start: NDArray, floor: NDArray
) -> FixedPoints:
    """ω = f(ω, z) for every z, and the relative residual; `image` gives f and its slope, ω lies above `floor`.

    Such a map has at most one fixed point in the half plane, so that a search that stays there cannot find a wrong one:
    Newton's steps, and plain ones where those leave the half plane or do not lead on.
    """
    best, error = start.copy(), np.full(z.shape, np.inf)
    active, target, here = np.arange(z.size), z, start
    with np.errstate(all="ignore"):
        value, slope = image(here, target)
        for count in range(MOST_STEPS):
            size = np.abs(value - here) / (np.abs(here) + np.abs(value))
            improved = size < error[active]
            best[active[improved]], error[active[improved]] = here[improved], size[improved]
            going = ~((size <= 1e-16) | (~improved & (error[active] < 1e-13)))
            if not going.any():
                break
            active, target, here = active[going], target[going], here[going]
            value, slope = value[going], slope[going]
            newton = here + (value - here) / (1 - slope)
            # On the real line the mirror image of a fixed point is one: a step across the floor is reflected.
            least = floor[active]
            newton = np.real(newton) + 1j * (least + np.abs(np.imag(newton) - least))
            blocked = ~np.isfinite(newton) | (np.imag(newton) == 0) | (count % 4 == 3)
            trial = np.where(blocked, here + (value - here) * (0.5 if count % 8 == 3 else 1.0), newton)
            trial = np.real(trial) + 1j * np.maximum(np.imag(trial), LEAST)
            new_value, new_slope = image(trial, target)
            refused = ~blocked & ~(np.abs(new_value - trial) <= 4 * np.abs(value - here))
            if refused.any():
                plain = value[refused]
                trial[refused] = np.real(plain) + 1j * np.maximum(np.imag(plain), LEAST)
                new_value[refused], new_slope[refused] = image(trial[refused], target[refused])
            here, value, slope = trial, new_value, new_slope
    return FixedPoints(best, error)
