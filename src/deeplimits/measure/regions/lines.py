r"""The linear pieces of a network along a path in input space, exact.

A path of straight segments is cut where the network's operations with kinks change, one operation after the other in
the order in which they run. Between cuts all that an operation decides on is affine, so that its changes are where
straight lines cross zero. No step is too fine to be seen, and nothing is sampled.
"""

from typing import Any, NamedTuple

import numpy as np

from deeplimits.errors import NotConverged, ParameterError, TooCostly
from deeplimits.measure.adapters.switching import Choices, Signs, Switch, Switching, switching
from deeplimits.numerics.arguments import FINITE, argument, whole

SAME = 1e-12
"""Places this close, relative to a segment, are one."""
NOISE = 1e-14
"""Numbers this small, relative to the largest that any unit has, are zero up to rounding."""
STRAIGHT = 1e-7
"""In the middle of a piece the network may miss the chord by this much, relative to its size; and a kink smaller than
that of the slope's rounding is none."""
AGAIN = 200
"""How often one maximum may change its winner between two points."""


class LinePieces(NamedTuple):
    """A network along a path, as the piecewise linear function that it is."""

    breakpoints: np.ndarray
    """Where some unit changes; the path's k-th corner is at k"""
    layers: np.ndarray
    """For each breakpoint, which of `names` changes there (the first of them)"""
    visible: np.ndarray
    """For each breakpoint, whether the output has a kink there"""
    names: tuple[str, ...]
    """The operations with kinks, in the order in which they run"""
    crossings: np.ndarray
    """How many units change, for each operation: several may do so at one breakpoint"""
    nodes: np.ndarray
    """Breakpoints and corners of the path"""
    outputs: np.ndarray
    """The network at the nodes; between two of them it is their straight connection"""
    residual: float
    """The largest miss in the middle between two nodes, relative to the largest output"""

    @property
    def pieces(self) -> int:
        """How many linear pieces the output has, corners of the path not counted as kinks."""
        return int(np.sum(self.visible)) + 1

    def at(self, places: Any) -> np.ndarray:
        """The network's outputs at places along the path."""
        where = np.atleast_1d(np.asarray(argument("places", places, FINITE)))
        return np.stack([np.interp(where, self.nodes, column) for column in self.outputs.T], axis=-1)


def line_pieces(network: Any, path: Any, *, parameters: Any = None, most: int = 200_000) -> LinePieces:
    r"""All breakpoints of a piecewise linear network along a path of straight segments, exact.

    Setting     f made of linear operations and of kinks (ReLU-like activations, maxima, absolute values), `path` the
                corners x_0, x_1, … as an array (corners, …shape of an input)
    Result      every t at which a unit changes, and f at all of them; f(x(t)) is linear between
    Validity    networks without smooth nonlinearities (they are refused by name); convolutions, batch norm in
                evaluation mode, pooling and skip connections are run as they are
    References  hanin2019

    `network` is what `open_model` answers, a PyTorch module, or a JAX function of a batch (with `parameters` if it
    takes them first). Computed in double precision; `most` nodes are too many.

    >>> import jax, jax.numpy as jnp
    >>> w, b = jnp.array([[1.0, -1.0]]), jnp.array([[0.0, 1.0]])
    >>> v, c = jnp.array([[1.0, 2.0], [1.0, -1.0]]), jnp.array([[-1.5, -0.5]])
    >>> found = line_pieces(lambda x: jax.nn.relu(jax.nn.relu(x @ w + b) @ v + c), [[-5.0], [5.0]])
    >>> (10 * found.breakpoints - 5).round(12).tolist(), found.crossings.tolist()
    ([-0.5, 0.0, 0.5, 1.0, 1.5], [2, 3])
    """
    watched, corners = switching(network, parameters=parameters), _corners(path)
    nodes = np.arange(len(corners), dtype=float)
    origin = np.full(len(corners), -1)
    most = whole("most", most, 2)
    names: list[str] = []
    crossings: list[int] = []
    while True:
        number, count = len(names), 0
        seen = None
        for _ in range(AGAIN):
            passed = watched.run(_along(corners, nodes), number)
            if not passed.switches:
                break
            seen = passed.switches[0]
            _require_finite(seen)
            cut = _cuts(seen, nodes)
            count += cut.count
            origin = _marked(origin, cut.already, number)
            if not len(cut.places):
                break
            nodes, origin = _inserted(nodes, origin, cut.places, number)
            if len(nodes) > most:
                raise TooCostly(
                    f"the network has more than {most} breakpoints along the path; take a shorter one, or a larger most"
                )
            if isinstance(seen, Signs):
                # What is affine between two nodes crosses zero there at most once.
                break
        else:
            raise NotConverged(f"the maximum in {names[-1] if names else 'the network'} changes its winner without end")
        if seen is None:
            break
        names.append(seen.name)
        crossings.append(count)
    return _finished(watched, corners, nodes, origin, names, crossings)


def _corners(path: Any) -> np.ndarray:
    corners = np.asarray(argument("path", path, FINITE))
    if corners.ndim < 2 or len(corners) < 2 or corners.size == 0:
        raise ParameterError(
            f"path has shape {corners.shape}; it must have shape (corners, ...) with at least two corners, each an "
            "input"
        )
    steps = np.abs(np.diff(corners, axis=0)).reshape(len(corners) - 1, -1).max(axis=1)
    if not np.all(steps > 0):
        raise ParameterError("path holds the same corner twice in a row; a segment needs two different ends")
    return corners


