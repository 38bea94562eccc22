r"""The linear regions of a network in a plane of its input space, as exact polygons.

A convex polygon of the plane is cut by the network's operations with kinks, one after the other in the order in which
they run. On each polygon so far, everything that the next operation decides on is affine, and known from its values at
the corners; each unit cuts it along a straight line or not at all.
"""

from typing import Any, NamedTuple

import numpy as np

from deeplimits.errors import NotConverged, ParameterError, TooCostly
from deeplimits.measure.adapters.switching import Choices, Signs, Switching, switching
from deeplimits.measure.regions.lines import AGAIN, STRAIGHT, _require_finite
from deeplimits.numerics.arguments import FINITE, NOT_NEGATIVE, argument, number, whole

EDGE = 1e-11
"""Values this small, relative to the largest at the corners of a polygon, count as zero there."""
NOISE = 1e-13
"""And values this small relative to the largest of all units: rounding."""
BOTH = np.array([True, True])
BATCH = 40_000_000
"""Numbers looked at together."""


class PlaneRegions(NamedTuple):
    """The regions of a plane on each of which a network is affine."""

    polygons: tuple[np.ndarray, ...]
    """The corners of each region in coordinates (u, v), x = x_0 + u(x_1 − x_0) + v(x_2 − x_0)"""
    outputs: tuple[np.ndarray, ...]
    """The network at those corners"""
    names: tuple[str, ...]
    """The operations with kinks"""
    counts: np.ndarray
    """How many regions there are when each of them has cut"""
    residual: float
    """The largest miss at the middle of a region, relative to the largest output"""

    @property
    def areas(self) -> np.ndarray:
        """The area of each region in the coordinates (u, v)."""
        return np.array([_area(one) for one in self.polygons])


def plane_regions(
    network: Any, points: Any, *, parameters: Any = None, margin: float = 0.5, most: int = 200_000
) -> PlaneRegions:
    r"""All linear regions of a piecewise linear network in the plane through three inputs, as polygons.

    Setting     f as in `line_pieces`; `points` the three inputs x_0, x_1, x_2; the plane is looked at where both u and
                v are between −`margin` and 1 + `margin`
    Result      the polygons into which the kinks of all operations cut it; f is affine on each
    Validity    as `line_pieces`; a region of the plane is the intersection of the plane with a region of the input
                space
    References  hanin2019; humayun2023

    >>> import jax, jax.numpy as jnp
    >>> found = plane_regions(lambda x: jax.nn.relu(x @ jnp.eye(2)).sum(axis=1), [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> len(found.polygons), found.counts.tolist(), sorted(found.areas.round(12).tolist())
    (4, [4], [0.25, 0.75, 0.75, 2.25])
    """
    watched, spots = switching(network, parameters=parameters), _three(points)
    around, most = float(number("margin", margin, NOT_NEGATIVE)), whole("most", most, 1)
    low, high = -around, 1 + around
    polygons = [np.array([[low, low], [high, low], [high, high], [low, high]])]
    names: list[str] = []
    counts: list[int] = []
    while True:
        found = _cut_by(watched, spots, polygons, len(names), most)
        if found is None:
            break
        polygons = found.polygons
        names.append(found.name)
        counts.append(len(polygons))
    return _finished(watched, spots, polygons, names, counts)


def _three(points: Any) -> np.ndarray:
    spots = np.asarray(argument("points", points, FINITE))
    if spots.ndim < 2 or len(spots) != 3 or spots.size == 0:
        raise ParameterError(f"points has shape {spots.shape}; it must have shape (3, ...), three inputs")
    flat = (spots[1:] - spots[0]).reshape(2, -1)
    values = np.linalg.svd(flat, compute_uv=False) if flat.shape[1] > 1 else np.zeros(2)
    if len(values) < 2 or not values[1] > 1e-12 * values[0]:
        raise ParameterError("points lie on a line; a plane needs three inputs that do not")
    return spots


def _in_plane(spots: np.ndarray, places: np.ndarray) -> np.ndarray:
    u, v = (one.reshape(-1, *[1] * (spots.ndim - 1)) for one in places.T)
    return spots[0] + u * (spots[1] - spots[0]) + v * (spots[2] - spots[0])


class _Cut(NamedTuple):
    polygons: list[np.ndarray]
    name: str


