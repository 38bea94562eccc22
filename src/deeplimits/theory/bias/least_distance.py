"""The point of a polyhedron closest to the origin, exactly, or a proof that the polyhedron is empty.

argmin ‖z‖ : Gz ≥ h is Lawson and Hanson's least-distance problem. With E = [G'; h'] and u ≥ 0 minimizing ‖Eu − e_last‖,
the residual r = Eu − e_last gives z = −r_{1:d}/r_{d+1} and the multipliers a = −u/r_{d+1}; r = 0 exactly if no z
satisfies the constraints, and then u is Farkas' certificate: G'u = 0 and ⟨h, u⟩ = 1.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deeplimits.errors import NotConverged

Floats = NDArray[np.float64]

INFEASIBLE = 1e-10
"""A residual below this, for rows of norm at most one, counts as zero."""
FIRST = 4
"""Constraints looked at first, as a multiple of the number of unknowns."""


class LeastDistance(NamedTuple):
    """The answer: either the closest point with its multipliers, or a certificate that there is none."""

    point: Floats | None
    multipliers: Floats | None
    """a ≥ 0 with z = G'a and a_i (⟨g_i, z⟩ − h_i) = 0."""
    certificate: Floats | None
    """u ≥ 0 with G'u = 0 and ⟨h, u⟩ = 1 where the constraints contradict each other."""
    residual: float
    """Largest violation of a constraint, relative to the largest |h_i|; ‖G'u‖ for a certificate."""


def closest_point(rows: Floats, bounds: Floats, *, guess: Floats | None = None) -> LeastDistance:
    """Solve argmin ‖z‖ : ⟨g_i, z⟩ ≥ h_i, for rows g_i of norm about one.

    Constraints are taken in as they are violated: the closest point to a few of them moves outward with every one
    that is added, so the loop ends, and it ends after a few rounds because few constraints are active. The first ones
    are those that a `guess` of the point satisfies least.

    >>> found = closest_point(np.array([[1.0, 2.0], [2.0, 0.5], [3.0, 3.0], [4.0, 1.0]]), np.ones(4))
    >>> found.point, found.multipliers  # doctest: +NORMALIZE_WHITESPACE
    (array([0.42857143, 0.28571429]), array([0.10204082, 0.16326531, 0. , 0. ]))
    """
    count, dimension = rows.shape
    block = max(FIRST * dimension, 200)
    first = rows.T @ bounds if guess is None else guess
    order = np.argsort(rows @ first - bounds, kind="stable")
    working = np.sort(order[:block])
    while True:
        found = _solve(rows[working], bounds[working])
        if found.point is None:
            assert found.certificate is not None
            return found._replace(certificate=_spread(found.certificate, working, count))
        slack = rows @ found.point - bounds
        scale = np.max(np.abs(bounds))
        tolerance = max(1e-12 * scale, 2 * found.residual * scale)
        outside = np.setdiff1d(np.flatnonzero(slack < -tolerance), working)
        if not len(outside):
            assert found.multipliers is not None
            violation = float(max(0.0, -slack.min()) / scale)
            return found._replace(multipliers=_spread(found.multipliers, working, count), residual=violation)
        worst = outside[np.argsort(slack[outside])[: max(dimension, 100)]]
        near = working[slack[working] < 0.5 * scale]
        working = np.union1d(near, worst)


def _spread(values: Floats, places: NDArray[np.intp], count: int) -> Floats:
    full = np.zeros(count)
    full[places] = values
    return full


def _solve(rows: Floats, bounds: Floats) -> LeastDistance:
    from scipy.optimize import nnls

    system = np.vstack([rows.T, bounds])
    target = np.zeros(len(system))
    target[-1] = 1
    try:
        weights, distance = nnls(system, target, maxiter=max(30 * system.shape[1], 1000))
    except RuntimeError as error:
        raise NotConverged(
            f"nonnegative least squares of {system.shape[1]} constraints in {len(rows.T)} unknowns stopped: {error}; "
            "rescale the data or remove nearly identical points"
        ) from None
    remainder = system @ weights - target
    if distance < INFEASIBLE:
        return LeastDistance(None, None, weights, float(np.linalg.norm(remainder[:-1])))
    point, multipliers = -remainder[:-1] / remainder[-1], -weights / remainder[-1]
    point, multipliers = _polish(rows, bounds, point, multipliers)
    scale = np.max(np.abs(bounds))
    return LeastDistance(point, multipliers, None, float(max(0.0, np.max(bounds - rows @ point)) / scale))


def _polish(rows: Floats, bounds: Floats, point: Floats, multipliers: Floats) -> tuple[Floats, Floats]:
    """Solve the active constraints as equations, which restores the digits that a thin margin costs above."""
    from scipy.linalg import LinAlgError, solve_triangular

    active = np.flatnonzero(multipliers > 0)
    if not 0 < len(active) <= rows.shape[1]:
        return point, multipliers
    q, r = np.linalg.qr(rows[active].T)
    diagonal = np.abs(np.diag(r))
    if diagonal.min() <= 1e-12 * diagonal.max():
        return point, multipliers
    try:
        coordinates = solve_triangular(r, bounds[active], trans=1)
        refined = solve_triangular(r, coordinates)
    except LinAlgError:
        return point, multipliers
    better = q @ coordinates
    worst = max(np.max(bounds - rows @ point), 1e-14 * np.max(np.abs(bounds)))
    if refined.min() < 0 or np.max(bounds - rows @ better) > worst:
        return point, multipliers
    polished = np.zeros_like(multipliers)
    polished[active] = refined
    return better, polished
