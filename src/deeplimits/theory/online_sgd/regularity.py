"""The assumptions of the theorems on spherical online SGD, checked."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from deeplimits.errors import ParameterError
from deeplimits.numerics import arguments, roots
from deeplimits.theory.online_sgd.landscapes import Landscape

HALVINGS = 12
MOST_POINTS = 20_000
COARSE = 21
"""Points at which the moment of order 4 + ε is taken."""


class Regularity(NamedTuple):
    """Which assumptions hold, and the numbers behind the answer."""

    directional_variance: float
    """sup over m of E⟨∇H, θ⟩²."""
    squared_gradient: float
    """sup over m of lim E|∇L|²/N."""
    higher_moment: float | None
    """sup over m of lim E(|∇L|²/N)^{(4+ε)/2}, infinite where there is none; None where the landscape does not know."""
    moments_bounded: bool
    """Assumption A: these moments are finite."""
    descends: bool
    """Assumption B: φ' < 0 on (0, 1)."""
    stops_at: float | None
    """The first m in (0, 1) at which φ' ≥ 0, where there is one."""


def check_regularity(landscape: Landscape, *, points: int = 400, edge: float = 0.98, excess: float = 0.5) -> Regularity:
    """Check the assumptions A (moments of the gradient noise) and B (the loss falls towards the signal).

    Setting     a loss that depends on the unit vector x through m = ⟨x, θ⟩ in mean; H = L − EL, ∇ on the sphere
    Result      A: sup E⟨∇H, θ⟩² ≤ C and E|∇H|^{4+ε} ≤ C N^{(4+ε)/2} with ε = `excess`; B: φ' < 0 on (0, 1). B holds
                iff gradient flow on φ from the upper half-sphere reaches the signal
    Validity    the suprema are taken over a grid of `points` in [0, edge]. The sign of φ' is looked at on this grid
                and on points that come to 1 geometrically; intervals are halved where φ' is not nearly straight, every
                local minimum of −φ'/m^{k−1} is descended to, and the first change of sign is found by bisection
    References  benarous2021

    >>> from deeplimits.theory.online_sgd import online_pca
    >>> report = check_regularity(online_pca(1.0))
    >>> report.moments_bounded, report.descends, round(report.directional_variance, 3) >= 8
    (True, True, True)
    """
    arguments.of_kind("landscape", landscape, Landscape)
    points = arguments.whole("points", points, 10)
    if points > MOST_POINTS:
        raise ParameterError(f"points = {points} is not allowed; {MOST_POINTS} are as fine as it goes")
    last = float(arguments.number("edge", edge, arguments.inside(0, 1)))
    order = 4 + float(arguments.number("excess", excess, arguments.POSITIVE))
    m = jnp.linspace(0.0, last, points)
    directional = np.asarray(landscape.directional_variance(m))
    squared = np.asarray(landscape.squared_gradient(m))
    moment = landscape.gradient_moment
    higher = None if moment is None else float(jnp.max(moment(jnp.linspace(0.0, last, COARSE), order)))
    bounded = bool(np.all(np.isfinite(directional)) and np.all(np.isfinite(squared)))
    stops = _first_rise(landscape, points, last)
    return Regularity(
        float(directional.max()),
        float(squared.max()),
        higher,
        bool(bounded and (higher is None or np.isfinite(higher))),
        stops is None,
        stops,
    )


def _first_rise(landscape: Landscape, points: int, edge: float) -> float | None:
    """The first m in (0, 1) at which φ' ≥ 0."""

    def fall(m):
        # −φ' relative to the way it vanishes at the equator
        m = np.asarray(m, float)
        return -np.asarray(landscape.slope(jnp.asarray(m))) / m ** (landscape.exponent - 1)

    m = np.concatenate([np.linspace(0.0, edge, points)[1:], 1 - (1 - edge) * np.geomspace(1.0, 1e-8, 60)[1:]])
    values = fall(m)
    for _ in range(HALVINGS):
        middles = (m[1:] + m[:-1]) / 2
        between = fall(middles)
        bent = np.abs(between - (values[1:] + values[:-1]) / 2) > 0.1 * np.minimum(values[1:], values[:-1])
        keep = bent & (between > 0) | (between <= 0)
        order = np.argsort(np.concatenate([m, middles[keep]]), kind="stable")
        m, values = (np.concatenate(pair)[order] for pair in ((m, middles[keep]), (values, between[keep])))
        if not keep.any() or np.any(values <= 0) or len(m) > 20 * points:
            break
    low = np.flatnonzero((values[1:-1] < values[:-2]) & (values[1:-1] <= values[2:])) + 1
    if len(low):
        deepest = roots.peak(lambda x: -fall(x), m[low - 1], m[low + 1])
        order = np.argsort(np.concatenate([m, deepest]), kind="stable")
        m, values = (np.concatenate(pair)[order] for pair in ((m, deepest), (values, fall(deepest))))
    uphill = np.flatnonzero(values <= 0)
    if not len(uphill):
        return None
    first = int(uphill[0])
    if first == 0:
        return 0.0
    _, high = roots.switch(lambda x: fall(x) <= 0, m[first - 1], m[first])
    return float(high)