def _cut_by(watched: Switching, spots: np.ndarray, polygons: list[np.ndarray], index: int, most: int) -> _Cut | None:
    """All polygons cut by one operation; None where there is no such operation."""
    done: list[np.ndarray] = []
    waiting, name, largest = polygons, None, 64
    for _ in range(AGAIN):
        again: list[np.ndarray] = []
        begin = 0
        while begin < len(waiting):
            # As many at a time as their numbers fit into memory.
            end, corners = begin, 0
            while end < len(waiting) and (corners == 0 or corners < largest):
                corners += len(waiting[end])
                end += 1
            group = waiting[begin:end]
            begin = end
            passed = watched.run(_in_plane(spots, np.concatenate(group)), index)
            if not passed.switches:
                return None
            seen = passed.switches[0]
            _require_finite(seen)
            name = seen.name
            width = seen.values.shape[1] if isinstance(seen, Signs) else seen.entries.shape[1]
            largest = max(64, BATCH // max(width, 1))
            if isinstance(seen, Signs):
                done += _split_by_signs(group, seen.values)
            else:
                settled, open_still = _split_by_choices(group, seen)
                done += settled
                again += open_still
            if len(done) + len(again) > most:
                raise TooCostly(
                    f"the network has more than {most} regions in the plane; take a smaller margin, or a larger most"
                )
        if not again:
            return _Cut(done, str(name))
        waiting = again
    raise NotConverged(f"the maximum in {name} changes its winner without end")


def _split_by_signs(group: list[np.ndarray], values: np.ndarray) -> list[np.ndarray]:
    starts = np.cumsum([0, *(len(one) for one in group[:-1])])
    low, high = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
    noise = NOISE * max(float(np.abs(values).max(initial=0.0)), 1e-300)
    edge = np.maximum(EDGE * np.maximum(-low, high), noise)
    crossing = (low < -edge) & (high > edge)
    cut: list[np.ndarray] = []
    for polygon, start, units in zip(group, starts, crossing, strict=True):
        which = np.flatnonzero(units)
        if not len(which):
            cut.append(polygon)
            continue
        cut += _pieces(np.concatenate([polygon, values[start : start + len(polygon), which]], axis=1), noise)
    return cut


def _pieces(rows: np.ndarray, noise: float) -> list[np.ndarray]:
    """A polygon with the values of some units at its corners, cut by all of them: columns u, v, unit, unit, …"""
    found, waiting = [], [rows]
    while waiting:
        rows = waiting.pop()
        for half in _halves(rows):
            if half.shape[1] == 2:
                found.append(half)
                continue
            values = half[:, 2:]
            low, high = values.min(axis=0), values.max(axis=0)
            edge = np.maximum(EDGE * np.maximum(-low, high), noise)
            still = (low < -edge) & (high > edge)
            if still.any():
                waiting.append(half[:, np.concatenate([BOTH, still])])
            else:
                found.append(half[:, :2])
    return found


def _halves(rows: np.ndarray) -> tuple[np.ndarray, ...]:
    """The two parts of a convex polygon on either side of the zero line of its first unit, without that unit."""
    values = rows[:, 2].tolist()
    size = EDGE * max(map(abs, values))
    values = [0.0 if abs(one) <= size else one for one in values]
    count = len(values)
    above, below, edges, shares = [], [], [], []
    for place, (here, after) in enumerate(zip(values, values[1:] + values[:1], strict=True)):
        if here >= 0:
            above.append(place)
        if here <= 0:
            below.append(place)
        if here * after < 0:
            above.append(count + len(edges))
            below.append(count + len(edges))
            edges.append(place)
            shares.append(here / (here - after))
    rest = rows[:, [0, 1, *range(3, rows.shape[1])]]
    share = np.array(shares)[:, None]
    new = rest[edges] * (1 - share) + rest[[(place + 1) % count for place in edges]] * share
    around = np.concatenate([rest, new])
    return around[above], around[below]


def _split_by_choices(group: list[np.ndarray], seen: Choices) -> tuple[list[np.ndarray], ...]:
    """Polygons in which every maximum has one winner, and parts of the others, to be looked at again."""
    settled: list[np.ndarray] = []
    again: list[np.ndarray] = []
    noise = NOISE * max(float(np.abs(seen.entries).max(initial=0.0)), 1e-300)
    start = 0
    for polygon in group:
        corners = slice(start, start + len(polygon))
        start += len(polygon)
        winners, entries = seen.winners[corners], seen.entries[corners]
        columns = []
        for unit in np.flatnonzero(np.any(winners != winners[0], axis=0)):
            pair = _rivals(winners[:, unit], entries, noise)
            if pair is not None:
                columns.append(pair)
        if not columns:
            settled.append(polygon)
        else:
            again += _pieces(np.concatenate([polygon, np.stack(columns, axis=1)], axis=1), noise)
    return settled, again


def _rivals(winners: np.ndarray, entries: np.ndarray, noise: float) -> np.ndarray | None:
    """How far one winner is ahead of another at the corners, for two that are told apart; None where all tie."""
    candidates = np.unique(winners)
    table = entries[:, candidates]
    edge = max(EDGE * float(np.abs(table).max()), noise)
    for first in range(len(candidates)):
        for second in range(first):
            ahead = table[:, first] - table[:, second]
            wins = table.max(axis=1) - edge
            if np.any((ahead > edge) & (table[:, first] >= wins)) and np.any(
                (ahead < -edge) & (table[:, second] >= wins)
            ):
                return ahead
    return None


def _area(polygon: np.ndarray) -> float:
    x, y = (polygon - polygon[0]).T
    return float(abs(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1))) / 2)


def _finished(
    watched: Switching, spots: np.ndarray, polygons: list[np.ndarray], names: list[str], counts: list[int]
) -> PlaneRegions:
    ends = np.cumsum([len(one) for one in polygons])[:-1]
    corners = watched.run(_in_plane(spots, np.concatenate(polygons))).outputs
    outputs = np.split(corners, ends)
    middles = watched.run(_in_plane(spots, np.stack([one.mean(axis=0) for one in polygons]))).outputs
    if not (np.all(np.isfinite(corners)) and np.all(np.isfinite(middles))):
        raise ParameterError("the network's outputs are NaN or infinite in the plane; rescale its inputs")
    size = max(float(np.abs(corners).max(initial=0.0)), 1e-300)
    misses = np.abs(middles - np.stack([one.mean(axis=0) for one in outputs]))
    residual = float(misses.max(initial=0.0)) / size
    if residual > STRAIGHT:
        raise ParameterError(
            f"the network misses the plane through the corners of a region by {residual:.2g} of its size: it jumps or "
            "bends where no operation was seen to; regions need a continuous piecewise linear function of each input"
        )
    return PlaneRegions(tuple(polygons), tuple(outputs), tuple(names), np.asarray(counts, int), residual)