def _along(corners: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """The points of the path at these places."""
    first = np.minimum(nodes.astype(int), len(corners) - 2)
    share = (nodes - first).reshape(-1, *[1] * (corners.ndim - 1))
    return corners[first] * (1 - share) + corners[first + 1] * share


class _Cuts(NamedTuple):
    """New places, how many units change, and the nodes at which some change already."""

    places: np.ndarray
    count: int
    already: np.ndarray


def _cuts(seen: Switch, nodes: np.ndarray) -> _Cuts:
    if isinstance(seen, Choices):
        left, right = seen.winners[:-1], seen.winners[1:]
        rows, columns = np.nonzero(left != right)
        old, new = left[rows, columns], right[rows, columns]
        entries = seen.entries
        # How far the old winner is ahead: positive at the left node, negative at the right one, unless they tie.
        before, after = (entries[rows + side, old] - entries[rows + side, new] for side in (0, 1))
        size = SAME * np.maximum(np.abs(entries).max(initial=0.0), 1e-300)
        cross = (before > size) & (after < -size)
        return _Cuts(*_between(nodes, rows[cross], before[cross], after[cross]), np.zeros(0, int))
    values = seen.values
    if not values.shape[1]:
        return _Cuts(np.zeros(0), 0, np.zeros(0, int))
    scale = np.abs(values).max(axis=0)
    sign = np.where(np.abs(values) <= np.maximum(SAME * scale, NOISE * scale.max()), 0, np.sign(values)).astype(np.int8)
    rows, columns = np.nonzero(sign[:-1] * sign[1:] < 0)
    # A unit that is zero at a node and changes its sign there
    there, _ = np.nonzero((sign[1:-1] == 0) & (sign[:-2] * sign[2:] < 0))
    found = _between(nodes, rows, values[rows, columns], values[rows + 1, columns])
    return _Cuts(found.places, found.count + len(there), np.unique(there) + 1)


class _Between(NamedTuple):
    places: np.ndarray
    count: int


def _between(nodes: np.ndarray, rows: np.ndarray, before: np.ndarray, after: np.ndarray) -> _Between:
    """Where straight lines from `before` to `after` cross zero, each place once."""
    share = before / (before - after)
    return _Between(np.unique(nodes[rows] + share * (nodes[rows + 1] - nodes[rows])), len(rows))


def _marked(origin: np.ndarray, already: np.ndarray, number: int) -> np.ndarray:
    origin = origin.copy()
    origin[already[origin[already] < 0]] = number
    return origin


def _inserted(nodes: np.ndarray, origin: np.ndarray, places: np.ndarray, number: int) -> tuple[np.ndarray, ...]:
    """Nodes with the new places; those that are within rounding of a node, or of each other, are one."""
    together = np.concatenate([nodes, places])
    whose = np.concatenate([origin, np.full(len(places), number)])
    fresh = np.concatenate([np.zeros(len(nodes), bool), np.ones(len(places), bool)])
    order = np.lexsort((fresh, together))
    together, whose, fresh = together[order], whose[order], fresh[order]
    keep, last = np.ones(len(together), bool), 0
    for place in range(1, len(together)):
        if together[place] - together[last] > SAME:
            last = place
        elif fresh[place]:
            keep[place] = False
            if whose[last] < 0:
                whose[last] = whose[place]
        else:
            # An old node just behind a new place: it stands for both.
            keep[last], whose[place] = False, whose[place] if whose[place] >= 0 else whose[last]
            last = place
    return together[keep], whose[keep]


def _require_finite(seen: Switch) -> None:
    values = seen.values if isinstance(seen, Signs) else seen.entries
    if not np.all(np.isfinite(values)):
        raise ParameterError(f"the network gives NaN or infinite numbers at {seen.name}; rescale its inputs")


def _finished(
    watched: Switching,
    corners: np.ndarray,
    nodes: np.ndarray,
    origin: np.ndarray,
    names: list[str],
    crossings: list[int],
) -> LinePieces:
    outputs = watched.run(_along(corners, nodes)).outputs
    middles = watched.run(_along(corners, (nodes[:-1] + nodes[1:]) / 2)).outputs
    if not np.all(np.isfinite(outputs)):
        raise ParameterError("the network's outputs are NaN or infinite along the path; rescale its inputs")
    size = max(float(np.abs(outputs).max(initial=0.0)), 1e-300)
    residual = float(np.abs(middles - (outputs[:-1] + outputs[1:]) / 2).max(initial=0.0)) / size
    if residual > STRAIGHT:
        raise ParameterError(
            f"the network misses the straight line between two of its breakpoints by {residual:.2g} of its size: it "
            "jumps or bends where no operation was seen to; regions need a continuous piecewise linear function of "
            "each input"
        )
    widths = np.diff(nodes)
    slopes = np.diff(outputs, axis=0) / widths[:, None]
    # Differences of outputs know slopes up to their rounding over the width of a piece.
    doubt = 64 * np.finfo(float).eps * size * (1 / widths[:-1] + 1 / widths[1:])
    jumps = np.abs(np.diff(slopes, axis=0)).max(axis=1, initial=0.0)
    inside = origin[1:-1] >= 0
    kinked = jumps > np.maximum(doubt, 1e-9 * np.abs(slopes).max(initial=0.0))
    return LinePieces(
        nodes[1:-1][inside],
        origin[1:-1][inside],
        kinked[inside],
        tuple(names),
        np.asarray(crossings, int),
        nodes,
        outputs,
        residual,
    )
