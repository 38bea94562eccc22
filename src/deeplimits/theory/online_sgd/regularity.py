"""The assumptions of the theorems on spherical online SGD, checked."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from deeplimits.errors import ParameterError
from deeplimits.numerics import roots
from deeplimits.theory.online_sgd.landscapes import Landscape


class Regularity(NamedTuple):
    """Which assumptions hold, and the numbers behind the answer."""

    directional_variance: float
    """sup over m of E⟨∇H, θ⟩²."""
    squared_gradient: float
    """sup over m of lim E|∇L|²/N."""
    moments_bounded: bool
    """Assumption A, as far as second moments show it."""
    descends: bool
    """Assumption B: φ' < 0 on (0, 1)."""
    stops_at: float | None
    """The first m in (0, 1) at which φ' ≥ 0, where there is one."""


def check_regularity(landscape: Landscape, *, points: int = 400, edge: float = 0.98) -> Regularity:
    """Check the assumptions A (moments of the gradient noise) and B (the loss falls towards the signal).

    Setting     a loss that depends on the unit vector x through m = ⟨x, θ⟩ in mean; H = L − EL, ∇ on the sphere
    Result      A: sup E⟨∇H, θ⟩² ≤ C and E|∇H|^{4+ε} ≤ C N^{(4+ε)/2}; B: φ' < 0 on (0, 1). B holds iff gradient
                flow on φ from the upper half-sphere reaches the signal
    Validity    the suprema are taken over a grid of `points` in [0, edge]; the sign of φ' is refined by bisection
    References  benarous2021

    >>> from deeplimits.theory.online_sgd import online_pca
    >>> report = check_regularity(online_pca(1.0))
    >>> report.moments_bounded, report.descends, round(report.directional_variance, 3) >= 8
    (True, True, True)
    """
    if points < 10 or not 0 < edge < 1:
        raise ParameterError(f"points = {points}, edge = {edge}: take at least 10 points and an edge in (0, 1)")
    m = jnp.linspace(0.0, edge, points)
    directional = np.asarray(landscape.directional_variance(m))
    squared = np.asarray(landscape.squared_gradient(m))
    slope = np.asarray(landscape.slope(m[1:]))
    uphill = np.flatnonzero(slope >= 0)
    stops = None
    if len(uphill):
        first = int(uphill[0])
        _, high = roots.switch(
            lambda m: np.asarray(landscape.slope(jnp.asarray(m)) >= 0), *np.asarray(m[first : first + 2])
        )
        stops = float(high) if first else 0.0
    bounded = bool(np.all(np.isfinite(directional)) and np.all(np.isfinite(squared)))
    return Regularity(float(directional.max()), float(squared.max()), bounded, stops is None, stops)
